/* Shapes and rules of clipping by norm. May use core, kernels and public ops. */
#include "impl/clip.h"
#include "impl/elementwise.h"
#include "impl/shape.h"

#include "kernels/rowwise.h"

proa_status squared_l2_norm_infer(const proa_squared_l2_norm_args *a, proa_squared_l2_norm_metas *m)
{
    m->out = (proa_meta){.dtype = (proa_dtype)a->x->dtype, .ndim = 1, .shape = {1}};
    return PROA_OK;
}

/* d_x = 2 · x · d_out */
proa_status squared_l2_norm_vjp(const proa_squared_l2_norm_args *a, proa_squared_l2_norm_grads *g)
{
    if (g->want_x) {
        proa_tensor *d = proa_reshape(proa_scale(g->d_out, .scale = PROA_SCALAR(2.0)), PROA_SCALAR_SHAPE);
        g->d_x = proa_multiply(a->x, d);
    }
    return proa_error();
}

static proa_status floating(const char *op, proa_tensors xs)
{
    for (int64_t i = 0; i < xs.count; i++)
        if (!rows_is_floating(xs.at[i]->dtype))
            return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "xs",
                                 "entry %lld is %s; expected floating", (long long)i,
                                 proa__tensor_text(xs.at[i]));
    return PROA_OK;
}

proa_status global_squared_norm_infer(const proa_global_squared_norm_args *a,
                                      proa_global_squared_norm_metas *m)
{
    m->out = (proa_meta){.dtype = PROA_F32, .ndim = 1, .shape = {1}};
    for (int64_t i = 0; i < a->xs.count; i++)
        if (a->xs.at[i]->dtype == PROA_F64) m->out.dtype = PROA_F64;
    return floating("global_squared_norm", a->xs);
}

proa_status clip_by_global_norm_infer(const proa_clip_by_global_norm_args *a,
                                      proa_clip_by_global_norm_metas *m)
{
    PROA_TRY(floating("clip_by_global_norm", a->xs));
    if (!rows_is_floating(a->squared_norm->dtype) || !rows_dims_agree(a->squared_norm->numel, 1))
        return ROWS_FAIL(clip_by_global_norm, INVALID_ARGUMENT, "squared_norm",
                         "is %s; expected one floating number", proa__tensor_text(a->squared_norm));
    PROA_TRY(proa_metas_resize(&m->xs_out, a->xs.count));
    for (int64_t i = 0; i < a->xs.count; i++) {
        if (a->xs.at[i]->flags & PROA_T_STRIDED)
            return ROWS_FAIL(clip_by_global_norm, INVALID_ARGUMENT, "xs",
                             "entry %lld is a strided view; expected whole tensors", (long long)i);
        m->xs_out.at[i] = proa_meta_of(a->xs.at[i]);
    }
    return PROA_OK;
}
