/* Geometry of fused convolution + ReLU + max pooling. May use core only. */
#ifndef PROA_OPS_CONV_CONV_RELU_POOL_H
#define PROA_OPS_CONV_CONV_RELU_POOL_H

#include "ops/conv/geometry.h"

typedef struct pooled_geometry {
    conv_geometry g;
    int64_t window[2], out[2]; /* of the pooling; rows, columns */
} pooled_geometry;

proa_status proa__pooled_geometry(const char *op, const proa_tensor *x, const proa_tensor *weight,
                                  const proa_ints *padding, const proa_ints *kernel_size, pooled_geometry *p);

#define POOLED_GEOMETRY(name, a, to) \
    proa__pooled_geometry(name, (a)->x, (a)->weight, &(a)->padding, &(a)->kernel_size, to)

/* Stride and dilation of 1 in both dims. */
extern const int64_t proa__pooled_ones[2];
#define POOLED_ONES ((proa_ints){2, (int64_t *)(uintptr_t)proa__pooled_ones, NULL, NULL})

#endif
