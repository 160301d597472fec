/* Broadcasting of shapes, for inference of several families. May use core only. */
#ifndef PROA_OPS_BROADCAST_H
#define PROA_OPS_BROADCAST_H

#include <proa/op.h>

/* Broadcasts m's shape with t's in place; −1 (unknown) gives way to a known dim other than 1. False if they
 * do not fit. */
bool proa__broadcast_into(proa_meta *m, const proa_tensor *t);
/* The error that says so. */
proa_status proa__broadcast_fail(const proa_op *op, const proa_field *f, const proa_meta *m,
                                 const proa_tensor *t);

#endif
