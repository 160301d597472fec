/* proa__parallel (a parallel loop): splits a range over the calling thread and its team, with work stealing.
 * Also the number of threads (a child made by fork runs one until it asks for more), and the flush-to-zero
 * setting of a thread. Uses team.h and cores.h. */
#include "core/thread.h"

#include "core/cores.h"
#include "core/team.h"

#include <proa/threads.h>

#include <pthread.h>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

/* ---- number of threads ------------------------------------------------------------------- */

static int at_most(int64_t n) { return n > PROA__MAX_THREADS ? PROA__MAX_THREADS : (int)n; }

int proa_threads(void)
{
    const proa__thread *me = proa__thread_self;
    if (me && me->threads > 0) return me->threads;
    if (proa__forked()) return 1;
    int64_t flag = proa__flag_int(PROA_FLAG_num_threads);
    return flag > 0 ? at_most(flag) : proa__cores_here()->threads;
}

void proa_set_threads(int n)
{
    if (n < 1) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "set_threads: expected at least 1 thread, got %d", n);
        return;
    }
    proa__thread *me = proa__me();
    if (!me) {
        proa_fail(PROA_ERR_OUT_OF_MEMORY, "set_threads: no memory for this thread's settings");
        return;
    }
    me->threads = at_most(n);
}

int proa__threads_own(int n)
{
    proa__thread *me = proa__me();
    int before = me ? me->threads : 0;
    if (me) me->threads = at_most(n);
    return before;
}

static const char *reason(void)
{
    const proa__thread *me = proa__thread_self;
    if (me && me->threads > 0) return "set for this thread";
    if (proa__forked()) return "a process made by fork starts with one";
    return proa__flag_int(PROA_FLAG_num_threads) > 0 ? "FLAGS_num_threads" : proa__cores_here()->reason;
}

proa_thread_stats proa_threads_info(void)
{
    const proa__team_counts *c = &proa__team_count;
    return (proa_thread_stats){
        .threads = proa_threads(),
        .reason = reason(),
        .workers = atomic_load_explicit(&c->workers, memory_order_relaxed),
        .worker_sleeps = atomic_load_explicit(&c->worker_sleeps, memory_order_relaxed),
        .caller_sleeps = atomic_load_explicit(&c->caller_sleeps, memory_order_relaxed),
        .stolen = atomic_load_explicit(&c->stolen, memory_order_relaxed),
        .contended = proa__cores_contended(),
    };
}

/* ---- denormals ------------------------------------------------------------------------- */

void proa__denormals_apply(bool flush)
{
#if defined(__SSE__)
    const unsigned bits = 0x8040; /* MXCSR bits: flush to zero, denormals are zero */
    unsigned now = _mm_getcsr(), want = flush ? now | bits : now & ~bits;
    if (now != want) _mm_setcsr(want);
#elif defined(__aarch64__)
    uint64_t now, flush_bit = UINT64_C(1) << 24;
    __asm__ volatile("mrs %0, fpcr" : "=r"(now));
    uint64_t want = flush ? now | flush_bit : now & ~flush_bit;
    if (now != want) __asm__ volatile("msr fpcr, %0" : : "r"(want));
#else
    (void)flush;
#endif
}

void proa_flush_denormals(bool on)
{
    proa__thread *me = proa__me();
    if (me) me->flush_denormals = on;
    proa__denormals_apply(on);
}

/* ---- parallel ranges --------------------------------------------------------------------- */

enum {
    SHARES = 64,        /* most shares of a range; with more threads, several start on one share */
    PIECES_A_GRAIN = 4, /* so that pieces divide evenly among threads */
    MAX_PIECES = 4096,
    TURNS = 8 /* a thread takes at least an eighth of its untouched share at once */
};

/* One thread's share: pieces [front, back) that nobody has taken; front is the upper half of the word. */
typedef struct share {
    _Alignas(64) atomic_ullong span;
} share;

typedef struct region {
    proa__job job;
    int64_t n;
    int pieces, shares, threads, least;
    proa_range_fn body;
    void *context;
    share share[SHARES];
    /* begin of the lowest range that failed (−1: none) and its error; guarded by the lock, which is free in a
     * child made by fork */
    pthread_mutex_t lock;
    int64_t failed_at;
    proa_status code;
    char message[PROA__MESSAGE];
} region;

/* An error belongs to the thread that raised it: copies that of the lowest failed range to the thread that
 * called proa__parallel. */
