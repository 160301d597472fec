/* FLOPs and memory traffic of an op call, from its args, for the profiler and for programs. May use core. */
#ifndef PROA_OPS_FLOPS_H
#define PROA_OPS_FLOPS_H

#include "core/internal.h"

/* Whether an op multiplies and adds enough to be counted: products, convolutions, attention, recurrent
 * layers, and their gradients. */
bool proa__counts_flops(const proa_op *op);
/* Floating-point operations of a call whose outputs are there, a multiply-add as two; 0 for ops that are not
 * counted, -1 where an output's shape is unknown. Looks at shapes and attributes only. */
double proa__call_flops(const proa_op *op, const void *args);
/* Bytes of its inputs and outputs, each once; 0 for views. */
double proa__call_bytes(const proa_op *op, const void *args);

#endif
