/* Axes, length and start of a diagonal, and its view, for inference and kernels of this folder. May use core
 * and ops. Implemented in diagonal.c. */
#ifndef PROA_OPS_SHAPE_DIAGONAL_H
#define PROA_OPS_SHAPE_DIAGONAL_H

#include "ops/ints.h"

/* The diagonal at `offset` from the main one of axes a and b: `length` elements (−1: unknown), the first at
 * index from_a of axis a and from_b of axis b. */
typedef struct shape_diagonal {
    int a, b;
    int64_t length, from_a, from_b;
} shape_diagonal;

/* INVALID_ARGUMENT unless the axes exist and differ. */
proa_status proa__diagonal(const char *who, int ndim, const int64_t *shape, int64_t offset, int64_t axis1,
                           int64_t axis2, shape_diagonal *d);
/* View of t's diagonal, which becomes the last axis. */
proa_tensor proa__diagonal_window(const proa_tensor *t, const shape_diagonal *d);

#endif
