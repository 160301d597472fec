/* The test whether an op may be a step of fused_elementwise (a chain of elementwise ops that runs in one pass
 * over memory), for that op and for the pass that makes it. May use core, and fused_steps.h. */
#ifndef PROA_OPS_ELEMENTWISE_FUSED_H
#define PROA_OPS_ELEMENTWISE_FUSED_H

#include "core/internal.h"
#include "core/tensor.h"
#include "ops/elementwise/fused_steps.h"

/* True for ops that may be a step: ops with a scalar formula (`formula:` in the op table) whose result has
 * the inputs' dtype, and cast, clip, pow and scale; with at most three inputs, four attributes and one
 * output. */
bool proa__fused_takes(const proa_op *op);

#endif
