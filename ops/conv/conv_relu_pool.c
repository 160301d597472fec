/* Shape and dtype inference of conv2d_pooled (fused convolution + ReLU + max pooling) and of its gradients.
 * May use core and helpers of ops/. */
#include "ops/conv/conv_relu_pool.h"

const int64_t proa__pooled_ones[2] = {1, 1};

proa_status proa__pooled_geometry(const char *op, const proa_tensor *x, const proa_tensor *weight,
                                  const proa_ints *padding, const proa_ints *kernel_size, pooled_geometry *p)
{
    const conv_params params = {.op = op,
                                .dims = 2,
                                .x = x,
                                .weight = weight,
                                .stride = POOLED_ONES,
                                .padding = *padding,
                                .dilation = POOLED_ONES,
                                .groups = 1,
                                .algorithm = PROA_PADDING_ALGORITHM_EXPLICIT,
                                .format = PROA_DATA_FORMAT_NCHW};
    int64_t window[3] = {1, 1, 1};
    PROA_TRY(proa__conv_geometry(&params, &p->g));
    PROA_TRY(proa__window_values(op, "kernel_size", kernel_size, 2, 1, window));
    for (int i = 0; i < 2; i++) {
        int64_t size = p->g.out[i + 1];
        p->window[i] = window[i + 1];
        p->out[i] = size < 0 ? -1 : size / window[i + 1];
        if (p->out[i] == 0)
            return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "kernel_size",
                                 "has windows of %lld, but the convolution has %lld results that way",
                                 (long long)window[i + 1], (long long)size);
    }
    if (p->g.out[1] > 0 && p->g.out[2] > INT32_MAX / p->g.out[1])
        return proa__op_fail(PROA_ERR_OVERFLOW, proa_find_op(op), "x",
                             "has planes of more than 2^31 elements, too many for int32 places");
    return PROA_OK;
}

static proa_meta pooled_meta(const pooled_geometry *p, proa_dtype dtype)
{
    proa_meta m;
    proa__conv_meta_out(&p->g, dtype, &m);
    m.shape[2] = p->out[0], m.shape[3] = p->out[1];
    return m;
}

proa_status conv2d_pooled_infer(const proa_conv2d_pooled_args *a, proa_conv2d_pooled_metas *m)
{
    pooled_geometry p;
    PROA_TRY(POOLED_GEOMETRY("conv2d_pooled", a, &p));
    m->out = pooled_meta(&p, (proa_dtype)a->x->dtype);
    m->place = pooled_meta(&p, PROA_I32);
    return proa__conv_check_bias("conv2d_pooled", "bias", a->bias, a->x, p.g.out_channels);
}

/* Checks what the forward op made, and its gradient. */
static proa_status check_grad(const char *op, const pooled_geometry *p, const proa_tensor *x,
                              const proa_tensor *made, const proa_tensor *place, const proa_tensor *d_out)
{
    const proa_meta out = pooled_meta(p, (proa_dtype)x->dtype), places = pooled_meta(p, PROA_I32);
    PROA_TRY(proa__conv_check_made(op, "out", made, &out, "conv2d_pooled"));
    PROA_TRY(proa__conv_check_made(op, "place", place, &places, "conv2d_pooled"));
    return proa__conv_check_made(op, "d_out", d_out, &out, "conv2d_pooled");
}

proa_status conv2d_pooled_grad_input_infer(const proa_conv2d_pooled_grad_input_args *a,
                                           proa_conv2d_pooled_grad_input_metas *m)
{
    pooled_geometry p;
    PROA_TRY(POOLED_GEOMETRY("conv2d_pooled_grad_input", a, &p));
    m->d_x = proa_meta_of(a->x);
    return check_grad("conv2d_pooled_grad_input", &p, a->x, a->out, a->place, a->d_out);
}

proa_status conv2d_pooled_grad_filter_infer(const proa_conv2d_pooled_grad_filter_args *a,
                                            proa_conv2d_pooled_grad_filter_metas *m)
{
    pooled_geometry p;
    PROA_TRY(POOLED_GEOMETRY("conv2d_pooled_grad_filter", a, &p));
    m->d_weight = proa_meta_of(a->weight);
    m->d_bias = (proa_meta){.dtype = (proa_dtype)a->x->dtype, .ndim = 1, .shape = {p.g.out_channels}};
    return check_grad("conv2d_pooled_grad_filter", &p, a->x, a->out, a->place, a->d_out);
}
