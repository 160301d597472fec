/* Lowerings of gathers, scatters and choices by index or mask. May use core, ops and io's own headers. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/onnx/lower.h"

#include "impl/index.h"
#include "impl/shape.h"
#include "ops/ints.h"

/* ---- reading ------------------------------------------------------------------------------------ */

/* An index as int64 [n], which may come as [n, 1]. */
static onnx_value *flat_index(onnx_graph *g, const proa_tensor *t)
{
    onnx_value *index = onnx_cast(g, onnx_in(g, t), PROA_I64);
    return t->ndim > 1 ? ONNX_RESHAPE(g, index, -1) : index;
}

ONNX_LOWER(lower_gather, gather)
{
    int64_t axis = a->axis;
    if (proa__is_given(a->axis_tensor.tensor) && onnx_known(g, &a->axis_tensor, &axis, 1) != 1) {
        onnx_refuse(g, "axis comes from a tensor, which ONNX does not allow: give a number");
        return;
    }
    onnx_bind(g, a->out,
              onnx_gather(g, onnx_in(g, a->x), flat_index(g, a->index), onnx_axis(axis, a->x->ndim)));
}

ONNX_LOWER(lower_index_select, index_select)
{
    onnx_bind(g, a->out,
              onnx_gather(g, onnx_in(g, a->x), flat_index(g, a->index), onnx_axis(a->axis, a->x->ndim)));
}

ONNX_LOWER(lower_gather_nd, gather_nd)
{
    onnx_bind(g, a->out,
              ONNX_NODE(g, "GatherND", onnx_in(g, a->x), onnx_cast(g, onnx_in(g, a->index), PROA_I64)));
}

static onnx_value *gather_elements(onnx_graph *g, onnx_value *x, onnx_value *index, int64_t axis)
{
    onnx_value *y = ONNX_NODE(g, "GatherElements", x, onnx_cast(g, index, PROA_I64));
    onnx_put_int(g, y, "axis", axis);
    return y;
}

ONNX_LOWER(lower_index_sample, index_sample)
{
    onnx_bind(g, a->out, gather_elements(g, onnx_in(g, a->x), onnx_in(g, a->index), 1));
}

/* t broadcast to `like` but along the axis. False: the shapes agree already, or are taken to. */
static bool broadcast_shape(const proa_tensor *t, const proa_tensor *like, int64_t axis, int64_t *shape)
{
    bool differs = false;
    for (int i = 0; i < t->ndim; i++) {
        shape[i] = i != axis && t->shape[i] == 1 && like->shape[i] != 1 ? like->shape[i] : 1;
        differs |= shape[i] != 1;
    }
    return differs;
}

static onnx_value *broadcast_but(onnx_graph *g, const proa_tensor *t, const proa_tensor *like, int64_t axis)
{
    int64_t shape[PROA_MAX_DIMS];
    onnx_value *v = onnx_in(g, t);
    if (!broadcast_shape(t, like, axis, shape)) return v;
    for (int i = 0; i < t->ndim; i++)
        if (shape[i] < 0) return onnx_refuse(g, "broadcasting to a dim of unknown length");
    return onnx_expand(g, v, onnx_ints(g, t->ndim, shape));
}

ONNX_LOWER(lower_take_along_axis, take_along_axis)
{
    int64_t axis = onnx_axis(a->axis, a->arr->ndim);
    onnx_value *x = onnx_in(g, a->arr), *index = onnx_in(g, a->indices);
    if (a->broadcast) {
        x = broadcast_but(g, a->arr, a->indices, axis);
        index = broadcast_but(g, a->indices, a->arr, axis);
    }
    onnx_bind(g, a->out, gather_elements(g, x, index, axis));
}

