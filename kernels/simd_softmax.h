/* Row maximum, and e^(x − shift) of a row with its sum: the parts of softmax, cross-entropy and attention. In
 * float and in double, for kernel bodies in which FN(vexp_row) is vexp_row_float or vexp_row_double. May use
 * kernels/simd_math.h and kernels/simd_activations.h; for kernel files, whose loops are compiled with
 * OpenMP's simd. */
#ifndef PROA_KERNELS_SIMD_SOFTMAX_H
#define PROA_KERNELS_SIMD_SOFTMAX_H

#include "kernels/simd_activations.h"
#include "kernels/simd_math.h"
/* The largest number of a row; −inf for an empty row. NaN is ignored. */
static inline __attribute__((unused)) float vmax_row_float(const float *x, int64_t n)
{
    float most = -INFINITY;
    int64_t i = 0;
#if defined(__AVX512F__)
    __m512 v[4];
    for (int k = 0; k < 4; k++) v[k] = _mm512_set1_ps(-INFINITY);
    for (; i + 64 <= n; i += 64)
        for (int k = 0; k < 4; k++) v[k] = _mm512_max_ps(_mm512_loadu_ps(x + i + 16 * k), v[k]);
    for (int k = 0; i < n; i += 16, k++) {
        __mmask16 in = n - i < 16 ? (__mmask16)((1u << (n - i)) - 1) : 0xffff;
        v[k] = _mm512_mask_max_ps(v[k], in, _mm512_maskz_loadu_ps(in, x + i), v[k]);
    }
    most = _mm512_reduce_max_ps(_mm512_max_ps(_mm512_max_ps(v[0], v[1]), _mm512_max_ps(v[2], v[3])));
#endif
#pragma omp simd reduction(max : most)
    for (int64_t j = i; j < n; j++) most = x[j] > most ? x[j] : most;
    return most;
}
static inline __attribute__((unused)) double vmax_row_double(const double *x, int64_t n)
{
    double most = -(double)INFINITY;
#pragma omp simd reduction(max : most)
    for (int64_t i = 0; i < n; i++) most = x[i] > most ? x[i] : most;
    return most;
}

/* to[i] = e^(from[i] − shift) for numbers that are at most shift (or NaN); returns their sum. `to` may be
 * `from`. Prefetches `ahead` elements further on (0: not at all). */
static inline __attribute__((unused, always_inline)) float vexp_row_asking_float(const float *from, int64_t n,
                                                                                 float shift, float *to,
                                                                                 int64_t ahead)
{
    float sum = 0;
    int64_t i = 0;
    (void)ahead; /* used only by the vector loop */
#if defined(__AVX512F__)
    __m512 by = _mm512_set1_ps(shift), first = _mm512_setzero_ps(), second = first;
    for (; i + 32 <= n; i += 32) {
        if (ahead) __builtin_prefetch(from + i + ahead), __builtin_prefetch(from + i + 16 + ahead);
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

static inline __attribute__((unused)) float vexp_row_float(const float *from, int64_t n, float shift,
                                                           float *to)
{
    return vexp_row_asking_float(from, n, shift, to, 0);
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

static inline __attribute__((unused)) double vexp_row_asking_double(const double *from, int64_t n,
                                                                    double shift, double *to, int64_t ahead)
{
    (void)ahead; /* no prefetch: double arithmetic takes longer than the memory access */
    return vexp_row_double(from, n, shift, to);
}

#endif
