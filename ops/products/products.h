/* Axis of cross and shapes of kron, shared by inference and kernels. May use core and ops. Implemented in
 * products.c. */
#ifndef PROA_OPS_PRODUCTS_H
#define PROA_OPS_PRODUCTS_H

#include "ops/ints.h"

/* Sets *axis of cross: `given`, or for 9 (Paddle's default) the first axis of length 3, in a program else one
 * of unknown length. INVALID_ARGUMENT if its length is known and not 3. */
proa_status proa__cross_axis(const proa_tensor *x, int64_t given, int *axis);

/* Shapes of kron's operands, the shorter one with leading ones, and of its result. */
typedef struct kron_shape {
    int ndim;
    int64_t x[PROA_MAX_DIMS], y[PROA_MAX_DIMS], out[PROA_MAX_DIMS];
} kron_shape;

proa_status proa__kron_shape(const char *who, const proa_tensor *x, const proa_tensor *y, kron_shape *s);

#endif
