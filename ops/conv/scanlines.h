/* Copies of image rows that are too short for a memcpy call each, and zero-padded planes of such rows. For
 * kernel files; may use core only. */
#ifndef PROA_OPS_CONV_SCANLINES_H
#define PROA_OPS_CONV_SCANLINES_H

#include "ops/conv/geometry.h"

#include <stdint.h>
#include <string.h>

typedef float short_lane __attribute__((vector_size(64), aligned(4), may_alias));
typedef float short_half __attribute__((vector_size(32), aligned(4), may_alias));

/* Copies n floats between memory that does not overlap; the last vector overlaps the one before. */
static inline void copy_short(float *to, const float *from, int64_t n)
{
    int64_t k = 0;
    for (; k + 16 <= n; k += 16) *(short_lane *)(to + k) = *(const short_lane *)(from + k);
    if (k == n) return;
    if (n >= 16) {
        *(short_lane *)(to + n - 16) = *(const short_lane *)(from + n - 16);
    } else if (n >= 8) {
        *(short_half *)to = *(const short_half *)from;
        *(short_half *)(to + n - 8) = *(const short_half *)(from + n - 8);
    } else {
        for (; k < n; k++) to[k] = from[k];
    }
}

/* Copies image n of an NCHW batch into zero padding: `lines` rows per channel, `pitch` floats apart. */
static inline void pad_image(const conv_geometry *g, const float *images, int64_t n, int64_t lines,
                             int64_t pitch, float *to)
{
    const float *from = images + n * g->in_channels * g->in[1] * g->in[2];
    memset(to, 0, (size_t)(g->in_channels * lines * pitch) * sizeof *to);
    for (int64_t c = 0; c < g->in_channels; c++)
        for (int64_t y = 0; y < g->in[1]; y++, from += g->in[2])
            copy_short(to + (c * lines + g->before[1] + y) * pitch + g->before[2], from, g->in[2]);
}

#endif
