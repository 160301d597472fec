/* Winograd F(m×m, r×r) (winograd.h's paper) for stride 1 and constant filters, with all transforms of one set
 * of Toom–Cook interpolation points: infinity, ±a, ±b and, in larger tiles, 0. The points are near 1 and few
 * bits long, so that coefficients of the input transform are exact, which halves rounding errors (Barabasz et
 * al., "Error Analysis and Improving the Accuracy of Winograd Convolution for Deep Neural Networks", 2020).
 * For kernel files; may use core and helpers of ops/; everything is static. */
#ifndef PROA_OPS_CONV_WINOGRAD_POINTS_H
#define PROA_OPS_CONV_WINOGRAD_POINTS_H

#include "ops/conv/winograd.h"

/* Taps, results and points of a side: points are results + taps − 1. */
typedef struct winograd_set {
    int taps, results, side;
    int zero; /* 1: 0 is a point, too, the first */
    float a, b;
} winograd_set;

#define POINTS_FN static inline __attribute__((always_inline))

/* Bᵀ of a side's numbers, `step` vectors apart, in place: row p is the product of x − q over the other points
 * q, the last that of all, by coefficients. Negative constants are added, which SSE does in place. */
POINTS_FN void points_input_side(const winograd_set *s, packed_vector *d, const int step)
{
    const float aa = s->a * s->a, bb = s->b * s->b, both = -(aa + bb), times = aa * bb;
    const int z = s->zero;
    packed_vector d0 = d[z * step], d1 = d[(z + 1) * step], d2 = d[(z + 2) * step], d3 = d[(z + 3) * step];
    packed_vector low_a = d2 + -bb * d0, high_a = d3 + -bb * d1;
    packed_vector low_b = d2 + -aa * d0, high_b = d3 + -aa * d1;
    if (z) d[0] = d3 + both * d1 + times * d[0];
    d[z * step] = high_a + s->a * low_a, d[(z + 1) * step] = high_a - s->a * low_a;
    d[(z + 2) * step] = high_b + s->b * low_b, d[(z + 3) * step] = high_b - s->b * low_b;
    d[(z + 4) * step] = d[(z + 4) * step] + both * d2 + times * d0;
}

/* G of three or four taps: their polynomial at each point, over the product of its distances from the
 * others. */
POINTS_FN void points_filter_side(const winograd_set *s, const packed_vector *g, const int step,
                                  packed_vector *u)
{
    const float a = s->a, b = s->b, aa = a * a, bb = b * b;
    const float over_a = 1 / (2 * (s->zero ? aa : a) * (aa - bb)),
                over_b = 1 / (2 * (s->zero ? bb : b) * (bb - aa));
    const int z = s->zero, last = s->taps - 1;
    packed_vector g0 = g[0], g1 = g[step], g2 = g[2 * step];
    packed_vector even_a = g0 + aa * g2, even_b = g0 + bb * g2;
    packed_vector odd_a = last == 3 ? a * (g1 + aa * g[last * step]) : a * g1;
    packed_vector odd_b = last == 3 ? b * (g1 + bb * g[last * step]) : b * g1;
    if (z) u[0] = 1 / (aa * bb) * g0;
    u[z] = over_a * (even_a + odd_a), u[z + 1] = over_a * (z ? even_a - odd_a : odd_a - even_a);
    u[z + 2] = over_b * (even_b + odd_b), u[z + 3] = over_b * (z ? even_b - odd_b : odd_b - even_b);
    u[z + 4] = g[last * step];
}

/* Aᵀ of a side's sums, `step` vectors apart: three or four results, which are the sums' polynomial in rising
 * powers of the points. */
POINTS_FN void points_results_side(const winograd_set *s, const packed_vector *m, const int step,
                                   packed_vector *y)
{
    const packed_vector *p = m + s->zero * step;
    packed_vector sum_a = p[0] + p[step], off_a = p[0] - p[step];
    packed_vector sum_b = p[2 * step] + p[3 * step], off_b = p[2 * step] - p[3 * step];
    const float a = s->a, b = s->b, aa = a * a, bb = b * b;
    y[0] = s->zero ? m[0] + sum_a + sum_b : sum_a + sum_b;
    y[1] = a * off_a + b * off_b;
    if (s->results == 3) {
        y[2] = p[4 * step] + aa * sum_a + bb * sum_b;
    } else {
        y[2] = aa * sum_a + bb * sum_b;
        y[3] = p[4 * step] + a * aa * off_a + b * bb * off_b;
    }
}

/* ---- tiles ------------------------------------------------------------------------------------ */

POINTS_FN void points_filter(const winograd_set *s, const packed_vector *g, packed_vector *u)
{
    winograd_filter_by(s, g, points_filter_side, s->taps, s->side, u);
}

