/* Gradients of arithmetic, mathematics and conversions, from public ops only. A rule ignores broadcasting and
 * complex-to-real conversion, which autograd undoes, and reads only the tensors that Paddle's own gradient op
 * takes. */
#include "core/internal.h"
#include "core/tensor.h"
#include "ops/elementwise/rules.h"

/* ---- binary ---- */

proa_status add_vjp(const proa_add_args *a, proa_add_grads *g)
{
    (void)a;
    g->d_x = g->d_out;
    g->d_y = g->d_out;
    return proa_error();
}

proa_status subtract_vjp(const proa_subtract_args *a, proa_subtract_grads *g)
{
    (void)a;
    g->d_x = g->d_out;
    if (g->want_y) g->d_y = proa_neg(g->d_out);
    return proa_error();
}

proa_status multiply_vjp(const proa_multiply_args *a, proa_multiply_grads *g)
{
    if (g->want_x) g->d_x = proa_multiply(g->d_out, rule_conj(a->y));
    if (g->want_y) g->d_y = proa_multiply(g->d_out, rule_conj(a->x));
    return proa_error();
}

proa_status divide_vjp(const proa_divide_args *a, proa_divide_grads *g)
{
    proa_tensor *dx = proa_divide(g->d_out, rule_conj(a->y));
    if (g->want_x) g->d_x = dx;
    if (g->want_y) g->d_y = proa_neg(proa_multiply(dx, rule_conj(a->out)));
    return proa_error();
}

/* x mod y = x − ⌊x / y⌋ y */
proa_status remainder_vjp(const proa_remainder_args *a, proa_remainder_grads *g)
{
    g->d_x = g->d_out;
    if (g->want_y) g->d_y = proa_neg(proa_multiply(g->d_out, proa_floor_divide(a->x, a->y)));
    return proa_error();
}

proa_status elementwise_pow_vjp(const proa_elementwise_pow_args *a, proa_elementwise_pow_grads *g)
{
    if (g->want_x) {
        proa_tensor *less = proa_scale(a->y, .bias = -1);
        g->d_x = proa_multiply(g->d_out, proa_multiply(a->y, proa_elementwise_pow(a->x, less)));
    }
    if (g->want_y)
        g->d_y = proa_multiply(g->d_out, proa_multiply(proa_log(a->x), proa_elementwise_pow(a->x, a->y)));
    return proa_error();
}

#define PICK_VJP(op, test)                                                      \
    proa_status op##_vjp(const proa_##op##_args *a, proa_##op##_grads *g)       \
    {                                                                           \
        proa_tensor *first = test(a->x, a->y), *zero = proa__zero_of(g->d_out); \
        if (g->want_x) g->d_x = proa_where(first, g->d_out, zero);              \
        if (g->want_y) g->d_y = proa_where(first, zero, g->d_out);              \
        return proa_error();                                                    \
    }
PICK_VJP(maximum, proa_greater_than)
PICK_VJP(minimum, proa_less_than)

static proa_tensor *first_or_nan(proa_tensor *test, proa_tensor *y)
{
    return proa_logical_or(test, proa_isnan(y));
}
#define FMAX_TEST(x, y) first_or_nan(proa_greater_equal(x, y), y)
#define FMIN_TEST(x, y) first_or_nan(proa_less_equal(x, y), y)
PICK_VJP(fmax, FMAX_TEST)
PICK_VJP(fmin, FMIN_TEST)

proa_status heaviside_vjp(const proa_heaviside_args *a, proa_heaviside_grads *g)
{
    proa_tensor *zero = proa__zero_of(g->d_out);
    if (g->want_x) g->d_x = proa_scale(g->d_out, .scale = PROA_SCALAR(0.0));
    if (g->want_y) g->d_y = proa_where(proa_equal(a->x, zero), g->d_out, zero);
    return proa_error();
}

