/* Blocked layouts in plans: decides at plan time which outputs are stored blocked, and runs elementwise ops
 * over blocked memory without conversion. The counterpart of core/blocked.h and core/flat.c, which decide
 * call by call. May use core and ops. */
#include "planner.h"

#include "core/blocked.h"
#include "core/run.h"
#include "core/args_visit.h"

/* ---- ops that take blocked operands ------------------------------------------------------ */

/* Optimizers may change the layout of a convolution's parameter while they run; ops that read it later in the
 * run were planned for the old layout. */
static proa_status look_moved(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    proa__planner *p = context;
    (void)index;
    const proa_var *v = proa__slot_var(*slot);
    if (f->flags & PROA_FIELD_MUTATED && v && v->persistable && v->handle->ndim > 2 &&
        p->facts->touched_later[v->index])
        p->flag = true;
    return PROA_OK;
}

bool proa__plan_takes_blocked(const proa__planner *p)
{
    const proa_op *op = p->instr->op;
    if (!proa__takes_blocked(op)) return false;
    proa__planner look = {.facts = p->facts};
    if (op->flags & PROA_OP_MUTATES) proa__args_visit(op, p->instr->args, PROA_OUT, look_moved, &look);
    return !look.flag;
}

static proa_status look_blocked(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    proa__planner *p = context;
    (void)f, (void)index;
    if (!proa__slot_empty(*slot) && (*slot)->flags & PROA_T_BLOCKED && proa__format(*slot)) p->flag = true;
    return PROA_OK;
}

bool proa__plan_reads_blocked(proa__planner *p)
{
    p->flag = false;
    return proa__args_visit(p->instr->op, p->args, PROA_IN, look_blocked, p) == PROA_OK && p->flag;
}

proa_status proa__plan_block(proa__planner *p, int format, bool *done)
{
    const proa_op *op = p->instr->op;
    const proa_field *f = &op->fields[op->n_in + op->n_attr];
    *done = false;
    if (!format || proa__makes_list(f) || f->flags & PROA_FIELD_MUTATED) return PROA_OK;
    const proa_var *v = proa__slot_var(*proa_field_tensor(f, p->instr->args));
    if (!v || v->persistable) return PROA_OK;
    const proa__value *value = &p->s->values[v->index];
    proa_tensor *t = value->handle;
    bool placed = value->buffer->place == PROA__IN_ARENA || value->buffer->place == PROA__IN_OUTPUT;
    if (t != *proa_field_tensor(f, p->args) || value->buffer->first != p->at || !placed) return PROA_OK;
    proa_storage *window = proa__window_new(t, format);
    if (!window) return proa_error();
    proa__point(t, window, NULL);
    proa__storage_release(window);
    t->flags |= PROA_T_BLOCKED;
    value->buffer->format = format;
    value->buffer->bytes = (int64_t)proa__format_bytes(t, format);
    *done = true;
    return PROA_OK;
}

/* ---- elementwise ops over blocked memory --------------------------------------------------- */

typedef struct flat {
    proa__planner *p;
    proa_tensor **stored; /* the slots of the program's own args, in the same order */
    int64_t at;
    const proa_tensor *like; /* the first operand that is stored blocked */
    int format;
    int64_t n; /* elements, padding included */
    bool fits;
} flat;

static int64_t bytes_of(const flat *c, unsigned dtype)
{
    return c->n * (int64_t)proa_dtype_size((proa_dtype)dtype);
}

/* True if tensors of this dtype and the call's shape can have the call's format. */
static bool has_format(const flat *c, unsigned dtype)
{
    proa_tensor like = proa__shallow_copy(c->like);
    like.dtype = (uint8_t)dtype;
    return proa__format_bytes(&like, c->format) > 0;
}

static bool same_shape(const proa_tensor *a, const proa_tensor *b)
{
    return a->ndim == b->ndim && !memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape);
}

static bool is_number(const flat *c, const proa_tensor *t)
{
    return t->numel == 1 && c->like->numel != 1 && t->ndim <= c->like->ndim;
}

static proa_status find_like(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    flat *c = context;
    const proa_tensor *t = *slot;
    (void)f, (void)index;
    if (c->like || proa__slot_empty(t) || !proa__format(t)) return PROA_OK;
    c->like = t;
    c->format = proa__format(t);
    return PROA_OK;
}

