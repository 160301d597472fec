/* FLOPs and memory traffic of an op call, from its args, for the profiler and for programs. May use core. */
#ifndef PROA_CORE_CALL_COST_H
#define PROA_CORE_CALL_COST_H

#include "core/internal.h"

/* By op id, what `flops:` of the op table says: a call's floating-point operations once its outputs are
 * there, a multiply-add as two; NAN where a size is unknown. NULL: too few to be counted. */
extern double (*const proa__op_flops[])(const void *args);
bool proa__counts_flops(const proa_op *op);
/* Floating-point operations of a call whose outputs are there, as the op table's `flops:` says; 0 for ops
 * that are not counted, -1 where a shape is unknown. Looks at shapes and attributes only. */
double proa__call_flops(const proa_op *op, const void *args);
/* Bytes of its inputs and outputs, each once; 0 for views. */
double proa__call_bytes(const proa_op *op, const void *args);

/* The terms of `flops:`. A term is NAN if it needs a size that is unknown, and 0 for an absent tensor. */
/* Number of elements. */
double proa__count_numel(const proa_tensor *t);
/* Length of an axis; a negative one counts from the last, and ends at the first. */
double proa__count_size(const proa_tensor *t, int axis);
/* Terms of one of a filter's sums: the product of all axes but the first. */
double proa__count_taps(const proa_tensor *t);
/* Elements of the matrices in a list; what has not two axes is left out. */
double proa__count_matrices(proa_tensors list);
/* 1 if the tensor is there. */
double proa__count_given(const proa_tensor *t);

#endif
