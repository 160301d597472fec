/* Makes and maps the shared segment, an anonymous file (memfd) of one rank that the others open through
 * /proc, so that a crash leaves no file behind. Waits on futexes for short intervals, between which it checks
 * for dead ranks and the deadline. May use core. */
#define _GNU_SOURCE
#include "core/internal.h"
#include "dist/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { SLICE_MILLISECONDS = 20 };

/* ---- waiting --------------------------------------------------------------------------- */

static void sleep_on(proa__shm_counter *c, unsigned seen)
{
    struct timespec slice = {.tv_nsec = SLICE_MILLISECONDS * 1000000L};
    atomic_fetch_add(&c->sleepers, 1);
    syscall(SYS_futex, &c->value, FUTEX_WAIT, seen, &slice, NULL, 0);
    atomic_fetch_sub(&c->sleepers, 1);
}

void proa__shm_post(proa__shm_counter *c, uint32_t value)
{
    atomic_store(&c->value, value);
    if (atomic_load(&c->sleepers)) syscall(SYS_futex, &c->value, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
}

static bool reached(const proa__shm_counter *c, uint32_t value)
{
    return (int32_t)(atomic_load_explicit(&c->value, memory_order_acquire) - value) >= 0;
}

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static proa_status give_up(proa__shm *s, int whom, proa__life life, const char *what)
{
    int rank = s->ranks ? s->ranks[whom] : whom;
    if (life != PROA__LIFE_HERE) {
        proa_fail(PROA_ERR_UNAVAILABLE, "%s: rank %d %s while rank %d waited for it", what, rank,
                  proa__life_text(life), s->ranks ? s->ranks[s->rank] : s->rank);
    } else {
        const char *silent = proa__store_silent(s->store);
        proa_fail(PROA_ERR_TIMEOUT, "%s: rank %d did not come within %.3g s%s%s%s; is every rank calling it?",
                  what, rank, s->timeout, *silent ? " (no sign of life from rank " : "", silent,
                  *silent ? ")" : "");
    }
    if (!atomic_exchange(&s->failing, true)) {
        snprintf(s->failure, sizeof s->failure, "%s", proa_error_message());
        atomic_store(&s->failed, proa_error());
    }
    return proa_error();
}

proa_status proa__shm_await(proa__shm *s, proa__shm_counter *c, uint32_t value, int whom, const char *what)
{
    for (int i = 0; i < s->spins; i++) {
        if (reached(c, value)) return PROA_OK;
        relax();
    }
    int rank = s->ranks ? s->ranks[whom] : whom;
    double until = proa__monotonic() + s->timeout;
    for (;;) {
        /* read before the counter: then all that a rank did before it left is seen */
        proa__life life = proa__store_life(s->store, rank);
        unsigned seen = atomic_load_explicit(&c->value, memory_order_acquire);
        if ((int32_t)(seen - value) >= 0) return PROA_OK;
        if (life != PROA__LIFE_HERE || proa__monotonic() > until) return give_up(s, whom, life, what);
        sleep_on(c, seen);
    }
}

proa_status proa__shm_check(proa__shm *s, const char *what)
{
    proa_status failed = atomic_load(&s->failed);
    if (!failed) return PROA_OK;
    return proa_fail(failed, "%s: the group cannot be used any more, because of: %s", what, s->failure);
}

proa_status proa__shm_round(proa__shm *s, const char *what)
{
    uint32_t step = ++s->step;
    proa__shm_post(&s->steps[s->rank], step);
    for (int r = 0; r < s->size; r++)
        if (r != s->rank) PROA_TRY(proa__shm_await(s, &s->steps[r], step, r, what));
    return PROA_OK;
}

static const char *const kinds[] = {"all_reduce", "reduce",  "reduce_scatter", "broadcast",
                                    "all_gather", "scatter", "all_to_all",     "barrier"};

static void say(char *text, size_t n, const proa__shm_call *c)
{
    snprintf(text, n, "%s of %llu elements of %s", kinds[c->kind & 7], (unsigned long long)c->size,
             c->dtype && c->dtype < PROA_DTYPE_COUNT ? proa_dtype_name((proa_dtype)c->dtype) : "a byte");
    size_t used = strlen(text);
    if (c->root >= 0) snprintf(text + used, n - used, " at root %d", c->root);
}

proa_status proa__shm_begin(proa__shm *s, const char *what, const proa__shm_call *call, uint64_t *most)
{
    PROA_TRY(proa__shm_check(s, what));
    *proa__shm_call_of(s, s->rank, s->step + 1) = *call;
    PROA_TRY(proa__shm_round(s, what));
    if (most) *most = call->most;
    for (int r = 0; r < s->size; r++) {
        const proa__shm_call *other = proa__shm_call_of(s, r, s->step);
        if (most && other->most > *most) *most = other->most;
        if (other->kind == call->kind && other->dtype == call->dtype && other->op == call->op &&
            other->root == call->root && other->size == call->size)
            continue;
        char mine[128], theirs[128];
        say(mine, sizeof mine, call);
        say(theirs, sizeof theirs, other);
        return proa_fail(
            PROA_ERR_INVALID_ARGUMENT,
            "%s: the ranks' calls differ: rank %d called %s (op %u), rank %d %s (op %u); all call the "
            "same with tensors of one shape",
            what, s->ranks ? s->ranks[s->rank] : s->rank, mine, call->op, s->ranks ? s->ranks[r] : r, theirs,
            other->op);
    }
    return PROA_OK;
}

/* ---- making and mapping ---------------------------------------------------------------- */

/* The segment's first cache line. */
typedef struct head {
    uint64_t cookie;
    char *base;          /* where the process that made it has mapped it */
    _Atomic int sharers; /* ranks of that process, which are its threads */
} head;
_Static_assert(sizeof(head) <= PROA__SHM_LINE, "the head is one line");

static head *head_of(const proa__shm *s) { return (head *)(void *)s->base; }

static size_t segment_bytes(int size)
{
    size_t n = (size_t)size;
    return n * sizeof(proa__shm_counter) + 2 * n * sizeof(proa__shm_call) + 2 * n * PROA__SHM_SLOT +
           n * n * sizeof(proa__shm_ring) + 4096;
}

static void set_parts(proa__shm *s)
{
    size_t n = (size_t)s->size;
    char *at = s->base + PROA__SHM_LINE;
    s->steps = (proa__shm_counter *)(void *)at;
    at += n * sizeof *s->steps;
    s->calls = (proa__shm_call *)(void *)at;
    at += 2 * n * sizeof *s->calls;
    s->rings = (proa__shm_ring *)(void *)at;
    at += n * n * sizeof *s->rings;
    at = s->base + (((size_t)(at - s->base) + 4095) & ~(size_t)4095);
    s->slots = at;
}

static bool map(proa__shm *s, int fd)
{
    struct stat info;
    if (fstat(fd, &info) != 0 || (size_t)info.st_size != s->bytes) return false;
    void *at = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) return false;
    s->base = at;
    set_parts(s);
    return true;
}

