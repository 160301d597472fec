/* Plans a segment op by op: infers shapes from concrete dims, assigns buffers and views to outputs, and
 * selects kernels; see plan.h. May use core and ops. */
#include "planner.h"

#include "core/deferred.h"
#include "core/device.h"
#include "core/kernel_traits.h"
#include "core/run.h"
#include "core/args_visit.h"

typedef proa__planner planner;

proa__buffer proa__fixed_place = {.place = PROA__IN_FIXED, .last = INT32_MAX};

/* ---- parts of a segment ---------------------------------------------------------------- */

proa__buffer *proa__plan_buffer(planner *p, proa__assign_buffers place, int32_t index, int64_t bytes,
                                int32_t last)
{
    proa__segment *s = p->s;
    if (proa__reserve(&s->buffers, s->n_buffers, &s->buffers_capacity, sizeof *s->buffers) != PROA_OK)
        return NULL;
    proa__buffer *b = proa__calloc(sizeof *b);
    if (!b) return NULL;
    *b = (proa__buffer){
        .place = place, .index = index, .depth = s->depth, .first = p->at, .last = last, .bytes = bytes};
    return s->buffers[s->n_buffers++] = b;
}

proa_status proa__plan_bind(planner *p, proa_tensor *handle, proa__buffer *buffer, int64_t offset)
{
    proa__segment *s = p->s;
    PROA_TRY(proa__reserve(&s->bindings, s->n_bindings, &s->bindings_capacity, sizeof *s->bindings));
    s->bindings[s->n_bindings++] = (proa__binding){proa_keep(handle), buffer, offset, -1};
    return PROA_OK;
}

proa_tensor *proa__plan_handle(planner *p, const proa_meta *meta, int format, proa__buffer *buffer,
                               int64_t offset)
{
    proa_tensor *t = proa__tensor_bare(meta, 0);
    if (t && format) {
        proa_storage *window = proa__window_new(t, format);
        if (!window) return NULL;
        proa__point(t, window, NULL);
        proa__storage_release(window);
        t->flags |= PROA_T_BLOCKED;
    }
    return t && proa__plan_bind(p, t, buffer, offset) == PROA_OK ? t : NULL;
}

proa_status proa__plan_step(planner *p, proa__step step)
{
    proa__segment *s = p->s;
    PROA_TRY(proa__reserve(&s->steps, s->n_steps, &s->steps_capacity, sizeof *s->steps));
    step.at = p->at;
    s->steps[s->n_steps++] = step;
    return PROA_OK;
}

static proa__guard *find_guard(const proa__segment *s, const proa_tensor *t)
{
    for (int32_t i = 0; i < s->n_guards; i++)
        if (s->guards[i].tensor == t) return &s->guards[i];
    return NULL;
}

static proa_status add_guard(planner *p, proa_tensor *t, bool same_data)
{
    proa__segment *s = p->s;
    PROA_TRY(proa__reserve(&s->guards, s->n_guards, &s->guards_capacity, sizeof *s->guards));
    bool unread = proa__is_unread(t);
    s->guards[s->n_guards++] = (proa__guard){.tensor = proa_keep(t),
                                             .data = unread ? NULL : proa__memory(t),
                                             .packed = unread ? t->storage : NULL,
                                             .version = proa__version(t),
                                             .format = proa__format(t),
                                             .same_data = same_data};
    return PROA_OK;
}

/* Reads the elements of a persistable for steps that take them as they are. */
static proa_status read_elements(planner *p, const proa_tensor *t)
{
    if (proa__format(t) || !(t->flags & PROA_T_BLOCKED)) return PROA_OK;
    PROA_TRY(proa__plain(t));
    for (proa__segment *s = p->s; s; s = s->parent) {
        proa__guard *g = find_guard(s, t);
        if (g && g->packed) g->packed = NULL, g->data = t->data;
    }
    return PROA_OK;
}

