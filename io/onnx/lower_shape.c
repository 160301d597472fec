/* Lowerings of changes of shape, joining, repeating and padding. May use core, ops and io's own headers. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/onnx/lower.h"

#include "impl/shape.h"
#include "ops/ints.h"
#include "ops/windows.h"

/* ---- views ----------------------------------------------------------------------------------- */

ONNX_LOWER(lower_reshape, reshape)
{
    onnx_bind(g, a->out, ONNX_NODE(g, "Reshape", onnx_in(g, a->x), onnx_list_value(g, &a->shape)));
}

ONNX_LOWER(lower_transpose, transpose)
{
    int64_t perm[PROA_MAX_DIMS];
    for (int i = 0; i < a->x->ndim; i++) perm[i] = onnx_axis(a->perm.at[i], a->x->ndim);
    onnx_bind(g, a->out, onnx_transpose(g, onnx_in(g, a->x), a->x->ndim, perm));
}

/* The entries of a list that must be known; −1 with an error. */
static int64_t known_list(onnx_graph *g, const char *argument, const proa_ints *v, int64_t *to)
{
    int64_t n = onnx_known(g, v, to, PROA_MAX_DIMS);
    if (n < 0) onnx_refuse(g, "%s comes from a tensor, which ONNX does not allow: give numbers", argument);
    return n;
}

ONNX_LOWER(lower_squeeze, squeeze)
{
    int64_t named[PROA_MAX_DIMS], axes[PROA_MAX_DIMS], n = known_list(g, "axis", &a->axis, named), k = 0;
    for (int i = 0; n >= 0 && i < a->x->ndim; i++) {
        bool chosen = n == 0;
        for (int64_t j = 0; j < n; j++) chosen |= onnx_axis(named[j], a->x->ndim) == i;
        if (chosen && a->x->shape[i] == 1) axes[k++] = i;
    }
    if (n >= 0) onnx_bind(g, a->out, onnx_squeeze(g, onnx_in(g, a->x), k, axes));
}

/* Axes are inserted one after the other, so earlier ones may move; ONNX counts all in the result. */
ONNX_LOWER(lower_unsqueeze, unsqueeze)
{
    int64_t named[PROA_MAX_DIMS], axes[PROA_MAX_DIMS], n = known_list(g, "axis", &a->axis, named), k = 0;
    bool added[2 * PROA_MAX_DIMS] = {false};
    int ndim = a->x->ndim;
    for (int64_t j = 0; j < n; j++, ndim++) {
        int64_t at = named[j] < 0 ? named[j] + ndim + 1 : named[j];
        for (int i = ndim; i > at; i--) added[i] = added[i - 1];
        added[at] = true;
    }
    for (int i = 0; n >= 0 && i < ndim; i++)
        if (added[i]) axes[k++] = i;
    if (n >= 0) onnx_bind(g, a->out, onnx_unsqueeze(g, onnx_in(g, a->x), k, axes));
}

ONNX_LOWER(lower_flatten, flatten)
{
    int ndim = a->x->ndim, n = 0, unknown = 0;
    int first = (int)onnx_axis(a->start_axis, ndim), last = (int)onnx_axis(a->stop_axis, ndim);
    onnx_value *x = onnx_in(g, a->x), *parts[PROA_MAX_DIMS];
    int64_t shape[PROA_MAX_DIMS];
    if (ndim == 0) {
        onnx_bind(g, a->out, ONNX_RESHAPE(g, x, 1));
        return;
    }
    for (int i = 0; i < first; i++) shape[n++] = a->x->shape[i] < 0 ? 0 : a->x->shape[i];
    shape[n++] = 1;
    for (int i = first; i <= last; i++)
        if (a->x->shape[i] < 0 || shape[first] < 0) shape[first] = -1;
        else shape[first] *= a->x->shape[i];
    for (int i = last + 1; i < ndim; i++, n++) {
        shape[n] = a->x->shape[i] < 0 && last == first ? 0 : a->x->shape[i];
        unknown += shape[n] < 0;
    }
    if (unknown + (shape[first] < 0) <= 1) {
        onnx_bind(g, a->out, onnx_reshape(g, x, n, shape));
        return;
    }
    for (int i = 0; i < n; i++)
        parts[i] =
            shape[i] < 0 && i != first ? onnx_dim(g, a->x, x, i - first + last) : onnx_int(g, shape[i]);
    onnx_bind(g, a->out, ONNX_NODE(g, "Reshape", x, onnx_concat(g, n, parts, 0)));
}

