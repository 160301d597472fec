/* Vectors of sixteen float32 for reductions over contiguous rows. For kernel files; needs nothing but C, and
 * the intrinsics where there are such vectors. */
#ifndef PROA_OPS_REDUCE_SIMD_EXTREMES_H
#define PROA_OPS_REDUCE_SIMD_EXTREMES_H

#include <stdint.h>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

typedef float f32_lanes __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t i32_lanes __attribute__((vector_size(64)));
typedef double f64_lanes __attribute__((vector_size(64)));
typedef float f32_half __attribute__((vector_size(32), aligned(4), may_alias));
enum { LANES = 16, EIGHT = 8 };

#define LANES_AT(x) (*(const f32_lanes *)(const void *)(x))
#define HALF_AT(x) (*(const f32_half *)(const void *)(x))

static inline __attribute__((unused)) void simd_add(f32_lanes *a, const f32_lanes *b) { *a += *b; }

/* The largest of n float32 (-inf for none), the least (inf for none); NaN wins. It is looked for beside the
 * comparisons, which then are one instruction each. */
#if defined(__AVX512F__)
#define LANES_EXTREME(name, best_of, START)                                                         \
    static inline __attribute__((unused)) float name(const float *x, int64_t n)                     \
    {                                                                                               \
        const __m512 start = _mm512_set1_ps(START);                                                 \
        __m512 best = start, other = start;                                                         \
        uint32_t nan = 0;                                                                           \
        int64_t i = 0;                                                                              \
        for (; i + 4 * LANES <= n; i += 4 * LANES) {                                                \
            __m512 a = _mm512_loadu_ps(x + i), b = _mm512_loadu_ps(x + i + LANES);                  \
            __m512 c = _mm512_loadu_ps(x + i + 2 * LANES), d = _mm512_loadu_ps(x + i + 3 * LANES);  \
            nan |= _mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q) | _mm512_cmp_ps_mask(c, d, _CMP_UNORD_Q); \
            best = _mm512_##best_of##_ps(best, _mm512_##best_of##_ps(a, b));                        \
            other = _mm512_##best_of##_ps(other, _mm512_##best_of##_ps(c, d));                      \
        }                                                                                           \
        for (; i < n; i += LANES) {                                                                 \
            __mmask16 some = (__mmask16)(n - i < LANES ? (1 << (n - i)) - 1 : 0xffff);              \
            __m512 a = _mm512_mask_loadu_ps(start, some, x + i);                                    \
            nan |= _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);                                          \
            best = _mm512_##best_of##_ps(best, a);                                                  \
        }                                                                                           \
        if (!nan) return _mm512_reduce_##best_of##_ps(_mm512_##best_of##_ps(best, other));          \
        while (*x == *x) x++;                                                                       \
        return *x;                                                                                  \
    }
LANES_EXTREME(simd_largest, max, -__builtin_inff())
LANES_EXTREME(simd_least, min, __builtin_inff())
#else /* loops over arrays, because compilers without vectors of 64 bytes take comparisons of these apart */
#define LANES_EXTREME(name, BEFORE, START)                                                              \
    static inline __attribute__((unused)) float name(const float *x, int64_t n)                         \
    {                                                                                                   \
        float best[LANES];                                                                              \
        int32_t nan[LANES];                                                                             \
        int64_t i = 0;                                                                                  \
        for (int k = 0; k < LANES; k++) best[k] = START, nan[k] = 0;                                    \
        for (; i + 4 * LANES <= n; i += 4 * LANES)                                                      \
            for (int k = 0; k < LANES; k++) {                                                           \
                float a = x[i + k], b = x[i + k + LANES];                                               \
                float c = x[i + k + 2 * LANES], d = x[i + k + 3 * LANES];                               \
                nan[k] |= __builtin_isunordered(a, b) | __builtin_isunordered(c, d);                    \
                a = a BEFORE b ? a : b, c = c BEFORE d ? c : d, a = a BEFORE c ? a : c;                 \
                best[k] = a BEFORE best[k] ? a : best[k];                                               \
            }                                                                                           \
        for (; i + LANES <= n; i += LANES)                                                              \
            for (int k = 0; k < LANES; k++)                                                             \
                nan[k] |= x[i + k] != x[i + k], best[k] = x[i + k] BEFORE best[k] ? x[i + k] : best[k]; \
        for (; i < n; i++) nan[0] |= x[i] != x[i], best[0] = x[i] BEFORE best[0] ? x[i] : best[0];      \
        for (int w = LANES / 2; w > 0; w /= 2)                                                          \
            for (int k = 0; k < w; k++)                                                                 \
                nan[k] |= nan[k + w], best[k] = best[k + w] BEFORE best[k] ? best[k + w] : best[k];     \
        if (!nan[0]) return best[0];                                                                    \
        while (*x == *x) x++;                                                                           \
        return *x;                                                                                      \
    }
LANES_EXTREME(simd_largest, >, -__builtin_inff())
LANES_EXTREME(simd_least, <, __builtin_inff())
#endif

/* The sixteen lanes, folded. Vectors pass by address: by value their place depends on the CPU level. */
static inline __attribute__((always_inline, unused)) float simd_fold(const f32_lanes *lanes,
                                                                     void (*fold)(f32_lanes *,
                                                                                  const f32_lanes *))
{
    f32_lanes v = *lanes;
    f32_lanes w = __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
    fold(&v, &w);
    w = __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
    fold(&v, &w);
    w = __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
    fold(&v, &w);
    w = __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
    fold(&v, &w);
    return v[0];
}

/* Loads stay in the order written: hardware that fetches ahead follows addresses that rise. */
#define LANES_ORDER __asm__ volatile("" ::: "memory")

/* v: eight vectors `step` elements apart, folded. */
#define LANES_TREE(v, x, step, FOLD)                                                \
    f32_lanes v = LANES_AT(x), v##1 = LANES_AT((x) + (step));                       \
    LANES_ORDER;                                                                    \
    f32_lanes v##2 = LANES_AT((x) + 2 * (step)), v##3 = LANES_AT((x) + 3 * (step)); \
    LANES_ORDER;                                                                    \
    f32_lanes v##4 = LANES_AT((x) + 4 * (step)), v##5 = LANES_AT((x) + 5 * (step)); \
    LANES_ORDER;                                                                    \
    f32_lanes v##6 = LANES_AT((x) + 6 * (step)), v##7 = LANES_AT((x) + 7 * (step)); \
    LANES_ORDER;                                                                    \
    FOLD(&v, &v##1), FOLD(&v##2, &v##3), FOLD(&v##4, &v##5), FOLD(&v##6, &v##7);    \
    FOLD(&v, &v##2), FOLD(&v##4, &v##6), FOLD(&v, &v##4)

#endif
