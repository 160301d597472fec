/* exp, log, sigmoid and tanh by computing type, for kernel bodies in float and in double (as FN(vexp)).
 * float32 is that of the elementwise formulas; float64's exp is branch-free here, so that loops over it are
 * vector code, too. Needs nothing but C; for kernel files. */
#ifndef PROA_OPS_VMATH_H
#define PROA_OPS_VMATH_H

#include "ops/elementwise/formulas.h"
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

static inline float vexp_float(float x) { return m_exp_F32(x); }

#if defined(__AVX512F__)
/* m_exp_F32 of sixteen numbers that are at most 89 or NaN: vscalefps does for 2^n what takes eight steps
 * there. */
static inline __m512 vexp_lanes(__m512 x)
{
    __m512 c = _mm512_max_ps(_mm512_set1_ps(-104.0f), x);
    __m512 k = _mm512_roundscale_ps(_mm512_mul_ps(c, _mm512_set1_ps(1.44269504f)), 8);
    __m512 r = _mm512_fnmadd_ps(k, _mm512_set1_ps(0.693145752f), c);
    r = _mm512_fnmadd_ps(k, _mm512_set1_ps(1.42860677e-6f), r);
    __m512 p = _mm512_set1_ps(1.395297012e-03f);
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(8.370321568e-03f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(4.166616799e-02f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(1.666650670e-01f));
    p = _mm512_fmadd_ps(p, r, _mm512_set1_ps(5.000000107e-01f));
    p = _mm512_add_ps(_mm512_fmadd_ps(p, _mm512_mul_ps(r, r), r), _mm512_set1_ps(1.0f));
    return _mm512_scalef_ps(p, k);
}
#endif

/* e^x to 1 ulp: x = n·ln 2 + r. Adding 1.5·2^52 rounds to an integer, which then stands in the low bits; 2^n
 * comes in two factors, so that results down to denormals come out right. */
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

/* to[i] = e^(from[i] − shift) for numbers of at most shift (or NaN); returns their sum. to may be from. */
static inline __attribute__((unused)) float vexp_row_float(const float *from, int64_t n, float shift,
                                                           float *to)
{
    float sum = 0;
    int64_t i = 0;
#if defined(__AVX512F__)
    __m512 by = _mm512_set1_ps(shift), first = _mm512_setzero_ps(), second = first;
    for (; i + 32 <= n; i += 32) {
        __m512 a = vexp_lanes(_mm512_sub_ps(_mm512_loadu_ps(from + i), by));
        __m512 b = vexp_lanes(_mm512_sub_ps(_mm512_loadu_ps(from + i + 16), by));
        _mm512_storeu_ps(to + i, a), _mm512_storeu_ps(to + i + 16, b);
        first = _mm512_add_ps(first, a), second = _mm512_add_ps(second, b);
    }
    for (; i < n; i += 16) {
        __mmask16 in = n - i < 16 ? (__mmask16)((1u << (n - i)) - 1) : 0xffff;
        __m512 a = vexp_lanes(_mm512_sub_ps(_mm512_maskz_loadu_ps(in, from + i), by));
        _mm512_mask_storeu_ps(to + i, in, a);
        first = _mm512_mask_add_ps(first, in, first, a);
    }
    sum = _mm512_reduce_add_ps(_mm512_add_ps(first, second));
#endif
#pragma omp simd reduction(+ : sum)
    for (int64_t j = i; j < n; j++) {
        float e = vexp_float(from[j] - shift);
        to[j] = e;
        sum += e;
    }
    return sum;
}

static inline __attribute__((unused)) double vexp_row_double(const double *from, int64_t n, double shift,
                                                             double *to)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < n; i++) {
        double e = vexp_double(from[i] - shift);
        to[i] = e;
        sum += e;
    }
    return sum;
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
