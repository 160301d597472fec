/* Shape inference and argument checks of the convolution ops. May use core, kernels and ops. */
#include "ops/conv/geometry.h"
#include "ops/epilogue.h"

proa_status conv_infer(int rank, const proa_conv1d_args *a, proa_conv1d_metas *m)
{
    const conv_params p = CONV_PARAMS_OF(a, rank, "");
    conv_geometry g;
    PROA_TRY(proa__conv_geometry(&p, &g));
    proa__conv_meta_out(&g, (proa_dtype)a->x->dtype, &m->out);
    return proa__conv_check_bias(p.op, "bias", a->bias, a->x, g.out_channels);
}

proa_status conv_transpose_infer(int rank, const proa_conv1d_transpose_args *a,
                                 proa_conv1d_transpose_metas *m)
{
    const conv_params p = CONV_TRANSPOSE_PARAMS(a, rank);
    conv_geometry g;
    PROA_TRY(proa__conv_geometry(&p, &g));
    proa__conv_meta_in(&g, (proa_dtype)a->x->dtype, &m->out);
    return proa__conv_check_bias(p.op, "bias", a->bias, a->x, g.in_channels);
}

/* A gradient op's d_out must be what its forward op made. */
static proa_status check_d_out(const conv_params *p, const proa_tensor *d_out)
{
    conv_geometry g;
    proa_meta made;
    PROA_TRY(proa__conv_geometry(p, &g));
    proa__conv_meta_out(&g, (proa_dtype)p->x->dtype, &made);
    return proa__conv_check_made(p->op, "d_out", d_out, &made, "the convolution");
}

proa_status conv_grad_input_infer(int rank, const proa_conv2d_grad_input_args *a,
                                  proa_conv2d_grad_input_metas *m)
{
    m->d_x = proa_meta_of(a->x);
    return check_d_out(&CONV_PARAMS_OF(a, rank, "_grad_input"), a->d_out);
}

proa_status conv_grad_filter_infer(int rank, const proa_conv2d_grad_filter_args *a,
                                   proa_conv2d_grad_filter_metas *m)
{
    m->d_weight = proa_meta_of(a->weight);
    return check_d_out(&CONV_PARAMS_OF(a, rank, "_grad_filter"), a->d_out);
}

proa_status conv2d_fused_infer(const proa_conv2d_fused_args *a, proa_conv2d_fused_metas *m)
{
    conv_geometry g;
    PROA_TRY(proa__conv_geometry(&CONV_PARAMS(a, 2, "conv2d_fused"), &g));
    proa__conv_meta_out(&g, (proa_dtype)a->x->dtype, &m->out);
    PROA_TRY(proa__conv_check_bias("conv2d_fused", "bias", a->bias, a->x, g.out_channels));
    return proa__epilogue_meta("conv2d_fused", &PROA__EPILOGUE(a), &m->out);
}