proa_status proa__plan_guard(planner *p, proa_tensor *t, bool same_data)
{
    PROA_TRY(read_elements(p, t));
    proa__guard *known = find_guard(p->s, t);
    if (!known) return add_guard(p, t, same_data);
    known->same_data |= same_data;
    return PROA_OK;
}

/* ---- reads ----------------------------------------------------------------------------- */

proa__value *proa__plan_value(planner *p, const proa_var *v)
{
    proa__value *value = proa__plan_packed_value(p, v);
    bool own = v->persistable && value->handle && value->handle == v->value;
    if (own && read_elements(p, v->value) != PROA_OK) value->handle = NULL;
    return value;
}

proa__value *proa__plan_packed_value(planner *p, const proa_var *v)
{
    proa__value *value = &p->s->values[v->index];
    if (value->handle || !v->persistable) return value;
    if (!v->value) {
        proa_fail(PROA_ERR_BAD_STATE,
                  "program: the persistable variable %s has no data; load its parameters, "
                  "or run the program that makes them",
                  v->name);
        return value;
    }
    if (proa__device_id(v->value) != proa__stream()->device) {
        proa_fail(
            PROA_ERR_INVALID_ARGUMENT,
            "program: the persistable variable %s is on %s, the run's inputs are on %s; move the program "
            "(proa_program_to_device) or the inputs (proa_to_device)",
            v->name, proa_device_of(v->value), proa_get_device());
        return value;
    }
    if (!find_guard(p->s, v->value) && add_guard(p, v->value, false) != PROA_OK) return value;
    *value = (proa__value){.handle = v->value, .buffer = &proa__fixed_place, .until = INT32_MAX};
    value->known = p->facts->first_write[v->index] == INT32_MAX;
    return value;
}

static proa_status map_read(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    planner *p = context;
    (void)index;
    const proa_var *v = proa__slot_var(*slot);
    if (!v) return PROA_OK;
    bool packs = f->role == PROA_IN && proa__has_field(p->packs, p->instr->op, f);
    const proa__value *value = packs ? proa__plan_packed_value(p, v) : proa__plan_value(p, v);
    if (!value->handle)
        return proa_error() != PROA_OK
                   ? proa_error()
                   : proa__op_fail(PROA_ERR_BAD_STATE, p->instr->op, f->name,
                                   "(%s) is neither fed nor made by an op before", v->name);
    if (f->role == PROA_ATTR && v->persistable) PROA_TRY(proa__plan_guard(p, v->value, true));
    proa__slot_set(slot, value->handle);
    return PROA_OK;
}

proa_tensor *proa__plan_dense(planner *p, proa__value *value)
{
    if (value->dense && !value->dense_buffer->overwritten) {
        value->dense_buffer->last = proa__max64(value->dense_buffer->last, p->at);
        return value->dense;
    }
    proa_meta meta = proa_meta_of(value->handle);
    proa__buffer *b = proa__plan_buffer(p, PROA__IN_ARENA, 0, proa__plan_bytes(value->handle), p->at);
    proa_tensor *t = b ? proa__plan_handle(p, &meta, 0, b, 0) : NULL;
    if (!t || proa__plan_step(p, (proa__step){.to = t, .from = value->handle}) != PROA_OK) return NULL;
    value->dense_buffer = b;
    return value->dense = t;
}

typedef struct densing {
    planner *p;
    proa_tensor **stored; /* the slots of the program's own args, in the same order */
    int64_t at;
} densing;

static proa_status make_dense(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    densing *d = context;
    planner *p = d->p;
    (void)f, (void)index;
    const proa_var *v = proa__slot_var(d->stored[d->at++]);
    bool wrong = v && ((*slot)->flags & PROA_T_STRIDED && !(p->instr->op->flags & PROA_OP_STRIDED));
    if (v && (*slot)->flags & PROA_T_BLOCKED && proa__format(*slot) && !p->takes_blocked) wrong = true;
    if (!wrong) return PROA_OK;
    proa__value *value = proa__plan_value(p, v);
    if (*slot != value->handle) return PROA_OK;
    proa_tensor *t = proa__plan_dense(p, value);
    if (!t) return proa_error();
    proa__slot_set(slot, t);
    return PROA_OK;
}

