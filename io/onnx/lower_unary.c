/* Lowerings of unary math, rounding and tests of numbers. May use core, ops and io's own headers. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/onnx/lower.h"

#include "impl/elementwise.h"

#include <float.h>
#include <math.h>

/* ---- operands --------------------------------------------------------------------------- */

bool onnx_is_float(proa_dtype dtype) { return dtype >= PROA_F16 && dtype < PROA_C64; }

onnx_value *onnx_operand(onnx_graph *g, onnx_value *x, int whole)
{
    if (!x || onnx_is_float(x->dtype)) return x;
    if (x->dtype >= PROA_C64) return onnx_refuse(g, "ONNX has no complex numbers");
    if (!whole || !onnx_from(g, whole)) return onnx_cast(g, x, PROA_F64);
    return onnx_cast(g, x, x->dtype == PROA_I64 ? PROA_I64 : PROA_I32);
}

onnx_value *onnx_input(onnx_graph *g, const onnx_call *c, int i)
{
    return onnx_in(g, *proa_field_tensor(&c->op->fields[i], c->args));
}

static onnx_value *node_of_call(onnx_graph *g, const onnx_call *c)
{
    onnx_value *in[4];
    int n = 0;
    for (int i = 0; i < c->op->n_in && n < 4; i++)
        in[n++] = onnx_operand(g, onnx_input(g, c, i), c->rule->whole);
    proa_dtype result =
        (proa_dtype)onnx_result(c)->dtype; /* float32 of integers, for functions that have floats alone */
    if (!c->rule->whole && result == PROA_F32) in[0] = onnx_cast(g, in[0], result);
    for (int i = 1; i < n; i++) in[i] = in[0] ? onnx_cast(g, in[i], in[0]->dtype) : NULL;
    return onnx_node_of(g, c->rule->node, n, in);
}

const proa_tensor *onnx_result(const onnx_call *c)
{
    return *proa_field_tensor(&c->op->fields[c->op->n_in + c->op->n_attr], c->args);
}

void onnx_lower_node(onnx_graph *g, const onnx_call *c) { onnx_bind(g, onnx_result(c), node_of_call(g, c)); }

void onnx_lower_test(onnx_graph *g, const onnx_call *c)
{
    onnx_bind(g, onnx_result(c), onnx_typed(node_of_call(g, c), PROA_BOOL));
}

void onnx_lower_same(onnx_graph *g, const onnx_call *c) { onnx_bind(g, onnx_result(c), onnx_input(g, c, 0)); }

/* The first input of a unary op. */
static onnx_value *operand_of(onnx_graph *g, const onnx_call *c)
{
    return onnx_operand(g, onnx_input(g, c, 0), c->rule->whole);
}

/* ---- compositions ------------------------------------------------------------------------ */

static void lower_sign(onnx_graph *g, const onnx_call *c)
{
    onnx_bind(g, onnx_result(c), onnx_sign(g, operand_of(g, c)));
}

static void lower_square(onnx_graph *g, const onnx_call *c)
{
    onnx_value *x = operand_of(g, c);
    onnx_bind(g, onnx_result(c), onnx_mul(g, x, x));
}

static void lower_rsqrt(onnx_graph *g, const onnx_call *c)
{
    onnx_bind(g, onnx_result(c), ONNX_NODE(g, "Reciprocal", ONNX_NODE(g, "Sqrt", operand_of(g, c))));
}

static void lower_expm1(onnx_graph *g, const onnx_call *c)
{
    onnx_bind(g, onnx_result(c), onnx_add_to(g, ONNX_NODE(g, "Exp", operand_of(g, c)), -1));
}

static void lower_log1p(onnx_graph *g, const onnx_call *c)
{
    onnx_bind(g, onnx_result(c), ONNX_NODE(g, "Log", onnx_add_to(g, operand_of(g, c), 1)));
}

static void lower_log2(onnx_graph *g, const onnx_call *c)
{
    onnx_bind(g, onnx_result(c), onnx_mul_by(g, ONNX_NODE(g, "Log", operand_of(g, c)), 1 / log(2.0)));
}

static void lower_log10(onnx_graph *g, const onnx_call *c)
{
    onnx_bind(g, onnx_result(c), onnx_mul_by(g, ONNX_NODE(g, "Log", operand_of(g, c)), 1 / log(10.0)));
}

