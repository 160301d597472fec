/* Trainings whose ranks share gradients and parameters. Ranks of the reducer's test are threads, so that
 * ThreadSanitizer sees both; divided parameters, and a peer killed within backward, need processes. */
#define _GNU_SOURCE
#include "dist_ranks.h"

#include <math.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STEPS = 12, ROWS = 8, IN = 6, HIDDEN = 15, OUT = 3, PARAMS = 5, DIVIDED = 4, MOST = IN * HIDDEN };

static const int sizes[PARAMS] = {IN * HIDDEN, HIDDEN, HIDDEN *OUT, OUT, OUT};

/* Weights after training: one process's, or those of each rank. */
typedef struct weights {
    float at[PARAMS][MOST];
} weights;

static float number(int64_t i, int seed) { return (float)((i * 37 + seed * 101) % 97) / 97.0f - 0.5f; }

static proa_tensor *made(proa_ints shape, int seed)
{
    float v[ROWS * MOST];
    int64_t n = 1;
    for (int64_t i = 0; i < shape.count; i++) n *= shape.at[i];
    for (int64_t i = 0; i < n; i++) v[i] = number(i, seed);
    return proa_from_data(v, shape, PROA_F32);
}

static void make_net(proa_tensor **p)
{
    p[0] = made(PROA_SHAPE(IN, HIDDEN), 1);
    p[1] = made(PROA_SHAPE(HIDDEN), 2);
    p[2] = made(PROA_SHAPE(HIDDEN, OUT), 3);
    p[3] = made(PROA_SHAPE(OUT), 4);
    p[4] = made(PROA_SHAPE(OUT), 5); /* used in even steps, by rank 0 alone if there are two */
    for (int i = 0; i < PARAMS; i++) proa_set_stop_gradient(proa_keep(p[i]), false);
}

static proa_tensor *loss_of(proa_tensor *const *p, int step, int rank, int size)
{
    proa_tensor *x = made(PROA_SHAPE(ROWS, IN), 10 + step), *y = made(PROA_SHAPE(ROWS, OUT), 100 + step);
    int64_t each = ROWS / size, first = rank * each;
    x = proa_slice(x, PROA_INTS(0), PROA_INTS(first), PROA_INTS(first + each));
    y = proa_slice(y, PROA_INTS(0), PROA_INTS(first), PROA_INTS(first + each));
    proa_tensor *out = proa_add(proa_matmul(proa_tanh(proa_add(proa_matmul(x, p[0]), p[1])), p[2]), p[3]);
    proa_tensor *loss = proa_mean(proa_square(proa_subtract(out, y)));
    if (p[4] && step % 2 == 0 && rank == 0)
        loss = proa_add(loss, proa_scale(proa_sum(proa_square(p[4])), .scale = PROA_SCALAR(1.0 * size)));
    return loss;
}

static void take(weights *to, proa_tensor *const *p, int n)
{
    for (int i = 0; i < n; i++) memcpy(to->at[i], proa_data(p[i]), (size_t)sizes[i] * sizeof(float));
}

static void train(weights *to, int rank, int size, proa_group *group)
{
    PROA_SCOPED;
    proa_tensor *p[PARAMS];
    make_net(p);
    proa_tensors all = {PARAMS, p};
    proa_optimizer *opt = proa_momentum(all, .lr = 0.1);
    proa_reducer *reducer =
        group ? proa_reducer_new(all, .group = group, .bucket_bytes = 128, .last_bucket_bytes = 64) : NULL;
    for (int step = 0; step < STEPS; step++) {
        PROA_SCOPED;
        proa_backward(loss_of(p, step, rank, size));
        proa_step(opt);
        for (int i = 0; i < PARAMS; i++) proa_clear_grad(p[i]);
    }
    fine(proa_error());
    take(to, p, PARAMS);
    proa_reducer_free(reducer);
    proa_optimizer_free(opt);
    for (int i = 0; i < PARAMS; i++) proa_release(p[i]);
}

static void same_weights(const weights *a, const weights *b, int n, float limit)
{
    for (int i = 0; i < n; i++)
        for (int k = 0; k < sizes[i]; k++)
            ck_assert_msg(fabsf(a->at[i][k] - b->at[i][k]) <= limit, "parameter %d, element %d: %g and %g", i,
                          k, (double)a->at[i][k], (double)b->at[i][k]);
}

static weights of_rank[2];

static void reduce(proa__ring *g, proa__store *store)
{
    (void)store;
    proa_set_threads(1);
    train(&of_rank[g->rank], g->rank, g->size, g->group);
}

START_TEST(reducer_of_two_threads)
{
    weights alone;
    train(&alone, 0, 1, NULL);
    with_ranks(2, 60, reduce);
    same_weights(&of_rank[0], &of_rank[1], PARAMS, 0);
    same_weights(&of_rank[0], &alone, PARAMS, 1e-5f);
}
END_TEST

/* ---- processes --------------------------------------------------------------------------- */

typedef int (*rank_body)(int rank, void *shared);

static void with_processes(rank_body body, void *shared, int last_status)
{
    char folder[] = "/tmp/proa_dist_XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(folder));
    pid_t child[2];
    for (int rank = 0; rank < 2; rank++) {
        child[rank] = fork();
        if (child[rank] == 0) {
            proa_set_threads(1);
            int bad = proa_dist_start(.store = folder, .rank = rank, .size = 2, .timeout = 60) != PROA_OK ||
                      body(rank, shared);
            proa_dist_stop();
            _exit(proa_finish(stderr) || bad);
        }
    }
    for (int rank = 0; rank < 2; rank++) {
        int status = -1;
        ck_assert_int_eq(waitpid(child[rank], &status, 0), child[rank]);
        ck_assert_int_eq(status, rank == 1 ? last_status : 0);
    }
    rmdir(folder);
}

