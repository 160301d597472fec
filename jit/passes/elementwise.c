/* Fuses elementwise ops of one shape that feed one another into one fused_elementwise op, in forward and
 * backward programs. A group grows in program order and is placed where its last op was; it closes when an op
 * outside of it reads one of its results. May use core and ops. */
#include "edit.h"

#include "core/internal.h"
#include "ops/elementwise/fused.h"
#include "impl/elementwise.h"

enum { MAX_GROUP = 24 };

typedef struct group {
    int32_t ops[MAX_GROUP], n; /* ascending */
    int32_t into;              /* the group that it was merged into; NOBODY: none */
    bool closed;
} group;

typedef struct grouping {
    proa__uses uses;
    group *groups;
    int32_t n, capacity;
    int32_t *of; /* by variable: the group of the op that makes it; NOBODY: none */
    bool fits;
    int32_t at;
} grouping;

/* ---- who may join ---------------------------------------------------------------------------- */

static const proa_tensor *result_of(const proa_instr *instr)
{
    return *proa_field_tensor(&instr->op->fields[instr->op->n_fields - 1], instr->args);
}

static bool takes_attribute(const proa_field *f, const void *args)
{
    const void *at = proa_field_at(f, args);
    if (f->kind == PROA_FIELD_BOOL || f->kind == PROA_FIELD_FLOAT) return true;
    if (f->kind != PROA_FIELD_SCALAR) return false;
    proa_scalar_kind kind = ((const proa_scalar *)at)->kind;
    return kind == PROA_SCALAR_FLOAT || kind == PROA_SCALAR_INT || kind == PROA_SCALAR_BOOL ||
           kind == PROA_SCALAR_NONE;
}

static bool is_real(const proa_tensor *t)
{
    return t->dtype == PROA_F16 || t->dtype == PROA_BF16 || t->dtype == PROA_F32 || t->dtype == PROA_F64;
}

static bool can_fuse(const grouping *g, const proa_instr *instr)
{
    const proa_op *op = instr->op;
    if (!proa__fused_takes(op)) return false;
    const proa_tensor *out = result_of(instr);
    const proa_var *v = proa__slot_var(out);
    bool casts = proa__is_op(instr, "cast");
    if (!proa__use_of(&g->uses, v) || v->persistable || !is_real(out) || (casts && out->dtype == PROA_F64))
        return false;
    for (int i = 0; i < op->n_in; i++) {
        const proa_tensor *t = *proa_field_tensor(&op->fields[i], instr->args);
        if (!proa__slot_var(t) || (casts ? !is_real(t) || t->dtype == PROA_F64 : t->dtype != out->dtype))
            return false;
    }
    for (int i = 0; i < op->n_attr && !casts; i++)
        if (!takes_attribute(&op->fields[op->n_in + i], instr->args)) return false;
    return true;
}

/* ---- groups -------------------------------------------------------------------------------------- */

static group *live(const grouping *g, int32_t i)
{
    while (i != PROA__NOBODY && g->groups[i].into != PROA__NOBODY) i = g->groups[i].into;
    return i == PROA__NOBODY ? NULL : &g->groups[i];
}

static group *group_of(const grouping *g, const proa_tensor *t)
{
    const proa_var *v = proa__slot_var(t);
    return proa__use_of(&g->uses, v) ? live(g, g->of[v->index]) : NULL;
}

static proa_status close_read(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    (void)f, (void)index;
    group *read = group_of(context, *slot);
    if (read) read->closed = true;
    return PROA_OK;
}

static proa_status new_group(grouping *g, int32_t *index)
{
    PROA_TRY(proa__reserve(&g->groups, g->n, &g->capacity, sizeof *g->groups));
    g->groups[g->n] = (group){.into = PROA__NOBODY};
    *index = g->n++;
    return PROA_OK;
}

/* The inputs and outputs that the group would have if `op` joined it as the last; stops counting beyond the
 * limit. */
typedef struct edges {
    proa_tensor *in[PROA__FUSED_INPUTS + 1];
    int n_in, n_out;
    bool fits;
} edges;

static bool makes(const grouping *g, const int32_t *ops, int32_t n, const proa_var *v)
{
    const proa__use *use = proa__use_of(&g->uses, v);
    if (!use || v->persistable || v->is_input) return false;
    for (int32_t i = 0; i < n; i++)
        if (ops[i] == use->maker) return true;
    return false;
}

