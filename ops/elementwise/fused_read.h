/* Parser for the text of fused_elementwise's steps. Included by one file of the library (fused.c) and by one
 * of the GPU plug-in (devices/cuda/fuse.c), which cannot call the library. May use the public headers
 * only. */
#ifndef PROA_OPS_ELEMENTWISE_FUSED_READ_H
#define PROA_OPS_ELEMENTWISE_FUSED_READ_H

#include "ops/elementwise/fused_steps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Callbacks of the parser: `find` returns the op of a name, or NULL if it may not be in a chain; `fail`
 * returns the status for a syntax error at a word. */
typedef struct proa__fused_caller {
    const proa_op *(*find)(const char *name);
    proa_status (*fail)(int step, const char *word, const char *what);
} proa__fused_caller;

typedef struct fused_reader {
    const char *at;
    char word[64];
    int64_t n_inputs;
    const proa__fused_caller *caller;
    proa__fused_steps *to;
} fused_reader;

static proa_status fused_fail(const fused_reader *r, const char *what)
{
    return r->caller->fail(r->to->n, r->word, what);
}

/* The next word of this step; false at its end. */
static bool fused_next(fused_reader *r)
{
    while (*r->at == ' ') r->at++;
    size_t n = strcspn(r->at, " ;");
    if (n == 0 || n >= sizeof r->word) return false;
    memcpy(r->word, r->at, n);
    r->word[n] = 0;
    r->at += n;
    return true;
}

static bool fused_number(const char *text, char **end, int64_t limit, int64_t *to)
{
    if (*text < '0' || *text > '9') return false;
    *to = strtoll(text, end, 10);
    return *to < limit;
}

static proa_status fused_operand(fused_reader *r, proa__fused_step *step)
{
    char *end = NULL;
    int64_t i = -1;
    bool input = r->word[0] == 'x';
    if ((!input && r->word[0] != 't') ||
        !fused_number(r->word + 1, &end, input ? r->n_inputs : r->to->n, &i) || *end)
        return fused_fail(
            r, "expected x<i> for an input, t<i> for what an earlier step made, or attribute=value");
    if (step->n_in == step->op->n_in) return fused_fail(r, "is one operand too many");
    step->in[step->n_in++] = input ? (int)i : ~(int)i;
    return PROA_OK;
}

/* Reads a floating dtype: the dtypes that a cast inside a chain may produce. */
static proa_status fused_dtype(const fused_reader *r, proa_dtype *to, const char *name)
{
    static const struct {
        const char *name;
        proa_dtype dtype;
    } known[] = {{"float16", PROA_F16}, {"bfloat16", PROA_BF16}, {"float32", PROA_F32}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(known[i].name, name) == 0) return *to = known[i].dtype, PROA_OK;
    return fused_fail(r, "expected float16, bfloat16 or float32");
}

static proa_status fused_attribute(fused_reader *r, proa__fused_step *step, char *equals)
{
    *equals = 0;
    const proa_field *f = NULL;
    for (int i = 0; i < step->op->n_attr && !f; i++) {
        const proa_field *c = &step->op->fields[step->op->n_in + i];
        if (strcmp(c->name, r->word) == 0) f = c;
    }
    if (!f) return fused_fail(r, "the op has no such attribute");
    if (f->kind == PROA_FIELD_DTYPE) return fused_dtype(r, proa_field_at(f, step->args), equals + 1);
    char *end = NULL;
    double value = strcmp(equals + 1, "true") == 0 ? 1 : strtod(equals + 1, &end);
    if (strcmp(equals + 1, "false") != 0 && end && (end == equals + 1 || *end))
        return fused_fail(r, "expected a number, true or false");
    void *at = proa_field_at(f, step->args);
    switch ((proa_field_kind)f->kind) {
    case PROA_FIELD_FLOAT: memcpy(at, &value, sizeof value); return PROA_OK;
    case PROA_FIELD_BOOL: *(bool *)at = value != 0; return PROA_OK;
    case PROA_FIELD_SCALAR:
        *(proa_scalar *)at = (proa_scalar){.kind = PROA_SCALAR_FLOAT, .f = value};
        return PROA_OK;
    default: return fused_fail(r, "the attribute is no number");
    }
}

/* Defaults are written out by who makes the text, but for the few that a person leaves out. */
static proa_status fused_default(fused_reader *r, proa__fused_step *step, const proa_field *f)
{
    char word[64];
    if (!f->fallback || strcmp(f->fallback, "none") == 0) return PROA_OK;
    memcpy(word, r->word, sizeof word);
    int n = snprintf(r->word, sizeof r->word, "%s=%s", f->name, f->fallback);
    proa_status status = n < (int)sizeof r->word ? fused_attribute(r, step, strchr(r->word, '='))
                                                 : fused_fail(r, "a default that is too long");
    memcpy(r->word, word, sizeof word);
    return status;
}

static proa_status fused_step(fused_reader *r)
{
    proa__fused_steps *to = r->to;
    if (to->n == PROA__FUSED_STEPS) return fused_fail(r, "is one step too many");
    proa__fused_step *step = &to->at[to->n];
    memset(step, 0, sizeof *step);
    if (!fused_next(r)) return fused_fail(r, "expected 't<i> =' or 'out'");
    step->out = strcmp(r->word, "out") == 0;
    if (!step->out) {
        char *end = NULL;
        int64_t i = -1;
        if (r->word[0] != 't' || !fused_number(r->word + 1, &end, to->n + 1, &i) || *end || i != to->n ||
            !fused_next(r) || strcmp(r->word, "=") != 0)
            return fused_fail(r, "expected 't<i> =', i counting steps from 0, or 'out'");
    }
    step->op = fused_next(r) ? r->caller->find(r->word) : NULL;
    if (!step->op || step->op->args_size > sizeof step->args || step->op->n_in > 3)
        return fused_fail(r, "expected an elementwise op of the table");
    for (int i = 0; i < step->op->n_attr; i++)
        PROA_TRY(fused_default(r, step, &step->op->fields[step->op->n_in + i]));
    while (fused_next(r)) {
        char *equals = strchr(r->word, '=');
        PROA_TRY(equals ? fused_attribute(r, step, equals) : fused_operand(r, step));
    }
    if (*r->at && *r->at != ';') return fused_fail(r, "has a word of more than 63 characters");
    if (step->n_in < step->op->n_in) return fused_fail(r, "has too few operands");
    to->n++;
    to->n_out += step->out;
    return PROA_OK;
}

static proa_status proa__fused_parse(const char *steps, int64_t n_inputs, const proa__fused_caller *caller,
                                     proa__fused_steps *to)
{
    fused_reader r = {.at = steps ? steps : "", .n_inputs = n_inputs, .caller = caller, .to = to};
    to->n = to->n_out = 0;
    for (;;) {
        PROA_TRY(fused_step(&r));
        if (!*r.at) break;
        r.at++;
    }
    if (to->n_out) return PROA_OK;
    return fused_fail(&r, "no step is marked 'out'");
}

#endif
