/* Range of each axis that a slice takes (slice, strided_slice, set_value and their kernels), and checks of
 * dims and broadcasting that other ops share. May use core and ops/ints.h. */
#ifndef PROA_OPS_SLICE_H
#define PROA_OPS_SLICE_H

#include "ops/ints.h"

typedef struct proa_cut_spec {
    const char *who;                                            /* the op, for messages */
    const proa_ints *axes, *starts, *ends, *strides, *decrease; /* strides may be NULL: 1 */
} proa_cut_spec;

typedef struct proa_cut {
    int ndim, n_axes, axes[PROA_MAX_DIMS];
    uint32_t dropped; /* bit a: axis a is removed from the result */
    int64_t start[PROA_MAX_DIMS], step[PROA_MAX_DIMS], count[PROA_MAX_DIMS]; /* by axis; count −1: unknown */
} proa_cut;

#define SLICE_SPEC(a) \
    (proa_cut_spec) { "slice", &(a)->axes, &(a)->starts, &(a)->ends, NULL, &(a)->decrease_axis }
#define STRIDED_SLICE_SPEC(a)                                                                     \
    (proa_cut_spec)                                                                               \
    {                                                                                             \
        "strided_slice", &(a)->axes, &(a)->starts, &(a)->ends, &(a)->strides, &(a)->decrease_axis \
    }
#define SLICE_GRAD_SPEC(a)                                                                             \
    (proa_cut_spec)                                                                                    \
    {                                                                                                  \
        "strided_slice_grad", &(a)->axes, &(a)->starts, &(a)->ends, &(a)->strides, &(a)->decrease_axis \
    }

/* Normalizes and clamps the ranges; errors name the op. */
proa_status proa__cut(const proa_cut_spec *s, int ndim, const int64_t *shape, proa_cut *c);
/* Narrows a window to the ranges and removes its dropped axes. */
void proa__cut_window(const proa_cut *c, proa_tensor *w);
/* Fills a meta from a list of dims; unknown entries become −1. */
proa_status proa__dims_meta(const char *who, const char *arg, const proa_ints *shape, int dtype,
                            proa_meta *m);
/* Returns INVALID_ARGUMENT if t does not broadcast to the shape of `to`. */
proa_status proa__check_broadcast(const char *who, const char *arg, const proa_tensor *t,
                                  const proa_meta *to);
/* Expands a window to `ndim` dims of `shape` by repeating axes of length 1 (checked by the caller). */
void proa__expand_window(proa_tensor *w, int ndim, const int64_t *shape);

#endif