static void lower_trunc(onnx_graph *g, const onnx_call *c)
{
    onnx_value *x = operand_of(g, c);
    onnx_bind(g, onnx_result(c), onnx_mul(g, onnx_sign(g, x), ONNX_NODE(g, "Floor", ONNX_NODE(g, "Abs", x))));
}

/* ONNX's Round takes halves to the even neighbour, Paddle's away from zero. */
static void lower_round(onnx_graph *g, const onnx_call *c)
{
    onnx_value *x = operand_of(g, c), *size = ONNX_NODE(g, "Abs", x), *low = ONNX_NODE(g, "Floor", size);
    if (!x) return;
    onnx_value *below = onnx_test(g, "Less", onnx_sub(g, size, low), onnx_number(g, x->dtype, 0.5));
    onnx_value *up = onnx_cast(g, onnx_not(g, below), x->dtype);
    onnx_bind(g, onnx_result(c), onnx_mul(g, onnx_sign(g, x), onnx_add(g, low, up)));
}

static double largest(proa_dtype dtype)
{
    return dtype == PROA_F64    ? DBL_MAX
           : dtype == PROA_F16  ? 65504
           : dtype == PROA_BF16 ? 0x1.fep127
                                : (double)FLT_MAX;
}

static void lower_is_nan(onnx_graph *g, const onnx_call *c)
{
    onnx_bind(g, onnx_result(c), onnx_is_nan(g, operand_of(g, c)));
}

/* Infinity is above the greatest number, which no comparison with NaN says of NaN. */
static void lower_is_inf(onnx_graph *g, const onnx_call *c)
{
    onnx_value *x = operand_of(g, c);
    if (!x) return;
    onnx_value *most = onnx_number(g, x->dtype, largest(x->dtype));
    onnx_bind(g, onnx_result(c), onnx_test(g, "Greater", ONNX_NODE(g, "Abs", x), most));
}

static void lower_is_finite(onnx_graph *g, const onnx_call *c)
{
    onnx_value *x = operand_of(g, c);
    if (x)
        onnx_bind(g, onnx_result(c),
                  onnx_test(g, "Less", ONNX_NODE(g, "Abs", x), onnx_number(g, x->dtype, INFINITY)));
}

ONNX_LOWER(lower_logit, logit)
{
    onnx_value *x = onnx_in(g, a->x);
    double low = a->eps, high = 1 - a->eps;
    if (a->eps > 0) x = onnx_clip(g, x, &low, &high);
    if (!x) return;
    onnx_value *rest = onnx_sub(g, onnx_number(g, x->dtype, 1), x);
    onnx_bind(g, a->out, ONNX_NODE(g, "Log", onnx_div(g, x, rest)));
}

ONNX_LOWER(lower_stanh, stanh)
{
    onnx_value *x = ONNX_NODE(g, "Tanh", onnx_mul_by(g, onnx_in(g, a->x), a->scale_a));
    onnx_bind(g, a->out, onnx_mul_by(g, x, a->scale_b));
}

/* ---- with numbers -------------------------------------------------------------------------- */

ONNX_LOWER(lower_scale, scale)
{
    onnx_value *x = onnx_operand(g, onnx_in(g, a->x), 7);
    if (!x) return;
    bool once = a->scale.kind == PROA_SCALAR_NONE ||
                (a->scale.kind == PROA_SCALAR_FLOAT ? a->scale.f == 1
                                                    : a->scale.kind != PROA_SCALAR_TENSOR && a->scale.i == 1);
    bool whole = !onnx_is_float(x->dtype);
    onnx_value *bias = a->bias != 0 ? onnx_number(g, x->dtype, whole ? trunc(a->bias) : a->bias) : NULL;
    proa_scalar scale = a->scale;
    if (whole && scale.kind == PROA_SCALAR_FLOAT) scale.f = trunc(scale.f);
    if (bias && !a->bias_after_scale) x = onnx_add(g, x, bias);
    if (!once) x = onnx_mul(g, x, onnx_scalar(g, x->dtype, &scale));
    if (bias && a->bias_after_scale) x = onnx_add(g, x, bias);
    onnx_bind(g, a->out, x);
}

