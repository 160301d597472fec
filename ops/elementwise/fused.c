/* fused_elementwise: parses the text of its steps, and infers shapes and dtypes step by step. May use core
 * only. */
#include "ops/elementwise/fused.h"

#include "core/run.h"
#include "ops/elementwise/fused_read.h"
#include "impl/elementwise.h"

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
    if (op->args_size > PROA__FUSED_ARGS || op->n_in > 3 || op->n_out != 1) return false;
    return bsearch(op->name, formula_names, n, sizeof *formula_names, compare_name) ||
           bsearch(op->name, numbers, 4, sizeof *numbers, compare_name);
}

/* ---- reading --------------------------------------------------------------------------- */

static const proa_op *find(const char *name)
{
    const proa_op *op = proa_find_op(name);
    return op && proa__fused_takes(op) ? op : NULL;
}

static proa_status fail_read(int step, const char *word, const char *what)
{
    return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op("fused_elementwise"), "steps",
                         "step %d, at '%.40s': %s", step, word, what);
}

proa_status proa__fused_read(const char *steps, int64_t n_inputs, proa__fused_steps *to)
{
    static const proa__fused_caller caller = {find, fail_read};
    return proa__fused_parse(steps, n_inputs, &caller, to);
}

/* ---- shapes ---------------------------------------------------------------------------- */

static proa_status infer_steps(const proa_fused_elementwise_args *a, proa__fused_steps *steps,
                               proa_metas *out)
{
    proa_tensor *made[PROA__FUSED_STEPS];
    PROA_TRY(proa__fused_read(a->steps, a->x.count, steps));
    PROA_TRY(proa_metas_resize(out, steps->n_out));
    int64_t k = 0;
    for (int i = 0; i < steps->n; i++) {
        proa__fused_step *step = &steps->at[i];
        char metas[PROA_METAS_MAX] __attribute__((aligned(16)));
        memset(metas, 0, sizeof metas);
        uint32_t any = 0;
        for (int j = 0; j < step->n_in; j++) {
            proa_tensor *t = step->in[j] < 0 ? made[~step->in[j]] : a->x.at[step->in[j]];
            const proa_tensor *first = *proa_field_tensor(&step->op->fields[0], step->args);
            if (j && t->dtype != first->dtype)
                return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op("fused_elementwise"), "steps",
                                     "step %d: operand %d is %s, but the first is %s; cast one", i, j,
                                     proa_dtype_name((proa_dtype)t->dtype),
                                     proa_dtype_name((proa_dtype)first->dtype));
            *proa_field_tensor(&step->op->fields[j], step->args) = t;
            any |= t->flags;
        }
        proa_call call = {step->op, step->args, any};
        PROA_TRY(proa__infer_call(&call, metas));
        const proa_meta *m = (const proa_meta *)(const void *)metas;
        if ((m->dtype == PROA_F64) != (a->x.at[0]->dtype == PROA_F64))
            return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op("fused_elementwise"), "steps",
                                 "step %d makes %s of %s; a chain has float64 alone", i,
                                 proa_dtype_name(m->dtype), proa_dtype_name((proa_dtype)a->x.at[0]->dtype));
        if (step->out) out->at[k++] = *m;
        made[i] = proa__tensor_bare(m, PROA_T_META | (any & PROA_T_SYMBOLIC));
        if (!made[i]) return proa_error();
    }
    return PROA_OK;
}

proa_status fused_elementwise_infer(const proa_fused_elementwise_args *a, proa_fused_elementwise_metas *m)
{
    for (int64_t i = 0; i < a->x.count; i++) /* which of the narrower ones, the steps say */
        if ((a->x.at[i]->dtype == PROA_F64) != (a->x.at[0]->dtype == PROA_F64))
            return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op("fused_elementwise"), "x",
                                 "number %lld is %s, but the first is %s", (long long)i,
                                 proa_dtype_name((proa_dtype)a->x.at[i]->dtype),
                                 proa_dtype_name((proa_dtype)a->x.at[0]->dtype));
    proa__fused_steps *steps = proa__alloc(sizeof *steps);
    if (!steps) return proa_error();
    proa_status status = infer_steps(a, steps, &m->out);
    proa__free(steps);
    return status;
}
