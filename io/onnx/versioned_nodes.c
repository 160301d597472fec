/* Nodes whose form depends on the opset: attributes that became inputs, and ops that came later and are
 * composed before. May use io's own headers. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/onnx/graph.h"

onnx_value *onnx_cast(onnx_graph *g, onnx_value *x, proa_dtype dtype)
{
    if (!x || x->dtype == dtype) return x;
    if (x->dtype >= PROA_C64 || dtype >= PROA_C64) return onnx_refuse(g, "ONNX converts no complex numbers");
    onnx_value *y = onnx_typed(ONNX_NODE(g, "Cast", x), dtype);
    onnx_put_int(g, y, "to", onnx_dtype(dtype));
    return y;
}

/* ---- shapes ---------------------------------------------------------------------------- */

onnx_value *onnx_reshape(onnx_graph *g, onnx_value *x, int64_t n, const int64_t *shape)
{
    return ONNX_NODE(g, "Reshape", x, onnx_ints(g, n, shape));
}

onnx_value *onnx_transpose(onnx_graph *g, onnx_value *x, int64_t n, const int64_t *perm)
{
    onnx_value *y = ONNX_NODE(g, "Transpose", x);
    onnx_put_ints(g, y, "perm", n, perm);
    return y;
}

onnx_value *onnx_swap_axes(onnx_graph *g, onnx_value *x, int ndim, int first, int second)
{
    int64_t perm[ONNX_MAX_DIMS];
    for (int i = 0; i < ndim; i++) perm[i] = i == first ? second : i == second ? first : i;
    return first == second ? x : onnx_transpose(g, x, ndim, perm);
}

/* A node whose axes are an attribute before opset `since` and an input from there on. */
static onnx_value *with_axes(onnx_graph *g, const char *type, onnx_value *x, int64_t n, const int64_t *axes,
                             int since)
{
    if (n && onnx_from(g, since)) return ONNX_NODE(g, type, x, onnx_ints(g, n, axes));
    onnx_value *y = ONNX_NODE(g, type, x);
    if (n) onnx_put_ints(g, y, "axes", n, axes);
    return y;
}

onnx_value *onnx_squeeze(onnx_graph *g, onnx_value *x, int64_t n, const int64_t *axes)
{
    return n ? with_axes(g, "Squeeze", x, n, axes, 13) : x;
}

onnx_value *onnx_unsqueeze(onnx_graph *g, onnx_value *x, int64_t n, const int64_t *axes)
{
    return n ? with_axes(g, "Unsqueeze", x, n, axes, 13) : x;
}

onnx_value *onnx_reduce(onnx_graph *g, const char *type, onnx_value *x, int64_t n, const int64_t *axes,
                        bool keep)
{
    onnx_value *y = with_axes(g, type, x, n, axes, strcmp(type, "ReduceSum") == 0 ? 13 : 18);
    onnx_put_int(g, y, "keepdims", keep);
    return y;
}

onnx_value *onnx_slice(onnx_graph *g, onnx_value *x, int64_t n, const int64_t *axes, const int64_t *starts,
                       const int64_t *ends, const int64_t *steps)
{
    if (n == 0) return x;
    for (int64_t i = 0; steps && i < n; i++)
        if (steps[i] != 1 && onnx_needs(g, 10)) return NULL;
    if (onnx_from(g, 10))
        return ONNX_NODE(g, "Slice", x, onnx_ints(g, n, starts), onnx_ints(g, n, ends), onnx_ints(g, n, axes),
                         steps ? onnx_ints(g, n, steps) : NULL);
    onnx_value *y = ONNX_NODE(g, "Slice", x);
    onnx_put_ints(g, y, "axes", n, axes);
    onnx_put_ints(g, y, "starts", n, starts);
    onnx_put_ints(g, y, "ends", n, ends);
    return y;
}

onnx_value *onnx_slice_one(onnx_graph *g, onnx_value *x, int64_t axis, int64_t start, int64_t end)
{
    return onnx_slice(g, x, 1, &axis, &start, &end, NULL);
}

onnx_value *onnx_concat(onnx_graph *g, int64_t n, onnx_value *const *in, int64_t axis)
{
    if (n == 1) return in[0];
    onnx_value *y = onnx_node_of(g, "Concat", (int)n, in);
    onnx_put_int(g, y, "axis", axis);
    return y;
}

