/* fused_elementwise: checks its steps, and infers shapes and dtypes step by step. May use core only. */
#include "ops/elementwise/fused.h"

#include "core/run.h"
#include "core/steps.h"
#include "impl/elementwise.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define PROA_FORMULAS_NAMES 1
#include "formulas.inc"

static int compare_name(const void *name, const void *entry)
{
    return strcmp(name, *(const char *const *)entry);
}

bool proa__fused_takes(const proa_op *op)
{
    static const char *const numbers[] = {"cast", "clip", "pow", "scale"};
    size_t n = sizeof formula_names / sizeof *formula_names;
    if (op->args_size > PROA__FUSED_ARGS || op->n_in > PROA__STEP_OPERANDS ||
        op->n_attr > PROA__STEP_ATTRIBUTES || op->n_out != 1)
        return false;
    return bsearch(op->name, formula_names, n, sizeof *formula_names, compare_name) ||
           bsearch(op->name, numbers, 4, sizeof *numbers, compare_name);
}

static proa_status fail_step(int i, const char *format, ...) PROA_PRINTF(2, 3);
static proa_status fail_step(int i, const char *format, ...)
{
    char text[160];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op("fused_elementwise"), "steps", "step %d %s",
                         i, text);
}

/* Puts the operands of step i into its args struct; *any is the OR of their flags. */
static proa_status take_operands(const proa_fused_elementwise_args *a, int i, proa_tensor *const *made,
                                 proa__step_args *args, uint32_t *any)
{
    const proa_chain_step *step = &a->steps.at[i];
    proa_tensor *first = NULL;
    for (int j = 0; j < step->op->n_in; j++) {
        if (step->in[j] >= a->x.count)
            return fail_step(i, "reads input %d of %lld", step->in[j], (long long)a->x.count);
        proa_tensor *t = step->in[j] < 0 ? made[~step->in[j]] : a->x.at[step->in[j]];
        if (!first) first = t;
        if (t->dtype != first->dtype)
            return fail_step(i, "has operands of %s and %s; cast one",
                             proa_dtype_name((proa_dtype)first->dtype),
                             proa_dtype_name((proa_dtype)t->dtype));
        *proa_field_tensor(&step->op->fields[j], args) = t;
        *any |= t->flags;
    }
    return PROA_OK;
}

static bool is_real(proa_dtype d)
{
    return d == PROA_F16 || d == PROA_BF16 || d == PROA_F32 || d == PROA_F64;
}

static proa_status infer_steps(const proa_fused_elementwise_args *a, proa_metas *out)
{
    proa_tensor *made[PROA_STEPS_MAX];
    proa_dtype dtype = (proa_dtype)a->x.at[0]->dtype;
    int64_t n_out = 0;
    for (int i = 0; i < a->steps.count; i++) n_out += a->steps.at[i].out;
    PROA_TRY(proa_metas_resize(out, n_out));
    for (int i = 0, k = 0; i < a->steps.count; i++) {
        const proa_chain_step *step = &a->steps.at[i];
        proa__step_args args;
        proa_meta m = {0};
        uint32_t any = 0;
        if (!proa__fused_takes(step->op)) return fail_step(i, "is %s, no elementwise op", step->op->name);
        proa__step_fill(step, &args);
        PROA_TRY(take_operands(a, i, made, &args, &any));
        proa_call call = {step->op, &args, any};
        PROA_TRY(proa__infer_call(&call, &m));
        if (!is_real(m.dtype) || (m.dtype == PROA_F64) != (dtype == PROA_F64))
            return fail_step(i, "makes %s of %s; a chain has float64 alone, or narrower floating dtypes",
                             proa_dtype_name(m.dtype), proa_dtype_name(dtype));
        if (step->out) out->at[k++] = m;
        made[i] = proa__tensor_bare(&m, PROA_T_META | (any & PROA_T_SYMBOLIC));
        if (!made[i]) return proa_error();
    }
    return PROA_OK;
}

proa_status fused_elementwise_infer(const proa_fused_elementwise_args *a, proa_fused_elementwise_metas *m)
{
    if (a->x.count < 1)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op("fused_elementwise"), "x",
                             "is empty; expected one tensor or more");
    for (int64_t i = 0; i < a->x.count; i++) /* which of the narrower ones, the steps say */
        if ((a->x.at[i]->dtype == PROA_F64) != (a->x.at[0]->dtype == PROA_F64))
            return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op("fused_elementwise"), "x",
                                 "number %lld is %s, but the first is %s", (long long)i,
                                 proa_dtype_name((proa_dtype)a->x.at[i]->dtype),
                                 proa_dtype_name((proa_dtype)a->x.at[0]->dtype));
    return infer_steps(a, &m->out);
}
