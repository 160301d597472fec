/* Winograd F(m×m, r×r) (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks", 2016): all
 * transforms and their adjoints, generated from a set of Toom–Cook interpolation points: ±a, infinity and,
 * where the set says so, 0 and ±b. Points near 1 and few bits long keep the coefficients of the input
 * transform exact, which halves rounding errors (Barabasz et al., "Error Analysis and Improving the Accuracy
 * of Winograd Convolution for Deep Neural Networks", 2020). Speeds below are oneDNN's time over the kernel's
 * for one thread with AVX2, over shapes that no row of benchmarks/ has. For kernel files; may use kernels;
 * everything is static. */
#ifndef PROA_OPS_CONV_WINOGRAD_TRANSFORMS_H
#define PROA_OPS_CONV_WINOGRAD_TRANSFORMS_H

#include "kernels/prepacked_gemm.h"

enum { WINOGRAD_MAX_TAPS = 16, WINOGRAD_MAX_SIDE = 6, WINOGRAD_MAX_POINTS = 36 };

/* Taps, results and points of a side: points are results + taps − 1. */
typedef struct winograd_set {
    int taps, results, side;
    int zero;   /* 1: 0 is a point, too, the first */
    float a, b; /* b = 0: ±a is the only pair */
    bool down;  /* the filter is transformed down its columns first, else along its rows */
} winograd_set;

/* A tile takes 16 multiplications per channel instead of 36, and is as accurate as direct summation. Speed:
 * 1.5 to 3.0 over 7 shapes of 3×3 filters with stride 1. */
static const winograd_set winograd_f2x2 = {
    .taps = 3, .results = 2, .side = 4, .zero = 1, .a = 1, .down = true};

/* A tile takes 25 multiplications per channel, F(2×2, 3×3) 36 for as many outputs, and it reads less of the
 * filter than F(4×4, 3×3). Rounding errors are 1.35 times those of direct summation at 64 channels, 0.8 times
 * at 512. Speed: 1.5 to 2.4 over 6 shapes. */
static const winograd_set winograd_f3x3 = {.taps = 3, .results = 3, .side = 5, .a = 0.5f, .b = 1.25f};

/* A tile takes 36 multiplications per channel, four of F(2×2, 3×3) 64. With sums over 64 channels at a time
 * rounding errors are 2.4 times those of direct float32 summation at 64 channels, and smaller at 512. Speed:
 * 1.4 to 2.3 over 7 shapes. */
static const winograd_set winograd_f4x4 = {
    .taps = 3, .results = 4, .side = 6, .zero = 1, .a = 0.75f, .b = 1.5f};

#define WINOGRAD_FN static inline __attribute__((always_inline))

/* ---- one side; numbers are `step` vectors apart --------------------------------------------------- */

/* Bᵀ of a side's numbers, in place: row p is the product of x − q over the other points q, the last that of
 * all, by coefficients. Negative constants are added, which SSE does in place. */
WINOGRAD_FN void winograd_input_side(const winograd_set *s, packed_vector *d, const int step)
{
    const float aa = s->a * s->a, bb = s->b * s->b, both = -(aa + bb), times = aa * bb;
    const int z = s->zero;
    packed_vector d0 = d[z * step], d1 = d[(z + 1) * step];
    if (s->b == 0) {
        if (z) d[0] = d1 + -aa * d[0];
        d[z * step] = d1 + s->a * d0, d[(z + 1) * step] = d1 - s->a * d0;
        d[(z + 2) * step] = d[(z + 2) * step] + -aa * d0;
        return;
    }
    packed_vector d2 = d[(z + 2) * step], d3 = d[(z + 3) * step];
    packed_vector low_a = d2 + -bb * d0, high_a = d3 + -bb * d1;
    packed_vector low_b = d2 + -aa * d0, high_b = d3 + -aa * d1;
    if (z) d[0] = d3 + both * d1 + times * d[0];
    d[z * step] = high_a + s->a * low_a, d[(z + 1) * step] = high_a - s->a * low_a;
    d[(z + 2) * step] = high_b + s->b * low_b, d[(z + 3) * step] = high_b - s->b * low_b;
    d[(z + 4) * step] = d[(z + 4) * step] + both * d2 + times * d0;
}

/* Reciprocal products of the distances of 0, of a and of b from the other points. */
WINOGRAD_FN float winograd_over_zero(const winograd_set *s)
{
    return 1 / (s->b == 0 ? -(s->a * s->a) : s->a * s->a * (s->b * s->b));
}
WINOGRAD_FN float winograd_over(const winograd_set *s, const float point, const float other)
{
    return 1 / (2 * (s->zero ? point * point : point) * (s->b == 0 ? 1 : point * point - other * other));
}

/* G of three or four taps: their polynomial at each point, over the product of its distances from the
 * others. */
