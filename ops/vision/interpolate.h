/* Source indices and weights of an interpolation, for the kernels of ops/vision. May use core and ops.
 * Implemented in interpolate.c. */
#ifndef PROA_OPS_VISION_INTERPOLATE_H
#define PROA_OPS_VISION_INTERPOLATE_H

#include "ops/vision/vision.h"

/* Along one axis: output i is the sum of the inputs at[k], weighted, for start[i] ≤ k < start[i + 1]. Every
 * output has n of them, or, if n is 0, any number. float64 images use the double weights, all others the
 * float32 ones. */
typedef struct axis_taps {
    int n;
    int64_t in, out;
    int64_t *at, *start;
    float *weight;
    double *exact;
} axis_taps;

/* Images as [outer, depth, height, width, inner]; absent axes are of length 1. */
typedef struct resize_job {
    int64_t outer, inner;
    axis_taps axis[3];
    proa_dtype dtype;
    void *to;
    const void *from;
} resize_job;

/* Prepares the resampling r for images of `ndim` axes from shape `in` to `out`, or, with `back`, its
 * transpose: the gradient, from images of shape `out`. `exact` for float64 images. Unless it fails, the
 * caller must call proa__resize_end. */
proa_status proa__resize_begin(resize_job *j, const vision_resize *r, bool exact, bool back, int ndim,
                               const int64_t *in, const int64_t *out);
void proa__resize_end(resize_job *j);

/* Resamples bytes in a weighted mode. */
void proa__resize_bytes(const resize_job *j);

#endif