static proa_status look_operand(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    flat *c = context;
    const proa_tensor *t = *slot;
    (void)f, (void)index;
    c->at++;
    if (proa__slot_empty(t)) return PROA_OK;
    bool alike = same_shape(t, c->like) && has_format(c, t->dtype);
    if (!is_number(c, t) && !alike) c->fits = false;
    if (t->flags & PROA_T_STRIDED || (is_number(c, t) && t->flags & PROA_T_BLOCKED)) c->fits = false;
    return PROA_OK;
}

static proa_status keep_slot(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    flat *c = context;
    (void)f, (void)index;
    c->stored[c->at++] = *slot;
    return PROA_OK;
}

/* A vector of n elements of a dtype, from `offset` bytes of a buffer on. */
static proa_tensor *row_of(const flat *c, unsigned dtype, int64_t n, proa__buffer *b, int64_t offset)
{
    proa_meta meta = {.dtype = (proa_dtype)dtype, .ndim = 1, .shape = {n}};
    return proa__plan_handle(c->p, &meta, 0, b, offset);
}

/* A persistable's elements as a vector. A guard checks its memory; the handle does not retain it, so that
 * optimizers may replace it. */
static proa_tensor *fixed_row(const flat *c, const proa_tensor *t, int64_t n, char *data)
{
    proa_tensor *row = row_of(c, t->dtype, n, &proa__fixed_place, 0);
    if (row) row->data = data;
    return row;
}

/* The buffer of an operand that each run converts to the call's format. */
static proa__buffer *converted(const flat *c, proa_tensor *from)
{
    proa_meta meta = proa_meta_of(from);
    proa__buffer *b = proa__plan_buffer(c->p, PROA__IN_ARENA, 0, bytes_of(c, from->dtype), c->p->at);
    if (!b) return NULL;
    b->format = c->format;
    proa_tensor *to = proa__plan_handle(c->p, &meta, c->format, b, 0);
    return to && proa__plan_step(c->p, (proa__step){.to = to, .from = from}) == PROA_OK ? b : NULL;
}

static proa_status flatten(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    flat *c = context;
    (void)f, (void)index;
    const proa_var *v = proa__slot_var(c->stored[c->at++]);
    proa_tensor *t = *slot, *row = NULL;
    if (proa__slot_empty(t)) return PROA_OK;
    const proa__value *value = v ? proa__plan_value(c->p, v) : NULL;
    bool fixed = !value || value->buffer == &proa__fixed_place;
    if (is_number(c, t)) {
        row = fixed ? fixed_row(c, t, 1, t->data) : row_of(c, t->dtype, 1, value->buffer, value->offset);
    } else if (proa__format(t) == c->format) {
        row = fixed ? fixed_row(c, t, c->n, proa__blocked_data(t))
                    : row_of(c, t->dtype, c->n, value->buffer, 0);
    } else {
        proa__buffer *b = converted(c, t);
        row = b ? row_of(c, t->dtype, c->n, b, 0) : NULL;
    }
    if (!row) return proa_error();
    proa__slot_set(slot, row);
    return PROA_OK;
}

/* The op's input over which output f may be written: dead afterwards, and stored in the call's format. */
static const proa__value *dying_input(const flat *c, const proa_field *f, const proa_meta *meta)
{
    const proa_op *op = c->p->instr->op;
    if (!proa__may_lie_over(f)) return NULL;
    const proa_var *in = proa__slot_var(*proa_field_tensor(&op->fields[f->alias], c->p->instr->args));
    const proa__value *from = in ? &c->p->s->values[in->index] : NULL;
    bool suits = from && from->handle && same_shape(from->handle, c->like) && !from->buffer->pinned &&
                 from->buffer->bytes == bytes_of(c, meta->dtype) && proa__plan_is_free(c->p, from);
    return suits && from->buffer->format == c->format ? from : NULL;
}

