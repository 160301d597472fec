/* A result of dropout that the backward reads is not stored but computed there once more: its mask is stored
 * anyway, and so is what was dropped, or what that was an activation of. May use core and ops. */
#include "edit.h"

#include "core/internal.h"
#include "ops_impl.h"

/* By variable: the args of the forward's op that makes it, whether the backward reads it, and what is read
 * there. */
typedef struct seen {
    const proa_op *op;
    const void *args;
    bool wanted;
    const proa_var *again; /* computed once more; NULL: not (yet) */
} seen;

typedef struct recomputing {
    proa__uses uses;
    proa_block *b;
    proa_instr *ops; /* of the block as it was */
    int32_t n_ops, at;
    seen *of;
    int32_t n_vars;
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
        if (is_backward(instr)) PROA_TRY(proa__walk_reads(instr->op, instr->args, note_read, r));
        else PROA_TRY(proa__walk(instr->op, instr->args, PROA_OUT, note_made, r));
    }
    return PROA_OK;
}

/* The args of the forward's op that makes t, if it is of that name and t need not be kept; NULL otherwise. */
static const void *made_by(const recomputing *r, const proa_tensor *t, const char *op)
{
    const seen *s = seen_of(r, t);
    if (!s || !s->op || strcmp(s->op->name, op) != 0) return NULL;
    const proa__use *use = proa__use_of(&r->uses, proa__slot_var(t));
    return use && !use->kept && !proa__slot_var(t)->persistable ? s->args : NULL;
}

/* True if the backward has t anyway. */
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

/* What was dropped, or NULL: as it is, or computed from what it is an activation of. */
static proa_tensor *dropped(const recomputing *r, proa_tensor *x, const proa_instr *reader)
{
    if (is_there(r, x)) return x;
    const proa_gelu_args *gelu = made_by(r, x, "gelu");
    if (!gelu || !is_there(r, gelu->x)) return NULL;
    proa_gelu_args again = *gelu;
    again.out = like(r, x);
    return again.out && proa__emit(r->b, "gelu", &again, reader) == PROA_OK ? again.out : NULL;
}

/* A gradient of dropout is dropout with the same mask. */
static proa_status again_dropout(recomputing *r, proa_tensor *t, const proa_instr *reader)
{
    const proa_dropout_args *a = made_by(r, t, "dropout");
    if (!a || !a->training || proa__slot_var(a->out) != proa__slot_var(t) || !is_there(r, a->mask))
        return PROA_OK;
    proa_tensor *x = dropped(r, a->x, reader), *out = x ? like(r, t) : NULL;
    if (!out) return proa_error();
    proa_dropout_grad_args again = {.mask = a->mask,
                                    .d_out = x,
                                    .p = a->p,
                                    .axis = a->axis,
                                    .training = true,
                                    .mode = a->mode,
                                    .d_x = out};
    seen_of(r, t)->again = proa__slot_var(out);
    return proa__emit(r->b, "dropout_grad", &again, reader);
}

/* Before its first reader in the backward. */
static proa_status make_again(proa_tensor **slot, const proa_field *f, int64_t index, void *context)
{
    recomputing *r = context;
    seen *s = seen_of(r, *slot);
    (void)f, (void)index;
    if (!s) return PROA_OK;
    if (!s->again) PROA_TRY(again_dropout(r, *slot, &r->ops[r->at]));
    if (s->again) proa__slot_set(slot, s->again->handle);
    return PROA_OK;
}

static proa_status rebuild(recomputing *r)
{
    for (r->at = 0; r->at < r->n_ops; r->at++) {
        proa_instr *instr = &r->ops[r->at];
        if (is_backward(instr)) PROA_TRY(proa__walk_reads(instr->op, instr->args, make_again, r));
        PROA_TRY(proa__emit_old(r->b, instr));
    }
    return PROA_OK;
}

proa_status proa__pass_recompute(proa_block *b, const proa__pass_context *context)
{
    (void)context;
    recomputing r = {.b = b, .n_vars = b->n_vars, .n_ops = b->n_ops, .ops = b->ops};
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
    return status;
}
