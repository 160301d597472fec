/* Recording of the profiler: an observer at the watch door (dispatch layer) that times every call. Keeps
 * totals per op and kernel and per user-named interval, and the first 2^20 calls and intervals also as single
 * events. May use core only. */
#include "profile/recorder.h"

#include "core/call_cost.h"
#include "core/thread.h"

#include <pthread.h>
#include <time.h>

enum { EVENTS = 1 << 20, SLOTS = 1 << 10 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool on;
static atomic_llong epoch; /* when the recording began, in nanoseconds of the clock */
static atomic_int threads;

/* Guarded by the lock from here on. */
static proa_profile_row *rows;
static int32_t n_rows, rows_capacity;
static int32_t *slots; /* row numbers by subject: open addressing; −1: free */
static size_t n_slots;
static proa__profile_event *events;
static int64_t n_events, events_capacity, lost;
static int64_t length; /* nanoseconds from start to stop of the last recording */

/* This thread's number in events, and the nanoseconds that calls nested in the running call have taken. */
static PROA__TLS int my_number;
static PROA__TLS int64_t inner;

static int64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* ---- rows ------------------------------------------------------------------------------ */

/* Subject of a row: kernel is NULL for an interval and for an op that ran no kernel (a view). */
typedef struct subject {
    const char *name;
    bool is_op;
    const char *kernel;
} subject;

static bool is_about(const proa_profile_row *row, const subject *s)
{
    return row->is_op == s->is_op && row->kernel == s->kernel && strcmp(row->name, s->name) == 0;
}

static size_t slot_of(const subject *s)
{
    uint64_t hash = s->is_op ? 14695981039346656037u : 1099511628211u;
    for (const char *c = s->name; *c; c++) hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    hash = (hash ^ (uintptr_t)s->kernel >> 4) * 1099511628211u;
    size_t at = (hash ^ hash >> 32) & (n_slots - 1);
    while (slots[at] >= 0 && !is_about(&rows[slots[at]], s)) at = (at + 1) & (n_slots - 1);
    return at;
}

static proa_status widen(void)
{
    size_t wanted = n_slots ? 2 * n_slots : SLOTS;
    int32_t *more = proa__alloc(wanted * sizeof *more);
    if (!more) return proa_error();
    proa__free(slots);
    slots = more;
    n_slots = wanted;
    memset(slots, 0xff, wanted * sizeof *slots);
    for (int32_t i = 0; i < n_rows; i++) {
        const subject about = {rows[i].name, rows[i].is_op, rows[i].kernel};
        slots[slot_of(&about)] = i;
    }
    return PROA_OK;
}

/* The subject's row; −1 and an error without memory. The user's names are copied. */
static int32_t row_of(const subject *about)
{
    if ((size_t)n_rows * 2 >= n_slots && widen() != PROA_OK) return -1;
    size_t at = slot_of(about);
    if (slots[at] >= 0) return slots[at];
    if (n_rows == rows_capacity) {
        int32_t capacity = rows_capacity ? 2 * rows_capacity : 64;
        proa_profile_row *more = proa__realloc(rows, (size_t)capacity * sizeof *more);
        if (!more) return -1;
        rows = more;
        rows_capacity = capacity;
    }
    const char *name = about->is_op ? about->name : proa__strdup(about->name);
    if (!name) return -1;
    rows[n_rows] = (proa_profile_row){.name = name, .is_op = about->is_op, .kernel = about->kernel};
    return slots[at] = n_rows++;
}

static proa_status keep_event(const proa__profile_event *e)
{
    if (n_events == EVENTS) return lost++, PROA_OK;
    if (n_events == events_capacity) {
        int64_t capacity = events_capacity ? 2 * events_capacity : 1024;
        proa__profile_event *more = proa__realloc(events, (size_t)capacity * sizeof *more);
        if (!more) return proa_error();
        events = more;
        events_capacity = capacity;
    }
    events[n_events++] = *e;
    return PROA_OK;
}

static proa_status record(const subject *about, proa__profile_event *e, int64_t self)
{
    if (!my_number) my_number = 1 + atomic_fetch_add_explicit(&threads, 1, memory_order_relaxed);
    e->thread = my_number;
    pthread_mutex_lock(&lock);
    proa_status status = PROA_OK;
    /* An interval that began before this recording, or ends after it, is not counted. */
    if (atomic_load_explicit(&on, memory_order_relaxed) && e->begin >= 0) {
        e->row = row_of(about);
        status = e->row < 0 ? proa_error() : keep_event(e);
        if (e->row >= 0) {
            proa_profile_row *r = &rows[e->row];
            double seconds = (double)e->length * 1e-9;
            r->least = r->count == 0 || seconds < r->least ? seconds : r->least;
            r->most = seconds > r->most ? seconds : r->most;
            r->count++;
            r->total += seconds;
            r->self += (double)self * 1e-9;
            r->flops += e->flops;
            r->bytes += e->bytes;
        }
    }
    pthread_mutex_unlock(&lock);
    return status;
}

/* ---- calls ----------------------------------------------------------------------------- */

static proa_status observe(proa_call *call)
{
    int64_t outer = inner, began = clock_ns();
    inner = 0;
    if (proa__thread_self) proa__thread_self->ran = NULL;
    proa_status status = proa_call_inner(PROA_DOOR_WATCH, call);
    /* A device runs asynchronously: wait, so that the measured time is the op's. */
    if (status == PROA_OK && proa__stream()->device != PROA_CPU) status = proa_synchronize();
    int64_t took = clock_ns() - began, self = took - inner;
    inner = outer + took;
    PROA_TRY(status);
    double flops = proa__call_flops(call->op, call->args);
    proa__profile_event e = {.begin = began - atomic_load_explicit(&epoch, memory_order_relaxed),
                             .length = took,
                             .flops = flops > 0 ? flops : 0, /* -1: not known, counts nothing */
                             .bytes = proa__call_bytes(call->op, call->args)};
    const proa_kernel *kernel = proa__thread_self->ran;
    return record(&(subject){call->op->name, true, kernel ? kernel->name : NULL}, &e, self);
}

int64_t proa_profile_begin(void) { return atomic_load_explicit(&on, memory_order_relaxed) ? clock_ns() : 0; }

proa_status proa_profile_end(const char *name, int64_t began)
{
    PROA_TRY(proa_error());
    if (!name) return proa_fail(PROA_ERR_INVALID_ARGUMENT, "profile_end: name is NULL; pass a text");
    if (!began) return PROA_OK;
    proa__profile_event e = {.begin = began - atomic_load_explicit(&epoch, memory_order_relaxed),
                             .length = clock_ns() - began};
    return record(&(subject){name, false, NULL}, &e, e.length);
}

/* ---- start and stop -------------------------------------------------------------------- */

proa_status proa_profile_start(void)
{
    PROA_TRY(proa_error());
    pthread_mutex_lock(&lock);
    bool was = atomic_load_explicit(&on, memory_order_relaxed);
    if (!was) {
        for (int32_t i = 0; i < n_rows; i++)
            if (!rows[i].is_op) proa__free((void *)(uintptr_t)rows[i].name);
        n_rows = 0;
        n_events = lost = length = 0;
        if (slots) memset(slots, 0xff, n_slots * sizeof *slots);
        atomic_store_explicit(&epoch, clock_ns(), memory_order_relaxed);
        atomic_store_explicit(&on, true, memory_order_relaxed);
    }
    pthread_mutex_unlock(&lock);
    if (was) return proa_fail(PROA_ERR_BAD_STATE, "profile_start: is recording already; stop it first");
    proa__observe(observe);
    return PROA_OK;
}

proa_status proa_profile_stop(void)
{
    proa__observe(NULL);
    pthread_mutex_lock(&lock);
    if (atomic_load_explicit(&on, memory_order_relaxed))
        length = clock_ns() - atomic_load_explicit(&epoch, memory_order_relaxed);
    atomic_store_explicit(&on, false, memory_order_relaxed);
    pthread_mutex_unlock(&lock);
    return proa_error();
}

bool proa_profile_is_on(void) { return atomic_load_explicit(&on, memory_order_relaxed); }

double proa_profile_seconds(void)
{
    pthread_mutex_lock(&lock);
    bool now = atomic_load_explicit(&on, memory_order_relaxed);
    int64_t ns = now ? clock_ns() - atomic_load_explicit(&epoch, memory_order_relaxed) : length;
    pthread_mutex_unlock(&lock);
    return (double)ns * 1e-9;
}

int64_t proa_profile_rows(proa_profile_row *to, int64_t capacity)
{
    pthread_mutex_lock(&lock);
    int64_t n = n_rows;
    if (to && capacity > 0 && n > 0) memcpy(to, rows, (size_t)(capacity < n ? capacity : n) * sizeof *to);
    pthread_mutex_unlock(&lock);
    return n;
}

const proa__profile_event *proa__profile_events(int64_t *count, int64_t *without_capacity)
{
    *count = n_events;
    *without_capacity = lost;
    return events;
}
