/* Window arithmetic of pooling, shared by shape inference and the kernels of every device. Uses the op
 * table's enums. */
#ifndef PROA_OPS_POOL_WINDOWS_H
#define PROA_OPS_POOL_WINDOWS_H

#include <float.h>

#include <proa/ops/types.h>

#ifndef POOL_FN
#define POOL_FN static inline
#endif
#ifndef POOL_DIV /* of numbers that are not negative */
#define POOL_DIV(n, by) ((n) / (by))
#endif

/* The largest value of a window that lies in padding alone, as in Paddle. Its average is 0. */
#define POOL_NOTHING (-FLT_MAX)

/* Spatial sizes are three, depth first; the absent leading ones are 1. */
typedef struct pool_geometry {
    int dims;
    bool channels_last, adaptive, exclusive;
    proa_pooling_type type;
    int64_t batch, channels;
    int64_t in[3], out[3], kernel[3], stride[3], before[3], after[3];
} pool_geometry;

/* Inputs [*from, *to) of output `i` along dim d, and (not adaptive) the window's length with padding. */
POOL_FN int64_t pool_window(const pool_geometry *g, int d, int64_t i, int64_t *from, int64_t *to)
{
    if (g->adaptive) {
        *from = POOL_DIV(i * g->in[d], g->out[d]);
        *to = POOL_DIV((i + 1) * g->in[d] + g->out[d] - 1, g->out[d]);
        return *to - *from;
    }
    int64_t start = i * g->stride[d] - g->before[d], end = start + g->kernel[d];
    if (end > g->in[d] + g->before[d]) end = g->in[d] + g->before[d];
    int64_t length = end - start;
    *from = start < 0 ? 0 : start;
    *to = end > g->in[d] ? g->in[d] : end;
    if (*to < *from) *to = *from;
    return length;
}

/* Outputs [*from, *to) along dim d whose windows have input `i`. */
POOL_FN void pool_reached(const pool_geometry *g, int d, int64_t i, int64_t *from, int64_t *to)
{
    if (g->adaptive) {
        *from = POOL_DIV(i * g->out[d], g->in[d]);
        *to = POOL_DIV((i + 1) * g->out[d] - 1, g->in[d]) + 1;
        return;
    }
    int64_t first = i + g->before[d] - g->kernel[d];
    *from = first < 0 ? 0 : POOL_DIV(first, g->stride[d]) + 1;
    *to = POOL_DIV(i + g->before[d], g->stride[d]) + 1;
    if (*to > g->out[d]) *to = g->out[d];
}

#endif
