/* Lowerings of activation functions. May use core, ops and io's own headers. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/onnx/lower.h"

#include "impl/dropout.h"
#include "impl/elementwise.h"
#include "impl/softmax.h"
#include "impl/vision.h"
#include "ops/windows.h"

#include <math.h>

/* x where condition holds, else 0: without Where, which came with opset 9. */
static onnx_value *only_where(onnx_graph *g, onnx_value *x, onnx_value *condition)
{
    return x ? onnx_mul(g, x, onnx_cast(g, condition, x->dtype)) : NULL;
}

static onnx_value *with_alpha(onnx_graph *g, const char *type, onnx_value *x, double alpha)
{
    onnx_value *y = ONNX_NODE(g, type, x);
    onnx_put_float(g, y, "alpha", alpha);
    return y;
}

ONNX_LOWER(lower_relu6, relu6)
{
    const double low = 0, high = 6;
    onnx_bind(g, a->out, onnx_clip(g, onnx_operand(g, onnx_in(g, a->x), 0), &low, &high));
}

ONNX_LOWER(lower_hardtanh, hardtanh)
{
    onnx_bind(g, a->out, onnx_clip(g, onnx_in(g, a->x), &a->min, &a->max));
}

/* log σ(x) = −softplus(−x), which does not overflow. */
ONNX_LOWER(lower_logsigmoid, logsigmoid)
{
    onnx_value *x = ONNX_NODE(g, "Neg", onnx_in(g, a->x));
    onnx_bind(g, a->out, ONNX_NODE(g, "Neg", ONNX_NODE(g, "Softplus", x)));
}

ONNX_LOWER(lower_leaky_relu, leaky_relu)
{
    onnx_bind(g, a->out, with_alpha(g, "LeakyRelu", onnx_in(g, a->x), a->negative_slope));
}

ONNX_LOWER(lower_elu, elu) { onnx_bind(g, a->out, with_alpha(g, "Elu", onnx_in(g, a->x), a->alpha)); }

ONNX_LOWER(lower_selu, selu)
{
    onnx_value *y = with_alpha(g, "Selu", onnx_in(g, a->x), a->alpha);
    onnx_put_float(g, y, "gamma", a->scale);
    onnx_bind(g, a->out, y);
}

/* max(x, 0) + min(α(e^(x/α) − 1), 0): for α > 0 α times an ELU of x / α; otherwise the second part is a
 * −relu. */
ONNX_LOWER(lower_celu, celu)
{
    onnx_value *x = onnx_in(g, a->x), *part = onnx_mul_by(g, x, 1 / a->alpha);
    if (a->alpha > 0) {
        onnx_bind(g, a->out, onnx_mul_by(g, with_alpha(g, "Elu", part, 1), a->alpha));
        return;
    }
    part = onnx_mul_by(g, onnx_add_to(g, ONNX_NODE(g, "Exp", part), -1), -a->alpha);
    onnx_bind(g, a->out, onnx_sub(g, ONNX_NODE(g, "Relu", x), ONNX_NODE(g, "Relu", part)));
}

static onnx_value *gelu(onnx_graph *g, onnx_value *x, bool approximate)
{
    if (onnx_from(g, 20)) {
        onnx_value *y = ONNX_NODE(g, "Gelu", x);
        onnx_put_text(g, y, "approximate", approximate ? "tanh" : "none");
        return y;
    }
    onnx_value *inner;
    if (approximate) {
        onnx_value *cube = onnx_mul_by(g, onnx_mul(g, onnx_mul(g, x, x), x), 0.044715);
        inner = ONNX_NODE(g, "Tanh", onnx_mul_by(g, onnx_add(g, x, cube), sqrt(2 / 3.14159265358979323846)));
    } else {
        if (onnx_needs(g, 9)) return NULL;
        inner = ONNX_NODE(g, "Erf", onnx_mul_by(g, x, sqrt(0.5)));
    }
    return onnx_mul(g, onnx_mul_by(g, x, 0.5), onnx_add_to(g, inner, 1));
}

