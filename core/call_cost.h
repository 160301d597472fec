/* FLOPs and memory traffic of an op call, from its args, for the profiler and for programs. May use core. */
#ifndef PROA_CORE_CALL_COST_H
#define PROA_CORE_CALL_COST_H

#include "core/internal.h"

/* By op id: the function generated from `flops:` of the op table. It returns a call's floating-point
 * operations, a multiply-add as two, once its outputs have shapes; NAN where a size is unknown. NULL: the op
 * is not counted. */
extern double (*const proa__op_flops[])(const void *args);
bool proa__counts_flops(const proa_op *op);
/* Floating-point operations of a call whose outputs are there, as the op table's `flops:` says; 0 for ops
 * that are not counted, -1 where a shape is unknown. Looks at shapes and attributes only. */
double proa__call_flops(const proa_op *op, const void *args);
/* Bytes of the call's inputs and outputs; a tensor that is passed twice counts twice, a broadcast one no more
 * than its storage. 0 for views. */
double proa__call_bytes(const proa_op *op, const void *args);

/* The terms of `flops:`. A term is NAN if it needs a size that is unknown, and 0 for an absent tensor. */
/* Number of elements. */
double proa__count_numel(const proa_tensor *t);
/* Length of an axis. A negative axis counts from the last, and is taken as 0 at least. 0 where there is no
 * such axis, but 1 for a scalar. */
double proa__count_size(const proa_tensor *t, int axis);
/* Multiply-adds per output element of a convolution filter: the product of all its axes but the first. */
double proa__count_taps(const proa_tensor *t);
/* Elements of the matrices in a list; tensors of another rank than two are left out. */
double proa__count_matrices(proa_tensors list);
/* 1 if the tensor is present, 0 if it is NULL or PROA_NONE. */
double proa__count_given(const proa_tensor *t);

#endif
