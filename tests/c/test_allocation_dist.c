/* Allocations fail in the store, in groups and in the reducer; ranks are threads of this process. A rank gets
 * its number or a typed error and the others learn of it in time, however the rank goes on; nothing leaks. */
#include "core/internal.h"
#include "core/kernel_cache.h"
#include "dist/group.h"
#include "suite.h"

#include <proa.h>

#include <math.h>
#include <pthread.h>

enum { RANKS = 2, STEPS = 3, TRIES = 200 };
static double patience; /* seconds that a rank waits for others */

typedef struct rank_thread {
    int port, rank;
    int64_t right, failed;
    pthread_t thread;
} rank_thread;

/* True if the call was made; its error, which is cleared, is of a kind that a rank can be told. */
static bool made(rank_thread *t, proa_status status)
{
    t->right += status == PROA_OK;
    t->failed += status != PROA_OK;
    ck_assert_msg(status == PROA_OK || status == PROA_ERR_OUT_OF_MEMORY || status == PROA_ERR_BAD_STATE ||
                      status == PROA_ERR_UNAVAILABLE || status == PROA_ERR_TIMEOUT,
                  "rank %d: %s", t->rank, proa_error_message());
    proa_clear_error();
    return status == PROA_OK;
}

/* One allocation fails in a run, so that a second attempt has its memory. */
static proa_tensor *full(int64_t n, double value)
{
    proa_tensor *x = proa_full(PROA_SHAPE(n), value);
    proa_clear_error();
    return x ? x : proa_full(PROA_SHAPE(n), value);
}

static double largest(const proa_tensor *x)
{
    double most = 0;
    for (int64_t i = 0; i < proa_numel(x); i++)
        most = fmax(most, ((const float *)proa_data((proa_tensor *)(uintptr_t)x))[i]);
    return most;
}

static void exchange(rank_thread *t, proa__ring *g, int step)
{
    PROA_SCOPED;
    double mine = (t->rank + 1) * (step + 1), sum = 3 * (step + 1);
    proa_tensor *x = full(5000, mine), *y = full(5000, mine);
    if (made(t, proa_communicate(&(proa_message){PROA_MESSAGE_ALL_REDUCE, g->group, .out = x})))
        ck_assert_double_eq(largest(x), sum);
    proa_task *task = proa_communicate_later(&(proa_message){PROA_MESSAGE_ALL_REDUCE, g->group, .out = y});
    if (made(t, task ? proa_task_wait(task) : proa_error())) ck_assert_double_eq(largest(y), sum);
    proa_task_free(task);
    int64_t counts[RANKS] = {2500, 2500};
    proa_tensor *z = full(5000, 0);
    if (made(t, proa_communicate(&(proa_message){PROA_MESSAGE_ALL_TO_ALL, g->group, .in = x, .out = z,
                                                 .in_counts = counts, .out_counts = counts})))
        ck_assert_double_eq(largest(z), sum);
}

/* A step that is repeated until it is done, or until the group is lost to this rank. */
static void train(rank_thread *t, proa__ring *g)
{
    PROA_SCOPED;
    proa_tensor *w = full(60, 0.5), *v = full(60, 0.5);
    proa_set_stop_gradient(w, false);
    proa_set_stop_gradient(v, false);
    proa_reducer *r =
        proa_reducer_new(PROA_LIST(w, v), .group = g->group, .bucket_bytes = 256, .last_bucket_bytes = 256);
    if (!r) {
        made(t, proa_error());
        return;
    }
    for (int step = 0; step < STEPS; step++) {
        proa_status status = PROA_ERR_OUT_OF_MEMORY;
        for (int i = 0; i < 2 && status == PROA_ERR_OUT_OF_MEMORY; i++) {
            PROA_SCOPED;
            proa_clear_grad(w);
            proa_clear_grad(v);
            proa_tensor *sum = proa_add(proa_sum(w), proa_sum(v));
            status = sum ? proa_backward(proa_scale(sum, .scale = PROA_SCALAR((t->rank + 1) * (step + 1))))
                         : proa_error();
            if (status) proa_clear_error();
        }
        if (status) t->failed++;
        else if (proa_error() == PROA_OK) ck_assert_double_eq(largest(proa_grad_of(w)), 1.5 * (step + 1));
    }
    proa_reducer_free(r);
}

static void *run_rank(void *context)
{
    rank_thread *t = context;
    proa_set_threads(1);
    proa__store *store = proa__store_connect("127.0.0.1", t->port, "job/0/x", t->rank, RANKS, patience);
    proa__engine_setup setup = {store, "group/0", NULL, patience};
    proa__ring *g = store ? proa__ring_connect(&setup, 0, t->rank, RANKS, NULL) : NULL;
    if (made(t, g ? PROA_OK : proa_error())) {
        for (int i = 0; i < STEPS; i++) exchange(t, g, i);
        train(t, g);
        proa_clear_error();
    }
    proa__ring_close(g);
    proa__store_close(store);
    return NULL;
}

