/* What an op call computes and moves, from its args, for the profiler. May use core. */
#ifndef PROA_OPS_FLOPS_H
#define PROA_OPS_FLOPS_H

#include "core/internal.h"

/* Floating-point operations of a call that has run, a multiply-add as two: products, convolutions, attention,
 * recurrent layers, and their gradients; 0 for all others. */
double proa__call_flops(const proa_op *op, const void *args);
/* Bytes of its inputs and outputs, each once; 0 for views. */
double proa__call_bytes(const proa_op *op, const void *args);

#endif
