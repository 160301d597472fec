/* Parsed steps of fused_elementwise, as the library and plug-ins share them. May use the public headers
 * only. */
#ifndef PROA_OPS_ELEMENTWISE_FUSED_STEPS_H
#define PROA_OPS_ELEMENTWISE_FUSED_STEPS_H

#include <proa/op.h>

/* Limits: operands of one pass over memory, and steps whose intermediate results fit the L1 cache. */
enum { PROA__FUSED_INPUTS = 8, PROA__FUSED_OUTPUTS = 4, PROA__FUSED_STEPS = 32, PROA__FUSED_ARGS = 192 };

typedef struct proa__fused_step {
    const proa_op *op;
    int in[3]; /* number of an input, or ~number of the step whose result is read */
    int n_in;
    bool out;                                 /* the result is an output of the chain */
    _Alignas(16) char args[PROA__FUSED_ARGS]; /* args struct of the op: only attributes are set */
} proa__fused_step;

typedef struct proa__fused_steps {
    int n, n_out;
    proa__fused_step at[PROA__FUSED_STEPS];
} proa__fused_steps;

/* Dtype of a step's result for operands of dtype `in`; float16 and bfloat16 are computed in float32 and
 * rounded. */
static inline proa_dtype proa__fused_dtype(const proa__fused_step *step, proa_dtype in)
{
    if (step->op->n_attr != 1) return in;
    const proa_field *f = &step->op->fields[step->op->n_in];
    return f->kind == PROA_FIELD_DTYPE ? *(const proa_dtype *)proa_field_at(f, step->args) : in;
}

#endif
