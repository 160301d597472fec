/* gather, take_along_axis, put_along_axis, set_value, masked_fill, index_fill and unique in Paddle's
 * programs, whose forms differ from ours. May use core and ops. */
#include "ops/ints.h"
#include "ops/wire_util.h"
#include "impl/elementwise.h"
#include "impl/index.h"
#include "impl/shape.h"

/* ---- gather ----------------------------------------------------------------------------- */

proa_status gather_read(proa_wire_reader *r)
{
    proa_tensor *given = proa_wire_input(r, "Axis");
    proa_ints from = {.tensor = proa__is_given(given) ? given : NULL};
    proa_tensor *out = proa_gather(proa_wire_input(r, "X"), proa_wire_input(r, "Index"),
                                   .axis = proa_wire_int(r, "axis", 0), .axis_tensor = from);
    return proa_wire_result(r, "Out", out);
}

proa_status gather_write(const void *args, proa_wire_writer *w)
{
    const proa_gather_args *a = args;
    PROA_TRY(proa_wire_op(w, "gather"));
    PROA_TRY(proa_wire_put_input(w, "X", a->x));
    PROA_TRY(proa_wire_put_input(w, "Index", a->index));
    if (proa__wire_supplier(&a->axis_tensor))
        PROA_TRY(proa_wire_put_input(w, "Axis", proa__wire_supplier(&a->axis_tensor)));
    PROA_TRY(proa_wire_put_output(w, "Out", a->out));
    int64_t axis = a->axis < 0 ? a->axis + a->x->ndim : a->axis; /* the program's op takes no negative one */
    return proa_wire_put_int(w, "axis", PROA_WIRE_INT, axis);
}

/* ---- along an axis ---------------------------------------------------------------------- */

static bool has_unknown(const proa_tensor *t, int64_t but)
{
    for (int i = 0; i < t->ndim; i++)
        if (i != but && t->shape[i] < 0) return true;
    return false;
}

/* indices brought to the shape `to`, which they share with arr beside the axis. */
static proa_status put_indices(proa_wire_writer *w, proa_tensor *indices, proa_tensor *arr, int64_t axis,
                               const proa_meta *to, proa_tensor **out)
{
    if (!has_unknown(indices, axis) && !has_unknown(arr, axis))
        return proa__wire_put_expanded(w, indices, to, out);
    proa_meta m = proa_meta_of(arr);
    m.shape[axis] = 1;
    proa_tensor *first = proa_wire_temporary(w, &m);
    if (!first) return proa_error();
    PROA_TRY(proa__wire_put_slice(w, arr, first, PROA_INTS(axis), PROA_INTS(0), PROA_INTS(1)));
    return proa__wire_put_grown(w, indices, first, to, out);
}

proa_status take_along_axis_read(proa_wire_reader *r)
{
    proa_tensor *out = proa_take_along_axis(proa_wire_input(r, "Input"), proa_wire_input(r, "Index"),
                                            proa_wire_int(r, "Axis", 0), .no_broadcast = true);
    return proa_wire_result(r, "Result", out);
}

proa_status take_along_axis_write(const void *args, proa_wire_writer *w)
{
    const proa_take_along_axis_args *a = args;
    proa_meta places = proa_meta_of(a->out), full = places;
    proa_tensor *index = a->indices, *arr = a->arr;
    int64_t axis = a->axis < 0 ? a->axis + a->arr->ndim : a->axis;
    full.shape[axis] = a->arr->shape[axis];
    if (a->broadcast) {
        PROA_TRY(put_indices(w, a->indices, arr, axis, &places, &index));
        if (!has_unknown(arr, axis) && !has_unknown(a->indices, axis))
            PROA_TRY(proa__wire_put_expanded(w, arr, &full, &arr));
    }
    PROA_TRY(proa_wire_op(w, "take_along_axis"));
    PROA_TRY(proa_wire_put_input(w, "Input", arr));
    PROA_TRY(proa_wire_put_input(w, "Index", index));
    PROA_TRY(proa_wire_put_output(w, "Result", a->out));
    return proa_wire_put_int(w, "Axis", PROA_WIRE_INT, axis); /* its kernel takes no negative one */
}

static const char *const reduce_names[] = {"assign", "add", "multiply", "mean", "amin", "amax"};

