/* Assigns a buffer to every output of an op: an input's buffer if that input is dead afterwards (or a copy of
 * the input), the memory of the persistable that it writes, or a new buffer. May use core and ops. */
#include "planner.h"

#include "core/blocked.h"
#include "core/args_visit.h"
#include "core/kernel_traits.h"

typedef proa__planner planner;

static proa_status add_written(planner *p, proa_tensor *t)
{
    if (!p->takes_blocked && proa__format(t)) {
        PROA_TRY(proa__plain_to_write(t));
        p->unblocked = true;
    }
    proa__segment *s = p->s;
    PROA_TRY(proa__reserve(&s->written, s->n_written, &s->written_capacity, sizeof *s->written));
    s->written[s->n_written++] = t;
    return PROA_OK;
}

static int32_t output_index(const planner *p, const proa_var *v)
{
    for (int32_t i = 0; p->facts->is_output[v->index] && i < p->facts->n_handed; i++)
        if (p->facts->block->outputs[i] == v) return i;
    return -1;
}

void proa__plan_hand_out(planner *p, proa__buffer *b, const proa_var *v, const proa_meta *meta)
{
    int32_t i = output_index(p, v);
    if (i < 0) return;
    b->place = PROA__IN_OUTPUT;
    b->index = i;
    b->meta = *meta;
}

static proa_status place_fresh(planner *p, const proa_var *v, const proa_meta *meta, proa_tensor **slot)
{
    proa__value *value = &p->s->values[v->index];
    proa__buffer *b =
        proa__plan_buffer(p, PROA__IN_ARENA, 0, 0, proa__max64(p->at, p->facts->last_use[v->index]));
    proa_tensor *t = b ? proa__plan_handle(p, meta, 0, b, 0) : NULL;
    if (!t) return proa_error();
    b->bytes = proa__plan_bytes(t);
    proa__plan_hand_out(p, b, v, meta);
    *value = (proa__value){.handle = t, .buffer = b, .until = INT32_MAX};
    proa__slot_set(slot, t);
    return PROA_OK;
}

/* Counts the op's inputs that are in `buffer`. */
typedef struct sharing {
    planner *p;
    const proa__buffer *buffer;
    int n;
} sharing;

static proa_status look_sharing(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    sharing *s = context;
    (void)f, (void)index;
    const proa_var *v = proa__slot_var(*slot);
    const proa__value *value = v ? &s->p->s->values[v->index] : NULL;
    if (value && (value->buffer == s->buffer || value->dense_buffer == s->buffer)) s->n++;
    return PROA_OK;
}

bool proa__plan_is_free(planner *p, const proa__value *in)
{
    const proa__buffer *b = in->buffer;
    if (!in->handle || !b || (b->place != PROA__IN_ARENA) || b->first < p->s->first_op || b->last > p->at)
        return false;
    sharing s = {p, b, 0};
    proa__args_visit_reads(p->instr->op, p->instr->args, look_sharing, &s);
    return s.n == 1;
}

static bool same_meta(const proa_meta *m, const proa_tensor *t)
{
    if (m->dtype != (proa_dtype)t->dtype || m->ndim != t->ndim) return false;
    return !memcmp(m->shape, t->shape, (size_t)t->ndim * sizeof *t->shape);
}

static proa_tensor **nth_slot(const proa_field *f, const void *args, int64_t k)
{
    return &proa__field_all(f, args).at[k];
}

/* Places the output over an input if the op table allows it and the input is dead after this op. */
static bool place_over_input(planner *p, const proa_field *f, const proa_var *v, const proa_meta *meta,
                             proa_tensor **slot, proa_status *status)
{
    const proa_op *op = p->instr->op;
    if (!proa__may_lie_over(f)) return false;
    const proa_field *src = &op->fields[f->alias];
    proa_tensor **one = proa__field_one(src, p->instr->args);
    const proa_var *in = one ? proa__slot_var(*one) : NULL;
    if (!in) return false;
    const proa__value *from = &p->s->values[in->index];
    if (!proa__plan_is_free(p, from) || from->handle != *proa_field_tensor(src, p->args)) return false;
    if (from->offset || from->buffer->bytes != proa__plan_bytes(from->handle) ||
        !same_meta(meta, from->handle) || from->handle->flags & (PROA_T_STRIDED | PROA_T_BLOCKED))
        return false;
    proa__buffer *b = from->buffer;
    if (b->pinned && output_index(p, v) >= 0) return false; /* an output needs memory of its own */
    proa_tensor *t = proa__plan_handle(p, meta, 0, b, 0);
    *status = t ? PROA_OK : proa_error();
    if (!t) return true;
    b->last = proa__max64(p->at, p->facts->last_use[v->index]);
    b->overwritten = true;
    proa__plan_hand_out(p, b, v, meta);
    p->s->values[v->index] = (proa__value){.handle = t, .buffer = b, .until = INT32_MAX};
    proa__slot_set(slot, t);
    return true;
}

