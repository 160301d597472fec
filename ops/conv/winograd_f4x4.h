/* Winograd F(4×4, 3×3) (winograd.h's paper) for stride 1 and constant filters: a tile of 4×4 outputs takes 36
 * multiplications per channel, four tiles of F(2×2, 3×3) 64. Interpolation points are 0, ±3/4, ±3/2 and
 * infinity instead of 0, ±1, ±2: the coefficients of the input transform are exact and near 1 in magnitude,
 * which halves rounding errors (Barabasz et al., "Error Analysis and Improving the Accuracy of Winograd
 * Convolution for Deep Neural Networks", 2020). With sums over 64 channels at a time errors are 2.4 times
 * those of direct float32 summation at 64 channels, and smaller than those at 512. For kernel files; may use
 * core and helpers of ops/; everything is static. */
#ifndef PROA_OPS_CONV_WINOGRAD_F4X4_H
#define PROA_OPS_CONV_WINOGRAD_F4X4_H

#include "ops/conv/winograd.h"

enum { LARGE_SIDE = 6, LARGE_POINTS = 36, LARGE_RESULTS = 4 };

/* The points a and b, and powers of them. */
#define LARGE_A 0.75f
#define LARGE_B 1.5f
#define LARGE_AA (LARGE_A * LARGE_A)
#define LARGE_BB (LARGE_B * LARGE_B)

/* Bᵀ of six numbers, `step` vectors apart, in place: row p is the product of x − q over the other points q,
 * the last that of all, by coefficients. */
static inline __attribute__((always_inline)) void f4x4_side(packed_vector *d, const int step)
{
    const float both = LARGE_AA + LARGE_BB, times = LARGE_AA * LARGE_BB;
    packed_vector d1 = d[step], d2 = d[2 * step], d3 = d[3 * step], d4 = d[4 * step];
    packed_vector even_a = d4 - LARGE_BB * d2, odd_a = d3 - LARGE_BB * d1;
    packed_vector even_b = d4 - LARGE_AA * d2, odd_b = d3 - LARGE_AA * d1;
    d[0] = d4 - both * d2 + times * d[0];
    d[step] = even_a + LARGE_A * odd_a, d[2 * step] = even_a - LARGE_A * odd_a;
    d[3 * step] = even_b + LARGE_B * odd_b, d[4 * step] = even_b - LARGE_B * odd_b;
    d[5 * step] = d[5 * step] - both * d3 + times * d1;
}

/* G of three taps: their polynomial at each point, over the product of its distances from the others. */
static inline __attribute__((always_inline)) void f4x4_filter_side(const packed_vector *g, const int step,
                                                                   packed_vector *u)
{
    const float over_0 = 1 / (LARGE_AA * LARGE_BB), over_a = 1 / (2 * LARGE_AA * (LARGE_AA - LARGE_BB)),
                over_b = 1 / (2 * LARGE_BB * (LARGE_BB - LARGE_AA));
    packed_vector g0 = g[0], g1 = g[step], g2 = g[2 * step];
    u[0] = over_0 * g0;
    u[1] = over_a * (g0 + LARGE_AA * g2 + LARGE_A * g1), u[2] = over_a * (g0 + LARGE_AA * g2 - LARGE_A * g1);
    u[3] = over_b * (g0 + LARGE_BB * g2 + LARGE_B * g1), u[4] = over_b * (g0 + LARGE_BB * g2 - LARGE_B * g1);
    u[5] = g2;
}

/* Aᵀ of six sums, `step` vectors apart: results are the sums' polynomial in rising powers of the points. */
static inline __attribute__((always_inline)) void f4x4_results_side(const packed_vector *m, const int step,
                                                                    packed_vector *y)
{
    packed_vector sum_a = m[step] + m[2 * step], off_a = m[step] - m[2 * step];
    packed_vector sum_b = m[3 * step] + m[4 * step], off_b = m[3 * step] - m[4 * step];
    y[0] = m[0] + sum_a + sum_b;
    y[1] = LARGE_A * off_a + LARGE_B * off_b;
    y[2] = LARGE_AA * sum_a + LARGE_BB * sum_b;
    y[3] = m[5 * step] + LARGE_A * LARGE_AA * off_a + LARGE_B * LARGE_BB * off_b;
}

static inline void f4x4_filter(const packed_vector *g, packed_vector *u)
{
    winograd_filter_by(g, f4x4_filter_side, 3, LARGE_SIDE, u);
}

static inline __attribute__((always_inline)) void f4x4_input(packed_vector *d, const int first, const int end,
                                                             float *v, int64_t step)
{
    (void)first, (void)end; /* all of them */
    winograd_input_by(d, f4x4_side, LARGE_SIDE, v, step);
}

static inline void f4x4_lay(const winograd *w, int64_t tile, int64_t row, float *v)
{
    winograd_input_tile(w, tile, LARGE_SIDE, f4x4_input, 0, LARGE_SIDE, v + row * w->ld);
}

static inline void f4x4_results(const winograd *w, winograd_place at, int64_t c, const float *m)
{
    winograd_results_by(w, at, c, m, f4x4_results_side, LARGE_SIDE, LARGE_RESULTS);
}

/* Every point is a sum of its own. */
static const winograd_kind winograd_f4x4 = {.side = LARGE_RESULTS,
                                            .taps = WINOGRAD_TAPS,
                                            .phases = 1,
                                            .tap = winograd_tap,
                                            .points = LARGE_POINTS,
                                            .sums = LARGE_POINTS,
                                            .chunk_bytes = 1 << 20,
                                            .piece = 64,
                                            .sum_of = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,
                                                       12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23,
                                                       24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35},
                                            .depths = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                                       1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
                                            .filter = f4x4_filter,
                                            .lay = f4x4_lay,
                                            .results = f4x4_results};

#endif
