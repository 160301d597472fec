/* Waits by bounded spinning, then on a futex (on other systems than Linux, a condition variable). Under
 * contention, spinning takes CPU time from the thread that is waited for; contention is therefore measured,
 * and cuts spinning to microseconds. Uses thread.h for thread-local storage. */
#define _GNU_SOURCE
#include "core/wait.h"

#include "core/thread.h"

#include <sys/resource.h>
#include <time.h>

#if defined(__linux__)
#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
#else
#include <pthread.h>
#endif

enum {
    SPIN_QUIET = 2000000,  /* ns of spinning on idle cores (2 ms): longer than the gap between two parallel
                            * ops of most training steps */
    SPIN_CONTENDED = 8000, /* ns of spinning under contention (8 µs): about the cost of falling asleep and
                            * being woken */
    GAP = 200000,          /* ns between two reads of the clock (200 µs) that show a preempted spin */
    WINDOW = 50000000,     /* ns over which a thread measures contention: 50 ms */
    /* Threshold of contention: one part in DELAYED of a window spent ready but waiting for a core. Beside
     * another busy thread on the core it is half; on a quiet machine, under a hundredth. */
    DELAYED = 10,
    SWITCHES = 3, /* threshold where the kernel does not tell that time: involuntary context switches */
    CONTENDED_FOR = 100000000, /* ns for which cores then count as contended: two windows, so that a burst of
                                * other work costs little */
    PAUSES = 16                /* pause instructions between two reads of the clock: 0.3 to 1 µs */
};

/* ---- contention ------------------------------------------------------------------------ */

static atomic_llong contended_until;
static atomic_bool scarce;

static PROA__TLS struct {
    int64_t since; /* time at which the window began, in ns */
    int64_t signs; /* signs_of_contention() until then */
    float waited;  /* part of the last window that the thread was ready but waited; 0: not known */
} window;

int64_t proa__wait_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void proa__cores_scarce(bool yes) { atomic_store_explicit(&scarce, yes, memory_order_relaxed); }

static bool contended_at(int64_t now)
{
    return atomic_load_explicit(&scarce, memory_order_relaxed) ||
           now < atomic_load_explicit(&contended_until, memory_order_relaxed);
}

float proa__waited_part(void)
{
    return atomic_load_explicit(&scarce, memory_order_relaxed) ? 0 : window.waited;
}

bool proa__cores_contended(void) { return contended_at(proa__wait_clock()); }

/* Ever growing signs of contention for the calling thread: the ns that it was ready but waited for a core
 * (Linux's schedstat), else its involuntary context switches. `per_window`: their threshold. A thread woken
 * on its waker's core switches often yet waits little, so switches alone say too much. */
static int64_t signs_of_contention(int64_t *per_window)
{
#if defined(__linux__)
    char text[96];
    int f = open("/proc/thread-self/schedstat", O_RDONLY | O_CLOEXEC);
    ssize_t n = f < 0 ? -1 : read(f, text, sizeof text - 1);
    if (f >= 0) close(f);
    text[n > 0 ? n : 0] = 0;
    long long ran, waited;
    *per_window = WINDOW / DELAYED;
    if (sscanf(text, "%lld %lld", &ran, &waited) == 2 && ran)
        return waited; /* zeros: the kernel does not count */
#endif
    *per_window = SWITCHES;
#if defined(RUSAGE_THREAD)
    struct rusage used;
    if (getrusage(RUSAGE_THREAD, &used) == 0) return used.ru_nivcsw;
#endif
    return 0;
}

static void close_window(int64_t now)
{
    int64_t per_window, all = signs_of_contention(&per_window), signs = all - window.signs;
    double windows = (double)(now - window.since) / WINDOW;
    if (window.since && (double)signs >= (double)per_window * windows)
        atomic_store_explicit(&contended_until, now + CONTENDED_FOR, memory_order_relaxed);
    bool known = window.since && per_window == WINDOW / DELAYED;
    window.waited = known ? (float)signs / (float)(now - window.since) : 0;
    window.since = now, window.signs = all;
}

/* ---- sleeping -------------------------------------------------------------------------- */

#if defined(__linux__)
static void sleep_while(proa__signal *s, unsigned from)
{
    syscall(SYS_futex, &s->word, FUTEX_WAIT_PRIVATE, from, NULL, NULL, 0);
}

static void wake(proa__signal *s)
{
    syscall(SYS_futex, &s->word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}
#else
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t woken = PTHREAD_COND_INITIALIZER;

static void sleep_while(proa__signal *s, unsigned from)
{
    pthread_mutex_lock(&lock);
    if (atomic_load(&s->word) == from) pthread_cond_wait(&woken, &lock);
    pthread_mutex_unlock(&lock);
}

static void wake(proa__signal *s)
{
    (void)s;
    pthread_mutex_lock(&lock);
    pthread_cond_broadcast(&woken);
    pthread_mutex_unlock(&lock);
}
#endif

void proa__wake_sleepers(proa__signal *s)
{
    if (PROA__LIKELY(atomic_load(&s->sleepers) == 0)) return;
    wake(s);
}

/* ---- waiting --------------------------------------------------------------------------- */

static void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

/* Spins while the word is `from`. Returns the word, still `from` when spinning was given up. */
static unsigned spin_while(proa__signal *s, unsigned from)
{
    int64_t start = proa__wait_clock(), now = start, before;
    if (start - window.since > WINDOW) close_window(start);
    int64_t limit = contended_at(start) ? SPIN_CONTENDED : SPIN_QUIET;
    do {
        for (int i = 0; i < PAUSES; i++) {
            unsigned word = atomic_load_explicit(&s->word, memory_order_acquire);
            if (word != from) return word;
            relax();
        }
        before = now, now = proa__wait_clock();
        if (now - before > GAP) break; /* it was preempted while spinning; more spinning is useless */
    } while (now - start < limit);
    return atomic_load_explicit(&s->word, memory_order_acquire);
}

static unsigned sleep_until(proa__signal *s, unsigned from)
{
    unsigned word;
    atomic_fetch_add(&s->sleepers, 1);
    while ((word = atomic_load(&s->word)) == from) sleep_while(s, from);
    atomic_fetch_sub(&s->sleepers, 1);
    int64_t now = proa__wait_clock();
    if (now - window.since > WINDOW) close_window(now);
    return word;
}

unsigned proa__wait_while(proa__signal *s, unsigned from, atomic_llong *sleeps)
{
    unsigned word = atomic_load_explicit(&s->word, memory_order_acquire);
    if (PROA__LIKELY(word != from)) return word;
    word = spin_while(s, from);
    if (word != from) return word;
    atomic_fetch_add_explicit(sleeps, 1, memory_order_relaxed);
    return sleep_until(s, from);
}
