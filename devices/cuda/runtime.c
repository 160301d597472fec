/* Device table of one GPU: memory, copies through pinned host memory, synchronization, statistics and errors.
 * Each GPU has one stream for work, and one for copies to the host and for copies that are made ahead of use
 * (transfer.c). The host waits in copies to it, in synchronize, and where all pinned memory for copies is in
 * use. */
#include "runtime.h"
#include "compiler.h"
#include "module.h"
#include "table.h"
#include "transfer.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

const proa_host_api *cuda_host;

/* ---- errors ---------------------------------------------------------------------------- */

proa_status cuda_fail(proa_status code, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return cuda_host->fail(code, text);
}

/* Lists the ops queued last, most recent first. */
static void list_ops(const cuda_context *c, char *text, size_t capacity)
{
    size_t used = 0;
    *text = '\0';
    for (unsigned i = 0; i < CUDA_LAST_OPS && i < c->n_last && used < capacity; i++) {
        const proa_op *op = c->last[(c->n_last - 1 - i) % CUDA_LAST_OPS];
        used += (size_t)snprintf(text + used, capacity - used, "%s%s", i ? ", " : "", op->name);
    }
}

proa_status cuda_check(cuda_context *c, int code, const char *what, bool late)
{
    if (code == 0) return PROA_OK;
    const char *why = c->driver->error_text(code);
    (void)c->driver->last_error(); /* clears it: CUDA's libraries would report it as their own */
    if (!late || !c->n_last)
        return cuda_fail(PROA_ERR_INTERNAL, "%s%s%s on %s: %s", c->running ? c->running->name : "",
                         c->running ? ": " : "", what, c->name, why);
    char ops[256];
    list_ops(c, ops, sizeof ops);
    return cuda_fail(PROA_ERR_INTERNAL,
                     "%s on %s: %s; it comes from one of the ops queued before, the last of which are %s "
                     "(FLAGS_device_sync=1 names the very op)",
                     what, c->name, why, ops);
}

/* After a wait: reports the wait's own error code, then errors that kernels found in the meantime. */
static proa_status check_waited(cuda_context *c, int code, const char *what)
{
    PROA_TRY(cuda_check(c, code, what, true));
    cuda_fault f = *c->fault;
    if (!f.raised) return PROA_OK;
    c->fault->raised = 0;
    return cuda_fail(PROA_ERR_OUT_OF_RANGE, "%s: %s: entry %lld is %lld; expected %lld to %lld (found by %s)",
                     f.op, f.argument, (long long)f.entry, (long long)f.value, (long long)f.first,
                     (long long)f.last, c->name);
}

/* Threads that share a GPU are serialized: HOLD(c) holds its lock to the end of the function. */
static void let_go(pthread_mutex_t **held) { pthread_mutex_unlock(*held); }
static pthread_mutex_t *take_hold(cuda_context *c)
{
    pthread_mutex_lock(&c->lock);
    return &c->lock;
}
#define HOLD(c) pthread_mutex_t *held __attribute__((cleanup(let_go), unused)) = take_hold(c)

static void begin(void *context, const proa_op *op)
{
    cuda_context *c = context;
    if (op) pthread_mutex_lock(&c->lock); /* held until begin(NULL), after the kernel */
    c->running = op;
    if (!op) {
        pthread_mutex_unlock(&c->lock);
        return;
    }
    c->last[c->n_last++ % CUDA_LAST_OPS] = op;
    c->driver->use(c->index);
}

/* ---- memory ---------------------------------------------------------------------------- */

static void *take(cuda_context *c, size_t bytes, cuda_pool *pool)
{
    void *p = cuda_pool_take(pool, bytes, c->running ? c->running->name : NULL);
    if (!p && c->transfers && !c->recording) { /* memory cached for asynchronous uploads may suffice */
        cuda_transfers_trim(c);
        p = cuda_pool_take(pool, bytes, c->running ? c->running->name : NULL);
    }
    if (p) return p;
    char report[512];
    cuda_pool_report(c->pool, report, sizeof report);
    cuda_fail(PROA_ERR_OUT_OF_MEMORY, "out of memory on %s: %zu bytes%s%s; %s, of %.0f MiB", c->name, bytes,
              c->running ? " for " : "", c->running ? c->running->name : "", report,
              (double)c->description.memory / (1 << 20));
    return NULL;
}

/* Returns p to its owner: the recording's pool, the transfers, or the context's pool. */
static void give(cuda_context *c, void *p)
{
    HOLD(c);
    if (c->recording && cuda_pool_give(c->recording->pool, p)) return;
    if (!cuda_transfer_give(c, p)) cuda_pool_give(c->pool, p);
}

