/* Parser of the steps of a fused elementwise chain, whose text is like "t0 = add x0 x1; out relu t0". May use
 * core. */
#include "core/steps.h"

#include <errno.h>
#include <stdlib.h>

enum { WORD = 64 };

typedef struct reader {
    const char *at;
    char word[WORD];
    int n;
    proa_chain_step steps[PROA_STEPS_MAX];
} reader;

static proa_status fail_at(const reader *r, const char *word, const char *what)
{
    return proa_fail(PROA_ERR_INVALID_ARGUMENT, "steps: step %d, at '%.40s': %s", r->n, word, what);
}

/* The next word of this step; false at its end. */
static bool next_word(reader *r)
{
    while (*r->at == ' ') r->at++;
    size_t n = strcspn(r->at, " ;");
    if (n == 0 || n >= sizeof r->word) return false;
    memcpy(r->word, r->at, n);
    r->word[n] = 0;
    r->at += n;
    return true;
}

/* Reads the number behind the word's first letter. */
static bool word_index(const reader *r, int64_t limit, int64_t *to)
{
    char *end = NULL;
    if (r->word[1] < '0' || r->word[1] > '9') return false;
    *to = strtoll(r->word + 1, &end, 10);
    return !*end && *to < limit;
}

static proa_status read_operand(reader *r, proa_chain_step *step, int k)
{
    int64_t i = 0;
    bool input = r->word[0] == 'x';
    if ((!input && r->word[0] != 't') || !word_index(r, input ? INT8_MAX + 1 : r->n, &i))
        return fail_at(r, r->word,
                       "expected x<i> for an input, t<i> for an earlier step's result, or attribute=value");
    if (k == step->op->n_in) return fail_at(r, r->word, "is one operand too many");
    step->in[k] = (int8_t)(input ? i : ~i);
    return PROA_OK;
}

/* Leaves 0, no dtype, for any other text. */
static void read_dtype(proa_chain_step *step, int k, const char *text)
{
    step->kinds[k] = PROA_SCALAR_INT;
    for (int d = PROA_NODTYPE + 1; d < PROA_DTYPE_COUNT; d++)
        if (strcmp(text, proa_dtype_name((proa_dtype)d)) == 0) step->values[k].i = d;
}

/* Reads attribute k. A number of kind SCALAR is an integer if it is written as one that int64 holds. */
static proa_status read_value(reader *r, proa_chain_step *step, int k, const char *text)
{
    proa_field_kind kind = (proa_field_kind)step->op->fields[step->op->n_in + k].kind;
    bool truth = strcmp(text, "true") == 0;
    char *end = NULL, *whole = NULL;
    errno = 0;
    int64_t i = strtoll(text, &whole, 10);
    bool fits = errno != ERANGE;
    double f = strtod(text, &end);
    step->values[k].i = 0;
    if (kind == PROA_FIELD_DTYPE) {
        read_dtype(step, k, text);
    } else if (kind == PROA_FIELD_SCALAR && strcmp(text, "none") == 0) {
        step->kinds[k] = PROA_SCALAR_NONE;
    } else if (truth || strcmp(text, "false") == 0) {
        step->kinds[k] = PROA_SCALAR_BOOL;
        step->values[k].i = truth;
    } else if (end == text || *end) {
        return fail_at(r, text, "expected a number, true or false");
    } else if (kind == PROA_FIELD_BOOL) {
        step->kinds[k] = PROA_SCALAR_BOOL;
        step->values[k].i = f != 0;
    } else if (kind == PROA_FIELD_SCALAR && !*whole && fits) {
        step->kinds[k] = PROA_SCALAR_INT;
        step->values[k].i = i;
    } else {
        step->kinds[k] = PROA_SCALAR_FLOAT;
        step->values[k].f = f;
    }
    return PROA_OK;
}

static proa_status read_attribute(reader *r, proa_chain_step *step, char *equals)
{
    *equals = 0;
    for (int k = 0; k < step->op->n_attr; k++)
        if (strcmp(step->op->fields[step->op->n_in + k].name, r->word) == 0)
            return read_value(r, step, k, equals + 1);
    return fail_at(r, r->word, "the op has no such attribute");
}

/* "t<i> =" or "out", and the op. */
static proa_status read_head(reader *r, proa_chain_step *step)
{
    int64_t i = -1;
    if (!next_word(r)) return fail_at(r, "", "expected 't<i> =' or 'out'");
    step->out = strcmp(r->word, "out") == 0;
    if (!step->out && (r->word[0] != 't' || !word_index(r, r->n + 1, &i) || i != r->n || !next_word(r) ||
                       strcmp(r->word, "=") != 0))
        return fail_at(r, r->word, "expected 't<i> =', i counting steps from 0, or 'out'");
    step->op = next_word(r) ? proa_find_op(r->word) : NULL;
    if (step->op && step->op->n_attr <= PROA__STEP_ATTRIBUTES && step->op->n_in <= PROA__STEP_OPERANDS)
        return PROA_OK;
    return fail_at(r, r->word, "expected an elementwise op of the table");
}

static proa_status read_step(reader *r)
{
    if (r->n == PROA_STEPS_MAX) return fail_at(r, r->at, "is one step too many");
    proa_chain_step *step = &r->steps[r->n];
    const char *name, *fault;
    int n = 0;
    PROA_TRY(read_head(r, step));
    for (int k = 0; k < step->op->n_attr; k++) {
        const char *text = step->op->fields[step->op->n_in + k].fallback;
        if (text) PROA_TRY(read_value(r, step, k, text));
    }
    while (next_word(r)) {
        char *equals = strchr(r->word, '=');
        PROA_TRY(equals ? read_attribute(r, step, equals) : read_operand(r, step, n++));
    }
    if (*r->at && *r->at != ';') return fail_at(r, r->at, "has a word of more than 63 characters");
    if (n < step->op->n_in) return fail_at(r, step->op->name, "has too few operands");
    fault = proa__step_fault(r->steps, r->n, &name);
    if (fault) return fail_at(r, name, fault);
    r->n++;
    return PROA_OK;
}

proa_steps proa_steps_read(const char *text)
{
    reader r = {.at = text ? text : ""};
    proa_steps none = {0, NULL};
    if (proa_error()) return none;
    for (;;) {
        if (read_step(&r) != PROA_OK) return none;
        if (!*r.at) break;
        r.at++;
    }
    proa_chain_step *at = proa_scope_alloc((size_t)r.n * sizeof *at);
    if (!at) return none;
    memcpy(at, r.steps, (size_t)r.n * sizeof *at);
    return (proa_steps){r.n, at};
}
