/* Batch normalization with constant statistics computes x · s + t for each channel. It is folded into the
 * constant weights of a convolution or linear layer whose result it alone reads; elsewhere it becomes a
 * product and a sum, which other passes fuse. May use core and ops. */
#include "edit.h"

#include "core/blocked.h"
#include "core/deferred.h"
#include "core/internal.h"
#include "ops/windows.h"
#include "impl/conv.h"
#include "impl/elementwise.h"
#include "impl/norm.h"
#include "impl/shape.h"

typedef struct folding {
    proa__uses uses;
    int32_t *harmless; /* by variable: writes by batch norms with fixed statistics, which leave it as it is */
} folding;

static bool is_fixed(const proa_batch_norm_args *a)
{
    return (a->is_test || a->use_global_stats) && !a->trainable_statistics;
}

static int32_t *harmless_of(const folding *f, const proa_tensor *t)
{
    const proa_var *v = proa__slot_var(t);
    return proa__use_of(&f->uses, v) ? &f->harmless[v->index] : NULL;
}

static void count_harmless(folding *f)
{
    const proa_block *b = f->uses.block;
    for (int32_t i = 0; i < b->n_ops; i++) {
        if (!proa__is_op(&b->ops[i], "batch_norm")) continue;
        const proa_batch_norm_args *a = b->ops[i].args;
        proa_tensor *const written[] = {a->mean_out, a->variance_out};
        for (int k = 0; k < 2 && is_fixed(a); k++) {
            int32_t *n = harmless_of(f, written[k]);
            if (n) ++*n;
        }
    }
}

/* The tensor of a persistable that no op changes; NULL otherwise. */
static proa_tensor *constant(const folding *f, const proa_tensor *t)
{
    const proa_var *v = proa__slot_var(t);
    const proa__use *use = proa__use_of(&f->uses, v);
    return use && v->persistable && v->value && use->n_writes == f->harmless[v->index] ? v->value : NULL;
}

static proa_tensor *wide(proa_tensor *t) { return proa_cast(t, PROA_F64); }

/* Computes s and t of a batch norm, in double precision. False: its statistics, weight or bias are not
 * constant, or (with an error) an op failed. */
static bool affine_of(const folding *f, const proa_batch_norm_args *a, proa_tensor **s, proa_tensor **t)
{
    proa_tensor *mean = constant(f, a->running_mean), *variance = constant(f, a->running_var);
    proa_tensor *weight = constant(f, a->weight), *bias = constant(f, a->bias);
    if (!mean || !variance || (!weight && !proa__absent(a->weight)) || (!bias && !proa__absent(a->bias)))
        return false;
    *s = proa_rsqrt(proa_scale(wide(variance), .bias = a->epsilon));
    if (weight) *s = proa_multiply(*s, wide(weight));
    *t = proa_scale(proa_multiply(wide(mean), *s), .scale = PROA_SCALAR(-1.0));
    if (bias) *t = proa_add(*t, wide(bias));
    return proa_error() == PROA_OK;
}

static proa_tensor *narrow(proa_block *b, proa_tensor *t, proa_dtype dtype)
{
    return t ? proa__new_constant(b, proa_cast(t, dtype)) : NULL;
}

/* ---- into the weights before ---------------------------------------------------------------- */

/* The axis of the weight that is the output's channel; −1: the op's weights cannot absorb a scale. */
static int channel_axis(const proa_instr *maker, const proa_batch_norm_args *a)
{
    if (proa__is_op(maker, "linear")) return a->x->ndim == 2 ? 1 : -1;
    if (proa__is_op(maker, "conv1d") || proa__is_op(maker, "conv3d"))
        return proa__channels_last(a->data_format) ? -1 : 0;
    if (!proa__is_op(maker, "conv2d")) return -1;
    const proa_conv2d_args *conv = maker->args;
    return proa__channels_last(conv->data_format) == proa__channels_last(a->data_format) ? 0 : -1;
}

static proa_tensor *along(proa_tensor *v, int axis, int ndim)
{
    int64_t shape[PROA_MAX_DIMS];
    for (int i = 0; i < ndim; i++) shape[i] = i == axis ? -1 : 1;
    return proa_reshape(v, ((proa_ints){.count = ndim, .at = shape}));
}

/* Multiplies the weights by s and adds t to the bias. x, weight and bias are the first three fields of these
 * ops. */
static proa_status scale_weights(folding *f, proa_instr *maker, int axis, proa_tensor *s, proa_tensor *t)
{
    proa_block *b = f->uses.block;
    proa_tensor **weight = proa_field_tensor(&maker->op->fields[1], maker->args);
    proa_tensor **bias = proa_field_tensor(&maker->op->fields[2], maker->args);
    proa_tensor *w = constant(f, *weight), *old = constant(f, *bias);
    proa_dtype dtype = (proa_dtype)w->dtype;
    proa_tensor *read = proa__deferred_once(w);
    if (!read) return proa_error();
    proa_tensor *fresh = narrow(b, proa_multiply(wide(read), along(s, axis, w->ndim)), dtype);
    proa_tensor *shift = narrow(b, old ? proa_add(proa_multiply(wide(old), s), t) : t, dtype);
    if (!fresh || !shift) return proa_error();
    proa__slot_set(weight, fresh);
    proa__slot_set(bias, shift);
    proa__constant_was_read(w);
    return PROA_OK;
}

