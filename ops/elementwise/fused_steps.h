/* Parsed steps of fused_elementwise, as the library and plug-ins share them. May use the public headers
 * only. */
#ifndef PROA_OPS_ELEMENTWISE_FUSED_STEPS_H
#define PROA_OPS_ELEMENTWISE_FUSED_STEPS_H

#include <proa/op.h>

/* Limits: operands of one pass over memory, and what stays in the first-level cache. */
enum { PROA__FUSED_INPUTS = 8, PROA__FUSED_OUTPUTS = 4, PROA__FUSED_STEPS = 32, PROA__FUSED_ARGS = 192 };

typedef struct proa__fused_step {
    const proa_op *op;
    int in[3]; /* an input's number, or ~ of a step's */
    int n_in;
    bool out;                                 /* handed out */
    _Alignas(16) char args[PROA__FUSED_ARGS]; /* of the op: attributes are filled, tensors are not */
} proa__fused_step;

typedef struct proa__fused_steps {
    int n, n_out;
    proa__fused_step at[PROA__FUSED_STEPS];
} proa__fused_steps;

/* The dtype of a step's result where its operands have `in`; halves are computed in float32 and rounded. */
static inline proa_dtype proa__fused_dtype(const proa__fused_step *step, proa_dtype in)
{
    if (step->op->n_attr != 1) return in;
    const proa_field *f = &step->op->fields[step->op->n_in];
    return f->kind == PROA_FIELD_DTYPE ? *(const proa_dtype *)proa_field_at(f, step->args) : in;
}

#endif
