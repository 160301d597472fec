/* Lowerings of slices, of writes to slices, and of moves along axes. May use core, ops and io's own
 * headers. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/onnx/lower.h"

#include "impl/create.h"
#include "impl/index.h"
#include "impl/shape.h"
#include "ops/ints.h"

/* ---- reading ----------------------------------------------------------------------------------- */

/* A slice as an op's attributes give it; steps NULL: 1. */
typedef struct slicing {
    const proa_ints *axes, *starts, *ends, *steps, *decrease;
} slicing;

static bool decreases(const slicing *s, int64_t axis, int ndim)
{
    for (int64_t i = 0; i < s->decrease->count; i++)
        if (onnx_axis(s->decrease->at[i], ndim) == axis) return true;
    return false;
}

/* The numbers of a slice in ONNX's sense; false if a tensor supplies one of them. */
static bool known_slice(onnx_graph *g, const proa_tensor *x, const slicing *s, int64_t *axes, int64_t *starts,
                        int64_t *ends, int64_t *steps)
{
    int64_t n = s->axes->count;
    if (onnx_known(g, s->starts, starts, PROA_MAX_DIMS) != n ||
        onnx_known(g, s->ends, ends, PROA_MAX_DIMS) != n)
        return false;
    if (s->steps && s->steps->count && onnx_known(g, s->steps, steps, PROA_MAX_DIMS) != n) return false;
    for (int64_t i = 0; i < n; i++) {
        axes[i] = onnx_axis(s->axes->at[i], x->ndim);
        if (!s->steps || !s->steps->count) steps[i] = 1;
        bool one = decreases(s, axes[i], x->ndim);
        if (one && starts[i] == -1 && ends[i] == 0) ends[i] = INT64_MAX; /* the last element */
        const int64_t size = x->shape[axes[i]];
        if (steps[i] < 0 && ends[i] < -1 && size >= 0) ends[i] = ends[i] + size < 0 ? 0 : ends[i] + size;
        if (steps[i] < 0 && ends[i] == -1) ends[i] = INT64_MIN; /* through the first element */
    }
    return true;
}

static onnx_value *without(onnx_graph *g, onnx_value *x, const slicing *s, int ndim)
{
    int64_t axes[PROA_MAX_DIMS], n = 0;
    for (int i = 0; i < ndim; i++)
        if (decreases(s, i, ndim)) axes[n++] = i;
    return onnx_squeeze(g, x, n, axes);
}

static void slice(onnx_graph *g, const proa_tensor *t, const slicing *s, const proa_tensor *out)
{
    int64_t axes[PROA_MAX_DIMS], starts[PROA_MAX_DIMS], ends[PROA_MAX_DIMS], steps[PROA_MAX_DIMS];
    onnx_value *x = onnx_in(g, t);
    if (known_slice(g, t, s, axes, starts, ends, steps))
        x = onnx_slice(g, x, s->axes->count, axes, starts, ends, steps);
    else {
        if (onnx_needs(g, 10)) return;
        for (int64_t i = 0; i < s->axes->count; i++) axes[i] = onnx_axis(s->axes->at[i], t->ndim);
        x = ONNX_NODE(g, "Slice", x, onnx_list_value(g, s->starts), onnx_list_value(g, s->ends),
                      onnx_ints(g, s->axes->count, axes), s->steps ? onnx_list_value(g, s->steps) : NULL);
    }
    onnx_bind(g, out, without(g, x, s, t->ndim));
}

ONNX_LOWER(lower_slice, slice)
{
    slice(g, a->input, &(slicing){&a->axes, &a->starts, &a->ends, NULL, &a->decrease_axis}, a->out);
}

ONNX_LOWER(lower_strided_slice, strided_slice)
{
    slice(g, a->x, &(slicing){&a->axes, &a->starts, &a->ends, &a->strides, &a->decrease_axis}, a->out);
}

/* ---- writing ------------------------------------------------------------------------------------ */