/* The op before a batch norm, if only that reads its result and its weights can absorb the scale; NULL
 * otherwise. */
static proa_instr *foldable(const folding *f, const proa_batch_norm_args *a, int32_t at)
{
    proa_var *x = proa__slot_var(a->x);
    const proa__use *use = proa__use_of(&f->uses, x);
    if (!use || use->maker == PROA__NOBODY || proa__only_reader(&f->uses, x) != at) return NULL;
    proa_instr *maker = &f->uses.block->ops[use->maker];
    if (!maker->args || channel_axis(maker, a) < 0) return NULL;
    const proa_tensor *bias = *proa_field_tensor(&maker->op->fields[2], maker->args);
    if (!constant(f, *proa_field_tensor(&maker->op->fields[1], maker->args))) return NULL;
    return proa__absent(bias) || constant(f, bias) ? maker : NULL;
}

/* Folds the batch norm into `maker`, which from now on makes the batch norm's output. */
static proa_status fold_into(folding *f, proa_instr *maker, proa_instr *instr, proa_tensor *s, proa_tensor *t)
{
    const proa_batch_norm_args *a = instr->args;
    PROA_TRY(scale_weights(f, maker, channel_axis(maker, a), s, t));
    proa__use *out = proa__use_of(&f->uses, proa__slot_var(a->out));
    if (out) out->maker = (int32_t)(maker - f->uses.block->ops);
    proa__slot_set(proa__out_slot(maker->op, maker->args, 0, NULL), a->out);
    proa__instr_clear(instr);
    return PROA_OK;
}

/* ---- as a product and a sum ------------------------------------------------------------------ */

static proa_status split(folding *f, proa_instr *instr, proa_tensor *s, proa_tensor *t)
{
    proa_block *b = f->uses.block;
    const proa_batch_norm_args *a = instr->args;
    int ndim = a->x->ndim, rank = proa__channels_last(a->data_format) || ndim < 3 ? 1 : ndim - 1;
    proa_tensor *by = narrow(b, along(s, 0, rank), (proa_dtype)a->x->dtype);
    proa_tensor *plus = narrow(b, along(t, 0, rank), (proa_dtype)a->x->dtype);
    proa_meta meta = proa_meta_of(a->x);
    proa_var *product = by && plus ? proa__var_new(b, NULL, &meta) : NULL;
    if (!product) return proa_error();
    proa_multiply_args multiply = {.x = a->x, .y = by, .out = product->handle};
    proa_add_args add = {.x = product->handle, .y = plus, .out = a->out};
    PROA_TRY(proa__emit(b, "multiply", &multiply, instr));
    PROA_TRY(proa__emit(b, "add", &add, instr));
    proa__instr_clear(instr);
    return PROA_OK;
}

/* ---- the pass ---------------------------------------------------------------------------------- */

static bool suits(const folding *f, const proa_instr *instr)
{
    if (!proa__is_op(instr, "batch_norm")) return false;
    const proa_batch_norm_args *a = instr->args;
    if (!is_fixed(a) || (a->x->dtype != PROA_F32 && a->x->dtype != PROA_F64)) return false;
    return proa__is_unused(&f->uses, proa__slot_var(a->saved_mean)) &&
           proa__is_unused(&f->uses, proa__slot_var(a->saved_variance));
}

static proa_status fold_one(folding *f, proa_instr *instr, int32_t at)
{
    PROA_SCOPED; /* frees temporaries in double precision at once */
    proa_tensor *s = NULL, *t = NULL;
    proa_instr *maker = foldable(f, instr->args, at);
    if (maker && affine_of(f, instr->args, &s, &t)) PROA_TRY(fold_into(f, maker, instr, s, t));
    return proa_error();
}

static proa_status fold_all(folding *f)
{
    proa_block *b = f->uses.block;
    for (int32_t i = 0; i < b->n_ops; i++)
        if (suits(f, &b->ops[i])) PROA_TRY(fold_one(f, &b->ops[i], i));
    return PROA_OK;
}

static proa_status split_all(folding *f)
{
    proa_block *b = f->uses.block;
    int32_t n = 0, i = 0;
    proa_instr *old = proa__take_ops(b, &n);
    proa_status status = PROA_OK;
    for (; i < n && status == PROA_OK; i++) {
        proa_tensor *s = NULL, *t = NULL;
        if (!old[i].args) continue;
        if (suits(f, &old[i]) && affine_of(f, old[i].args, &s, &t)) status = split(f, &old[i], s, t);
        else status = proa_error();
        if (status == PROA_OK && old[i].args) status = proa__emit_old(b, &old[i]);
    }
    proa__drop_ops(old, 0, n);
    return status;
}

proa_status proa__pass_batch_norm(proa_block *b, const proa__pass_context *context)
{
    (void)context;
    folding f = {.harmless = NULL};
    PROA_TRY(proa__uses_find(&f.uses, b));
    f.harmless = proa__calloc(((size_t)b->n_vars + 1) * sizeof *f.harmless);
    proa_status status = f.harmless ? PROA_OK : proa_error();
    if (status == PROA_OK) {
        count_harmless(&f);
        status = fold_all(&f);
        if (status == PROA_OK) status = split_all(&f);
    }
    proa__uses_apply(&f.uses);
    proa__uses_free(&f.uses);
    proa__free(f.harmless);
    return status;
}
