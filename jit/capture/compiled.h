/* Shared by compiled.c, which calls compiled functions, and partition.c, which makes their forward and
 * backward programs. May use core and ops. */
#ifndef PROA_JIT_CAPTURE_COMPILED_H
#define PROA_JIT_CAPTURE_COMPILED_H

#include "jit/plan/plan.h"

#include <stdatomic.h>

/* The forward and backward executors for one choice of inputs and persistables that want gradients. */
typedef struct proa__variant {
    atomic_int refs; /* one for the function's list, and one for every call that waits for its backward */
    uint64_t used;
    bool *input_wants;                 /* one an input */
    proa_executor *forward, *backward; /* outputs of forward: the function's results, then the saved values */
    proa_tensor **trained;             /* persistables that want a gradient; borrowed from the program */
    int32_t n_inputs, n_trained, n_saved;
    int32_t n_wants;    /* inputs and trained */
    int32_t *result;    /* for each of these, the index among backward's results; −1: none */
    int32_t *want;      /* for each of backward's results the index among wants */
    proa_tensor **read; /* persistables that backward reads */
    int32_t n_read;
} proa__variant;

struct proa_compiled {
    atomic_int refs; /* one for its owner, and one for every call that waits for its backward */
    proa_program *program;
    bool owns_program, training;
    proa_tensors (*fn)(proa_tensors inputs, void *context); /* NULL: there is only the program */
    void *context;
    proa_input_spec *specs;
    int64_t n_specs;
    proa_tensor **persistables; /* floating ones; borrowed from the program */
    int32_t n_persistables, persistables_capacity;
    proa_executor *plain;
    proa__variant **variants; /* at most PROA__VARIANTS; the least recently used is dropped */
    int32_t n_variants, variants_capacity;
    uint64_t clock;
};

/* Largest number of variants that a compiled function keeps. */
enum { PROA__VARIANTS = 16 };

/* Lists the program's persistables that may want gradients. */
proa_status proa__list_persistables(proa_compiled *c);
/* True if any input or persistable wants a gradient. */
bool proa__wants_gradient(const proa_compiled *c, proa_tensors inputs);
/* The variant for the inputs and persistables that want gradients now, made at first need; borrowed until the
 * next call. NULL on error. */
proa__variant *proa__variant_for(proa_compiled *c, proa_tensors inputs);
void proa__variant_release(proa__variant *v); /* accepts NULL */

#endif