static int reads_inside(const grouping *g, const int32_t *ops, int32_t n, const proa_var *v)
{
    int reads = 0;
    for (int32_t i = 0; i < n; i++) {
        const proa_instr *instr = &g->uses.block->ops[ops[i]];
        for (int k = 0; k < instr->op->n_in; k++)
            reads += proa__slot_var(*proa_field_tensor(&instr->op->fields[k], instr->args)) == v;
    }
    return reads;
}

static bool is_handed_out(const grouping *g, const int32_t *ops, int32_t n, const proa_var *v)
{
    const proa__use *use = proa__use_of(&g->uses, v);
    return use->kept || use->n_reads > reads_inside(g, ops, n, v);
}

static void find_edges(const grouping *g, const int32_t *ops, int32_t n, edges *e)
{
    *e = (edges){.fits = true};
    for (int32_t i = 0; i < n && e->fits; i++) {
        const proa_instr *instr = &g->uses.block->ops[ops[i]];
        for (int k = 0; k < instr->op->n_in && e->fits; k++) {
            proa_tensor *t = *proa_field_tensor(&instr->op->fields[k], instr->args);
            const proa_var *v = proa__slot_var(t);
            if (makes(g, ops, n, v)) continue;
            if (!proa__may_move(&g->uses, v, ops[i], ops[n - 1])) e->fits = false;
            int at = 0;
            while (at < e->n_in && proa__slot_var(e->in[at]) != v) at++;
            if (at == e->n_in) e->in[e->n_in++] = t;
            if (e->n_in > PROA__FUSED_INPUTS) e->fits = false;
        }
        if (is_handed_out(g, ops, n, proa__slot_var(result_of(instr)))) e->n_out++;
    }
    if (e->n_out > PROA__FUSED_OUTPUTS) e->fits = false;
}

static void insert_sorted(int32_t *ops, int32_t *n, int32_t op)
{
    int32_t i = (*n)++;
    for (; i > 0 && ops[i - 1] > op; i--) ops[i] = ops[i - 1];
    ops[i] = op;
}

static bool same_kind(const grouping *g, const group *other, const proa_instr *instr)
{
    const proa_instr *first = &g->uses.block->ops[other->ops[0]];
    return proa__same_shape(result_of(first), result_of(instr)) &&
           (result_of(first)->dtype == PROA_F64) == (result_of(instr)->dtype == PROA_F64) &&
           first->role == instr->role;
}

/* Adds the op to the open groups that it reads from, and merges these into one. */
static proa_status join(grouping *g, int32_t at)
{
    proa_instr *instr = &g->uses.block->ops[at];
    int32_t ops[MAX_GROUP], n = 0;
    group *from[3] = {NULL};
    int n_from = 0;
    for (int k = 0; k < instr->op->n_in; k++) {
        group *other = group_of(g, *proa_field_tensor(&instr->op->fields[k], instr->args));
        bool seen = false;
        for (int j = 0; j < n_from; j++) seen |= from[j] == other;
        if (!other || seen) continue;
        bool takes = !other->closed && same_kind(g, other, instr) && n + other->n + 1 <= MAX_GROUP;
        int32_t tried[MAX_GROUP], m = 0;
        edges e;
        if (takes) {
            for (int32_t j = 0; j < n; j++) insert_sorted(tried, &m, ops[j]);
            for (int32_t j = 0; j < other->n; j++) insert_sorted(tried, &m, other->ops[j]);
            insert_sorted(tried, &m, at);
            find_edges(g, tried, m, &e);
            takes = e.fits;
        }
        if (!takes) {
            other->closed = true;
            continue;
        }
        from[n_from++] = other;
        for (int32_t j = 0; j < other->n; j++) insert_sorted(ops, &n, other->ops[j]);
    }
    int32_t index = 0;
    if (n_from) index = (int32_t)(from[0] - g->groups);
    else PROA_TRY(new_group(g, &index));
    for (int j = 1; j < n_from; j++) from[j]->into = index;
    insert_sorted(ops, &n, at);
    memcpy(g->groups[index].ops, ops, (size_t)n * sizeof *ops);
    g->groups[index].n = n;
    g->of[proa__slot_var(result_of(instr))->index] = index;
    return PROA_OK;
}

/* ---- writing it -------------------------------------------------------------------------------------- */

