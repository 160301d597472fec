/* Axes, normalization factors and frame sizes of the FFT ops, shared by inference and kernels. May use core
 * and the ops. */
#ifndef PROA_OPS_FFT_H
#define PROA_OPS_FFT_H

#include "core/internal.h"
#include "core/tensor.h"
#include "impl/fft.h"

/* Maps a negative axis to one counted from the front. */
static inline int fft_axis(const proa_tensor *t, int64_t axis)
{
    return (int)(axis < 0 ? axis + t->ndim : axis);
}

/* A signal's axis: `outer` signals of `length` elements, each of which is a row of `inner`. */
typedef struct fft_frames {
    int64_t outer, length, frames, size, inner, hop;
    bool last; /* windows are [size, frames]; otherwise [frames, size, inner] */
} fft_frames;

/* The factor of a transform of n elements by norm and direction: 1, 1 / n, or 1 / root (root: √n). */
static inline double fft_scale(int norm, bool forward, double n, double root)
{
    if (norm == PROA_FFT_NORM_ORTHO) return 1 / root;
    return (norm == PROA_FFT_NORM_FORWARD) == forward ? 1 / n : 1;
}

#endif
