/* Automatic differentiation: recording on the tape, backward, hooks, functions with a backward of their own,
 * recomputation, gradient checks. Implemented by autograd/; needs proa/core.h only. */
#ifndef PROA_AUTOGRAD_H
#define PROA_AUTOGRAD_H

#include <proa/core.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Marks a leaf: with stop_gradient false, ops on it are recorded and backward adds to its gradient.
 * New tensors have stop_gradient true. Only floating and complex tensors may want a gradient. */
PROA_API proa_status proa_set_stop_gradient(proa_tensor *t, bool stop);
/* True if no gradient flows to or through t, as for new tensors and for results of ops on such tensors. */
PROA_API bool proa_stop_gradient(const proa_tensor *t);
/* True if t is not the result of a recorded op. */
PROA_API bool proa_is_leaf(const proa_tensor *t);

/* Turns recording on the tape on or off for this thread (on at start). Returns the former setting. */
PROA_API bool proa_set_recording(bool on);
/* Whether this thread records. */
PROA_API bool proa_recording(void);
PROA_API void proa_restore_recording_(const bool *was);
/* PROA_NO_GRAD, used as a declaration, turns recording off for the rest of the enclosing block. */
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
typedef struct proa_grad_opts {
    char _;
    bool retain_graph, create_graph; /* as in proa_backward_opts */
    bool allow_unused;               /* PROA_NONE for an input that is not reached, instead of an error */
} proa_grad_opts;
/* d(sum of outputs · grads)/d(inputs), added to no leaf; grads: one an output, PROA_NONE entries (or an empty
 * list) mean ones. Result: one new tensor an input, of its shape and dtype, in a list that ends with the
 * scope. INVALID_ARGUMENT for an input that is not reached. */
PROA_API proa_tensors proa_grad(proa_tensors outputs, proa_tensors inputs, proa_tensors grads,
                                proa_grad_opts opts);

/* The leaf's accumulated gradient; PROA_NONE if it has none. Borrowed. */
PROA_API proa_tensor *proa_grad_of(const proa_tensor *leaf);
/* Replaces the leaf's gradient by grad, which is kept, not copied. INVALID_ARGUMENT unless grad has the
 * leaf's shape and dtype. */
PROA_API proa_status proa_set_grad(proa_tensor *leaf, proa_tensor *grad);
/* proa_set_grad; later gradients are added in the memory of grad, also where other tensors share it, as parts
 * of one buffer for all gradients do. Until proa_set_grad, proa_clear_grad, or a backward with create_graph.
 * INVALID_ARGUMENT unless grad is dense and contiguous, without history. */
PROA_API proa_status proa_bind_grad(proa_tensor *leaf, proa_tensor *grad);
/* Drops the gradient. */
PROA_API void proa_clear_grad(proa_tensor *leaf);
/* Makes the gradient zeros, if there is one: its memory stays for the next backward. */
PROA_API proa_status proa_zero_grad(proa_tensor *leaf);
/* Makes backward store the gradient of t, which is not a leaf, so that proa_grad_of returns it. */
PROA_API proa_status proa_retain_grad(proa_tensor *t);

/* Gets the gradient of a tensor in backward and returns the one to go on with: its argument, another of the
 * same shape and dtype, or NULL after an error. */
typedef proa_tensor *(*proa_hook_fn)(proa_tensor *grad, void *context);
/* Hooks of one tensor run in the order in which they were registered; `release(context)` (NULL: nothing) runs
 * when the hook is removed or t ends. Returns an id > 0, or 0 after an error. */
PROA_API int64_t proa_register_hook(proa_tensor *t, proa_hook_fn fn, void *context, void (*release)(void *));
/* False if t has no hook of that id. */
PROA_API bool proa_remove_hook(proa_tensor *t, int64_t id);

/* Hooks of saved tensors: where an op is recorded, pack gets each tensor whose value its backward needs, and
 * the tape keeps what pack returns (not NULL) instead; unpack gives backward a tensor with the same content.
 * release ends what pack returned. */
typedef struct proa_saved_hooks {
    void *(*pack)(proa_tensor *t, void *context);
    proa_tensor *(*unpack)(void *packed);
    void (*release)(void *packed);
    void *context; /* passed to pack */
} proa_saved_hooks;
/* Sets this thread's hooks; a struct of NULLs ends them. Returns the former ones. */
PROA_API proa_saved_hooks proa_set_saved_hooks(proa_saved_hooks hooks);

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
    bool forget_inputs, forget_outputs; /* the tape does not save them, and backward gets empty lists */
} proa_function;
/* Runs fn->forward and records it as one node; returns its new outputs. `fn` is copied. */
PROA_API proa_tensors proa_apply(const proa_function *fn, proa_tensors inputs, void *context);

/* Activation checkpointing: runs fn without saving its intermediate tensors; backward runs fn again under the
 * first run's dispatch layers (doors) and random state. */
PROA_API proa_tensors proa_recompute(proa_tensors (*fn)(proa_tensors inputs, void *context),
                                     proa_tensors inputs, void *context, void (*release)(void *));

typedef struct proa_gradcheck_opts {
    char _;
    double eps;        /* the step of the differences: 1e-6 */
    double rtol, atol; /* 1e-5, 1e-7 */
    int order;         /* 1; 2 checks the gradient's gradient as well */
    uint64_t seed;     /* seed of the random directions */
} proa_gradcheck_opts;
/* Compares the gradients of fn at float64 inputs with central differences along one random direction of all
 * inputs. NUMERIC, with both numbers, where they differ. */
PROA_API proa_status proa_gradcheck(proa_tensors (*fn)(proa_tensors inputs, void *context),
                                    proa_tensors inputs, void *context, proa_gradcheck_opts opts);

#ifdef __cplusplus
}
#endif
#endif
