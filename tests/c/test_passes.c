/* Optimizing passes: each does what it is for (ops are counted), results stay within 1e-5 of their range,
 * and where a pass only drops or moves work they stay the same bits. */
#include "lists.h"
#include "suite.h"

#include "core/internal.h"
#include "jit/passes/passes.h"

#include <math.h>
#include <proa/io.h>
#include <proa/ops.h>
#include <time.h>
#include <unistd.h>

typedef proa_tensors (*function)(proa_tensors in, void *context);

/* Reproducible numbers around `centre`. */
static proa_tensor *noise(proa_ints shape, float centre, float width)
{
    proa_tensor *t = proa_empty(shape, PROA_F32);
    uint32_t state = 12345u + (uint32_t)proa_numel(t);
    for (int64_t i = 0; i < proa_numel(t); i++) {
        state = state * 1664525u + 1013904223u;
        ((float *)proa_data(t))[i] = centre + width * ((float)(state >> 8) / 8388608.0f - 1.0f);
    }
    return t;
}

static int count(const proa_program *p, const char *name)
{
    int n = 0;
    for (int32_t i = 0; i < p->blocks[0]->n_ops; i++) n += strcmp(p->blocks[0]->ops[i].op->name, name) == 0;
    return n;
}

static proa_program *capture(function fn, void *context, const proa_input_spec *spec, int64_t n)
{
    proa_program *p = proa_capture(fn, spec, n, context);
    ck_assert_msg(p != NULL, "%s", proa_error_message());
    return p;
}

static proa_program *optimized(const proa_program *p, const char *names, bool frozen)
{
    proa_program *copy = proa__program_copy(p, NULL);
    ck_assert_msg(copy != NULL, "%s", proa_error_message());
    ck_assert_msg(proa__passes_run(copy, names, frozen) == PROA_OK, "%s", proa_error_message());
    return copy;
}

static proa_tensors run(const proa_program *p, proa_tensors in)
{
    proa_executor *e = proa_executor_new(p);
    ck_assert_msg(e != NULL, "%s", proa_error_message());
    proa_tensors first = proa_executor_run(e, in), out = proa_executor_run(e, in);
    ck_assert_msg(out.count > 0 && first.count == out.count, "%s", proa_error_message());
    proa_executor_free(e);
    return out;
}

/* Both programs on the same inputs; tolerance: of the largest value, 0 for the same bits. */
static void assert_equal(const proa_program *a, const proa_program *b, proa_tensors in, double tolerance)
{
    proa_tensors want = run(a, in), got = run(b, in);
    ck_assert_int_eq(want.count, got.count);
    for (int64_t k = 0; k < want.count; k++) {
        ck_assert_int_eq(proa_ndim(want.at[k]), proa_ndim(got.at[k]));
        for (int d = 0; d < proa_ndim(want.at[k]); d++)
            ck_assert_int_eq(proa_dim(want.at[k], d), proa_dim(got.at[k], d));
        const float *x = proa_data(want.at[k]), *y = proa_data(got.at[k]);
        double range = 0, off = 0;
        for (int64_t i = 0; i < proa_numel(want.at[k]); i++) {
            range = fmax(range, fabs((double)x[i]));
            off = fmax(off, fabs((double)x[i] - (double)y[i]));
        }
        ck_assert(range > 0);
        ck_assert_msg(off <= tolerance * range, "output %d off by %g of %g", (int)k, off, range);
    }
}

/* ---- dropping ------------------------------------------------------------------------------ */

static proa_tensors redundant(proa_tensors in, void *context)
{
    (void)context;
    proa_tensor *x = proa_cast(proa_assign(in.at[0]), PROA_F32);
    proa_tensor *turned = proa_transpose(proa_transpose(x, PROA_INTS(1, 0)), PROA_INTS(1, 0));
    proa_tensor *shaped = proa_reshape(proa_reshape(turned, PROA_SHAPE(4, 2, 3)), PROA_SHAPE(4, 6));
    proa_tensor *same = proa_scale(shaped, .scale = PROA_SCALAR(1.0));
    proa_tensor *a = proa_softmax(proa_matmul(same, same, .transpose_y = true)),
                *b = proa_softmax(proa_matmul(x, same, .transpose_y = true));
    return list_of(2, proa_matmul(a, b), x);
}

