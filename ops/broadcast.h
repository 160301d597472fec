/* Broadcasting of shapes, for the shape inference of several op families. May use core only. */
#ifndef PROA_OPS_BROADCAST_H
#define PROA_OPS_BROADCAST_H

#include <proa/op.h>

/* Broadcasts m's shape with t's, in place. A dim of −1 (unknown) becomes the other tensor's dim if that is
 * known and not 1. False if the shapes do not broadcast. */
bool proa__broadcast_into(proa_meta *m, const proa_tensor *t);
/* Sets the error that the shapes do not broadcast. */
proa_status proa__broadcast_fail(const proa_op *op, const proa_field *f, const proa_meta *m,
                                 const proa_tensor *t);

#endif
