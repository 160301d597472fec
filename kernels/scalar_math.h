/* Scalar primitives of float32 and float64: exp, log, tanh, erf, digamma and their kin. float32's are
 * branch-free, so that loops over them vectorize; float64's are the C library's or those of
 * kernels/scalar_math_f64.h. C11 that CUDA compiles; uses nothing of Proa.
 *
 * Polynomials are minimax fits made for this file, with their errors beside them; errors in ulp hold over
 * the whole range. Results keep NaN, infinities and the sign of zero unless said. */
#ifndef PROA_KERNELS_SCALAR_MATH_H
#define PROA_KERNELS_SCALAR_MATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifndef PROA_FORMULA
#define PROA_FORMULA static inline __attribute__((unused, always_inline))
#endif

/* ---- float32 primitives ---------------------------------------------------------------- */

PROA_FORMULA uint32_t m_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}
PROA_FORMULA float m_float(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}
PROA_FORMULA float m_copysign_F32(float x, float sign)
{
    return m_float((m_bits(x) & 0x7fffffffu) | (m_bits(sign) & 0x80000000u));
}
PROA_FORMULA float m_abs_F32(float x) { return m_float(m_bits(x) & 0x7fffffffu); }

/* 2^shift e^x, with x clamped to `most`: 2 ulp. x = n·ln 2 + r; 2^n in two factors, so that denormal and
 * infinite results come out right. */
PROA_FORMULA float m_exp_scaled_F32(float x, int32_t shift, float most)
{
    float c = x < -104.0f ? -104.0f : x; /* NaN passes through both comparisons */
    c = c > most ? most : c;
    float shifted = c * 1.44269504f + 12582912.0f; /* 1.5·2^23: the sum's low bits are the integer */
    int32_t n = (int32_t)(m_bits(shifted) - 0x4b400000u) + shift;
    float k = shifted - 12582912.0f;
    float r = (c - k * 0.693145752f) - k * 1.42860677e-6f; /* ln 2 = high part (exact products) + low */
    float p = 1.395297012e-03f;                            /* (e^r − 1 − r) / r²: 3.6e-9 */
    p = p * r + 8.370321568e-03f;
    p = p * r + 4.166616799e-02f;
    p = p * r + 1.666650670e-01f;
    p = p * r + 5.000000107e-01f;
    p = p * (r * r) + r + 1.0f;
    int32_t half = n >> 1, rest = n - half;
    return p * m_float((uint32_t)(half + 127) << 23) * m_float((uint32_t)(rest + 127) << 23);
}

#if defined(__CUDACC__)
/* CUDA's: 2 ulp at most, in half the instructions of the polynomials below. */
PROA_FORMULA float m_exp_F32(float x) { return expf(x); }
PROA_FORMULA float m_tanh_F32(float x) { return tanhf(x); }
PROA_FORMULA float m_erf_F32(float x) { return erff(x); }
PROA_FORMULA float m_phi_F32(float x) { return 0.5f * (1.0f + erff(x * 0.707106781f)); }
#else
/* e^x: 2 ulp. */
PROA_FORMULA float m_exp_F32(float x) { return m_exp_scaled_F32(x, 0, 89.0f); }
#endif

/* e^x − 1: 3 ulp. */
PROA_FORMULA float m_expm1_F32(float x)
{
    float p = 1.999289483e-04f; /* (e^x − 1 − x) / x² for |x| ≤ 0.5: 3.1e-9 */
    p = p * x + 1.399745681e-03f;
    p = p * x + 8.333073010e-03f;
    p = p * x + 4.166531547e-02f;
    p = p * x + 1.666666801e-01f;
    p = p * x + 5.000000417e-01f;
    float near = p * (x * x) + x, far = m_exp_F32(x) - 1.0f;
    return m_abs_F32(x) < 0.5f ? near : far;
}

/* log(1 + m) − m for m in [√½ − 1, √2 − 1]. */
PROA_FORMULA float m_log_tail(float m)
{
    float p = 6.915368000e-02f; /* (log(1 + m) − m + m²/2) / m³: 7.3e-10 */
    p = p * m + -1.178980765e-01f;
    p = p * m + 1.187297630e-01f;
    p = p * m + -1.238434848e-01f;
    p = p * m + 1.421865809e-01f;
    p = p * m + -1.666925082e-01f;
    p = p * m + 2.000222661e-01f;
    p = p * m + -2.499998660e-01f;
    p = p * m + 3.333331044e-01f;
    float s = m * m;
    return p * s * m - 0.5f * s;
}

