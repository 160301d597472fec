/* Sizes and shape inference of inverted_residual (fused 1×1, depthwise and 1×1 convolutions). May use core
 * only. */
#include "ops/conv/inverted_residual.h"

#include "core/run.h"
#include "ops/epilogue.h"

#define FAIL(argument, ...) \
    proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op("inverted_residual"), argument, __VA_ARGS__)

/* want: the filter's shape [out, in of a group, height, width], 0 or less where any known size will do. */
static proa_status check_filter(const char *name, const proa_tensor *w, const proa_tensor *x,
                                const int64_t *want)
{
    if (w->dtype != x->dtype) return proa__same_dtype(proa_find_op("inverted_residual"), name, w, x);
    bool fits = w->ndim == 4;
    for (int i = 0; i < 4 && fits; i++) fits = want[i] > 0 ? w->shape[i] == want[i] : w->shape[i] > 0;
    if (fits) return PROA_OK;
    return FAIL(name, "must have known sizes, and shape %s where that is positive, got %s",
                proa__shape_text(want, 4), proa__tensor_text(w));
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
    if (a->x->ndim != 4)
        return FAIL("x", "must have 4 dims (batch, height, width, channels), got %s",
                    proa__tensor_text(a->x));
    PROA_TRY(check_filter("depthwise", a->depthwise, a->x, (int64_t[]){0, 1, 0, 0}));
    int64_t wide = a->depthwise->shape[0];
    g->expands = !proa__absent(a->expand);
    if (g->expands)
        PROA_TRY(check_filter("expand", a->expand, a->x, (int64_t[]){wide, a->x->shape[3], 1, 1}));
    PROA_TRY(check_filter("project", a->project, a->x, (int64_t[]){0, wide, 1, 1}));
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