void onnx_split(onnx_graph *g, onnx_value *x, int64_t axis, int64_t n, const int64_t *sizes,
                onnx_value **parts)
{
    if (n == 1) {
        parts[0] = x;
        return;
    }
    bool input = onnx_from(g, 13);
    onnx_value *y = ONNX_NODE(g, "Split", x, input ? onnx_ints(g, n, sizes) : NULL);
    onnx_put_int(g, y, "axis", axis);
    if (!input) onnx_put_ints(g, y, "split", n, sizes);
    for (int64_t i = 0; i < n; i++) parts[i] = i ? onnx_also(g, y, y ? y->dtype : PROA_F32) : y;
}

onnx_value *onnx_expand(onnx_graph *g, onnx_value *x, onnx_value *shape)
{
    if (onnx_needs(g, 8) || !x) return NULL;
    if (x->dtype != PROA_BOOL) return ONNX_NODE(g, "Expand", x, shape);
    x = ONNX_NODE(g, "Expand", onnx_cast(g, x, PROA_I32), shape);
    return onnx_cast(g, x, PROA_BOOL);
}

onnx_value *onnx_gather(onnx_graph *g, onnx_value *x, onnx_value *index, int64_t axis)
{
    if (index && index->dtype != PROA_I32) index = onnx_cast(g, index, PROA_I64);
    onnx_value *y = ONNX_NODE(g, "Gather", x, index);
    onnx_put_int(g, y, "axis", axis);
    return y;
}

onnx_value *onnx_pad(onnx_graph *g, onnx_value *x, const char *mode, int64_t n, const int64_t *pads,
                     double value)
{
    bool constant = strcmp(mode, "constant") == 0;
    if (!x) return NULL;
    if (onnx_from(g, 11)) {
        onnx_value *y = ONNX_NODE(g, "Pad", x, onnx_ints(g, 2 * n, pads),
                                  constant ? onnx_number(g, x->dtype, value) : NULL);
        onnx_put_text(g, y, "mode", mode);
        return y;
    }
    proa_dtype dtype = x->dtype;
    onnx_value *y = ONNX_NODE(g, "Pad", dtype < PROA_F16 ? onnx_cast(g, x, PROA_F64) : x);
    onnx_put_text(g, y, "mode", mode);
    onnx_put_ints(g, y, "pads", 2 * n, pads);
    if (constant) onnx_put_float(g, y, "value", value);
    return onnx_cast(g, y, dtype);
}

/* ---- shapes of tensors ------------------------------------------------------------------ */

onnx_value *onnx_shape(onnx_graph *g, const proa_tensor *t, onnx_value *v)
{
    bool known = true;
    for (int i = 0; i < t->ndim; i++) known &= t->shape[i] >= 0;
    return known ? onnx_ints(g, t->ndim, t->shape) : onnx_typed(ONNX_NODE(g, "Shape", v), PROA_I64);
}

onnx_value *onnx_dim(onnx_graph *g, const proa_tensor *t, onnx_value *v, int axis)
{
    if (t->shape[axis] >= 0) return onnx_int(g, t->shape[axis]);
    return onnx_slice_one(g, onnx_shape(g, t, v), 0, axis, axis + 1);
}

onnx_value *onnx_reshape_by(onnx_graph *g, onnx_value *x, const proa_tensor *t, onnx_value *v, int ndim,
                            const int64_t *dims)
{
    onnx_value *parts[ONNX_MAX_DIMS];
    int64_t known[ONNX_MAX_DIMS];
    int unknown = 0;
    for (int i = 0; i < ndim; i++) {
        int axis = (int)~dims[i];
        known[i] = dims[i] >= 0 ? dims[i] : t->shape[axis];
        unknown += known[i] < 0;
    }
    if (unknown <= 1) return onnx_reshape(g, x, ndim, known);
    for (int i = 0; i < ndim; i++)
        parts[i] = dims[i] < 0 ? onnx_dim(g, t, v, (int)~dims[i]) : onnx_int(g, dims[i]);
    return ONNX_NODE(g, "Reshape", x, onnx_concat(g, ndim, parts, 0));
}

/* ---- elementwise ------------------------------------------------------------------------ */

onnx_value *onnx_limit(onnx_graph *g, onnx_value *x, onnx_value *low, onnx_value *high)
{
    if (!x || x->dtype != PROA_F64 || onnx_from(g, 12)) return ONNX_NODE(g, "Clip", x, low, high);
    if (onnx_needs(g, 8)) return NULL; /* Clip of doubles came with 12 to runtimes */
    if (low) x = ONNX_NODE(g, "Max", x, low);
    return high ? ONNX_NODE(g, "Min", x, high) : x;
}