static proa_status place_flat(flat *c, const proa_field *f, const proa_meta *meta, const proa_var *v,
                              proa_tensor **slot)
{
    proa__planner *p = c->p;
    const proa__value *over = dying_input(c, f, meta);
    int32_t last = p->facts->last_use[v->index] > p->at ? p->facts->last_use[v->index] : p->at;
    int64_t bytes = bytes_of(c, meta->dtype);
    proa__buffer *b = over ? over->buffer : proa__plan_buffer(p, PROA__IN_ARENA, 0, bytes, last);
    if (!b) return proa_error();
    b->format = c->format;
    b->last = last;
    b->overwritten = over != NULL;
    proa__plan_hand_out(p, b, v, meta);
    proa_tensor *t = proa__plan_handle(p, meta, c->format, b, 0);
    proa_tensor *row = row_of(c, meta->dtype, c->n, b, 0);
    if (!t || !row) return proa_error();
    p->s->values[v->index] = (proa__value){.handle = t, .buffer = b, .until = INT32_MAX};
    proa__slot_set(slot, row);
    return PROA_OK;
}

/* Calls `fn` for every output; slot: where the output's tensor is to be stored, NULL once a step owns the
 * args. */
static proa_status each_output(flat *c, void *metas,
                               proa_status (*fn)(flat *c, const proa_field *f, const proa_meta *meta,
                                                 const proa_var *v, proa_tensor **slot))
{
    const proa_op *op = c->p->instr->op;
    void *stored = c->p->instr->args, *args = c->p->args;
    proa__meta_ref m = proa__meta_first(metas);
    for (const proa_field *f = &op->fields[op->n_in + op->n_attr]; f < op->fields + op->n_fields; f++) {
        const proa_tensors from = proa__field_all(f, stored);
        const proa_metas metas_of = proa__metas_of(m, f);
        for (int64_t k = 0; k < from.count; k++) {
            proa_tensor **to = args ? &proa__field_all(f, args).at[k] : NULL;
            const proa_meta *meta = k < metas_of.count ? &metas_of.at[k] : NULL;
            PROA_TRY(fn(c, f, meta, proa__slot_var(from.at[k]), to));
        }
        m = proa__meta_next(m, f);
    }
    return PROA_OK;
}

static proa_status look_output(flat *c, const proa_field *f, const proa_meta *meta, const proa_var *v,
                               proa_tensor **slot)
{
    (void)f, (void)slot;
    bool fits = meta && v && !v->persistable && meta->ndim == c->like->ndim && has_format(c, meta->dtype) &&
                !memcmp(meta->shape, c->like->shape, (size_t)meta->ndim * sizeof *meta->shape);
    if (!fits) c->fits = false;
    return PROA_OK;
}

static proa_status zero_padding(flat *c, const proa_field *f, const proa_meta *meta, const proa_var *v,
                                proa_tensor **slot)
{
    (void)f, (void)meta, (void)slot;
    return proa__plan_step(c->p, (proa__step){.to = c->p->s->values[v->index].handle});
}

proa_status proa__plan_flat(proa__planner *p, void *metas, bool *done)
{
    const proa_op *op = p->instr->op;
    flat c = {.p = p, .fits = true};
    *done = false;
    bool kind =
        strcmp(op->name, "fused_elementwise") == 0 || (op->flags & PROA_OP_ELEMENTWISE && op->n_out == 1);
    if (!kind || op->flags & PROA_OP_MUTATES || proa__flag_int(PROA_FLAG_device_fallback)) return PROA_OK;
    PROA_TRY(proa__args_visit(op, p->args, PROA_IN, find_like, &c));
    if (!c.like) return PROA_OK;
    PROA_TRY(proa__args_visit(op, p->args, PROA_IN, look_operand, &c));
    PROA_TRY(each_output(&c, metas, look_output));
    bool padded = c.like->storage->padded;
    if (!c.fits || (padded && !proa__channel_block(c.like))) return PROA_OK;
    c.n = (int64_t)(proa__format_bytes(c.like, c.format) / proa_dtype_size((proa_dtype)c.like->dtype));
    c.stored = proa_scope_alloc(((size_t)c.at + 1) * sizeof(proa_tensor *));
    if (!c.stored) return proa_error();
    c.at = 0;
    PROA_TRY(proa__args_visit(op, p->instr->args, PROA_IN, keep_slot, &c));
    c.at = 0;
    PROA_TRY(proa__args_visit(op, p->args, PROA_IN, flatten, &c));
    PROA_TRY(each_output(&c, metas, place_flat));
    PROA_TRY(proa__plan_kernel(p));
    *done = true;
    return padded ? each_output(&c, metas, zero_padding) : PROA_OK;
}
