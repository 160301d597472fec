/* Shape inference and rules of cummax, cummin and logcumsumexp. May use core, kernels and ops. */
#include "ops/index/index.h"
#include "ops/ints.h"
#include "kernels/rowwise.h"
#include "impl/index.h"
#include "impl/reduce.h"

static proa_status extreme_infer(const char *who, const proa_tensor *x, int64_t axis, proa_dtype dtype,
                                 proa_meta *out, proa_meta *indices)
{
    int at;
    if (dtype != PROA_I32 && dtype != PROA_I64)
        return OP_FAIL(who, INVALID_ARGUMENT, "dtype", "is %s; expected int32 or int64",
                       proa_dtype_name(dtype));
    *out = *indices = proa_meta_of(x);
    indices->dtype = dtype;
    return proa__single_axis(who, "axis", axis, x->ndim, &at);
}

static proa_tensor *extreme_vjp(proa_tensor *d_out, proa_tensor *indices, proa_tensor *x, int64_t axis)
{
    return x->ndim ? proa_take_along_axis_grad(d_out, indices, proa__shape_like(x), axis) : d_out;
}

#define EXTREME(op)                                                               \
    proa_status op##_infer(const proa_##op##_args *a, proa_##op##_metas *m)       \
    {                                                                             \
        return extreme_infer(#op, a->x, a->axis, a->dtype, &m->out, &m->indices); \
    }                                                                             \
    proa_status op##_vjp(const proa_##op##_args *a, proa_##op##_grads *g)         \
    {                                                                             \
        g->d_x = extreme_vjp(g->d_out, a->indices, a->x, a->axis);                \
        return proa_error();                                                      \
    }
EXTREME(cummax)
EXTREME(cummin)

proa_status logcumsumexp_infer(const proa_logcumsumexp_args *a, proa_logcumsumexp_metas *m)
{
    int axis;
    m->out = proa_meta_of(a->x);
    if (a->flatten) {
        m->out.ndim = 1;
        m->out.shape[0] = a->x->numel;
        return PROA_OK;
    }
    return proa__single_axis("logcumsumexp", "axis", a->axis, a->x->ndim, &axis);
}

proa_status logcumsumexp_vjp(const proa_logcumsumexp_args *a, proa_logcumsumexp_grads *g)
{
    g->d_x = proa_logcumsumexp_grad(a->x, a->out, g->d_out, .axis = rows_option(a->axis),
                                    .flatten = a->flatten, .exclusive = a->exclusive, .reverse = a->reverse);
    return proa_error();
}

proa_status logcumsumexp_grad_infer(const proa_logcumsumexp_grad_args *a, proa_logcumsumexp_grad_metas *m)
{
    static const char who[] = "logcumsumexp_grad";
    int axis;
    m->d_x = proa_meta_of(a->x);
    if (!rows_same_shape(a->out, a->d_out) || !rows_dims_agree(a->out->numel, a->x->numel) ||
        a->out->dtype != a->x->dtype || a->d_out->dtype != a->x->dtype)
        return OP_FAIL(who, INVALID_ARGUMENT, "d_out", "is %s and out %s; expected those of x, %s",
                       proa__tensor_text(a->d_out), proa__tensor_text(a->out), proa__tensor_text(a->x));
    return a->flatten ? PROA_OK : proa__axis(who, "axis", a->axis, a->x->ndim, &axis);
}
