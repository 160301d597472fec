/* Common subexpression elimination: a deterministic op without side effects that has the same inputs and
 * attributes as an earlier one is removed, and its readers read the earlier result. May use core and ops. */
#include "edit.h"

#include "core/internal.h"

/* ---- hash of what an op computes ----------------------------------------------------------- */

static uint64_t mix(uint64_t h, uint64_t v)
{
    h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
    return h ^ (h >> 29);
}

static uint64_t mix_bytes(uint64_t h, const void *p, size_t n)
{
    const unsigned char *c = p;
    for (size_t i = 0; i < n; i++) h = (h ^ c[i]) * UINT64_C(0x100000001b3);
    return mix(h, n);
}

static uint64_t mix_var(uint64_t h, const proa_tensor *t)
{
    return mix(h, (uint64_t)(uintptr_t)proa__slot_var(t));
}

static uint64_t mix_scalar(uint64_t h, const proa_scalar *s)
{
    h = mix(h, (uint64_t)s->kind);
    if (s->kind == PROA_SCALAR_TENSOR) return mix_var(h, s->tensor);
    h = mix_bytes(h, &s->f, sizeof s->f);
    return mix(mix_bytes(h, &s->im, sizeof s->im), (uint64_t)s->i);
}

static uint64_t mix_list(uint64_t h, proa_tensor *const *at, int64_t n)
{
    for (int64_t i = 0; at && i < n; i++) h = mix_var(h, at[i]);
    return mix(h, (uint64_t)n);
}

static uint64_t mix_field(uint64_t h, const proa_field *f, const void *args)
{
    const void *at = proa_field_at(f, args);
    switch ((proa_field_kind)f->kind) {
    case PROA_FIELD_TENSOR: return mix_var(h, *(proa_tensor *const *)at);
    case PROA_FIELD_TENSORS:
        return mix_list(h, ((const proa_tensors *)at)->at, ((const proa_tensors *)at)->count);
    case PROA_FIELD_BOOL: return mix(h, *(const bool *)at);
    case PROA_FIELD_INT: return mix(h, (uint64_t) * (const int64_t *)at);
    case PROA_FIELD_FLOAT: return mix_bytes(h, at, sizeof(double));
    case PROA_FIELD_DTYPE: return mix(h, (uint64_t) * (const proa_dtype *)at);
    case PROA_FIELD_ENUM: return mix(h, (uint64_t) * (const int *)at);
    case PROA_FIELD_INTS: {
        const proa_ints *v = at;
        h = mix_var(h, v->tensor);
        if (v->at) h = mix_bytes(h, v->at, (size_t)v->count * sizeof *v->at);
        return mix_list(h, v->tensors, v->count);
    }
    case PROA_FIELD_FLOATS: {
        const proa_floats *v = at;
        return mix_bytes(h, v->at, (size_t)v->count * sizeof *v->at);
    }
    case PROA_FIELD_STEPS: {
        const proa_steps *v = at;
        return mix_bytes(h, v->at, (size_t)v->count * sizeof *v->at);
    }
    case PROA_FIELD_STRING: {
        const char *s = *(const char *const *)at;
        return mix_bytes(h, s ? s : "", s ? strlen(s) : 0);
    }
    case PROA_FIELD_STRINGS: {
        const proa_strings *v = at;
        for (int64_t i = 0; i < v->count; i++) h = mix_bytes(h, v->at[i], strlen(v->at[i]) + 1);
        return h;
    }
    case PROA_FIELD_SCALAR: return mix_scalar(h, at);
    default: return h;
    }
}

static uint64_t number_of(const proa_instr *instr)
{
    uint64_t h = mix(0, (uint64_t)(uintptr_t)instr->op);
    for (int i = 0; i < instr->op->n_in + instr->op->n_attr; i++)
        h = mix_field(h, &instr->op->fields[i], instr->args);
    return h;
}

/* ---- full comparison -------------------------------------------------------------------------- */

static bool same_list(proa_tensor *const *a, proa_tensor *const *b, int64_t n)
{
    if (!a != !b) return false;
    for (int64_t i = 0; a && i < n; i++)
        if (proa__slot_var(a[i]) != proa__slot_var(b[i])) return false;
    return true;
}

static bool same_bytes(const void *a, const void *b, size_t n)
{
    if (!a != !b) return false;
    return !a || memcmp(a, b, n) == 0;
}

static bool same_scalar(const proa_scalar *a, const proa_scalar *b)
{
    if (a->kind != b->kind) return false;
    if (a->kind == PROA_SCALAR_TENSOR) return proa__slot_var(a->tensor) == proa__slot_var(b->tensor);
    return memcmp(&a->f, &b->f, sizeof a->f) == 0 && memcmp(&a->im, &b->im, sizeof a->im) == 0 &&
           a->i == b->i;
}

static bool same_strings(const proa_strings *a, const proa_strings *b)
{
    bool same = a->count == b->count;
    for (int64_t i = 0; same && i < a->count; i++) same = strcmp(a->at[i], b->at[i]) == 0;
    return same;
}