/* Attribute k, in the form in which equal values have equal bytes. */
static void take_value(proa_chain_step *step, int k, const proa_field *f, const void *args)
{
    const void *at = proa_field_at(f, args);
    if (f->kind == PROA_FIELD_BOOL) {
        step->kinds[k] = PROA_SCALAR_BOOL;
        step->values[k].i = *(const bool *)at;
    } else if (f->kind == PROA_FIELD_FLOAT) {
        step->kinds[k] = PROA_SCALAR_FLOAT;
        step->values[k].f = *(const double *)at;
    } else if (f->kind == PROA_FIELD_DTYPE) {
        step->kinds[k] = PROA_SCALAR_INT;
        step->values[k].i = *(const proa_dtype *)at;
    } else {
        const proa_scalar *s = at;
        step->kinds[k] = (uint8_t)s->kind;
        if (s->kind == PROA_SCALAR_FLOAT) step->values[k].f = s->f;
        else if (s->kind == PROA_SCALAR_BOOL) step->values[k].i = s->i != 0;
        else if (s->kind == PROA_SCALAR_INT) step->values[k].i = s->i;
    }
}

/* The number of an input of the group, or ~number of its step that makes the operand. */
static int8_t operand_of(const grouping *g, const group *own, const edges *e, const proa_tensor *operand)
{
    const proa_var *v = proa__slot_var(operand);
    for (int32_t i = 0; i < own->n; i++)
        if (proa__slot_var(result_of(&g->uses.block->ops[own->ops[i]])) == v) return (int8_t)~i;
    int i = 0;
    while (proa__slot_var(e->in[i]) != v) i++;
    return (int8_t)i;
}

static proa_chain_step step_of(const grouping *g, const group *own, const edges *e, const proa_instr *instr)
{
    const proa_op *op = instr->op;
    proa_chain_step step = {.op = op,
                            .out = is_handed_out(g, own->ops, own->n, proa__slot_var(result_of(instr)))};
    for (int k = 0; k < op->n_in; k++)
        step.in[k] = operand_of(g, own, e, *proa_field_tensor(&op->fields[k], instr->args));
    for (int k = 0; k < op->n_attr; k++) take_value(&step, k, &op->fields[op->n_in + k], instr->args);
    return step;
}

/* Writes the fused op in place of the group's last op and removes the others. */
static proa_status write_group(grouping *g, const group *own)
{
    proa_instr *ops = g->uses.block->ops;
    edges e;
    proa_chain_step steps[MAX_GROUP];
    proa_tensor *outs[PROA__FUSED_OUTPUTS];
    int n_out = 0;
    find_edges(g, own->ops, own->n, &e);
    if (!e.fits || !e.n_out) return PROA_OK;
    for (int32_t i = 0; i < own->n; i++) {
        const proa_instr *instr = &ops[own->ops[i]];
        steps[i] = step_of(g, own, &e, instr);
        if (steps[i].out) outs[n_out++] = (proa_tensor *)(uintptr_t)result_of(instr);
    }
    proa_fused_elementwise_args fused = {.x = {e.n_in, e.in}, .steps = {own->n, steps}, .out = {n_out, outs}};
    int32_t last = own->ops[own->n - 1];
    proa_instr made = {.role = ops[last].role, .marks = ops[last].marks};
    PROA_TRY(proa__instr_become(&made, proa_find_op("fused_elementwise"), &fused));
    for (int32_t i = 0; i < own->n; i++) proa__instr_clear(&ops[own->ops[i]]);
    ops[last] = made;
    return PROA_OK;
}

/* ---- the pass ---------------------------------------------------------------------------- */

static proa_status group_all(grouping *g)
{
    const proa_block *b = g->uses.block;
    for (int32_t i = 0; i < b->n_vars; i++) g->of[i] = PROA__NOBODY;
    for (int32_t i = 0; i < b->n_ops; i++) {
        proa_instr *instr = &b->ops[i];
        if (can_fuse(g, instr)) PROA_TRY(join(g, i));
        else PROA_TRY(proa__args_visit_reads(instr->op, instr->args, close_read, g));
    }
    return PROA_OK;
}

proa_status proa__pass_elementwise(proa_block *b, const proa__pass_context *context)
{
    (void)context;
    grouping g = {.n = 0};
    PROA_TRY(proa__uses_find(&g.uses, b));
    g.of = proa__alloc(((size_t)b->n_vars + 1) * sizeof *g.of);
    proa_status status = g.of ? group_all(&g) : proa_error();
    for (int32_t i = 0; i < g.n && status == PROA_OK; i++)
        if (g.groups[i].into == PROA__NOBODY && g.groups[i].n > 1) status = write_group(&g, &g.groups[i]);
    proa__uses_apply(&g.uses);
    proa__uses_free(&g.uses);
    proa__free(g.of);
    proa__free(g.groups);
    return status;
}