/* ---- repeating -------------------------------------------------------------------------------- */

/* ONNX keeps an axis at 1, Paddle at −1. */
ONNX_LOWER(lower_expand, expand)
{
    int64_t shape[PROA_MAX_DIMS], n = onnx_known(g, &a->shape, shape, PROA_MAX_DIMS);
    for (int64_t i = 0; i < n; i++)
        if (shape[i] < 0) shape[i] = 1;
    onnx_value *to = n >= 0 ? onnx_ints(g, n, shape) : onnx_list_value(g, &a->shape);
    if (n < 0) to = onnx_where(g, onnx_test(g, "Less", to, onnx_int(g, 0)), onnx_int(g, 1), to);
    onnx_bind(g, a->out, onnx_expand(g, onnx_in(g, a->x), to));
}

ONNX_LOWER(lower_expand_as, expand_as)
{
    onnx_bind(g, a->out, onnx_expand(g, onnx_in(g, a->x), onnx_shape(g, a->y, onnx_in(g, a->y))));
}

ONNX_LOWER(lower_tile, tile)
{
    int64_t times[PROA_MAX_DIMS], all[PROA_MAX_DIMS], ones[PROA_MAX_DIMS],
        n = onnx_known(g, &a->repeat_times, times, PROA_MAX_DIMS);
    onnx_value *x = onnx_in(g, a->x);
    int ndim = a->x->ndim, most = a->out->ndim;
    if (n < 0) {
        if (most != ndim) onnx_refuse(g, "repeat_times comes from a tensor and adds axes: give numbers");
        onnx_bind(g, a->out, ONNX_NODE(g, "Tile", x, onnx_list_value(g, &a->repeat_times)));
        return;
    }
    for (int i = 0; i < most; i++) {
        all[i] = i < most - n ? 1 : times[i - (most - n)];
        ones[i] = i; /* the axes that x lacks come first */
    }
    x = onnx_unsqueeze(g, x, most - ndim, ones);
    onnx_bind(g, a->out, most ? ONNX_NODE(g, "Tile", x, onnx_ints(g, most, all)) : x);
}

ONNX_LOWER(lower_meshgrid, meshgrid)
{
    int64_t n = a->inputs.count, shape[PROA_MAX_DIMS];
    onnx_value *dims[PROA_MAX_DIMS] = {NULL};
    for (int64_t i = 0; i < n; i++) {
        const proa_tensor *t = a->inputs.at[i];
        dims[i] = t->ndim ? onnx_dim(g, t, onnx_in(g, t), 0) : onnx_int(g, 1);
    }
    onnx_value *all = onnx_concat(g, n, dims, 0);
    for (int64_t i = 0; i < n; i++) {
        for (int64_t k = 0; k < n; k++) shape[k] = k == i ? -1 : 1;
        onnx_bind(g, a->out.at[i],
                  onnx_expand(g, onnx_reshape(g, onnx_in(g, a->inputs.at[i]), n, shape), all));
    }
}

/* ---- joining and parting ------------------------------------------------------------------------ */

/* The axis, which a constant tensor may supply; −1 with an error. */
static int64_t axis_of(onnx_graph *g, int64_t axis, const proa_ints *twin, int ndim)
{
    int64_t given;
    bool twin_given = twin->tensor && !proa__absent(twin->tensor);
    if (!twin_given) return onnx_axis(axis, ndim);
    if (onnx_known(g, twin, &given, 1) == 1) return onnx_axis(given, ndim);
    onnx_refuse(g, "axis comes from a tensor, which ONNX does not allow: give a number");
    return -1;
}

