/* Scalar primitives of float32: hyperbolic and inverse functions, log2, log10, erfinv, lgamma and fmod,
 * branch-free, so that loops over them vectorize; CUDA has the device library's. C11 that CUDA compiles;
 * kernels/scalar_math.h includes it.
 *
 * Argument reductions are those of Cody and Waite, "Software Manual for the Elementary Functions" (1980);
 * polynomials are Chebyshev interpolations made for this file, with their errors beside them. <name>_quick is
 * valid where <name>_is_quick holds. */
#ifndef PROA_KERNELS_SCALAR_TRIG_H
#define PROA_KERNELS_SCALAR_TRIG_H

#if defined(__CUDACC__)
#define M_LIBRARY(name) \
    PROA_FORMULA float m_##name##_F32(float x) { return name##f(x); }
M_LIBRARY(sinh)
M_LIBRARY(cosh)
M_LIBRARY(asin)
M_LIBRARY(acos)
M_LIBRARY(atan)
M_LIBRARY(log2)
M_LIBRARY(log10)
#undef M_LIBRARY
PROA_FORMULA float m_atan2_F32(float y, float x) { return atan2f(y, x); }
PROA_FORMULA float m_erfinv_F32(float x) { return erfinvf(x); }
#else

/* e^|x| / 2, which overflows where sinh and cosh do. */
PROA_FORMULA float m_half_exp(float x) { return m_exp_scaled_F32(m_abs_F32(x), -1, 90.0f); }

/* sinh x: 2 ulp. */
PROA_FORMULA float m_sinh_F32(float x)
{
    float a = m_abs_F32(x), s = x * x, e = m_half_exp(x);
    float p = 2.806280236e-06f; /* (sinh x / x − 1) / s for |x| ≤ 1: 4.7e-9 */
    p = p * s + 1.983810216e-04f;
    p = p * s + 8.333339356e-03f;
    p = p * s + 1.666666716e-01f;
    float near = x + x * (s * p), far = m_copysign_F32(e - 0.25f / e, x);
    return a < 1.0f ? near : far;
}

/* cosh x: 2 ulp. */
PROA_FORMULA float m_cosh_F32(float x)
{
    float e = m_half_exp(x);
    return e + 0.25f / e;
}

/* tan x: 4 ulp where m_sin_is_quick_F32 holds. */
PROA_FORMULA int m_tan_is_quick_F32(float x) { return m_sin_is_quick_F32(x); }
PROA_FORMULA float m_tan_quick_F32(float x)
{
    uint32_t q;
    float r = m_quarter(x, &q), s = r * r, sine = m_sin_near(r, s), cosine = m_cos_near(s);
    float y = ((q & 1u) ? -cosine : sine) / ((q & 1u) ? sine : cosine);
    return x == 0.0f ? x : y;
}

/* arctan t for 0 ≤ t ≤ 1. */
PROA_FORMULA float m_atan_unit(float t)
{
    float s = t * t;
    float p = -2.386997221e-03f; /* (arctan t / t − 1) / s: 2e-8 */
    p = p * s + 1.350777131e-02f;
    p = p * s + -3.587153926e-02f;
    p = p * s + 6.250169128e-02f;
    p = p * s + -8.656880260e-02f;
    p = p * s + 1.103376448e-01f;
    p = p * s + -1.427856833e-01f;
    p = p * s + 1.999973953e-01f;
    p = p * s + -3.333333135e-01f;
    return t + t * (s * p);
}

/* π/2 − r, with π/2 in two parts. */
PROA_FORMULA float m_complement(float r) { return (1.57079637f - r) - 4.37113883e-8f; }

/* arctan x: 2 ulp; arctan x = π/2 − arctan 1/x. */
PROA_FORMULA float m_atan_F32(float x)
{
    float a = m_abs_F32(x), r = m_atan_unit(a > 1.0f ? 1.0f / a : a);
    return m_copysign_F32(a > 1.0f ? m_complement(r) : r, x);
}

/* Angle of the point (x, y): 3 ulp, with the C library's special cases. */
PROA_FORMULA float m_atan2_F32(float y, float x)
{
    float a = m_abs_F32(x), b = m_abs_F32(y);
    float high = b > a ? b : a, low = b > a ? a : b;
    float t = low / high;
    t = low == INFINITY ? 1.0f : t;
    t = high == 0.0f ? 0.0f : t;
    float r = m_atan_unit(t);
    r = b > a ? m_complement(r) : r;
    r = (int32_t)m_bits(x) < 0 ? (3.14159274f - r) - 8.74227766e-8f : r;
    r = a == a && b == b ? r : a + b;
    return m_copysign_F32(r, y);
}

/* arcsin u for 0 ≤ u ≤ 1/2, z = u². */
PROA_FORMULA float m_asin_half(float u, float z)
{
    float p = 3.809396178e-02f; /* (arcsin u / u − 1) / z: 1.8e-8 */
    p = p * z + 2.655066364e-02f;
    p = p * z + 4.500189424e-02f;
    p = p * z + 7.498852909e-02f;
    p = p * z + 1.666667312e-01f;
    return u + u * (z * p);
}

