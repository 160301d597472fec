/* Records calls without running them, for jit: an op of a program becomes a tape node as if it had just been
 * called. May use core. */
#ifndef PROA_AUTOGRAD_RECORD_H
#define PROA_AUTOGRAD_RECORD_H

#include "core/tensor.h"

/* Makes the node of a call whose outputs are there already (symbolic handles); nothing if no input wants a
 * gradient, or the op has none. */
proa_status proa__record_again(const proa_op *op, void *args);
/* Removes the handle's history, hooks and gradient; it wants no gradient afterwards. */
void proa__forget_history(proa_tensor *t);

#endif