/* v = Bᵀ·d·B, a point each `step` floats. */
POINTS_FN void points_input(const winograd_set *s, packed_vector *d, float *v, int64_t step)
{
#pragma GCC unroll 6
    for (int c = 0; c < s->side; c++) points_input_side(s, d + c, s->side);
#pragma GCC unroll 6
    for (int r = 0; r < s->side; r++) {
        points_input_side(s, d + s->side * r, 1);
#pragma GCC unroll 6
        for (int c = 0; c < s->side; c++, v += step) *(packed_vector *)v = d[s->side * r + c];
    }
}

/* Aᵀ·m·A, up to the map's edges. */
POINTS_FN void points_results(const winograd_set *s, const winograd *w, winograd_place at, int64_t c,
                              const float *m)
{
    const int side = s->side, results = s->results;
    const winograd_map *map = &w->to;
    packed_vector p[WINOGRAD_MAX_POINTS], h[WINOGRAD_MAX_POINTS];
#pragma GCC unroll 36
    for (int i = 0; i < side * side; i++) p[i] = *(const packed_vector *)(m + i * w->to_step);
#pragma GCC unroll 6
    for (int i = 0; i < side; i++) {
        packed_vector column[WINOGRAD_MAX_SIDE];
        points_results_side(s, p + i, side, column);
        for (int r = 0; r < results; r++) h[side * r + i] = column[r];
    }
    int64_t line = map->width * map->pixel, to = at.image * map->image + at.y * line + at.x * map->pixel +
                                                 c / WINOGRAD_BLOCK * map->block + c % WINOGRAD_BLOCK;
    int64_t across = gemm_min(results, map->width - at.x);
#pragma GCC unroll 4
    for (int r = 0; r < results; r++, to += line) {
        packed_vector y[WINOGRAD_MAX_SIDE];
        if (at.y + r >= map->height) return;
        points_results_side(s, h + side * r, 1, y);
        for (int x = 0; x < results; x++)
            if (x < across) winograd_put(w, y[x], to + x * map->pixel, c);
    }
}

/* ---- F(4×4, 3×3) and F(3×3, 3×3) -------------------------------------------------------------- */

/* A tile takes 36 multiplications per channel, four of F(2×2, 3×3) 64. With sums over 64 channels at a time
 * rounding errors are 2.4 times those of direct float32 summation at 64 channels, and smaller at 512. */
static const winograd_set f4x4 = {.taps = 3, .results = 4, .side = 6, .zero = 1, .a = 0.75f, .b = 1.5f};

/* A tile takes 25 multiplications per channel, F(2×2, 3×3) 36 for as many outputs, and it reads less of the
 * filter than F(4×4, 3×3). Rounding errors are 1.35 times those of direct summation at 64 channels, 0.8 times
 * at 512. */
static const winograd_set f3x3 = {.taps = 3, .results = 3, .side = 5, .a = 0.5f, .b = 1.25f};

static inline void f4x4_filter(const packed_vector *g, packed_vector *u) { points_filter(&f4x4, g, u); }
static inline void f3x3_filter(const packed_vector *g, packed_vector *u) { points_filter(&f3x3, g, u); }
POINTS_FN void f4x4_input(packed_vector *d, const int first, const int end, float *v, int64_t step)
{
    (void)first, (void)end; /* all of them */
    points_input(&f4x4, d, v, step);
}
POINTS_FN void f3x3_input(packed_vector *d, const int first, const int end, float *v, int64_t step)
{
    (void)first, (void)end;
    points_input(&f3x3, d, v, step);
}
static inline void f4x4_lay(const winograd *w, int64_t tile, int64_t row, float *v)
{
    winograd_input_tile(w, tile, f4x4.side, f4x4_input, 0, f4x4.side, v + row * w->ld);
}
static inline void f3x3_lay(const winograd *w, int64_t tile, int64_t row, float *v)
{
    winograd_input_tile(w, tile, f3x3.side, f3x3_input, 0, f3x3.side, v + row * w->ld);
}
static inline void f4x4_results(const winograd *w, winograd_place at, int64_t c, const float *m)
{
    points_results(&f4x4, w, at, c, m);
}
static inline void f3x3_results(const winograd *w, winograd_place at, int64_t c, const float *m)
{
    points_results(&f3x3, w, at, c, m);
}

static const winograd_kind winograd_f4x4 = {.side = 4,
                                            .taps = WINOGRAD_TAPS,
                                            .phases = 1,
                                            .tap = winograd_tap,
                                            .points = 36,
                                            .sums = 36,
                                            .chunk_bytes = 1 << 20,
                                            .piece = 64,
                                            WINOGRAD_SUM_EACH_POINT,
                                            .filter = f4x4_filter,
                                            .lay = f4x4_lay,
                                            .results = f4x4_results};
static const winograd_kind winograd_f3x3 = {.side = 3,
                                            .taps = WINOGRAD_TAPS,
                                            .phases = 1,
                                            .tap = winograd_tap,
                                            .points = 25,
                                            .sums = 25,
                                            .chunk_bytes = 1 << 20,
                                            .piece = 256,
                                            WINOGRAD_SUM_EACH_POINT,
                                            .filter = f3x3_filter,
                                            .lay = f3x3_lay,
                                            .results = f3x3_results};

#endif
