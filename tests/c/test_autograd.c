/* Autograd through the public API: backward, accumulation, graphs kept and freed, double grad, hooks,
 * custom functions, recompute, versions, in-place through views, long chains, the gradient checker. */
#include "lists.h"
#include "suite.h"

#include <proa/autograd.h>
#include <proa/ops.h>

#include <math.h>
#include <string.h>

/* ---- helpers --------------------------------------------------------------------------- */

static proa_tensor *doubles(proa_ints shape, const double *values)
{
    return proa_from_data(values, shape, PROA_F64);
}
#define VECTOR(...)                                                                  \
    doubles(PROA_SHAPE((int64_t)(sizeof((double[]){__VA_ARGS__}) / sizeof(double))), \
            (const double[]){__VA_ARGS__})

/* t, as a leaf that wants a gradient. */
static proa_tensor *leaf(proa_tensor *t)
{
    ck_assert_int_eq(proa_set_stop_gradient(t, false), PROA_OK);
    return t;
}

static void check_values(const proa_tensor *t, const double *want, int64_t n)
{
    ck_assert_msg(t != NULL, "%s", proa_error_message());
    ck_assert_ptr_ne(t, PROA_NONE);
    ck_assert_int_eq(proa_numel(t), n);
    double got[64];
    ck_assert_int_le(n, 64);
    ck_assert_int_eq(proa_copy_out(t, got, (size_t)n * sizeof *got), PROA_OK);
    for (int64_t i = 0; i < n; i++)
        ck_assert_msg(fabs(got[i] - want[i]) <= 1e-12 * (1 + fabs(want[i])),
                      "element %lld is %.17g, not %.17g", (long long)i, got[i], want[i]);
}
#define CHECK(t, ...)                              \
    check_values(t, (const double[]){__VA_ARGS__}, \
                 (int64_t)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)))

/* The error that stands has this code and its message holds `part`; it is cleared. */
static void expect_error(proa_status code, const char *part)
{
    ck_assert_msg(proa_error() == code, "error is %d (%s), not %d", (int)proa_error(), proa_error_message(),
                  (int)code);
    ck_assert_msg(strstr(proa_error_message(), part) != NULL, "\"%s\" does not say \"%s\"",
                  proa_error_message(), part);
    proa_clear_error();
}

static const proa_tensors no_grads = {0, NULL};

/* ---- backward -------------------------------------------------------------------------- */

