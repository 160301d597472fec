/* 3×3 convolutions with stride 2 and constant filters over tiles of 2×2 results. Along a side the results are
 * y0 = d0·g0 + d1·g1 + d2·g2 and y1 = d2·g0 + d3·g1 + d4·g2. Only g1 multiplies d1 and d3; the rest is F(2,
 * 2) of winograd.h's paper, three products instead of four: with A = (d0 − d2)·g0 + d1·g1, B = d2·(g0 + g2)
 * and C = (d4 − d2)·g2 + d3·g1, y0 = A + B and y1 = B + C. Over both sides that takes 25 products a channel
 * instead of 36 (the phases of Huang et al., "DWM: A Decomposable Winograd Method for Convolution
 * Acceleration", 2020). The terms of A and of C are adjacent in memory, so that each sum is one product of
 * twice or four times the depth. For kernel files; may use core and helpers of ops/; everything is static. */
#ifndef PROA_OPS_CONV_WINOGRAD_STRIDED_H
#define PROA_OPS_CONV_WINOGRAD_STRIDED_H

#include "ops/conv/winograd.h"

enum { STRIDED_SIDE = 5, STRIDED_POINTS = 25, STRIDED_SUMS = 9 };

/* Bᵀ of one side, in place: d0 to d4, `step` vectors apart, become d0 − d2, d2, d4 − d2, d1, d3. */
WINOGRAD_FN void strided_side(packed_vector *d, const int step)
{
    packed_vector d1 = d[step], d3 = d[3 * step];
    d[0] -= d[2 * step], d[4 * step] -= d[2 * step];
    d[step] = d[2 * step], d[2 * step] = d[4 * step], d[3 * step] = d1, d[4 * step] = d3;
}

/* G of one side: the filter taps g0, g1, g2, `step` vectors apart, become g0, g0 + g2, g2, g1, g1. */
WINOGRAD_FN void strided_filter_side(const winograd_set *none, const packed_vector *g, const int step,
                                     packed_vector *u)
{
    (void)none;
    u[0] = g[0], u[1] = g[0] + g[2 * step], u[2] = g[2 * step], u[3] = u[4] = g[step];
}

static inline void strided_filter(const packed_vector *g, packed_vector *u)
{
    winograd_filter_by(NULL, strided_filter_side, 3, STRIDED_SIDE, false, g, u);
}

/* Writes the 25 points of a tile's 5×5 pixels, all channels, as row `row` of the sums' operands in v. */
static inline void strided_transform(const winograd *w, int64_t tile, int64_t row, float *v)
{
    const winograd_map *m = &w->from;
    winograd_place at = winograd_place_of(w, tile);
    const float *from[STRIDED_POINTS];
    int64_t block[STRIDED_POINTS];
    winograd_window(m, at.image, 2 * at.y - w->before[0], 2 * at.x - w->before[1], STRIDED_SIDE, from, block);
    float *to[STRIDED_POINTS];
    for (int i = 0; i < STRIDED_POINTS; i++) {
        const winograd_sum *s = &w->sum[w->kind->sum_of[i]];
        to[i] = v + s->from + row * s->ld + w->kind->place_of[i] * m->channels;
    }
    for (int64_t b = 0; b < m->channels / WINOGRAD_BLOCK; b++)
        for (int64_t q = 0; q < WINOGRAD_BLOCK; q += PACKED_LANES) {
            packed_vector d[STRIDED_POINTS];
#pragma GCC unroll 25
            for (int i = 0; i < STRIDED_POINTS; i++)
                d[i] = *(const packed_vector *)(from[i] + b * block[i] + q);
#pragma GCC unroll 5
            for (int c = 0; c < STRIDED_SIDE; c++) strided_side(d + c, STRIDED_SIDE);
#pragma GCC unroll 5
            for (int r = 0; r < STRIDED_SIDE; r++) strided_side(d + STRIDED_SIDE * r, 1);
#pragma GCC unroll 25
            for (int i = 0; i < STRIDED_POINTS; i++)
                *(packed_vector *)(to[i] + b * WINOGRAD_BLOCK + q) = d[i];
        }
}

/* Aᵀ of both sides: the tile's 2×2 results A + B and B + C, from its nine sums m, for channels from c on. */
static inline void strided_results(const winograd *w, winograd_place at, int64_t c, const float *m)
{
    packed_vector p[STRIDED_SUMS], h[6], y[4];
#pragma GCC unroll 9
    for (int i = 0; i < STRIDED_SUMS; i++) p[i] = *(const packed_vector *)(m + i * w->to_step);
#pragma GCC unroll 3
    for (int i = 0; i < 3; i++) h[i] = p[i] + p[3 + i], h[3 + i] = p[3 + i] + p[6 + i];
    y[0] = h[0] + h[1], y[1] = h[1] + h[2], y[2] = h[3] + h[4], y[3] = h[4] + h[5];
    for (int r = 0; r < 2; r++) winograd_put_row(w, at, r, c, y + 2 * r, 2);
}

/* Order of a side's points and sum of each (header): d0 − d2 (A), d2 (B), d4 − d2 (C), d1 (A), d3 (C). */
static const winograd_kind winograd_strided_kind = {
    .side = 2,
    .taps = WINOGRAD_TAPS,
    .phases = 1,
    .tap = winograd_tap,
    .points = STRIDED_POINTS,
    .sums = STRIDED_SUMS,
    .piece = 4 * PACKED_KC,
    .chunk_bytes = 1 << 20, /* the filter is larger: it is read for more tiles at a time */
    .sum_of = {0, 1, 2, 0, 2, 3, 4, 5, 3, 5, 6, 7, 8, 6, 8, 0, 1, 2, 0, 2, 6, 7, 8, 6, 8},
    .place_of = {0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0, 0, 1, 1, 2, 1, 2, 3, 3, 2, 1, 2, 3, 3},
    .depths = {4, 2, 4, 2, 1, 2, 4, 2, 4},
    .filter = strided_filter,
    .transform = strided_transform,
    .results = strided_results};

#endif
