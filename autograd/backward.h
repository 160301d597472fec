/* Interface of the backward engine for autograd's public functions, for backwards of custom functions, and
 * for those who store or exchange gradients while a backward runs. May use core and ops. */
#ifndef PROA_AUTOGRAD_BACKWARD_H
#define PROA_AUTOGRAD_BACKWARD_H

#include "autograd/node.h"
#include "core/run.h"

enum { PROA_GRADS_MAX = 1024 };

/* A tensor's position on the tape (node and output), with a gradient: for a root the one that backward starts
 * from, for a target the one that arrived (retained). */
typedef struct proa__endpoint {
    proa_node *node;
    uint32_t output;
    proa_tensor *grad;
} proa__endpoint;

typedef struct proa__backward_call {
    const proa__endpoint *roots;
    int64_t n_roots;
    proa__endpoint *targets; /* NULL: add to the leaves */
    int64_t n_targets;
    bool retain_graph, create_graph;
    bool inside; /* do not visit the nodes behind the targets, which may be a whole network */
} proa__backward_call;

proa_status proa__backward_run(const proa__backward_call *call);
/* A new number for a walk over the graph: nodes whose `pass` equals it have been visited. */
uint64_t proa__backward_new_pass(void);
/* proa_apply without the check that saved inputs are not overwritten before the backward: fn checks that
 * itself. */
proa_tensors proa__apply_unwatched(const proa_function *fn, proa_tensors inputs, void *context);
/* For a custom function's backward under create_graph: recorded gradients of `outputs`, which that backward
 * has just computed from `inputs` (results of ops); stops at `inputs`. PROA_NONE where no gradient
 * arrives. */
proa_tensors proa__grad_inside(proa_tensors outputs, proa_tensors inputs, proa_tensors grads);
/* Number of an operand's dims that only the run knows, if one of them may be 1 where out's is longer: then
 * the tape sums the gradient to the shape that the operand has in the run. 0: none. */
int proa__stretched_dims(const proa_op *op, const int64_t *shape, int ndim, const proa_meta *out);
/* The gradient that the rule of n returned for the input behind edge e, summed so. New or borrowed; NULL on
 * error. */
proa_tensor *proa__fit_stretched(const proa_node *n, const proa_edge *e, proa_tensor *g);
/* For a custom function's backward: true if it may be called again, so that saved values must stay. */
bool proa__backward_retains(void);

/* Registers fn, which each backward runs as soon as it has added to the leaf's gradient, while other
 * gradients are still to come. One per leaf; NULL removes it. early: fn may even run while a custom
 * function's backward still computes other gradients. */
proa_status proa__watch_gradient(proa_tensor *leaf, proa_status (*fn)(void *context), void *context,
                                 bool early);
/* For a watcher that stores gradients in memory of its own: alone(context, grad) says whether nobody but the
 * leaf and the watcher shares grad's memory. proa_zero_grad then leaves it uncleared. */
void proa__watcher_shares(proa_tensor *leaf, bool (*alone)(const void *context, const proa_tensor *grad));
/* True if the leaf's gradient may be passed to proa__gradient_early. */
bool proa__takes_early(const proa_tensor *leaf);
/* For a custom function's backward: stores g, the gradient of its input number `input`, at once, if that
 * input is a leaf with an early watcher and this is the last gradient that it gets. *taken true: g was
 * dropped from the scope, and the function returns PROA_NONE for this input. */
proa_status proa__gradient_early(int64_t input, proa_tensor *g, bool *taken);
/* A callback at the end of this thread's outermost backward, with its status. Memory is the caller's. */
typedef struct proa__backward_end {
    proa_status (*fn)(void *context, proa_status status);
    void *context;
    struct proa__backward_end *next;
} proa__backward_end;
/* For functions that a running backward calls. */
void proa__at_backward_end(proa__backward_end *end);

#endif