proa_status put_along_axis_read(proa_wire_reader *r)
{
    const char *reduce = proa_wire_string(r, "Reduce", "assign");
    int mode = -1;
    for (int i = 0; reduce && i < 6; i++)
        if (!strcmp(reduce, reduce_names[i])) mode = i;
    if (reduce && !strcmp(reduce, "mul")) mode = PROA_PUT_MODE_MULTIPLY;
    if (mode < 0)
        return OP_FAIL("put_along_axis", UNSUPPORTED, "reduce",
                       "is \"%s\"; expected assign, add, mul, mean, amin or amax", reduce ? reduce : "");
    proa_tensor *out = proa_put_along_axis(
        proa_wire_input(r, "Input"), proa_wire_input(r, "Index"), proa_wire_input(r, "Value"),
        proa_wire_int(r, "Axis", 0), .reduce = (proa_put_mode)mode,
        .no_include_self = !proa_wire_int(r, "Include_self", 1), .no_broadcast = true);
    return proa_wire_result(r, "Result", out);
}

proa_status put_along_axis_write(const void *args, proa_wire_writer *w)
{
    const proa_put_along_axis_args *a = args;
    proa_meta places = proa_meta_of(a->indices);
    proa_tensor *index, *values;
    int64_t axis = a->axis < 0 ? a->axis + a->arr->ndim : a->axis;
    for (int i = 0; i < places.ndim && a->broadcast; i++)
        if (i != axis) places.shape[i] = a->arr->shape[i];
    if (a->broadcast) PROA_TRY(put_indices(w, a->indices, a->arr, axis, &places, &index));
    else index = a->indices;
    if (has_unknown(a->values, -1) || has_unknown(index, -1))
        PROA_TRY(proa__wire_put_grown(w, a->values, index, &places, &values));
    else PROA_TRY(proa__wire_put_expanded(w, a->values, &places, &values));
    PROA_TRY(proa_wire_op(w, "put_along_axis"));
    PROA_TRY(proa_wire_put_input(w, "Input", a->arr));
    PROA_TRY(proa_wire_put_input(w, "Index", index));
    PROA_TRY(proa_wire_put_input(w, "Value", values));
    PROA_TRY(proa_wire_put_output(w, "Result", a->out));
    PROA_TRY(proa_wire_put_int(w, "Axis", PROA_WIRE_INT, axis));
    PROA_TRY(proa_wire_put_string(w, "Reduce",
                                  a->reduce == PROA_PUT_MODE_MULTIPLY ? "mul" : reduce_names[a->reduce]));
    return proa_wire_put_int(w, "Include_self", PROA_WIRE_BOOLEAN, a->include_self);
}

/* ---- set_value -------------------------------------------------------------------------- */

/* The value that attributes hold: in `values` since Paddle 2.5, before that in one list attribute per
 * dtype. */
static proa_tensor *value_of(proa_wire_reader *r, proa_dtype dtype)
{
    static const char *const lists[] = {"values", "fp32_values", "fp64_values", "fp16_values"};
    static const char *const whole[] = {"int64_values", "int32_values", "bool_values", "values"};
    proa_ints shape = proa_wire_ints(r, "shape");
    if (!shape.count) shape = PROA_INTS(1);
    for (int i = dtype == PROA_I64; i < 4; i++) { /* a double does not hold every int64 */
        proa_floats v = proa_wire_has(r, lists[i]) ? proa_wire_floats(r, lists[i]) : (proa_floats){0, NULL};
        if (v.count)
            return proa_cast(proa_reshape(proa_from_data(v.at, PROA_INTS(v.count), PROA_F64), shape), dtype);
    }
    for (int i = 0; i < 4; i++) {
        proa_ints v = proa_wire_has(r, whole[i]) ? proa_wire_ints(r, whole[i]) : PROA_SCALAR_SHAPE;
        if (v.count)
            return proa_cast(proa_reshape(proa_from_data(v.at, PROA_INTS(v.count), PROA_I64), shape), dtype);
    }
    OP_FAIL("set_value", CORRUPT, "value", "is neither a tensor nor in the attributes");
    return NULL;
}

proa_status set_value_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "Input"), *value = proa_wire_input(r, "ValueTensor");
    if (!x) return proa_error();
    if (!proa__is_given(value)) value = value_of(r, (proa_dtype)x->dtype);
    else if (value->dtype != x->dtype) value = proa_cast(value, (proa_dtype)x->dtype);
    proa_tensor *out = proa_set_value(
        x, value, proa_wire_ints(r, "axes"), proa_wire_list(r, "starts", NULL, "StartsTensorList"),
        proa_wire_list(r, "ends", NULL, "EndsTensorList"),
        .steps = proa_wire_list(r, "steps", NULL, "StepsTensorList"),
        .decrease_axes = proa_wire_ints(r, "decrease_axes"), .none_axes = proa_wire_ints(r, "none_axes"));
    return proa_wire_result(r, "Out", out);
}