static bool same_field(const proa_field *f, const void *x, const void *y)
{
    const void *a = proa_field_at(f, x), *b = proa_field_at(f, y);
    switch ((proa_field_kind)f->kind) {
    case PROA_FIELD_TENSOR:
        return proa__slot_var(*(proa_tensor *const *)a) == proa__slot_var(*(proa_tensor *const *)b);
    case PROA_FIELD_TENSORS: {
        const proa_tensors *m = a, *n = b;
        return m->count == n->count && same_list(m->at, n->at, n->count);
    }
    case PROA_FIELD_BOOL: return *(const bool *)a == *(const bool *)b;
    case PROA_FIELD_INT: return *(const int64_t *)a == *(const int64_t *)b;
    case PROA_FIELD_FLOAT: return memcmp(a, b, sizeof(double)) == 0;
    case PROA_FIELD_DTYPE: return *(const proa_dtype *)a == *(const proa_dtype *)b;
    case PROA_FIELD_ENUM: return *(const int *)a == *(const int *)b;
    case PROA_FIELD_INTS: {
        const proa_ints *m = a, *n = b;
        return m->count == n->count && proa__slot_var(m->tensor) == proa__slot_var(n->tensor) &&
               same_bytes(m->at, n->at, (size_t)n->count * sizeof *n->at) &&
               same_list(m->tensors, n->tensors, n->count);
    }
    case PROA_FIELD_FLOATS: {
        const proa_floats *m = a, *n = b;
        return m->count == n->count && same_bytes(m->at, n->at, (size_t)n->count * sizeof *n->at);
    }
    case PROA_FIELD_STEPS: {
        const proa_steps *m = a, *n = b;
        return m->count == n->count && same_bytes(m->at, n->at, (size_t)n->count * sizeof *n->at);
    }
    case PROA_FIELD_STRING: {
        const char *m = *(const char *const *)a, *n = *(const char *const *)b;
        return strcmp(m ? m : "", n ? n : "") == 0;
    }
    case PROA_FIELD_STRINGS: return same_strings(a, b);
    case PROA_FIELD_SCALAR: return same_scalar(a, b);
    default: return false;
    }
}

static bool same_call(const proa_instr *a, const proa_instr *b)
{
    if (a->op != b->op) return false;
    for (int i = 0; i < a->op->n_in + a->op->n_attr; i++)
        if (!same_field(&a->op->fields[i], a->args, b->args)) return false;
    return true;
}

/* ---- the pass ------------------------------------------------------------------------------ */

typedef struct numbering {
    proa__uses uses;
    int32_t *slots; /* open addressing: op + 1; 0: free */
    uint64_t mask;
    bool fits;
    const proa_instr *first;
    int64_t at;
} numbering;

static proa_status look_read(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    numbering *n = context;
    (void)f, (void)index;
    const proa_var *v = proa__slot_var(*slot);
    if (v && !proa__is_value(&n->uses, v)) n->fits = false;
    return PROA_OK;
}

/* An output that is written in place, or is an output of a sub-block, must stay. */
static proa_status look_write(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    numbering *n = context;
    (void)index;
    const proa_var *v = proa__slot_var(*slot);
    const proa__use *use = proa__use_of(&n->uses, v);
    if (v && (!use || v->persistable || f->flags & PROA_FIELD_MUTATED)) n->fits = false;
    if (use && use->kept && n->uses.block->parent >= 0) n->fits = false;
    return PROA_OK;
}

/* The earlier op cannot supply an output that it does not make, or that an op overwrites. */
static proa_status look_first(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    numbering *n = context;
    (void)index;
    proa_tensor **there = proa__out_slot(n->first->op, n->first->args, n->at++, NULL);
    (void)f;
    const proa_var *v = proa__slot_var(*slot), *first = there ? proa__slot_var(*there) : NULL;
    if (v && (!first || !proa__may_replace(&n->uses, v, first))) n->fits = false;
    return PROA_OK;
}

static proa_status take_first(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    numbering *n = context;
    (void)f, (void)index;
    proa_tensor **there = proa__out_slot(n->first->op, n->first->args, n->at++, NULL);
    proa_var *v = proa__slot_var(*slot);
    if (v && there) proa__replace(&n->uses, v, proa__slot_var(*there));
    return PROA_OK;
}

static proa_status look_at(numbering *n, int32_t i)
{
    const proa_block *b = n->uses.block;
    proa_instr *instr = &b->ops[i];
    PROA_TRY(proa__read_instead(&n->uses, instr));
    n->fits = proa__is_pure(instr->op);
    if (n->fits) PROA_TRY(proa__args_visit_reads(instr->op, instr->args, look_read, n));
    if (n->fits) PROA_TRY(proa__args_visit(instr->op, instr->args, PROA_OUT, look_write, n));
    if (!n->fits) return PROA_OK;
    uint64_t at = number_of(instr) & n->mask;
    for (; n->slots[at]; at = (at + 1) & n->mask) {
        n->first = &b->ops[n->slots[at] - 1];
        n->at = 0;
        if (!same_call(n->first, instr)) continue;
        PROA_TRY(proa__args_visit(instr->op, instr->args, PROA_OUT, look_first, n));
        if (!n->fits) return PROA_OK;
        n->at = 0;
        PROA_TRY(proa__args_visit(instr->op, instr->args, PROA_OUT, take_first, n));
        proa__instr_clear(instr);
        return PROA_OK;
    }
    n->slots[at] = i + 1;
    return PROA_OK;
}

proa_status proa__pass_cse(proa_block *b, const proa__pass_context *context)
{
    (void)context;
    numbering n = {.mask = 15};
    PROA_TRY(proa__uses_find(&n.uses, b));
    while (n.mask < (uint64_t)b->n_ops * 2) n.mask = n.mask * 2 + 1;
    n.slots = proa__calloc((n.mask + 1) * sizeof *n.slots);
    proa_status status = n.slots ? PROA_OK : proa_error();
    for (int32_t i = 0; i < b->n_ops && status == PROA_OK; i++) status = look_at(&n, i);
    proa__uses_apply(&n.uses);
    proa__uses_free(&n.uses);
    proa__free(n.slots);
    return status;
}
