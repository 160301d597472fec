/* Finds what a segment's steps may overlap with: collectives that run on their group's thread until a step
 * reads or writes their memory, and outputs that are complete before the last step. May use core and ops. */
#include "planner.h"

#include "core/args_visit.h"
#include "core/group.h"

typedef struct overlap {
    proa__planner *p;
    proa__segment *s;
    proa__hash_map bindings; /* handle → binding */
    int32_t at;              /* the current step */
    int32_t *fixed;          /* steps of asynchronous calls on persistables that no step has waited for */
    int32_t n_fixed;
} overlap;

bool proa__may_be_async(const proa_op *op)
{
    static const char *const names[] = {"all_reduce", "mp_all_reduce", "reduce_to", "broadcast"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(op->name, names[i]) == 0) return true;
    return false;
}

static bool may_be_async(const proa__step *step) { return step->op && proa__may_be_async(step->op); }

/* ---- calls ------------------------------------------------------------------------------- */

/* Lets the call of an earlier step be complete before step `until`. */
static void wait_at(overlap *o, int32_t call, int32_t until)
{
    proa__step *step = &o->s->steps[call];
    if (until <= call + 1) return; /* nothing runs beside it */
    step->until = until;
    if (until < o->s->n_steps) o->s->steps[until].waits = true;
    o->s->n_async++;
}

static void touch_buffer(overlap *o, proa__buffer *b)
{
    b->touched = o->at;
    if (b->call) wait_at(o, b->call - 1, o->at);
    b->call = 0;
}

/* Ends the calls on persistables whose memory t shows. */
static void touch_fixed(overlap *o, const proa_tensor *t)
{
    int32_t kept = 0;
    for (int32_t i = 0; i < o->n_fixed; i++) {
        const proa__step *call = &o->s->steps[o->fixed[i]];
        if (!t || t->storage == (*proa__out_slot(call->op, call->args, 0, NULL))->storage)
            wait_at(o, o->fixed[i], o->at);
        else o->fixed[kept++] = o->fixed[i];
    }
    o->n_fixed = kept;
}

static const proa__binding *binding_of(const overlap *o, const proa_tensor *t)
{
    return proa__hash_map_find(&o->bindings, t);
}

static void touch(overlap *o, const proa_tensor *t)
{
    if (proa__slot_empty(t)) return;
    const proa__binding *b = binding_of(o, t);
    if (b && b->buffer != &proa__fixed_place) touch_buffer(o, b->buffer);
    else touch_fixed(o, t);
}

static proa_status touch_slot(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    (void)f, (void)index;
    touch(context, *slot);
    return PROA_OK;
}

static proa_status touch_all(overlap *o, const proa__step *step)
{
    if (!step->op) {
        touch(o, step->to);
        touch(o, step->from);
        return PROA_OK;
    }
    if (proa__has_block(step->op)) touch_fixed(o, NULL); /* blocks may read persistables */
    PROA_TRY(proa__args_visit_reads(step->op, step->args, touch_slot, o));
    return proa__args_visit(step->op, step->args, PROA_OUT, touch_slot, o);
}

/* Notes the memory of the call of the current step. */
static void begin_call(overlap *o, const proa__step *step)
{
    const proa_tensor *out = *proa__out_slot(step->op, step->args, 0, NULL);
    if (proa__slot_empty(out) || out->flags & (PROA_T_STRIDED | PROA_T_BLOCKED)) return;
    const proa__binding *b = binding_of(o, out);
    if (!b && out->storage) o->fixed[o->n_fixed++] = o->at;
    else if (b && b->buffer != &proa__fixed_place && !b->offset) b->buffer->call = o->at + 1;
}

/* Calls whose result no step reads: they are complete before the next collective, so that their memory is
 * used again soon, or at the end of the segment. */
static void end_unread(overlap *o)
{
    proa__segment *s = o->s;
    int32_t next = s->n_steps;
    for (int32_t i = 0; i < o->n_fixed; i++) wait_at(o, o->fixed[i], s->n_steps);
    for (int32_t i = s->n_steps - 1; i >= 0; i--) {
        const proa__step *step = &s->steps[i];
        if (!step->op || !proa__op_communicates(step->op)) continue;
        const proa__binding *b =
            may_be_async(step) ? binding_of(o, *proa__out_slot(step->op, step->args, 0, NULL)) : NULL;
        if (b && b->buffer->call == i + 1) {
            wait_at(o, i, next);
            int32_t last = next < s->n_steps ? s->steps[next].at : INT32_MAX;
            b->buffer->last = proa__max64(b->buffer->last, last);
            b->buffer->call = 0;
            b->buffer->touched = INT32_MAX; /* not complete before the end */
        }
        next = i;
    }
}