/* Makes the segment and writes how others find it, "pid fd cookie", to text; "" if it cannot be made. */
static int make(proa__shm *s, char *text, size_t n)
{
    uint64_t cookie;
    int fd = memfd_create("proa", MFD_CLOEXEC);
    text[0] = 0;
    if (fd < 0) return -1;
    if (ftruncate(fd, (off_t)s->bytes) != 0 || !map(s, fd) ||
        getrandom(&cookie, sizeof cookie, GRND_NONBLOCK) != sizeof cookie) {
        close(fd);
        return -1;
    }
    head *h = head_of(s);
    h->cookie = cookie;
    h->base = s->base;
    atomic_init(&h->sharers, 1);
    s->shares = true;
    snprintf(text, n, "%ld %d %llu", (long)getpid(), fd, (unsigned long long)cookie);
    return fd;
}

/* Uses the maker's mapping if this rank is a thread of the maker's process, so that race detectors see one
 * address. */
static void share(proa__shm *s)
{
    head *h = head_of(s);
    int sharers = atomic_load(&h->sharers);
    while (sharers > 0 && !atomic_compare_exchange_weak(&h->sharers, &sharers, sharers + 1)) {
    }
    if (sharers <= 0) return; /* the maker has unmapped it */
    char *base = h->base;
    munmap(s->base, s->bytes);
    s->base = base;
    s->shares = true;
    set_parts(s);
}

static bool open_made(proa__shm *s, const char *text)
{
    long pid;
    int number;
    unsigned long long cookie;
    char path[64];
    if (sscanf(text, "%ld %d %llu", &pid, &number, &cookie) != 3) return false;
    snprintf(path, sizeof path, "/proc/%ld/fd/%d", pid, number);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) return false;
    bool done = map(s, fd) && head_of(s)->cookie == cookie; /* otherwise another host's */
    close(fd);
    if (done && pid == (long)getpid()) share(s);
    return done;
}

/* Tries to map the segment, and sets *all to whether every member could. */
static proa_status agree(proa__shm *s, const proa__engine_setup *setup, bool *all)
{
    char key[256], text[96], *value = NULL;
    const char *off = getenv("PROA_SHM");
    bool wanted = !(off && strcmp(off, "0") == 0), mine = false;
    int fd = -1;
    snprintf(key, sizeof key, "%s/shm", setup->prefix);
    if (s->rank == 0) {
        if (wanted) fd = make(s, text, sizeof text);
        else text[0] = 0;
        mine = fd >= 0;
        PROA_TRY(proa__store_set(s->store, key, text, strlen(text)));
    } else {
        PROA_TRY(proa__store_get(s->store, key, 0, &value, NULL));
        mine = wanted && open_made(s, value);
        proa__free(value);
    }
    int64_t mapped = 0;
    snprintf(key, sizeof key, "%s/shm_mapped", setup->prefix);
    PROA_TRY(proa__store_add(s->store, key, mine ? 1 : 0, &mapped));
    snprintf(key, sizeof key, "%s/shm_all", setup->prefix);
    proa_status status = proa__store_barrier(s->store, key, s->size);
    if (fd >= 0) close(fd);
    PROA_TRY(status);
    snprintf(key, sizeof key, "%s/shm_mapped", setup->prefix);
    PROA_TRY(proa__store_add(s->store, key, 0, &mapped));
    *all = mapped == s->size;
    return PROA_OK;
}

proa__shm *proa__shm_attach(proa__ring *g, const proa__engine_setup *setup)
{
    proa__shm *s = proa__calloc(sizeof *s);
    if (!s) return NULL;
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    *s = (proa__shm){.store = setup->store,
                     .timeout = setup->timeout,
                     .rank = g->rank,
                     .size = g->size,
                     .ranks = g->ranks,
                     .spins = g->size <= cores ? 2000 : 20,
                     .bytes = segment_bytes(g->size)};
    s->in = proa__alloc((size_t)g->size * sizeof *s->in);
    bool all = false;
    if (s->in && agree(s, setup, &all) == PROA_OK && all) return s;
    proa__shm_detach(s);
    return NULL;
}

void proa__shm_detach(proa__shm *s)
{
    if (s->base && (!s->shares || atomic_fetch_sub(&head_of(s)->sharers, 1) == 1)) munmap(s->base, s->bytes);
    proa__free(s->in);
    proa__free(s);
}
