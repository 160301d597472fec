/* Removes ops that change nothing: copies, casts to the same dtype, scaling by one, dropout that neither
 * drops nor scales, quantizers that only observe, reshapes to the same shape and transposes that keep the
 * order. Readers of their result then read their input. Merges a transpose of a transpose, and lets a reshape
 * of a reshape read the first one's input. May use core and ops. */
#include "edit.h"

#include "core/internal.h"
#include "impl/dropout.h"
#include "impl/elementwise.h"
#include "impl/quantize.h"
#include "impl/shape.h"

/* True if the two shapes are equal in every run: sizes agree, and at most one dim is unknown. */
static bool surely_same(const proa_tensor *a, const proa_tensor *b)
{
    int unknown = 0;
    for (int i = 0; i < a->ndim && a->ndim == b->ndim; i++) unknown += a->shape[i] < 0;
    return proa__same_shape(a, b) && unknown <= 1;
}

static bool is_number(const proa_scalar *s, double value)
{
    if (s->kind == PROA_SCALAR_FLOAT) return s->f == value;
    return (s->kind == PROA_SCALAR_INT || s->kind == PROA_SCALAR_BOOL) && (double)s->i == value;
}

static proa_instr *maker_of(const proa__uses *u, const proa_tensor *t, const char *name)
{
    const proa__use *use = proa__use_of(u, proa__slot_var(t));
    proa_instr *maker = use && use->maker != PROA__NOBODY ? &u->block->ops[use->maker] : NULL;
    return maker && proa__is_op(maker, name) ? maker : NULL;
}

/* True if a reshape or transpose may read the input of the op before it, which must not change in between. */
static bool sees_through(const proa__uses *u, const proa_tensor *x)
{
    return proa__is_value(u, proa__slot_var(x));
}

/* True if a reshape's target comes from tensors or contains a 0, which copies a dim of the input, so that it
 * may depend on the input's shape. */
static bool copies_dims(const proa_ints *shape)
{
    if (shape->tensor || shape->tensors) return true;
    for (int64_t i = 0; i < shape->count; i++)
        if (shape->at[i] == 0) return true;
    return false;
}

/* True if t may be a strided view, which a reshape copies. */
static bool may_be_strided(const proa__uses *u, const proa_tensor *t)
{
    const proa__use *use = proa__use_of(u, proa__slot_var(t));
    const proa_instr *maker = use && use->maker != PROA__NOBODY ? &u->block->ops[use->maker] : NULL;
    return maker && maker->args && maker->op->flags & PROA_OP_VIEW && !proa__is_op(maker, "reshape");
}

/* Lets a reshape of a reshape read the first one's input, unless the first copies and stays, as its result is
 * then contiguous and the second costs nothing. */
static void skip_reshape(const proa__uses *u, proa_reshape_args *a)
{
    const proa_instr *maker = maker_of(u, a->x, "reshape");
    if (!maker || copies_dims(&a->shape)) return;
    const proa_reshape_args *first = maker->args;
    if (!sees_through(u, first->x)) return;
    bool stays = proa__only_reader(u, proa__slot_var(a->x)) == PROA__NOBODY;
    if (stays && may_be_strided(u, first->x) && !surely_same(first->x, a->out)) return;
    proa__slot_set(&a->x, first->x);
}

/* Merges a transpose of a transpose into one. */
static proa_status skip_transpose(const proa__uses *u, proa_instr *instr)
{
    const proa_transpose_args *a = instr->args;
    const proa_instr *maker = maker_of(u, a->x, "transpose");
    if (!maker) return PROA_OK;
    const proa_transpose_args *first = maker->args;
    int64_t perm[PROA_MAX_DIMS], n = a->perm.count;
    if (!sees_through(u, first->x) || first->perm.count != n || n > PROA_MAX_DIMS) return PROA_OK;
    for (int64_t i = 0; i < n; i++) {
        int64_t at = a->perm.at[i] < 0 ? a->perm.at[i] + n : a->perm.at[i];
        perm[i] = first->perm.at[at] < 0 ? first->perm.at[at] + n : first->perm.at[at];
    }
    proa_transpose_args both = {.x = first->x, .perm = {.count = n, .at = perm}, .out = a->out};
    return proa__instr_become(instr, instr->op, &both);
}

