/* Data parallelism: two processes with batches of 32 end with the weights of one process with batches of 64,
 * on the digits. */
#define _POSIX_C_SOURCE 200809L
#include "suite.h"

#include <proa.h>

#include <math.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STEPS = 40 };

/* Trains, and writes the parameters to `path` as a state. Returns the exit code. */
static int train(int rank, int size, const char *store, const char *path)
{
    proa_set_threads(1);
    if (size > 1) proa_dist_start(.store = store, .rank = rank, .size = size, .timeout = 60);
    proa_seed(7 + (uint64_t)rank);
    proa_layer *net =
        proa_sequential(proa_conv2d_layer(1, 8, 3, .padding = 1), proa_relu_layer(), proa_max_pool2d_layer(2),
                        proa_flatten_layer(), proa_linear_layer(128, 10));
    proa_sync_layer(net);
    proa_loader *data = proa_load_csv("examples/data/digits_train.csv", .shape = PROA_SHAPE(1, 8, 8),
                                      .scale = 1.0 / 16, .batch = 64 / size, .shuffle = true, .seed = 3,
                                      .drop_last = true, .rank = rank, .size = size);
    proa_optimizer *opt = proa_momentum(proa_parameters(net), .lr = 0.05);
    for (int step = 0; step < STEPS && !proa_error();) {
        proa_each (batch, data) {
            proa_backward(proa_cross_entropy(proa_forward(net, batch->x), batch->y));
            proa_sync_gradients(opt);
            proa_step(opt);
            if (++step == STEPS) break;
        }
    }
    if (path) {
        proa_status saved = proa_checkpoint_save(path, net, opt);
        (void)saved; /* proa_finish says so */
    }
    proa_optimizer_free(opt);
    proa_layer_free(net);
    proa_loader_free(data);
    proa_dist_stop();
    return proa_finish(stderr);
}

static pid_t start(int rank, int size, const char *store, const char *path)
{
    pid_t child = fork();
    if (child == 0) _exit(train(rank, size, store, path));
    ck_assert_int_gt(child, 0);
    return child;
}

