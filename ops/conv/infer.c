/* Shape inference and argument checks of the convolution ops. May use core, kernels and ops. */
#include "ops/conv/geometry.h"
#include "ops/epilogue.h"

static proa_status check_bias(const char *op, const proa_tensor *bias, const proa_tensor *x,
                              int64_t n_channels)
{
    if (proa__absent(bias)) return PROA_OK;
    if (bias->dtype != x->dtype)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "bias", "is %s, but x is %s",
                             proa_dtype_name((proa_dtype)bias->dtype), proa_dtype_name((proa_dtype)x->dtype));
    if (bias->ndim == 1 && (bias->shape[0] == n_channels || bias->shape[0] < 0 || n_channels < 0))
        return PROA_OK;
    return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "bias",
                         "must be 1-D with one value for each of %lld output channels, got %s",
                         (long long)n_channels, proa__tensor_text(bias));
}

/* A gradient op's d_out must be what its forward op made. */
static proa_status check_d_out(const char *op, const proa_tensor *d_out, const conv_geometry *g,
                               const proa_tensor *x)
{
    proa_meta m;
    proa__conv_meta_out(g, (proa_dtype)x->dtype, &m);
    bool same = d_out->ndim == m.ndim && d_out->dtype == x->dtype;
    for (int i = 0; same && i < m.ndim; i++)
        same = d_out->shape[i] == m.shape[i] || d_out->shape[i] < 0 || m.shape[i] < 0;
    if (same) return PROA_OK;
    return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "d_out",
                         "must be %s%s as the convolution made it, got %s", proa_dtype_name(m.dtype),
                         proa__shape_text(m.shape, m.ndim), proa__tensor_text(d_out));
}

proa_status conv_infer(int rank, const proa_conv1d_args *a, proa_conv1d_metas *m)
{
    const char *op = PROA__OF_RANK(rank, "conv", "");
    conv_geometry g;
    PROA_TRY(proa__conv_geometry(&CONV_PARAMS(a, rank, op), &g));
    proa__conv_meta_out(&g, (proa_dtype)a->x->dtype, &m->out);
    return check_bias(op, a->bias, a->x, g.out_channels);
}

proa_status conv_transpose_infer(int rank, const proa_conv1d_transpose_args *a,
                                 proa_conv1d_transpose_metas *m)
{
    const char *op = PROA__OF_RANK(rank, "conv", "_transpose");
    conv_geometry g;
    PROA_TRY(proa__conv_geometry(&CONV_TRANSPOSE_PARAMS(a, rank, op), &g));
    proa__conv_meta_in(&g, (proa_dtype)a->x->dtype, &m->out);
    return check_bias(op, a->bias, a->x, g.in_channels);
}

proa_status conv_grad_input_infer(int rank, const proa_conv2d_grad_input_args *a,
                                  proa_conv2d_grad_input_metas *m)
{
    const char *op = PROA__OF_RANK(rank, "conv", "_grad_input");
    conv_geometry g;
    PROA_TRY(proa__conv_geometry(&CONV_PARAMS(a, rank, op), &g));
    m->d_x = proa_meta_of(a->x);
    return check_d_out(op, a->d_out, &g, a->x);
}

proa_status conv_grad_filter_infer(int rank, const proa_conv2d_grad_filter_args *a,
                                   proa_conv2d_grad_filter_metas *m)
{
    const char *op = PROA__OF_RANK(rank, "conv", "_grad_filter");
    conv_geometry g;
    PROA_TRY(proa__conv_geometry(&CONV_PARAMS(a, rank, op), &g));
    m->d_weight = proa_meta_of(a->weight);
    return check_d_out(op, a->d_out, &g, a->x);
}

proa_status conv2d_fused_infer(const proa_conv2d_fused_args *a, proa_conv2d_fused_metas *m)
{
    conv_geometry g;
    PROA_TRY(proa__conv_geometry(&CONV_PARAMS(a, 2, "conv2d_fused"), &g));
    proa__conv_meta_out(&g, (proa_dtype)a->x->dtype, &m->out);
    PROA_TRY(check_bias("conv2d_fused", a->bias, a->x, g.out_channels));
    return proa__epilogue_meta("conv2d_fused", &PROA__EPILOGUE(a), &m->out);
}
