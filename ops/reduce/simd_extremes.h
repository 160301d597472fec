/* Vectors of float32 as wide as the CPU level's registers: sums, maxima and minima over contiguous rows, the
 * latter of float64, too. For kernel files; plain C, and AVX-512 intrinsics where the CPU level has them. */
#ifndef PROA_OPS_REDUCE_SIMD_EXTREMES_H
#define PROA_OPS_REDUCE_SIMD_EXTREMES_H

#include "kernels/vector.h"

#include <stdbool.h>
#include <stdint.h>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

/* LANES: floats in a vector. EIGHT: vectors that are folded as a tree. SIXTEEN: floats in a cache line. */
enum { LANES = VECTOR_BYTES / 4, EIGHT = 8, SIXTEEN = 16 };
typedef float f32_lanes __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
typedef int32_t i32_lanes __attribute__((vector_size(VECTOR_BYTES)));
typedef double f64_lanes __attribute__((vector_size(VECTOR_BYTES)));
typedef float f32_half __attribute__((vector_size(VECTOR_BYTES / 2), aligned(4), may_alias));

#define LANES_AT(x) (*(const f32_lanes *)(const void *)(x))
#define HALF_AT(x) (*(const f32_half *)(const void *)(x))

static inline __attribute__((unused)) void lanes_add(f32_lanes *a, const f32_lanes *b) { *a += *b; }

#define LANES_INLINE static inline __attribute__((always_inline, unused))

#if defined(__AVX512F__)
LANES_INLINE __m512 lanes_better(__m512 a, __m512 b, const bool largest)
{
    return largest ? _mm512_max_ps(a, b) : _mm512_min_ps(a, b);
}

LANES_INLINE float lanes_extreme(const float *x, int64_t n, const bool largest)
{
    const __m512 start = _mm512_set1_ps(largest ? -__builtin_inff() : __builtin_inff());
    __m512 best = start, other = start;
    uint32_t nan = 0;
    int64_t i = 0;
    for (; i + 4 * LANES <= n; i += 4 * LANES) {
        __m512 a = _mm512_loadu_ps(x + i), b = _mm512_loadu_ps(x + i + LANES);
        __m512 c = _mm512_loadu_ps(x + i + 2 * LANES), d = _mm512_loadu_ps(x + i + 3 * LANES);
        nan |= _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q) | _mm512_cmp_ps_mask(c, d, _CMP_UNORD_Q);
        best = lanes_better(best, lanes_better(a, b, largest), largest);
        other = lanes_better(other, lanes_better(c, d, largest), largest);
    }
    for (; i < n; i += LANES) {
        __mmask16 some = (__mmask16)(n - i < LANES ? (1 << (n - i)) - 1 : 0xffff);
        __m512 a = _mm512_mask_loadu_ps(start, some, x + i);
        nan |= _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
        best = lanes_better(best, a, largest);
    }
    best = lanes_better(best, other, largest);
    if (!nan) return largest ? _mm512_reduce_max_ps(best) : _mm512_reduce_min_ps(best);
    while (*x == *x) x++;
    return *x;
}
#endif

/* Loops over arrays, because compilers without vectors of 64 bytes take comparisons of these apart. */
#if !defined(__AVX512F__)
#define BETTER lanes_better
#define EXTREME lanes_extreme
#define REAL float
#define MASK int32_t
#include "ops/reduce/extreme.inc"
#endif
#define BETTER f64_better
#define EXTREME f64_extreme
#define REAL double
#define MASK int64_t
#include "ops/reduce/extreme.inc"

/* The largest of n float32 (-inf for none), the least (inf for none); NaN wins. It is looked for beside the
 * comparisons, which then are one instruction each. */
static inline __attribute__((unused)) float simd_largest(const float *x, int64_t n)
{
    return lanes_extreme(x, n, true);
}

static inline __attribute__((unused)) float simd_least(const float *x, int64_t n)
{
    return lanes_extreme(x, n, false);
}

static inline __attribute__((unused)) double simd_largest_f64(const double *x, int64_t n)
{
    return f64_extreme(x, n, true);
}

static inline __attribute__((unused)) double simd_least_f64(const double *x, int64_t n)
{
    return f64_extreme(x, n, false);
}

/* The sum of a vector's lanes, halves first. Vectors pass by address: the ABI of passing them by value
 * depends on the CPU level. */
#define LANES_SUM(name, V, T)                                   \
    LANES_INLINE T name(const V *v)                             \
    {                                                           \
        enum { N = sizeof(V) / sizeof(T) };                     \
        T part[N];                                              \
        for (int k = 0; k < N; k++) part[k] = (*v)[k];          \
        for (int w = N / 2; w > 0; w /= 2)                      \
            for (int k = 0; k < w; k++) part[k] += part[k + w]; \
        return part[0];                                         \
    }
LANES_SUM(lanes_sum, f32_lanes, float)
LANES_SUM(lanes_sum_f64, f64_lanes, double)

/* Loads stay in the order written: hardware prefetchers follow rising addresses. */
#define LANES_ORDER __asm__ volatile("" ::: "memory")

/* v: eight vectors `step` elements apart, folded. */
#define LANES_PAIR(v, w, x, step)                          \
    f32_lanes v = LANES_AT(x), w = LANES_AT((x) + (step)); \
    LANES_ORDER;
#define LANES_TREE(v, x, step, FOLD)                                             \
    LANES_PAIR(v, v##1, x, step)                                                 \
    LANES_PAIR(v##2, v##3, (x) + 2 * (step), step)                               \
    LANES_PAIR(v##4, v##5, (x) + 4 * (step), step)                               \
    LANES_PAIR(v##6, v##7, (x) + 6 * (step), step)                               \
    FOLD(&v, &v##1), FOLD(&v##2, &v##3), FOLD(&v##4, &v##5), FOLD(&v##6, &v##7); \
    FOLD(&v, &v##2), FOLD(&v##4, &v##6), FOLD(&v, &v##4)

#endif
