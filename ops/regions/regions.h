/* Sizes and checks of deformable convolution and RoI pooling, shared by inference, rules and kernels. May use
 * core, kernels and ops. Implemented in infer.c. */
#ifndef PROA_OPS_REGIONS_H
#define PROA_OPS_REGIONS_H

#include "kernels/rowwise.h"
#include "ops/ints.h"
#include "impl/regions.h"

/* Sizes of a deformable convolution; −1: known only at run time. */
typedef struct deformable_geometry {
    int64_t batch, channels, height, width;              /* of x */
    int64_t out_channels, kh, kw, out_height, out_width; /* of the filter and of out */
    int64_t stride[2], padding[2], dilation[2], groups, deformable_groups;
} deformable_geometry;

/* Arguments of deformable_conv, which its gradient shares. */
typedef struct deformable_params {
    const char *op;
    const proa_tensor *x, *offset, *weight, *mask;
    proa_ints stride, padding, dilation;
    int64_t groups, deformable_groups;
} deformable_params;

#define DEFORMABLE_PARAMS(a, name)                                                                     \
    ((deformable_params){name, (a)->x, (a)->offset, (a)->weight, (a)->mask, (a)->stride, (a)->padding, \
                         (a)->dilation, (a)->groups, (a)->deformable_groups})

/* Checks the arguments and computes the sizes. */
proa_status proa__deformable_geometry(const deformable_params *p, deformable_geometry *g);

#endif
