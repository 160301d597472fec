/* Products of rows of unsigned bytes with packed signed bytes, summed exactly in 32 bits: by AVX-512 VNNI
 * where the CPU has it, else by AVX2 over bytes widened to 16 bits, else in plain C. For kernel files; needs
 * only the intrinsics. */
#ifndef PROA_OPS_INT8_DOT_BYTES_H
#define PROA_OPS_INT8_DOT_BYTES_H

#include <stdint.h>
#include <string.h>

/* Columns of a vector of sums, rows of a register tile, and vectors of a tile at most. */
enum { DOT_COLUMNS = 16, DOT_ROWS = 6, DOT_VECTORS = 4 };

/* sums[row][columns] = x · w. w is packed by groups of four elements of a row: of each group, four bytes a
 * column. */
typedef struct dot_task {
    const uint8_t *x;
    int64_t x_stride, groups;
    const int8_t *w;
    int32_t *sums;
} dot_task;

static inline __attribute__((unused)) void dot_plain(int rows, int vectors, const dot_task *t)
{
    const int n = vectors * DOT_COLUMNS;
    memset(t->sums, 0, (size_t)(rows * n) * sizeof *t->sums);
    for (int r = 0; r < rows; r++)
        for (int64_t k = 0; k < t->groups; k++) {
            const uint8_t *x = t->x + r * t->x_stride + 4 * k;
            const int8_t *w = t->w + 4 * n * k;
            int32_t *sums = t->sums + r * n;
            for (int i = 0; i < n; i++, w += 4)
                sums[i] += x[0] * w[0] + x[1] * w[1] + x[2] * w[2] + x[3] * w[3];
        }
}

#if defined(__AVX2__)
#include <immintrin.h>

/* Rows of a tile in 256-bit registers. */
enum { DOT_HALF_ROWS = 3 };

/* Sixteen columns: bytes are widened to 16 bits, so that sums of two products are exact. */
static inline __attribute__((always_inline)) void dot_half_tile(const int rows, int vectors, int v,
                                                                const dot_task *t, int row)
{
    __m256i sums[DOT_HALF_ROWS][4];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) sums[r][i] = _mm256_setzero_si256();
    const int8_t *w = t->w + 64 * v;
    for (int64_t k = 0; k < t->groups; k++, w += 64 * vectors) {
        __m256i columns[4];
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++)
            columns[i] = _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)(const void *)(w + 16 * i)));
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++) {
            int32_t four;
            memcpy(&four, t->x + (row + r) * t->x_stride + 4 * k, sizeof four);
            const __m256i x = _mm256_cvtepu8_epi16(_mm_set1_epi32(four));
#pragma GCC unroll 4
            for (int i = 0; i < 4; i++)
                sums[r][i] = _mm256_add_epi32(sums[r][i], _mm256_madd_epi16(x, columns[i]));
        }
    }
    /* A column's sum is in two neighbours; hadd works by halves of 128 bits, which the permutation undoes. */
    const __m256i order = _mm256_setr_epi32(0, 1, 4, 5, 2, 3, 6, 7);
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 4
        for (int i = 0; i < 4; i += 2) {
            __m256i both = _mm256_hadd_epi32(sums[r][i], sums[r][i + 1]);
            int32_t *to = t->sums + ((row + r) * vectors + v) * DOT_COLUMNS + 4 * i;
            _mm256_storeu_si256((__m256i *)(void *)to, _mm256_permutevar8x32_epi32(both, order));
        }
}

static inline void dot_half(int rows, int vectors, const dot_task *t)
{
    for (int v = 0; v < vectors; v++) {
        int row = 0;
        for (; row + 3 <= rows; row += 3) dot_half_tile(3, vectors, v, t, row);
        if (rows - row == 2) dot_half_tile(2, vectors, v, t, row);
        if (rows - row == 1) dot_half_tile(1, vectors, v, t, row);
    }
}
#endif

#if defined(__AVX512F__)
#define DOT_VNNI __attribute__((target("avx512vnni")))

static inline __attribute__((always_inline)) DOT_VNNI void dot_tile(const int rows, const int vectors,
                                                                    const dot_task *t)
{
    __m512i sums[DOT_ROWS][DOT_VECTORS];
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++) sums[r][v] = _mm512_setzero_si512();
    const int8_t *w = t->w;
    for (int64_t k = 0; k < t->groups; k++, w += 64 * vectors) {
        __m512i columns[DOT_VECTORS];
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++) columns[v] = _mm512_loadu_si512(w + 64 * v);
#pragma GCC unroll 8
        for (int r = 0; r < rows; r++) {
            int32_t four;
            memcpy(&four, t->x + r * t->x_stride + 4 * k, sizeof four);
            const __m512i x = _mm512_set1_epi32(four);
#pragma GCC unroll 8
            for (int v = 0; v < vectors; v++) sums[r][v] = _mm512_dpbusd_epi32(sums[r][v], x, columns[v]);
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            _mm512_storeu_si512(t->sums + (r * vectors + v) * DOT_COLUMNS, sums[r][v]);
}

#define DOT_CASE(n) \
    case n: vectors == 3 ? dot_tile(n, 3, t) : dot_tile(n, 4, t); return;

static DOT_VNNI void dot_vnni(int rows, int vectors, const dot_task *t)
{
    switch (rows) {
        DOT_CASE(1)
        DOT_CASE(2)
        DOT_CASE(3)
        DOT_CASE(4)
        DOT_CASE(5)
    default: vectors == 3 ? dot_tile(6, 3, t) : dot_tile(6, 4, t);
    }
}
#endif

/* Up to DOT_ROWS rows by 3 or 4 vectors of columns. */
static inline void dot_rows(int rows, int vectors, const dot_task *t)
{
#if defined(__AVX512F__)
    if (__builtin_cpu_supports("avx512vnni")) {
        dot_vnni(rows, vectors, t);
        return;
    }
#endif
#if defined(__AVX2__)
    dot_half(rows, vectors, t);
#else
    dot_plain(rows, vectors, t);
#endif
}

#endif