static proa_status gather(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    densing *d = context;
    (void)f, (void)index;
    if (d->stored) d->stored[d->at] = *slot;
    d->at++;
    return PROA_OK;
}

static proa_status make_all_dense(planner *p)
{
    const proa_op *op = p->instr->op;
    densing d = {.p = p};
    PROA_TRY(proa__args_visit(op, p->instr->args, PROA_IN, gather, &d));
    d.stored = proa_scope_alloc(((size_t)d.at + 1) * sizeof(proa_tensor *));
    if (!d.stored) return proa_error();
    d.at = 0;
    PROA_TRY(proa__args_visit(op, p->instr->args, PROA_IN, gather, &d));
    d.at = 0;
    return proa__args_visit(op, p->args, PROA_IN, make_dense, &d);
}

/* ---- one op ---------------------------------------------------------------------------- */

/* Infers the op's outputs. Inference reads attributes; those that device tensors supply are read from host
 * copies. */
static proa_status infer(planner *p, void *metas)
{
    proa_call call = {p->instr->op, p->args, 0};
    char shadow[PROA_ARGS_MAX] __attribute__((aligned(16)));
    if (proa__stream()->device != PROA_CPU) {
        memcpy(shadow, p->args, call.op->args_size);
        PROA_TRY(proa__attributes_to_host(call.op, shadow));
        call.args = shadow;
    }
    return proa__infer_call(&call, metas);
}

static proa_status plan_args(planner *p, bool *done)
{
    const proa_op *op = p->instr->op;
    char metas[PROA_METAS_MAX] __attribute__((aligned(16)));
    memset(metas, 0, sizeof metas);
    bool learn = proa__plan_worth_knowing(p);
    PROA_TRY(proa_error());
    PROA_TRY(proa__args_visit_reads(op, p->args, map_read, p));
    PROA_TRY(infer(p, metas));
    if (p->facts->differentiated) PROA_TRY(proa__check_dynamic_dims(p->s, p->instr, metas));
    *done = false;
    if (learn) PROA_TRY(proa__plan_know(p, metas, done));
    if (!*done && op->view) PROA_TRY(proa__plan_view(p, (const proa_meta *)(const void *)metas, done));
    if (!*done && !p->takes_blocked && proa__plan_reads_blocked(p)) PROA_TRY(proa__plan_flat(p, metas, done));
    if (*done) return PROA_OK;
    PROA_TRY(make_all_dense(p));
    return proa__plan_outputs(p, metas);
}

static void release_state(proa__step *step)
{
    if (step->kernel && step->kernel->release && step->state) step->kernel->release(step->state);
    step->kernel = NULL;
    step->state = NULL;
}

/* Selects the kernel. If it takes row-major operands only, blocked operands are converted for it. */
static proa_status pick(planner *p, proa__step *step)
{
    PROA_TRY(proa__pick_kernel(step->op, p->args, &step->kernel, &step->state));
    if (!p->takes_blocked || step->kernel->format) return PROA_OK;
    p->takes_blocked = false;
    if (!proa__plan_reads_blocked(p)) return PROA_OK;
    release_state(step);
    PROA_TRY(make_all_dense(p));
    return proa__pick_kernel(step->op, p->args, &step->kernel, &step->state);
}

typedef struct reading {
    planner *p;
    uint32_t packs;
} reading;

static proa_status read_input(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    const reading *r = context;
    (void)index;
    bool reads = !proa__slot_empty(*slot) && !proa__has_field(r->packs, r->p->instr->op, f);
    return reads ? read_elements(r->p, *slot) : PROA_OK;
}