START_TEST(adds_up_over_uses_and_calls)
{
    proa_tensor *x = leaf(VECTOR(1, 2, 3));
    proa_tensor *y = proa_add(proa_multiply(x, x), x); /* x² + x: x is used three times */
    ck_assert_int_eq(proa_backward(proa_sum(y)), PROA_OK);
    CHECK(proa_grad_of(x), 3, 5, 7);
    ck_assert_int_eq(proa_backward(proa_sum(proa_multiply(x, x))), PROA_OK);
    CHECK(proa_grad_of(x), 5, 9, 13);
    proa_clear_grad(x);
    ck_assert_ptr_eq(proa_grad_of(x), PROA_NONE);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

START_TEST(gradients_in_one_buffer)
{
    proa_tensor *weights = proa_full(PROA_SHAPE(5), 3.0, .dtype = PROA_F64),
                *grads = proa_full(PROA_SHAPE(5), 0.0, .dtype = PROA_F64);
    proa_tensor *x = proa_full(PROA_SHAPE(1, 2), 7.0, .dtype = PROA_F64);
    proa_tensor *part = proa_slice(weights, PROA_INTS(0), PROA_INTS(3), PROA_INTS(5));
    ck_assert_int_eq(proa_share_memory(x, part), PROA_OK);
    ck_assert(proa_shares_memory(x, weights) && !proa_shares_memory(x, grads) && proa_ndim(x) == 2);
    proa_set_stop_gradient(x, false);
    proa_tensor *slot = proa_slice(grads, PROA_INTS(0), PROA_INTS(3), PROA_INTS(5));
    ck_assert_int_eq(proa_bind_grad(x, proa_reshape(slot, PROA_INTS(1, 2))), PROA_OK);
    for (int i = 0; i < 2; i++) ck_assert_int_eq(proa_backward(proa_sum(proa_multiply(x, x))), PROA_OK);
    CHECK(grads, 0, 0, 0, 12, 12);
    proa_zero_grad(x);
    CHECK(grads, 0, 0, 0, 0, 0);
    ck_assert_int_eq(proa_bind_grad(x, grads), PROA_ERR_INVALID_ARGUMENT);
    proa_clear_error();
    ck_assert_int_eq(proa_share_memory(x, weights), PROA_ERR_INVALID_ARGUMENT);
    proa_clear_error();
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

START_TEST(takes_several_outputs_and_gradients)
{
    proa_tensor *x = leaf(VECTOR(1, 2));
    proa_tensor *a = proa_multiply(x, x), *b = proa_exp(x);
    ck_assert_int_eq(
        proa_backward_all(PROA_LIST(a, b), PROA_LIST(VECTOR(10, 100), PROA_NONE), (proa_backward_opts){0}),
        PROA_OK);
    CHECK(proa_grad_of(x), 20 + exp(1), 400 + exp(2));
    proa_backward_all(PROA_LIST(proa_exp(x)), PROA_LIST(VECTOR(1, 2, 3)), (proa_backward_opts){0});
    expect_error(PROA_ERR_INVALID_ARGUMENT, "gradient given");
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

START_TEST(fits_broadcast_gradients)
{
    proa_tensor *x = leaf(doubles(PROA_SHAPE(2, 1), (double[]){1, 2})), *b = leaf(VECTOR(1, 2, 3));
    proa_tensor *s = leaf(doubles(PROA_SCALAR_SHAPE, (double[]){2}));
    ck_assert_int_eq(proa_backward(proa_sum(proa_multiply(proa_multiply(x, b), s))), PROA_OK);
    CHECK(proa_grad_of(x), 12, 12);
    ck_assert_int_eq(proa_ndim(proa_grad_of(x)), 2);
    CHECK(proa_grad_of(b), 6, 6, 6);
    CHECK(proa_grad_of(s), 18);
    ck_assert_int_eq(proa_ndim(proa_grad_of(s)), 0);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

START_TEST(graphs_are_freed_or_retained)
{
    proa_tensor *x = leaf(VECTOR(3));
    proa_tensor *y = proa_sum(proa_multiply(x, x));
    proa_backward_opts retain = {.retain_graph = true};
    ck_assert_int_eq(proa_backward_all(PROA_LIST(y), no_grads, retain), PROA_OK);
    ck_assert_int_eq(proa_backward(y), PROA_OK);
    CHECK(proa_grad_of(x), 12);
    proa_backward(y);
    expect_error(PROA_ERR_BAD_STATE, "retain_graph");
    CHECK(proa_grad_of(x), 12);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

START_TEST(history_is_needed)
{
    proa_tensor *x = VECTOR(1, 2);
    proa_backward(proa_sum(x));
    expect_error(PROA_ERR_BAD_STATE, "no history");
    proa_backward(NULL);
    expect_error(PROA_ERR_INVALID_ARGUMENT, "NULL");
    proa_set_stop_gradient(proa_from_data((int64_t[]){1}, PROA_SHAPE(1), PROA_I64), false);
    expect_error(PROA_ERR_WRONG_TYPE, "int64");
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

START_TEST(stop_gradient_and_no_grad)
{
    proa_tensor *x = leaf(VECTOR(1, 2)), *frozen = VECTOR(5, 5);
    proa_tensor *y = proa_multiply(x, frozen);
    ck_assert(!proa_stop_gradient(y));
    ck_assert(!proa_is_leaf(y));
    proa_tensor *detached = proa_detach(y);
    ck_assert(proa_stop_gradient(detached));
    ck_assert_ptr_eq(proa_data(detached), proa_data(y));
    {
        PROA_NO_GRAD;
        ck_assert(!proa_recording());
        proa_tensor *z = proa_multiply(x, x);
        ck_assert(proa_stop_gradient(z));
        ck_assert(proa_is_leaf(z));
    }
    ck_assert(proa_recording());
    ck_assert_int_eq(proa_backward(proa_sum(proa_multiply(y, detached))), PROA_OK);
    CHECK(proa_grad_of(x), 25, 50); /* d(x·5·const)/dx, const = 5x */
    ck_assert_ptr_eq(proa_grad_of(frozen), PROA_NONE);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

/* ---- gradients of gradients ------------------------------------------------------------ */

START_TEST(grad_returns_and_adds_to_no_leaf)
{
    proa_tensor *x = leaf(VECTOR(2, 3)), *other = leaf(VECTOR(1, 1));
    proa_tensor *y = proa_multiply(x, x);
    proa_tensors g = proa_grad(PROA_LIST(y), PROA_LIST(x), no_grads, (proa_grad_opts){.retain_graph = true});
    ck_assert_int_eq(g.count, 1);
    CHECK(g.at[0], 4, 6);
    ck_assert_ptr_eq(proa_grad_of(x), PROA_NONE);
    proa_grad_opts unused = {.retain_graph = true, .allow_unused = true};
    g = proa_grad(PROA_LIST(y), PROA_LIST(other, x), no_grads, unused);
    ck_assert_int_eq(g.count, 2);
    ck_assert_ptr_eq(g.at[0], PROA_NONE);
    g = proa_grad(PROA_LIST(y), PROA_LIST(other), no_grads, (proa_grad_opts){0});
    expect_error(PROA_ERR_INVALID_ARGUMENT, "allow_unused");
    /* of a tensor in the middle */
    proa_tensor *m = proa_exp(x), *z = proa_multiply(m, m);
    g = proa_grad(PROA_LIST(z), PROA_LIST(m), no_grads, (proa_grad_opts){0});
    CHECK(g.at[0], 2 * exp(2), 2 * exp(3));
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

/* The gradient is the seed itself, which the call made; it outlives the call. */
START_TEST(grad_of_an_output_by_itself)
{
    proa_tensor *x = leaf(VECTOR(1, 2)), *y = proa_multiply(x, x);
    proa_tensors g = proa_grad(PROA_LIST(y), PROA_LIST(y, y), no_grads, (proa_grad_opts){0});
    ck_assert_int_eq(g.count, 2);
    proa_tensor *others[] = {proa_exp(x), proa_exp(x)}; /* would take its memory */
    CHECK(g.at[0], 1, 1);
    CHECK(g.at[1], 1, 1);
    ck_assert_ptr_nonnull(others[1]);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

START_TEST(gradients_have_gradients)
{
    proa_tensor *x = leaf(VECTOR(1, 2));
    proa_tensor *y = proa_multiply(proa_multiply(x, x), x); /* x³ */
    proa_grad_opts create = {.create_graph = true};
    proa_tensors first = proa_grad(PROA_LIST(y), PROA_LIST(x), no_grads, create);
    CHECK(first.at[0], 3, 12);
    proa_tensors second = proa_grad(PROA_LIST(first.at[0]), PROA_LIST(x), no_grads, create);
    CHECK(second.at[0], 6, 12);
    proa_tensors third = proa_grad(PROA_LIST(second.at[0]), PROA_LIST(x), no_grads, (proa_grad_opts){0});
    CHECK(third.at[0], 6, 6);
    ck_assert(proa_stop_gradient(third.at[0]));
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

START_TEST(backward_of_a_gradient_reaches_leaves)
{
    /* a gradient penalty: L = Σ (d tanh(wx)/dx)² ; dL/dw through a saved output */
    double w0 = 0.7, x0 = 0.3;
    proa_tensor *w = leaf(VECTOR(w0)), *x = leaf(VECTOR(x0));
    proa_tensor *y = proa_tanh(proa_multiply(w, x));
    proa_tensors g = proa_grad(PROA_LIST(y), PROA_LIST(x), no_grads, (proa_grad_opts){.create_graph = true});
    ck_assert_int_eq(proa_backward(proa_sum(proa_multiply(g.at[0], g.at[0]))), PROA_OK);
    double t = tanh(w0 * x0), s = 1 - t * t, slope = w0 * s;
    CHECK(proa_grad_of(w), 2 * slope * (s - 2 * w0 * x0 * t * s));
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

/* ---- hooks ----------------------------------------------------------------------------- */

static proa_tensor *times_ten(proa_tensor *grad, void *context)
{
    ++*(int *)context;
    return proa_scale(grad, .scale = PROA_SCALAR(10.0));
}
static proa_tensor *lost(proa_tensor *grad, void *context)
{
    (void)grad, (void)context;
    return NULL;
}
static void count_release(void *context) { *(int *)context += 100; }

typedef struct once {
    proa_tensor *on;
    int64_t id;
    int calls;
} once;
static proa_tensor *times_ten_once(proa_tensor *grad, void *context)
{
    once *it = context;
    proa_remove_hook(it->on, it->id);
    return times_ten(grad, &it->calls);
}

START_TEST(hooks_may_remove_themselves)
{
    int calls = 0;
    proa_tensor *x = leaf(VECTOR(1, 2));
    once it = {.on = x};
    it.id = proa_register_hook(x, times_ten_once, &it, NULL);
    proa_register_hook(x, times_ten, &calls, NULL);
    for (int i = 0; i < 2; i++) ck_assert_int_eq(proa_backward(proa_sum(proa_multiply(x, x))), PROA_OK);
    CHECK(proa_grad_of(x), 200 + 20, 400 + 40);
    ck_assert_int_eq(it.calls, 1);
    ck_assert_int_eq(calls, 2); /* the hook behind it ran both times */
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

START_TEST(hooks_change_what_flows)
{
    int calls = 0, leaf_calls = 0;
    proa_tensor *x = leaf(VECTOR(1, 2)), *h = proa_multiply(x, x);
    int64_t id = proa_register_hook(h, times_ten, &calls, NULL);
    ck_assert_int_gt(id, 0);
    int64_t on_leaf = proa_register_hook(x, times_ten, &leaf_calls, count_release);
    ck_assert_int_eq(proa_backward(proa_sum(h)), PROA_OK);
    CHECK(proa_grad_of(x), 200, 400);
    ck_assert_int_eq(calls, 1);
    ck_assert_int_eq(leaf_calls, 1);
    ck_assert(proa_remove_hook(x, on_leaf));
    ck_assert_int_eq(leaf_calls, 101);
    ck_assert(!proa_remove_hook(x, on_leaf));
    proa_clear_grad(x);
    ck_assert_int_eq(proa_backward(proa_sum(proa_multiply(x, x))), PROA_OK);
    CHECK(proa_grad_of(x), 2, 4);
    proa_register_hook(x, lost, NULL, NULL);
    proa_backward(proa_sum(proa_multiply(x, x)));
    expect_error(PROA_ERR_BAD_STATE, "hook");
    ck_assert_int_eq(proa_register_hook(VECTOR(1), times_ten, &calls, NULL), 0);
    expect_error(PROA_ERR_INVALID_ARGUMENT, "stop_gradient");
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

START_TEST(retained_gradients)
{
    proa_tensor *x = leaf(VECTOR(1, 2)), *h = proa_multiply(x, x), *other = proa_exp(h);
    ck_assert_int_eq(proa_retain_grad(h), PROA_OK);
    ck_assert_int_eq(proa_backward(proa_sum(proa_multiply(h, h))), PROA_OK);
    CHECK(proa_grad_of(h), 2, 8);
    ck_assert_ptr_eq(proa_grad_of(other), PROA_NONE);
    proa_retain_grad(VECTOR(1));
    expect_error(PROA_ERR_BAD_STATE, "stop_gradient");
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

/* ---- custom functions ------------------------------------------------------------------ */

/* forward: x², y·10 ; the backward is deliberately not theirs, so that it is seen to be used. */
static proa_tensors odd_forward(proa_tensors in, void *context)
{
    ck_assert(!proa_recording());
    ++*(int *)context;
    proa_tensors out = {2, proa_scope_alloc(2 * sizeof(proa_tensor *))};
    out.at[0] = proa_multiply(in.at[0], in.at[0]);
    out.at[1] = proa_scale(in.at[1], .scale = PROA_SCALAR(10.0));
    return out;
}
static proa_tensors odd_backward(proa_tensors in, proa_tensors out, proa_tensors grads, void *context)
{
    ++*(int *)context;
    ck_assert_int_eq(out.count, 2);
    proa_tensors made = {2, proa_scope_alloc(2 * sizeof(proa_tensor *))};
    made.at[0] = proa_multiply(grads.at[0], in.at[0]);
    made.at[1] = PROA_NONE;
    return made;
}
static const proa_function odd = {
    .name = "odd", .forward = odd_forward, .backward = odd_backward, .release = count_release};

static proa_tensors too_few(proa_tensors in, proa_tensors out, proa_tensors grads, void *context)
{
    (void)in, (void)out, (void)context;
    return (proa_tensors){1, grads.at};
}

START_TEST(custom_functions)
{
    int context = 0;
    PROA_SCOPE {
        proa_tensor *x = leaf(VECTOR(3, 4)), *y = leaf(VECTOR(1, 1));
        proa_tensors out = proa_apply(&odd, PROA_LIST(x, y), &context);
        ck_assert_int_eq(out.count, 2);
        CHECK(out.at[0], 9, 16);
        ck_assert(!proa_stop_gradient(out.at[0]));
        ck_assert_int_eq(proa_backward(proa_sum(proa_add(out.at[0], out.at[1]))), PROA_OK);
        CHECK(proa_grad_of(x), 3, 4);
        ck_assert_ptr_eq(proa_grad_of(y), PROA_NONE);
    }
    ck_assert_int_eq(context, 102);
    PROA_SCOPE { /* nothing recorded: the context ends with the call */
        proa_apply(&odd, PROA_LIST(VECTOR(1), VECTOR(1)), &context);
        ck_assert_int_eq(context, 203);
        proa_function short_one = odd;
        short_one.backward = too_few;
        proa_tensors out = proa_apply(&short_one, PROA_LIST(leaf(VECTOR(1)), VECTOR(1)), &context);
        proa_backward(proa_sum(out.at[0]));
        expect_error(PROA_ERR_INVALID_ARGUMENT, "returned 1 gradients for 2");
    }
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

/* The backward of another graph inside a backward, over nodes that hold gradients of the outer one. */
typedef struct asked {
    proa_tensor *y, *x;
} asked;
static proa_tensors asking_forward(proa_tensors in, void *context)
{
    (void)context;
    return one(proa_scale(in.at[0], .scale = PROA_SCALAR(1.0)));
}
static proa_tensors asking_backward(proa_tensors in, proa_tensors out, proa_tensors grads, void *context)
{
    const asked *a = context;
    (void)in, (void)out;
    proa_tensors dydx = proa_grad(PROA_LIST(a->y), PROA_LIST(a->x), PROA_LIST(PROA_NONE),
                                  (proa_grad_opts){.retain_graph = true});
    return one(dydx.count ? proa_multiply(grads.at[0], dydx.at[0]) : NULL);
}
static const proa_function asking = {
    .name = "asking", .forward = asking_forward, .backward = asking_backward};

START_TEST(a_backward_inside_a_backward)
{
    PROA_SCOPE {
        proa_tensor *x = leaf(VECTOR(2)), *h = proa_multiply(x, x);
        asked context = {proa_multiply(h, h), x}; /* y = x⁴, dy/dx = 32 */
        proa_tensor *a = proa_apply(&asking, PROA_LIST(h), &context).at[0];
        proa_tensor *b = proa_scale(h, .scale = PROA_SCALAR(5.0));
        proa_tensor *c = proa_apply(&asking, PROA_LIST(h), &context).at[0];
        ck_assert_int_eq(proa_backward(proa_sum(proa_add(proa_add(a, b), c))), PROA_OK);
        CHECK(proa_grad_of(x), (32 + 5 + 32) * 4);
    }
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

/* ---- recompute ------------------------------------------------------------------------- */

static proa_tensor *weight;
static int runs;

static proa_tensors block(proa_tensors in, void *context)
{
    (void)context;
    runs++;
    proa_tensor *h = proa_tanh(proa_matmul(in.at[0], weight));
    return one(proa_multiply(proa_dropout(h, .p = 0.5).out, h));
}

START_TEST(recompute_equals_plain)
{
    double plain_x[64], plain_w[64], again[64], values[64];
    for (int i = 0; i < 64; i++) values[i] = sin(i);
    weight = leaf(doubles(PROA_SHAPE(8, 8), values));
    for (int round = 0; round < 2; round++) {
        PROA_SCOPED;
        proa_tensor *x = leaf(doubles(PROA_SHAPE(8, 8), values));
        proa_clear_grad(weight);
        proa_seed(7);
        runs = 0;
        proa_tensors out = round ? proa_recompute(block, PROA_LIST(x), NULL, NULL) : block(one(x), NULL);
        ck_assert_msg(out.count == 1, "%s", proa_error_message());
        proa_rng_state before = proa_rng_get();
        ck_assert_int_eq(proa_backward(proa_sum(out.at[0])), PROA_OK);
        proa_rng_state after = proa_rng_get();
        ck_assert_int_eq((int64_t)before.offset, (int64_t)after.offset);
        ck_assert_int_eq(runs, round ? 2 : 1);
        proa_copy_out(proa_grad_of(x), round ? again : plain_x, sizeof again);
        if (round) ck_assert_mem_eq(again, plain_x, sizeof again);
        proa_copy_out(proa_grad_of(weight), round ? again : plain_w, sizeof again);
        if (round) ck_assert_mem_eq(again, plain_w, sizeof again);
    }
    double sum = 0;
    for (int i = 0; i < 64; i++) sum += fabs(plain_x[i]);
    ck_assert_double_gt(sum, 0.1);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

/* ---- versions and in-place ------------------------------------------------------------- */

START_TEST(saved_tensors_are_checked)
{
    proa_tensor *x = leaf(VECTOR(1, 2)), *h = proa_multiply(x, x);
    proa_tensor *y = proa_sum(proa_multiply(h, h)); /* saves h */
    proa_add_(h, VECTOR(1, 1));
    proa_backward(y);
    expect_error(PROA_ERR_BAD_STATE, "changed in place");
    proa_tensor *c = VECTOR(1, 2);
    y = proa_sum(proa_multiply(x, c));
    ((double *)proa_data(c))[0] = 5;
    proa_touch(c);
    proa_backward(y);
    expect_error(PROA_ERR_BAD_STATE, "changed in place");
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

START_TEST(in_place_moves_on)
{
    proa_tensor *x = leaf(VECTOR(-1, 2)), *h = proa_scale(x, .scale = PROA_SCALAR(3.0));
    ck_assert_ptr_eq(proa_add_(h, x), h);
    ck_assert_ptr_eq(proa_relu_(h), h);
    ck_assert_int_eq(proa_backward(proa_sum(proa_scale(h, .scale = PROA_SCALAR(2.0)))), PROA_OK);
    CHECK(proa_grad_of(x), 0, 8);
    proa_clear_grad(x); /* a rule that needs what its call overwrote has a copy */
    proa_tensor *twice = proa_multiply_(proa_scale(x, .scale = PROA_SCALAR(1.0)), x);
    ck_assert_int_eq(proa_backward(proa_sum(twice)), PROA_OK);
    CHECK(proa_grad_of(x), -2, 4);
    proa_add_(x, VECTOR(1, 1));
    expect_error(PROA_ERR_INVALID_ARGUMENT, "leaf");
    proa_add_(proa_transpose(leaf(doubles(PROA_SHAPE(1, 2), (double[]){1, 2})), PROA_INTS(1, 0)),
              doubles(PROA_SHAPE(2, 1), (double[]){1, 1}));
    expect_error(PROA_ERR_INVALID_ARGUMENT, "leaf");
    {
        PROA_NO_GRAD;
        ck_assert_ptr_nonnull(proa_add_(x, VECTOR(1, 1)));
    }
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

/* The addend's node saved the very handle that is written, which then owns a node before that one. */
START_TEST(in_place_on_what_was_saved)
{
    for (int view = 0; view < 2; view++) {
        PROA_SCOPED;
        proa_tensor *x = leaf(VECTOR(1, 2)), *y = proa_scale(x, .scale = PROA_SCALAR(2.0));
        proa_tensor *sin = proa_sin(y);
        proa_tensor *to = view ? proa_reshape(y, PROA_SHAPE(2, 1)) : y;
        ck_assert_ptr_nonnull(proa_add_(to, view ? proa_reshape(sin, PROA_SHAPE(2, 1)) : sin));
        ck_assert_int_eq(proa_backward(proa_sum(y)), PROA_ERR_BAD_STATE);
        expect_error(PROA_ERR_BAD_STATE, "sin saved a float64[2] that was changed in place");
    }
    PROA_SCOPE { /* data, which wants no gradient until then */
        proa_tensor *w = leaf(VECTOR(1, 2)), *x = VECTOR(3, 4);
        ck_assert_ptr_nonnull(proa_add_(x, proa_multiply(w, x)));
    }
    int64_t live = proa_memory_get_stats().live_bytes;
    PROA_SCOPE { /* saved by a node that stands behind the second call in place only */
        proa_tensor *x = leaf(VECTOR(1, 2)), *y = proa_scale(x, .scale = PROA_SCALAR(2.0));
        proa_tensor *sin = proa_sin(y);
        ck_assert_ptr_nonnull(proa_relu_(y));
        ck_assert_ptr_nonnull(proa_add_(y, sin));
    }
    ck_assert_int_eq(proa_memory_get_stats().live_bytes, live);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

START_TEST(in_place_through_a_transposed_view)
{
    proa_tensor *x = leaf(doubles(PROA_SHAPE(2, 2), (double[]){1, 2, 3, 4}));
    proa_tensor *h = proa_scale(x, .scale = PROA_SCALAR(1.0)), *v = proa_transpose(h, PROA_INTS(1, 0));
    proa_multiply_(v, doubles(PROA_SHAPE(2, 2), (double[]){1, 10, 100, 1000}));
    CHECK(h, 1, 200, 30, 4000);
    ck_assert_int_eq(proa_backward(proa_sum(h)), PROA_OK);
    CHECK(proa_grad_of(x), 1, 100, 10, 1000);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

START_TEST(in_place_through_a_slice)
{
    proa_tensor *x = leaf(VECTOR(1, 2, 3, 4)), *y = leaf(VECTOR(5, 6));
    proa_tensor *h = proa_scale(x, .scale = PROA_SCALAR(2.0));
    proa_tensor *v = proa_slice(h, PROA_INTS(0), PROA_INTS(1), PROA_INTS(3));
    ck_assert_ptr_nonnull(proa_multiply_(v, VECTOR(5, 6)));
    ck_assert_ptr_nonnull(proa_add_(v, y)); /* h = 2, 4·5 + 5, 6·6 + 6, 8 */
    CHECK(h, 2, 25, 42, 8);
    proa_tensor *w = VECTOR(1, 10, 100, 1000);
    ck_assert_int_eq(proa_backward(proa_sum(proa_multiply(h, w))), PROA_OK);
    CHECK(proa_grad_of(x), 2, 100, 1200, 2000);
    CHECK(proa_grad_of(y), 10, 100);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

START_TEST(stale_views_are_refused)
{
    proa_tensor *x = leaf(VECTOR(1, 2, 3, 4)), *h = proa_scale(x, .scale = PROA_SCALAR(2.0));
    proa_tensor *view = proa_reshape(h, PROA_SHAPE(2, 2));
    proa_add_(h, VECTOR(1, 1, 1, 1));
    ck_assert_ptr_null(proa_multiply(view, view));
    expect_error(PROA_ERR_BAD_STATE, "view");
    proa_tensor *fresh = proa_reshape(h, PROA_SHAPE(2, 2));
    ck_assert_int_eq(proa_backward(proa_sum(proa_multiply(fresh, fresh))), PROA_OK);
    CHECK(proa_grad_of(x), 12, 20, 28, 36);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

START_TEST(leaves_own_no_graph)
{
    int64_t before = proa_memory_get_stats().live_blocks;
    for (int backward = 0; backward < 2; backward++)
        for (int kept = 0; kept < 2; kept++) {
            PROA_SCOPED;
            proa_tensor *x = leaf(VECTOR(1, 2)), *last = NULL;
            int64_t blocks = 0;
            for (int i = 0; i < 4; i++) {
                PROA_SCOPED;
                proa_tensor *y = proa_sum(proa_multiply(x, x));
                if (backward) ck_assert_int_eq(proa_backward(y), PROA_OK);
                if (i == 1) blocks = proa_memory_get_stats().live_blocks;
                if (i == 3) ck_assert_int_eq(proa_memory_get_stats().live_blocks, blocks);
                if (i == 3 && kept) last = proa_keep(y); /* outlives x */
            }
            proa_drop(x);
            proa_release(last);
        }
    ck_assert_int_eq(proa_memory_get_stats().live_blocks, before);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

/* ---- size ------------------------------------------------------------------------------ */

enum { LONG = 100000 };

START_TEST(long_chains_need_no_stack)
{
    int64_t live = proa_memory_get_stats().live_bytes;
    PROA_SCOPE {
        proa_tensor *x = leaf(VECTOR(1)), *h = proa_keep(x);
        for (int i = 0; i < LONG; i++) {
            PROA_SCOPED;
            proa_tensor *next = proa_keep(proa_scale(h, .bias = 1.0));
            ck_assert_ptr_nonnull(next);
            proa_release(h);
            h = next;
        }
        CHECK(h, LONG + 1);
        ck_assert_int_eq(proa_backward(h), PROA_OK);
        CHECK(proa_grad_of(x), 1);
        proa_release(h);
    }
    PROA_SCOPE { /* freed without a backward; each node owns what it saved */
        proa_tensor *h = proa_keep(leaf(VECTOR(1)));
        for (int i = 0; i < LONG; i++) {
            PROA_SCOPED;
            proa_tensor *next = proa_keep(proa_multiply(h, h));
            proa_release(h);
            h = next;
        }
        proa_release(h);
    }
    ck_assert_int_eq(proa_memory_get_stats().live_bytes, live);
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

/* ---- the checker ----------------------------------------------------------------------- */

static proa_tensors smooth(proa_tensors in, void *context)
{
    (void)context;
    return one(proa_matmul(proa_tanh(in.at[0]), proa_exp(in.at[1])));
}

static proa_tensors wrong_forward(proa_tensors in, void *context)
{
    (void)context;
    return one(proa_multiply(in.at[0], in.at[0]));
}
static proa_tensors wrong_backward(proa_tensors in, proa_tensors out, proa_tensors grads, void *context)
{
    (void)out, (void)context;
    return one(proa_multiply(grads.at[0], in.at[0])); /* half of what it should be */
}
static const proa_function wrong = {.name = "wrong", .forward = wrong_forward, .backward = wrong_backward};
static proa_tensors applies_wrong(proa_tensors in, void *context) { return proa_apply(&wrong, in, context); }

START_TEST(gradcheck_passes_and_fails)
{
    proa_tensor *a = leaf(doubles(PROA_SHAPE(2, 3), (double[]){.1, -.2, .3, .4, -.5, .6}));
    proa_tensor *b = leaf(doubles(PROA_SHAPE(3, 2), (double[]){.3, .2, -.1, .5, .7, -.9}));
    ck_assert_int_eq(proa_gradcheck(smooth, PROA_LIST(a, b), NULL, (proa_gradcheck_opts){0}), PROA_OK);
    ck_assert_int_eq(
        proa_gradcheck(smooth, PROA_LIST(a, b), NULL, (proa_gradcheck_opts){.order = 2, .rtol = 1e-4}),
        PROA_OK);
    ck_assert_int_ne(proa_gradcheck(applies_wrong, PROA_LIST(a), NULL, (proa_gradcheck_opts){0}), PROA_OK);
    expect_error(PROA_ERR_NUMERIC, "gradcheck");
    ck_assert_int_eq(proa_finish(stderr), 0);
}
END_TEST

SUITE("autograd", adds_up_over_uses_and_calls, gradients_in_one_buffer, takes_several_outputs_and_gradients,
      fits_broadcast_gradients, graphs_are_freed_or_retained, history_is_needed, stop_gradient_and_no_grad,
      grad_returns_and_adds_to_no_leaf, grad_of_an_output_by_itself, gradients_have_gradients,
      backward_of_a_gradient_reaches_leaves, hooks_change_what_flows, hooks_may_remove_themselves,
      retained_gradients, custom_functions, a_backward_inside_a_backward, recompute_equals_plain,
      saved_tensors_are_checked, in_place_moves_on, in_place_on_what_was_saved,
      in_place_through_a_transposed_view, in_place_through_a_slice, stale_views_are_refused,
      leaves_own_no_graph, long_chains_need_no_stack, gradcheck_passes_and_fails)
