/* Programs that are built, differentiated, that branch and loop, and compiled functions: each agrees with the
 * same functions called eagerly. */
#include "suite.h"

#include <math.h>
#include <proa/autograd.h>
#include <proa/ops.h>
#include <proa/program.h>
#include <string.h>

static proa_tensors list(int64_t n, proa_tensor *a, proa_tensor *b)
{
    proa_tensors l = {n, proa_scope_alloc(2 * sizeof *l.at)};
    l.at[0] = a;
    l.at[1] = b;
    return l;
}

static proa_tensor *ramp(proa_ints shape, float from, float step)
{
    proa_tensor *t = proa_empty(shape, PROA_F32);
    for (int64_t i = 0; i < proa_numel(t); i++) ((float *)proa_data(t))[i] = from + step * (float)i;
    return t;
}

static proa_tensor *is_positive(proa_tensor *x)
{
    proa_tensor *sum = proa_sum(x);
    return proa_greater_than(sum, proa_full_like(sum, 0));
}

static void same(proa_tensor *a, proa_tensor *b)
{
    ck_assert_msg(a && b, "%s", proa_error_message());
    ck_assert_int_eq(proa_numel(a), proa_numel(b));
    a = proa_assign(a);
    b = proa_assign(b);
    for (int64_t i = 0; i < proa_numel(a); i++)
        ck_assert_float_eq_tol(((float *)proa_data(a))[i], ((float *)proa_data(b))[i], 1e-5f);
}

/* ---- branches -------------------------------------------------------------------------- */

typedef struct branching {
    proa_tensor *x, *w;
} branching;

static proa_tensors double_it(proa_tensors in, void *context)
{
    const branching *b = context;
    (void)in;
    return list(1, proa_multiply(proa_multiply(b->x, b->x), b->w), NULL);
}

static proa_tensors exponential(proa_tensors in, void *context)
{
    const branching *b = context;
    (void)in;
    return list(1, proa_exp(b->x), NULL);
}

/* w·x² if the sum of x is positive, e^x if not. */
static proa_tensors branch(proa_tensors in, void *context)
{
    branching b = {in.at[0], context};
    proa_tensor *positive = is_positive(b.x);
    return proa_cond(positive, double_it, exponential, &b);
}

/* x doubled until its largest element is over 100, starting from w·x: how often depends on the data. */
static proa_tensors small(proa_tensors in, void *context)
{
    (void)context;
    return list(1, proa_less_than(proa_max(in.at[0]), proa_full_like(proa_max(in.at[0]), 100)), NULL);
}

static proa_tensors grow(proa_tensors in, void *context)
{
    return list(
        2, proa_multiply(proa_multiply(in.at[0], proa_add(in.at[0], proa_full_like(in.at[0], 1.5))), context),
        proa_add(in.at[1], proa_full_like(in.at[1], 1)));
}

static proa_tensors repeat(proa_tensors in, void *context)
{
    proa_tensor *start = proa_multiply(in.at[0], context);
    proa_tensor *count = proa_full(PROA_SHAPE(1), 0, .dtype = PROA_I64);
    return proa_while_loop(small, grow, list(2, start, count), context);
}

/* A branch inside a loop's body. */
static proa_tensors half_or_third(proa_tensors in, void *context)
{
    branching b = {in.at[0], context};
    proa_tensor *large = proa_greater_than(proa_sum(b.x), proa_full_like(proa_sum(b.x), 4));
    proa_tensors next = proa_cond(large, double_it, exponential, &b);
    return list(2, next.at[0], proa_add(in.at[1], proa_full_like(in.at[1], 1)));
}

static proa_tensors fewer(proa_tensors in, void *context)
{
    (void)context;
    return list(1, proa_less_than(in.at[1], proa_full_like(in.at[1], 2)), NULL);
}

static proa_tensors nested(proa_tensors in, void *context)
{
    proa_tensor *count = proa_full_like(proa_sum(in.at[0]), 0, .dtype = PROA_I64);
    return proa_while_loop(fewer, half_or_third, list(2, in.at[0], count), context);
}