/* arcsin x: 3 ulp; above 1/2, π/2 − 2 arcsin √((1 − x) / 2). */
PROA_FORMULA float m_asin_F32(float x)
{
    float a = m_abs_F32(x), z = a > 0.5f ? 0.5f * (1.0f - a) : a * a;
    float r = m_asin_half(a > 0.5f ? sqrtf(z) : a, z);
    return m_copysign_F32(a > 0.5f ? m_complement(r + r) : r, x);
}

/* arccos x: 2 ulp. */
PROA_FORMULA float m_acos_F32(float x)
{
    float a = m_abs_F32(x), z = a > 0.5f ? 0.5f * (1.0f - a) : a * a;
    float r = m_asin_half(a > 0.5f ? sqrtf(z) : a, z);
    float far = x > 0.0f ? r + r : (3.14159274f - (r + r)) - 8.74227766e-8f;
    return a > 0.5f ? far : m_complement(m_copysign_F32(r, x));
}

/* e of_e + log(1 + m) of_m, a logarithm of any base: 1 ulp. The sum in double keeps exact powers exact. */
PROA_FORMULA float m_log_based(float x, double of_e, double of_m)
{
    float e, m = m_split(x, &e);
    return m_log_edges(x, (float)((double)e * of_e + ((double)m + (double)m_log_tail(m)) * of_m));
}
PROA_FORMULA float m_log2_F32(float x) { return m_log_based(x, 1.0, 1.44269504088896340736); }
PROA_FORMULA float m_log10_F32(float x)
{
    return m_log_based(x, 0.30102999566398119521, 0.43429448190325182765);
}

/* erf⁻¹ x = x f(w), w = −log(1 − x²), f a polynomial in w below 5 and in √w above (Giles, "Approximating the
 * erfinv function", 2010): 3 ulp. */
PROA_FORMULA float m_erfinv_F32(float x)
{
    float a = m_abs_F32(x), w = -m_log_F32((1.0f - a) * (1.0f + a)), c = w - 2.5f;
    float p = -8.931926310e-09f; /* f for w ≤ 5: 5.6e-8 */
    p = p * c + 2.333596782e-08f;
    p = p * c + 4.681313612e-07f;
    p = p * c + -3.463985195e-06f;
    p = p * c + -4.972419902e-06f;
    p = p * c + 2.183493925e-04f;
    p = p * c + -1.252726419e-03f;
    p = p * c + -4.177392926e-03f;
    p = p * c + 2.466402799e-01f;
    p = p * c + 1.501409411e+00f;
    float t = sqrtf(w) - 3.0f;
    float q = -1.351623941e-04f; /* f for 5 ≤ w ≤ 16.7: 1.3e-7 */
    q = q * t + 4.971489398e-05f;
    q = q * t + 1.267453772e-03f;
    q = q * t + -3.619631054e-03f;
    q = q * t + 5.773549899e-03f;
    q = q * t + -7.638297975e-03f;
    q = q * t + 9.434032254e-03f;
    q = q * t + 1.001675248e+00f;
    q = q * t + 2.832977057e+00f;
    float y = x * (w < 5.0f ? p : q);
    return a == 1.0f ? m_copysign_F32(INFINITY, x) : a < 1.0f ? y : NAN;
}

/* log |Γ(x)|: 1 ulp. Stirling's series in double for x ≥ 8; below, Γ(x + 8) / (x (x + 1) … (x + 7)). */
PROA_FORMULA int m_lgamma_is_quick_F32(float x) { return x > 0.0f && x < INFINITY; }
PROA_FORMULA float m_lgamma_quick_F32(float x)
{
    double d = (double)x, product = d;
    for (int i = 1; i < 8; i++) product *= d + i;
    double y = d < 8 ? d + 8 : d, v = 1 / y, s = v * v;
    double p = -0.0295506535947712418; /* Bernoulli numbers B_2k / (2k (2k − 1)) */
    p = p * s + 0.00641025641025641026;
    p = p * s + -0.00191752691752691753;
    p = p * s + 0.000841750841750841751;
    p = p * s + -0.000595238095238095238;
    p = p * s + 0.000793650793650793651;
    p = p * s + -0.00277777777777777778;
    p = p * s + 0.0833333333333333333;
    double series = (y - 0.5) * m_log_positive(y) - y + 0.91893853320467274178 + p * v;
    double r = series - m_log_positive(d < 8 ? product : 1.0);
    return ((x == 1.0f) | (x == 2.0f)) ? 0.0f : (float)r;
}

/* fmod(x, y), exact: with a quotient q below 2^29, q y and x − q y are exact in double, and no quotient is so
 * near to an integer that it rounds up to it. */
PROA_FORMULA int m_fmod_is_quick_F32(float x, float y)
{
    float b = m_abs_F32(y);
    return (m_abs_F32(x) <= 268435456.0f * b) & (b > 0.0f) & (b < INFINITY);
}
PROA_FORMULA float m_fmod_quick_F32(float x, float y)
{
    double a = (double)x, b = (double)y;
    return m_copysign_F32((float)(a - trunc(a / b) * b), x);
}
#endif

#endif