/* ---- outputs ----------------------------------------------------------------------------- */

/* The buffer of output i, if it is complete before the last step: the tensor that is handed out, or a part of
 * the arena that is copied there. */
static const proa__buffer *early_buffer(const overlap *o, int32_t i)
{
    const proa__liveness *facts = o->p->facts;
    const proa_var *v = facts->block->outputs[i];
    const proa__buffer *b = v->persistable ? NULL : o->s->values[v->index].buffer;
    bool there =
        b && ((b->place == PROA__IN_OUTPUT && b->index == i) || (b->place == PROA__IN_ARENA && !b->pinned));
    return there && b->touched < o->s->n_steps - 1 ? b : NULL;
}

/* Marks the buffers that several outputs use: they are complete at the end only. */
static void mark_shared(const overlap *o)
{
    const proa__liveness *facts = o->p->facts;
    for (int32_t i = 0; i < facts->block->n_outputs; i++) {
        const proa_var *v = facts->block->outputs[i];
        proa__buffer *b = o->s->values[v->index].buffer;
        if (b && b->place == PROA__IN_OUTPUT && (b->index != i || i >= facts->n_handed))
            b->touched = INT32_MAX;
    }
}

static void insert(proa__segment *s, proa__early_output made)
{
    int32_t i = s->n_early++;
    for (; i > 0 && s->early[i - 1].step > made.step; i--) s->early[i] = s->early[i - 1];
    s->early[i] = made;
}

static proa_status find_early(const overlap *o)
{
    proa__segment *s = o->s;
    int32_t n = o->p->facts->n_handed;
    int32_t *first = proa_scope_alloc(((size_t)n + 1) * sizeof *first); /* bindings of each output */
    s->early = proa__alloc(((size_t)n + 1) * sizeof *s->early);
    if (!first || !s->early) return proa_error();
    for (int32_t i = 0; i < n; i++) first[i] = -1;
    for (int32_t i = 0; i < s->n_bindings; i++) {
        const proa__buffer *b = s->bindings[i].buffer;
        if (b->place != PROA__IN_OUTPUT || b->index >= n) continue;
        s->bindings[i].next = first[b->index];
        first[b->index] = i;
    }
    mark_shared(o);
    for (int32_t i = 0; i < n; i++) {
        const proa__buffer *b = early_buffer(o, i);
        bool copied = b && b->place == PROA__IN_ARENA;
        if (b) insert(s, (proa__early_output){b->touched, i, copied ? -1 : first[i]});
    }
    return PROA_OK;
}

/* ---- the segment ------------------------------------------------------------------------- */

static proa_status find_calls(overlap *o)
{
    proa__segment *s = o->s;
    o->fixed = proa_scope_alloc(((size_t)s->n_steps + 1) * sizeof *o->fixed);
    if (!o->fixed) return proa_error();
    for (int32_t i = 0; i < s->n_bindings; i++)
        PROA_TRY(proa__hash_map_put(&o->bindings, s->bindings[i].handle, &s->bindings[i]));
    for (o->at = 0; o->at < s->n_steps; o->at++) {
        const proa__step *step = &s->steps[o->at];
        PROA_TRY(touch_all(o, step));
        if (may_be_async(step)) begin_call(o, step);
    }
    end_unread(o);
    return PROA_OK;
}

proa_status proa__plan_overlap(proa__planner *p)
{
    overlap o = {.p = p, .s = p->s};
    bool announces = p->facts->announces && !p->s->parent && !proa__segment_is_cut(p->s, p->facts);
    bool any = announces;
    for (int32_t i = 0; i < p->s->n_steps && !any; i++) any = may_be_async(&p->s->steps[i]);
    if (!any) return PROA_OK;
    proa_status status = find_calls(&o);
    if (status == PROA_OK && announces) status = find_early(&o);
    proa__hash_map_clear(&o.bindings);
    return status;
}
