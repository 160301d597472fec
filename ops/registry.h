/* The ops that were added at run time. Implemented in ops/registry.c; may use core only. */
#ifndef PROA_OPS_REGISTRY_H
#define PROA_OPS_REGISTRY_H

#include <proa/op.h>

/* The op that was registered as number `index`, in the order of registration; NULL behind the last. */
const proa_op *proa__registered_op(size_t index);

#endif