/* The values of a list of tensors. */
static onnx_value **values_of(onnx_graph *g, proa_tensors list, proa_dtype dtype)
{
    onnx_value **in = onnx_alloc(g, (size_t)list.count, sizeof *in);
    for (int64_t i = 0; in && i < list.count; i++) in[i] = onnx_cast(g, onnx_in(g, list.at[i]), dtype);
    return in;
}

ONNX_LOWER(lower_concat, concat)
{
    int64_t axis = axis_of(g, a->axis, &a->axis_tensor, a->out->ndim);
    onnx_value **in = values_of(g, a->x, (proa_dtype)a->out->dtype);
    if (in && axis >= 0) onnx_bind(g, a->out, onnx_concat(g, a->x.count, in, axis));
}

ONNX_LOWER(lower_stack, stack)
{
    const int64_t axis = onnx_axis(a->axis, a->out->ndim);
    onnx_value **in = values_of(g, a->x, (proa_dtype)a->out->dtype);
    for (int64_t i = 0; in && i < a->x.count; i++) in[i] = onnx_unsqueeze(g, in[i], 1, &axis);
    if (in) onnx_bind(g, a->out, onnx_concat(g, a->x.count, in, axis));
}

/* The slices of x along an axis, without it. */
static void unstack(onnx_graph *g, const proa_tensor *x, int64_t axis, proa_tensors out)
{
    for (int64_t i = 0; i < out.count; i++)
        onnx_bind(g, out.at[i],
                  onnx_gather(g, onnx_in(g, x), onnx_whole(g, PROA_I64, i), onnx_axis(axis, x->ndim)));
}

ONNX_LOWER(lower_unstack, unstack) { unstack(g, a->x, a->axis, a->out); }

ONNX_LOWER(lower_unbind, unbind) { unstack(g, a->input, a->axis, a->out); }

ONNX_LOWER(lower_split, split)
{
    int64_t axis = axis_of(g, a->axis, &a->axis_tensor, a->x->ndim), n = a->out.count;
    int64_t *sizes = onnx_alloc(g, (size_t)n, sizeof *sizes);
    onnx_value **parts = onnx_alloc(g, (size_t)n, sizeof *parts), *x = onnx_in(g, a->x);
    if (!sizes || !parts || axis < 0) return;
    bool known = true;
    for (int64_t i = 0; i < n; i++) known &= (sizes[i] = a->out.at[i]->shape[axis]) >= 0;
    if (!known && a->num == 0) {
        onnx_refuse(g, "sections of an axis of unknown length must all be numbers");
        return;
    }
    if (known) onnx_split(g, x, axis, n, sizes, parts);
    else { /* equal parts of an unknown length */ parts[0] = ONNX_NODE(g, "Split", x);
        onnx_put_int(g, parts[0], "axis", axis);
        if (onnx_from(g, 18)) onnx_put_int(g, parts[0], "num_outputs", n);
        for (int64_t i = 1; i < n; i++) parts[i] = onnx_also(g, parts[0], (proa_dtype)a->x->dtype);
    }
    for (int64_t i = 0; i < n; i++) onnx_bind(g, a->out.at[i], parts[i]);
}

/* ---- sizes --------------------------------------------------------------------------------------- */

ONNX_LOWER(lower_shape, shape) { onnx_bind(g, a->out, onnx_shape(g, a->input, onnx_in(g, a->input))); }

ONNX_LOWER(lower_size, size)
{
    onnx_value *x = onnx_in(g, a->x);
    onnx_bind(g, a->out,
              a->x->numel >= 0 ? onnx_whole(g, PROA_I64, a->x->numel)
                               : onnx_typed(ONNX_NODE(g, "Size", x), PROA_I64));
}