static void finish(pid_t child)
{
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

static double largest_difference(const char *a, const char *b)
{
    double largest = 0;
    proa_state *x = proa_state_load(a), *y = proa_state_load(b);
    ck_assert_msg(x && y, "%s", proa_error_message());
    for (int64_t i = 0; i < x->count; i++) {
        proa_tensor *t = x->items[i].tensor;
        if (!t) continue;
        proa_tensor *u = proa_state_get(y, x->items[i].name);
        largest = fmax(largest, proa_item(proa_max(proa_abs(proa_subtract(t, u)))));
    }
    ck_assert_msg(proa_error() == PROA_OK, "%s", proa_error_message());
    proa_state_free(x);
    proa_state_free(y);
    return largest;
}

START_TEST(two_ranks_train_like_one)
{
    const char *folder = test_folder();
    char store[4096], one[4200], two[4200], other[4200];
    snprintf(store, sizeof store, "%s/dist_XXXXXX", folder);
    ck_assert_ptr_nonnull(mkdtemp(store));
    snprintf(one, sizeof one, "%s/one", store);
    snprintf(two, sizeof two, "%s/two", store);
    snprintf(other, sizeof other, "%s/other", store);
    finish(start(0, 1, store, one));
    pid_t first = start(0, 2, store, two), second = start(1, 2, store, other);
    finish(first);
    finish(second);
    ck_assert_double_eq(largest_difference(two, other), 0);
    ck_assert_double_lt(largest_difference(one, two), 2e-5);
}
END_TEST

/* ---- collectives as ops ---------------------------------------------------------------- */

/* [4, 2]: 10 · rank + 0, 1, … */
static proa_tensor *own(int rank)
{
    float v[8];
    for (int i = 0; i < 8; i++) v[i] = (float)(10 * rank + i);
    return proa_from_data(v, PROA_SHAPE(4, 2), PROA_F32);
}

/* 0, or a message: t has these elements. */
static int differs(const char *what, proa_tensor *t, const float *want, int64_t n)
{
    for (int64_t i = 0; t && i < n; i++) {
        double got = ((const float *)proa_data(t))[i];
        if (fabs(got - (double)want[i]) > 1e-5)
            return fprintf(stderr, "%s: element %lld is %g, expected %g\n", what, (long long)i, got,
                           (double)want[i]);
    }
    return t && proa_numel(t) == n ? 0 : fprintf(stderr, "%s: %s\n", what, t ? "size" : proa_error_message());
}

#define SAME(what, t, ...) \
    bad |=                 \
        differs(what, t, (const float[]){__VA_ARGS__}, sizeof((const float[]){__VA_ARGS__}) / sizeof(float))

static int call_ops(int rank)
{
    int bad = 0;
    proa_tensor *x = own(rank), *all = proa_all_gather(x);
    SAME("all_gather", proa_slice(all, PROA_INTS(0), PROA_INTS(3), PROA_INTS(5)), 6, 7, 10, 11);
    SAME("mp_concat", proa_slice(proa_mp_concat(x), PROA_INTS(0), PROA_INTS(1), PROA_INTS(2)), 2, 3, 12, 13);
    if (rank) SAME("reduce_to", proa_reduce_to(x, .dst = 1), 10, 12, 14, 16, 18, 20, 22, 24);
    else SAME("reduce_to", proa_reduce_to(x, .dst = 1), 0, 1, 2, 3, 4, 5, 6, 7);
    if (rank) SAME("scatter_from", proa_scatter_from(x), 4, 5, 6, 7);
    else SAME("scatter_from", proa_scatter_from(x), 0, 1, 2, 3);
    if (rank) SAME("all_to_all", proa_all_to_all(x), 4, 5, 6, 7, 14, 15, 16, 17);
    else SAME("all_to_all", proa_all_to_all(x), 0, 1, 2, 3, 10, 11, 12, 13);
    if (rank) SAME("mp_split", proa_mp_split(x), 11, 13, 15, 17);
    else SAME("mp_split", proa_mp_split(x), 0, 2, 4, 6);
    if (rank) proa_p2p_send(x, 0);
    else SAME("p2p_recv", proa_p2p_recv(1, PROA_SHAPE(4, 2)), 10, 11, 12, 13, 14, 15, 16, 17);
    return bad;
}

/* Four classes on two ranks; the loss of equal logits is log 4, its gradient 1/4, or −3/4 at the label. */
static int split_classes(int rank)
{
    int bad = 0;
    int64_t labels[2] = {2, 0};
    proa_tensor *logits = proa_zeros(PROA_SHAPE(2, 2), PROA_F32),
                *label = proa_from_data(labels, PROA_SHAPE(2, 1), PROA_I64);
    proa_set_stop_gradient(logits, false);
    proa_tensor *loss = proa_mp_cross_entropy(logits, label).loss;
    SAME("mp_cross_entropy", loss, 1.3862944f, 1.3862944f);
    proa_backward(proa_sum(loss));
    if (rank) SAME("its gradient", proa_grad_of(logits), -0.75f, 0.25f, 0.25f, 0.25f);
    else SAME("its gradient", proa_grad_of(logits), 0.25f, 0.25f, -0.75f, 0.25f);
    return bad;
}

static pid_t start_ops(int rank, const char *store)
{
    pid_t child = fork();
    if (child == 0) {
        proa_set_threads(1);
        proa_status begun = proa_dist_start(.store = store, .rank = rank, .size = 2, .timeout = 60);
        int bad = begun != PROA_OK || call_ops(rank) || split_classes(rank);
        proa_dist_stop();
        _exit(proa_finish(stderr) || bad);
    }
    ck_assert_int_gt(child, 0);
    return child;
}

START_TEST(collectives_are_ops)
{
    const char *folder = test_folder();
    char store[4096];
    snprintf(store, sizeof store, "%s/dist_XXXXXX", folder);
    ck_assert_ptr_nonnull(mkdtemp(store));
    pid_t first = start_ops(0, store), second = start_ops(1, store);
    finish(first);
    finish(second);
    rmdir(store);
}
END_TEST

START_TEST(one_rank_needs_no_group)
{
    ck_assert_int_eq(proa_dist_start(.size = 1), PROA_OK);
    ck_assert_int_eq(proa_dist_size(), 1);
    ck_assert_int_eq(proa_dist_start(.size = 2, .rank = 2), PROA_ERR_INVALID_ARGUMENT);
    proa_clear_error();
}
END_TEST

SUITE("dist", two_ranks_train_like_one, collectives_are_ops, one_rank_needs_no_group)