typedef proa_tensors (*function)(proa_tensors, void *);

/* fn, compiled for training, against fn called eagerly: values and gradients of input and weight. */
static void compare(function fn, float from, float step)
{
    PROA_SCOPED;
    proa_tensor *w = ramp(PROA_SHAPE(3), 0.5f, 0.25f), *x = ramp(PROA_SHAPE(2, 3), from, step);
    proa_set_stop_gradient(w, false);
    proa_set_stop_gradient(x, false);
    proa_input_spec spec = {.shape = PROA_SHAPE(-1, 3)};
    proa_compiled *c = proa_compile(fn, &spec, 1, w, true);
    ck_assert_msg(c != NULL, "%s", proa_error_message());
    proa_tensors inputs = list(1, x, NULL);
    proa_tensors eager = fn(inputs, w);
    ck_assert_msg(proa_backward(proa_sum(proa_multiply(eager.at[0], eager.at[0]))) == PROA_OK, "%s",
                  proa_error_message());
    proa_tensor *dx = proa_assign(proa_grad_of(x)), *dw = proa_full_like(w, 0);
    if (proa_grad_of(w) != PROA_NONE) dw = proa_assign(proa_grad_of(w)); /* else: the branch did not use it */
    for (int round = 0; round < 2; round++) {
        proa_clear_grad(x);
        proa_clear_grad(w);
        proa_tensors made = proa_compiled_call(c, inputs);
        ck_assert_msg(made.count == eager.count, "%s", proa_error_message());
        same(made.at[0], eager.at[0]);
        ck_assert_msg(proa_backward(proa_sum(proa_multiply(made.at[0], made.at[0]))) == PROA_OK, "%s",
                      proa_error_message());
        same(proa_grad_of(x), dx);
        same(proa_grad_of(w), dw);
    }
    proa_compiled_free(c);
}

START_TEST(branches_agree)
{
    compare(branch, 0.5f, 0.25f);
    compare(branch, -1.5f, 0.25f);
}
END_TEST

START_TEST(loops_agree)
{
    compare(repeat, 0.5f, 0.25f);
    compare(repeat, 300, 1); /* no step at all */
}
END_TEST

START_TEST(nested_control_agrees)
{
    compare(nested, 0.2f, 0.1f);
    compare(nested, 0.6f, 0.1f);
}
END_TEST

/* Random numbers inside a branch: the backward sees the forward's mask. */
static proa_tensors dropped(proa_tensors in, void *context)
{
    const branching *b = context;
    (void)in;
    return list(1, proa_dropout(proa_multiply(b->x, b->w), .p = 0.5).out, NULL);
}

static proa_tensors random_branch(proa_tensors in, void *context)
{
    branching b = {in.at[0], context};
    return proa_cond(is_positive(b.x), dropped, dropped, &b);
}

START_TEST(a_branch_drops_the_same_twice)
{
    proa_tensor *w = ramp(PROA_SHAPE(64), 1, 0), *x = ramp(PROA_SHAPE(4, 64), 1, 0);
    proa_set_stop_gradient(x, false);
    proa_input_spec spec = {.shape = PROA_SHAPE(-1, 64)};
    proa_compiled *c = proa_compile(random_branch, &spec, 1, w, true);
    ck_assert_msg(c != NULL, "%s", proa_error_message());
    proa_tensors out = proa_compiled_call(c, list(1, x, NULL));
    ck_assert_msg(out.count == 1, "%s", proa_error_message());
    ck_assert_int_eq(proa_backward(proa_sum(out.at[0])), PROA_OK);
    same(out.at[0], proa_grad_of(x)); /* x and w are ones: value and gradient are the scaled mask */
    proa_compiled_free(c);
}
END_TEST

/* ---- built programs -------------------------------------------------------------------- */

