/* Shapes and rules of dropout. The mask has x's shape; with `axis`, it has length 1 in the axes that are not
 * listed. May use core, kernels and public ops. */
#include "impl/dropout.h"
#include "impl/elementwise.h"

#include "kernels/rowwise.h"

proa_status dropout_infer(const proa_dropout_args *a, proa_dropout_metas *m)
{
    if (!(a->p >= 0 && a->p <= 1))
        return ROWS_FAIL(dropout, INVALID_ARGUMENT, "p", "is %g; expected 0 to 1", a->p);
    m->out = proa_meta_of(a->x);
    if (!a->training) return PROA_OK;
    m->mask = proa_meta_of(a->x);
    m->mask.dtype = PROA_U8;
    if (a->axis.count == 0) return PROA_OK;
    for (int i = 0; i < m->mask.ndim; i++) m->mask.shape[i] = 1;
    for (int64_t i = 0; i < a->axis.count; i++) {
        int64_t axis = a->axis.at[i];
        if (axis < 0 || axis >= a->x->ndim)
            return ROWS_FAIL(dropout, OUT_OF_RANGE, "axis", "names %lld; expected 0 to %d for x %s",
                             (long long)axis, a->x->ndim - 1, proa__tensor_text(a->x));
        m->mask.shape[axis] = a->x->shape[axis];
    }
    return PROA_OK;
}

proa_status dropout_grad_infer(const proa_dropout_grad_args *a, proa_dropout_grad_metas *m)
{
    bool fits = a->mask->ndim == a->d_out->ndim && rows_is_floating(a->d_out->dtype);
    for (int i = 0; fits && i < a->mask->ndim; i++)
        fits = a->mask->shape[i] == 1 || rows_dims_agree(a->mask->shape[i], a->d_out->shape[i]);
    if (!fits)
        return ROWS_FAIL(dropout_grad, INVALID_ARGUMENT, "d_out",
                         "is %s; expected the floating tensor that mask %s masks",
                         proa__tensor_text(a->d_out), proa__tensor_text(a->mask));
    m->d_x = proa_meta_of(a->d_out);
    return PROA_OK;
}

proa_status gelu_dropout_infer(const proa_gelu_dropout_args *a, proa_gelu_dropout_metas *m)
{
    if (!(a->p >= 0 && a->p <= 1))
        return ROWS_FAIL(gelu_dropout, INVALID_ARGUMENT, "p", "is %g; expected 0 to 1", a->p);
    m->out = m->mask = proa_meta_of(a->x);
    m->mask.dtype = PROA_U8;
    return PROA_OK;
}

proa_status gelu_dropout_grad_infer(const proa_gelu_dropout_grad_args *a, proa_gelu_dropout_grad_metas *m)
{
    if (a->mask->dtype != PROA_U8 || !rows_same_shape(a->mask, a->x))
        return ROWS_FAIL(gelu_dropout_grad, INVALID_ARGUMENT, "mask", "is %s; expected the mask of x %s",
                         proa__tensor_text(a->mask), proa__tensor_text(a->x));
    if (a->d_out->dtype != a->x->dtype || !rows_same_shape(a->d_out, a->x))
        return ROWS_FAIL(gelu_dropout_grad, INVALID_ARGUMENT, "d_out", "is %s; expected one as x %s",
                         proa__tensor_text(a->d_out), proa__tensor_text(a->x));
    m->d_x = m->out = proa_meta_of(a->x);
    return PROA_OK;
}

proa_status dropout_vjp(const proa_dropout_args *a, proa_dropout_grads *g)
{
    if (!g->want_x || proa__absent(g->d_out)) return PROA_OK;
    if (a->training)
        g->d_x = proa_dropout_grad(a->mask, g->d_out, .p = rows_option_float(a->p), .axis = a->axis,
                                   .mode = a->mode);
    else if (a->mode == PROA_DROPOUT_MODE_UPSCALE_IN_TRAIN) g->d_x = g->d_out;
    else g->d_x = proa_scale(g->d_out, .scale = PROA_SCALAR(1 - a->p));
    return proa_error();
}

proa_status dropout_grad_vjp(const proa_dropout_grad_args *a, proa_dropout_grad_grads *g)
{
    if (g->want_d_out)
        g->d_d_out = proa_dropout_grad(a->mask, g->d_d_x, .p = rows_option_float(a->p), .axis = a->axis,
                                       .no_training = !a->training, .mode = a->mode);
    return proa_error();
}