/* Reads the constants that some kernel of the op packs, but not the one that was picked. */
static proa_status read_unpacked(planner *p, const proa_kernel *kernel)
{
    reading r = {p, proa__kernel_packs(kernel)};
    return p->packs ? proa__args_visit(p->instr->op, p->args, PROA_IN, read_input, &r) : PROA_OK;
}

proa_status proa__plan_kernel(planner *p)
{
    proa__step step = {.op = p->instr->op, .args = p->args};
    proa_status status = pick(p, &step);
    if (status == PROA_OK) status = read_unpacked(p, step.kernel);
    if (status == PROA_OK && p->takes_blocked)
        status = proa__plan_block(p, step.kernel->format(p->args, step.state), &step.fresh);
    if (status == PROA_OK) status = proa__plan_step(p, step);
    if (status == PROA_OK) p->args = NULL;
    else release_state(&step);
    return status;
}

static proa_status plan_op(planner *p)
{
    const proa_op *op = p->instr->op;
    if (op->args_size > PROA_ARGS_MAX || op->metas_size > PROA_METAS_MAX)
        return proa__op_fail(PROA_ERR_INTERNAL, op, NULL, "has too large an args struct");
    p->args = proa__args_copy(op, p->instr->args);
    if (!p->args) return proa_error();
    p->takes_blocked = proa__plan_takes_blocked(p);
    p->packs = proa__op_packs(op);
    bool done = false;
    proa_status status = plan_args(p, &done);
    if (status == PROA_OK && !done) status = proa__plan_kernel(p);
    proa__args_free(op, p->args);
    p->args = NULL;
    return status;
}

/* ---- a segment ------------------------------------------------------------------------- */

static proa_status look_unknown(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    planner *p = context;
    (void)f, (void)index;
    const proa_var *v = proa__slot_var(*slot);
    if (!v) return PROA_OK;
    const proa__value *value = proa__plan_value(p, v);
    PROA_TRY(proa_error());
    if (!value->known) p->flag = true;
    return PROA_OK;
}

/* True if an attribute of the op is supplied by a tensor that is computed in the run. */
static bool needs_values(planner *p)
{
    p->flag = false;
    return proa__args_visit(p->instr->op, p->instr->args, PROA_ATTR, look_unknown, p) == PROA_OK && p->flag;
}

static proa_status add_cut_var(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    planner *p = context;
    (void)f, (void)index;
    const proa_var *v = proa__slot_var(*slot);
    proa__segment *s = p->s;
    if (!v || s->values[v->index].known || !s->values[v->index].handle) return PROA_OK;
    for (int32_t i = 0; i < s->n_cut; i++)
        if (s->cut_vars[i] == v->index) return PROA_OK;
    PROA_TRY(proa__reserve(&s->cut_vars, s->n_cut, &s->cut_capacity, sizeof *s->cut_vars));
    s->cut_vars[s->n_cut++] = v->index;
    return PROA_OK;
}

static proa_status plan_ops(planner *p)
{
    const proa_block *b = p->facts->block;
    proa__segment *s = p->s;
    for (p->at = s->first_op; p->at < b->n_ops; p->at++) {
        p->instr = &b->ops[p->at];
        if (needs_values(p)) {
            /* behind an op that sized its outputs, whose sizes were not looked at yet: a segment without
             * ops */
            if (!s->parent || s->parent->sized_by_data || p->at > s->first_op) break;
            return proa__op_fail(PROA_ERR_BAD_STATE, p->instr->op, NULL,
                                 "needs the value of a tensor that is not there yet");
        }
        PROA_TRY(proa_error());
        PROA_TRY(plan_op(p));
        s->sized_by_data = p->instr->op->flags & PROA_OP_DATA_SHAPE;
        if (!s->sized_by_data) continue;
        p->at++;
        break;
    }
    s->end_op = p->at;
    for (int32_t i = s->end_op; i < b->n_ops; i++)
        PROA_TRY(proa__args_visit(b->ops[i].op, b->ops[i].args, PROA_ATTR, add_cut_var, p));
    return PROA_OK;
}

