/* Checks of the loss-scaling ops. May use core, kernels and the generated op headers. */
#include "impl/amp.h"

#include "kernels/rowwise.h"

static proa_status list_in_place(const char *op, proa_tensors xs, proa_metas *out)
{
    PROA_TRY(proa_metas_resize(out, xs.count));
    for (int64_t i = 0; i < xs.count; i++) {
        if (!rows_is_floating(xs.at[i]->dtype) || xs.at[i]->flags & PROA_T_STRIDED)
            return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "xs",
                                 "entry %lld is %s%s; expected whole floating tensors", (long long)i,
                                 xs.at[i]->flags & PROA_T_STRIDED ? "a strided view of " : "",
                                 proa__tensor_text(xs.at[i]));
        out->at[i] = proa_meta_of(xs.at[i]);
    }
    return PROA_OK;
}

/* Checks that t has one element and that its dtype `fits`, as the caller found; `what`: the expected dtypes,
 * for the error. */
static proa_status one(const char *op, const char *name, const proa_tensor *t, bool fits, const char *what)
{
    if (fits && rows_dims_agree(t->numel, 1)) return PROA_OK;
    return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), name, "is %s; expected one %s",
                         proa__tensor_text(t), what);
}

proa_status check_finite_and_unscale_infer(const proa_check_finite_and_unscale_args *a,
                                           proa_check_finite_and_unscale_metas *m)
{
    const char *op = "check_finite_and_unscale";
    m->found_infinite = (proa_meta){.dtype = PROA_BOOL, .ndim = 1, .shape = {1}};
    PROA_TRY(one(op, "scale", a->scale, rows_is_floating(a->scale->dtype), "floating number"));
    return list_in_place(op, a->xs, &m->xs_out);
}

proa_status update_loss_scaling_infer(const proa_update_loss_scaling_args *a,
                                      proa_update_loss_scaling_metas *m)
{
    const char *op = "update_loss_scaling";
    PROA_TRY(list_in_place(op, a->xs, &m->xs_out));
    PROA_TRY(one(op, "found_infinite", a->found_infinite, a->found_infinite->dtype == PROA_BOOL, "bool"));
    PROA_TRY(one(op, "loss_scaling", a->loss_scaling, rows_is_floating(a->loss_scaling->dtype),
                 "floating number"));
    PROA_TRY(one(op, "good_steps", a->good_steps, a->good_steps->dtype == PROA_I32, "int32"));
    PROA_TRY(one(op, "bad_steps", a->bad_steps, a->bad_steps->dtype == PROA_I32, "int32"));
    if (!proa__absent(a->stop)) PROA_TRY(one(op, "stop", a->stop, a->stop->dtype == PROA_BOOL, "bool"));
    m->loss_scaling_out = proa_meta_of(a->loss_scaling);
    m->good_steps_out = proa_meta_of(a->good_steps);
    m->bad_steps_out = proa_meta_of(a->bad_steps);
    return PROA_OK;
}
