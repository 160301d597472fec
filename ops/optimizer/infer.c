/* Checks of the optimizer steps: every list is as long as params, entry i fits params[i], and tensors that
 * are updated in place are contiguous. May use core, kernels and ops/optimizer/kind.h. */
#include "ops/optimizer/kind.h"

#include "kernels/rowwise.h"

/* Roles of a list, by what each shares with the parameters. */
typedef enum fit {
    GRAD,   /* same shape; the parameter's dtype, or float32 for halves */
    STATE,  /* as GRAD; updated in place */
    MASTER, /* same shape, float32 */
    POWER   /* one element, updated in place */
} fit;

typedef struct entry {
    const char *name;
    proa_tensors list;
    fit fit;
    bool optional;   /* may be empty */
    proa_metas *out; /* its output, if it is one */
} entry;

static bool dtype_fits(const proa_tensor *t, const proa_tensor *p, fit kind)
{
    bool half = p->dtype == PROA_F16 || p->dtype == PROA_BF16;
    if (kind == POWER) return rows_is_floating(t->dtype);
    if (kind == MASTER) return half && t->dtype == PROA_F32;
    return t->dtype == p->dtype || (half && t->dtype == PROA_F32);
}

static bool shape_fits(const proa_tensor *t, const proa_tensor *p, fit kind)
{
    if (kind == POWER) return rows_dims_agree(t->numel, 1);
    return t->kind == PROA_ROWS ? proa__rows_fit(t, p->shape, p->ndim) : rows_same_shape(t, p);
}

static proa_status check_entry(const proa_op *op, const entry *e, proa_tensors params)
{
    static const char *const expected[] = {"like the parameter (float32 beside halves will do)",
                                           "like the parameter (float32 beside halves will do)",
                                           "float32 of the half parameter's shape", "one floating number"};
    if (e->out) PROA_TRY(proa_metas_resize(e->out, e->list.count));
    if (e->optional && e->list.count == 0) return PROA_OK;
    if (e->list.count != params.count)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, op, e->name,
                             "has %lld entries; expected %lld, one a parameter", (long long)e->list.count,
                             (long long)params.count);
    for (int64_t i = 0; i < params.count; i++) {
        const proa_tensor *t = e->list.at[i], *p = params.at[i];
        bool fits = dtype_fits(t, p, e->fit) && shape_fits(t, p, e->fit);
        if (!fits)
            return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, op, e->name,
                                 "entry %lld is %s; expected %s, and params has %s", (long long)i,
                                 proa__tensor_text(t), expected[e->fit], proa__tensor_text(p));
        if (e->out && t->flags & PROA_T_STRIDED)
            return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, op, e->name,
                                 "entry %lld is a strided view; a step updates whole tensors only",
                                 (long long)i);
        if (e->out) e->out->at[i] = proa_meta_of(t);
    }
    return PROA_OK;
}

static proa_status check_plain(const proa__optimizer_kind *kind, const void *args)
{
    const proa_tensor *rate = *proa__tensor_at(args, kind->learning_rate_at);
    const proa_tensor *skip = *proa__tensor_at(args, kind->skip_update_at);
    const proa_tensors *params = proa__list_at(args, kind->params_at);
    if (!proa__absent(skip) && (skip->dtype != PROA_BOOL || !rows_dims_agree(skip->numel, 1)))
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, kind->op, "skip_update", "is %s; expected one bool",
                             proa__tensor_text(skip));
    if (!rows_is_floating(rate->dtype) || !rows_dims_agree(rate->numel, 1))
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, kind->op, "learning_rate",
                             "is %s; expected one floating number", proa__tensor_text(rate));
    for (int64_t i = 0; i < params->count; i++)
        if (!rows_is_floating(params->at[i]->dtype))
            return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, kind->op, "params",
                                 "entry %lld is %s; expected floating", (long long)i,
                                 proa__tensor_text(params->at[i]));
    return PROA_OK;
}

static const proa__optimizer_kind *kind_of(const proa_op *op)
{
    const proa__optimizer_kind *const *k = proa__optimizer_kinds;
    while (*k && (*k)->op != op) k++;
    return *k;
}

static proa_metas *metas_at(void *metas, size_t at) { return (proa_metas *)(void *)((char *)metas + at); }

static bool is_kept(const proa__optimizer_slot *slot, const void *args)
{
    return slot->when == 0 || *((const bool *)args + slot->when);
}

proa_status optimizer_infer(const proa_op *op, const void *args, void *metas);
proa_status optimizer_infer(const proa_op *op, const void *args, void *metas)
{
    const proa__optimizer_kind *kind = kind_of(op);
    const proa_tensors params = *proa__list_at(args, kind->params_at);
    PROA_TRY(check_plain(kind, args));
    const entry first[] = {
        {"params", params, STATE, false, metas_at(metas, kind->params_meta)},
        {"grads", *proa__list_at(args, kind->grads_at), GRAD, false, NULL},
        {"masters", *proa__list_at(args, kind->masters_at), MASTER, true,
         metas_at(metas, kind->masters_meta)},
    };
    for (int i = 0; i < 3; i++) PROA_TRY(check_entry(op, &first[i], params));
    for (int i = 0; i < kind->n_slots; i++) {
        const proa__optimizer_slot *slot = &kind->slots[i];
        const proa_tensors list = *proa__list_at(args, slot->at);
        bool is_power = slot->start == PROA__START_BETA1 || slot->start == PROA__START_BETA2;
        const entry e = {slot->field, list, is_power ? POWER : STATE, !is_kept(slot, args),
                         metas_at(metas, slot->meta)};
        PROA_TRY(check_entry(op, &e, params));
    }
    return PROA_OK;
}
