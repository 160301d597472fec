/* Shapes and rule of data_norm. May use core, kernels and public ops. */
#include "ops/ints.h"
#include "kernels/rowwise.h"
#include "impl/data_norm.h"

static proa_status check_column(const char *op, const char *name, const proa_tensor *t, const proa_tensor *x)
{
    if (x->ndim != 2)
        return OP_FAIL(op, INVALID_ARGUMENT, "x", "is %s; expected [N, features]", proa__tensor_text(x));
    if (t->ndim == 1 && t->dtype == x->dtype && rows_dims_agree(t->shape[0], x->shape[1])) return PROA_OK;
    return OP_FAIL(op, INVALID_ARGUMENT, name, "is %s; expected %s with one number a feature of x %s",
                   proa__tensor_text(t), proa_dtype_name((proa_dtype)x->dtype), proa__tensor_text(x));
}

/* scale_w and bias, which come with the option, and a slot of columns that divides x's. */
static proa_status check_options(const char *op, const proa_tensor *x, const proa_tensor *scale_w,
                                 const proa_tensor *bias, bool enabled, int64_t slot)
{
    if (slot > 0 && x->shape[1] >= 0 && x->shape[1] % slot)
        return OP_FAIL(op, INVALID_ARGUMENT, "slot_dim", "is %lld; expected a divisor of the columns of x %s",
                       (long long)slot, proa__tensor_text(x));
    if (!enabled) return PROA_OK;
    if (proa__absent(scale_w) || proa__absent(bias))
        return OP_FAIL(op, INVALID_ARGUMENT, proa__absent(scale_w) ? "scale_w" : "bias",
                       "is missing; expected one number a feature with enable_scale_and_shift");
    PROA_TRY(check_column(op, "scale_w", scale_w, x));
    return check_column(op, "bias", bias, x);
}

proa_status data_norm_infer(const proa_data_norm_args *a, proa_data_norm_metas *m)
{
    PROA_TRY(check_column("data_norm", "batch_size", a->batch_size, a->x));
    PROA_TRY(check_column("data_norm", "batch_sum", a->batch_sum, a->x));
    PROA_TRY(check_column("data_norm", "batch_square_sum", a->batch_square_sum, a->x));
    PROA_TRY(check_options("data_norm", a->x, a->scale_w, a->bias, a->enable_scale_and_shift, a->slot_dim));
    m->y = proa_meta_of(a->x);
    m->means = m->scales = proa_meta_of(a->batch_sum);
    return PROA_OK;
}

proa_status data_norm_vjp(const proa_data_norm_args *a, proa_data_norm_grads *g)
{
    proa_data_norm_grad_result d = proa_data_norm_grad(
        a->x, a->means, a->scales, a->scale_w, a->bias, g->d_y, .epsilon = rows_option_float(a->epsilon),
        .slot_dim = rows_option(a->slot_dim), .enable_scale_and_shift = a->enable_scale_and_shift);
    if (g->want_x) g->d_x = d.d_x;
    if (g->want_batch_size) g->d_batch_size = d.d_batch_size;
    if (g->want_batch_sum) g->d_batch_sum = d.d_batch_sum;
    if (g->want_batch_square_sum) g->d_batch_square_sum = d.d_batch_square_sum;
    if (g->want_scale_w && a->enable_scale_and_shift) g->d_scale_w = d.d_scale_w;
    if (g->want_bias && a->enable_scale_and_shift) g->d_bias = d.d_bias;
    return proa_error();
}

proa_status data_norm_grad_infer(const proa_data_norm_grad_args *a, proa_data_norm_grad_metas *m)
{
    const char *op = "data_norm_grad";
    PROA_TRY(check_column(op, "means", a->means, a->x));
    PROA_TRY(check_column(op, "scales", a->scales, a->x));
    if (a->d_y->dtype != a->x->dtype || !rows_same_shape(a->d_y, a->x))
        return OP_FAIL(op, INVALID_ARGUMENT, "d_y", "is %s; expected %s as x", proa__tensor_text(a->d_y),
                       proa__tensor_text(a->x));
    PROA_TRY(check_options(op, a->x, a->scale_w, a->bias, a->enable_scale_and_shift, a->slot_dim));
    m->d_scale_w = m->d_bias = proa_meta_of(a->means);
    if (!a->enable_scale_and_shift) m->d_scale_w.ndim = m->d_bias.ndim = -1;
    m->d_x = proa_meta_of(a->x);
    m->d_batch_size = m->d_batch_sum = m->d_batch_square_sum = proa_meta_of(a->means);
    return PROA_OK;
}
