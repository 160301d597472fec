/* Winograd F(3×3, 3×3) (winograd.h's paper) for stride 1 and constant filters: a tile of 3×3 outputs takes 25
 * multiplications per channel, F(2×2, 3×3) 36 for as many outputs, and it reads less of the filter than
 * F(4×4, 3×3). Interpolation points are ±1/2, ±5/4 and infinity (why: winograd_f4x4.h); rounding errors are
 * 1.35 times those of direct float32 summation at 64 channels, 0.8 times at 512. For kernel files; may use
 * core and helpers of ops/; everything is static. */
#ifndef PROA_OPS_CONV_WINOGRAD_F3X3_H
#define PROA_OPS_CONV_WINOGRAD_F3X3_H

#include "ops/conv/winograd.h"

enum { MIDDLE_SIDE = 5, MIDDLE_POINTS = 25, MIDDLE_RESULTS = 3 };

/* The points a and b, and powers of them. */
#define MIDDLE_A 0.5f
#define MIDDLE_B 1.25f
#define MIDDLE_AA (MIDDLE_A * MIDDLE_A)
#define MIDDLE_BB (MIDDLE_B * MIDDLE_B)

/* Bᵀ of five numbers, `step` vectors apart, in place: row p is the product of x − q over the other points q,
 * the last that of all, by coefficients. */
static inline __attribute__((always_inline)) void f3x3_side(packed_vector *d, const int step)
{
    packed_vector d0 = d[0], d1 = d[step], d2 = d[2 * step], d3 = d[3 * step];
    packed_vector even_a = d2 - MIDDLE_BB * d0, odd_a = d3 - MIDDLE_BB * d1;
    packed_vector even_b = d2 - MIDDLE_AA * d0, odd_b = d3 - MIDDLE_AA * d1;
    d[0] = odd_a + MIDDLE_A * even_a, d[step] = odd_a - MIDDLE_A * even_a;
    d[2 * step] = odd_b + MIDDLE_B * even_b, d[3 * step] = odd_b - MIDDLE_B * even_b;
    d[4 * step] = d[4 * step] - (MIDDLE_AA + MIDDLE_BB) * d2 + MIDDLE_AA * MIDDLE_BB * d0;
}

/* G of three taps: their polynomial at each point, over the product of its distances from the others. */
static inline __attribute__((always_inline)) void f3x3_filter_side(const packed_vector *g, const int step,
                                                                   packed_vector *u)
{
    const float over_a = 1 / (2 * MIDDLE_A * (MIDDLE_AA - MIDDLE_BB)),
                over_b = 1 / (2 * MIDDLE_B * (MIDDLE_BB - MIDDLE_AA));
    packed_vector even_a = g[0] + MIDDLE_AA * g[2 * step], even_b = g[0] + MIDDLE_BB * g[2 * step];
    u[0] = over_a * (even_a + MIDDLE_A * g[step]), u[1] = over_a * (MIDDLE_A * g[step] - even_a);
    u[2] = over_b * (even_b + MIDDLE_B * g[step]), u[3] = over_b * (MIDDLE_B * g[step] - even_b);
    u[4] = g[2 * step];
}

/* Aᵀ of five sums, `step` vectors apart: results are the sums' polynomial in rising powers of the points. */
static inline __attribute__((always_inline)) void f3x3_results_side(const packed_vector *m, const int step,
                                                                    packed_vector *y)
{
    packed_vector sum_a = m[0] + m[step], off_a = m[0] - m[step];
    packed_vector sum_b = m[2 * step] + m[3 * step], off_b = m[2 * step] - m[3 * step];
    y[0] = sum_a + sum_b;
    y[1] = MIDDLE_A * off_a + MIDDLE_B * off_b;
    y[2] = m[4 * step] + MIDDLE_AA * sum_a + MIDDLE_BB * sum_b;
}

static inline void f3x3_filter(const packed_vector *g, packed_vector *u)
{
    winograd_filter_by(g, f3x3_filter_side, 3, MIDDLE_SIDE, u);
}

static inline __attribute__((always_inline)) void f3x3_input(packed_vector *d, const int first, const int end,
                                                             float *v, int64_t step)
{
    (void)first, (void)end; /* all of them */
    winograd_input_by(d, f3x3_side, MIDDLE_SIDE, v, step);
}

static inline void f3x3_lay(const winograd *w, int64_t tile, int64_t row, float *v)
{
    winograd_input_tile(w, tile, MIDDLE_SIDE, f3x3_input, 0, MIDDLE_SIDE, v + row * w->ld);
}

static inline void f3x3_results(const winograd *w, winograd_place at, int64_t c, const float *m)
{
    winograd_results_by(w, at, c, m, f3x3_results_side, MIDDLE_SIDE, MIDDLE_RESULTS);
}

/* Every point is a sum of its own. */
static const winograd_kind winograd_f3x3 = {
    .side = MIDDLE_RESULTS,
    .taps = WINOGRAD_TAPS,
    .phases = 1,
    .tap = winograd_tap,
    .points = MIDDLE_POINTS,
    .sums = MIDDLE_POINTS,
    .chunk_bytes = 1 << 20,
    .piece = 256,
    .sum_of = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24},
    .depths = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    .filter = f3x3_filter,
    .lay = f3x3_lay,
    .results = f3x3_results};

#endif
