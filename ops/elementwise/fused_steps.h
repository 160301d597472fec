/* Limits and arguments of the steps of fused_elementwise (a chain of elementwise ops that runs in one pass
 * over memory), for the library and device plug-ins. May use the public headers only. */
#ifndef PROA_OPS_ELEMENTWISE_FUSED_STEPS_H
#define PROA_OPS_ELEMENTWISE_FUSED_STEPS_H

#include <proa/op.h>

#include <string.h>

/* Limits: operands of one pass over memory, and bytes of the args struct of an op that may be a step. */
enum { PROA__FUSED_INPUTS = 8, PROA__FUSED_OUTPUTS = 4, PROA__FUSED_ARGS = 192 };

/* The args struct of a step's op. */
typedef struct proa__step_args {
    _Alignas(16) char at[PROA__FUSED_ARGS];
} proa__step_args;

static inline proa_scalar proa__step_scalar(proa_scalar_kind kind, proa_chain_value v)
{
    proa_scalar s = {kind, 0, 0, 0, NULL};
    if (kind == PROA_SCALAR_FLOAT) s.f = v.f;
    else s.i = v.i;
    return s;
}

/* Fills the attributes of the step's op; its tensors are NULL. */
static inline void proa__step_fill(const proa_chain_step *step, proa__step_args *args)
{
    memset(args, 0, step->op->args_size);
    for (int k = 0; k < step->op->n_attr; k++) {
        const proa_field *f = &step->op->fields[step->op->n_in + k];
        void *at = proa_field_at(f, args);
        if (f->kind == PROA_FIELD_FLOAT) memcpy(at, &step->values[k].f, sizeof(double));
        else if (f->kind == PROA_FIELD_BOOL) *(bool *)at = step->values[k].i != 0;
        else if (f->kind == PROA_FIELD_DTYPE) *(proa_dtype *)at = (proa_dtype)step->values[k].i;
        else *(proa_scalar *)at = proa__step_scalar((proa_scalar_kind)step->kinds[k], step->values[k]);
    }
}

/* Dtype of a step's result for operands of dtype `in`; float16 and bfloat16 are computed in float32 and
 * rounded. */
static inline proa_dtype proa__step_dtype(const proa_chain_step *step, proa_dtype in)
{
    if (step->op->n_attr != 1 || step->op->fields[step->op->n_in].kind != PROA_FIELD_DTYPE) return in;
    return (proa_dtype)step->values[0].i;
}

#endif
