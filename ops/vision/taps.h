/* Where interpolation reads along an axis, and with which weights: float32 arithmetic as Paddle has it, for
 * every device. Not for files whose compiler contracts products and sums: that gives other bits. */
#ifndef PROA_OPS_VISION_TAPS_H
#define PROA_OPS_VISION_TAPS_H

#include <math.h>
#include <stdbool.h>
#include <stdint.h>

#ifndef TAPS_FN
#define TAPS_FN static inline
#endif

enum { TAPS_MOST = 4 };

/* in / out of an axis; factor: what `scale` says of it, 0 if a size was given. */
TAPS_FN float taps_step(int64_t in, int64_t out, bool align_corners, float factor)
{
    if (out <= 1) return 0;
    if (align_corners) return (float)(in - 1) / (float)(out - 1);
    return factor > 0 ? 1.0f / factor : (float)in / (float)out;
}

TAPS_FN int64_t taps_clamped(int64_t i, int64_t n) { return i < 0 ? 0 : i >= n ? n - 1 : i; }

/* Keys' cubic at distance t from the second of four taps. */
TAPS_FN void taps_cubic(float t, float *w)
{
    const float a = -0.75f;
    float far = t + 1, near = 1 - t, beyond = 2 - t;
    w[0] = ((a * far - 5 * a) * far + 8 * a) * far - 4 * a;
    w[1] = ((a + 2) * t - (a + 3)) * t * t + 1;
    w[2] = ((a + 2) * near - (a + 3)) * near * near + 1;
    w[3] = ((a * beyond - 5 * a) * beyond + 8 * a) * beyond - 4 * a;
}

/* The n (1: nearest, 2: linear, 4: cubic) source places and weights of output i; `middle`: pixels' middles
 * correspond, not their edges. Places never decrease with i. */
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

#endif