proa_status atan2_vjp(const proa_atan2_args *a, proa_atan2_grads *g)
{
    proa_tensor *scaled = proa_divide(g->d_out, proa_add(proa_square(a->x), proa_square(a->y)));
    if (g->want_x) g->d_x = proa_multiply(scaled, a->y);
    if (g->want_y) g->d_y = proa_neg(proa_multiply(scaled, a->x));
    return proa_error();
}

proa_status lerp_vjp(const proa_lerp_args *a, proa_lerp_grads *g)
{
    proa_tensor *second = proa_multiply(g->d_out, a->weight);
    if (g->want_y) g->d_y = second;
    if (g->want_x) g->d_x = proa_subtract(g->d_out, second);
    return proa_error();
}

proa_status where_vjp(const proa_where_args *a, proa_where_grads *g)
{
    proa_tensor *zero = proa__zero_of(g->d_out);
    if (g->want_x) g->d_x = proa_where(a->condition, g->d_out, zero);
    if (g->want_y) g->d_y = proa_where(a->condition, zero, g->d_out);
    return proa_error();
}

/* ---- numbers as operands ---- */

proa_status scale_vjp(const proa_scale_args *a, proa_scale_grads *g)
{
    proa_scalar by = a->scale;
    if (by.kind == PROA_SCALAR_COMPLEX) by.im = -by.im; /* the conjugate, as for every product */
    if (by.kind == PROA_SCALAR_TENSOR && rule_is_complex(by.tensor)) by.tensor = proa_conj(by.tensor);
    g->d_x = proa_scale(g->d_out, .scale = by);
    return proa_error();
}

proa_status clip_vjp(const proa_clip_args *a, proa_clip_grads *g)
{
    /* Inside, ends excluded, as Paddle has it: x equals its clipped self and no limit. */
    proa_tensor *zero = proa__zero_of(g->d_out), *d = g->d_out;
    if (a->min.kind != PROA_SCALAR_NONE)
        d = proa_where(proa_greater_than(a->x, rule_number(&a->min, a->x)), d, zero);
    if (a->max.kind != PROA_SCALAR_NONE)
        d = proa_where(proa_less_than(a->x, rule_number(&a->max, a->x)), d, zero);
    g->d_x = d;
    return proa_error();
}

proa_status pow_vjp(const proa_pow_args *a, proa_pow_grads *g)
{
    if (a->y.kind == PROA_SCALAR_TENSOR) {
        proa_tensor *y = rule_number(&a->y, a->x), *less = proa_scale(y, .bias = -1);
        g->d_x = proa_multiply(g->d_out, proa_multiply(y, proa_elementwise_pow(a->x, less)));
        return proa_error();
    }
    double y = a->y.kind == PROA_SCALAR_FLOAT ? a->y.f : (double)a->y.i;
    if (y == 0) g->d_x = proa_scale(g->d_out, .scale = PROA_SCALAR(0.0));
    else if (y == 1) g->d_x = g->d_out;
    else {
        proa_tensor *power = y == 2 ? a->x : proa_pow(a->x, y - 1);
        g->d_x = proa_multiply(g->d_out, proa_scale(power, .scale = PROA_SCALAR(y)));
    }
    return proa_error();
}

/* ---- conversions ---- */

proa_status cast_vjp(const proa_cast_args *a, proa_cast_grads *g)
{
    g->d_x = proa_cast(g->d_out, (proa_dtype)a->x->dtype);
    return proa_error();
}

PASS_VJP(assign)

/* The engine converts a complex gradient to the real input's dtype by its real part, and the reverse. */
proa_status real_vjp(const proa_real_args *a, proa_real_grads *g)
{
    g->d_x = proa_cast(g->d_out, (proa_dtype)a->x->dtype);
    return proa_error();
}

proa_status imag_vjp(const proa_imag_args *a, proa_imag_grads *g)
{
    (void)a;
    g->d_x = proa_complex(proa_full_like(g->d_out, 0), g->d_out);
    return proa_error();
}

proa_status conj_vjp(const proa_conj_args *a, proa_conj_grads *g)
{
    (void)a;
    g->d_x = rule_conj(g->d_out);
    return proa_error();
}
