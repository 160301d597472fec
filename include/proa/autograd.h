/* Gradients: what is recorded, backward, hooks, custom functions, recompute, checking.
 * Implemented by autograd/; needs proa/core.h only. */
#ifndef PROA_AUTOGRAD_H
#define PROA_AUTOGRAD_H

#include <proa/core.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Marks a leaf: with stop_gradient false, ops on it are recorded and backward adds to its gradient.
 * New tensors have stop_gradient true. Only floating and complex tensors may want a gradient. */
PROA_API proa_status proa_set_stop_gradient(proa_tensor *t, bool stop);
PROA_API bool proa_stop_gradient(const proa_tensor *t);
/* True if no recorded op made it. */
PROA_API bool proa_is_leaf(const proa_tensor *t);

/* Recording for this thread: on at start. Returns what it was. */
PROA_API bool proa_set_recording(bool on);
PROA_API bool proa_recording(void);
PROA_API void proa_restore_recording_(const bool *was);
/* PROA_NO_GRAD; as a declaration: nothing is recorded in the rest of the block. */
#define PROA_NO_GRAD PROA_NO_GRAD_1_(__COUNTER__)
#define PROA_NO_GRAD_1_(n) PROA_NO_GRAD_2_(n)
#define PROA_NO_GRAD_2_(n)                                                                  \
    bool proa_was_recording_##n __attribute__((cleanup(proa_restore_recording_), unused)) = \
        proa_set_recording(false)

/* Backward from one scalar (or any tensor, with a gradient of ones): adds to the gradients of the leaves
 * and frees the graph. */
PROA_API proa_status proa_backward(proa_tensor *loss);

typedef struct proa_backward_opts {
    char _;
    bool retain_graph; /* backward may run again through the same graph */
    bool create_graph; /* record the backward itself, so that gradients have gradients */
} proa_backward_opts;
/* Backward from several tensors; grads: one each, PROA_NONE entries (or an empty list) mean ones. */
PROA_API proa_status proa_backward_all(proa_tensors outputs, proa_tensors grads, proa_backward_opts opts);
/* d(outputs)/d(inputs), added to no leaf. Result: one tensor an input; where an input is not reached:
 * PROA_NONE if allow_unused, otherwise an error. New, the list ends with the scope. */
typedef struct proa_grad_opts {
    char _;
    bool retain_graph, create_graph, allow_unused;
} proa_grad_opts;
PROA_API proa_tensors proa_grad(proa_tensors outputs, proa_tensors inputs, proa_tensors grads,
                                proa_grad_opts opts);

/* The leaf's accumulated gradient; PROA_NONE if it has none. Borrowed. */
PROA_API proa_tensor *proa_grad_of(const proa_tensor *leaf);
PROA_API proa_status proa_set_grad(proa_tensor *leaf, proa_tensor *grad);
/* Drops the gradient. */
PROA_API void proa_clear_grad(proa_tensor *leaf);
/* Makes the gradient zeros, if there is one: its memory stays for the next backward. */
PROA_API proa_status proa_zero_grad(proa_tensor *leaf);
/* Keeps the gradient of a tensor that is not a leaf, too. */
PROA_API proa_status proa_retain_grad(proa_tensor *t);

/* Called with the gradient of t in backward; returns the gradient to go on with (its argument, or
 * another; NULL after an error). Returns an id > 0, or 0 after an error. */
typedef proa_tensor *(*proa_hook_fn)(proa_tensor *grad, void *context);
PROA_API int64_t proa_register_hook(proa_tensor *t, proa_hook_fn fn, void *context, void (*release)(void *));
PROA_API bool proa_remove_hook(proa_tensor *t, int64_t id);

/* New tensor on the same memory without history, stop_gradient true. */
PROA_API proa_tensor *proa_detach(proa_tensor *t);

/* A function with a backward of its own. forward gets the inputs with recording off; what it returns
 * are the outputs. backward gets one gradient an output and returns one an input (PROA_NONE: none).
 * `context` is passed to both and released with the graph. */
typedef struct proa_function {
    const char *name;
    proa_tensors (*forward)(proa_tensors inputs, void *context);
    proa_tensors (*backward)(proa_tensors inputs, proa_tensors outputs, proa_tensors grads, void *context);
    void (*release)(void *context);
    bool forget_inputs, forget_outputs; /* backward gets empty lists of them, and nothing keeps them */
} proa_function;
PROA_API proa_tensors proa_apply(const proa_function *fn, proa_tensors inputs, void *context);

/* Runs fn without keeping its intermediate tensors; backward runs it again, with the doors and random
 * state of the first time. */
PROA_API proa_tensors proa_recompute(proa_tensors (*fn)(proa_tensors inputs, void *context),
                                     proa_tensors inputs, void *context, void (*release)(void *));

/* Compares the gradients of fn at float64 inputs with central differences along random directions.
 * order 2 checks the gradient's gradient as well. Zero options: eps 1e-6, rtol 1e-5, atol 1e-7. */
typedef struct proa_gradcheck_opts {
    char _;
    double eps, rtol, atol;
    int order;
    uint64_t seed;
} proa_gradcheck_opts;
PROA_API proa_status proa_gradcheck(proa_tensors (*fn)(proa_tensors inputs, void *context),
                                    proa_tensors inputs, void *context, proa_gradcheck_opts opts);

#ifdef __cplusplus
}
#endif
#endif
