/* The steps of fused_elementwise, read from their text, for its kernels and for the pass that writes them.
 * May use core only. */
#ifndef PROA_OPS_ELEMENTWISE_FUSED_H
#define PROA_OPS_ELEMENTWISE_FUSED_H

#include "core/internal.h"
#include "core/tensor.h"
#include "ops/elementwise/fused_steps.h"

/* Reads `steps`; what is wrong with it is an error of fused_elementwise. */
proa_status proa__fused_read(const char *steps, int64_t n_inputs, proa__fused_steps *to);
/* True for ops that have a row whose result is of the inputs' dtype, and for cast. */
bool proa__fused_takes(const proa_op *op);

#endif
