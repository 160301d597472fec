/* The engine's one entry, for the public functions of autograd. */
#ifndef PROA_AUTOGRAD_BACKWARD_H
#define PROA_AUTOGRAD_BACKWARD_H

#include "autograd/node.h"
#include "core/run.h"

enum { PROA_GRADS_MAX = 1024 };

/* A tensor's place on the tape, with the gradient that starts there (roots) or arrived (targets; kept). */
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
    bool inside; /* nothing behind the targets is visited, which a whole network may be */
} proa__backward_call;

proa_status proa__backward_run(const proa__backward_call *call);
/* A number for a walk over the graph: a node whose `pass` it is has been seen. */
uint64_t proa__backward_new_pass(void);
/* As proa_apply, but nothing watches whether kept inputs are overwritten before the backward: fn does. */
proa_tensors proa__apply_unwatched(const proa_function *fn, proa_tensors inputs, void *context);
/* For a custom function's backward that is recorded: gradients, recorded too, of what it computed just now
 * from `inputs`, results of ops all of them; what lies behind these belongs to the backward that runs.
 * PROA_NONE where nothing arrives. */
proa_tensors proa__grad_inside(proa_tensors outputs, proa_tensors inputs, proa_tensors grads);
/* For a custom function's backward: whether it may be called again, so that what it saved must stay. */
bool proa__backward_retains(void);

/* Runs fn whenever a backward has added to the leaf's gradient; one a leaf, NULL ends it. */
proa_status proa__watch_gradient(proa_tensor *leaf, proa_status (*fn)(void *context), void *context);
/* Callback at the end of this thread's outermost backward, with its status; the caller's memory. */
typedef struct proa__backward_end {
    proa_status (*fn)(void *context, proa_status status);
    void *context;
    struct proa__backward_end *next;
} proa__backward_end;
/* For functions that a running backward calls. */
void proa__at_backward_end(proa__backward_end *end);

#endif
