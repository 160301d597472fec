/* Lowerings of reductions and scans. May use core, ops and io's own headers. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/onnx/lower.h"

#include "impl/reduce.h"

/* The axes of a reduction, counted from the front; an empty list: all. −1 with an error. */
static int64_t axes_of(onnx_graph *g, const proa_ints *axis, int ndim, int64_t *axes)
{
    int64_t n = onnx_known(g, axis, axes, PROA_MAX_DIMS);
    if (n < 0) onnx_refuse(g, "axis comes from a tensor, which ONNX does not allow: give numbers");
    for (int64_t i = 0; i < n; i++) axes[i] = onnx_axis(axes[i], ndim);
    return n;
}

/* Args of the reductions that have axes and keepdim. */
typedef struct reduction {
    const proa_tensor *x, *out;
    const proa_ints *axis;
    bool keep;
} reduction;

static onnx_value *reduced(onnx_graph *g, const char *type, onnx_value *x, const reduction *r)
{
    int64_t axes[PROA_MAX_DIMS], n = axes_of(g, r->axis, r->x->ndim, axes);
    if (r->x->ndim == 0) return x; /* one element */
    return n < 0 ? NULL : onnx_reduce(g, type, x, n, axes, r->keep);
}

#define REDUCTION(a) (&(reduction){(a)->x, (a)->out, &(a)->axis, (a)->keepdim})

ONNX_LOWER(lower_sum, sum)
{
    onnx_value *x = onnx_operand(g, onnx_cast(g, onnx_in(g, a->x), (proa_dtype)a->out->dtype), 7);
    onnx_bind(g, a->out, reduced(g, "ReduceSum", x, REDUCTION(a)));
}

ONNX_LOWER(lower_prod, prod)
{
    onnx_value *x = onnx_operand(g, onnx_cast(g, onnx_in(g, a->x), (proa_dtype)a->out->dtype), 7);
    onnx_bind(g, a->out, reduced(g, "ReduceProd", x, REDUCTION(a)));
}

ONNX_LOWER(lower_mean, mean)
{
    proa_dtype dtype = a->out->dtype == PROA_BOOL ? PROA_F32 : (proa_dtype)a->out->dtype;
    onnx_value *x = onnx_operand(g, onnx_cast(g, onnx_in(g, a->x), dtype), 7);
    onnx_bind(g, a->out, reduced(g, "ReduceMean", x, REDUCTION(a)));
}

ONNX_LOWER(lower_logsumexp, logsumexp)
{
    onnx_bind(g, a->out, reduced(g, "ReduceLogSumExp", onnx_operand(g, onnx_in(g, a->x), 0), REDUCTION(a)));
}

#define EXTREME(name, op, type)                                                                     \
    ONNX_LOWER(name, op)                                                                            \
    {                                                                                               \
        onnx_bind(g, a->out, reduced(g, type, onnx_operand(g, onnx_in(g, a->x), 7), REDUCTION(a))); \
    }
EXTREME(lower_max, max, "ReduceMax")
EXTREME(lower_min, min, "ReduceMin")
EXTREME(lower_amax, amax, "ReduceMax")
EXTREME(lower_amin, amin, "ReduceMin")

static onnx_value *truth(onnx_graph *g, const proa_tensor *t)
{
    return onnx_cast(g, onnx_cast(g, onnx_in(g, t), PROA_BOOL), PROA_I32);
}

ONNX_LOWER(lower_any, any) { onnx_bind(g, a->out, reduced(g, "ReduceMax", truth(g, a->x), REDUCTION(a))); }

ONNX_LOWER(lower_all, all) { onnx_bind(g, a->out, reduced(g, "ReduceMin", truth(g, a->x), REDUCTION(a))); }

/* The product of the axes' lengths as a number of the dtype. */
static onnx_value *count_of(onnx_graph *g, const reduction *r, const int64_t *axes, int64_t n,
                            proa_dtype dtype)
{
    onnx_value *v = onnx_in(g, r->x), *all = onnx_int(g, 1);
    for (int64_t i = 0; i < (n ? n : r->x->ndim); i++)
        all = onnx_mul(g, all, onnx_dim(g, r->x, v, (int)(n ? axes[i] : i)));
    return onnx_reshape(g, onnx_cast(g, all, dtype), 0, NULL);
}