START_TEST(identities_and_copies_go)
{
    proa_input_spec spec = {.shape = PROA_SHAPE(4, 6)};
    proa_program *p = capture(redundant, NULL, &spec, 1), *q = optimized(p, "identity,cse,dead", false);
    ck_assert_int_eq(count(p, "matmul"), 3);
    ck_assert_int_eq(count(q, "matmul"), 2);
    ck_assert_int_eq(count(q, "softmax"), 1);
    ck_assert_int_eq(q->blocks[0]->n_ops, 3);
    assert_equal(p, q, list_of(1, noise(PROA_SHAPE(4, 6), 0, 1), NULL), 0);
    proa_program *again = optimized(q, "identity,cse,dead", false);
    ck_assert_int_eq(again->blocks[0]->n_ops, 3);
    proa_program_free(again);
    proa_program_free(q);
    proa_program_free(p);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

/* The same read before and after a persistable is written is not the same. */
static proa_tensors counting(proa_tensors in, void *context)
{
    proa_tensor *w = context;
    proa_tensor *before = proa_multiply(w, in.at[0]);
    proa_add_(w, in.at[0]);
    return list_of(2, before, proa_multiply(w, in.at[0]));
}

START_TEST(written_persistables_are_no_values)
{
    proa_input_spec spec = {.shape = PROA_SHAPE(3)};
    proa_tensor *w = noise(PROA_SHAPE(3), 2, 1);
    proa_program *p = capture(counting, w, &spec, 1), *q = optimized(p, "all", true);
    ck_assert_int_eq(count(q, "multiply") + count(q, "fused_elementwise"), 2);
    proa_tensor *x = noise(PROA_SHAPE(3), 1, 0.5f);
    float before[3];
    ck_assert_int_eq(proa_copy_out(w, before, sizeof before), PROA_OK);
    proa_executor *e = proa_executor_new(q);
    proa_tensors out = proa_executor_run(e, list_of(1, x, NULL));
    ck_assert_msg(out.count == 2, "%s", proa_error_message());
    for (int i = 0; i < 3; i++) {
        float v = ((float *)proa_data(x))[i];
        ck_assert(((float *)proa_data(out.at[0]))[i] == before[i] * v);
        ck_assert(((float *)proa_data(out.at[1]))[i] == (before[i] + v) * v);
    }
    proa_executor_free(e);
    proa_program_free(q);
    proa_program_free(p);
}
END_TEST

/* ---- convolutions ------------------------------------------------------------------------------ */

typedef struct network {
    proa_tensor *w[4], *bias, *mean, *variance, *gamma, *beta, *fc, *fc_bias;
} network;

static network make_network(void)
{
    return (network){.w = {noise(PROA_SHAPE(16, 3, 3, 3), 0, 0.3f), noise(PROA_SHAPE(16, 16, 3, 3), 0, 0.1f),
                           noise(PROA_SHAPE(16, 1, 3, 3), 0, 0.3f), noise(PROA_SHAPE(16, 16, 1, 1), 0, 0.3f)},
                     .bias = noise(PROA_SHAPE(16), 0, 0.5f),
                     .mean = noise(PROA_SHAPE(16), 0, 0.2f),
                     .variance = noise(PROA_SHAPE(16), 1, 0.5f),
                     .gamma = noise(PROA_SHAPE(16), 1, 0.5f),
                     .beta = noise(PROA_SHAPE(16), 0, 0.5f),
                     .fc = noise(PROA_SHAPE(16, 10), 0, 0.4f),
                     .fc_bias = noise(PROA_SHAPE(10), 0, 0.5f)};
}

static proa_tensor *normalized(const network *n, proa_tensor *x)
{
    return proa_batch_norm(x, n->mean, n->variance, n->gamma, n->beta, .is_test = true).out;
}

/* Residual block, depthwise block, normalization that stands alone, pooling and a classifier. */
static proa_tensors convolutional(proa_tensors in, void *context)
{
    const network *n = context;
    proa_tensor *x =
        proa_relu(normalized(n, proa_conv2d(in.at[0], n->w[0], PROA_NONE, .padding = PROA_INTS(1, 1))));
    proa_tensor *h = normalized(n, proa_conv2d(x, n->w[1], n->bias, .padding = PROA_INTS(1, 1)));
    x = proa_relu(proa_add(h, x));
    h = proa_hardswish(
        normalized(n, proa_conv2d(x, n->w[2], PROA_NONE, .padding = PROA_INTS(1, 1), .groups = 16)));
    x = proa_conv2d(proa_max_pool2d(h, PROA_INTS(2, 2)), n->w[3], PROA_NONE);
    x = proa_relu(normalized(n, proa_relu(x)));
    x = proa_flatten(proa_adaptive_avg_pool2d(x, PROA_INTS(1, 1)), .start_axis = 1);
    return list_of(1, proa_softmax(proa_linear(x, n->fc, n->fc_bias)), NULL);
}

START_TEST(convolutions_take_over)
{
    network n = make_network();
    proa_input_spec spec = {.shape = PROA_SHAPE(-1, 3, 12, 10)};
    proa_program *p = capture(convolutional, &n, &spec, 1), *q = optimized(p, "all", true);
    ck_assert_int_eq(count(p, "batch_norm"), 4);
    ck_assert_int_eq(count(q, "batch_norm"), 0);
    ck_assert_int_eq(count(q, "conv2d_fused"), 4);
    ck_assert_int_eq(count(q, "linear_fused"), 1);
    ck_assert_int_eq(count(q, "hardswish") + count(q, "conv2d") + count(q, "linear"), 0);
    ck_assert_int_eq(count(q, "relu"), 0);
    for (int64_t batch = 1; batch < 4; batch++)
        assert_equal(p, q, list_of(1, noise(PROA_SHAPE(batch, 3, 12, 10), 0, 1), NULL), 1e-5);
    proa_program *plain = optimized(p, "-layout", true), *none = optimized(p, "", true);
    ck_assert_int_eq(count(plain, "transpose"), 0);
    ck_assert_int_eq(none->blocks[0]->n_ops, p->blocks[0]->n_ops);
    assert_equal(p, plain, list_of(1, noise(PROA_SHAPE(2, 3, 12, 10), 0, 1), NULL), 1e-5);
    proa_program_free(none);
    proa_program_free(plain);
    proa_program_free(q);
    proa_program_free(p);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

/* Two inverted residuals, one with a sum, and a depthwise convolution that is narrowed. Channels-last. */
static proa_tensors widening(proa_tensors in, void *context)
{
    proa_tensor *const *w = context, *x = in.at[0], *h;
    for (int i = 0; i < 3; i++) {
        h = x;
        if (i < 2) h = proa_relu6(proa_conv2d(x, w[3 * i], w[9 + i], .data_format = PROA_DATA_FORMAT_NHWC));
        h = proa_silu(proa_conv2d(
            h, w[3 * i + 1], PROA_NONE, .padding = PROA_INTS(1, 1), .groups = proa_dim(w[3 * i + 1], 0),
            .stride = i == 1 ? PROA_INTS(2, 2) : PROA_INTS(1, 1), .data_format = PROA_DATA_FORMAT_NHWC));
        h = proa_conv2d(h, w[3 * i + 2], PROA_NONE, .data_format = PROA_DATA_FORMAT_NHWC);
        x = i == 0 ? proa_add(x, h) : h;
    }
    return list_of(1, x, NULL);
}

/* Strips, and threads that share them out, change no bit. */
START_TEST(widening_takes_one_op)
{
    proa_tensor *w[] = {noise(PROA_SHAPE(96, 24, 1, 1), 0, 0.3f),
                        noise(PROA_SHAPE(96, 1, 3, 3), 0, 0.3f),
                        noise(PROA_SHAPE(24, 96, 1, 1), 0, 0.3f),
                        noise(PROA_SHAPE(96, 24, 1, 1), 0, 0.2f),
                        noise(PROA_SHAPE(96, 1, 5, 5), 0, 0.3f),
                        noise(PROA_SHAPE(400, 96, 1, 1), 0, 0.3f),
                        NULL,
                        noise(PROA_SHAPE(400, 1, 3, 3), 0, 0.3f),
                        noise(PROA_SHAPE(20, 400, 1, 1), 0, 0.3f),
                        noise(PROA_SHAPE(96), 0, 0.5f),
                        noise(PROA_SHAPE(96), 0, 0.5f)};
    proa_input_spec spec = {.shape = PROA_SHAPE(-1, 41, 39, 24)};
    proa_program *p = capture(widening, w, &spec, 1), *q = optimized(p, "all", true);
    proa_program *three = optimized(p, "-inverted_residual", true);
    ck_assert_int_eq(count(q, "inverted_residual"), 3);
    ck_assert_int_eq(count(q, "conv2d_fused"), 0);
    ck_assert_int_eq(count(three, "conv2d_fused"), 8);
    int threads = proa_threads();
    for (int64_t batch = 1; batch < 3; batch++) {
        proa_tensors in = list_of(1, noise(PROA_SHAPE(batch, 41, 39, 24), 0, 1), NULL);
        assert_equal(p, q, in, 1e-5);
        for (int n = 1; n < 6; n += 2) {
            proa_set_threads(n);
            assert_equal(three, q, in, 0);
        }
        proa_set_threads(threads);
    }
    proa_program_free(three);
    proa_program_free(q);
    proa_program_free(p);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

START_TEST(parameters_that_may_change_are_no_constants)
{
    network n = make_network();
    proa_input_spec spec = {.shape = PROA_SHAPE(-1, 3, 12, 10)};
    proa_program *p = capture(convolutional, &n, &spec, 1), *q = optimized(p, "all", false);
    ck_assert_int_eq(count(q, "batch_norm"), 4);
    proa_tensors in = list_of(1, noise(PROA_SHAPE(2, 3, 12, 10), 0, 1), NULL);
    assert_equal(p, q, in, 1e-5);
    for (int64_t i = 0; i < 160; i++) ((float *)proa_data(n.fc))[i] *= 2;
    assert_equal(p, q, in, 1e-5);
    proa_program_free(q);
    proa_program_free(p);
}
END_TEST

/* ---- elementwise ---------------------------------------------------------------------------------- */

static proa_tensors chains(proa_tensors in, void *context)
{
    proa_tensor *const *w = context, *x = in.at[0];
    proa_tensor *h = proa_add(proa_multiply(x, w[0]), w[1]);
    proa_tensor *gate = proa_sigmoid(proa_scale(h, .scale = PROA_SCALAR(0.5), .bias = 0.1));
    proa_tensor *y = proa_multiply(proa_gelu(h), gate);
    proa_tensor *z = proa_leaky_relu(proa_subtract(y, x), .negative_slope = 0.3);
    z = proa_clip(z, .min = PROA_SCALAR(-0.5), .max = PROA_SCALAR(0.75));
    return list_of(2, z, proa_sum(y));
}

START_TEST(chains_run_tile_by_tile)
{
    proa_tensor *w[] = {noise(PROA_SHAPE(301), 1, 0.5f), noise(PROA_SHAPE(1), 0, 0.5f)};
    proa_input_spec spec = {.shape = PROA_SHAPE(-1, 301)};
    proa_program *p = capture(chains, w, &spec, 1), *q = optimized(p, "all", false);
    ck_assert_int_eq(count(q, "fused_elementwise"), 1);
    ck_assert_int_eq(q->blocks[0]->n_ops, 2);
    for (int64_t n = 1; n < 5000; n = n * 7 + 1)
        assert_equal(p, q, list_of(1, noise(PROA_SHAPE(n, 301), 0, 1), NULL), 0);
    proa_program_free(q);
    proa_program_free(p);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

/* A value that an op outside reads in between keeps the ops after it apart. */
static proa_tensors interleaved(proa_tensors in, void *context)
{
    (void)context;
    proa_tensor *a = proa_exp(in.at[0]), *s = proa_softmax(a), *b = proa_add(proa_tanh(a), s);
    return list_of(2, proa_multiply(b, a), s);
}

START_TEST(groups_respect_who_reads)
{
    proa_input_spec spec = {.shape = PROA_SHAPE(5, 7)};
    proa_program *p = capture(interleaved, NULL, &spec, 1), *q = optimized(p, "elementwise", false);
    ck_assert_int_eq(count(q, "exp"), 1);
    ck_assert_int_eq(count(q, "fused_elementwise"), 1);
    assert_equal(p, q, list_of(1, noise(PROA_SHAPE(5, 7), 0, 1), NULL), 0);
    proa_program_free(q);
    proa_program_free(p);
}
END_TEST

/* ---- training programs ------------------------------------------------------------------------------ */

typedef struct layers {
    proa_tensor *w[2], *b[2];
} layers;

static proa_tensors perceptron(proa_tensors in, void *context)
{
    const layers *l = context;
    proa_tensor *h = proa_gelu(proa_linear(in.at[0], l->w[0], l->b[0]));
    h = proa_multiply(h, proa_sigmoid(h));
    return list_of(1, proa_mean(proa_square(proa_linear(h, l->w[1], l->b[1]))), NULL);
}

START_TEST(backward_is_fused_too)
{
    layers l = {{noise(PROA_SHAPE(20, 33), 0, 0.3f), noise(PROA_SHAPE(33, 9), 0, 0.3f)},
                {noise(PROA_SHAPE(33), 0, 0.3f), noise(PROA_SHAPE(9), 0, 0.3f)}};
    proa_input_spec spec = {.shape = PROA_SHAPE(8, 20)};
    proa_program *p = capture(perceptron, &l, &spec, 1);
    proa_tensor *loss = (proa_tensor *)(uintptr_t)proa_program_output(p, 0);
    proa_tensors g = proa_program_gradients(p, list_of(1, loss, NULL), list_of(2, l.w[0], l.b[0]),
                                            (proa_tensors){0, NULL}, (proa_tensors){0, NULL});
    ck_assert_msg(g.count == 2, "%s", proa_error_message());
    ck_assert_msg(proa_program_set_outputs(p, g) == PROA_OK, "%s", proa_error_message());
    proa_program *q = optimized(p, "cse,elementwise,dead", false);
    ck_assert_int_ge(count(q, "fused_elementwise"), 2);
    ck_assert_int_lt(q->blocks[0]->n_ops, p->blocks[0]->n_ops);
    assert_equal(p, q, list_of(1, noise(PROA_SHAPE(8, 20), 0, 1), NULL), 0);
    proa_program_free(q);
    proa_program_free(p);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

static proa_tensors stepping(proa_tensors in, void *context)
{
    const layers *l = context;
    proa_tensor *rate = proa_full(PROA_SHAPE(1), 0.5);
    proa_tensor *s = proa_sum(in.at[0]);
    for (int i = 0; i < 2; i++) {
        proa_tensor *params[] = {l->w[i]}, *grads[] = {proa_scale(l->w[i], .scale = PROA_SCALAR(2.0))};
        proa_tensors updated = {1, params}, by = {1, grads}, none = {0, NULL};
        proa_sgd_step(updated, by, rate, none, PROA_NONE);
    }
    return list_of(1, s, NULL);
}

START_TEST(steps_become_one)
{
    layers l = {{noise(PROA_SHAPE(4), 1, 0.5f), noise(PROA_SHAPE(3, 3), 2, 0.5f)}, {NULL, NULL}};
    proa_input_spec spec = {.shape = PROA_SHAPE(2)};
    proa_program *p = capture(stepping, &l, &spec, 1), *q = optimized(p, "all", false);
    ck_assert_int_eq(count(p, "sgd_step"), 2);
    proa_program_free(q);
    proa_program_free(p);
}
END_TEST

/* A perceptron with a step in it, whose first weight has L2 decay; the second weight is read twice. */
static proa_tensors two_squares(proa_tensors in, void *context)
{
    const layers *l = context;
    proa_tensor *h = proa_relu(proa_linear(in.at[0], l->w[0], l->b[0]));
    h = proa_matmul(proa_relu(proa_matmul(h, l->w[1])), l->w[1], .transpose_y = true);
    return list_of(1, proa_mean(proa_square(h)), NULL);
}

static proa_program *training_step(layers *l)
{
    proa_input_spec spec = {.shape = PROA_SHAPE(8, 300)};
    proa_program *p = capture(two_squares, l, &spec, 1);
    proa_tensor *loss = (proa_tensor *)(uintptr_t)proa_program_output(p, 0),
                *params[3] = {l->w[0], l->b[0], l->w[1]};
    proa_tensors none = {0, NULL}, all = {3, params};
    proa_tensors g = proa_program_gradients(p, list_of(1, loss, NULL), all, none, none);
    ck_assert_msg(g.count == 3, "%s", proa_error_message());
    proa_program *open = proa_program_open(p);
    int32_t role = proa_program_set_role(p, 2);
    g.at[0] = proa_add(g.at[0], proa_scale(l->w[0], .scale = PROA_SCALAR(0.1)));
    proa_sgd_step(all, g, proa_full(PROA_SHAPE(1), 0.5), none, PROA_NONE);
    proa_program_set_role(p, role);
    proa_program_open(open);
    ck_assert_msg(proa_error() == PROA_OK, "%s", proa_error_message());
    return p;
}

static int32_t last_of(const proa_program *p, bool (*is)(const proa_instr *), int32_t from)
{
    for (int32_t i = from; i >= 0; i--)
        if (is(&p->blocks[0]->ops[i])) return i;
    return -1;
}

static bool is_backward(const proa_instr *instr) { return instr->role & 1; }
static bool is_sgd(const proa_instr *instr) { return strcmp(instr->op->name, "sgd_step") == 0; }

START_TEST(steps_follow_their_gradients)
{
    float losses[2][3], *start[2];
    layers l = {{noise(PROA_SHAPE(300, 301), 0, 0.1f), noise(PROA_SHAPE(301, 300), 0, 0.1f)}, {NULL, NULL}};
    l.b[0] = proa_zeros(PROA_SHAPE(301), PROA_F32);
    proa_program *p = training_step(&l), *q = optimized(p, "optimizer_interleaving", false);
    int32_t n = q->blocks[0]->n_ops, backward = last_of(q, is_backward, n - 1);
    ck_assert_int_eq(count(p, "sgd_step"), 1);
    ck_assert_int_eq(count(q, "sgd_step"), 3); /* the weights as they come, and what is small */
    ck_assert_int_ge(last_of(q, is_sgd, backward), 0);
    ck_assert_int_ge(last_of(q, is_sgd, n - 1), backward);
    proa_tensors in = list_of(1, noise(PROA_SHAPE(8, 300), 0, 1), NULL);
    for (int i = 0; i < 2; i++) {
        size_t bytes = (size_t)proa_numel(l.w[i]) * sizeof(float);
        start[i] = memcpy(malloc(bytes), proa_data(l.w[i]), bytes);
    }
    for (int k = 0; k < 2; k++) {
        proa_executor *e = proa_executor_new(k ? q : p);
        for (int i = 0; i < 3; i++) losses[k][i] = (float)proa_item(proa_executor_run(e, in).at[0]);
        proa_executor_free(e);
        for (int i = 0; i < 2; i++)
            memcpy(proa_data(l.w[i]), start[i], (size_t)proa_numel(l.w[i]) * sizeof(float));
        memset(proa_data(l.b[0]), 0, (size_t)proa_numel(l.b[0]) * sizeof(float));
    }
    ck_assert(losses[0][2] < losses[0][0]);
    ck_assert_int_eq(memcmp(losses[0], losses[1], sizeof losses[0]), 0);
    proa_program_free(q);
    proa_program_free(p);
    for (int i = 0; i < 2; i++) free(start[i]);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

/* Number of steps, by the bytes of parameters that wait for one another: two weights and a bias. */
START_TEST(steps_wait_for_one_another)
{
    static const struct {
        const char *bytes;
        int steps;
    } cases[] = {{"0", 3}, {"362000", 2}, {"1073741824", 1}};
    layers l = {{noise(PROA_SHAPE(300, 301), 0, 0.1f), noise(PROA_SHAPE(301, 300), 0, 0.1f)}, {NULL, NULL}};
    l.b[0] = proa_zeros(PROA_SHAPE(301), PROA_F32);
    proa_program *p = training_step(&l);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ck_assert_int_eq(proa_set_flag("update_bytes", cases[i].bytes), PROA_OK);
        proa_program *q = optimized(p, "optimizer_interleaving", false);
        ck_assert_int_eq(count(q, "sgd_step"), cases[i].steps);
        proa_program_free(q);
    }
    ck_assert_int_eq(proa_set_flag("update_bytes", "262144"), PROA_OK);
    proa_program_free(p);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

/* ---- choosing ------------------------------------------------------------------------------------------ */

START_TEST(unknown_passes_are_errors)
{
    proa_input_spec spec = {.shape = PROA_SHAPE(4, 6)};
    proa_program *p = capture(redundant, NULL, &spec, 1);
    ck_assert_int_eq(proa__passes_run(p, "cse,magic", false), PROA_ERR_NOT_FOUND);
    ck_assert(strstr(proa_error_message(), "'magic'") && strstr(proa_error_message(), "elementwise"));
    proa_clear_error();
    ck_assert_int_eq(proa_set_flag("passes", "none"), PROA_OK);
    int32_t before = p->blocks[0]->n_ops;
    ck_assert_int_eq(proa__passes_run(p, NULL, true), PROA_OK);
    ck_assert_int_eq(p->blocks[0]->n_ops, before);
    ck_assert_int_eq(proa_set_flag("passes", "all"), PROA_OK);
    ck_assert_int_eq(proa__passes_run(p, NULL, true), PROA_OK);
    ck_assert_int_lt(p->blocks[0]->n_ops, before);
    proa_program_free(p);
}
END_TEST

static void fail_everywhere(const proa_program *p, bool frozen)
{
    int64_t live = 0;
    proa_program_free(optimized(p, "all", frozen)); /* what is made at first use is there */
    for (int64_t at = 0;; at += 1 + at / 40) {
        proa_status status = PROA_OK;
        PROA_SCOPE {
            proa_program *q = proa__program_copy(p, NULL);
            proa_memory_fail_after(at);
            status = proa__passes_run(q, "all", frozen);
            proa_memory_fail_after(-1);
            proa_clear_error();
            proa_program_free(q);
        }
        if (at == 0) live = proa_memory_get_stats().live_bytes;
        ck_assert_int_eq(proa_memory_get_stats().live_bytes, live);
        if (status == PROA_OK) break;
        ck_assert_int_eq(status, PROA_ERR_OUT_OF_MEMORY);
    }
}

START_TEST(failing_allocations_leave_nothing)
{
    network n = make_network();
    proa_input_spec spec = {.shape = PROA_SHAPE(-1, 3, 12, 10)};
    proa_program *p = capture(convolutional, &n, &spec, 1);
    fail_everywhere(p, true);
    proa_program_free(p);
    layers l = {{noise(PROA_SHAPE(300, 301), 0, 0.1f), noise(PROA_SHAPE(301, 300), 0, 0.1f)}, {NULL, NULL}};
    l.b[0] = proa_zeros(PROA_SHAPE(301), PROA_F32);
    p = training_step(&l);
    fail_everywhere(p, false);
    proa_program_free(p);
}
END_TEST

/* ---- long programs: PROA_TEST_OPS ops ------------------------------------------------------ */

static proa_tensors long_chain(proa_tensors in, void *context)
{
    proa_tensor *x = in.at[0], *w = ((proa_tensor **)context)[1];
    for (int64_t i = 0, n = *(int64_t *)context / 4; i < n; i++)
        x = proa_add(proa_tanh(proa_matmul(proa_assign(x), w)), in.at[0]);
    return list_of(1, x, NULL);
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Saves and loads p; a build without protobuf-c says that it cannot. */
static void travel(const proa_program *p)
{
    char folder[] = "/tmp/proa-passes-XXXXXX", prefix[64], file[80];
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(prefix, sizeof prefix, "%s/long", folder);
    if (proa_program_save(p, prefix) == PROA_OK) {
        snprintf(file, sizeof file, "%s.pdmodel", prefix);
        proa_program *back = proa_program_load(file);
        ck_assert_msg(back != NULL, "%s", proa_error_message());
        proa_program_free(back);
        unlink(file);
        snprintf(file, sizeof file, "%s.pdiparams", prefix);
        unlink(file);
    } else {
        ck_assert_msg(strstr(proa_error_message(), "protobuf-c") != NULL, "%s", proa_error_message());
        proa_clear_error();
    }
    rmdir(folder);
}

START_TEST(long_programs_take_linear_time)
{
    const char *given = getenv("PROA_TEST_OPS");
    struct {
        int64_t n;
        proa_tensor *w;
    } context = {given ? atoll(given) : 10000, noise(PROA_SHAPE(4, 4), 0, 0.5f)};
    proa_input_spec spec = {.shape = PROA_SHAPE(2, 4)};
    double start = seconds();
    proa_program *p = capture(long_chain, &context, &spec, 1);
    double captured = seconds();
    proa_program *q = optimized(p, "all", true);
    double passed = seconds();
    ck_assert_int_eq(count(q, "assign"), 0);
    ck_assert_int_lt(q->blocks[0]->n_ops, p->blocks[0]->n_ops / 2 + 10);
    assert_equal(p, q, list_of(1, noise(PROA_SHAPE(2, 4), 0, 1), NULL), 1e-5);
    double ran = seconds();
    proa_tensor *out = (proa_tensor *)(uintptr_t)proa_program_output(p, 0);
    proa_tensors g = proa_program_gradients(p, list_of(1, out, NULL), list_of(1, context.w, NULL),
                                            (proa_tensors){0, NULL}, (proa_tensors){0, NULL});
    ck_assert_msg(g.count == 1, "%s", proa_error_message());
    double differentiated = seconds();
    travel(p);
    if (given)
        printf("%lld ops: captured in %.2f s, passes %.2f s, two plans and four runs %.2f s, "
               "differentiated in %.2f s, saved and loaded %.2f s\n",
               (long long)context.n, captured - start, passed - captured, ran - passed, differentiated - ran,
               seconds() - differentiated);
    proa_program_free(q);
    proa_program_free(p);
}
END_TEST

SUITE("passes", identities_and_copies_go, written_persistables_are_no_values, convolutions_take_over,
      widening_takes_one_op, parameters_that_may_change_are_no_constants, chains_run_tile_by_tile,
      groups_respect_who_reads, backward_is_fused_too, steps_become_one, steps_follow_their_gradients,
      steps_wait_for_one_another, unknown_passes_are_errors, failing_allocations_leave_nothing,
      long_programs_take_linear_time)