/* Returns how many calls of all ranks failed; `at` −1: none may. */
static int64_t run_job(int64_t at, int64_t *allocations)
{
    rank_thread ranks[RANKS];
    int64_t failed = 0;
    patience = at < 0 ? 60 : 0.3; /* who waits for a rank that failed is to be done soon */
    proa_memory_fail_after(at);
    proa__store_server *server = proa__store_serve("127.0.0.1", 0, "job/0/x");
    if (!server) {
        ck_assert_int_eq(proa_error(), PROA_ERR_OUT_OF_MEMORY);
        proa_clear_error();
        *allocations = proa_memory_fail_after(-1);
        return 1;
    }
    for (int r = 0; r < RANKS; r++) {
        ranks[r] = (rank_thread){.port = proa__store_server_port(server), .rank = r};
        ck_assert_int_eq(pthread_create(&ranks[r].thread, NULL, run_rank, &ranks[r]), 0);
    }
    for (int r = 0; r < RANKS; r++) {
        pthread_join(ranks[r].thread, NULL);
        failed += ranks[r].failed;
        ck_assert_msg(at >= 0 || ranks[r].right == 1 + 3 * STEPS, "rank %d: %lld calls", r,
                      (long long)ranks[r].right);
    }
    proa__store_server_close(server, 1);
    *allocations = proa_memory_fail_after(-1);
    proa__kernel_cache_clear();
    return failed;
}

START_TEST(store_and_group)
{
    int64_t count = 0, ignored = 0, failed = 0, tried = 0;
    ck_assert_int_eq(run_job(-1, &ignored), 0); /* what a process makes once stays */
    ck_assert_int_eq(run_job(-1, &count), 0);
    int64_t live = proa_memory_get_stats().live_bytes, stride = count / TRIES + 1;
    for (int64_t at = 0; at < count; at += stride, tried++) {
        double began = proa__monotonic();
        failed += run_job(at, &ignored) > 0;
        ck_assert_msg(proa__monotonic() - began < 60, "allocation %lld: %.1f s", (long long)at,
                      proa__monotonic() - began);
        int64_t more = proa_memory_get_stats().live_bytes - live;
        ck_assert_msg(more == 0, "allocation %lld of %lld: %lld bytes leak", (long long)at, (long long)count,
                      (long long)more);
    }
    ck_assert_int_eq(run_job(-1, &ignored), 0);
    ck_assert_int_gt(failed, tried / 4); /* tensors of the first attempts are made again */
}
END_TEST

/* A key that there was no memory for keeps its value, or is not set. */
START_TEST(keys_stay_whole)
{
    proa__store_server *server = proa__store_serve("127.0.0.1", 0, "job/0/x");
    int port = proa__store_server_port(server);
    static char text[20000];
    memset(text, 'x', sizeof text);
    for (int64_t at = 0; at < 12; at++) {
        proa__store *s = proa__store_connect("127.0.0.1", port, "job/0/x", -1, 1, 2);
        ck_assert_ptr_nonnull(s);
        ck_assert_int_eq(proa__store_set(s, "a", "one", 3), PROA_OK);
        proa_memory_fail_after(at);
        proa_status status = proa__store_set(s, "a", text, sizeof text);
        proa_memory_fail_after(-1);
        ck_assert(status == PROA_OK || status == PROA_ERR_OUT_OF_MEMORY || status == PROA_ERR_UNAVAILABLE);
        proa_clear_error();
        proa__store_close(s);
        s = proa__store_connect("127.0.0.1", port, "job/0/x", -1, 1, 2);
        char *value = NULL;
        size_t n = 0;
        ck_assert_msg(proa__store_get(s, "a", 0, &value, &n) == PROA_OK, "%s", proa_error_message());
        ck_assert(n == sizeof text || (n == 3 && memcmp(value, "one", 3) == 0));
        proa__free(value);
        proa__store_close(s);
    }
    proa__store_server_close(server, 1);
}
END_TEST

/* The reducer of one rank, whose every allocation fails: the step that is repeated has its gradients. */
START_TEST(reducer_alone)
{
    proa_set_threads(1);
    for (int64_t at = 0, count = 1; at < count; at++)
        PROA_SCOPE {
            proa_tensor *w = proa_full(PROA_SHAPE(60), 0.5), *v = proa_full(PROA_SHAPE(60), 0.5);
            proa_set_stop_gradient(w, false);
            proa_set_stop_gradient(v, false);
            proa_memory_fail_after(at);
            proa_reducer *r =
                proa_reducer_new(PROA_LIST(w, v), .bucket_bytes = 256, .last_bucket_bytes = 256);
            for (int step = 0; step < 3; step++) {
                proa_clear_grad(w);
                if (r) proa_backward(proa_scale(proa_sum(proa_add(w, v)), .scale = PROA_SCALAR(step + 1.0)));
                ck_assert(proa_error() == PROA_OK || proa_error() == PROA_ERR_OUT_OF_MEMORY);
                if (proa_error() == PROA_OK && r) ck_assert_double_eq(largest(proa_grad_of(w)), step + 1);
                proa_clear_error();
            }
            int64_t made_here = proa_memory_fail_after(-1);
            count = made_here > count ? made_here : count;
            proa_reducer_free(r);
        }
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

SUITE("allocation_dist", store_and_group, keys_stay_whole, reducer_alone)
