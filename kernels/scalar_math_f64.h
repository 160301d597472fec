/* Scalar primitives of float64: exp, log, tanh, sine and cosine, branch-free, so that loops over them
 * vectorize; CUDA has the device library's. C11 that CUDA compiles; kernels/scalar_math.h includes it.
 *
 * Argument reductions are those of Cody and Waite, "Software Manual for the Elementary Functions" (1980);
 * polynomials are Taylor's or Chebyshev interpolations made for this file, with their errors beside them. */
#ifndef PROA_KERNELS_SCALAR_MATH_F64_H
#define PROA_KERNELS_SCALAR_MATH_F64_H

#if defined(__CUDACC__)
PROA_FORMULA double m_exp_F64(double x) { return exp(x); }
PROA_FORMULA double m_log_F64(double x) { return log(x); }
PROA_FORMULA double m_tanh_F64(double x) { return tanh(x); }
#else

PROA_FORMULA uint64_t m_bits_double(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}
PROA_FORMULA double m_double(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}
/* 2^(k − 1023) for 0 < k < 2047. */
PROA_FORMULA double m_power_double(uint64_t k) { return m_double(k << 52); }

/* Splits x = n ln 2 + r, |r| ≤ ln 2 / 2 or little more; returns e^r − 1. Adding 1.5·2^52 rounds to an integer
 * in the low bits. */
PROA_FORMULA double m_expm1_near(double x, uint64_t *n)
{
    double shifted = x * 1.44269504088896340736 + 6755399441055744.0, k = shifted - 6755399441055744.0;
    *n = m_bits_double(shifted) - 0x4338000000000000u;
    double r = x - k * 6.93147180369123816490e-01; /* exact */
    r = r - k * 1.90821492927058770002e-10;
    double p = 1.6059043836821613e-10; /* 1/13! */
    p = p * r + 2.0876756987868099e-9;
    p = p * r + 2.5052108385441719e-8;
    p = p * r + 2.7557319223985891e-7;
    p = p * r + 2.7557319223985891e-6;
    p = p * r + 2.4801587301587302e-5;
    p = p * r + 1.9841269841269841e-4;
    p = p * r + 1.3888888888888889e-3;
    p = p * r + 8.3333333333333333e-3;
    p = p * r + 4.1666666666666667e-2;
    p = p * r + 1.6666666666666667e-1;
    p = p * r + 0.5;
    return p * (r * r) + r;
}

/* e^x: 1 ulp. Multiplying by 2^n in two factors keeps denormal results exact. */
PROA_FORMULA double m_exp_F64(double x)
{
    uint64_t n;
    double c = x > 710.0 ? 710.0 : x; /* NaN passes through both comparisons */
    c = c < -746.0 ? -746.0 : c;
    double y = 1.0 + m_expm1_near(c, &n);
    uint64_t low = (n + 4096u) >> 1, high = n + 4096u - low;
    return y * m_power_double(low - 2048u + 1023u) * m_power_double(high - 2048u + 1023u);
}

/* tanh x = t / (t + 2) with t = e^2|x| − 1 = 2^n (e^r − 1) + (2^n − 1): 3 ulp, tiny numbers included. */
PROA_FORMULA double m_tanh_F64(double x)
{
    uint64_t n;
    double a = m_double(m_bits_double(x) & 0x7fffffffffffffffu), c = a > 22.0 ? 22.0 : a;
    double near = m_expm1_near(c + c, &n), power = m_power_double(n + 1023u),
           t = near * power + (power - 1.0);
    double y = t / (t + 2.0);
    return m_double(m_bits_double(y) | (m_bits_double(x) & 0x8000000000000000u));
}

/* log x for positive normal x: 1 ulp. x = 2^e (1 + m) with 1 + m in [√½, √2]; log(1 + m) = 2 artanh t,
 * t = m / (2 + m). */