/* Takes memory from the recording's pool during a recording, otherwise from the context's. */
static void *take_now(cuda_context *c, size_t bytes)
{
    HOLD(c);
    return take(c, bytes, c->recording ? c->recording->pool : c->pool);
}

static void *gpu_alloc(void *context, size_t bytes) { return take_now(context, bytes); }

static void gpu_free(void *context, void *p, size_t bytes)
{
    cuda_context *c = context;
    (void)bytes;
    give(c, p);
}

void *cuda_scratch(cuda_context *c, size_t bytes) { return take_now(c, bytes ? bytes : 1); }
void *cuda_keep(cuda_context *c, size_t bytes)
{
    HOLD(c);
    return take(c, bytes, c->pool);
}
void cuda_scratch_free(cuda_context *c, void *p) { give(c, p); }

static void gpu_memory(void *context, proa_device_memory *to, bool reset_peak)
{
    cuda_context *c = context;
    cuda_pool_stats s = cuda_pool_get_stats(c->pool, reset_peak);
    *to = (proa_device_memory){s.live_bytes, s.peak_bytes, s.held_bytes - s.live_bytes,
                               (int64_t)c->description.memory};
}

static void gpu_trim(void *context)
{
    cuda_context *c = context;
    HOLD(c);
    c->driver->use(c->index);
    cuda_transfers_trim(c);
    cuda_pool_trim(c->pool);
}

/* ---- copies ---------------------------------------------------------------------------- */

/* A ring of pinned pieces: the host fills one while others are being copied, so that a step's inputs are
 * queued behind work that still runs. */
enum { PIECES = 8, NO_MEMORY = 2 /* cudaErrorMemoryAllocation */ };
static const size_t piece_bytes = (size_t)2 << 20;

typedef struct cuda_staging {
    char *piece[PIECES];
    void *event[PIECES]; /* recorded behind the last copy from or to the piece */
    bool busy[PIECES];
    unsigned next;
} cuda_staging;

static int new_staging(cuda_context *c)
{
    cuda_staging *s = c->staging = calloc(1, sizeof *s);
    int code = s ? 0 : NO_MEMORY;
    for (int i = 0; i < PIECES && code == 0; i++) { /* an error leaves the process without this GPU */
        void *p = NULL;
        code = c->driver->host_malloc(&p, piece_bytes);
        if (code == 0) code = c->driver->event_create(&s->event[i]);
        if (code == 0) s->piece[i] = p;
    }
    return code;
}

static int wait_for(cuda_context *c, void *event)
{
    c->waits++;
    return c->driver->event_sync(event);
}

static int take_piece(cuda_context *c, int *at)
{
    cuda_staging *s = c->staging;
    *at = (int)(s->next++ % PIECES);
    if (!s->busy[*at]) return 0;
    s->busy[*at] = false;
    int code = c->driver->event_query(s->event[*at]);
    return code == CUDA_NOT_READY ? wait_for(c, s->event[*at]) : code;
}

static int copy_piece(cuda_context *c, int at, char *to, const char *from, size_t n, cuda_direction direction)
{
    void *stream = direction == CUDA_TO_HOST ? c->copies : c->stream;
    int code = c->driver->copy(to, from, n, direction, stream);
    if (code == 0) code = c->driver->event_record(c->staging->event[at], stream);
    c->staging->busy[at] = code == 0;
    return code;
}

static proa_status gpu_copy_in(void *context, void *to, const void *from, size_t bytes)
{
    cuda_context *c = context;
    HOLD(c);
    int code = c->driver->use(c->index);
    if (cuda_unrecordable(c)) return cuda_host->error();
    if (bytes <= sizeof(cuda_small)) return cuda_write_small(c, to, from, bytes);
    for (size_t done = 0, n; done < bytes && code == 0; done += n) {
        int at;
        n = bytes - done < piece_bytes ? bytes - done : piece_bytes;
        code = take_piece(c, &at);
        if (code != 0) break;
        memcpy(c->staging->piece[at], (const char *)from + done, n);
        code = copy_piece(c, at, (char *)to + done, c->staging->piece[at], n, CUDA_TO_DEVICE);
    }
    return cuda_check(c, code, "a copy to the device", true);
}

proa_status cuda_write(cuda_context *c, void *to, const void *from, size_t bytes)
{
    return gpu_copy_in(c, to, from, bytes);
}

/* State of one part of gpu_copy_out: copied to pinned memory, then to the destination. */
typedef struct part {
    int at;
    char *to;
    size_t n;
} part;

static int land(cuda_context *c, const part *p)
{
    int code = wait_for(c, c->staging->event[p->at]);
    if (code == 0) memcpy(p->to, c->staging->piece[p->at], p->n);
    c->staging->busy[p->at] = false;
    return code;
}