/* Gives an input that is inside the arena its fixed offset; its memory is free after its last use. */
static void pin(proa__buffer *b, int64_t offset, int64_t bytes, int32_t last)
{
    b->place = PROA__IN_ARENA;
    b->pinned = true;
    b->offset = offset;
    b->bytes = bytes;
    b->last = proa__max64(b->first, last);
}

/* Bytes from a tensor's first element to the end of its last; strides are not negative. */
static int64_t span_of(const proa_tensor *t)
{
    if (!(t->flags & PROA_T_STRIDED)) return proa__plan_bytes(t);
    int64_t last = 0;
    for (int d = 0; d < t->ndim; d++) last += (t->shape[d] - 1) * t->strides[d];
    return last + (int64_t)proa_dtype_size((proa_dtype)t->dtype);
}

static proa_status add_inputs(planner *p, const proa__inputs *inputs)
{
    for (int32_t i = 0; i < p->facts->block->n_inputs; i++) {
        const proa_var *v = p->facts->block->inputs[i];
        proa__buffer *b = proa__plan_buffer(p, PROA__IN_INPUT, i, 0, INT32_MAX);
        proa_tensor *t = b ? proa__plan_handle(p, &inputs->metas[i], inputs->formats[i], b, 0) : NULL;
        if (!t) return proa_error();
        b->format = inputs->formats[i];
        if (inputs->strided[i]) {
            memcpy(t->strides, inputs->strides[i], (size_t)t->ndim * sizeof *t->strides);
            t->flags |= PROA_T_STRIDED;
        }
        int64_t bytes = b->format ? (int64_t)proa__format_bytes(t, b->format) : span_of(t);
        if (inputs->inside && inputs->offsets[i] >= 0)
            pin(b, inputs->offsets[i], bytes, p->facts->last_use[v->index]);
        p->s->values[v->index] = (proa__value){.handle = t, .buffer = b, .until = INT32_MAX};
    }
    return inputs->inside ? proa__share_pinned(p->s->buffers, p->s->n_buffers) : PROA_OK;
}

/* Makes variables of the outputs of the op before the cut, with the shapes they have now, in the order of
 * slots. */
static proa_status add_dynamic(planner *p)
{
    const proa__segment *parent = p->s->parent;
    const proa__step *step = &parent->steps[parent->n_steps - 1];
    const proa_instr *instr = &p->facts->block->ops[parent->end_op - 1];
    const proa_op *op = step->op;
    proa_tensor **slot;
    for (int32_t index = 0; (slot = proa__out_slot(op, step->args, index, NULL)); index++) {
        const proa_var *v = proa__slot_var(*proa__out_slot(op, instr->args, index, NULL));
        proa_tensor *made = *slot;
        if (!v || v->persistable || proa__slot_empty(made)) continue;
        proa_meta meta = proa_meta_of(made);
        proa__buffer *b = proa__plan_buffer(p, PROA__IN_DYNAMIC, index, 0, INT32_MAX);
        proa_tensor *t = b ? proa__plan_handle(p, &meta, 0, b, 0) : NULL;
        if (!t) return proa_error();
        p->s->values[v->index] = (proa__value){.handle = t, .buffer = b, .until = INT32_MAX};
    }
    return PROA_OK;
}

static proa_status inherit(planner *p)
{
    const proa__segment *parent = p->s->parent;
    memcpy(p->s->values, parent->values, (size_t)p->facts->n_vars * sizeof *p->s->values);
    for (int32_t i = 0; i < p->facts->n_vars; i++)
        p->s->values[i].dense = NULL, p->s->values[i].dense_buffer = NULL;
    for (int32_t i = 0; i < parent->n_cut; i++) p->s->values[parent->cut_vars[i]].known = true;
    return parent->sized_by_data ? add_dynamic(p) : PROA_OK;
}