/* Splits x > 0 into 2^e · (1 + m) with m in [√½ − 1, √2 − 1]. */
PROA_FORMULA float m_split(float x, float *e)
{
    float scaled = x < 1.17549435e-38f ? x * 8388608.0f : x;
    float shift = x < 1.17549435e-38f ? -23.0f : 0.0f;
    uint32_t u = m_bits(scaled) - 0x3f3504f3u; /* bits of √½ */
    int32_t n = (int32_t)u >> 23;
    *e = (float)n + shift;
    return m_float((u & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
}

/* Result of log outside the positive finite numbers. */
PROA_FORMULA float m_log_edges(float x, float y)
{
    y = x == 0.0f ? -INFINITY : y;
    y = x < 0.0f ? NAN : y;
    return x < INFINITY ? y : x; /* +inf and NaN are their own logarithms */
}

/* log x: 2 ulp. */
PROA_FORMULA float m_log_F32(float x)
{
    float e, m = m_split(x, &e);
    float tail = m_log_tail(m) + e * -2.12194440e-4f; /* ln 2 = 0.693359375 − 2.12194440e-4 */
    return m_log_edges(x, (tail + m) + e * 0.693359375f);
}

/* log(1 + x): 3 ulp; corrects for the rounding error of 1 + x. */
PROA_FORMULA float m_log1p_F32(float x)
{
    float u = 1.0f + x, lost = x < 1.0f ? x - (u - 1.0f) : 1.0f - (u - x);
    float y = m_log_F32(u) + lost / u;
    y = u == 1.0f ? x : y;
    return u > 0.0f && u < INFINITY ? y : m_log_F32(u);
}

/* log(1 + x) for x in [0, 1]: log1p without its special cases. */
PROA_FORMULA float m_log1p_unit_F32(float x)
{
    float u = 1.0f + x, lost = x - (u - 1.0f);
    uint32_t above = m_bits(u) - 0x3f3504f3u; /* relative to the bits of √½ */
    float e = (float)((int32_t)above >> 23), m = m_float((above & 0x007fffffu) + 0x3f3504f3u) - 1.0f;
    float tail = m_log_tail(m) + e * -2.12194440e-4f;
    return (tail + m) + e * 0.693359375f + lost / u;
}

#if !defined(__CUDACC__)
/* tanh x: 3 ulp. */
PROA_FORMULA float m_tanh_F32(float x)
{
    float a = m_abs_F32(x), s = x * x;
    float p = -5.717036552e-03f; /* (tanh x / x − 1) / x² for |x| ≤ 0.625: 4.1e-9 */
    p = p * s + 2.065057899e-02f;
    p = p * s + -5.374349526e-02f;
    p = p * s + 1.333149125e-01f;
    p = p * s + -3.333328392e-01f;
    float near = x + x * (s * p);
    float far = 1.0f - 2.0f / (m_exp_F32(2.0f * a) + 1.0f);
    return a < 0.625f ? near : m_copysign_F32(far, x);
}

/* erf x: 3 ulp. */
PROA_FORMULA float m_erf_F32(float x)
{
    float a = m_abs_F32(x), s = x * x;
    float p = 7.889119517e-05f; /* erf x / x − 1 for |x| ≤ 1: 1.2e-9 */
    p = p * s + -8.020841275e-04f;
    p = p * s + 5.189535339e-03f;
    p = p * s + -2.685444459e-02f;
    p = p * s + 1.128360018e-01f;
    p = p * s + -3.761262714e-01f;
    p = p * s + 1.283791659e-01f;
    float near = x + x * p;
    float c = a > 4.0f ? 4.0f : a;
    float q = -2.090955560e-05f; /* log(1 − erf x) for 0.9 ≤ x ≤ 4, weighted by 1 − erf x: 5.4e-11 */
    q = q * c + 4.323030052e-04f;
    q = q * c + -4.160526993e-03f;
    q = q * c + 2.509149678e-02f;
    q = q * c + -1.082366193e-01f;
    q = q * c + -6.333866466e-01f;
    q = q * c + -1.129495159e+00f;
    q = q * c + 1.705520305e-04f;
    float far = m_copysign_F32(1.0f - m_exp_F32(q), x);
    return a < 0.9375f ? near : a >= 0.9375f ? far : x;
}

/* Φ(x) of the standard normal distribution, to 1.6e-7; where x < 0, for x > −5 to 1e-6 of itself. */
PROA_FORMULA float m_phi_F32(float x)
{
    float a = m_abs_F32(x), c = a > 14.0f ? 14.0f : a, t = (c - 2.5f) / (c + 2.5f);
    float p = -1.475388272e-04f; /* e^(a²/2) Φ(−a), weighted by e^(−0.35 a): 3.7e-8 of it */
    p = p * t + -3.171755816e-04f;
    p = p * t + 7.996212807e-04f;
    p = p * t + 2.932363190e-03f;
    p = p * t + -5.119759124e-03f;
    p = p * t + -2.454611100e-02f;
    p = p * t + 1.131354943e-01f;
    p = p * t + -2.280699015e-01f;
    p = p * t + 1.413313299e-01f;
    float tail = p * m_exp_F32(-0.5f * x * x);
    return x < 0.0f ? tail : 1.0f - tail;
}
#endif

/* sin r and cos r for |r| ≤ π/4, s = r². */
PROA_FORMULA float m_sin_near(float r, float s)
{
    float p = -1.951726736e-04f; /* (sin r / r − 1) / s: 3.6e-9 */
    p = p * s + 8.332177997e-03f;
    p = p * s + -1.666665524e-01f;
    return r + r * s * p;
}
PROA_FORMULA float m_cos_near(float s)
{
    float p = 2.443841549e-05f; /* (cos r − 1 + s/2) / s²: 9.5e-11 */
    p = p * s + -1.388736768e-03f;
    p = p * s + 4.166664556e-02f;
    return 1.0f - (0.5f * s - s * s * p);
}

/* x = k·π/2 + r for |x| < 10^6, in double; the high part of π/2 has 33 bits, so that k times it is exact.
 * Returns r; the low bits of q are those of k. */
PROA_FORMULA float m_quarter(float x, uint32_t *q)
{
    double shifted = (double)x * 0.63661977236758134308 + 6755399441055744.0,
           k = shifted - 6755399441055744.0;
    *q = (uint32_t)(int32_t)(float)k;
    return (float)(((double)x - k * 1.57079632673412561417) - k * 6.07710050650619224932e-11);
}

/* sin (quarter 0) or cos (quarter 1) of x: 2 ulp where m_sin_is_quick_F32 holds. */
PROA_FORMULA float m_sine_quick_F32(float x, uint32_t quarter)
{
    uint32_t q;
    float r = m_quarter(x, &q), s = r * r;
    q += quarter;
    float value = (q & 1u) ? m_cos_near(s) : m_sin_near(r, s);
    return m_float(m_bits(value) ^ (q & 2u) << 30);
}
PROA_FORMULA int m_sin_is_quick_F32(float x) { return m_abs_F32(x) < 1e6f; }
PROA_FORMULA int m_cos_is_quick_F32(float x) { return m_sin_is_quick_F32(x); }
PROA_FORMULA float m_sin_quick_F32(float x) { return x == 0.0f ? x : m_sine_quick_F32(x, 0); }
PROA_FORMULA float m_cos_quick_F32(float x) { return m_sine_quick_F32(x, 1); }

PROA_FORMULA float m_sqrt_F32(float x) { return sqrtf(x); }
#if defined(__CUDACC__)
PROA_FORMULA float m_pow_F32(float x, float y) { return powf(x, y); }
#else
/* 2^t for |t| ≤ 1000: relative error 5e-11. */
PROA_FORMULA double m_exp2_double(double t)
{
    double shifted = t + 6755399441055744.0, r = t - (shifted - 6755399441055744.0);
    double p = 1.531653938002437e-05;
    p = p * r + 1.5469811275997596e-04;
    p = p * r + 1.3333422314578429e-03;
    p = p * r + 9.618025355194435e-03;
    p = p * r + 5.5504109765115418e-02;
    p = p * r + 2.4022651215452312e-01;
    p = p * r + 6.931471805349032e-01;
    p = p * r + 9.999999999593563e-01;
    uint64_t bits, power;
    double scale;
    memcpy(&bits, &shifted, sizeof bits);
    power = (bits - 0x4338000000000000u + 1023u) << 52;
    memcpy(&scale, &power, sizeof scale);
    return p * scale;
}

/* x^y: 1 ulp, with the C library's special cases. |x|^y = 2^(y log2 |x|) in double. */
PROA_FORMULA float m_pow_F32(float x, float y)
{
    float a = m_abs_F32(x), e, m = m_split(a, &e);
    double t = (double)m / (2.0 + (double)m), s = t * t;
    double p = 0.2829362933320939; /* log2((1 + t) / (1 − t)) / t: 8.2e-14 */
    p = p * s + 0.31990324657104;
    p = p * s + 0.41220931001316996;
    p = p * s + 0.5770779418180362;
    p = p * s + 0.9617966941151307;
    p = p * s + 2.885390081777852;
    double l = (double)e + t * p;
    l = a == 0.0f ? -(double)INFINITY : l;
    l = a < INFINITY ? l : (double)a; /* +inf and NaN */
    double w = (double)y * l;
    w = w < -200.0 ? -200.0 : w;
    w = w > 200.0 ? 200.0 : w;
    float r = (float)m_exp2_double(w), half = 0.5f * y;
    r = a == 1.0f ? 1.0f : r;
    uint32_t whole = floorf(y) == y, odd = whole & (uint32_t)(floorf(half) != half);
    r = ((x < 0.0f) & (a < INFINITY) & !whole) ? NAN : r;
    r = m_float(m_bits(r) ^ (m_bits(x) & odd << 31));
    return ((x == 1.0f) | (y == 0.0f)) ? 1.0f : r;
}
#endif
PROA_FORMULA float m_fmod_F32(float x, float y) { return fmodf(x, y); }
PROA_FORMULA float m_floor_F32(float x) { return floorf(x); }
PROA_FORMULA float m_lgamma_F32(float x) { return (float)lgamma((double)x); }

/* ---- float64 primitives ------------------------------------------------------------------ */

#include "kernels/scalar_math_f64.h"

PROA_FORMULA double m_abs_F64(double x) { return fabs(x); }
PROA_FORMULA double m_copysign_F64(double x, double y) { return copysign(x, y); }
PROA_FORMULA double m_expm1_F64(double x) { return expm1(x); }
PROA_FORMULA double m_log1p_F64(double x) { return log1p(x); }
PROA_FORMULA double m_log1p_unit_F64(double x) { return log1p(x); }
PROA_FORMULA double m_erf_F64(double x) { return erf(x); }
PROA_FORMULA double m_phi_F64(double x) { return 0.5 * (1 + erf(x * 0.70710678118654752440)); }
PROA_FORMULA double m_sqrt_F64(double x) { return sqrt(x); }
PROA_FORMULA double m_pow_F64(double x, double y) { return pow(x, y); }
PROA_FORMULA double m_fmod_F64(double x, double y) { return fmod(x, y); }
PROA_FORMULA double m_floor_F64(double x) { return floor(x); }
PROA_FORMULA double m_lgamma_F64(double x) { return lgamma(x); }

PROA_FORMULA double m_log2_F64(double x) { return log2(x); }
PROA_FORMULA double m_log10_F64(double x) { return log10(x); }
PROA_FORMULA double m_asin_F64(double x) { return asin(x); }
PROA_FORMULA double m_acos_F64(double x) { return acos(x); }
PROA_FORMULA double m_atan_F64(double x) { return atan(x); }
PROA_FORMULA double m_atan2_F64(double y, double x) { return atan2(y, x); }
PROA_FORMULA double m_sinh_F64(double x) { return sinh(x); }
PROA_FORMULA double m_cosh_F64(double x) { return cosh(x); }

#include "kernels/scalar_trig.h"

/* digamma: recurrence up to 10, then the asymptotic series; reflection below 0. At the poles: NaN at negative
 * integers, an infinity of the sign of −x at x = ±0. */
PROA_FORMULA double m_digamma(double x)
{
    double back = 0;
    if (x == 0) return copysign(INFINITY, -x);
    if (x < 0) {
        if (x == floor(x)) return NAN;
        double frac = x - floor(x + 0.5);
        back = -3.14159265358979323846 / tan(3.14159265358979323846 * frac);
        x = 1 - x;
    }
    for (; x < 10; x += 1) back -= 1 / x;
    double s = 1 / (x * x);
    double tail =
        s * (1. / 12 -
             s * (1. / 120 - s * (1. / 252 - s * (1. / 240 - s * (1. / 132 - s * (691. / 32760 - s / 12))))));
    return back + log(x) - 0.5 / x - tail;
}

/* trigamma, digamma's derivative: recurrence up to 10, then the asymptotic series; reflection below 0. */
PROA_FORMULA double m_trigamma(double x)
{
    const double pi = 3.14159265358979323846;
    double sum = 0, sign = 1;
    if (x <= 0) {
        if (x == floor(x)) return INFINITY;
        double s = sin(pi * x);
        sum = pi * pi / (s * s);
        sign = -1;
        x = 1 - x;
    }
    double up = 0;
    for (; x < 10; x += 1) up += 1 / (x * x);
    double s = 1 / (x * x);
    double tail =
        s * (1. / 6 - s * (1. / 30 - s * (1. / 42 - s * (1. / 30 - s * (5. / 66 - s * 691. / 2730)))));
    return sum + sign * (up + (1 + 0.5 / x + tail) / x);
}

/* erf⁻¹: a first guess from the tail's shape, then Newton–Halley steps on erf / erfc. */
PROA_FORMULA double m_erfinv_F64(double x)
{
    double a = fabs(x);
    if (!(a < 1)) return a == 1 ? copysign(INFINITY, x) : NAN;
    if (x == 0) return x;
    double l = log1p(-a * a), k = 4.3307467508 + 0.5 * l; /* 2 / (π·0.147) */
    double y = sqrt(sqrt(k * k - l / 0.147) - k);
    for (int i = 0; i < 3; i++) {
        double miss = a < 0.5 ? erf(y) - a : (1 - a) - erfc(y);
        double step = miss / (1.12837916709551257390 * exp(-y * y));
        y -= step / (1 + y * step);
    }
    return copysign(y, x);
}

#endif