PROA_FORMULA double m_log_positive(double x)
{
    uint64_t u = m_bits_double(x) - 0x3fe6a09e667f3bcdu; /* bits of √½ */
    /* The exponent as a double: its low bits below those of 1.5·2^52, which is subtracted. */
    double e = m_double(((u >> 52) ^ 0x800u) + 0x4338000000000000u) - (6755399441055744.0 + 2048.0);
    double m = m_double((u & 0x000fffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
    double t = m / (2.0 + m), s = t * t, half = 0.5 * m * m;
    double p = 1.46170375487916504e-01; /* (2 artanh t / t − 2) / s: 4.7e-18 of the result */
    p = p * s + 1.53316740301678606e-01;
    p = p * s + 1.81828905566956023e-01;
    p = p * s + 2.22222111151441609e-01;
    p = p * s + 2.85714286260958905e-01;
    p = p * s + 3.99999999998992384e-01;
    p = p * s + 6.66666666666666963e-01;
    double tail = t * (half + s * p) + e * 1.90821492927058770002e-10; /* ln 2 in two parts */
    return e * 6.93147180369123816490e-01 + (m - (half - tail));
}

/* log x: 1 ulp. */
PROA_FORMULA double m_log_F64(double x)
{
    int tiny = x < 2.2250738585072014e-308;
    double y = m_log_positive(tiny ? x * 18014398509481984.0 : x); /* 2^54 */
    y = tiny ? y - 37.429947750237047 : y;
    y = x == 0.0 ? -(double)INFINITY : y;
    y = x < 0.0 ? (double)NAN : y;
    return x < (double)INFINITY ? y : x; /* +inf and NaN are their own logarithms */
}

/* a − b, and its rounding error (Knuth). */
PROA_FORMULA double m_difference(double a, double b, double *error)
{
    double s = a - b, back = s - a;
    *error = (a - (s - back)) - (b + back);
    return s;
}

/* x = k π/2 + r + low for |x| < 10^6, with π/2 in three parts of 33 bits, so that products with k are exact,
 * and a rest. Returns r, |r| ≤ π/4 or little more; the low bits of q are those of k. */
PROA_FORMULA double m_quarter_double(double x, uint64_t *q, double *low)
{
    double shifted = x * 0.63661977236758134308 + 6755399441055744.0, k = shifted - 6755399441055744.0;
    *q = m_bits_double(shifted);
    double e, f, s = m_difference(x - k * 1.57079632673412561417e+00, k * 6.07710050630396597660e-11, &e);
    s = m_difference(s, k * 2.02226624871116645580e-21, &f);
    double rest = (e + f) - k * 8.47842766036889956997e-32, r = s + rest;
    *low = (s - r) + rest;
    return r;
}

/* sin(r + low) and cos(r + low), s = r². */
PROA_FORMULA double m_sin_near_double(double r, double low, double s)
{
    double p = 1.59181012302741205e-10; /* (sin r / r − 1) / s: 1.8e-17 of sin r / r */
    p = p * s + -2.50511314554279461e-08;
    p = p * s + 2.75573161006830287e-06;
    p = p * s + -1.98412698367549713e-04;
    p = p * s + 8.33333333333094624e-03;
    p = p * s + -1.66666666666666657e-01;
    return r + (r * s * p + low * (1.0 - 0.5 * s));
}
PROA_FORMULA double m_cos_near_double(double r, double low, double s)
{
    double p = -1.13826148685563245e-11; /* (cos r − 1 + s/2) / s²: 8.7e-19 of cos r */
    p = p * s + 2.08761460246897470e-09;
    p = p * s + -2.75573172705603264e-07;
    p = p * s + 2.48015872987634326e-05;
    p = p * s + -1.38888888888873954e-03;
    p = p * s + 4.16666666666666644e-02;
    double half = 0.5 * s, y = 1.0 - half;
    return y + (((1.0 - y) - half) + (s * s * p - r * low));
}

/* sin (quarter 0) or cos (quarter 1) of x: 1 ulp, and tan x: 2 ulp, where m_sin_is_quick_F64 holds. */
PROA_FORMULA int m_sin_is_quick_F64(double x) { return fabs(x) < 1e6; }
PROA_FORMULA int m_cos_is_quick_F64(double x) { return m_sin_is_quick_F64(x); }
PROA_FORMULA int m_tan_is_quick_F64(double x) { return m_sin_is_quick_F64(x); }
PROA_FORMULA double m_sine_quick_F64(double x, uint64_t quarter)
{
    uint64_t q;
    double low, r = m_quarter_double(x, &q, &low), s = r * r;
    q += quarter;
    double y = (q & 1u) ? m_cos_near_double(r, low, s) : m_sin_near_double(r, low, s);
    return m_double(m_bits_double(y) ^ (q & 2u) << 62);
}
PROA_FORMULA double m_sin_quick_F64(double x) { return x == 0.0 ? x : m_sine_quick_F64(x, 0); }
PROA_FORMULA double m_cos_quick_F64(double x) { return m_sine_quick_F64(x, 1); }
PROA_FORMULA double m_tan_quick_F64(double x)
{
    uint64_t q;
    double low, r = m_quarter_double(x, &q, &low), s = r * r;
    double sine = m_sin_near_double(r, low, s), cosine = m_cos_near_double(r, low, s);
    double y = ((q & 1u) ? -cosine : sine) / ((q & 1u) ? sine : cosine);
    return x == 0.0 ? x : y;
}
#endif

#endif