ONNX_LOWER(lower_clip, clip)
{
    bool low = a->min.kind != PROA_SCALAR_NONE, high = a->max.kind != PROA_SCALAR_NONE;
    onnx_value *x = onnx_operand(g, onnx_in(g, a->x), 12);
    if (!x) return;
    if (onnx_from(g, 11) || x->dtype == PROA_F64) {
        onnx_bind(g, a->out,
                  onnx_limit(g, x, low ? onnx_scalar(g, x->dtype, &a->min) : NULL,
                             high ? onnx_scalar(g, x->dtype, &a->max) : NULL));
        return;
    }
    double least = 0, most = 0;
    if (low && !onnx_known_scalar(g, "min", &a->min, &least)) return;
    if (high && !onnx_known_scalar(g, "max", &a->max, &most)) return;
    onnx_bind(g, a->out, onnx_clip(g, x, low ? &least : NULL, high ? &most : NULL));
}

ONNX_LOWER(lower_pow, pow)
{
    onnx_value *x = onnx_operand(g, onnx_in(g, a->x), 12);
    if (!x) return;
    double y = a->y.kind == PROA_SCALAR_FLOAT ? a->y.f : a->y.kind == PROA_SCALAR_INT ? (double)a->y.i : 0;
    if (y == 2) onnx_bind(g, a->out, onnx_mul(g, x, x));
    else if (y == 0.5 && onnx_is_float(x->dtype)) onnx_bind(g, a->out, ONNX_NODE(g, "Sqrt", x));
    else {
        proa_scalar power = a->y; /* of integers it is cut to an integer */
        if (power.kind == PROA_SCALAR_FLOAT && !onnx_is_float((proa_dtype)a->x->dtype))
            power.f = trunc(power.f);
        onnx_bind(g, a->out, ONNX_NODE(g, "Pow", x, onnx_scalar(g, x->dtype, &power)));
    }
}

#define NODE(op, type, since, whole)            \
    {                                           \
        op, onnx_lower_node, type, since, whole \
    }
const onnx_rule onnx_rules_unary[] = {
    NODE("abs", "Abs", 0, 6),
    NODE("neg", "Neg", 0, 6),
    NODE("exp", "Exp", 0, 0),
    NODE("log", "Log", 0, 0),
    NODE("sqrt", "Sqrt", 0, 0),
    NODE("reciprocal", "Reciprocal", 0, 0),
    NODE("floor", "Floor", 0, 0),
    NODE("ceil", "Ceil", 0, 0),
    NODE("sin", "Sin", 0, 0),
    NODE("cos", "Cos", 0, 0),
    NODE("tan", "Tan", 0, 0),
    NODE("asin", "Asin", 0, 0),
    NODE("acos", "Acos", 0, 0),
    NODE("atan", "Atan", 0, 0),
    NODE("sinh", "Sinh", 9, 0),
    NODE("cosh", "Cosh", 9, 0),
    NODE("asinh", "Asinh", 9, 0),
    NODE("acosh", "Acosh", 9, 0),
    NODE("atanh", "Atanh", 9, 0),
    NODE("tanh", "Tanh", 0, 0),
    NODE("erf", "Erf", 9, 0),
    {"sign", lower_sign, NULL, 0, 9},
    {"square", lower_square, NULL, 0, 7},
    {"rsqrt", lower_rsqrt, NULL, 0, 0},
    {"expm1", lower_expm1, NULL, 0, 0},
    {"log1p", lower_log1p, NULL, 0, 0},
    {"log2", lower_log2, NULL, 0, 0},
    {"log10", lower_log10, NULL, 0, 0},
    {"trunc", lower_trunc, NULL, 0, 0},
    {"round", lower_round, NULL, 0, 0},
    {"isnan", lower_is_nan, NULL, 0, 0},
    {"isinf", lower_is_inf, NULL, 0, 0},
    {"isfinite", lower_is_finite, NULL, 0, 0},
    {"logit", lower_logit, NULL, 0, 0},
    {"stanh", lower_stanh, NULL, 0, 0},
    {"scale", lower_scale, NULL, 0, 0},
    {"clip", lower_clip, NULL, 0, 0},
    {"pow", lower_pow, NULL, 0, 0},
    {0},
};

#else
typedef int proa__no_onnx_unary; /* C wants a declaration in every file */
#endif