static void carry_error(region *r, int64_t begin)
{
    pthread_mutex_lock(&r->lock);
    if (r->failed_at < 0 || begin < r->failed_at) {
        r->failed_at = begin;
        r->code = proa_error();
        snprintf(r->message, sizeof r->message, "%s", proa_error_message());
    }
    pthread_mutex_unlock(&r->lock);
    proa_clear_error();
}

static int64_t piece_begin(const region *r, int64_t piece)
{
    int64_t each = r->n / r->pieces, more = r->n % r->pieces;
    return piece * each + (piece < more ? piece : more);
}

/* Takes half of the remaining pieces of share `index` (at least r->least), from its back or its front. */
static bool take(region *r, int index, bool back, unsigned *begin, unsigned *end)
{
    atomic_ullong *span = &r->share[index].span;
    unsigned long long now = atomic_load_explicit(span, memory_order_relaxed), then;
    do {
        unsigned from = (unsigned)(now >> 32), until = (unsigned)now, left = until - from;
        if (from >= until) return false;
        unsigned count = (left + 1) / 2;
        if (count < (unsigned)r->least) count = left < (unsigned)r->least ? left : (unsigned)r->least;
        *begin = back ? until - count : from;
        *end = *begin + count;
        then = back ? (unsigned long long)from << 32 | *begin : (unsigned long long)*end << 32 | until;
    } while (
        !atomic_compare_exchange_weak_explicit(span, &now, then, memory_order_relaxed, memory_order_relaxed));
    return true;
}

static void run_pieces(region *r, unsigned first, unsigned last)
{
    int64_t begin = piece_begin(r, first), end = piece_begin(r, last);
    r->body(begin, end, r->context);
    if (PROA__UNLIKELY(proa_error() != PROA_OK)) carry_error(r, begin);
}

/* Works through the thread's own share, then steals from the others'. */
static void run_shares(proa__job *job, int thread)
{
    region *r = (region *)job;
    proa__position before = proa__position_self;
    proa__position_self = (proa__position){.inside = true};
    int own = (int)((int64_t)thread * r->shares / r->threads);
    unsigned begin, end;
    for (int i = 0; i < r->shares; i++) {
        int at = (own + i) % r->shares;
        while (take(r, at, i > 0, &begin, &end)) {
            run_pieces(r, begin, end);
            if (i > 0) atomic_fetch_add_explicit(&proa__team_count.stolen, 1, memory_order_relaxed);
        }
    }
    proa__position_self = before;
}

static __attribute__((noinline)) void run_region(int64_t n, int pieces, int threads, proa_range_fn body,
                                                 void *context)
{
    region r;
    r.job = (proa__job){.run = run_shares, .helpers = true};
    r.n = n, r.pieces = pieces, r.body = body, r.context = context;
    r.threads = threads, r.shares = threads < SHARES ? threads : SHARES;
    r.least = (pieces / r.shares + TURNS - 1) / TURNS;
    r.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    r.failed_at = -1;
    for (int i = 0; i < r.shares; i++) {
        unsigned from = (unsigned)((int64_t)pieces * i / r.shares),
                 until = (unsigned)((int64_t)pieces * (i + 1) / r.shares);
        atomic_init(&r.share[i].span, (unsigned long long)from << 32 | until);
    }
    proa__team_begin(&r.job, threads);
    run_shares(&r.job, 0);
    proa__team_end(&r.job, threads);
    if (r.failed_at >= 0) proa_fail(r.code, "%s", r.message);
}

/* pieces_a_grain 0: one piece a thread. */
static inline void parallel(int64_t n, int64_t grain, int pieces_a_grain, proa_range_fn body, void *context)
{
    if (n <= 0) return;
    if (grain < 1) grain = 1;
    if (n >= 2 * grain && !proa__position_self.inside && proa_error() == PROA_OK) {
        int64_t grains = n / grain, threads = proa_threads();
        if (threads > grains) threads = grains;
        threads = proa__team_reserve((int)threads);
        if (threads > 1) {
            int64_t pieces = !pieces_a_grain                        ? threads
                             : grains < MAX_PIECES / pieces_a_grain ? grains * pieces_a_grain
                                                                    : MAX_PIECES;
            run_region(n, (int)(pieces < n ? pieces : n), (int)threads, body, context);
            return;
        }
    }
    body(0, n, context);
}

void proa__parallel(int64_t n, int64_t grain, proa_range_fn body, void *context)
{
    parallel(n, grain, PIECES_A_GRAIN, body, context);
}

void proa__parallel_scans(int64_t n, int64_t grain, proa_range_fn body, void *context)
{
    parallel(n, grain, 0, body, context);
}