/* Places an output that an op makes by overwriting an input: in the input's memory if nobody reads that
 * afterwards, else in a copy. */
static proa_status place_mutated(planner *p, const proa_field *f, int64_t k, const proa_var *v,
                                 proa_tensor **slot)
{
    const proa_field *src = &p->instr->op->fields[f->alias];
    const proa_var *in = proa__slot_var(*nth_slot(src, p->instr->args, k));
    proa_tensor **from_slot = nth_slot(src, p->args, k);
    if (!in) return proa__op_fail(PROA_ERR_BAD_STATE, p->instr->op, f->name, "has no input to overwrite");
    const proa__value *from = &p->s->values[in->index];
    if (proa__plan_is_free(p, from) && *from_slot == from->handle &&
        !(from->handle->flags & (PROA_T_STRIDED | PROA_T_BLOCKED))) {
        from->buffer->last = proa__max64(p->at, p->facts->last_use[v->index]);
        from->buffer->overwritten = true;
        p->s->values[v->index] = *from;
        p->s->values[v->index].known = false;
        proa__slot_set(slot, from->handle);
        return PROA_OK;
    }
    proa_meta meta = proa_meta_of(from->handle);
    PROA_TRY(place_fresh(p, v, &meta, slot));
    PROA_TRY(proa__plan_step(p, (proa__step){.to = *slot, .from = from->handle}));
    proa__slot_set(from_slot, *slot);
    return PROA_OK;
}

static proa_status place_persistable(planner *p, const proa_field *f, const proa_var *v,
                                     const proa_meta *meta, proa_tensor **slot)
{
    proa__value *value = proa__plan_value(p, v);
    if (!value->handle) return proa_error();
    proa_tensor *t = value->handle;
    value->dense = NULL; /* the cached contiguous copy has the former value */
    if (meta && meta->ndim >= 0 && !same_meta(meta, t))
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, p->instr->op, f->name,
                             "must be %s%s to be written to %s, which is %s", proa_dtype_name(meta->dtype),
                             proa__shape_text(meta->shape, meta->ndim), v->name, proa__tensor_text(t));
    if (t->flags & PROA_T_STRIDED && !(p->instr->op->flags & PROA_OP_STRIDED))
        return proa__op_fail(PROA_ERR_UNSUPPORTED, p->instr->op, f->name,
                             "(%s) is not contiguous; a program writes contiguous tensors only", v->name);
    proa__slot_set(slot, t);
    return add_written(p, t);
}

static proa_status place(planner *p, const proa_field *f, int64_t k, const proa_meta *meta,
                         proa_tensor **slot)
{
    const proa_op *op = p->instr->op;
    const proa_var *v = proa__slot_var(*nth_slot(f, p->instr->args, k));
    if (!v) {
        proa__slot_set(slot, proa_none);
        return PROA_OK;
    }
    if (v->persistable) return place_persistable(p, f, v, meta, slot);
    bool droppable =
        (f->flags & PROA_FIELD_OPTIONAL && proa__has_block(op)) || proa__has_field(proa__op_drops(op), op, f);
    if (droppable && !p->facts->read[v->index]) { /* such as a loop's tape, which is not recorded then */
        proa__slot_set(slot, proa_none);
        return PROA_OK;
    }
    if (f->flags & PROA_FIELD_MUTATED) return place_mutated(p, f, k, v, slot);
    if (op->flags & PROA_OP_DATA_SHAPE) {
        proa__slot_set(slot, NULL);
        return PROA_OK;
    }
    if (!meta || meta->ndim < 0) {
        proa__slot_set(slot, proa_none);
        return PROA_OK;
    }
    for (int d = 0; d < meta->ndim; d++)
        if (meta->shape[d] < 0)
            return proa__op_fail(PROA_ERR_BAD_STATE, op, f->name,
                                 "has the shape %s although all inputs are known: dim %d cannot be found",
                                 proa__shape_text(meta->shape, meta->ndim), d);
    proa_status status;
    if (place_over_input(p, f, v, meta, slot, &status)) return status;
    return place_fresh(p, v, meta, slot);
}

proa_status proa__plan_outputs(planner *p, void *metas)
{
    const proa_op *op = p->instr->op;
    proa__meta_ref m = proa__meta_first(metas);
    for (const proa_field *f = &op->fields[op->n_in + op->n_attr]; f < op->fields + op->n_fields; f++) {
        const proa_metas metas_of = proa__metas_of(m, f);
        for (int64_t k = 0, n = proa__field_all(f, p->args).count; k < n; k++) {
            const proa_meta *meta = k < metas_of.count ? &metas_of.at[k] : NULL;
            PROA_TRY(place(p, f, k, meta, nth_slot(f, p->args, k)));
        }
        m = proa__meta_next(m, f);
    }
    return PROA_OK;
}
