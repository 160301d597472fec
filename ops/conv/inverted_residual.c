/* Sizes and shape inference of inverted_residual (fused 1×1, depthwise and 1×1 convolutions). May use core
 * only. */
#include "ops/conv/inverted_residual.h"

#include "ops/epilogue.h"

#define FAIL(argument, ...) \
    proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op("inverted_residual"), argument, __VA_ARGS__)

/* A filter is [out, in a group, height, width]; in, out: −1 where any number will do. */
static proa_status check_filter(const char *name, const proa_tensor *w, proa_dtype dtype, int64_t out,
                                int64_t in, bool pointwise)
{
    if ((proa_dtype)w->dtype != dtype)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op("inverted_residual"), name,
                             "is %s, but x is %s; convert one with proa_cast",
                             proa_dtype_name((proa_dtype)w->dtype), proa_dtype_name(dtype));
    if (w->ndim != 4) return FAIL(name, "must have 4 dims, got %s", proa__tensor_text(w));
    for (int i = 0; i < 4; i++)
        if (w->shape[i] < 1)
            return FAIL(name, "must have elements and known sizes, got %s", proa__tensor_text(w));
    if (out >= 0 && w->shape[0] != out)
        return FAIL(name, "must have %lld in its first dim, got %s", (long long)out, proa__tensor_text(w));
    if (in >= 0 && w->shape[1] != in)
        return FAIL(name, "must have %lld in its second dim, got %s", (long long)in, proa__tensor_text(w));
    if (pointwise && (w->shape[2] != 1 || w->shape[3] != 1))
        return FAIL(name, "must have a height and width of 1, got %s", proa__tensor_text(w));
    return PROA_OK;
}

/* Infers one of the three convolutions: fills g, and `to` with its result's shape, for the next one. */
static proa_status step(const proa_tensor *x, const proa_tensor *filter, const conv_params *attributes,
                        conv_geometry *g, proa_tensor *result)
{
    conv_params p = *attributes;
    p.op = "inverted_residual", p.dims = 2, p.x = x, p.weight = filter, p.format = PROA_DATA_FORMAT_NHWC;
    PROA_TRY(proa__conv_geometry(&p, g));
    proa_meta m;
    proa__conv_meta_out(g, (proa_dtype)x->dtype, &m);
    *result = (proa_tensor){.dtype = x->dtype, .ndim = m.ndim};
    memcpy(result->shape, m.shape, 4 * sizeof *m.shape);
    return PROA_OK;
}

proa_status proa__inverted_geometry(const proa_inverted_residual_args *a, inverted_geometry *g)
{
    proa_dtype dtype = (proa_dtype)a->x->dtype;
    if (a->x->ndim != 4)
        return FAIL("x", "must have 4 dims (batch, height, width, channels), got %s",
                    proa__tensor_text(a->x));
    PROA_TRY(check_filter("depthwise", a->depthwise, dtype, -1, 1, false));
    int64_t wide = a->depthwise->shape[0];
    g->expands = !proa__absent(a->expand);
    if (g->expands) PROA_TRY(check_filter("expand", a->expand, dtype, wide, a->x->shape[3], true));
    PROA_TRY(check_filter("project", a->project, dtype, -1, wide, true));
    proa_tensor made[3];
    const proa_tensor *x = a->x;
    conv_params plain = {.groups = 1, .algorithm = PROA_PADDING_ALGORITHM_EXPLICIT};
    const int64_t none[] = {0, 0}, ones[] = {1, 1};
    plain.padding = (proa_ints){.count = 2, .at = none};
    plain.stride = plain.dilation = (proa_ints){.count = 2, .at = ones};
    conv_params own = plain;
    own.stride = a->stride, own.padding = a->padding, own.groups = wide;
    if (g->expands) {
        PROA_TRY(step(x, a->expand, &plain, &g->expand, &made[0]));
        x = &made[0];
    }
    PROA_TRY(step(x, a->depthwise, &own, &g->depthwise, &made[1]));
    return step(&made[1], a->project, &plain, &g->project, &made[2]);
}

static proa_status check_bias(const char *name, const proa_tensor *bias, const proa_inverted_residual_args *a,
                              const proa_tensor *filter)
{
    return proa__conv_check_bias("inverted_residual", name, bias, a->x, filter->shape[0]);
}

proa_status inverted_residual_infer(const proa_inverted_residual_args *a, proa_inverted_residual_metas *m)
{
    inverted_geometry g;
    PROA_TRY(proa__inverted_geometry(a, &g));
    if (g.expands) PROA_TRY(check_bias("expand_bias", a->expand_bias, a, a->expand));
    PROA_TRY(check_bias("depthwise_bias", a->depthwise_bias, a, a->depthwise));
    PROA_TRY(check_bias("project_bias", a->project_bias, a, a->project));
    proa__conv_meta_out(&g.project, (proa_dtype)a->x->dtype, &m->out);
    return proa__epilogue_meta("inverted_residual", &(proa__epilogue){.residual = a->residual}, &m->out);
}