WINOGRAD_FN void winograd_filter_side(const winograd_set *s, const packed_vector *g, const int step,
                                      packed_vector *u)
{
    const float a = s->a, b = s->b, over_a = winograd_over(s, a, b);
    const int z = s->zero, last = s->taps - 1;
    packed_vector g0 = g[0], g1 = g[step], g2 = g[2 * step];
    packed_vector even_a = g0 + a * a * g2, odd_a = last == 3 ? a * (g1 + a * a * g[last * step]) : a * g1;
    if (z) u[0] = winograd_over_zero(s) * g0;
    u[z] = over_a * (even_a + odd_a), u[z + 1] = over_a * (z ? even_a - odd_a : odd_a - even_a);
    u[s->side - 1] = g[last * step];
    if (b == 0) return;
    const float over_b = winograd_over(s, b, a);
    packed_vector even_b = g0 + b * b * g2, odd_b = last == 3 ? b * (g1 + b * b * g[last * step]) : b * g1;
    u[z + 2] = over_b * (even_b + odd_b), u[z + 3] = over_b * (z ? even_b - odd_b : odd_b - even_b);
}

/* Aᵀ of a side's sums: two results of one pair of points, else three or four, which are the sums' polynomial
 * in rising powers of the points. */
WINOGRAD_FN void winograd_results_side(const winograd_set *s, const packed_vector *m, const int step,
                                       packed_vector *y)
{
    const packed_vector *p = m + s->zero * step;
    const float a = s->a, b = s->b, aa = a * a, bb = b * b;
    packed_vector off_a = p[0] - p[step];
    if (b == 0) {
        y[0] = m[0] + p[0] + p[step], y[1] = a * off_a + p[2 * step];
        return;
    }
    packed_vector sum_a = p[0] + p[step], sum_b = p[2 * step] + p[3 * step],
                  off_b = p[2 * step] - p[3 * step];
    y[0] = s->zero ? m[0] + sum_a + sum_b : sum_a + sum_b;
    y[1] = a * off_a + b * off_b;
    if (s->results == 3) {
        y[2] = p[4 * step] + aa * sum_a + bb * sum_b;
    } else {
        y[2] = aa * sum_a + bb * sum_b;
        y[3] = p[4 * step] + a * aa * off_a + b * bb * off_b;
    }
}

/* ---- both sides ------------------------------------------------------------------------------- */

/* G·g·Gᵀ, one filter a lane. */
WINOGRAD_FN void winograd_filter(const winograd_set *s, const packed_vector *g, packed_vector *u)
{
    const int taps = s->taps, side = s->side;
    packed_vector h[WINOGRAD_MAX_POINTS], line[WINOGRAD_MAX_SIDE];
#pragma GCC unroll 4
    for (int i = 0; i < taps; i++)
        winograd_filter_side(s, g + (s->down ? 1 : taps) * i, s->down ? taps : 1, h + side * i);
#pragma GCC unroll 6
    for (int i = 0; i < side; i++) {
        winograd_filter_side(s, h + i, side, line);
        for (int k = 0; k < side; k++) u[s->down ? side * i + k : side * k + i] = line[k];
    }
}

/* v = Bᵀ·d·B, rows [first, end), a point each `step` floats. */
WINOGRAD_FN void winograd_input(const winograd_set *s, packed_vector *d, const int first, const int end,
                                float *v, int64_t step)
{
#pragma GCC unroll 6
    for (int c = 0; c < s->side; c++) winograd_input_side(s, d + c, s->side);
#pragma GCC unroll 6
    for (int r = first; r < end; r++) {
        winograd_input_side(s, d + s->side * r, 1);
#pragma GCC unroll 6
        for (int c = 0; c < s->side; c++, v += step) *(packed_vector *)v = d[s->side * r + c];
    }
}

/* ---- adjoints, for wgrad: sets of one pair of points and 0 ---------------------------------------- */

/* Row r of A·y·Aᵀ of 2×2 results, a point each `step` floats. */
WINOGRAD_FN void winograd_results_adjoint(const winograd_set *s, const packed_vector *y, const int r,
                                          float *m, int64_t step)
{
    const packed_vector *below = y + 2;
    packed_vector line[2];
    for (int c = 0; c < 2; c++) {
        line[c] = r == 3 ? below[c] : y[c];
        if (r == 1) line[c] += s->a * below[c];
        if (r == 2) line[c] -= s->a * below[c];
    }
    *(packed_vector *)m = line[0];
    *(packed_vector *)(m + step) = line[0] + s->a * line[1];
    *(packed_vector *)(m + 2 * step) = line[0] - s->a * line[1];
    *(packed_vector *)(m + 3 * step) = line[1];
}

WINOGRAD_FN void winograd_filter_adjoint_side(const winograd_set *s, const packed_vector *m, const int step,
                                              packed_vector *g)
{
    const float over_a = winograd_over(s, s->a, 0);
    packed_vector sum = over_a * (m[step] + m[2 * step]);
    g[0] = winograd_over_zero(s) * m[0] + sum;
    g[1] = s->a * over_a * (m[step] - m[2 * step]);
    g[2] = s->a * s->a * sum + m[3 * step];
}

/* Gᵀ·m·G: 3×3 taps of 4×4 points. */
WINOGRAD_FN void winograd_filter_adjoint(const winograd_set *s, const packed_vector *m, packed_vector *g)
{
    packed_vector h[WINOGRAD_MAX_POINTS];
#pragma GCC unroll 4
    for (int c = 0; c < 4; c++) winograd_filter_adjoint_side(s, m + c, 4, h + 3 * c);
#pragma GCC unroll 3
    for (int r = 0; r < 3; r++) winograd_filter_adjoint_side(s, h + r, 3, g + 3 * r);
}

#endif
