/* fused_elementwise: its steps as text, and shape inference, which is that of the steps one after the other.
 * May use core only. */
#include "ops/elementwise/fused.h"

#include "core/run.h"
#include "ops_impl.h"

#include <stdlib.h>

#define PROA_FORMULAS_NAMES 1
#include "formulas.inc"

static int compare_name(const void *name, const void *entry)
{
    return strcmp(name, *(const char *const *)entry);
}

bool proa__fused_takes(const proa_op *op)
{
    static const char *const numbers[] = {"clip", "pow", "scale"};
    size_t n = sizeof formula_names / sizeof *formula_names;
    if (op->args_size > PROA__FUSED_ARGS || op->n_in > 3 || op->n_out != 1) return false;
    return bsearch(op->name, formula_names, n, sizeof *formula_names, compare_name) ||
           bsearch(op->name, numbers, 3, sizeof *numbers, compare_name);
}

/* ---- reading --------------------------------------------------------------------------- */

typedef struct reader {
    const char *at;
    char word[64];
    int64_t n_inputs;
    proa__fused_steps *to;
} reader;

static proa_status fail(const reader *r, const char *what)
{
    return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op("fused_elementwise"), "steps",
                         "step %d, at '%.40s': %s", r->to->n, r->word, what);
}

/* The next word of this step; false at its end. */
static bool next(reader *r)
{
    while (*r->at == ' ') r->at++;
    size_t n = strcspn(r->at, " ;");
    if (n == 0 || n >= sizeof r->word) return false;
    memcpy(r->word, r->at, n);
    r->word[n] = 0;
    r->at += n;
    return true;
}

static bool number(const char *text, char **end, int64_t limit, int64_t *to)
{
    if (*text < '0' || *text > '9') return false;
    *to = strtoll(text, end, 10);
    return *to < limit;
}

static proa_status read_operand(reader *r, proa__fused_step *step)
{
    char *end = NULL;
    int64_t i = -1;
    bool input = r->word[0] == 'x';
    if ((!input && r->word[0] != 't') || !number(r->word + 1, &end, input ? r->n_inputs : r->to->n, &i) ||
        *end)
        return fail(r, "expected x<i> for an input, t<i> for what an earlier step made, or attribute=value");
    if (step->n_in == step->op->n_in) return fail(r, "is one operand too many");
    step->in[step->n_in++] = input ? (int)i : ~(int)i;
    return PROA_OK;
}

static proa_status read_attribute(reader *r, proa__fused_step *step, char *equals)
{
    *equals = 0;
    const proa_field *f = NULL;
    for (int i = 0; i < step->op->n_attr && !f; i++) {
        const proa_field *c = &step->op->fields[step->op->n_in + i];
        if (strcmp(c->name, r->word) == 0) f = c;
    }
    if (!f) return fail(r, "the op has no such attribute");
    char *end = NULL;
    double value = strcmp(equals + 1, "true") == 0 ? 1 : strtod(equals + 1, &end);
    if (strcmp(equals + 1, "false") != 0 && end && (end == equals + 1 || *end))
        return fail(r, "expected a number, true or false");
    void *at = proa_field_at(f, step->args);
    switch ((proa_field_kind)f->kind) {
    case PROA_FIELD_FLOAT: memcpy(at, &value, sizeof value); return PROA_OK;
    case PROA_FIELD_BOOL: *(bool *)at = value != 0; return PROA_OK;
    case PROA_FIELD_SCALAR:
        *(proa_scalar *)at = (proa_scalar){.kind = PROA_SCALAR_FLOAT, .f = value};
        return PROA_OK;
    default: return fail(r, "the attribute is no number");
    }
}

/* Defaults are written out by who makes the text, but for the few that a person leaves out. */
static proa_status read_default(reader *r, proa__fused_step *step, const proa_field *f)
{
    char word[64];
    if (!f->fallback || strcmp(f->fallback, "none") == 0) return PROA_OK;
    memcpy(word, r->word, sizeof word);
    int n = snprintf(r->word, sizeof r->word, "%s=%s", f->name, f->fallback);
    proa_status status = n < (int)sizeof r->word ? read_attribute(r, step, strchr(r->word, '='))
                                                 : fail(r, "a default that is too long");
    memcpy(r->word, word, sizeof word);
    return status;
}

static proa_status read_step(reader *r)
{
    proa__fused_steps *to = r->to;
    if (to->n == PROA__FUSED_STEPS) return fail(r, "is one step too many");
    proa__fused_step *step = &to->at[to->n];
    memset(step, 0, sizeof *step);
    if (!next(r)) return fail(r, "expected 't<i> =' or 'out'");
    step->out = strcmp(r->word, "out") == 0;
    if (!step->out) {
        char *end = NULL;
        int64_t i = -1;
        if (r->word[0] != 't' || !number(r->word + 1, &end, to->n + 1, &i) || *end || i != to->n ||
            !next(r) || strcmp(r->word, "=") != 0)
            return fail(r, "expected 't<i> =', i counting steps from 0, or 'out'");
    }
    step->op = next(r) ? proa_find_op(r->word) : NULL;
    if (!step->op || !proa__fused_takes(step->op)) return fail(r, "expected an elementwise op of the table");
    for (int i = 0; i < step->op->n_attr; i++)
        PROA_TRY(read_default(r, step, &step->op->fields[step->op->n_in + i]));
    while (next(r)) {
        char *equals = strchr(r->word, '=');
        PROA_TRY(equals ? read_attribute(r, step, equals) : read_operand(r, step));
    }
    if (*r->at && *r->at != ';') return fail(r, "has a word of more than 63 characters");
    if (step->n_in < step->op->n_in) return fail(r, "has too few operands");
    to->n++;
    to->n_out += step->out;
    return PROA_OK;
}

proa_status proa__fused_read(const char *steps, int64_t n_inputs, proa__fused_steps *to)
{
    reader r = {.at = steps ? steps : "", .n_inputs = n_inputs, .to = to};
    to->n = to->n_out = 0;
    for (;;) {
        PROA_TRY(read_step(&r));
        if (!*r.at) break;
        r.at++;
    }
    if (to->n_out) return PROA_OK;
    return fail(&r, "no step is marked 'out'");
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
            *proa_field_tensor(&step->op->fields[j], step->args) = t;
            any |= t->flags;
        }
        proa_call call = {step->op, step->args, any};
        PROA_TRY(proa__infer_call(&call, metas));
        const proa_meta *m = (const proa_meta *)(const void *)metas;
        if (step->out) out->at[k++] = *m;
        made[i] = proa__tensor_bare(m, PROA_T_META | (any & PROA_T_SYMBOLIC));
        if (!made[i]) return proa_error();
    }
    return PROA_OK;
}

proa_status fused_elementwise_infer(const proa_fused_elementwise_args *a, proa_fused_elementwise_metas *m)
{
    for (int64_t i = 0; i < a->x.count; i++)
        if (a->x.at[i]->dtype != a->x.at[0]->dtype)
            return proa__op_fail(PROA_ERR_WRONG_TYPE, proa_find_op("fused_elementwise"), "x",
                                 "number %lld is %s, but the first is %s", (long long)i,
                                 proa_dtype_name((proa_dtype)a->x.at[i]->dtype),
                                 proa_dtype_name((proa_dtype)a->x.at[0]->dtype));
    proa__fused_steps *steps = proa__alloc(sizeof *steps);
    if (!steps) return proa_error();
    proa_status status = infer_steps(a, steps, &m->out);
    proa__free(steps);
    return status;
}
