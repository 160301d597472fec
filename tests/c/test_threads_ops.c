/* Threads under ops and predictors: small ones start none, regions in a row meet once, counts belong to the
 * calling thread, results do not depend on who else runs. */
#define _GNU_SOURCE
#include "core/internal.h"
#include "suite.h"

#include <proa.h>
#include <proa/threads.h>

#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* Numbers that differ from element to element. */
static proa_tensor *numbers(proa_ints shape, proa_dtype dtype)
{
    proa_tensor *x = proa_full(shape, 0, .dtype = dtype);
    ck_assert_msg(x != NULL, "%s", proa_error_message());
    void *data = proa_data(x);
    for (int64_t i = 0; i < proa_numel(x); i++) {
        double value = (double)(i * 37 % 101) / 50 - 1;
        if (dtype == PROA_F64) ((double *)data)[i] = value;
        else ((float *)data)[i] = (float)value;
    }
    return x;
}

/* ---- small ops -------------------------------------------------------------------------- */

static proa_tensor *small_network(proa_tensor *x, proa_tensor *filter, proa_tensor *weight)
{
    proa_tensor *y = proa_relu(proa_conv2d(x, filter, PROA_NONE, .padding = PROA_SHAPE(1, 1)));
    y = proa_reshape(y, PROA_SHAPE(2, 8 * 8 * 8));
    return proa_mean(proa_softmax(proa_layer_norm(proa_matmul(y, weight), PROA_NONE, PROA_NONE).out));
}

START_TEST(small_ops_start_no_thread)
{
    proa_set_threads(4);
    PROA_SCOPE {
        proa_tensor *x = numbers(PROA_SHAPE(2, 3, 8, 8), PROA_F32);
        proa_tensor *filter = numbers(PROA_SHAPE(8, 3, 3, 3), PROA_F32);
        proa_tensor *weight = numbers(PROA_SHAPE(512, 10), PROA_F32);
        proa_tensor *wide = numbers(PROA_SHAPE(24, 24), PROA_F64);
        proa_set_stop_gradient(filter, false), proa_set_stop_gradient(weight, false);
        for (int i = 0; i < 3; i++) {
            ck_assert_int_eq(proa_backward(small_network(x, filter, weight)), PROA_OK);
            ck_assert_ptr_nonnull(proa_sum(proa_matmul(wide, proa_add(wide, wide))));
            proa_tensor *q = proa_reshape(proa_cast(wide, PROA_F32), PROA_SHAPE(1, 24, 2, 12));
            ck_assert_ptr_nonnull(proa_scaled_dot_product_attention(q, q, q, PROA_NONE).out);
            ck_assert_ptr_nonnull(proa_transpose(proa_concat(PROA_LIST(wide, wide)), PROA_SHAPE(1, 0)));
        }
        ck_assert_msg(proa_error() == PROA_OK, "%s", proa_error_message());
    }
    proa_thread_stats s = proa_threads_info();
    ck_assert_int_eq(s.workers, 0);
    ck_assert_int_eq(s.caller_sleeps, 0);
}
END_TEST

/* ---- regions in a row ------------------------------------------------------------------- */

static void touch(int64_t begin, int64_t end, void *context)
{
    volatile float *x = context;
    for (int64_t i = begin; i < end; i++) x[i] = x[i] + 1;
}

static long voluntary_switches(void)
{
    struct rusage used;
    ck_assert_int_eq(getrusage(RUSAGE_THREAD, &used), 0);
    return used.ru_nvcsw;
}

/* On one core a barrier of two threads costs the caller a sleep, and two barriers a region cost two. */
START_TEST(a_worker_without_a_core_is_not_waited_for)
{
    enum { REGIONS = 2000, ITEMS = 4096 };
    static float x[ITEMS];
    cpu_set_t all, one;
    ck_assert_int_eq(sched_getaffinity(0, sizeof all, &all), 0);
    CPU_ZERO(&one);
    for (size_t i = 0; i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &all)) {
            CPU_SET(i, &one);
            break;
        }
    ck_assert_int_eq(sched_setaffinity(0, sizeof one, &one), 0); /* workers inherit it */
    proa_set_threads(2);
    proa__parallel(ITEMS, 64, touch, x);
    long before = voluntary_switches();
    proa_thread_stats then = proa_threads_info();
    for (int i = 1; i < REGIONS; i++) proa__parallel(ITEMS, 64, touch, x);
    long switches = voluntary_switches() - before;
    proa_thread_stats now = proa_threads_info();
    for (int i = 0; i < ITEMS; i++) ck_assert(x[i] == (float)REGIONS);
    ck_assert_int_eq(now.workers, 1);
    ck_assert_msg(now.caller_sleeps - then.caller_sleeps < REGIONS / 4 && switches < REGIONS / 4,
                  "%d regions: the caller slept %lld times, gave its core away %ld times", REGIONS,
                  (long long)(now.caller_sleeps - then.caller_sleeps), switches);
}
END_TEST