/* ---- padding -------------------------------------------------------------------------------------- */

ONNX_LOWER(lower_pad, pad)
{
    int64_t pairs[2 * PROA_MAX_DIMS], pads[2 * PROA_MAX_DIMS],
        n = onnx_known(g, &a->paddings, pairs, 2 * PROA_MAX_DIMS) / 2;
    if (n != a->x->ndim) {
        onnx_refuse(g, "paddings comes from a tensor, which ONNX does not allow: give numbers");
        return;
    }
    for (int64_t i = 0; i < n; i++) pads[i] = pairs[2 * i], pads[n + i] = pairs[2 * i + 1];
    onnx_bind(g, a->out, onnx_pad(g, onnx_in(g, a->x), "constant", n, pads, a->pad_value));
}

/* Circular padding: the end of an axis before it, its beginning behind. */
static onnx_value *wrap(onnx_graph *g, onnx_value *x, int64_t n, const int64_t *pads)
{
    for (int64_t i = 0; i < n; i++) {
        onnx_value *parts[3];
        int64_t k = 0;
        if (pads[i]) parts[k++] = onnx_slice_one(g, x, i, -pads[i], INT64_MAX);
        parts[k++] = x;
        if (pads[n + i]) parts[k++] = onnx_slice_one(g, x, i, 0, pads[n + i]);
        x = onnx_concat(g, k, parts, i);
    }
    return x;
}

ONNX_LOWER(lower_pad3d, pad3d)
{
    static const char *const modes[] = {"constant", "reflect", "edge", "wrap"};
    int64_t pairs[2 * PROA_MAX_DIMS], pads[2 * PROA_MAX_DIMS] = {0}, n = a->x->ndim;
    int64_t given = onnx_known(g, &a->paddings, pairs, 2 * PROA_MAX_DIMS);
    int first = proa__channels_last(a->data_format) ? 1 : 2;
    if (given < 0) {
        onnx_refuse(g, "paddings comes from a tensor, which ONNX does not allow: give numbers");
        return;
    }
    for (int64_t i = 0; i < given / 2; i++) { /* the last spatial axis comes first */
        int64_t axis = first + (n - 2) - 1 - i;
        pads[axis] = pairs[2 * i];
        pads[n + axis] = pairs[2 * i + 1];
    }
    onnx_value *x = onnx_in(g, a->x);
    if (a->mode == PROA_PAD_MODE_CIRCULAR) onnx_bind(g, a->out, wrap(g, x, n, pads));
    else onnx_bind(g, a->out, onnx_pad(g, x, modes[a->mode], n, pads, a->value));
}

const onnx_rule onnx_rules_shape[] = {
    {"reshape", lower_reshape, NULL, 0, 0},     {"transpose", lower_transpose, NULL, 0, 0},
    {"squeeze", lower_squeeze, NULL, 0, 0},     {"unsqueeze", lower_unsqueeze, NULL, 0, 0},
    {"flatten", lower_flatten, NULL, 0, 0},     {"expand", lower_expand, NULL, 8, 0},
    {"broadcast_to", lower_expand, NULL, 8, 0}, {"expand_as", lower_expand_as, NULL, 8, 0},
    {"tile", lower_tile, NULL, 0, 0},           {"meshgrid", lower_meshgrid, NULL, 8, 0},
    {"concat", lower_concat, NULL, 0, 0},       {"stack", lower_stack, NULL, 0, 0},
    {"unstack", lower_unstack, NULL, 0, 0},     {"unbind", lower_unbind, NULL, 0, 0},
    {"split", lower_split, NULL, 0, 0},         {"shape", lower_shape, NULL, 0, 0},
    {"size", lower_size, NULL, 0, 0},           {"pad", lower_pad, NULL, 0, 0},
    {"pad3d", lower_pad3d, NULL, 0, 0},         {0},
};

#else
typedef int proa__no_onnx_shape; /* C wants a declaration in every file */
#endif