/* Divides all parameters but the one that not every rank uses, and leaves that out. No whole parameter has
 * memory between steps. */
static int divide(int rank, void *shared)
{
    PROA_SCOPED;
    proa_tensor *p[PARAMS], *slices[DIVIDED];
    proa_shard *shards[DIVIDED];
    make_net(p);
    proa_release(p[DIVIDED]);
    p[DIVIDED] = NULL;
    for (int i = 0; i < DIVIDED; i++) {
        shards[i] = proa_shard_new(p[i], NULL);
        if (!shards[i]) return 1;
        slices[i] = proa_shard_slice(shards[i]);
    }
    proa_optimizer *opt = proa_momentum(((proa_tensors){DIVIDED, slices}), .lr = 0.1);
    int bad = 0;
    for (int step = 0; step < STEPS && !proa_error(); step++) {
        PROA_SCOPED;
        proa_backward(loss_of(p, step, rank, 2));
        for (int i = 0; i < DIVIDED; i++) {
            bool gone = false;
            bad |= proa_grad_of(p[i]) != proa_none || proa_grad_of(slices[i]) == proa_none;
            bad |= proa_shard_release(shards[i], &gone) != PROA_OK || !gone;
        }
        proa_step(opt);
        for (int i = 0; i < DIVIDED; i++) proa_clear_grad(slices[i]);
        for (int i = 0; i < DIVIDED; i++) bad |= proa_shard_update(shards[i]) != PROA_OK;
    }
    if (!proa_error()) take((weights *)shared + rank, p, DIVIDED);
    for (int i = 0; i < DIVIDED; i++) proa_shard_free(shards[i]);
    proa_optimizer_free(opt);
    for (int i = 0; i < DIVIDED; i++) proa_release(p[i]);
    return bad;
}

START_TEST(divided_parameters_train_alike)
{
    weights alone;
    weights *both = mmap(NULL, 2 * sizeof *both, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert(both != MAP_FAILED);
    with_processes(divide, both, 0);
    train(&alone, 0, 1, NULL);
    same_weights(&both[0], &both[1], DIVIDED, 0);
    same_weights(&both[0], &alone, DIVIDED, 1e-5f);
    munmap(both, 2 * sizeof *both);
}
END_TEST

/* Slices take over what was written to a whole parameter; a view keeps the whole; only leaves are divided. */
static int write_whole(int rank, void *shared)
{
    (void)shared;
    PROA_SCOPED;
    int bad = 0;
    bool gone = true;
    float fours[15];
    for (int i = 0; i < 15; i++) fours[i] = 4;
    proa_tensor *p = proa_keep(made(PROA_SHAPE(3, 5), 1));
    proa_set_stop_gradient(p, false);
    proa_shard *s = proa_shard_new(p, NULL);
    if (!s) return 1;
    bad |= proa_numel(proa_shard_slice(s)) != 8;
    bad |= proa_copy_in(p, fours, sizeof fours) != PROA_OK;
    bad |= proa_shard_release(s, &gone) != PROA_OK || !gone;
    bad |= proa_item(proa_sum(proa_shard_slice(s))) != (rank ? 28.0 : 32.0); /* the last is a zero */
    {
        PROA_SCOPED;
        proa_tensor *view = proa_transpose(p, PROA_SHAPE(1, 0));
        bad |= proa_shard_release(s, &gone) != PROA_OK || gone;
        bad |= proa_item(proa_sum(view)) != 60.0;
    }
    bad |= proa_shard_release(s, &gone) != PROA_OK || !gone;
    bad |= proa_item(proa_sum(p)) != 60.0;
    bad |= proa_shard_new(proa_tanh(p), NULL) != NULL || proa_error() != PROA_ERR_INVALID_ARGUMENT;
    proa_clear_error();
    proa_shard_free(s);
    proa_release(p);
    return bad;
}

static int killed_in_backward(int rank, void *shared)
{
    (void)shared;
    PROA_SCOPED;
    proa_tensor *p[PARAMS];
    make_net(p);
    proa_reducer *reducer = proa_reducer_new(((proa_tensors){PARAMS, p}), .bucket_bytes = 128);
    for (int step = 0; step < 3 && !proa_error(); step++) {
        PROA_SCOPED;
        proa_tensor *loss = loss_of(p, step, rank, 2);
        if (step == 2 && rank == 1) raise(SIGKILL);
        proa_status status = proa_backward(loss);
        if (step == 2) {
            int bad = status != PROA_ERR_UNAVAILABLE || !strstr(proa_error_message(), "rank 1 has died");
            proa_clear_error();
            proa_reducer_free(reducer);
            for (int i = 0; i < PARAMS; i++) proa_release(p[i]);
            return bad;
        }
    }
    return 1;
}

START_TEST(parameters_that_are_written) { with_processes(write_whole, NULL, 0); }
END_TEST
START_TEST(a_rank_killed_in_backward) { with_processes(killed_in_backward, NULL, SIGKILL); }
END_TEST

SUITE("dist_parallel", reducer_of_two_threads, divided_parameters_train_alike, parameters_that_are_written,
      a_rank_killed_in_backward)