static bool keeps_order(const proa_ints *perm)
{
    for (int64_t i = 0; i < perm->count; i++)
        if (perm->at[i] != i && perm->at[i] + perm->count != i) return false;
    return true;
}

/* The input that a quantizer passes on unchanged because it only observes; NULL: the op is no such quantizer,
 * or its statistics are learned. */
static proa_tensor *observed(const proa_instr *instr)
{
    if (proa__is_op(instr, "quantize_linear")) {
        const proa_quantize_linear_args *a = instr->args;
        return a->only_observer && a->is_test ? a->x : NULL;
    }
    if (proa__is_op(instr, "dequantize_linear")) {
        const proa_dequantize_linear_args *a = instr->args;
        return a->only_observer ? a->x : NULL;
    }
    if (!proa__is_op(instr, "moving_average_abs_max_scale")) return NULL;
    const proa_moving_average_abs_max_scale_args *a = instr->args;
    return a->is_test ? a->x : NULL;
}

/* The input that the op's (first) result is equal to; NULL if there is none. */
static proa_tensor *equal_input(const proa_instr *instr)
{
    if (proa__is_op(instr, "assign")) return ((const proa_assign_args *)instr->args)->x;
    if (proa__is_op(instr, "cast")) {
        const proa_cast_args *a = instr->args;
        return (proa_dtype)a->x->dtype == a->dtype ? a->x : NULL;
    }
    if (proa__is_op(instr, "scale")) {
        const proa_scale_args *a = instr->args;
        return is_number(&a->scale, 1) && a->bias == 0 ? a->x : NULL;
    }
    if (proa__is_op(instr, "dropout")) {
        const proa_dropout_args *a = instr->args;
        bool off = (!a->training && a->mode == PROA_DROPOUT_MODE_UPSCALE_IN_TRAIN) || a->p == 0;
        return off ? a->x : NULL;
    }
    if (proa__is_op(instr, "reshape")) {
        const proa_reshape_args *a = instr->args;
        return surely_same(a->x, a->out) ? a->x : NULL;
    }
    if (proa__is_op(instr, "transpose")) {
        const proa_transpose_args *a = instr->args;
        return keeps_order(&a->perm) ? a->x : NULL;
    }
    return observed(instr);
}

/* True if the op's first result alone is wanted. A persistable variable keeps its value when the op goes. */
static bool wants_first_only(const proa__uses *u, const proa_instr *instr)
{
    const proa_op *op = instr->op;
    for (int i = 1; i < op->n_out; i++) {
        const proa_var *v =
            proa__slot_var(*proa_field_tensor(&op->fields[op->n_in + op->n_attr + i], instr->args));
        if (v && !v->persistable && !proa__is_unused(u, v)) return false;
    }
    return true;
}

static proa_status rewrite(proa__uses *u, int32_t at, const proa__pass_context *context)
{
    proa_instr *instr = &u->block->ops[at];
    (void)context;
    PROA_TRY(proa__read_instead(u, instr));
    if (proa__is_op(instr, "reshape")) skip_reshape(u, instr->args);
    if (proa__is_op(instr, "transpose")) PROA_TRY(skip_transpose(u, instr));
    const proa_tensor *same = equal_input(instr);
    proa_var *in = proa__slot_var(same);
    if (!in || !sees_through(u, same) || !wants_first_only(u, instr)) return PROA_OK;
    proa_var *out = proa__slot_var(
        *proa_field_tensor(&instr->op->fields[instr->op->n_in + instr->op->n_attr], instr->args));
    const proa__use *use = proa__use_of(u, out);
    if (!use || !proa__may_replace(u, out, in) || out->persistable ||
        (out->handle->dtype != in->handle->dtype))
        return PROA_OK;
    if (use->kept && u->block->parent >= 0) return PROA_OK; /* a sub-block's outputs stay */
    proa__replace(u, out, in);
    proa__instr_clear(instr);
    return PROA_OK;
}

proa_status proa__pass_identity(proa_block *b, const proa__pass_context *context)
{
    return proa__rewrite_ops(b, context, rewrite);
}
