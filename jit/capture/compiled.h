/* Shared parts of compiled.c (calls) and partition.c (making forward and backward programs). */
#ifndef PROA_JIT_CAPTURE_COMPILED_H
#define PROA_JIT_CAPTURE_COMPILED_H

#include "jit/plan/plan.h"

#include <stdatomic.h>

/* Forward and backward for one set of inputs and persistables that want gradients. */
typedef struct proa__variant {
    atomic_int refs; /* its function's list, and one for every call that waits for its backward */
    uint64_t used;
    bool *input_wants;                 /* one an input */
    proa_executor *forward, *backward; /* forward yields the outputs, then what is saved */
    proa_tensor **trained;             /* persistables that want a gradient; borrowed from the program */
    int32_t n_inputs, n_trained, n_saved;
    int32_t n_wants;    /* inputs and trained */
    int32_t *result;    /* of each of these: which of backward's results; −1: none */
    proa_tensor **read; /* persistables that backward reads */
    int32_t n_read;
} proa__variant;

struct proa_compiled {
    atomic_int refs; /* its owner's, and one for every call that waits for its backward */
    proa_program *program;
    bool owns_program, training;
    proa_tensors (*fn)(proa_tensors inputs, void *context); /* NULL: there is only the program */
    void *context;
    proa_input_spec *specs;
    int64_t n_specs;
    proa_tensor **persistables; /* floating ones; borrowed from the program */
    int32_t n_persistables, persistables_room;
    proa_executor *plain;
    proa__variant **variants; /* at most PROA__VARIANTS, least recently used first to go */
    int32_t n_variants, variants_capacity;
    uint64_t clock;
};

/* Variants that a compiled function keeps. */
enum { PROA__VARIANTS = 16 };

/* Lists the program's persistables that may want gradients. */
proa_status proa__list_persistables(proa_compiled *c);
/* Does any input or persistable want a gradient? */
bool proa__wants_gradient(const proa_compiled *c, proa_tensors inputs);
/* The variant for what wants gradients now, made at need; borrowed until the next call. NULL on error. */
proa__variant *proa__variant_for(proa_compiled *c, proa_tensors inputs);
void proa__variant_release(proa__variant *v); /* accepts NULL */

#endif
