/* Shared parts of control flow: which tensors can carry gradients, and the loop tape, which stores what every
 * iteration began with for the backward. May use core and ops. */
#ifndef PROA_JIT_CONTROL_CONTROL_H
#define PROA_JIT_CONTROL_CONTROL_H

#include "jit/ir/program.h"

#include "impl/control.h"

extern const proa_op proa__op_branch, proa__op_loop, proa__op_loop_grad, proa__op_pylayer;

static inline bool proa__floats(const proa_tensor *t) { return t->dtype >= PROA_F16; }

/* The tape of a loop: what its backward needs of every iteration, serialized into one uint8 tensor. For each
 * iteration the random state, and for each variable a header and its data (both at multiples of 64 bytes);
 * after the last, the offsets of the iterations and their number. */
typedef struct proa__loop_tape {
    char *bytes;
    size_t used, capacity;
    int64_t *offsets;
    int32_t n, offsets_capacity;
} proa__loop_tape;

proa_status proa__loop_tape_add(proa__loop_tape *s, proa_tensors vars);
/* Makes a new uint8 tensor with all iterations. */
proa_tensor *proa__loop_tape_finish(const proa__loop_tape *s);
void proa__loop_tape_free(proa__loop_tape *s);
int64_t proa__loop_tape_count(const proa_tensor *record);
/* Reads the variables at the start of iteration i (new tensors), and the random state. */
proa_status proa__loop_tape_get(const proa_tensor *record, int64_t i, int64_t n_vars, proa_tensors *vars,
                                proa_rng_state *rng);

#endif
