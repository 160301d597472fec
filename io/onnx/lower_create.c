/* Lowerings of ops that make tensors of sizes which are known only when the model runs; others are folded
 * into initializers. May use core, ops and io's own headers. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/onnx/lower.h"

#include "impl/create.h"
#include "impl/random.h"
#include "impl/sequence.h"

/* A number as long as a shape says. */
static onnx_value *filled(onnx_graph *g, proa_dtype dtype, const proa_scalar *v, onnx_value *shape)
{
    return onnx_expand(g, onnx_scalar(g, dtype, v), shape);
}

enum { FILLED_BYTES = 1 << 12 }; /* of constants in sub-graphs, which are not folded */

ONNX_LOWER(lower_full, full)
{
    double number;
    const proa_dtype dtype = (proa_dtype)a->out->dtype;
    const int64_t n = a->out->numel;
    const bool known = a->fill_value.kind != PROA_SCALAR_TENSOR && dtype < PROA_C64;
    if (known && n >= 0 && n * (int64_t)proa_dtype_size(dtype) <= FILLED_BYTES) {
        if (!onnx_known_scalar(g, "fill_value", &a->fill_value, &number)) return;
        double *all = onnx_alloc(g, (size_t)n, sizeof *all);
        for (int64_t i = 0; all && i < n; i++) all[i] = number;
        onnx_value *flat = all ? onnx_numbers(g, dtype, n, all) : NULL;
        onnx_bind(g, a->out, a->out->ndim == 1 ? flat : onnx_reshape(g, flat, a->out->ndim, a->out->shape));
        return;
    }
    onnx_bind(g, a->out, filled(g, (proa_dtype)a->out->dtype, &a->fill_value, onnx_list_value(g, &a->shape)));
}

ONNX_LOWER(lower_full_like, full_like)
{
    onnx_value *shape = onnx_shape(g, a->x, onnx_in(g, a->x));
    onnx_bind(g, a->out, filled(g, (proa_dtype)a->out->dtype, &a->fill_value, shape));
}

ONNX_LOWER(lower_fill, fill)
{
    onnx_bind(g, a->out,
              filled(g, (proa_dtype)a->out->dtype, &a->value, onnx_shape(g, a->x, onnx_in(g, a->x))));
}

ONNX_LOWER(lower_arange, arange)
{
    proa_dtype dtype = (proa_dtype)a->out->dtype;
    onnx_bind(g, a->out,
              ONNX_NODE(g, "Range", onnx_scalar(g, dtype, &a->start), onnx_scalar(g, dtype, &a->end),
                        onnx_scalar(g, dtype, &a->step)));
}

/* Numbers 0 … maxlen − 1 below each length. */
ONNX_LOWER(lower_sequence_mask, sequence_mask)
{
    const int64_t last = a->x->ndim;
    proa_scalar most = a->maxlen;
    onnx_value *x = onnx_cast(g, onnx_in(g, a->x), PROA_I64), *end;
    bool given = most.kind == PROA_SCALAR_TENSOR || (most.kind == PROA_SCALAR_INT && most.i >= 0);
    if (given) end = onnx_scalar(g, PROA_I64, &most);
    else end = onnx_reduce(g, "ReduceMax", x, 0, NULL, false);
    onnx_value *all = ONNX_NODE(g, "Range", onnx_whole(g, PROA_I64, 0), end, onnx_whole(g, PROA_I64, 1));
    onnx_bind(g, a->out, onnx_test(g, "Less", all, onnx_unsqueeze(g, x, 1, &last)));
}

/* ---- random numbers ------------------------------------------------------------------------------ */

/* A Random… node of a known shape, or of one like a tensor that is made of the shape. */
static onnx_value *drawn(onnx_graph *g, const char *type, const char *like, const proa_tensor *out,
                         onnx_value *shape)
{
    bool known = out->numel >= 0;
    onnx_value *y;
    if (known) y = onnx_node_of(g, type, 0, NULL);
    else y = ONNX_NODE(g, like, onnx_expand(g, onnx_number(g, PROA_F32, 0), shape));
    if (known) onnx_put_ints(g, y, "shape", out->ndim, out->shape);
    onnx_put_int(g, y, "dtype", onnx_dtype(PROA_F32));
    return onnx_typed(y, PROA_F32);
}

ONNX_LOWER(lower_uniform, uniform)
{
    double low, high;
    if (!onnx_known_scalar(g, "min", &a->min, &low) || !onnx_known_scalar(g, "max", &a->max, &high)) return;
    onnx_value *y = drawn(g, "RandomUniform", "RandomUniformLike", a->out, onnx_list_value(g, &a->shape));
    onnx_put_float(g, y, "low", low);
    onnx_put_float(g, y, "high", high);
    onnx_bind(g, a->out, y);
}

ONNX_LOWER(lower_gaussian, gaussian)
{
    onnx_value *y = drawn(g, "RandomNormal", "RandomNormalLike", a->out, onnx_list_value(g, &a->shape));
    onnx_put_float(g, y, "mean", a->mean);
    onnx_put_float(g, y, "scale", a->std);
    onnx_bind(g, a->out, y);
}

const onnx_rule onnx_rules_create[] = {
    {"full", lower_full, NULL, 0, 0},
    {"full_like", lower_full_like, NULL, 8, 0},
    {"fill", lower_fill, NULL, 8, 0},
    {"arange", lower_arange, NULL, 11, 0},
    {"sequence_mask", lower_sequence_mask, NULL, 11, 0},
    {"uniform", lower_uniform, NULL, 8, 0},
    {"gaussian", lower_gaussian, NULL, 8, 0},
    {0},
};

#else
typedef int proa__no_onnx_create; /* C wants a declaration in every file */
#endif
