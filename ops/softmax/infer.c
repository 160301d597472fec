/* Shapes of the softmax family: an output has its input's shape and dtype; axis must be one of its dims. May
 * use core, kernels and the generated op headers. */
#include "impl/softmax.h"

#include "kernels/rowwise.h"

static proa_status like(const char *op, const proa_tensor *x, int64_t axis, proa_meta *out)
{
    int rank = x->ndim > 0 ? x->ndim : 1; /* 0-D: as if [1] */
    if (axis < -rank || axis >= rank)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "axis",
                             "is %lld, but x %s has axes %d to %d", (long long)axis, proa__tensor_text(x),
                             -rank, rank - 1);
    *out = proa_meta_of(x);
    return PROA_OK;
}

static proa_status pair(const char *op, const proa_tensor *out, const proa_tensor *d_out, int64_t axis,
                        proa_meta *d_x)
{
    if (out->dtype != d_out->dtype || !rows_same_shape(out, d_out))
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "d_out",
                             "is %s; expected that of out, %s", proa__tensor_text(d_out),
                             proa__tensor_text(out));
    return like(op, out, axis, d_x);
}

proa_status softmax_infer(const proa_softmax_args *a, proa_softmax_metas *m)
{
    return like("softmax", a->x, a->axis, &m->out);
}

proa_status log_softmax_infer(const proa_log_softmax_args *a, proa_log_softmax_metas *m)
{
    return like("log_softmax", a->x, a->axis, &m->out);
}

proa_status softmax_grad_infer(const proa_softmax_grad_args *a, proa_softmax_grad_metas *m)
{
    return pair("softmax_grad", a->out, a->d_out, a->axis, &m->d_x);
}

proa_status log_softmax_grad_infer(const proa_log_softmax_grad_args *a, proa_log_softmax_grad_metas *m)
{
    return pair("log_softmax_grad", a->out, a->d_out, a->axis, &m->d_x);
}
