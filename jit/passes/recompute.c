/* Recomputes a dropout result in the backward instead of saving it, from the saved mask and dropout's input
 * (or the input of the gelu before it). On the CPU gelu_dropout_grad recomputes gelu and dropout while it
 * computes both gradients, and gelu followed by dropout becomes gelu_dropout in the forward; on a device gelu
 * and dropout are recomputed by ops of their own. May use core and ops. */
#include "edit.h"

#include "core/internal.h"
#include "impl/dropout.h"
#include "impl/elementwise.h"

/* By variable: the forward op that makes it, whether the backward reads it, and what the backward reads
 * instead. */
typedef struct seen {
    const proa_op *op;
    const void *args;
    bool wanted;
    const proa_var *again; /* the recomputed variable; NULL: not recomputed (yet) */
    int32_t slope;         /* first op of the backward that is gelu's gradient at it; 0: none */
} seen;

typedef struct recomputing {
    proa__uses uses;
    proa_block *b;
    proa_instr *ops; /* of the block before the pass */
    int32_t n_ops, at;
    seen *of;
    int32_t n_vars;
    bool on_device;
} recomputing;

static bool is_backward(const proa_instr *instr) { return instr->role & 1; }

static seen *seen_of(const recomputing *r, const proa_tensor *t)
{
    const proa_var *v = proa__slot_var(t);
    bool own = v && v->index < r->n_vars && r->b->vars[v->index] == v;
    return own ? &r->of[v->index] : NULL;
}

static proa_status note_read(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    seen *s = seen_of(context, *slot);
    (void)f, (void)index;
    if (s) s->wanted = true;
    return PROA_OK;
}

static proa_status note_backward(recomputing *r, const proa_instr *instr)
{
    PROA_TRY(proa__args_visit_reads(instr->op, instr->args, note_read, r));
    if (!proa__is_op(instr, "gelu_grad")) return PROA_OK;
    seen *s = seen_of(r, ((const proa_gelu_grad_args *)instr->args)->x);
    if (s && !s->slope) s->slope = r->at;
    return PROA_OK;
}

static proa_status note_made(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    recomputing *r = context;
    seen *s = seen_of(r, *slot);
    (void)f, (void)index;
    if (s) s->op = r->ops[r->at].op, s->args = r->ops[r->at].args;
    return PROA_OK;
}

static proa_status look(recomputing *r)
{
    for (r->at = 0; r->at < r->n_ops; r->at++) {
        const proa_instr *instr = &r->ops[r->at];
        if (is_backward(instr)) PROA_TRY(note_backward(r, instr));
        else PROA_TRY(proa__args_visit(instr->op, instr->args, PROA_OUT, note_made, r));
    }
    return PROA_OK;
}

/* The args of the forward op of that name that makes t, if t need not be kept; NULL otherwise. */
static const void *made_by(const recomputing *r, const proa_tensor *t, const char *op)
{
    const seen *s = seen_of(r, t);
    if (!s || !s->op || strcmp(s->op->name, op) != 0) return NULL;
    const proa__use *use = proa__use_of(&r->uses, proa__slot_var(t));
    return use && !use->kept && !proa__slot_var(t)->persistable ? s->args : NULL;
}

/* True if the backward has t without recomputing it. */
static bool is_there(const recomputing *r, const proa_tensor *t)
{
    const seen *s = seen_of(r, t);
    return s && s->wanted && proa__is_value(&r->uses, proa__slot_var(t));
}

static proa_tensor *like(const recomputing *r, const proa_tensor *t)
{
    const proa_meta meta = proa_meta_of(t);
    proa_var *v = proa__var_new(r->b, NULL, &meta);
    return v ? v->handle : NULL;
}

/* The op of that name that makes t; −1: none. */
static int32_t maker_of(const recomputing *r, const proa_tensor *t, const char *op)
{
    const proa__use *use = proa__use_of(&r->uses, proa__slot_var(t));
    if (!use || use->maker == PROA__NOBODY || proa__slot_var(t)->persistable) return PROA__NOBODY;
    return proa__is_op(&r->ops[use->maker], op) ? use->maker : PROA__NOBODY;
}

/* True if t has its value when op `at` runs. */
static bool is_made_before(const recomputing *r, const proa_tensor *t, int32_t at)
{
    const proa_var *v = proa__slot_var(t);
    const proa__use *use = proa__use_of(&r->uses, v);
    return use && !v->persistable && !use->overwritten && use->maker < at;
}

static bool is_plain(const proa_dropout_args *a, const proa_tensor *x)
{
    return a->axis.count == 0 && !a->axis.tensor && !a->axis.tensors &&
           (x->dtype == PROA_F32 || x->dtype == PROA_F64);
}

/* Emits gelu_dropout_grad, which gives out = dropout(gelu(x)) and the gradient of both; the two later ops
 * that computed the gradient are removed. */
static proa_status again_with_slope(recomputing *r, const proa_dropout_args *a, const proa_gelu_args *gelu)
{
    int32_t at = seen_of(r, gelu->x)->slope;
    const proa_gelu_grad_args *slope = at > r->at ? r->ops[at].args : NULL;
    int32_t from = slope ? maker_of(r, slope->d_out, "dropout_grad") : PROA__NOBODY;
    const proa_dropout_grad_args *drop = from > r->at ? r->ops[from].args : NULL;
    if (!drop || proa__only_reader(&r->uses, proa__slot_var(slope->d_out)) != at ||
        proa__slot_var(drop->mask) != proa__slot_var(a->mask) || drop->p != a->p || drop->mode != a->mode ||
        slope->approximate != gelu->approximate || proa__slot_var(slope->d_x)->persistable ||
        r->ops[at].role != r->ops[r->at].role || !is_made_before(r, drop->d_out, r->at))
        return PROA_OK;
    proa_tensor *out = like(r, a->out);
    if (!out) return proa_error();
    proa_gelu_dropout_grad_args both = {.x = gelu->x,
                                        .mask = a->mask,
                                        .d_out = drop->d_out,
                                        .approximate = gelu->approximate,
                                        .p = a->p,
                                        .mode = a->mode,
                                        .d_x = slope->d_x,
                                        .out = out};
    PROA_TRY(proa__emit(r->b, "gelu_dropout_grad", &both, &r->ops[r->at]));
    proa__instr_clear(&r->ops[from]);
    proa__instr_clear(&r->ops[at]);
    seen_of(r, a->out)->again = proa__slot_var(out);
    return PROA_OK;
}

