/* The recorded graph from outside: nodes, and the nodes that their gradients go to (Tensor.grad_fn). */
#ifndef PROA_AUTOGRAD_GRAPH_H
#define PROA_AUTOGRAD_GRAPH_H

#include "autograd/node.h"

/* A reference to the node that a tensor's gradient goes to; NULL: it wants none. proa_node_drop ends it. */
PROA_API proa_node *proa_node_of(proa_tensor *t);
PROA_API void proa_node_drop(proa_node *n);
/* The recorded op; NULL for a leaf's node and for a function of the user's. */
PROA_API const proa_op *proa_node_op(const proa_node *n);
PROA_API bool proa_node_is_leaf(const proa_node *n);
PROA_API int32_t proa_node_n_edges(const proa_node *n);
/* A reference to the node at the end of an edge; NULL: no gradient flows there. */
PROA_API proa_node *proa_node_next(const proa_node *n, int32_t edge);

#endif
