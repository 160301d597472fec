/* Measures the machine's roofline, once for each number of threads: FLOP/s of a large matrix product and
 * bytes/s of a large addition, with this thread's number of threads. May use core and public ops. */
#include "core/internal.h"

#include <proa/create.h>
#include <proa/ops.h>
#include <proa/profile.h>

#include <pthread.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The fastest of five calls of matmul (`product`) or add, in seconds; 0 after an error. */
static double fastest(proa_tensor *x, proa_tensor *y, bool product)
{
    double best = 0;
    for (int i = 0; i < 6; i++) {
        PROA_SCOPED;
        int64_t began = clock_ns();
        if (!(product ? proa_matmul(x, y) : proa_add(x, y))) return 0;
        double took = (double)(clock_ns() - began) * 1e-9;
        if (i == 1 || (i > 1 && took < best)) best = took; /* the first call warms up */
    }
    return best;
}

static double measure(bool product)
{
    enum { SIDE = 1024, ELEMENTS = 1 << 23 };
    PROA_SCOPED;
    proa_ints shape = product ? PROA_SHAPE(SIDE, SIDE) : PROA_SHAPE(ELEMENTS);
    proa_tensor *x = proa_full(shape, 1.0, .dtype = PROA_F32), *y = proa_full(shape, 0.5, .dtype = PROA_F32);
    double seconds = x && y ? fastest(x, y, product) : 0;
    if (seconds <= 0) return 0;
    return (product ? 2.0 * SIDE * SIDE * SIDE : 12.0 * ELEMENTS) / seconds * 1e-9;
}

proa_status proa_profile_roofline(double *gflops, double *gbs)
{
    enum { TEAMS = 8 };
    static struct {
        int threads;
        double gflops, gbs;
    } known[TEAMS];
    static int n_known;
    PROA_TRY(proa_error());
    if (proa_profile_is_on())
        return proa_fail(PROA_ERR_BAD_STATE, "profile_roofline: the profiler is on; stop it first");
    if (!gflops || !gbs)
        return proa_fail(PROA_ERR_INVALID_ARGUMENT,
                         "profile_roofline: an output is NULL; expected pointers to two numbers");
    pthread_mutex_lock(&lock);
    int at = 0;
    while (at < n_known && known[at].threads != proa_threads()) at++;
    if (at < n_known) {
        *gflops = known[at].gflops;
        *gbs = known[at].gbs;
    }
    bool found = at < n_known;
    pthread_mutex_unlock(&lock);
    if (found) return PROA_OK;
    *gflops = measure(true);
    *gbs = measure(false);
    PROA_TRY(proa_error());
    pthread_mutex_lock(&lock);
    at = n_known < TEAMS ? n_known++ : TEAMS - 1;
    known[at].threads = proa_threads();
    known[at].gflops = *gflops;
    known[at].gbs = *gbs;
    pthread_mutex_unlock(&lock);
    return PROA_OK;
}
