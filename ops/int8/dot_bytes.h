/* Products of rows of 8-bit integers with packed signed bytes, summed exactly in 32 bits: by AVX-512 VNNI
 * where the CPU has it, else by AVX2 (pair_tiles.h), else in plain C. For kernel files; needs only the
 * intrinsics. */
#ifndef PROA_OPS_INT8_DOT_BYTES_H
#define PROA_OPS_INT8_DOT_BYTES_H

#include "ops/int8/pair_tiles.h"

/* Columns of a vector of sums, rows of a register tile, and vectors of a tile at most. */
enum { DOT_COLUMNS = 16, DOT_ROWS = 6, DOT_VECTORS = 4 };

/* True where rows are 16-bit numbers in tiles (pair_tiles.h); elsewhere they are bytes with DOT_ZERO
 * added. */
static inline bool dot_by_pairs(void)
{
#if defined(__AVX512F__)
    return !__builtin_cpu_supports("avx512vnni");
#elif defined(__AVX2__)
    return true;
#else
    return false;
#endif
}

enum { DOT_ZERO = 128 };

/* sums[vector][row][column] = x · w, with DOT_ROWS rows from vector to vector. x: a tile, or rows of bytes,
 * x_stride apart. w: by pairs, a panel for each vector; else by groups of four elements of a row, of each
 * group four bytes a column. */
typedef struct dot_task {
    const void *x;
    int64_t x_stride, groups;
    const int8_t *w;
    int32_t *sums;
} dot_task;

static inline __attribute__((unused)) void dot_plain(int rows, int vectors, const dot_task *t)
{
    for (int v = 0; v < vectors; v++)
        for (int r = 0; r < rows; r++) {
            int32_t *sums = t->sums + (v * DOT_ROWS + r) * DOT_COLUMNS;
            const uint8_t *x = (const uint8_t *)t->x + r * t->x_stride;
            const int8_t *w = t->w + 4 * DOT_COLUMNS * v;
            memset(sums, 0, DOT_COLUMNS * sizeof *sums);
            for (int64_t k = 0; k < t->groups; k++, x += 4, w += 4 * DOT_COLUMNS * vectors)
                for (int i = 0; i < DOT_COLUMNS; i++)
                    sums[i] +=
                        x[0] * w[4 * i] + x[1] * w[4 * i + 1] + x[2] * w[4 * i + 2] + x[3] * w[4 * i + 3];
        }
}

#if defined(__AVX2__)
static inline void dot_pairs(int rows, int vectors, const dot_task *t)
{
    for (int v = 0; v < vectors; v++)
        int8_tiles[rows - 1](4 * t->groups, t->x, t->w + v * 4 * t->groups * DOT_COLUMNS,
                             t->sums + v * DOT_ROWS * DOT_COLUMNS);
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
            memcpy(&four, (const uint8_t *)t->x + r * t->x_stride + 4 * k, sizeof four);
            const __m512i x = _mm512_set1_epi32(four);
#pragma GCC unroll 8
            for (int v = 0; v < vectors; v++) sums[r][v] = _mm512_dpbusd_epi32(sums[r][v], x, columns[v]);
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int v = 0; v < vectors; v++)
            _mm512_storeu_si512(t->sums + (v * DOT_ROWS + r) * DOT_COLUMNS, sums[r][v]);
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
    if (!dot_by_pairs()) {
        dot_vnni(rows, vectors, t);
        return;
    }
#endif
#if defined(__AVX2__)
    dot_pairs(rows, vectors, t);
#else
    dot_plain(rows, vectors, t);
#endif
}

#endif
