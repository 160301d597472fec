/* Ranges of work over OpenMP threads, how many of those there are, and denormals on all of them. A child
 * made by fork runs one thread: OpenMP's workers did not come along. Builds without OpenMP: one thread. */
#include "core/thread.h"

#include <pthread.h>
#include <stdatomic.h>

#if defined(_OPENMP)
#include <omp.h>
#endif
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

enum { MAX_THREADS = 1024 };

/* ---- how many -------------------------------------------------------------------------- */

int proa_threads(void)
{
    if (proa__forked()) return 1;
#if defined(_OPENMP)
    const proa__thread *me = proa__thread_self;
    if (me && me->threads > 0) return me->threads;
    int64_t flag = proa__flag_int(PROA_FLAG_num_threads);
    int n = flag > 0 ? flag > MAX_THREADS ? MAX_THREADS : (int)flag : omp_get_max_threads();
    return n < 1 ? 1 : n;
#else
    return 1;
#endif
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
    me->threads = n > MAX_THREADS ? MAX_THREADS : n;
#if defined(_OPENMP)
    omp_set_num_threads(proa_threads()); /* what oneDNN and OpenBLAS on this thread go by */
#endif
}

void proa__threads_follow(void)
{
#if defined(_OPENMP)
    static atomic_int before; /* the flag told OpenMP how many: that a flag of 0 goes back to */
    const proa__thread *me = proa__thread_self;
    if (proa__forked() || proa__flag_int(PROA_FLAG_num_threads) > 0) {
        int none = 0;
        atomic_compare_exchange_strong(&before, &none, omp_get_max_threads());
        omp_set_num_threads(proa_threads());
    } else if (atomic_load(&before) && !(me && me->threads)) {
        omp_set_num_threads(atomic_load(&before));
    }
#endif
}

/* ---- denormals ------------------------------------------------------------------------- */

void proa__denormals_apply(bool flush)
{
#if defined(__SSE__)
    const unsigned bits = 0x8040; /* flush results, treat operands as zero */
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

/* ---- ranges ---------------------------------------------------------------------------- */

#if defined(_OPENMP)
typedef struct region {
    int64_t n;
    int parts;
    proa_range_fn body;
    void *context;
    bool flush;
    /* the error of the lowest part that failed on another thread; under the lock */
    int failed_part;
    proa_status code;
    char message[PROA__MESSAGE];
} region;

/* libgomp's barriers are invisible to ThreadSanitizer: these say what they order. */
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#define UNSEEN __attribute__((no_sanitize_thread))
#define ORDER(before_or_after, r) __tsan_##before_or_after(r)
#else
#define UNSEEN
#define ORDER(before_or_after, r) ((void)(r))
#endif

/* Errors belong to a thread: what a worker raised is carried over to the thread that asked. */
static void carry_error(region *r, int part)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&lock);
    if (r->failed_part < 0 || part < r->failed_part) {
        r->failed_part = part;
        r->code = proa_error();
        snprintf(r->message, sizeof r->message, "%s", proa_error_message());
    }
    pthread_mutex_unlock(&lock);
    proa_clear_error();
}

static void run_part(region *r, int part, bool is_worker)
{
    int64_t each = r->n / r->parts, more = r->n % r->parts;
    int64_t begin = part * each + (part < more ? part : more);
    int64_t end = begin + each + (part < more ? 1 : 0);
    if (begin < end) r->body(begin, end, r->context);
    if (is_worker && proa_error() != PROA_OK) carry_error(r, part);
}

/* The parts of one thread. The runtime may give fewer threads than asked for: the parts stay the same. */
static __attribute__((noinline)) void run_thread(region *r, int thread, int threads)
{
    ORDER(acquire, r);
    if (thread > 0) proa__denormals_apply(r->flush);
    for (int part = thread; part < r->parts; part += threads) run_part(r, part, thread > 0);
    ORDER(release, r);
}

static UNSEEN void run_team(region *r)
{
    ORDER(release, r);
#pragma omp parallel num_threads(r->parts) default(none) shared(r)
    run_thread(r, omp_get_thread_num(), omp_get_num_threads());
    ORDER(acquire, r);
}

static void run_region(int64_t n, int parts, proa_range_fn body, void *context)
{
    const proa__thread *me = proa__me();
    region r;
    r.n = n, r.parts = parts, r.body = body, r.context = context;
    r.flush = me && me->flush_denormals;
    r.failed_part = -1;
    run_team(&r);
    if (r.failed_part >= 0) proa_fail(r.code, "%s", r.message);
}

static void nothing(int64_t begin, int64_t end, void *context) { (void)begin, (void)end, (void)context; }
#endif

void proa_flush_denormals(bool on)
{
    proa__thread *me = proa__me();
    if (me) me->flush_denormals = on;
    proa__denormals_apply(on);
#if defined(_OPENMP)
    int n = proa_threads(); /* the libraries' own parallel regions run on the same workers */
    if (n > 1 && !omp_in_parallel()) run_region(n, n, nothing, NULL);
#endif
}

void proa__parallel(int64_t n, int64_t grain, proa_range_fn body, void *context)
{
    if (n <= 0) return;
#if defined(_OPENMP)
    if (grain < 1) grain = 1;
    if (n > grain && !omp_in_parallel()) {
        int64_t parts = n / grain, threads = proa_threads();
        if (parts > threads) parts = threads;
        if (parts > 1) {
            run_region(n, (int)parts, body, context);
            return;
        }
    }
#else
    (void)grain;
#endif
    body(0, n, context);
}
