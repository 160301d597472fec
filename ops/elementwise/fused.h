/* Steps of fused_elementwise, parsed from their text: for its kernels and for the pass that writes the text.
 * May use core, and fused_steps.h. */
#ifndef PROA_OPS_ELEMENTWISE_FUSED_H
#define PROA_OPS_ELEMENTWISE_FUSED_H

#include "core/internal.h"
#include "core/tensor.h"
#include "ops/elementwise/fused_steps.h"

/* Parses `steps`; a syntax error is reported as an error of fused_elementwise. */
proa_status proa__fused_read(const char *steps, int64_t n_inputs, proa__fused_steps *to);
/* True for ops that may be a step: ops with a scalar formula (`formula:` in the op table) whose result has
 * the inputs' dtype, and cast, clip, pow and scale; with at most three inputs and one output. */
bool proa__fused_takes(const proa_op *op);

#endif
