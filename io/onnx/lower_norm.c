/* Lowerings of normalizations in evaluation mode. May use core, ops and io's own headers. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/onnx/lower.h"

#include "impl/norm.h"
#include "impl/reduce.h"
#include "ops/windows.h"

#include <math.h>

/* n times the same number. */
static onnx_value *repeated(onnx_graph *g, proa_dtype dtype, int64_t n, double v)
{
    double *at = onnx_alloc(g, (size_t)n, sizeof *at);
    for (int64_t i = 0; at && i < n; i++) at[i] = v;
    return at ? onnx_numbers(g, dtype, n, at) : NULL;
}

/* The value of an optional [n], or n times `otherwise`. */
static onnx_value *given_or(onnx_graph *g, const proa_tensor *t, proa_dtype dtype, int64_t n,
                            double otherwise)
{
    onnx_value *v = onnx_in(g, t);
    return v ? onnx_cast(g, v, dtype) : repeated(g, dtype, n, otherwise);
}

ONNX_LOWER(lower_batch_norm, batch_norm)
{
    if (!a->is_test && !a->use_global_stats) {
        onnx_refuse(g, "it normalizes by the batch's statistics: put the layer into evaluation mode");
        return;
    }
    onnx_value *x = onnx_in(g, a->x), *mean = onnx_in(g, a->running_mean),
               *variance = onnx_in(g, a->running_var);
    if (!x || !mean || !variance) return;
    bool last = proa__channels_last(a->data_format);
    proa_dtype dtype = mean->dtype; /* of the statistics: float32 for half types */
    int64_t n = a->running_mean->shape[0];
    x = onnx_cast(g, x, dtype);
    if (last) x = onnx_to_channels_first(g, x, a->x->ndim);
    onnx_value *weight = given_or(g, a->weight, dtype, n, 1), *bias = given_or(g, a->bias, dtype, n, 0);
    onnx_value *out =
        ONNX_NODE(g, "BatchNormalization", x, weight, bias, mean, onnx_cast(g, variance, dtype));
    onnx_put_float(g, out, "epsilon", a->epsilon);
    onnx_bind(g, a->out, last ? onnx_to_channels_last(g, out, a->out->ndim) : out);
    onnx_bind(g, a->mean_out, mean);
    onnx_bind(g, a->variance_out, variance);
}

/* x over its deviation, both from the mean along the axes from `first` on. */
static onnx_value *normalized(onnx_graph *g, onnx_value *x, int first, int ndim, double epsilon)
{
    int64_t axes[PROA_MAX_DIMS];
    for (int i = first; i < ndim; i++) axes[i - first] = i;
    onnx_value *centred = onnx_sub(g, x, onnx_reduce(g, "ReduceMean", x, ndim - first, axes, true));
    onnx_value *variance =
        onnx_reduce(g, "ReduceMean", onnx_mul(g, centred, centred), ndim - first, axes, true);
    return onnx_div(g, centred, ONNX_NODE(g, "Sqrt", onnx_add_to(g, variance, epsilon)));
}

ONNX_LOWER(lower_layer_norm, layer_norm)
{
    int first = (int)onnx_axis(a->begin_norm_axis, a->x->ndim), n = a->x->ndim - first;
    onnx_value *x = onnx_in(g, a->x), *weight = onnx_in(g, a->weight), *bias = onnx_in(g, a->bias);
    if (!x) return;
    if (onnx_is_read(g, a->mean) || onnx_is_read(g, a->variance))
        onnx_refuse(g, "its mean or variance is read");
    proa_dtype dtype = weight ? weight->dtype : x->dtype;
    if (n > 1 && weight) weight = onnx_reshape(g, weight, n, a->x->shape + first);
    if (n > 1 && bias) bias = onnx_reshape(g, bias, n, a->x->shape + first);
    x = onnx_cast(g, x, dtype);
    if (onnx_from(g, 17) && weight) {
        onnx_value *out = ONNX_NODE(g, "LayerNormalization", x, weight, bias);
        onnx_put_int(g, out, "axis", first);
        onnx_put_float(g, out, "epsilon", a->epsilon);
        onnx_bind(g, a->out, out);
        return;
    }
    onnx_value *out = normalized(g, x, first, a->x->ndim, a->epsilon);
    if (weight) out = onnx_mul(g, out, weight);
    onnx_bind(g, a->out, bias ? onnx_add(g, out, bias) : out);
}

/* A channel's weight for x with channels second: [C, 1, …]. */
static onnx_value *by_channel(onnx_graph *g, const proa_tensor *t, int ndim)
{
    int64_t shape[PROA_MAX_DIMS] = {t->shape[0]};
    for (int i = 1; i < ndim - 1; i++) shape[i] = 1;
    onnx_value *v = onnx_in(g, t);
    return ndim > 2 ? onnx_reshape(g, v, ndim - 1, shape) : v;
}

