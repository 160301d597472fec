/* Sizes and checks of the image ops, shared by inference, wire forms and kernels. May use core and ops.
 * Implemented in infer.c. */
#ifndef PROA_OPS_VISION_H
#define PROA_OPS_VISION_H

#include "ops/ints.h"
#include "ops/windows.h"
#include "impl/vision.h"

/* Arguments of interpolate and its gradient. */
typedef struct vision_resize {
    const char *who;
    const proa_ints *size;
    const proa_floats *scale;
    proa_interp_method mode;
    bool align_corners;
    int64_t align_mode;
    proa_data_format format;
} vision_resize;

#define VISION_RESIZE(WHO, a)                                                                      \
    ((vision_resize){WHO, &(a)->size, &(a)->scale, (a)->mode, (a)->align_corners, (a)->align_mode, \
                     (a)->data_format})

/* Computes out's shape (ndim dims) from x's `shape`; a dim is −1 if it is known only at run time.
 * INVALID_ARGUMENT naming r->who. */
proa_status proa__resized(const vision_resize *r, int ndim, const int64_t *shape, int64_t *out);

/* Windows of unfold and fold over images of size in[2]: out[2] windows per dim. */
typedef struct vision_windows {
    int64_t kernel[2], stride[2], before[2], after[2], dilation[2], in[2], out[2];
} vision_windows;

proa_status proa__windows(const char *who, const proa_ints lists[4], const int64_t in[2], vision_windows *w);

/* Splits temporal_shift's channels: [0, *back) are shifted one way, [*back, *ahead) the other way, the rest
 * not at all. *back is floor(C · ratio), *ahead floor(2 · C · ratio). */
static inline void vision_shift_channels(int64_t channels, double ratio, int64_t *back, int64_t *ahead)
{
    *back = (int64_t)((float)channels * (float)ratio);
    *ahead = (int64_t)((float)channels * 2 * (float)ratio);
}

#endif
