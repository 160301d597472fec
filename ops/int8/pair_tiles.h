/* Register tiles of 8-bit products by AVX2: rows widened to 16 bits times columns of packed signed bytes, by
 * pairs that vpmaddwd sums exactly in 32 bits. For kernel files; needs only the intrinsics. */
#ifndef PROA_OPS_INT8_PAIR_TILES_H
#define PROA_OPS_INT8_PAIR_TILES_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* A tile has up to INT8_MR rows and INT8_NR columns, the width of a panel: two vectors of sums. The depth (k)
 * is rounded up to a whole number of INT8_DEPTH, with zeros. */
enum { INT8_MR = 6, INT8_LANES = 8, INT8_VECTORS = 2, INT8_NR = INT8_VECTORS * INT8_LANES, INT8_DEPTH = 4 };

/* Index of element (p, q) of a panel, row p and column q: for each pair of rows, two bytes a column. */
static inline int64_t int8_at(int64_t p, int64_t q) { return p / 2 * 2 * INT8_NR + 2 * q + p % 2; }

/* Interleaves up to INT8_MR rows, k numbers apart, as a tile reads them: by pairs of columns. */
static inline void int8_interleave(const int16_t *from, int64_t rows, int64_t k, int16_t *to)
{
    for (int64_t p = 0; p < k; p += 2)
        for (int64_t i = 0; i < rows; i++) memcpy(to + INT8_MR * p + 2 * i, from + i * k + p, 2 * sizeof *to);
}

#if defined(__AVX2__)
#include <immintrin.h>

#define INT8_EACH(i, n) _Pragma("GCC unroll 8") for (int i = 0; i < (n); i++)

static inline __attribute__((always_inline)) void int8_tile(const int rows, int64_t k, const int16_t *a,
                                                            const int8_t *panel, int32_t *sums)
{
    __m256i sum[INT8_MR][INT8_VECTORS];
    INT8_EACH(i, rows) INT8_EACH(v, INT8_VECTORS) sum[i][v] = _mm256_setzero_si256();
    for (int64_t p = 0; p < k; p += INT8_DEPTH) INT8_EACH(pair, INT8_DEPTH / 2)
        {
            __m256i column[INT8_VECTORS];
            INT8_EACH(v, INT8_VECTORS)
            {
                const __m128i *bytes = (const __m128i *)(const void *)(panel + 2 * INT8_LANES * v);
                column[v] = _mm256_cvtepi8_epi16(_mm_loadu_si128(bytes));
            }
            panel += 2 * INT8_NR;
            INT8_EACH(i, rows)
            {
                int32_t two;
                memcpy(&two, a + 2 * i, sizeof two);
                const __m256i x = _mm256_set1_epi32(two);
                INT8_EACH(v, INT8_VECTORS)
                {
                    sum[i][v] = _mm256_add_epi32(sum[i][v], _mm256_madd_epi16(x, column[v]));
                    __asm__ volatile("" : "+x"(sum[i][v])); /* or products wait in registers that sums need */
                }
            }
            a += 2 * INT8_MR;
        }
    INT8_EACH(i, rows)
    INT8_EACH(v, INT8_VECTORS)
    _mm256_storeu_si256((__m256i *)(void *)(sums + i * INT8_NR + v * INT8_LANES), sum[i][v]);
}
#undef INT8_EACH

/* Tiles by rows − 1: sums[i · INT8_NR + q] = row i of a · column q of the panel. a has its rows by pairs of
 * columns; k is padded. Each is compiled alone, so that all its sums stay in registers. */
typedef void (*int8_tile_fn)(int64_t k, const int16_t *a, const int8_t *panel, int32_t *sums);
#define INT8_TILE(n)                                                                                      \
    static __attribute__((noinline)) void int8_tile_##n(int64_t k, const int16_t *a, const int8_t *panel, \
                                                        int32_t *sums)                                    \
    {                                                                                                     \
        int8_tile(n, k, a, panel, sums);                                                                  \
    }
INT8_TILE(1)
INT8_TILE(2)
INT8_TILE(3)
INT8_TILE(4)
INT8_TILE(5)
INT8_TILE(6)
#undef INT8_TILE
static const int8_tile_fn int8_tiles[INT8_MR] = {int8_tile_1, int8_tile_2, int8_tile_3,
                                                 int8_tile_4, int8_tile_5, int8_tile_6};
#endif

#endif
