/* Scalar formulas for one floating type: included by formulas.h with T (type), F(name) (name with the dtype's
 * suffix) and C(name) (the C library's function). Branch-free where that keeps loops in vector registers. */

/* ---- arithmetic ---- */
PROA_FORMULA T F(add)(T x, T y) { return x + y; }
PROA_FORMULA T F(subtract)(T x, T y) { return x - y; }
PROA_FORMULA T F(multiply)(T x, T y) { return x * y; }
PROA_FORMULA T F(divide)(T x, T y) { return x / y; }
/* NaN in either operand gives NaN; fmax and fmin prefer the number. */
PROA_FORMULA T F(maximum)(T x, T y) { return x > y || x != x ? x : y; }
PROA_FORMULA T F(minimum)(T x, T y) { return x < y || x != x ? x : y; }
PROA_FORMULA T F(fmax)(T x, T y) { return x >= y || y != y ? x : y; }
PROA_FORMULA T F(fmin)(T x, T y) { return x <= y || y != y ? x : y; }
PROA_FORMULA T F(elementwise_pow)(T x, T y) { return F(m_pow)(x, y); }
/* A remainder of truncated division with the sign of the divisor y. */
PROA_FORMULA T F(m_floored)(T r, T y) { return r != 0 && (r < 0) != (y < 0) ? r + y : r; }
PROA_FORMULA T F(remainder)(T x, T y) { return F(m_floored)(F(m_fmod)(x, y), y); }
PROA_FORMULA T F(floor_divide)(T x, T y) { return F(m_floor)(x / y); }
PROA_FORMULA T F(atan2)(T x, T y) { return F(m_atan2)(x, y); }
PROA_FORMULA T F(heaviside)(T x, T y) { return x == 0 ? y : x > 0 ? (T)1 : x < 0 ? (T)0 : x; }
PROA_FORMULA T F(lerp)(T x, T y, T w) { return x + w * (y - x); }

/* ---- tests ---- */
#include "ops/elementwise/formulas_tests.h"
PROA_FORMULA uint8_t F(isnan)(T x) { return x != x; }
PROA_FORMULA uint8_t F(isinf)(T x) { return F(m_abs)(x) == (T)INFINITY; }
PROA_FORMULA uint8_t F(isfinite)(T x) { return F(m_abs)(x) < (T)INFINITY; }

/* ---- powers, roots, rounding ---- */
PROA_FORMULA T F(abs)(T x) { return F(m_abs)(x); }
PROA_FORMULA T F(neg)(T x) { return -x; }
PROA_FORMULA T F(conj)(T x) { return x; }
PROA_FORMULA T F(sign)(T x) { return (T)((x > 0) - (x < 0)) + (x != x ? x : 0); }
PROA_FORMULA T F(square)(T x) { return x * x; }
PROA_FORMULA T F(sqrt)(T x) { return F(m_sqrt)(x); }
PROA_FORMULA T F(rsqrt)(T x) { return 1 / F(m_sqrt)(x); }
PROA_FORMULA T F(reciprocal)(T x) { return 1 / x; }
PROA_FORMULA T F(floor)(T x) { return C(floor)(x); }
PROA_FORMULA T F(ceil)(T x) { return C(ceil)(x); }
PROA_FORMULA T F(trunc)(T x) { return C(trunc)(x); }
/* Halves go away from zero, as Paddle rounds. */
PROA_FORMULA T F(round)(T x)
{
    T t = C(trunc)(x), r = F(m_abs)(x - t) >= (T)0.5 ? t + F(m_copysign)(1, x) : t;
    return F(m_copysign)(r, x);
}

