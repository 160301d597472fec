/* View ops in plans: decides which outputs are views, which cost nothing, and computes their offsets. May use
 * core. */
#include "planner.h"

#include "core/blocked.h"
#include "core/args_visit.h"

typedef proa__planner planner;

/* An address for computing views at plan time; no kernel ever sees it. */
static char anywhere[64];

/* Origin of a view: a handle, and the buffer that it is in. */
typedef struct origin {
    proa_tensor *from;
    proa__buffer *buffer;
    int64_t offset;
    int32_t until;
} origin;

static proa_status copied(planner *p, proa__value *base, origin *at)
{
    at->from = proa__plan_dense(p, base);
    at->buffer = base->dense_buffer;
    at->offset = 0;
    at->until = INT32_MAX;
    return at->from ? PROA_OK : proa_error();
}

/* Makes the view (*made, in the scope); NULL when the strides do not allow one. */
static proa_status view_of(planner *p, const proa_meta *meta, const origin *at, proa_tensor **made,
                           int64_t *offset)
{
    const proa_op *op = p->instr->op;
    proa_tensor **slot = proa_field_tensor(&op->fields[op->n_in + op->n_attr], p->args);
    bool nowhere = !at->from->data;
    proa__slot_set(proa_field_tensor(op->fields, p->args), at->from);
    proa__slot_set(slot, NULL);
    if (nowhere) at->from->data = anywhere;
    proa_status status = op->view(p->args, meta);
    proa_tensor *t = *slot;
    *slot = NULL;
    *offset = t ? at->offset + (int64_t)((intptr_t)t->data - (intptr_t)at->from->data) : 0;
    if (nowhere) at->from->data = NULL;
    if (status == PROA_OK && t && nowhere) proa__point(t, NULL, NULL);
    *made = t;
    return status;
}

proa_status proa__plan_view(planner *p, const proa_meta *meta, bool *viewed)
{
    const proa_op *op = p->instr->op;
    const proa_field *out = &op->fields[op->n_in + op->n_attr], *in = op->fields;
    *viewed = false;
    if (proa__makes_list(out)) return PROA_OK;
    const proa_var *v = proa__slot_var(*proa_field_tensor(out, p->instr->args));
    const proa_var *base_var = proa__slot_var(*proa_field_tensor(in, p->instr->args));
    if (!v || !base_var || v->persistable || meta->ndim < 0) return PROA_OK;
    for (int d = 0; d < meta->ndim; d++)
        if (meta->shape[d] < 0) return PROA_OK; /* unknown dim: buffer assignment reports it */
    proa__value *base = proa__plan_value(p, base_var);
    origin at = {base->handle, base->buffer, base->offset,
                 base_var->persistable ? p->facts->next_write[p->at] : base->until};
    if (base->handle->flags & PROA_T_BLOCKED && proa__format(base->handle)) PROA_TRY(copied(p, base, &at));
    int32_t last_use = p->facts->last_use[v->index];
    if (at.until < INT32_MAX && at.until <= last_use) return PROA_OK; /* overwritten too early: a copy */
    proa_tensor *t;
    int64_t offset;
    PROA_TRY(view_of(p, meta, &at, &t, &offset));
    if (!t && at.from->flags & PROA_T_STRIDED && p->facts->reads_dense[base_var->index]) {
        PROA_TRY(copied(p, base, &at)); /* other readers need that copy, too */
        PROA_TRY(view_of(p, meta, &at, &t, &offset));
    }
    if (!t || (t->flags & PROA_T_STRIDED && proa__must_be_dense(p->facts, v))) return PROA_OK;
    *viewed = true;
    if (at.buffer != &proa__fixed_place)
        at.buffer->last = last_use > at.buffer->last ? last_use : at.buffer->last;
    p->s->values[v->index] = (proa__value){
        .handle = t, .buffer = at.buffer, .offset = offset, .until = at.until, .known = base->known};
    return proa__plan_bind(p, t, at.buffer, offset);
}