static proa_status put_bounds(proa_wire_writer *w, const char *attr, const char *slot, const proa_ints *v,
                              int64_t n)
{
    int64_t at[PROA_MAX_DIMS];
    if (proa__is_given(v->tensor))
        return OP_FAIL("set_value", UNSUPPORTED, attr,
                       "come from one tensor; a program needs numbers or a list of tensors");
    for (int64_t i = 0; i < n && i < PROA_MAX_DIMS; i++) {
        at[i] = v->count ? proa__ints_at(v, i) : 1;
        if (at[i] == PROA_UNKNOWN) at[i] = -1;
    }
    PROA_TRY(proa__wire_put_entries(w, slot, v));
    return proa_wire_put_ints(w, attr, PROA_WIRE_LONGS, (proa_ints){n, at, NULL, NULL});
}

/* Writes set_value on a 0-D tensor as assign, since Paddle's set_value kernel rejects 0-D tensors. */
static proa_status write_scalar(const proa_set_value_args *a, proa_wire_writer *w)
{
    PROA_TRY(proa_wire_op(w, "assign"));
    PROA_TRY(proa_wire_put_input(w, "X", a->value));
    return proa_wire_put_output(w, "Out", a->out);
}

proa_status set_value_write(const void *args, proa_wire_writer *w)
{
    const proa_set_value_args *a = args;
    int64_t n = a->axes.count;
    proa_ints none = PROA_SCALAR_SHAPE;
    if (a->x->ndim == 0) return write_scalar(a, w);
    PROA_TRY(proa_wire_op(w, "set_value"));
    PROA_TRY(proa_wire_put_input(w, "Input", a->x));
    PROA_TRY(proa_wire_put_input(w, "ValueTensor", a->value));
    PROA_TRY(proa_wire_put_output(w, "Out", a->out));
    PROA_TRY(proa__wire_put_axes(w, "axes", PROA_WIRE_LONGS, &a->axes, a->x->ndim));
    PROA_TRY(put_bounds(w, "starts", "StartsTensorList", &a->starts, n));
    PROA_TRY(put_bounds(w, "ends", "EndsTensorList", &a->ends, n));
    PROA_TRY(put_bounds(w, "steps", "StepsTensorList", &a->steps, n));
    PROA_TRY(proa__wire_put_axes(w, "decrease_axes", PROA_WIRE_LONGS, &a->decrease_axes, a->x->ndim));
    PROA_TRY(proa_wire_put_ints(w, "none_axes", PROA_WIRE_LONGS, a->none_axes));
    PROA_TRY(proa__wire_put_dtype(w, "dtype", (proa_dtype)a->value->dtype));
    return proa_wire_put_ints(w, "shape", PROA_WIRE_LONGS, none);
}

/* ---- filling ---------------------------------------------------------------------------- */

static proa_status plain_value(const char *who, const proa_scalar *v, double *to)
{
    *to = v->kind == PROA_SCALAR_FLOAT ? v->f : (double)v->i;
    if (v->kind != PROA_SCALAR_TENSOR && v->kind != PROA_SCALAR_COMPLEX) return PROA_OK;
    return OP_FAIL(who, UNSUPPORTED, "value", "is a tensor or complex; a program needs a real number");
}

/* Written as where(mask, filled, x), the mask first brought to x's shape. */
proa_status masked_fill_write(const void *args, proa_wire_writer *w)
{
    const proa_masked_fill_args *a = args;
    double value;
    PROA_TRY(plain_value("masked_fill", &a->value, &value));
    if (a->out->ndim != a->x->ndim || a->out->numel != a->x->numel)
        return OP_FAIL("masked_fill", UNSUPPORTED, "mask",
                       "is larger than x; a program needs x of the full shape");
    proa_meta m = proa_meta_of(a->x);
    m.dtype = PROA_BOOL;
    proa_tensor *filled = proa__wire_filled_like(w, a->x, (proa_dtype)a->x->dtype, value);
    proa_tensor *ones = proa__wire_filled_like(w, a->x, PROA_BOOL, 1), *mask = proa_wire_temporary(w, &m);
    if (!filled || !ones || !mask) return proa_error();
    PROA_TRY(proa_wire_op(w, "logical_and"));
    PROA_TRY(proa_wire_put_input(w, "X", ones));
    PROA_TRY(proa_wire_put_input(w, "Y", a->mask));
    PROA_TRY(proa_wire_put_output(w, "Out", mask));
    PROA_TRY(proa_wire_op(w, "where"));
    PROA_TRY(proa_wire_put_input(w, "Condition", mask));
    PROA_TRY(proa_wire_put_input(w, "X", filled));
    PROA_TRY(proa_wire_put_input(w, "Y", a->x));
    return proa_wire_put_output(w, "Out", a->out);
}