ONNX_LOWER(lower_gelu, gelu) { onnx_bind(g, a->out, gelu(g, onnx_in(g, a->x), a->approximate)); }

static void lower_silu(onnx_graph *g, const onnx_call *c)
{
    onnx_value *x = onnx_input(g, c, 0);
    onnx_bind(g, onnx_result(c), onnx_mul(g, x, ONNX_NODE(g, "Sigmoid", x)));
}

/* softplus(βx) / β; x itself where βx is above the threshold. */
static onnx_value *softplus(onnx_graph *g, onnx_value *x, double beta, double threshold)
{
    onnx_value *scaled = beta == 1 ? x : onnx_mul_by(g, x, beta), *y = ONNX_NODE(g, "Softplus", scaled);
    if (!x) return NULL;
    if (beta != 1) y = onnx_mul_by(g, y, 1 / beta);
    bool same = threshold >= (x->dtype == PROA_F64 ? 37 : 17); /* there softplus is x in all digits */
    return same ? y
                : onnx_where(g, onnx_test(g, "Greater", scaled, onnx_number(g, x->dtype, threshold)), x, y);
}

ONNX_LOWER(lower_softplus, softplus)
{
    onnx_bind(g, a->out, softplus(g, onnx_in(g, a->x), a->beta, a->threshold));
}

ONNX_LOWER(lower_mish, mish)
{
    onnx_value *x = onnx_in(g, a->x);
    onnx_bind(g, a->out, onnx_mul(g, x, ONNX_NODE(g, "Tanh", softplus(g, x, 1, a->threshold))));
}

static onnx_value *hard_sigmoid(onnx_graph *g, onnx_value *x, double slope, double offset)
{
    onnx_value *y = with_alpha(g, "HardSigmoid", x, slope);
    onnx_put_float(g, y, "beta", offset);
    return y;
}

ONNX_LOWER(lower_hardsigmoid, hardsigmoid)
{
    onnx_bind(g, a->out, hard_sigmoid(g, onnx_in(g, a->x), a->slope, a->offset));
}

ONNX_LOWER(lower_hardswish, hardswish)
{
    onnx_value *x = onnx_in(g, a->x);
    if (onnx_from(g, 14)) onnx_bind(g, a->out, ONNX_NODE(g, "HardSwish", x));
    else onnx_bind(g, a->out, onnx_mul(g, x, hard_sigmoid(g, x, 1.0 / 6, 0.5)));
}

ONNX_LOWER(lower_hardshrink, hardshrink)
{
    onnx_value *x = onnx_in(g, a->x);
    if (!x) return;
    onnx_value *far = onnx_test(g, "Greater", ONNX_NODE(g, "Abs", x), onnx_number(g, x->dtype, a->threshold));
    onnx_bind(g, a->out, only_where(g, x, far));
}

ONNX_LOWER(lower_softshrink, softshrink)
{
    onnx_value *x = onnx_in(g, a->x);
    double low = -a->threshold;
    onnx_bind(g, a->out, onnx_sub(g, x, onnx_clip(g, x, &low, &a->threshold)));
}

ONNX_LOWER(lower_tanhshrink, tanhshrink)
{
    onnx_value *x = onnx_in(g, a->x);
    onnx_bind(g, a->out, onnx_sub(g, x, ONNX_NODE(g, "Tanh", x)));
}

ONNX_LOWER(lower_thresholded_relu, thresholded_relu)
{
    onnx_value *x = onnx_in(g, a->x);
    if (!x) return;
    if (onnx_from(g, 10)) onnx_bind(g, a->out, with_alpha(g, "ThresholdedRelu", x, a->threshold));
    else
        onnx_bind(g, a->out,
                  only_where(g, x, onnx_test(g, "Greater", x, onnx_number(g, x->dtype, a->threshold))));
}

