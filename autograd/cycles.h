/* Prevents reference cycles through in-place calls; see cycles.c. May use core. */
#ifndef PROA_AUTOGRAD_CYCLES_H
#define PROA_AUTOGRAD_CYCLES_H

#include "autograd/node.h"

/* Call it before t, which a call has overwritten, is attached to the node `made`: replaces t by another
 * handle in the nodes behind `made` that saved it. Walks the graph only if some node has saved t. */
proa_status proa__open_cycles(proa_node *made, proa_tensor *t);

#endif