/* A mask in x's shape, as [n]. */
ONNX_LOWER(lower_masked_select, masked_select)
{
    onnx_value *x = onnx_in(g, a->x), *mask = onnx_in(g, a->mask);
    bool same = a->x->ndim == a->mask->ndim && proa__shapes_agree(a->x->shape, a->mask->shape, a->x->ndim);
    if (!same && (a->x->numel < 0 || a->mask->numel < 0 || a->mask->numel > a->x->numel)) {
        onnx_refuse(g, "the mask must have x's shape, or broadcast to a known one");
        return;
    }
    if (!same) mask = onnx_expand(g, mask, onnx_shape(g, a->x, x));
    onnx_bind(g, a->out, ONNX_NODE(g, "Compress", ONNX_RESHAPE(g, x, -1), ONNX_RESHAPE(g, mask, -1)));
}

/* The places of what is not 0: [n, ndim]. */
static onnx_value *places(onnx_graph *g, onnx_value *x)
{
    const int64_t turned[] = {1, 0};
    return onnx_transpose(g, onnx_typed(ONNX_NODE(g, "NonZero", x), PROA_I64), 2, turned);
}

ONNX_LOWER(lower_nonzero, nonzero) { onnx_bind(g, a->out, places(g, onnx_in(g, a->x))); }

ONNX_LOWER(lower_repeat_interleave, repeat_interleave)
{
    const int ndim = a->x->ndim;
    const int64_t axis = onnx_axis(a->axis, ndim), behind = axis + 1;
    int64_t times[PROA_MAX_DIMS + 1], dims[PROA_MAX_DIMS];
    if (proa__is_given(a->repeats_tensor)) {
        onnx_refuse(g, "repeats comes from a tensor, which ONNX does not allow: give a number");
        return;
    }
    for (int i = 0; i <= ndim; i++) times[i] = i == behind ? a->repeats : 1;
    for (int i = 0; i < ndim; i++)
        dims[i] = i != axis ? ~(int64_t)i : a->x->shape[i] < 0 ? -1 : a->x->shape[i] * a->repeats;
    onnx_value *x = onnx_in(g, a->x),
               *wide = ONNX_NODE(g, "Tile", onnx_unsqueeze(g, x, 1, &behind), onnx_ints(g, ndim + 1, times));
    if (a->x->shape[axis] >= 0) {
        onnx_bind(g, a->out, onnx_reshape_by(g, wide, a->x, x, ndim, dims));
        return;
    }
    for (int i = 0; i < ndim; i++)
        dims[i] = i == axis ? -1 : i < axis && a->x->shape[i] < 0 ? 0 : a->x->shape[i];
    for (int i = 0; i < ndim; i++)
        if (dims[i] < 0 && i != axis) {
            onnx_refuse(g, "an axis behind the repeated one has an unknown length");
            return;
        }
    onnx_bind(g, a->out, onnx_reshape(g, wide, ndim, dims));
}

/* ---- writing ------------------------------------------------------------------------------------- */

static onnx_value *scatter_nd(onnx_graph *g, onnx_value *x, onnx_value *index, onnx_value *updates,
                              const char *reduction)
{
    if (reduction && onnx_needs(g, 16)) return NULL;
    onnx_value *y = ONNX_NODE(g, "ScatterND", x, index, updates);
    if (reduction) onnx_put_text(g, y, "reduction", reduction);
    return y;
}

/* Rows of x, by an index [n]: [n, 1] for ScatterND. */
static onnx_value *row_index(onnx_graph *g, const proa_tensor *t)
{
    return ONNX_RESHAPE(g, onnx_cast(g, onnx_in(g, t), PROA_I64), -1, 1);
}

ONNX_LOWER(lower_scatter, scatter)
{
    onnx_value *x = onnx_in(g, a->x), *index = row_index(g, a->index), *updates = onnx_in(g, a->updates);
    const int64_t first = 0;
    if (a->updates->ndim < a->x->ndim) updates = onnx_unsqueeze(g, updates, 1, &first); /* of one row */
    if (!a->overwrite && updates) {
        x = scatter_nd(g, x, index, onnx_mul(g, updates, onnx_number(g, updates->dtype, 0)), NULL);
        x = scatter_nd(g, x, index, updates, "add");
    } else x = scatter_nd(g, x, index, updates, NULL);
    onnx_bind(g, a->out, x);
}