/* The slope is broadcast from the right: channels second want it as [C, 1, …]. */
ONNX_LOWER(lower_prelu, prelu)
{
    onnx_value *slope = onnx_in(g, a->alpha);
    int64_t shape[PROA_MAX_DIMS];
    int n = a->x->ndim - 1;
    for (int i = 0; i < n; i++) shape[i] = i ? 1 : a->alpha->numel;
    bool first = a->mode == PROA_PRELU_MODE_CHANNEL && !proa__channels_last(a->data_format);
    if (first && n > 1) slope = onnx_reshape(g, slope, n, shape);
    else if (a->mode == PROA_PRELU_MODE_CHANNEL || a->alpha->ndim > a->x->ndim)
        slope = ONNX_RESHAPE(g, slope, -1);
    onnx_bind(g, a->out, ONNX_NODE(g, "PRelu", onnx_in(g, a->x), slope));
}

ONNX_LOWER(lower_maxout, maxout)
{
    int ndim = a->x->ndim, axis = (int)onnx_axis(a->axis, ndim), n = 0;
    int64_t dims[ONNX_MAX_DIMS], over = axis + 1;
    if (a->x->shape[axis] < 0) {
        onnx_refuse(g, "the number of channels must be known");
        return;
    }
    for (int i = 0; i < ndim; i++) {
        if (i != axis) dims[n++] = ~(int64_t)i;
        else dims[n++] = a->x->shape[axis] / a->groups, dims[n++] = a->groups;
    }
    onnx_value *x = onnx_in(g, a->x);
    onnx_bind(g, a->out,
              onnx_reduce(g, "ReduceMax", onnx_reshape_by(g, x, a->x, x, n, dims), 1, &over, false));
}

ONNX_LOWER(lower_softmax, softmax)
{
    onnx_bind(g, a->out, onnx_softmax(g, c->rule->node, onnx_in(g, a->x), a->x->ndim, a->axis));
}

/* Evaluation: x itself, or times what training keeps. */
ONNX_LOWER(lower_dropout, dropout)
{
    onnx_value *x = onnx_in(g, a->x);
    if (onnx_is_read(g, a->mask)) onnx_refuse(g, "its mask is read, which only training has");
    onnx_bind(g, a->out, a->mode == PROA_DROPOUT_MODE_DOWNSCALE_IN_INFER ? onnx_mul_by(g, x, 1 - a->p) : x);
}

#define NODE(op, type, whole)               \
    {                                       \
        op, onnx_lower_node, type, 0, whole \
    }
const onnx_rule onnx_rules_activation[] = {
    NODE("relu", "Relu", 14),
    NODE("sigmoid", "Sigmoid", 0),
    NODE("softsign", "Softsign", 0),
    {"relu6", lower_relu6, NULL, 0, 0},
    {"hardtanh", lower_hardtanh, NULL, 0, 0},
    {"logsigmoid", lower_logsigmoid, NULL, 0, 0},
    {"leaky_relu", lower_leaky_relu, NULL, 0, 0},
    {"elu", lower_elu, NULL, 0, 0},
    {"selu", lower_selu, NULL, 0, 0},
    {"celu", lower_celu, NULL, 0, 0},
    {"gelu", lower_gelu, NULL, 0, 0},
    {"silu", lower_silu, NULL, 0, 0},
    {"swish", lower_silu, NULL, 0, 0},
    {"softplus", lower_softplus, NULL, 0, 0},
    {"mish", lower_mish, NULL, 0, 0},
    {"hardsigmoid", lower_hardsigmoid, NULL, 0, 0},
    {"hardswish", lower_hardswish, NULL, 0, 0},
    {"hardshrink", lower_hardshrink, NULL, 0, 0},
    {"softshrink", lower_softshrink, NULL, 0, 0},
    {"tanhshrink", lower_tanhshrink, NULL, 0, 0},
    {"thresholded_relu", lower_thresholded_relu, NULL, 0, 0},
    {"prelu", lower_prelu, NULL, 0, 0},
    {"maxout", lower_maxout, NULL, 0, 0},
    {"softmax", lower_softmax, "Softmax", 0, 0},
    {"log_softmax", lower_softmax, "LogSoftmax", 0, 0},
    {"dropout", lower_dropout, NULL, 0, 0},
    {0},
};

#else
typedef int proa__no_onnx_activation; /* C wants a declaration in every file */
#endif