static bool given(const proa_tensor *t) { return t && !proa__absent(t); }

/* An instance normalization of [N, groups, …]. */
ONNX_LOWER(lower_group_norm, group_norm)
{
    bool last = proa__channels_last(a->data_format);
    int ndim = a->x->ndim;
    int64_t shape[PROA_MAX_DIMS];
    onnx_value *x = onnx_in(g, a->x);
    if (!x) return;
    if (onnx_is_read(g, a->mean) || onnx_is_read(g, a->variance))
        onnx_refuse(g, "its mean or variance is read");
    const proa_dtype dtype = x->dtype;
    proa_tensor first = proa__shallow_copy(a->x); /* its shape with channels second */
    if (last) {
        x = onnx_to_channels_first(g, x, ndim);
        for (int i = 1; i < ndim; i++) first.shape[i] = a->x->shape[i == 1 ? ndim - 1 : i - 1];
    }
    onnx_value *one = repeated(g, dtype, a->num_groups, 1), *zero = repeated(g, dtype, a->num_groups, 0);
    onnx_value *out =
        ONNX_NODE(g, "InstanceNormalization", ONNX_RESHAPE(g, x, 0, a->num_groups, -1), one, zero);
    onnx_put_float(g, out, "epsilon", a->epsilon);
    for (int i = 0; i < ndim; i++) shape[i] = ~(int64_t)i;
    out = onnx_reshape_by(g, out, &first, x, ndim, shape);
    if (given(a->weight)) out = onnx_mul(g, out, by_channel(g, a->weight, ndim));
    if (given(a->bias)) out = onnx_add(g, out, by_channel(g, a->bias, ndim));
    onnx_bind(g, a->out, last ? onnx_to_channels_last(g, out, ndim) : out);
}

ONNX_LOWER(lower_instance_norm, instance_norm)
{
    onnx_value *x = onnx_in(g, a->x);
    int64_t n = a->x->shape[1];
    if (!x) return;
    if (n < 0) {
        onnx_refuse(g, "the number of channels must be known");
        return;
    }
    onnx_value *out = ONNX_NODE(g, "InstanceNormalization", x, given_or(g, a->weight, x->dtype, n, 1),
                                given_or(g, a->bias, x->dtype, n, 0));
    onnx_put_float(g, out, "epsilon", a->epsilon);
    onnx_bind(g, a->out, out);
}

/* (Σ|x|^p)^(1/p): Reduce nodes for p = 1, 2 and ±∞, and the count of what is not 0 for p = 0. */
ONNX_LOWER(lower_p_norm, p_norm)
{
    const int64_t axis = onnx_axis(a->axis, a->x->ndim), n = a->asvector ? 0 : 1;
    const bool keep = a->keepdim;
    const double p = a->porder;
    onnx_value *x = onnx_operand(g, onnx_in(g, a->x), 0), *out;
    if (!x) return;
    if (p == 1) out = onnx_reduce(g, "ReduceL1", x, n, &axis, keep);
    else if (p == 2) out = onnx_reduce(g, "ReduceL2", x, n, &axis, keep);
    else if (isinf(p))
        out = onnx_reduce(g, p > 0 ? "ReduceMax" : "ReduceMin", ONNX_NODE(g, "Abs", x), n, &axis, keep);
    else if (p == 0) {
        onnx_value *other = onnx_not(g, onnx_equal(g, x, onnx_number(g, x->dtype, 0)));
        out = onnx_reduce(g, "ReduceSum", onnx_cast(g, other, x->dtype), n, &axis, keep);
    } else {
        onnx_value *power = ONNX_NODE(g, "Pow", ONNX_NODE(g, "Abs", x), onnx_number(g, x->dtype, p));
        out = ONNX_NODE(g, "Pow", onnx_reduce(g, "ReduceSum", power, n, &axis, keep),
                        onnx_number(g, x->dtype, 1 / p));
    }
    onnx_bind(g, a->out, out);
}

const onnx_rule onnx_rules_norm[] = {
    {"batch_norm", lower_batch_norm, NULL, 0, 0}, {"layer_norm", lower_layer_norm, NULL, 0, 0},
    {"group_norm", lower_group_norm, NULL, 0, 0}, {"instance_norm", lower_instance_norm, NULL, 0, 0},
    {"p_norm", lower_p_norm, NULL, 0, 0},         {0},
};

#else
typedef int proa__no_onnx_norm; /* C wants a declaration in every file */
#endif