/* Limits [start, end) to an axis of `size` elements. */
static void clamp(int64_t *start, int64_t *end, int64_t size)
{
    if (*start < 0) *start += size;
    if (*end < 0) *end += size;
    *start = *start < 0 ? 0 : *start > size ? size : *start;
    *end = *end < *start ? *start : *end > size ? size : *end;
}

/* True for the elements along `axis` that the slice takes, in a shape that broadcasts to ndim axes. */
static onnx_value *mask_of(onnx_graph *g, int ndim, int64_t axis, int64_t size, int64_t start, int64_t end,
                           int64_t step)
{
    int64_t shape[PROA_MAX_DIMS];
    bool *mask = onnx_alloc(g, (size_t)size, sizeof *mask);
    if (!mask) return NULL;
    for (int64_t i = start; i < end; i += step) mask[i] = true;
    for (int i = 0; i < ndim; i++) shape[i] = i == axis ? size : 1;
    return onnx_data(g, PROA_BOOL, ndim, shape, mask);
}

/* The value is padded to x's shape, and chosen where the slice is. */
ONNX_LOWER(lower_set_value, set_value)
{
    const slicing s = {&a->axes, &a->starts, &a->ends, &a->steps, &a->decrease_axes};
    int64_t axes[PROA_MAX_DIMS], starts[PROA_MAX_DIMS], ends[PROA_MAX_DIMS], steps[PROA_MAX_DIMS];
    int64_t pads[2 * PROA_MAX_DIMS] = {0}, new_axes[PROA_MAX_DIMS], n_new = 0;
    int ndim = a->x->ndim, at[PROA_MAX_DIMS], kept = 0, skipped;
    bool padded = false;
    onnx_value *x = onnx_in(g, a->x), *value = onnx_in(g, a->value), *mask = NULL;
    if (!x || !value) return;
    if (a->none_axes.count || !known_slice(g, a->x, &s, axes, starts, ends, steps)) {
        onnx_refuse(g, "only slices with known bounds can be written to");
        return;
    }
    for (int i = 0; i < ndim; i++)
        if (!decreases(&s, i, ndim)) at[kept++] = i;
    skipped = kept - a->value->ndim; /* axes of the slice that the value lacks */
    for (int i = 0, j = 0; i < ndim; i++) {
        bool mine = j < kept && at[j] == i && skipped <= j;
        if (j < kept && at[j] == i) j++;
        if (!mine) new_axes[n_new++] = i;
    }
    for (int64_t k = 0; k < a->axes.count; k++) {
        int64_t axis = axes[k], size = a->x->shape[axis], of_value = 1;
        for (int j = 0; j < kept; j++)
            if (at[j] == axis && j >= skipped) of_value = a->value->shape[j - skipped];
        if (size < 0 || steps[k] < 1 || skipped < 0 || (of_value != 1 && steps[k] != 1)) {
            onnx_refuse(g, "only slices with positive steps of axes of known length can be written to");
            return;
        }
        clamp(&starts[k], &ends[k], size);
        if (of_value != 1) {
            pads[axis] = starts[k];
            pads[ndim + axis] = size - ends[k];
            padded |= pads[axis] || pads[ndim + axis];
        }
        onnx_value *one = mask_of(g, ndim, axis, size, starts[k], ends[k], steps[k]);
        mask = mask ? onnx_test(g, "And", mask, one) : one;
    }
    value = onnx_unsqueeze(g, onnx_cast(g, value, x->dtype), n_new, new_axes);
    if (padded) value = onnx_pad(g, value, "constant", ndim, pads, 0);
    if (mask) onnx_bind(g, a->out, onnx_where(g, mask, value, x));
    else onnx_bind(g, a->out, onnx_expand(g, value, onnx_shape(g, a->x, x)));
}

/* ---- moves ------------------------------------------------------------------------------------- */