/* The mean squared distance from the mean; unbiased: times n / (n − 1), or 1 where n is 1. */
ONNX_LOWER(lower_variance, variance)
{
    const reduction *r = REDUCTION(a), with = {r->x, r->out, r->axis, true};
    int64_t axes[PROA_MAX_DIMS], n = axes_of(g, &a->axis, a->x->ndim, axes);
    onnx_value *x = onnx_in(g, a->x);
    if (!x || n < 0) return;
    onnx_value *centred = onnx_sub(g, x, reduced(g, "ReduceMean", x, &with));
    onnx_value *out = reduced(g, "ReduceMean", onnx_mul(g, centred, centred), r);
    if (a->unbiased && a->x->ndim) {
        onnx_value *all = count_of(g, r, axes, n, x->dtype);
        onnx_value *less = ONNX_NODE(g, "Max", onnx_add_to(g, all, -1), onnx_number(g, x->dtype, 1));
        out = onnx_mul(g, out, onnx_div(g, all, less));
    }
    onnx_bind(g, a->out, out);
}

/* ---- places of extremes ----------------------------------------------------------------------- */

static void place(onnx_graph *g, const char *type, const proa_tensor *t, const proa_scalar *axis, bool keep,
                  const proa_tensor *out)
{
    onnx_value *x = onnx_operand(g, onnx_in(g, t), 0), *y;
    double number = 0;
    if (axis->kind != PROA_SCALAR_NONE && !onnx_known_scalar(g, "axis", axis, &number)) return;
    bool flat = axis->kind == PROA_SCALAR_NONE || t->ndim == 0;
    if (flat) x = ONNX_RESHAPE(g, x, -1);
    y = onnx_typed(ONNX_NODE(g, type, x), PROA_I64);
    onnx_put_int(g, y, "axis", flat ? 0 : onnx_axis((int64_t)number, t->ndim));
    onnx_put_int(g, y, "keepdims", keep && !flat);
    if (flat && keep) {
        int64_t ones[PROA_MAX_DIMS];
        for (int i = 0; i < out->ndim; i++) ones[i] = 1;
        y = onnx_reshape(g, y, out->ndim, ones);
    }
    onnx_bind(g, out, y);
}

ONNX_LOWER(lower_argmax, argmax) { place(g, "ArgMax", a->x, &a->axis, a->keepdim, a->out); }

ONNX_LOWER(lower_argmin, argmin) { place(g, "ArgMin", a->x, &a->axis, a->keepdim, a->out); }

/* ---- scans -------------------------------------------------------------------------------------- */

ONNX_LOWER(lower_cumsum, cumsum)
{
    double axis = 0;
    onnx_value *x = onnx_operand(g, onnx_cast(g, onnx_in(g, a->x), (proa_dtype)a->out->dtype), 11);
    if (a->axis.kind != PROA_SCALAR_NONE && !onnx_known_scalar(g, "axis", &a->axis, &axis)) return;
    bool flat = a->flatten || a->axis.kind == PROA_SCALAR_NONE || a->x->ndim == 0;
    if (flat) x = ONNX_RESHAPE(g, x, -1);
    onnx_value *y =
        ONNX_NODE(g, "CumSum", x, onnx_whole(g, PROA_I64, flat ? 0 : onnx_axis((int64_t)axis, a->x->ndim)));
    onnx_put_int(g, y, "exclusive", a->exclusive);
    onnx_put_int(g, y, "reverse", a->reverse);
    onnx_bind(g, a->out, a->out->ndim == 0 ? onnx_reshape(g, y, 0, NULL) : y);
}

const onnx_rule onnx_rules_reduce[] = {
    {"sum", lower_sum, NULL, 0, 0},
    {"prod", lower_prod, NULL, 0, 0},
    {"mean", lower_mean, NULL, 0, 0},
    {"variance", lower_variance, NULL, 8, 0},
    {"logsumexp", lower_logsumexp, NULL, 0, 0},
    {"max", lower_max, NULL, 0, 0},
    {"min", lower_min, NULL, 0, 0},
    {"amax", lower_amax, NULL, 0, 0},
    {"amin", lower_amin, NULL, 0, 0},
    {"any", lower_any, NULL, 0, 0},
    {"all", lower_all, NULL, 0, 0},
    {"argmax", lower_argmax, NULL, 0, 0},
    {"argmin", lower_argmin, NULL, 0, 0},
    {"cumsum", lower_cumsum, NULL, 11, 0},
    {0},
};

#else
typedef int proa__no_onnx_reduce; /* C wants a declaration in every file */
#endif