ONNX_LOWER(lower_scatter_nd_add, scatter_nd_add)
{
    onnx_value *index = onnx_cast(g, onnx_in(g, a->index), PROA_I64);
    onnx_bind(g, a->out, scatter_nd(g, onnx_in(g, a->x), index, onnx_in(g, a->updates), "add"));
}

ONNX_LOWER(lower_index_add, index_add)
{
    int ndim = a->x->ndim, axis = (int)onnx_axis(a->axis, ndim);
    onnx_value *x = onnx_swap_axes(g, onnx_in(g, a->x), ndim, 0, axis);
    onnx_value *value = onnx_swap_axes(g, onnx_in(g, a->value), ndim, 0, axis);
    onnx_bind(g, a->out,
              onnx_swap_axes(g, scatter_nd(g, x, row_index(g, a->index), value, "add"), ndim, 0, axis));
}

ONNX_LOWER(lower_index_put, index_put)
{
    onnx_value *x = onnx_in(g, a->x), *index = onnx_in(g, a->index), *value = onnx_in(g, a->value);
    if (!x || !index || !value) return;
    value = onnx_cast(g, value, x->dtype);
    if (index->dtype == PROA_BOOL) {
        int64_t axes[PROA_MAX_DIMS];
        int missing = a->x->ndim - a->index->ndim;
        for (int i = 0; i < missing; i++) axes[i] = a->index->ndim + i;
        if (a->value->numel != 1) onnx_refuse(g, "a mask as index takes one value only");
        value = a->accumulate ? onnx_add(g, x, value) : value;
        onnx_bind(g, a->out, onnx_where(g, onnx_unsqueeze(g, index, missing, axes), value, x));
        return;
    }
    int points = a->index->ndim - 1, depth = (int)a->index->shape[points], n = points + a->x->ndim - depth;
    onnx_value *dims[2 * PROA_MAX_DIMS];
    for (int i = 0; i < n; i++)
        dims[i] = i < points ? onnx_dim(g, a->index, index, i) : onnx_dim(g, a->x, x, i - points + depth);
    value = n ? onnx_expand(g, value, onnx_concat(g, n, dims, 0)) : value;
    onnx_bind(g, a->out,
              scatter_nd(g, x, onnx_cast(g, index, PROA_I64), value, a->accumulate ? "add" : NULL));
}

/* Slices at the places in index: their numbers are compared with the axis's. */
ONNX_LOWER(lower_index_fill, index_fill)
{
    int ndim = a->x->ndim, axis = (int)onnx_axis(a->axis, ndim);
    onnx_value *x = onnx_swap_axes(g, onnx_in(g, a->x), ndim, 0, axis), *index = row_index(g, a->index);
    if (!x) return;
    onnx_value *rows = onnx_gather(g, x, ONNX_RESHAPE(g, index, -1), 0);
    onnx_value *value = onnx_expand(g, onnx_scalar(g, x->dtype, &a->value),
                                    onnx_typed(ONNX_NODE(g, "Shape", rows), PROA_I64));
    onnx_bind(g, a->out, onnx_swap_axes(g, scatter_nd(g, x, index, value, NULL), ndim, 0, axis));
}

