/* The nodes of the tape: a node is one recorded call, and its edges lead to the nodes that made its inputs. A
 * leaf that wants a gradient has a node of its own, which accumulates the gradient. May use core and ops. */
#ifndef PROA_AUTOGRAD_NODE_H
#define PROA_AUTOGRAD_NODE_H

#include "core/internal.h"
#include "core/tensor.h"

#include <proa/autograd.h>

typedef struct proa_node proa_node;

typedef enum proa_node_kind { PROA_NODE_OP, PROA_NODE_LEAF, PROA_NODE_FUNCTION } proa_node_kind;

typedef struct proa_edge {
    proa_node *node; /* retained; NULL: no gradient flows here */
    uint32_t output; /* which of its outputs */
    proa_meta meta;  /* the input's shape and dtype: what the gradient is fitted to */
} proa_edge;

typedef struct proa_hook {
    int64_t id;
    proa_hook_fn fn;
    void *context;
    void (*release)(void *);
} proa_hook;

/* A tensor's gradient, hooks, and whether to retain the gradient; shared by the handle and its node. */
struct proa_grad_info {
    atomic_int refs;
    proa_tensor *grad; /* kept; NULL if none */
    proa_node *leaf;   /* the leaf's node, freed with this struct; its owners count in `refs` here */
    proa_hook *hooks;
    int32_t n_hooks;
    int64_t next_hook;
    bool retain;                          /* store the gradient, though the tensor is not a leaf */
    bool zeroed;                          /* grad counts as zeros, though its memory is not cleared
                                           * (proa_zero_grad) */
    bool bound;                           /* gradients are added in grad's memory, whoever shares it */
    proa_status (*stored)(void *context); /* runs when a backward has added to grad; NULL: nothing does */
    void *stored_context;
    bool stored_early; /* it may run while the function that made the gradient still computes others */
    /* True if nobody but the watcher shares grad's memory; NULL: it shares none. */
    bool (*alone)(const void *context, const proa_tensor *grad);
};

/* A saved tensor and the version it had. */
typedef struct proa_saved_version {
    const proa_tensor *tensor;
    uint32_t version;
} proa_saved_version;

struct proa_node {
    atomic_int refs; /* of a leaf unused: its info's count serves both */
    proa_node_kind kind;
    const proa_op *op;
    void *args;                   /* OP: what the rule reads; NULL before it is filled and once freed */
    void *args_capacity;          /* OP: address of the args in the node's own memory block */
    proa_function function;       /* FUNCTION: a copy of the user's */
    void *context;                /* FUNCTION: its context */
    proa_tensors inputs, outputs; /* FUNCTION: kept inputs, output handles without history */
    bool freed;                   /* a backward has run through it and freed the saved values */
    bool in_place;                /* the call overwrote an input */
    int32_t device;               /* op_device of a program's op, which its gradient's ops get; 0: none */
    int32_t n_edges, n_out, n_saved;
    struct proa_packed *packed; /* OP: saved tensors that hooks have packed (saved_hooks.h) */
    proa_edge *edges;           /* one an input tensor, lists flattened */
    proa_meta *metas;           /* one an output: if there are several, or in a program; ndim −1: absent */
    proa_tensor **likes;        /* one an output, only if some shape is unknown: a handle that shows it
                                    * in the run, or NULL */
    struct proa_grad_info **infos; /* one an output: hooks and retained gradients; NULL array if none */
    struct proa_grad_info *info;   /* LEAF: where the gradient goes */
    proa_saved_version *saved;
    /* the running backward's */
    uint64_t pass;
    int32_t pending;
    bool needed, last;            /* last: the walk does not continue behind it */
    const proa_node *last_sender; /* the last node in order that sends it a gradient */
    proa_tensor **grads;          /* gradients that have arrived; owned, one an output */
    proa_node *next_free;         /* list of nodes being freed */
};

/* A node with space for its edges, saved versions and args. NULL sets the error. */
proa_node *proa__node_new(proa_node_kind kind, int32_t n_edges, int32_t n_out, int32_t n_saved,
                          size_t args_bytes);
/* Sets the number of outputs after the call; allocates their metas if there are several. */
bool proa__node_set_outputs(proa_node *n, int32_t n_out);
bool proa__node_add_metas(proa_node *n);
/* A leaf's node and its info are freed together and share one count, the info's. */
proa_node *proa__node_retain(proa_node *n);
void proa__node_release(proa_node *n);
/* Retain and release while no other thread can have the object: without locked instructions. */
static inline void proa__count_new(atomic_int *refs)
{
    atomic_store_explicit(refs, atomic_load_explicit(refs, memory_order_relaxed) + 1, memory_order_relaxed);
}
static inline proa_node *proa__node_retain_new(proa_node *n)
{
    proa__count_new(&n->refs);
    return n;
}
static inline void proa__node_release_new(proa_node *n)
{
    int refs = atomic_load_explicit(&n->refs, memory_order_relaxed);
    if (refs == 1) proa__node_release(n);
    else atomic_store_explicit(&n->refs, refs - 1, memory_order_relaxed);
}
/* Frees what the rule needed; the node can no longer run. */
void proa__node_free_saved(proa_node *n);

/* The node and output that t is the result of, or its leaf's node (created when first needed); retained.
 * False on error; *node is NULL when no gradient flows to t. */
bool proa__gradient_edge(proa_tensor *t, proa_node **node, uint32_t *output);
/* Makes the edge lead to the node behind t, a tensor to which a gradient flows. False on error. */
bool proa__edge_to(proa_edge *e, proa_tensor *t);

/* t's info, created when first needed; NULL on error. */
struct proa_grad_info *proa__grad_info(proa_tensor *t);
struct proa_grad_info *proa__info_retain(struct proa_grad_info *info);
void proa__info_release(struct proa_grad_info *info);

/* Makes t the output of n; takes over the caller's reference to n. */
static inline void proa__attach(proa_tensor *t, proa_node *n, uint32_t output)
{
    proa_node *before = t->node;
    t->node = n;
    t->node_output = output;
    t->flags = (t->flags | PROA_T_GRAD) & ~(uint32_t)PROA_T_LEAF;
    if (t->grad) { /* hooks and gradient of the overwritten value */
        proa__info_release(t->grad);
        t->grad = NULL;
    }
    if (before) proa__node_release(before);
}

/* True if this handle is the only reference to contiguous memory, so that a write goes unnoticed. */
static inline bool proa__sole_owner(const proa_tensor *t)
{
    return atomic_load_explicit(&t->refs, memory_order_relaxed) == 1 && t->storage &&
           atomic_load_explicit(&t->storage->refs, memory_order_relaxed) == 1 &&
           !(t->flags & PROA_T_STRIDED) && !t->node && !t->storage->release;
}

/* Removes and returns a leaf's gradient that counts as zeros and that nobody else refers to, so that the next
 * gradient reuses its memory. New in the scope; NULL (no error): there is none. */
proa_tensor *proa__take_zeroed(proa_tensor *leaf);

/* The gradient (there is one), its memory cleared if it counts as zeros. Borrowed. */
proa_tensor *proa__grad_now(struct proa_grad_info *info);

/* Gradient of the input's meta from what a rule returned: sums broadcast dims, casts, drops the imaginary
 * part of a real input's gradient. New or borrowed; NULL on error. */
proa_tensor *proa__fit_gradient(proa_tensor *grad, const proa_meta *meta);

#endif