static proa_status check_outputs(planner *p)
{
    if (proa__segment_is_cut(p->s, p->facts)) return PROA_OK;
    for (int32_t i = 0; i < p->facts->block->n_outputs; i++) {
        const proa_var *v = p->facts->block->outputs[i];
        if (proa__plan_value(p, v)->handle) continue;
        PROA_TRY(proa_error());
        return proa_fail(PROA_ERR_BAD_STATE, "program: output %s is neither fed nor made by an op", v->name);
    }
    return PROA_OK;
}

static proa_status build(planner *p, const proa__inputs *inputs, const char *key, size_t key_bytes)
{
    proa__segment *s = p->s;
    s->values = proa__calloc(((size_t)p->facts->n_vars + 1) * sizeof *s->values);
    s->key = proa__alloc(key_bytes + 1);
    if (!s->values || !s->key) return proa_error();
    memcpy(s->key, key, key_bytes);
    s->key_bytes = key_bytes;
    p->at = s->first_op;
    PROA_TRY(s->parent ? inherit(p) : add_inputs(p, inputs));
    PROA_TRY(plan_ops(p));
    PROA_TRY(check_outputs(p));
    PROA_TRY(proa__plan_overlap(p));
    return proa__plan_memory(s->buffers, s->n_buffers, &s->arena_bytes);
}

static proa__segment *try_segment(const proa__liveness *facts, proa__segment *parent,
                                  const proa__inputs *inputs, const char *key, size_t key_bytes, bool *again)
{
    proa__segment *s = proa__calloc(sizeof *s);
    if (!s) return NULL;
    s->parent = parent;
    s->depth = parent ? parent->depth + 1 : 0;
    s->first_op = parent ? parent->end_op : 0;
    planner p = {.facts = facts, .s = s};
    proa_status status = PROA_OK;
    PROA_SCOPE {
        status = build(&p, inputs, key, key_bytes);
    }
    *again = p.unblocked;
    if (status == PROA_OK) return s;
    proa__segment_free(s);
    return NULL;
}

static void free_one(proa__segment *s)
{
    proa__recordings_free(&s->recordings);
    for (int32_t i = 0; i < s->n_steps; i++) {
        proa__step *step = &s->steps[i];
        release_state(step);
        if (step->op) proa__args_free(step->op, step->args);
    }
    for (int32_t i = 0; i < s->n_bindings; i++) proa_release(s->bindings[i].handle);
    for (int32_t i = 0; i < s->n_guards; i++) proa_release(s->guards[i].tensor);
    for (int32_t i = 0; i < s->n_buffers; i++) proa__free(s->buffers[i]);
    proa__free(s->buffers);
    proa__free(s->bindings);
    proa__free(s->guards);
    proa__free(s->steps);
    proa__free(s->early);
    proa__free(s->written);
    proa__free(s->values);
    proa__free(s->cut_vars);
    proa__free(s->key);
    proa__free(s);
}

/* Depth first without recursion: programs may be cut many thousand times. */
void proa__segment_free(proa__segment *top)
{
    for (proa__segment *s = top; s;) {
        if (s->n_next) {
            s = s->next[--s->n_next];
            continue;
        }
        proa__segment *up = s == top ? NULL : s->parent;
        free_one(s);
        s = up;
    }
}

/* Plans a segment, and once more if a persistable was made row-major meanwhile. */
proa__segment *proa__segment_new(const proa__liveness *facts, proa__segment *parent,
                                 const proa__inputs *inputs, const char *key, size_t key_bytes)
{
    bool again = false;
    proa__segment *s = try_segment(facts, parent, inputs, key, key_bytes, &again);
    while (s && again) {
        proa__segment_free(s);
        s = try_segment(facts, parent, inputs, key, key_bytes, &again);
    }
    return s;
}
