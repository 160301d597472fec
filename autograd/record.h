/* Recording without running, for jit: a program's op becomes a node of the tape as if it had just been
 * called. May use core. */
#ifndef PROA_AUTOGRAD_RECORD_H
#define PROA_AUTOGRAD_RECORD_H

#include "core/tensor.h"

/* Makes the node of a call whose outputs are there already (symbolic handles); nothing if no input wants a
 * gradient, or the op has none. */
proa_status proa__record_again(const proa_op *op, void *args);
/* The handle has no history, hooks or gradient any more, and wants none. */
void proa__forget_history(proa_tensor *t);

#endif