onnx_value *onnx_clip(onnx_graph *g, onnx_value *x, const double *low, const double *high)
{
    if (!x) return NULL;
    proa_dtype dtype = x->dtype;
    if (dtype < PROA_F16) x = onnx_cast(g, x, PROA_F64);
    if (x && (onnx_from(g, 11) || x->dtype == PROA_F64))
        return onnx_cast(g,
                         onnx_limit(g, x, low ? onnx_number(g, x->dtype, *low) : NULL,
                                    high ? onnx_number(g, x->dtype, *high) : NULL),
                         dtype);
    onnx_value *y = ONNX_NODE(g, "Clip", x);
    if (low) onnx_put_float(g, y, "min", *low);
    if (high) onnx_put_float(g, y, "max", *high);
    return y;
}

onnx_value *onnx_where(onnx_graph *g, onnx_value *condition, onnx_value *x, onnx_value *y)
{
    if (onnx_needs(g, 9) || !x || !y) return NULL;
    if (x->dtype != PROA_BOOL && x->dtype != PROA_I16 && x->dtype != PROA_I8)
        return onnx_typed(ONNX_NODE(g, "Where", condition, x, y), x->dtype);
    proa_dtype dtype = x->dtype;
    onnx_value *v = ONNX_NODE(g, "Where", condition, onnx_cast(g, x, PROA_I32), onnx_cast(g, y, PROA_I32));
    return onnx_cast(g, onnx_typed(v, PROA_I32), dtype);
}

onnx_value *onnx_sign(onnx_graph *g, onnx_value *x)
{
    if (!x || onnx_from(g, 9)) return ONNX_NODE(g, "Sign", x);
    onnx_value *zero = onnx_number(g, x->dtype, 0);
    return onnx_sub(g, onnx_cast(g, onnx_test(g, "Greater", x, zero), x->dtype),
                    onnx_cast(g, onnx_test(g, "Less", x, zero), x->dtype));
}

onnx_value *onnx_is_nan(onnx_graph *g, onnx_value *x)
{
    if (!x || onnx_from(g, 9)) return onnx_typed(ONNX_NODE(g, "IsNaN", x), PROA_BOOL);
    return onnx_not(g, onnx_test(g, "Or", onnx_test(g, "Less", x, onnx_number(g, x->dtype, 0)),
                                 onnx_test(g, "Greater", x, onnx_number(g, x->dtype, -1))));
}

onnx_value *onnx_equal(onnx_graph *g, onnx_value *x, onnx_value *y)
{
    if (!x || !y) return NULL;
    proa_dtype dtype = x->dtype;
    if (dtype == PROA_U8 || dtype == PROA_I8 || dtype == PROA_I16)
        return onnx_test(g, "Equal", onnx_cast(g, x, PROA_I32), onnx_cast(g, y, PROA_I32));
    if (dtype < PROA_F16 || onnx_from(g, 11)) return onnx_test(g, "Equal", x, y);
    /* before opset 11 Equal takes no floats; only NaN is neither below nor above and yet not equal */
    onnx_value *differ = onnx_test(g, "Or", onnx_test(g, "Less", x, y), onnx_test(g, "Greater", x, y));
    onnx_value *both = onnx_test(g, "Or", onnx_is_nan(g, x), onnx_is_nan(g, y));
    return onnx_not(g, onnx_test(g, "Or", differ, both));
}

onnx_value *onnx_softmax(onnx_graph *g, const char *type, onnx_value *x, int ndim, int64_t axis)
{
    axis = onnx_axis(axis, ndim);
    if (ndim == 0) { /* one element */
        onnx_value *y = ONNX_NODE(g, type, ONNX_RESHAPE(g, x, 1));
        onnx_put_int(g, y, "axis", 0);
        return onnx_reshape(g, y, 0, NULL);
    }
    bool last = onnx_from(g, 13) || axis == ndim - 1; /* before 13 all axes from `axis` on are one */
    if (!last) x = onnx_swap_axes(g, x, ndim, (int)axis, ndim - 1);
    onnx_value *y = ONNX_NODE(g, type, x);
    onnx_put_int(g, y, "axis", last ? axis : ndim - 1);
    return last ? y : onnx_swap_axes(g, y, ndim, (int)axis, ndim - 1);
}

#else
typedef int proa__no_onnx_versioned_nodes; /* C wants a declaration in every file */
#endif
