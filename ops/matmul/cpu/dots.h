/* Sums of products of float32 rows with a vector, of each row in the same order wherever it is computed. */
#ifndef PROA_OPS_MATMUL_CPU_DOTS_H
#define PROA_OPS_MATMUL_CPU_DOTS_H

#include "kernels/vector.h"

#include <stdint.h>

typedef float dot_lanes __attribute__((vector_size(VECTOR_BYTES), aligned(4), may_alias));
typedef float dot_quarter __attribute__((vector_size(16), aligned(4), may_alias));

/* DOT_WIDTH: lanes. DOT_CHAINS: vectors of partial sums. DOT_AHEAD: floats by which rows are prefetched. */
enum { DOT_WIDTH = VECTOR_BYTES / 4, DOT_CHAINS = 4, DOT_STEP = DOT_CHAINS * DOT_WIDTH, DOT_AHEAD = 1024 };

static inline dot_lanes dot_product(const float *a, const float *v)
{
    return *(const dot_lanes *)(const void *)a * *(const dot_lanes *)(const void *)v;
}

/* Partial sums of a row: lane l has the products at l, l + 4, … of the part that whole vectors cover. */
static inline dot_quarter dot_vectors(const float *a, const float *v, int64_t k)
{
    dot_lanes s[DOT_CHAINS] = {{0}};
    int64_t i = 0;
    for (; i + DOT_STEP <= k; i += DOT_STEP) {
#pragma GCC unroll 4
        for (int c = 0; c < DOT_CHAINS; c++)
            s[c] += dot_product(a + i + c * DOT_WIDTH, v + i + c * DOT_WIDTH);
        for (int c = 0; c < DOT_STEP; c += 16) __builtin_prefetch(a + i + c + DOT_AHEAD);
    }
    for (; i + DOT_WIDTH <= k; i += DOT_WIDTH) s[0] += dot_product(a + i, v + i);
    union {
        dot_lanes whole;
        dot_quarter quarter[VECTOR_BYTES / 16];
    } sum = {(s[0] + s[1]) + (s[2] + s[3])};
    for (int half = VECTOR_BYTES / 32; half > 0; half /= 2)
        for (int c = 0; c < half; c++) sum.quarter[c] += sum.quarter[c + half];
    return sum.quarter[0];
}

static inline float dot_rest(float sum, const float *a, const float *v, int64_t k)
{
    for (int64_t i = k / DOT_WIDTH * DOT_WIDTH; i < k; i++) sum += a[i] * v[i];
    return sum;
}

/* out[0..n) of n rows, four at a time: their lanes are added as those of one are. */
static inline void dots(const float *rows, int64_t stride, const float *v, int64_t k, int64_t n, float *out)
{
    int64_t r = 0;
    for (; r + 4 <= n; r += 4, rows += 4 * stride) {
        dot_quarter s[4];
        for (int i = 0; i < 4; i++) s[i] = dot_vectors(rows + i * stride, v, k);
        for (int i = 0; i < 4; i++)
            out[r + i] = dot_rest((s[i][0] + s[i][2]) + (s[i][1] + s[i][3]), rows + i * stride, v, k);
    }
    for (; r < n; r++, rows += stride) {
        dot_quarter s = dot_vectors(rows, v, k);
        out[r] = dot_rest((s[0] + s[2]) + (s[1] + s[3]), rows, v, k);
    }
}

#endif
