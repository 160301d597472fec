/* Source positions and weights of interpolation along an axis, for every device: float32 arithmetic as in
 * Paddle, double for cubic interpolation of float64 images. Not for files whose compiler contracts products
 * and sums to fused multiply-adds, which round differently. */
#ifndef PROA_OPS_VISION_TAPS_H
#define PROA_OPS_VISION_TAPS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#ifndef TAPS_FN
#define TAPS_FN static inline
#endif

enum { TAPS_MAX = 4 };

/* Per arithmetic type T: the step between source positions, (in − 1) / (out − 1) with align_corners, else 1 /
 * factor if a scale factor (> 0) was given, else in / out; and Keys' cubic kernel at distance t from the
 * second of four taps. */
#define T float
#define STEP taps_step
#define CUBIC taps_cubic
#include "ops/vision/taps.inc"
#define T double
#define STEP taps_step_exact
#define CUBIC taps_cubic_exact
#include "ops/vision/taps.inc"

TAPS_FN int64_t taps_clamped(int64_t i, int64_t n) { return i < 0 ? 0 : i >= n ? n - 1 : i; }

/* The n (1: nearest, 2: linear, 4: cubic) source indices and weights of output i. `middle`: pixel centers
 * correspond (half-pixel convention), otherwise pixel indices do. Indices never decrease with i. */
TAPS_FN void taps_of(int n, int64_t i, int64_t in, float step, bool align_corners, bool middle, int64_t *at,
                     float *w)
{
    float half = step * ((float)i + 0.5f) - 0.5f, edge = step * (float)i;
    if (n == 1) {
        at[0] = taps_clamped((int64_t)(align_corners ? edge + 0.5f : edge), in);
        w[0] = 1;
    } else if (n == 2) {
        float from = middle ? (half > 0 ? half : 0) : edge;
        at[0] = taps_clamped((int64_t)from, in);
        at[1] = taps_clamped(at[0] + 1, in);
        w[1] = from - (float)at[0];
        w[0] = 1 - w[1];
    } else {
        float from = align_corners ? edge : half, whole = floorf(from);
        taps_cubic(from - whole, w);
        for (int k = 0; k < 4; k++) at[k] = taps_clamped((int64_t)whole - 1 + k, in);
    }
}

/* taps_of for float64 images: cubics in double throughout. Nearest and linear taps keep Paddle's float32
 * positions. */
TAPS_FN void taps_of_exact(int n, int64_t i, int64_t in, float step, double exact_step, bool align_corners,
                           bool middle, int64_t *at, double *w)
{
    if (n < TAPS_MAX) {
        float rounded[TAPS_MAX];
        taps_of(n, i, in, step, align_corners, middle, at, rounded);
        for (int k = 0; k < n; k++) w[k] = rounded[k];
    } else {
        double from = align_corners ? exact_step * (double)i : exact_step * ((double)i + 0.5) - 0.5;
        double whole = floor(from);
        taps_cubic_exact(from - whole, w);
        for (int k = 0; k < n; k++) at[k] = taps_clamped((int64_t)whole - 1 + k, in);
    }
}

#endif
