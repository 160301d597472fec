/* Source indices and weights of an interpolation, for the kernels of ops/vision. May use core and ops.
 * Implemented in interpolate.c. */
#ifndef PROA_OPS_VISION_INTERPOLATE_H
#define PROA_OPS_VISION_INTERPOLATE_H

#include "ops/vision/vision.h"

/* Along one axis: `n` source indices and weights per output. float64 images use the double weights, all
 * others the float32 ones. */
typedef struct axis_taps {
    int n;
    int64_t in, out;
    int64_t *at;
    float *weight;
    double *exact;
} axis_taps;

/* Images as [outer, depth, height, width, inner]; absent axes are of length 1. */
typedef struct resize_job {
    int64_t outer, inner;
    axis_taps axis[3];
    void *to;
    const void *from;
} resize_job;

/* Prepares the resampling r for images of `ndim` axes from shape `in` to `out`; `exact` for float64 images.
 * Unless it fails, the caller must call proa__resize_end. */
proa_status proa__resize_begin(resize_job *j, const vision_resize *r, bool exact, int ndim, const int64_t *in,
                               const int64_t *out);
void proa__resize_end(resize_job *j);

/* Resamples integers of `size` bytes: nearest for any size, weighted modes for bytes only. */
void proa__resize_integers(const resize_job *j, size_t size);

#endif
