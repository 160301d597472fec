/* Gradients of unary mathematics: each is the incoming gradient times the derivative. Public ops only. */
#include "ops/elementwise/rules.h"

#define LN2 0.69314718055994530942
#define LN10 2.30258509299404568402

ZERO_VJP(sign)
ZERO_VJP(floor)
ZERO_VJP(ceil)
ZERO_VJP(round)
ZERO_VJP(trunc)

proa_status neg_vjp(const proa_neg_args *a, proa_neg_grads *g)
{
    (void)a;
    g->d_x = proa_neg(g->d_out);
    return proa_error();
}

/* Real: the sign; complex: the direction x / |x|, 0 at 0. */
proa_status abs_vjp(const proa_abs_args *a, proa_abs_grads *g)
{
    if (!rule_is_complex(a->x)) {
        g->d_x = proa_multiply(g->d_out, proa_sign(a->x));
        return proa_error();
    }
    proa_tensor *r = proa_abs(a->x), *zero = proa__zero_of(r);
    proa_tensor *safe = proa_where(proa_equal(r, zero), proa_scale(zero, .bias = 1), r);
    proa_dtype d = (proa_dtype)a->x->dtype;
    g->d_x = proa_multiply(a->x, proa_cast(proa_divide(g->d_out, safe), d));
    return proa_error();
}

/* The angle of a + ib turns by i x / |x|². */
proa_status angle_vjp(const proa_angle_args *a, proa_angle_grads *g)
{
    if (!rule_is_complex(a->x)) {
        g->d_x = SCALED(g->d_out, 0);
        return proa_error();
    }
    proa_tensor *r = proa_divide(g->d_out, proa_square(proa_abs(a->x)));
    g->d_x = proa_complex(proa_multiply(SCALED(proa_imag(a->x), -1), r), proa_multiply(proa_real(a->x), r));
    return proa_error();
}

/* ---- exponentials, logarithms, roots ---- */
UNARY_VJP(exp, a->out)
UNARY_VJP(expm1, AFFINE(a->out, 1, 1))
UNARY_VJP(log, proa_reciprocal(a->x))
UNARY_VJP(log2, proa_reciprocal(SCALED(a->x, LN2)))
UNARY_VJP(log10, proa_reciprocal(SCALED(a->x, LN10)))
UNARY_VJP(log1p, proa_reciprocal(AFFINE(a->x, 1, 1)))
UNARY_VJP(sqrt, SCALED(proa_reciprocal(a->out), 0.5))
UNARY_VJP(rsqrt, SCALED(proa_multiply(a->out, proa_square(a->out)), -0.5))
UNARY_VJP(square, SCALED(a->x, 2))
UNARY_VJP(reciprocal, proa_neg(proa_square(a->out)))

/* ---- trigonometry ---- */
/* s·x² + b */
#define QUADRATIC(s, b) AFFINE(proa_square(a->x), s, b)
UNARY_VJP(sin, proa_cos(a->x))
UNARY_VJP(cos, proa_neg(proa_sin(a->x)))
UNARY_VJP(tan, AFFINE(proa_square(proa_tan(a->x)), 1, 1))
UNARY_VJP(asin, proa_rsqrt(QUADRATIC(-1, 1)))
UNARY_VJP(acos, proa_neg(proa_rsqrt(QUADRATIC(-1, 1))))
UNARY_VJP(atan, proa_reciprocal(QUADRATIC(1, 1)))
UNARY_VJP(sinh, proa_cosh(a->x))
UNARY_VJP(cosh, proa_sinh(a->x))
UNARY_VJP(asinh, proa_rsqrt(QUADRATIC(1, 1)))
/* two roots, so that complex x stays on the right branch */
UNARY_VJP(acosh, proa_multiply(proa_rsqrt(AFFINE(a->x, 1, -1)), proa_rsqrt(AFFINE(a->x, 1, 1))))
UNARY_VJP(atanh, proa_reciprocal(QUADRATIC(-1, 1)))

proa_status tanh_vjp(const proa_tanh_args *a, proa_tanh_grads *g)
{
    if (rule_is_complex(a->out))
        g->d_x = proa_multiply(g->d_out, rule_conj(AFFINE(proa_square(a->out), -1, 1)));
    else g->d_x = proa_tanh_grad(a->out, g->d_out);
    return proa_error();
}

/* ---- special functions ---- */
UNARY_VJP(erf, SCALED(proa_exp(proa_neg(proa_square(a->x))), 1.12837916709551257390))
UNARY_VJP(erfinv, SCALED(proa_exp(proa_square(a->out)), 0.88622692545275801365))
UNARY_VJP(lgamma, proa_digamma(a->x))

proa_status digamma_vjp(const proa_digamma_args *a, proa_digamma_grads *g)
{
    g->d_x = proa_digamma_grad(a->x, g->d_out);
    return proa_error();
}

/* Derivatives of the Bessel functions; what is written as a quotient by x is 1/2 at 0. */
static proa_tensor *bessel_slope(proa_tensor *x, proa_tensor *lower, proa_tensor *own, bool scaled)
{
    proa_tensor *zero = proa__zero_of(x), *none = proa_equal(x, zero);
    proa_tensor *inverse = proa_reciprocal(proa_where(none, AFFINE(zero, 0, 1), x));
    if (scaled) inverse = proa_add(proa_sign(x), inverse);
    return proa_where(none, AFFINE(zero, 0, 0.5), proa_subtract(lower, proa_multiply(own, inverse)));
}
UNARY_VJP(i0, proa_i1(a->x))
UNARY_VJP(i0e, proa_subtract(proa_i1e(a->x), proa_multiply(proa_sign(a->x), a->out)))
UNARY_VJP(i1, bessel_slope(a->x, proa_i0(a->x), a->out, false))
UNARY_VJP(i1e, bessel_slope(a->x, proa_i0e(a->x), a->out, true))
UNARY_VJP(polygamma, proa_polygamma(a->x, a->order + 1))

/* 1 / (x (1 − x)) between eps and 1 − eps, 0 outside. */
proa_status logit_vjp(const proa_logit_args *a, proa_logit_grads *g)
{
    proa_tensor *zero = proa__zero_of(a->x), *low = AFFINE(zero, 0, a->eps),
                *high = AFFINE(zero, 0, 1 - a->eps);
    proa_tensor *out = proa_logical_or(proa_less_than(a->x, low), proa_greater_than(a->x, high));
    proa_tensor *slope = proa_reciprocal(proa_multiply(a->x, AFFINE(a->x, -1, 1)));
    g->d_x = proa_multiply(g->d_out, proa_where(out, zero, slope));
    return proa_error();
}

proa_status stanh_vjp(const proa_stanh_args *a, proa_stanh_grads *g)
{
    proa_tensor *t = proa_tanh(SCALED(a->x, a->scale_a));
    double s = a->scale_a * a->scale_b;
    g->d_x = proa_multiply(g->d_out, rule_conj(AFFINE(proa_square(t), -s, s)));
    return proa_error();
}