/* ---- ops of many threads ---------------------------------------------------------------- */

/* Large enough for every op to be shared, with convolutions and products of oneDNN and OpenBLAS. */
static void large_results(float result[4])
{
    PROA_SCOPE {
        proa_tensor *x = numbers(PROA_SHAPE(2, 16, 24, 24), PROA_F32);
        proa_tensor *filter = numbers(PROA_SHAPE(16, 16, 3, 3), PROA_F32);
        proa_tensor *weight = numbers(PROA_SHAPE(576, 96), PROA_F32);
        proa_tensor *square = numbers(PROA_SHAPE(160, 160), PROA_F64);
        proa_set_stop_gradient(filter, false), proa_set_stop_gradient(weight, false);
        proa_tensor *y = proa_conv2d(x, filter, PROA_NONE, .padding = PROA_SHAPE(1, 1));
        proa_tensor *z = proa_matmul(proa_reshape(y, PROA_SHAPE(32, 576)), weight);
        proa_tensor *loss = proa_mean(proa_square(proa_softmax(z)));
        proa_backward(loss);
        proa_tensor *parts[4] = {loss, proa_mean(proa_square(proa_grad_of(filter))),
                                 proa_mean(proa_square(proa_grad_of(weight))),
                                 proa_cast(proa_mean(proa_matmul(square, square)), PROA_F32)};
        for (int i = 0; i < 4; i++) proa_copy_out(parts[i], &result[i], sizeof *result);
    }
}

typedef struct caller {
    int threads, rounds;
    bool right;
    const float *want;
} caller;

static bool close_to(const float *have, const float *want)
{
    for (int i = 0; i < 4; i++)
        if (!(fabsf(have[i] - want[i]) <= 1e-4f * fabsf(want[i]))) return false;
    return proa_error() == PROA_OK;
}

static void *call_ops(void *p)
{
    caller *c = p;
    proa_set_threads(c->threads);
    c->right = true;
    for (int i = 0; i < c->rounds; i++) {
        float have[4] = {0};
        large_results(have);
        c->right = c->right && close_to(have, c->want) && proa_threads() == c->threads;
    }
    return NULL;
}

START_TEST(ops_of_many_threads_are_right)
{
    enum { CALLERS = 6 };
    float want[4] = {0};
    proa_set_threads(1);
    large_results(want);
    ck_assert_msg(proa_error() == PROA_OK, "%s", proa_error_message());
    for (int round = 0; round < 2; round++) { /* the second round's threads find the workers of the first's */
        pthread_t threads[CALLERS];
        caller callers[CALLERS];
        for (int i = 0; i < CALLERS; i++) {
            callers[i] = (caller){.threads = 1 + i % 3, .rounds = 2, .want = want};
            ck_assert_int_eq(pthread_create(&threads[i], NULL, call_ops, &callers[i]), 0);
        }
        for (int i = 0; i < CALLERS; i++) {
            pthread_join(threads[i], NULL);
            ck_assert(callers[i].right);
        }
        ck_assert_int_le(proa_threads_info().workers, CALLERS); /* 0 + 1 + 2, twice */
    }
}
END_TEST

START_TEST(ops_run_in_a_forked_child)
{
    float want[4] = {0};
    proa_set_threads(3);
    large_results(want);
    pid_t child = fork();
    if (child == 0) {
        float have[4] = {0};
        large_results(have);
        bool ok = close_to(have, want) && proa_threads() == 1;
#if !defined(__SANITIZE_THREAD__) /* which follows no thread that is started after fork */
        proa_set_threads(2);
        large_results(have);
        ok = ok && close_to(have, want) && proa_threads_info().workers == 1;
#endif
        _exit(ok ? 0 : 1);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    large_results(want); /* and the parent's team still works */
    ck_assert_int_eq(proa_error(), PROA_OK);
}
END_TEST

SUITE("threads under ops", small_ops_start_no_thread, a_worker_without_a_core_is_not_waited_for,
      ops_of_many_threads_are_right, ops_run_in_a_forked_child)