/* Recomputes dropout from x by its gradient op, which multiplies by the same mask. */
static proa_status again_from(recomputing *r, const proa_dropout_args *a, proa_tensor *x)
{
    proa_tensor *out = like(r, a->out);
    if (!out) return proa_error();
    proa_dropout_grad_args again = {.mask = a->mask,
                                    .d_out = x,
                                    .p = a->p,
                                    .axis = a->axis,
                                    .training = true,
                                    .mode = a->mode,
                                    .d_x = out};
    seen_of(r, a->out)->again = proa__slot_var(out);
    return proa__emit(r->b, "dropout_grad", &again, &r->ops[r->at]);
}

static proa_status again_dropout(recomputing *r, proa_tensor *t)
{
    const proa_dropout_args *a = made_by(r, t, "dropout");
    if (!a || !a->training || proa__slot_var(a->out) != proa__slot_var(t) || !is_there(r, a->mask))
        return PROA_OK;
    const proa_gelu_args *gelu = is_there(r, a->x) ? NULL : made_by(r, a->x, "gelu");
    if (!is_there(r, a->x) && !(gelu && is_there(r, gelu->x))) return PROA_OK;
    if (!gelu) return again_from(r, a, a->x);
    if (!r->on_device) return is_plain(a, gelu->x) ? again_with_slope(r, a, gelu) : PROA_OK;
    proa_gelu_args once_more = *gelu;
    once_more.out = like(r, a->x);
    if (!once_more.out) return proa_error();
    PROA_TRY(proa__emit(r->b, "gelu", &once_more, &r->ops[r->at]));
    return again_from(r, a, once_more.out);
}

/* Recomputes a value before its first reader in the backward. */
static proa_status make_again(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    recomputing *r = context;
    seen *s = seen_of(r, *slot);
    (void)f, (void)index;
    if (!s) return PROA_OK;
    if (!s->again) PROA_TRY(again_dropout(r, *slot));
    if (s->again) proa__slot_set(slot, s->again->handle);
    return PROA_OK;
}

static proa_status rebuild(recomputing *r)
{
    for (r->at = 0; r->at < r->n_ops; r->at++) {
        proa_instr *instr = &r->ops[r->at];
        if (!instr->args) continue;
        if (is_backward(instr)) PROA_TRY(proa__args_visit_reads(instr->op, instr->args, make_again, r));
        PROA_TRY(proa__emit_old(r->b, instr));
    }
    return PROA_OK;
}

/* Fuses gelu → dropout in the forward where nobody else reads the value between. */
static proa_status join_forward(proa__uses *u, int32_t at, const proa__pass_context *context)
{
    proa_instr *instr = &u->block->ops[at];
    (void)context;
    if (!proa__is_op(instr, "dropout")) return PROA_OK;
    const proa_dropout_args *a = instr->args;
    const proa_var *x = proa__slot_var(a->x);
    const proa__use *use = proa__use_of(u, x);
    proa_instr *maker = use && use->maker != PROA__NOBODY ? &u->block->ops[use->maker] : NULL;
    if (!maker || !proa__is_op(maker, "gelu") || proa__only_reader(u, x) != at || !a->training ||
        !proa__slot_var(a->mask) || !is_plain(a, a->x) || maker->role != instr->role)
        return PROA_OK;
    const proa_gelu_args *gelu = maker->args;
    if (!proa__may_move(u, proa__slot_var(gelu->x), use->maker, at)) return PROA_OK;
    proa_gelu_dropout_args both = {.x = gelu->x,
                                   .approximate = gelu->approximate,
                                   .p = a->p,
                                   .mode = a->mode,
                                   .seed = a->seed,
                                   .fix_seed = a->fix_seed,
                                   .out = a->out,
                                   .mask = a->mask};
    PROA_TRY(proa__instr_become(instr, proa_find_op("gelu_dropout"), &both));
    proa__instr_clear(maker);
    return PROA_OK;
}

proa_status proa__pass_recompute(proa_block *b, const proa__pass_context *context)
{
    recomputing r = {
        .b = b, .n_vars = b->n_vars, .n_ops = b->n_ops, .ops = b->ops, .on_device = context->on_device};
    PROA_TRY(proa__uses_find(&r.uses, b));
    r.of = proa__calloc(((size_t)r.n_vars + 1) * sizeof *r.of);
    proa_status status = r.of ? PROA_OK : proa_error();
    if (status == PROA_OK) status = look(&r);
    proa__uses_apply(&r.uses);
    if (status == PROA_OK) {
        r.ops = proa__take_ops(b, &r.n_ops);
        status = rebuild(&r);
        proa__drop_ops(r.ops, r.at, r.n_ops);
    }
    proa__free(r.of);
    proa__uses_free(&r.uses);
    if (status != PROA_OK || context->on_device) return status;
    return proa__rewrite_ops(b, context, join_forward);
}
