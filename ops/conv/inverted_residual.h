/* Sizes of the three convolutions of an inverted residual. Implemented in inverted_residual.c.
 * May use core only. */
#ifndef PROA_OPS_CONV_INVERTED_RESIDUAL_H
#define PROA_OPS_CONV_INVERTED_RESIDUAL_H

#include "ops/conv/geometry.h"

typedef struct inverted_geometry {
    bool expands; /* false: no 1×1 expansion, the depthwise convolution reads x; `expand` is not set */
    conv_geometry expand, depthwise, project;
} inverted_geometry;

/* Checks everything except biases and residual, and fills g; errors name the argument. */
proa_status proa__inverted_geometry(const proa_inverted_residual_args *a, inverted_geometry *g);

#endif
