/* exp, log, log1p, sigmoid and tanh for kernel bodies that are compiled for float and for double, where
 * FN(vexp) is vexp_float or vexp_double. The float32 versions are those of the elementwise ops; float64's exp
 * is branch-free here, so that loops vectorize. May use kernels/scalar_math.h; for kernel files. */
#ifndef PROA_KERNELS_SIMD_MATH_H
#define PROA_KERNELS_SIMD_MATH_H

#include "kernels/scalar_math.h"

static inline float vexp_float(float x) { return m_exp_F32(x); }

/* e^x to 1 ulp: x = n·ln 2 + r. Adding 1.5·2^52 rounds to an integer in the low bits; multiplying by 2^n in
 * two factors keeps denormal results exact. */
static inline double vexp_double(double x)
{
    double c = x > 710.0 ? 710.0 : x;
    c = c < -746.0 ? -746.0 : c;
    double shifted = c * 1.44269504088896340736 + 6755399441055744.0;
    uint64_t bits, low, high;
    memcpy(&bits, &shifted, 8);
    double n = shifted - 6755399441055744.0;
    double r = c - n * 6.93147180369123816490e-01;
    r = r - n * 1.90821492927058770002e-10;
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
    p = p * r * r + r + 1.0;
    uint64_t k = bits - 0x4338000000000000u + 4096u;
    low = (k >> 1);
    high = k - low;
    low = (low - 2048u + 1023u) << 52;
    high = (high - 2048u + 1023u) << 52;
    double a, b;
    memcpy(&a, &low, 8);
    memcpy(&b, &high, 8);
    return p * a * b;
}

static inline float vsigmoid_float(float x) { return 1.0f / (1.0f + vexp_float(-x)); }
static inline double vsigmoid_double(double x) { return 1.0 / (1.0 + vexp_double(-x)); }

static inline float vtanh_float(float x) { return m_tanh_F32(x); }
static inline double vtanh_double(double x) { return tanh(x); }

static inline float vlog_float(float x) { return m_log_F32(x); }
static inline double vlog_double(double x) { return log(x); }
static inline float vlog1p_float(float x) { return m_log1p_F32(x); }
static inline double vlog1p_double(double x) { return log1p(x); }

#endif