/* Copies from the device and waits, on a stream of its own that waits only for work queued before: half of
 * the pieces are in flight while the host empties the others, and work queued later does not delay the
 * copy. */
static proa_status gpu_copy_out(void *context, void *to, const void *from, size_t bytes)
{
    enum { FLYING = PIECES / 2 };
    cuda_context *c = context;
    part flying[FLYING];
    size_t asked = 0, landed = 0, done = 0;
    HOLD(c);
    int code = c->driver->use(c->index);
    if (cuda_unrecordable(c)) return cuda_host->error();
    if (code == 0) code = c->driver->event_record(c->computed, c->stream);
    if (code == 0) code = c->driver->stream_wait(c->copies, c->computed);
    while (code == 0 && (done < bytes || landed < asked)) {
        if (done == bytes || asked - landed == FLYING) {
            code = land(c, &flying[landed++ % FLYING]);
            continue;
        }
        part *p = &flying[asked++ % FLYING];
        *p = (part){.to = (char *)to + done, .n = bytes - done < piece_bytes ? bytes - done : piece_bytes};
        code = take_piece(c, &p->at);
        if (code == 0)
            code =
                copy_piece(c, p->at, c->staging->piece[p->at], (const char *)from + done, p->n, CUDA_TO_HOST);
        done += p->n;
    }
    return check_waited(c, code, "a copy to the host");
}

static void *gpu_send(void *context, const void *from, size_t bytes)
{
    cuda_context *c = context;
    HOLD(c);
    return cuda_transfer_send(c, from, bytes);
}

static proa_status gpu_arrive(void *context, const void *at)
{
    cuda_context *c = context;
    HOLD(c);
    int code = c->driver->use(c->index);
    if (cuda_unrecordable(c)) return cuda_host->error();
    if (code == 0) code = cuda_transfer_arrive(c, at);
    return cuda_check(c, code, "a batch's arrival", false);
}

static proa_status gpu_copy(void *context, void *to, const void *from, size_t bytes)
{
    cuda_context *c = context;
    HOLD(c);
    int code = c->driver->use(c->index);
    if (code == 0) code = c->driver->copy(to, from, bytes, CUDA_ON_DEVICE, c->stream);
    return cuda_check(c, code, "a copy", false);
}

proa_status cuda_read(cuda_context *c, void *to, const void *from, size_t bytes)
{
    return gpu_copy_out(c, to, from, bytes);
}
proa_status cuda_move(cuda_context *c, void *to, const void *from, size_t bytes)
{
    return bytes ? gpu_copy(c, to, from, bytes) : PROA_OK;
}

static proa_status gpu_copy_strided(void *context, const proa_strided_copy *copy)
{
    cuda_context *c = context;
    HOLD(c);
    c->driver->use(c->index);
    return cuda_copy_strided(c, copy);
}

static proa_status gpu_fill(void *context, void *to, const void *value, size_t item, int64_t count)
{
    cuda_context *c = context;
    HOLD(c);
    c->driver->use(c->index);
    return cuda_fill(c, to, value, item, count);
}

static proa_status gpu_synchronize(void *context)
{
    cuda_context *c = context;
    HOLD(c);
    int code = c->driver->use(c->index);
    if (cuda_unrecordable(c)) return cuda_host->error();
    c->waits++;
    if (code == 0) code = c->driver->stream_sync(c->stream);
    if (code == 0) code = c->driver->stream_sync(c->copies);
    return check_waited(c, code, "synchronize");
}

/* An event behind the queued work. */
static void *gpu_mark(void *context)
{
    cuda_context *c = context;
    HOLD(c);
    void *event = NULL;
    int code = c->driver->use(c->index);
    if (cuda_unrecordable(c)) return NULL;
    if (code == 0) code = c->driver->event_create(&event);
    if (code == 0) code = c->driver->event_record(event, c->stream);
    if (cuda_check(c, code, "an event", false) == PROA_OK) return event;
    if (event) c->driver->event_free(event);
    return NULL;
}

static int gpu_mark_done(void *context, void *mark, bool wait)
{
    cuda_context *c = context;
    HOLD(c);
    int code = c->driver->use(c->index);
    if (wait && cuda_unrecordable(c)) return -1;
    if (code == 0) code = wait ? wait_for(c, mark) : c->driver->event_query(mark);
    if (code == CUDA_NOT_READY) return 0;
    return check_waited(c, code, "an event") == PROA_OK ? 1 : -1;
}

static void gpu_mark_free(void *context, void *mark)
{
    cuda_context *c = context;
    HOLD(c);
    c->driver->use(c->index);
    c->driver->event_free(mark);
}