START_TEST(a_built_program_trains)
{
    proa_program *p = proa_program_new();
    proa_program *was = proa_program_open(p);
    proa_input_spec spec = {.name = "x", .shape = PROA_SHAPE(-1, 4)};
    proa_tensor *x = proa_program_data(p, &spec);
    proa_tensor *w = proa_program_persistable(p, "w", PROA_SHAPE(4, 2), PROA_F32);
    proa_tensor *loss = proa_mean(proa_multiply(proa_tanh(proa_matmul(x, w)), proa_matmul(x, w)));
    ck_assert_ptr_eq(proa_program_current(), p);
    proa_program_open(was);
    proa_tensors none = {0, NULL};
    proa_tensors grads = proa_program_gradients(p, list(1, loss, NULL), list(1, w, NULL), none, none);
    ck_assert_msg(grads.count == 1 && grads.at[0] != PROA_NONE, "%s", proa_error_message());
    ck_assert_str_eq(proa_name_of(grads.at[0]), "w@GRAD");
    proa_program *test = proa_program_clone(p, true);
    ck_assert_int_lt(proa_program_op_count(test, 0), proa_program_op_count(p, 0));

    proa_tensor *value = ramp(PROA_SHAPE(4, 2), -0.3f, 0.1f), *data = ramp(PROA_SHAPE(3, 4), -1, 0.2f);
    proa_executor *e = proa_executor_with(p, (proa_executor_opts){.outputs = list(2, loss, grads.at[0])});
    ck_assert_msg(e != NULL, "%s", proa_error_message());
    ck_assert_int_eq(proa_executor_run(e, list(1, data, NULL)).count, 0); /* w has no data yet */
    ck_assert_int_eq(proa_error(), PROA_ERR_BAD_STATE);
    proa_clear_error();
    proa_executor_free(e);
    ck_assert_int_eq(proa_program_bind(p, "w", value), PROA_OK);
    e = proa_executor_with(p, (proa_executor_opts){.outputs = list(2, loss, grads.at[0])});
    proa_tensors out = proa_executor_run(e, list(1, data, NULL));
    ck_assert_msg(out.count == 2, "%s", proa_error_message());

    proa_set_stop_gradient(value, false);
    proa_tensor *eager =
        proa_mean(proa_multiply(proa_tanh(proa_matmul(data, value)), proa_matmul(data, value)));
    ck_assert_int_eq(proa_backward(eager), PROA_OK);
    same(out.at[0], eager);
    same(out.at[1], proa_grad_of(value));
    proa_executor_free(e);
    proa_program_free(test);
    proa_program_free(p);
}
END_TEST

/* ---- refusals -------------------------------------------------------------------------- */

static proa_tensor *leaked;

static proa_tensors leak(proa_tensors in, void *context)
{
    (void)in;
    leaked = proa_exp(context);
    return list(1, leaked, NULL);
}

static proa_tensors use_leaked(proa_tensors in, void *context)
{
    (void)context;
    proa_cond(is_positive(in.at[0]), leak, leak, in.at[0]);
    return list(1, proa_add(leaked, in.at[0]), NULL);
}

static proa_tensors two(proa_tensors in, void *context)
{
    (void)in;
    return list(2, context, context);
}

static proa_tensors uneven(proa_tensors in, void *context)
{
    (void)context;
    return proa_cond(is_positive(in.at[0]), leak, two, in.at[0]);
}

START_TEST(what_cannot_be_captured_is_refused)
{
    proa_input_spec spec = {.shape = PROA_SHAPE(-1, 3)};
    ck_assert_ptr_null(proa_capture(use_leaked, &spec, 1, NULL));
    ck_assert_ptr_nonnull(strstr(proa_error_message(), "made inside a branch"));
    proa_clear_error();
    ck_assert_ptr_null(proa_capture(uneven, &spec, 1, NULL));
    ck_assert_ptr_nonnull(strstr(proa_error_message(), "returns 1 tensors, the other 2"));
    proa_clear_error();
}
END_TEST

SUITE("control", branches_agree, loops_agree, nested_control_agrees, a_branch_drops_the_same_twice,
      a_built_program_trains, what_cannot_be_captured_is_refused)