/* ---- exponentials, logarithms, trigonometry ---- */
PROA_FORMULA T F(exp)(T x) { return F(m_exp)(x); }
PROA_FORMULA T F(expm1)(T x) { return F(m_expm1)(x); }
PROA_FORMULA T F(log)(T x) { return F(m_log)(x); }
PROA_FORMULA T F(log2)(T x) { return F(m_log2)(x); }
PROA_FORMULA T F(log10)(T x) { return F(m_log10)(x); }
PROA_FORMULA T F(log1p)(T x) { return F(m_log1p)(x); }
PROA_FORMULA T F(sin)(T x) { return C(sin)(x); }
PROA_FORMULA T F(cos)(T x) { return C(cos)(x); }
PROA_FORMULA T F(tan)(T x) { return C(tan)(x); }
PROA_FORMULA T F(asin)(T x) { return F(m_asin)(x); }
PROA_FORMULA T F(acos)(T x) { return F(m_acos)(x); }
PROA_FORMULA T F(atan)(T x) { return F(m_atan)(x); }
PROA_FORMULA T F(sinh)(T x) { return F(m_sinh)(x); }
PROA_FORMULA T F(cosh)(T x) { return F(m_cosh)(x); }
PROA_FORMULA T F(tanh)(T x) { return F(m_tanh)(x); }
PROA_FORMULA T F(asinh)(T x) { return C(asinh)(x); }
PROA_FORMULA T F(acosh)(T x) { return C(acosh)(x); }
PROA_FORMULA T F(atanh)(T x) { return C(atanh)(x); }
PROA_FORMULA T F(erf)(T x) { return F(m_erf)(x); }
PROA_FORMULA T F(erfinv)(T x) { return F(m_erfinv)(x); }
PROA_FORMULA T F(lgamma)(T x) { return F(m_lgamma)(x); }
PROA_FORMULA T F(digamma)(T x) { return (T)m_digamma((double)x); }
PROA_FORMULA T F(digamma_grad)(T x, T g) { return g * (T)m_trigamma((double)x); }
PROA_FORMULA T F(i0)(T x) { return (T)m_i0((double)x); }
PROA_FORMULA T F(i0e)(T x) { return (T)m_i0e((double)x); }
PROA_FORMULA T F(i1)(T x) { return (T)m_i1((double)x); }
PROA_FORMULA T F(i1e)(T x) { return (T)m_i1e((double)x); }
PROA_FORMULA T F(polygamma)(T x, T order)
{
    return (T)(order == 0 ? m_digamma((double)x) : m_polygamma((double)x, (int)order));
}
PROA_FORMULA T F(logit)(T x, T eps)
{
    if (eps == 0) return x < 0 || x > 1 ? (T)NAN : C(log)(x / (1 - x));
    x = x < eps ? eps : x > 1 - eps ? 1 - eps : x;
    return C(log)(x / (1 - x));
}
PROA_FORMULA T F(nextafter)(T x, T y) { return C(nextafter)(x, y); }
PROA_FORMULA T F(angle)(T x) { return x < 0 ? (T)3.14159265358979323846 : x != x ? x : 0; }

/* ---- gradients of hot activations: the saved tensor first, then the gradient that came in ---- */
/* x within ±1000, where these slopes have long reached their limits in either precision: products of x and of
 * what vanishes are 0, not NaN, at infinity. */
PROA_FORMULA T F(saturated)(T x)
{
    T r = x > 1000 ? (T)1000 : x;
    return r < -1000 ? (T)-1000 : r;
}
PROA_FORMULA T F(relu_grad)(T out, T g) { return out > 0 ? g : 0; }
PROA_FORMULA T F(relu6_grad)(T out, T g) { return out > 0 && out < 6 ? g : 0; }
PROA_FORMULA T F(hardswish_grad)(T x, T g)
{
    T slope = x * (T)(1.0 / 3) + (T)0.5;
    return x > -3 ? x < 3 ? g * slope : g : 0;
}
/* At 0 as Paddle's on the CPU (on a GPU it takes the other side there). */
PROA_FORMULA T F(leaky_relu_grad)(T x, T g, T slope) { return x >= 0 ? g : slope * g; }
/* Paddle's op has `offset`; the derivative depends only on out and slope. */
PROA_FORMULA T F(hardsigmoid_grad)(T out, T g, T slope, T offset)
{
    (void)offset;
    return out > 0 && out < 1 ? slope * g : 0;
}
PROA_FORMULA T F(softplus_grad)(T x, T g, T beta, T threshold)
{
    T z = x * beta;
    return z > threshold ? g : g * F(sigmoid)(z);
}
/* mish = x t with t = tanh(softplus(x)): t + x (1 − t²) σ(x); with n = e^x, (1 − t²) σ is
 * 4 n (n + 1) / (n (n + 2) + 2)². */
PROA_FORMULA T F(mish_grad)(T x, T g, T threshold)
{
    x = F(saturated)(x);
    T n = F(mish_exp)(x), t = F(mish_tanh)(x, n, threshold), w = 2 / (n * (n + 2) + 2);
    T soft = n * (n + 1) * w * w, line = (1 - t * t) * n / (1 + n);
    return g * (t + x * (x > threshold ? line : soft));
}
PROA_FORMULA T F(sigmoid_grad)(T out, T g) { return g * out * (1 - out); }
PROA_FORMULA T F(tanh_grad)(T out, T g) { return g * (1 - out * out); }
PROA_FORMULA T F(silu_grad)(T x, T g)
{
    x = F(saturated)(x);
    T s = F(sigmoid)(x);
    return g * s * (1 + x * (1 - s));
}
PROA_FORMULA T F(gelu_grad_on)(T x, T g)
{
    x = F(saturated)(x);
    T t = F(m_tanh)(F(gelu_inner)(x)), inner = (T)0.79788456080286535588 * (1 + (T)0.134145 * x * x);
    return g * (T)0.5 * ((1 + t) + x * (1 - t * t) * inner);
}
PROA_FORMULA T F(gelu_grad_off)(T x, T g)
{
    x = F(saturated)(x);
    T density = (T)0.39894228040143267794 * F(m_exp)((T)-0.5 * x * x);
    return g * (F(m_phi)(x) + x * density);
}
