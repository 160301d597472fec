/* Checks the steps of a fused chain of elementwise ops, and prints them as the text that proa_steps_read
 * takes. May use core only. */
#include "core/steps.h"
#include "core/args_visit.h"

_Static_assert(sizeof(proa_chain_step) == sizeof(void *) + 8 + PROA__STEP_ATTRIBUTES * 8,
               "steps are compared by their bytes");

/* ---- checking -------------------------------------------------------------------------- */

/* The fault of attribute k of the step, in words; NULL: none. */
static const char *value_fault(const proa_chain_step *step, int k)
{
    proa_scalar_kind kind = (proa_scalar_kind)step->kinds[k];
    int64_t i = step->values[k].i;
    switch ((proa_field_kind)step->op->fields[step->op->n_in + k].kind) {
    case PROA_FIELD_BOOL:
        return kind == PROA_SCALAR_BOOL && (i == 0 || i == 1) ? NULL : "expected true or false";
    case PROA_FIELD_FLOAT: return kind == PROA_SCALAR_FLOAT ? NULL : "expected a number";
    case PROA_FIELD_DTYPE:
        return kind == PROA_SCALAR_INT && i > PROA_NODTYPE && i < PROA_DTYPE_COUNT ? NULL
                                                                                   : "expected a dtype";
    case PROA_FIELD_SCALAR: return kind <= PROA_SCALAR_FLOAT ? NULL : "expected a real number";
    default: return "the attribute is no number";
    }
}

const char *proa__step_fault(const proa_chain_step *steps, int64_t i, const char **name)
{
    const proa_chain_step *step = &steps[i];
    const proa_op *op = step->op;
    *name = op ? op->name : "NULL";
    if (!op || op->n_in < 1 || op->n_in > PROA__STEP_OPERANDS || op->n_attr > PROA__STEP_ATTRIBUTES ||
        op->n_out != 1)
        return "expected an elementwise op of the table";
    for (int k = 0; k <= op->n_in; k++)
        if (proa__makes_list(&op->fields[k < op->n_in ? k : op->n_fields - 1]))
            return "expected an elementwise op of the table";
    for (int k = 0; k < PROA__STEP_OPERANDS; k++)
        if (k < op->n_in ? ~(int64_t)step->in[k] >= i : step->in[k] != 0)
            return "an operand is no input and no earlier step's result";
    for (int k = 0; k < op->n_attr; k++) {
        const char *fault = value_fault(step, k);
        *name = op->fields[op->n_in + k].name;
        if (fault) return fault;
    }
    return NULL;
}

proa_status proa__check_steps(const proa_op *op, const proa_field *f, const proa_steps *steps)
{
    bool hands_out = false;
    if (steps->count < 1 || steps->count > PROA_STEPS_MAX || !steps->at)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, op, f->name, "expected 1 to %d steps, got %lld at %p",
                             PROA_STEPS_MAX, (long long)steps->count, (const void *)steps->at);
    for (int64_t i = 0; i < steps->count; i++) {
        const char *name, *fault = proa__step_fault(steps->at, i, &name);
        if (fault)
            return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, op, f->name, "step %lld, at '%.40s': %s",
                                 (long long)i, name, fault);
        hands_out |= steps->at[i].out;
    }
    if (hands_out) return PROA_OK;
    return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, op, f->name, "no step is an output");
}

/* ---- printing -------------------------------------------------------------------------- */

static void print_value(FILE *to, const proa_field *f, proa_scalar_kind kind, proa_chain_value v)
{
    if (kind == PROA_SCALAR_NONE && (!f->fallback || strcmp(f->fallback, "none") == 0)) return;
    fprintf(to, " %s=", f->name);
    switch (kind) {
    case PROA_SCALAR_NONE: fputs("none", to); break;
    case PROA_SCALAR_BOOL: fputs(v.i ? "true" : "false", to); break;
    case PROA_SCALAR_INT:
        if (f->kind == PROA_FIELD_DTYPE) fputs(proa_dtype_name((proa_dtype)v.i), to);
        else fprintf(to, "%lld", (long long)v.i);
        break;
    default: {
        char text[32];
        snprintf(text, sizeof text, "%.17g", v.f);
        fputs(text, to);
        if (f->kind == PROA_FIELD_SCALAR && !strpbrk(text, ".en")) fputs(".0", to); /* no integer */
    }
    }
}

void proa__print_steps(FILE *to, const proa_steps *steps)
{
    fputc('"', to);
    for (int64_t i = 0; i < steps->count; i++) {
        const proa_chain_step *step = &steps->at[i];
        const proa_op *op = step->op;
        if (i) fputs("; ", to);
        if (step->out) fputs("out ", to);
        else fprintf(to, "t%lld = ", (long long)i);
        fputs(op->name, to);
        for (int k = 0; k < op->n_in; k++)
            fprintf(to, step->in[k] < 0 ? " t%d" : " x%d", step->in[k] < 0 ? ~step->in[k] : step->in[k]);
        for (int k = 0; k < op->n_attr; k++)
            print_value(to, &op->fields[op->n_in + k], (proa_scalar_kind)step->kinds[k], step->values[k]);
    }
    fputc('"', to);
}