ONNX_LOWER(lower_put_along_axis, put_along_axis)
{
    static const char *const reductions[] = {NULL, "add", "mul", NULL, "min", "max"};
    static const int since[] = {11, 16, 16, 0, 18, 18};
    int64_t axis = onnx_axis(a->axis, a->arr->ndim);
    if (a->reduce == PROA_PUT_MODE_MEAN || (!a->include_self && a->reduce != PROA_PUT_MODE_ASSIGN)) {
        onnx_refuse(g, "its mean, and include_self=False, have no counterpart in ONNX");
        return;
    }
    if (onnx_needs(g, since[a->reduce])) return;
    onnx_value *index = a->broadcast ? broadcast_but(g, a->indices, a->arr, axis) : onnx_in(g, a->indices);
    onnx_value *values = onnx_in(g, a->values);
    if (a->values->numel != a->indices->numel || a->values->numel < 0)
        values = onnx_expand(g, values, onnx_typed(ONNX_NODE(g, "Shape", index), PROA_I64));
    onnx_value *y =
        ONNX_NODE(g, "ScatterElements", onnx_in(g, a->arr), onnx_cast(g, index, PROA_I64), values);
    onnx_put_int(g, y, "axis", axis);
    if (reductions[a->reduce]) onnx_put_text(g, y, "reduction", reductions[a->reduce]);
    onnx_bind(g, a->out, y);
}

ONNX_LOWER(lower_masked_fill, masked_fill)
{
    onnx_value *x = onnx_in(g, a->x);
    if (x) onnx_bind(g, a->out, onnx_where(g, onnx_in(g, a->mask), onnx_scalar(g, x->dtype, &a->value), x));
}

/* ---- classes and sets ------------------------------------------------------------------------------ */

ONNX_LOWER(lower_one_hot, one_hot)
{
    const double values[] = {0, 1};
    int64_t depth = a->num_classes;
    if (proa__is_given(a->depth_tensor.tensor) && onnx_known(g, &a->depth_tensor, &depth, 1) != 1) {
        onnx_refuse(g, "num_classes comes from a tensor, which ONNX does not allow: give a number");
        return;
    }
    onnx_value *x = onnx_cast(g, onnx_in(g, a->x), PROA_I64);
    onnx_value *y = ONNX_NODE(g, "OneHot", x, onnx_int(g, depth), onnx_numbers(g, PROA_F32, 2, values));
    onnx_put_int(g, y, "axis", -1);
    onnx_bind(g, a->out, onnx_typed(y, PROA_F32));
}

ONNX_LOWER(lower_unique, unique)
{
    onnx_value *x = onnx_in(g, a->x), *y = ONNX_NODE(g, "Unique", x);
    onnx_put_int(g, y, "sorted", 1);
    if (a->axis.count) onnx_put_int(g, y, "axis", onnx_axis(a->axis.at[0], a->x->ndim));
    proa_tensor *const more[] = {a->index, a->inverse, a->counts};
    onnx_bind(g, a->out, y);
    for (int i = 0; i < 3; i++) {
        onnx_value *v = onnx_also(g, y, PROA_I64);
        if (onnx_is_read(g, more[i])) onnx_bind(g, more[i], v);
    }
}

const onnx_rule onnx_rules_index[] = {
    {"gather", lower_gather, NULL, 0, 0},
    {"index_select", lower_index_select, NULL, 0, 0},
    {"gather_nd", lower_gather_nd, NULL, 11, 0},
    {"index_sample", lower_index_sample, NULL, 11, 0},
    {"take_along_axis", lower_take_along_axis, NULL, 11, 0},
    {"masked_select", lower_masked_select, NULL, 9, 0},
    {"nonzero", lower_nonzero, NULL, 9, 0},
    {"repeat_interleave", lower_repeat_interleave, NULL, 0, 0},
    {"scatter", lower_scatter, NULL, 11, 0},
    {"scatter_nd_add", lower_scatter_nd_add, NULL, 16, 0},
    {"index_add", lower_index_add, NULL, 16, 0},
    {"index_put", lower_index_put, NULL, 11, 0},
    {"index_fill", lower_index_fill, NULL, 11, 0},
    {"put_along_axis", lower_put_along_axis, NULL, 11, 0},
    {"masked_fill", lower_masked_fill, NULL, 9, 0},
    {"one_hot", lower_one_hot, NULL, 9, 0},
    {"unique", lower_unique, NULL, 11, 0},
    {0},
};

#else
typedef int proa__no_onnx_index; /* C wants a declaration in every file */
#endif
