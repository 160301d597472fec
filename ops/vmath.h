/* exp, sigmoid and tanh without branches or library calls, so that loops over them become vector code at
 * every CPU level. Accurate to 2 ulp. Needs nothing but C; for kernel files. */
#ifndef PROA_OPS_VMATH_H
#define PROA_OPS_VMATH_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/* 2^n as bits is added to the exponent in two halves, so that results down to denormals come out right.
 * Adding 1.5·2^23 (1.5·2^52) rounds to an integer, which then stands in the low bits. */
static inline float vexp_float(float x)
{
    float c = x > 89.0f ? 89.0f : x;
    c = c < -104.0f ? -104.0f : c;
    float shifted = c * 1.44269504088896341f + 12582912.0f;
    uint32_t bits, low, high;
    memcpy(&bits, &shifted, 4);
    float n = shifted - 12582912.0f;
    float r = c - n * 0.693359375f;
    r = r + n * 2.12194440054690583e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    uint32_t k = bits - 0x4B400000u + 512u; /* n + 512: not negative */
    low = (k >> 1);
    high = k - low;
    low = (low - 256u + 127u) << 23;
    high = (high - 256u + 127u) << 23;
    float a, b;
    memcpy(&a, &low, 4);
    memcpy(&b, &high, 4);
    return p * a * b;
}

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

/* A polynomial near zero, where 1 − 2/(e^2x + 1) loses digits. */
static inline float vtanh_float(float x)
{
    float z = x * x;
    float p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    float small = p * z * x + x;
    float large = 1.0f - 2.0f / (vexp_float(2.0f * x) + 1.0f);
    return fabsf(x) < 0.625f ? small : large;
}
static inline double vtanh_double(double x) { return tanh(x); }

#endif
