/* Checks of the optimizer steps. Every list is as long as params and entry i fits params[i]; what is updated
 * in place must be contiguous. May use core and the generated op headers. */
#include "impl/optimizer.h"

#include "kernels/rowwise.h"

/* What a list is to its parameters. */
typedef enum fit {
    GRAD,   /* same shape; the parameter's dtype, or float32 for halves */
    STATE,  /* the same, and updated in place */
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

static proa_status check_entry(const char *op, const entry *e, proa_tensors params)
{
    static const char *const expected[] = {"like the parameter (float32 beside halves will do)",
                                           "like the parameter (float32 beside halves will do)",
                                           "float32 of the half parameter's shape", "one floating number"};
    if (e->out) PROA_TRY(proa_metas_resize(e->out, e->list.count));
    if (e->optional && e->list.count == 0) return PROA_OK;
    if (e->list.count != params.count)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), e->name,
                             "has %lld entries; expected %lld, one a parameter", (long long)e->list.count,
                             (long long)params.count);
    for (int64_t i = 0; i < params.count; i++) {
        const proa_tensor *t = e->list.at[i], *p = params.at[i];
        bool fits = dtype_fits(t, p, e->fit) && shape_fits(t, p, e->fit);
        if (!fits)
            return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), e->name,
                                 "entry %lld is %s; expected %s, and params has %s", (long long)i,
                                 proa__tensor_text(t), expected[e->fit], proa__tensor_text(p));
        if (e->out && t->flags & PROA_T_STRIDED)
            return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), e->name,
                                 "entry %lld is a strided view; a step updates whole tensors only",
                                 (long long)i);
        if (e->out) e->out->at[i] = proa_meta_of(t);
    }
    return PROA_OK;
}

static proa_status check(const char *op, const proa_tensor *learning_rate, const entry *entries, int n)
{
    if (!rows_is_floating(learning_rate->dtype) || !rows_dims_agree(learning_rate->numel, 1))
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "learning_rate",
                             "is %s; expected one floating number", proa__tensor_text(learning_rate));
    for (int64_t i = 0; i < entries[0].list.count; i++)
        if (!rows_is_floating(entries[0].list.at[i]->dtype))
            return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "params",
                                 "entry %lld is %s; expected floating", (long long)i,
                                 proa__tensor_text(entries[0].list.at[i]));
    for (int i = 0; i < n; i++) PROA_TRY(check_entry(op, &entries[i], entries[0].list));
    return PROA_OK;
}

static proa_status check_skip(const char *op, const proa_tensor *skip)
{
    if (proa__absent(skip) || (skip->dtype == PROA_BOOL && rows_dims_agree(skip->numel, 1))) return PROA_OK;
    return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "skip_update",
                         "is %s; expected one bool", proa__tensor_text(skip));
}

#define CHECK(op, ...)                                        \
    check(op, a->learning_rate, (const entry[]){__VA_ARGS__}, \
          (int)(sizeof((const entry[]){__VA_ARGS__}) / sizeof(entry)))
#define IN_PLACE(field, fit)                          \
    {                                                 \
#field, a->field, fit, false, &m->field##_out \
    }
#define IN_PLACE_OPTIONAL(field, fit)                \
    {                                                \
#field, a->field, fit, true, &m->field##_out \
    }
#define GRADS                                \
    {                                        \
        "grads", a->grads, GRAD, false, NULL \
    }

proa_status sgd_step_infer(const proa_sgd_step_args *a, proa_sgd_step_metas *m)
{
    PROA_TRY(check_skip("sgd_step", a->skip_update));
    return CHECK("sgd_step", IN_PLACE(params, STATE), GRADS, IN_PLACE_OPTIONAL(masters, MASTER));
}

proa_status momentum_step_infer(const proa_momentum_step_args *a, proa_momentum_step_metas *m)
{
    PROA_TRY(check_skip("momentum_step", a->skip_update));
    return CHECK("momentum_step", IN_PLACE(params, STATE), GRADS, IN_PLACE(velocities, STATE),
                 IN_PLACE_OPTIONAL(masters, MASTER));
}

proa_status adam_step_infer(const proa_adam_step_args *a, proa_adam_step_metas *m)
{
    PROA_TRY(check_skip("adam_step", a->skip_update));
    return CHECK("adam_step", IN_PLACE(params, STATE), GRADS, IN_PLACE(moments1, STATE),
                 IN_PLACE(moments2, STATE), IN_PLACE(beta1_pows, POWER), IN_PLACE(beta2_pows, POWER),
                 IN_PLACE_OPTIONAL(masters, MASTER));
}

proa_status adamw_step_infer(const proa_adamw_step_args *a, proa_adamw_step_metas *m)
{
    PROA_TRY(check_skip("adamw_step", a->skip_update));
    return CHECK("adamw_step", IN_PLACE(params, STATE), GRADS, IN_PLACE(moments1, STATE),
                 IN_PLACE(moments2, STATE), IN_PLACE(beta1_pows, POWER), IN_PLACE(beta2_pows, POWER),
                 IN_PLACE_OPTIONAL(masters, MASTER));
}

proa_status adagrad_step_infer(const proa_adagrad_step_args *a, proa_adagrad_step_metas *m)
{
    PROA_TRY(check_skip("adagrad_step", a->skip_update));
    return CHECK("adagrad_step", IN_PLACE(params, STATE), GRADS, IN_PLACE(moments, STATE),
                 IN_PLACE_OPTIONAL(masters, MASTER));
}

proa_status rmsprop_step_infer(const proa_rmsprop_step_args *a, proa_rmsprop_step_metas *m)
{
    if (a->centered && a->mean_grads.count != a->params.count)
        return ROWS_FAIL(rmsprop_step, INVALID_ARGUMENT, "mean_grads",
                         "is needed, one a parameter, when centered");
    PROA_TRY(check_skip("rmsprop_step", a->skip_update));
    return CHECK("rmsprop_step", IN_PLACE(params, STATE), GRADS, IN_PLACE(mean_squares, STATE),
                 IN_PLACE_OPTIONAL(mean_grads, STATE), IN_PLACE(moments, STATE),
                 IN_PLACE_OPTIONAL(masters, MASTER));
}

proa_status adadelta_step_infer(const proa_adadelta_step_args *a, proa_adadelta_step_metas *m)
{
    PROA_TRY(check_skip("adadelta_step", a->skip_update));
    return CHECK("adadelta_step", IN_PLACE(params, STATE), GRADS, IN_PLACE(avg_squared_grads, STATE),
                 IN_PLACE(avg_squared_updates, STATE), IN_PLACE_OPTIONAL(masters, MASTER));
}

proa_status adamax_step_infer(const proa_adamax_step_args *a, proa_adamax_step_metas *m)
{
    PROA_TRY(check_skip("adamax_step", a->skip_update));
    return CHECK("adamax_step", IN_PLACE(params, STATE), GRADS, IN_PLACE(moments, STATE),
                 IN_PLACE(inf_norms, STATE), IN_PLACE(beta1_pows, POWER), IN_PLACE_OPTIONAL(masters, MASTER));
}

proa_status lamb_step_infer(const proa_lamb_step_args *a, proa_lamb_step_metas *m)
{
    PROA_TRY(check_skip("lamb_step", a->skip_update));
    return CHECK("lamb_step", IN_PLACE(params, STATE), GRADS, IN_PLACE(moments1, STATE),
                 IN_PLACE(moments2, STATE), IN_PLACE(beta1_pows, POWER), IN_PLACE(beta2_pows, POWER),
                 IN_PLACE_OPTIONAL(masters, MASTER));
}
