/* Access to the recorded graph's nodes. May use core. */
#include "autograd/graph.h"

proa_node *proa_node_of(proa_tensor *t)
{
    if (!t || !(t->flags & PROA_T_GRAD)) return NULL;
    proa_node *node = NULL;
    uint32_t output;
    return proa__gradient_edge(t, &node, &output) ? node : NULL;
}

void proa_node_drop(proa_node *n)
{
    if (n) proa__node_release(n);
}

const proa_op *proa_node_op(const proa_node *n) { return n->kind == PROA_NODE_OP ? n->op : NULL; }
bool proa_node_is_leaf(const proa_node *n) { return n->kind == PROA_NODE_LEAF; }
int32_t proa_node_n_edges(const proa_node *n) { return n->n_edges; }

proa_node *proa_node_next(const proa_node *n, int32_t edge)
{
    proa_node *next = n->edges[edge].node;
    return next ? proa__node_retain(next) : NULL;
}