ONNX_LOWER(lower_flip, flip)
{
    onnx_value *x = onnx_in(g, a->x);
    for (int64_t i = 0; i < a->axis.count; i++) {
        const int64_t axis = onnx_axis(a->axis.at[i], a->x->ndim), start = -1, end = INT64_MIN, step = -1;
        const int64_t size = a->x->shape[axis];
        int64_t *back = onnx_from(g, 10) || size < 0 ? NULL : onnx_alloc(g, (size_t)size, sizeof *back);
        for (int64_t k = 0; back && k < size; k++) back[k] = size - 1 - k;
        x = back ? onnx_gather(g, x, onnx_ints(g, size, back), axis)
                 : onnx_slice(g, x, 1, &axis, &start, &end, &step);
    }
    onnx_bind(g, a->out, x);
}

static onnx_value *rolled(onnx_graph *g, onnx_value *x, int64_t axis, int64_t size, int64_t shift)
{
    if (size >= 0) shift = size ? ((shift % size) + size) % size : 0;
    if (shift == 0) return x;
    onnx_value *parts[] = {onnx_slice_one(g, x, axis, -shift, INT64_MAX),
                           onnx_slice_one(g, x, axis, 0, -shift)};
    return onnx_concat(g, 2, parts, axis);
}

ONNX_LOWER(lower_roll, roll)
{
    int64_t shifts[PROA_MAX_DIMS], n = onnx_known(g, &a->shifts, shifts, PROA_MAX_DIMS);
    onnx_value *x = onnx_in(g, a->x);
    if (n < 0) {
        onnx_refuse(g, "shifts comes from a tensor, which ONNX does not allow: give numbers");
        return;
    }
    if (a->axis.count == 0) {
        onnx_value *flat = rolled(g, ONNX_RESHAPE(g, x, -1), 0, a->x->numel, n ? shifts[0] : 0);
        onnx_bind(g, a->out, ONNX_NODE(g, "Reshape", flat, onnx_shape(g, a->x, x)));
        return;
    }
    for (int64_t i = 0; i < a->axis.count; i++) {
        int64_t axis = onnx_axis(a->axis.at[i], a->x->ndim);
        x = rolled(g, x, axis, a->x->shape[axis], shifts[i]);
    }
    onnx_bind(g, a->out, x);
}

/* ---- triangles ---------------------------------------------------------------------------------- */

static void triangle(onnx_graph *g, const proa_tensor *t, int64_t diagonal, bool upper,
                     const proa_tensor *out)
{
    onnx_value *x = onnx_in(g, t);
    int64_t shape[] = {t->shape[t->ndim - 2], t->shape[t->ndim - 1]};
    if (onnx_from(g, 14)) {
        onnx_value *y = ONNX_NODE(g, "Trilu", x, onnx_whole(g, PROA_I64, diagonal));
        onnx_put_int(g, y, "upper", upper);
        onnx_bind(g, out, y);
        return;
    }
    bool known = shape[0] >= 0 && shape[1] >= 0,
         *mask = known ? onnx_alloc(g, (size_t)(shape[0] * shape[1]), 1) : NULL;
    if (!known && onnx_needs(g, 14)) return;
    for (int64_t i = 0; mask && i < shape[0]; i++)
        for (int64_t j = 0; j < shape[1]; j++)
            mask[i * shape[1] + j] = upper ? j - i >= diagonal : j - i <= diagonal;
    if (mask && x)
        onnx_bind(g, out,
                  onnx_where(g, onnx_data(g, PROA_BOOL, 2, shape, mask), x, onnx_number(g, x->dtype, 0)));
}

ONNX_LOWER(lower_tril, tril) { triangle(g, a->x, a->diagonal, false, a->out); }

ONNX_LOWER(lower_triu, triu) { triangle(g, a->x, a->diagonal, true, a->out); }

const onnx_rule onnx_rules_slice[] = {
    {"slice", lower_slice, NULL, 0, 0},         {"strided_slice", lower_strided_slice, NULL, 0, 0},
    {"set_value", lower_set_value, NULL, 9, 0}, {"flip", lower_flip, NULL, 0, 0},
    {"roll", lower_roll, NULL, 0, 0},           {"tril", lower_tril, NULL, 9, 0},
    {"triu", lower_triu, NULL, 9, 0},           {0},
};

#else
typedef int proa__no_onnx_slice; /* C wants a declaration in every file */
#endif