/* x with axis 0 and `axis` exchanged. */
static proa_status put_exchanged(proa_wire_writer *w, proa_tensor *x, int64_t axis, proa_tensor *to)
{
    int64_t perm[PROA_MAX_DIMS];
    for (int i = 0; i < x->ndim; i++) perm[i] = i == 0 ? axis : i == axis ? 0 : i;
    PROA_TRY(proa_wire_op(w, "transpose2"));
    PROA_TRY(proa_wire_put_input(w, "X", x));
    PROA_TRY(proa_wire_put_output(w, "Out", to));
    return proa_wire_put_ints(w, "axis", PROA_WIRE_INTS, (proa_ints){x->ndim, perm, NULL, NULL});
}

/* Written as a scatter of filled rows; another axis than the first is brought there and back. */
proa_status index_fill_write(const void *args, proa_wire_writer *w)
{
    const proa_index_fill_args *a = args;
    double value;
    int64_t axis = a->axis < 0 ? a->axis + a->x->ndim : a->axis;
    proa_tensor *x = a->x, *out = a->out;
    PROA_TRY(plain_value("index_fill", &a->value, &value));
    if (axis) {
        proa_meta m = proa_meta_of(x);
        m.shape[0] = x->shape[axis], m.shape[axis] = x->shape[0];
        x = proa_wire_temporary(w, &m);
        out = proa_wire_temporary(w, &m);
        if (!x || !out) return proa_error();
        PROA_TRY(put_exchanged(w, a->x, axis, x));
    }
    proa_meta m = proa_meta_of(x);
    m.shape[0] = a->index->numel;
    proa_tensor *rows = proa_wire_temporary(w, &m);
    if (!rows) return proa_error();
    PROA_TRY(proa_wire_op(w, "gather"));
    PROA_TRY(proa_wire_put_input(w, "X", x));
    PROA_TRY(proa_wire_put_input(w, "Index", a->index));
    PROA_TRY(proa_wire_put_output(w, "Out", rows));
    PROA_TRY(proa_wire_put_int(w, "axis", PROA_WIRE_INT, 0));
    proa_tensor *filled = proa__wire_filled_like(w, rows, (proa_dtype)x->dtype, value);
    if (!filled) return proa_error();
    PROA_TRY(proa_wire_op(w, "scatter"));
    PROA_TRY(proa_wire_put_input(w, "X", x));
    PROA_TRY(proa_wire_put_input(w, "Ids", a->index));
    PROA_TRY(proa_wire_put_input(w, "Updates", filled));
    PROA_TRY(proa_wire_put_output(w, "Out", out));
    PROA_TRY(proa_wire_put_int(w, "overwrite", PROA_WIRE_BOOLEAN, 1));
    return axis ? put_exchanged(w, out, axis, a->out) : PROA_OK;
}

/* ---- unique ----------------------------------------------------------------------------- */

/* The inverse is an output that the program's op always wants. */
proa_status unique_write(const void *args, proa_wire_writer *w)
{
    const proa_unique_args *a = args;
    proa_meta m = {.dtype = a->dtype, .ndim = 1, .shape = {a->x->numel}};
    proa_tensor *inverse = proa__is_given(a->inverse) ? a->inverse : proa_wire_temporary(w, &m);
    if (!inverse) return proa_error();
    PROA_TRY(proa_wire_op(w, "unique"));
    PROA_TRY(proa_wire_put_input(w, "X", a->x));
    PROA_TRY(proa_wire_put_output(w, "Out", a->out));
    if (proa__is_given(a->index)) PROA_TRY(proa_wire_put_output(w, "Indices", a->index));
    PROA_TRY(proa_wire_put_output(w, "Index", inverse));
    if (proa__is_given(a->counts)) PROA_TRY(proa_wire_put_output(w, "Counts", a->counts));
    PROA_TRY(proa_wire_put_int(w, "return_index", PROA_WIRE_BOOLEAN, a->return_index));
    PROA_TRY(proa_wire_put_int(w, "return_inverse", PROA_WIRE_BOOLEAN, a->return_inverse));
    PROA_TRY(proa_wire_put_int(w, "return_counts", PROA_WIRE_BOOLEAN, a->return_counts));
    PROA_TRY(proa__wire_put_axes(w, "axis", PROA_WIRE_INTS, &a->axis, a->x->ndim));
    PROA_TRY(proa__wire_put_dtype(w, "dtype", a->dtype));
    return proa_wire_put_int(w, "is_sorted", PROA_WIRE_BOOLEAN, 1);
}