static int new_fault(cuda_context *c)
{
    void *p = NULL;
    int code = c->driver->host_malloc(&p, sizeof *c->fault);
    if (code == 0) c->fault = memset(p, 0, sizeof *c->fault);
    return code;
}

/* ---- asking ---------------------------------------------------------------------------- */

static const char *describe(void *context)
{
    cuda_context *c = context;
    const char *why_not = cuda_convolution_why_not(), *no_chain = cuda_module_why_not();
    if (!*no_chain) cuda_compiler(&no_chain);
    snprintf(c->text, sizeof c->text, "%s, compute capability %d.%d, %.1f GiB%s%s%s%s", c->description.name,
             c->description.major, c->description.minor, (double)c->description.memory / (1 << 30),
             *why_not ? "; no convolution: " : "", why_not, *no_chain ? "; no fused chains: " : "", no_chain);
    return c->text;
}

/* Sets *value to a property of the GPU, or to a count since start (waits to kernels_*), for tests and to find
 * synchronization; 0: there is no such property. */
static int property(void *context, const char *name, int64_t *value)
{
    const cuda_context *c = context;
    cuda_module_counts modules = cuda_module_count();
    if (!strcmp(name, "compute_major")) *value = c->description.major;
    else if (!strcmp(name, "compute_minor")) *value = c->description.minor;
    else if (!strcmp(name, "multiprocessors")) *value = c->description.multiprocessors;
    else if (!strcmp(name, "waits")) *value = c->waits;
    else if (!strcmp(name, "launches")) *value = c->launches;
    else if (!strcmp(name, "replays")) *value = c->replays;
    else if (!strcmp(name, "sent")) *value = cuda_transfer_count(c);
    else if (!strcmp(name, "communications")) *value = c->communications;
    else if (!strcmp(name, "strided_copies")) *value = c->strided_copies;
    else if (!strcmp(name, "kernels_compiled")) *value = modules.compiled;
    else if (!strcmp(name, "kernels_read")) *value = modules.read;
    else if (!strcmp(name, "kernels_refused")) *value = modules.refused;
    else if (!strcmp(name, "driver_allocations")) *value = cuda_pool_get_stats(c->pool, false).driver_calls;
    else return 0;
    return 1;
}

/* Opens the streams, events and pinned memory of a context; returns 0 or the driver's code. */
static int open_gpu(cuda_context *c)
{
    const cuda_driver *d = c->driver;
    int code = d->use(c->index);
    if (code == 0) code = d->describe(c->index, &c->description);
    if (code == 0) code = d->stream_create(&c->stream);
    if (code == 0) code = d->stream_create(&c->copies);
    if (code == 0) code = d->event_create(&c->computed);
    if (code == 0) code = new_fault(c);
    return code ? code : new_staging(c);
}

const char *cuda_table_make(proa_device_table *table, int index, const cuda_driver *driver)
{
    cuda_context *c = calloc(1, sizeof *c);
    if (!c) return driver->error_text(NO_MEMORY);
    c->index = index;
    c->driver = driver;
    snprintf(c->name, sizeof c->name, "gpu:%d", index);
    c->pool = cuda_pool_new(driver, index);
    pthread_mutexattr_t recursive;
    pthread_mutexattr_init(&recursive);
    pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&c->lock, &recursive);
    pthread_mutexattr_destroy(&recursive);
    int code = c->pool ? open_gpu(c) : NO_MEMORY;
    if (code != 0) {
        (void)driver->last_error(); /* clears CUDA's last error: the code is returned as text */
        cuda_pool_free(c->pool);
        free(c);
        return driver->error_text(code);
    }
    *table = (proa_device_table){.name = c->name,
                                 .context = c,
                                 .alloc = gpu_alloc,
                                 .free = gpu_free,
                                 .copy_in = gpu_copy_in,
                                 .copy_out = gpu_copy_out,
                                 .copy = gpu_copy,
                                 .send = gpu_send,
                                 .arrive = gpu_arrive,
                                 .mark = gpu_mark,
                                 .mark_done = gpu_mark_done,
                                 .mark_free = gpu_mark_free,
                                 .copy_strided = gpu_copy_strided,
                                 .fill = gpu_fill,
                                 .synchronize = gpu_synchronize,
                                 .begin = begin,
                                 .memory = gpu_memory,
                                 .trim = gpu_trim,
                                 .describe = describe,
                                 .property = property,
                                 .record_begin = cuda_record_begin,
                                 .record_end = cuda_record_end,
                                 .replay = cuda_record_replay,
                                 .record_free = cuda_record_free};
    return NULL;
}
