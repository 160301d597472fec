/* Opens cycles of ownership; see cycles.c. */
#ifndef PROA_AUTOGRAD_CYCLES_H
#define PROA_AUTOGRAD_CYCLES_H

#include "autograd/node.h"

/* Before t, which a call has overwritten, is attached to `made`: nodes behind that one which saved t's handle
 * get another. Looks at the graph only if some node saved t. */
proa_status proa__open_cycles(proa_node *made, proa_tensor *t);

#endif
