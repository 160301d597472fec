/* Reads and writes shape ops whose form in Paddle's programs differs from ours: axes, bounds, sections and
 * depths given by tensors, infer_flags (on which axes a slice's bounds are numbers), op types of older
 * programs, and set_strided, written as a scatter. May use core and ops. */
#include "ops/ints.h"
#include "ops/wire_util.h"
#include "impl/shape.h"

/* ---- flatten, expand -------------------------------------------------------------------- */

/* flatten and flatten2: two axes, parted before attribute axis. */
proa_status flatten_read_v2(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X");
    int64_t axis = proa_wire_int(r, "axis", 1);
    if (!x) return proa_error();
    if (axis < 0) axis += x->ndim;
    if (axis < 0 || axis > x->ndim)
        return OP_FAIL("flatten", OUT_OF_RANGE, "axis", "of flatten2 is %lld; x has %d axes", (long long)axis,
                       x->ndim);
    proa_tensor *y;
    if (axis == 0) {
        y = proa_reshape(x, PROA_INTS(1, -1));
    } else if (axis == x->ndim) {
        y = proa_reshape(x, PROA_INTS(-1, 1));
    } else {
        y = proa_flatten(x, .start_axis = axis, .stop_axis = -1);
        y = axis == 1 ? y : proa_flatten(y, .start_axis = PROA_ZERO, .stop_axis = axis - 1);
    }
    return proa_wire_result(r, "Out", y);
}

proa_status broadcast_to_write(const void *args, proa_wire_writer *w)
{
    const proa_broadcast_to_args *a = args;
    PROA_TRY(proa_wire_op(w, "expand_v2"));
    PROA_TRY(proa_wire_put_input(w, "X", a->x));
    PROA_TRY(proa_wire_put_output(w, "Out", a->out));
    return proa__wire_put_list(w, "shape", &a->shape, "Shape", "expand_shapes_tensor");
}

static proa_status put_copy(proa_wire_writer *w, proa_tensor *x, proa_tensor *out)
{
    PROA_TRY(proa_wire_op(w, "assign"));
    PROA_TRY(proa_wire_put_input(w, "X", x));
    return proa_wire_put_output(w, "Out", out);
}

/* A copy whose variable stops gradients: Paddle's executor writes over memory that share_data shares. */
proa_status share_data_write(const void *args, proa_wire_writer *w)
{
    const proa_share_data_args *a = args;
    return put_copy(w, a->x, a->out);
}

proa_status expand_as_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X"), *y = proa_wire_input(r, "Y");
    proa_tensor *out =
        proa__is_given(y) ? proa_expand_as(x, y) : proa_expand(x, proa_wire_ints(r, "target_shape"));
    return proa_wire_result(r, "Out", out);
}

proa_status expand_as_write(const void *args, proa_wire_writer *w)
{
    const proa_expand_as_args *a = args;
    PROA_TRY(proa_wire_op(w, "expand_as_v2"));
    PROA_TRY(proa_wire_put_input(w, "X", a->x));
    PROA_TRY(proa_wire_put_input(w, "Y", a->y));
    PROA_TRY(proa_wire_put_output(w, "Out", a->out));
    return proa_wire_put_ints(w, "target_shape", PROA_WIRE_INTS,
                              (proa_ints){a->y->ndim, a->y->shape, NULL, NULL});
}

/* ---- slice ------------------------------------------------------------------------------ */

/* infer_flags: −1 where a tensor gives a bound, as Paddle writes it. */
static proa_status put_flags(proa_wire_writer *w, const proa_ints *axes, const proa_ints *lists[3])
{
    int64_t flags[PROA_MAX_DIMS];
    int64_t n = axes->count < PROA_MAX_DIMS ? axes->count : PROA_MAX_DIMS;
    for (int64_t i = 0; i < n; i++) {
        flags[i] = 1;
        for (int k = 0; k < 3; k++)
            if (lists[k] && (proa__is_given(lists[k]->tensor) ||
                             (lists[k]->tensors && proa__is_given(lists[k]->tensors[i]))))
                flags[i] = -1;
    }
    return proa_wire_put_ints(w, "infer_flags", PROA_WIRE_INTS, (proa_ints){n, flags, NULL, NULL});
}

/* "From −1 to 0, dropped" is the last element here; with numbers Paddle needs an end past the axis. */
static void open_ends(const proa_slice_args *a, int64_t *ends)
{
    for (int64_t i = 0; i < a->axes.count; i++) {
        ends[i] = a->ends.at[i];
        for (int64_t k = 0; k < a->decrease_axis.count; k++)
            if (a->decrease_axis.at[k] == a->axes.at[i] && a->starts.at[i] == -1 && ends[i] == 0)
                ends[i] = INT32_MAX;
    }
}

proa_status slice_write(const void *args, proa_wire_writer *w)
{
    const proa_slice_args *a = args;
    if (a->input->ndim == 0) return put_copy(w, a->input, a->out); /* Paddle's kernel takes no scalar */
    const proa_ints *lists[3] = {&a->starts, &a->ends, NULL};
    int64_t at[PROA_MAX_DIMS];
    proa_ints ends = a->ends;
    bool plain = !proa__ints_from_tensor(&a->starts) && !proa__ints_from_tensor(&ends);
    if (plain && a->axes.count <= PROA_MAX_DIMS) {
        open_ends(a, at);
        ends.at = at;
    }
    PROA_TRY(proa_wire_op(w, "slice"));
    PROA_TRY(proa_wire_put_input(w, "Input", a->input));
    PROA_TRY(proa_wire_put_output(w, "Out", a->out));
    PROA_TRY(proa__wire_put_axes(w, "axes", PROA_WIRE_INTS, &a->axes, a->input->ndim));
    PROA_TRY(proa__wire_put_list(w, "starts", &a->starts, "StartsTensor", "StartsTensorList"));
    PROA_TRY(proa__wire_put_list(w, "ends", &ends, "EndsTensor", "EndsTensorList"));
    PROA_TRY(proa__wire_put_axes(w, "decrease_axis", PROA_WIRE_INTS, &a->decrease_axis, a->input->ndim));
    return put_flags(w, &a->axes, lists);
}

proa_status strided_slice_write(const void *args, proa_wire_writer *w)
{
    const proa_strided_slice_args *a = args;
    const proa_ints *lists[3] = {&a->starts, &a->ends, &a->strides};
    if (a->x->ndim == 0) return put_copy(w, a->x, a->out);
    PROA_TRY(proa_wire_op(w, "strided_slice"));
    PROA_TRY(proa_wire_put_input(w, "Input", a->x));
    PROA_TRY(proa_wire_put_output(w, "Out", a->out));
    PROA_TRY(proa__wire_put_axes(w, "axes", PROA_WIRE_INTS, &a->axes, a->x->ndim));
    PROA_TRY(proa__wire_put_list(w, "starts", &a->starts, "StartsTensor", "StartsTensorList"));
    PROA_TRY(proa__wire_put_list(w, "ends", &a->ends, "EndsTensor", "EndsTensorList"));
    PROA_TRY(proa__wire_put_list(w, "strides", &a->strides, "StridesTensor", "StridesTensorList"));
    PROA_TRY(proa__wire_put_axes(w, "decrease_axis", PROA_WIRE_INTS, &a->decrease_axis, a->x->ndim));
    return put_flags(w, &a->axes, lists);
}

/* ---- fill_diagonal ---------------------------------------------------------------------- */

/* Of more than two axes Paddle fills the diagonal only where it wraps. */
proa_status fill_diagonal_write(const void *args, proa_wire_writer *w)
{
    const proa_fill_diagonal_args *a = args;
    PROA_TRY(proa_wire_op(w, "fill_diagonal"));
    PROA_TRY(proa_wire_put_input(w, "X", a->x));
    PROA_TRY(proa_wire_put_output(w, "Out", a->out));
    PROA_TRY(proa_wire_put_float(w, "value", a->value));
    PROA_TRY(proa_wire_put_int(w, "offset", PROA_WIRE_INT, a->offset));
    return proa_wire_put_int(w, "wrap", PROA_WIRE_BOOLEAN, a->wrap || a->x->ndim > 2);
}

/* ---- concat, split ---------------------------------------------------------------------- */

proa_status concat_read(proa_wire_reader *r)
{
    proa_ints from = {.tensor = proa_wire_input(r, "AxisTensor")};
    int64_t axis = proa_wire_int(r, "axis", 0);
    if (!proa__is_given(from.tensor)) from.tensor = NULL;
    proa_tensor *out = proa_concat(proa_wire_inputs(r, "X"), .axis = axis, .axis_tensor = from);
    return proa_wire_result(r, "Out", out);
}

proa_status concat_write(const void *args, proa_wire_writer *w)
{
    const proa_concat_args *a = args;
    PROA_TRY(proa_wire_op(w, "concat"));
    for (int64_t i = 0; i < a->x.count; i++) PROA_TRY(proa_wire_put_input(w, "X", a->x.at[i]));
    if (proa__wire_supplier(&a->axis_tensor))
        PROA_TRY(proa_wire_put_input(w, "AxisTensor", proa__wire_supplier(&a->axis_tensor)));
    PROA_TRY(proa_wire_put_output(w, "Out", a->out));
    return proa_wire_put_int(w, "axis", PROA_WIRE_INT, a->axis);
}

proa_status split_read(proa_wire_reader *r)
{
    proa_ints from = {.tensor = proa_wire_input(r, "AxisTensor")};
    proa_ints sections = proa_wire_list(r, "sections", NULL, "SectionsTensorList");
    int64_t axis = proa_wire_int(r, "axis", 0), num = proa_wire_int(r, "num", 0);
    if (!proa__is_given(from.tensor)) from.tensor = NULL;
    proa_tensors out = proa_split(proa_wire_input(r, "X"), .sections = sections, .num = num, .axis = axis,
                                  .axis_tensor = from);
    return proa_wire_results(r, "Out", out);
}

proa_status split_write(const void *args, proa_wire_writer *w)
{
    const proa_split_args *a = args;
    PROA_TRY(proa_wire_op(w, "split"));
    PROA_TRY(proa_wire_put_input(w, "X", a->x));
    if (proa__wire_supplier(&a->axis_tensor))
        PROA_TRY(proa_wire_put_input(w, "AxisTensor", proa__wire_supplier(&a->axis_tensor)));
    for (int64_t i = 0; i < a->out.count; i++) PROA_TRY(proa_wire_put_output(w, "Out", a->out.at[i]));
    PROA_TRY(proa_wire_put_int(w, "num", PROA_WIRE_INT, a->num));
    int64_t axis = a->axis < 0 ? a->axis + a->x->ndim : a->axis; /* the program's op takes no negative one */
    PROA_TRY(proa_wire_put_int(w, "axis", PROA_WIRE_INT, axis));
    if (!a->sections.tensors && !a->sections.tensor)
        return proa_wire_put_ints(w, "sections", PROA_WIRE_INTS, a->sections);
    if (!a->sections.tensors)
        return OP_FAIL("split", UNSUPPORTED, "sections",
                       "come from one tensor; a program needs numbers or a list of tensors");
    int64_t *flat = proa_scope_alloc((size_t)a->sections.count * sizeof *flat);
    if (!flat) return proa_error();
    for (int64_t i = 0; i < a->sections.count; i++) {
        flat[i] = proa__is_given(a->sections.tensors[i]) ? -1 : a->sections.at[i];
    }
    PROA_TRY(proa__wire_put_entries(w, "SectionsTensorList", &a->sections));
    return proa_wire_put_ints(w, "sections", PROA_WIRE_INTS,
                              (proa_ints){a->sections.count, flat, NULL, NULL});
}

proa_status unstack_write(const void *args, proa_wire_writer *w)
{
    const proa_unstack_args *a = args;
    PROA_TRY(proa_wire_op(w, "unstack"));
    PROA_TRY(proa_wire_put_input(w, "X", a->x));
    for (int64_t i = 0; i < a->out.count; i++) PROA_TRY(proa_wire_put_output(w, "Y", a->out.at[i]));
    PROA_TRY(proa_wire_put_int(w, "axis", PROA_WIRE_INT, a->axis));
    return proa_wire_put_int(w, "num", PROA_WIRE_INT, a->out.count);
}

/* ---- one_hot ---------------------------------------------------------------------------- */

static proa_status read_one_hot(proa_wire_reader *r, proa_tensor *x)
{
    proa_tensor *given = proa_wire_input(r, "depth_tensor");
    proa_ints depth = {.tensor = proa__is_given(given) ? given : NULL};
    proa_tensor *out = proa_one_hot(x, proa_wire_int(r, "depth", -1), .depth_tensor = depth,
                                    .dtype = proa_wire_dtype(r, "dtype", PROA_F32),
                                    .allow_out_of_range = proa_wire_int(r, "allow_out_of_range", 0) != 0);
    return proa_wire_result(r, "Out", out);
}

proa_status one_hot_read(proa_wire_reader *r) { return read_one_hot(r, proa_wire_input(r, "X")); }

/* The old form's X has a last axis of length 1, which the result replaces. */
proa_status one_hot_read_v1(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X");
    if (x && x->ndim > 1) x = proa_squeeze(x, .axis = PROA_INTS(-1));
    return read_one_hot(r, x);
}

proa_status one_hot_write(const void *args, proa_wire_writer *w)
{
    const proa_one_hot_args *a = args;
    PROA_TRY(proa_wire_op(w, "one_hot_v2"));
    PROA_TRY(proa_wire_put_input(w, "X", a->x));
    if (proa__wire_supplier(&a->depth_tensor))
        PROA_TRY(proa_wire_put_input(w, "depth_tensor", proa__wire_supplier(&a->depth_tensor)));
    PROA_TRY(proa_wire_put_output(w, "Out", a->out));
    PROA_TRY(proa_wire_put_int(w, "depth", PROA_WIRE_INT, a->num_classes));
    PROA_TRY(proa__wire_put_dtype(w, "dtype", (proa_dtype)a->dtype));
    return proa_wire_put_int(w, "allow_out_of_range", PROA_WIRE_BOOLEAN, a->allow_out_of_range);
}

/* ---- set_strided ------------------------------------------------------------------------ */

static proa_tensor *reshaped(proa_wire_writer *w, proa_tensor *x, int64_t numel)
{
    proa_meta m = {.dtype = (proa_dtype)x->dtype, .ndim = 1, .shape = {numel}};
    proa_tensor *flat = proa_wire_temporary(w, &m);
    if (!flat || proa_wire_op(w, "reshape2") != PROA_OK || proa_wire_put_input(w, "X", x) != PROA_OK ||
        proa_wire_put_output(w, "Out", flat) != PROA_OK ||
        proa_wire_put_ints(w, "shape", PROA_WIRE_INTS, PROA_INTS(-1)) != PROA_OK)
        return NULL;
    return flat;
}

/* The flat indices of the elements that set_strided writes, as a constant of the program. */
static proa_tensor *place_numbers(proa_wire_writer *w, const proa_set_strided_args *a, int64_t count)
{
    size_t bytes;
    proa_meta m = {.dtype = PROA_I64, .ndim = 1, .shape = {count}};
    if (!proa__mul_size((size_t)count, sizeof(int64_t), &bytes)) return NULL;
    int64_t *at = proa_scope_alloc(bytes);
    proa_tensor *index = proa_wire_temporary(w, &m);
    for (int64_t k = 0; at && k < count; k++) {
        int64_t rest = k;
        at[k] = a->offset;
        for (int i = (int)a->shape.count - 1; i >= 0; rest /= a->shape.at[i--])
            at[k] += rest % a->shape.at[i] * a->strides.at[i];
    }
    if (!at || !index || proa_wire_op(w, "assign_value") != PROA_OK ||
        proa_wire_put_output(w, "Out", index) != PROA_OK ||
        proa_wire_put_ints(w, "shape", PROA_WIRE_INTS, PROA_INTS(count)) != PROA_OK ||
        proa__wire_put_dtype(w, "dtype", PROA_I64) != PROA_OK ||
        proa_wire_put_ints(w, "int64_values", PROA_WIRE_LONGS, (proa_ints){count, at, NULL, NULL}) != PROA_OK)
        return NULL;
    return index;
}

/* Written as x made flat, scattered into, and given back its shape. */
proa_status set_strided_write(const void *args, proa_wire_writer *w)
{
    const proa_set_strided_args *a = args;
    proa_meta full = {.dtype = (proa_dtype)a->value->dtype, .ndim = (int8_t)a->shape.count};
    for (int i = 0; i < full.ndim; i++) full.shape[i] = a->shape.at[i];
    int64_t count = proa__meta_numel(&full);
    proa_tensor *value = proa_wire_temporary(w, &full), *flat = reshaped(w, a->x, a->x->numel), *updates,
                *index;
    if (!value || !flat) return proa_error();
    proa_meta line = proa_meta_of(flat);
    PROA_TRY(proa_wire_op(w, "expand_v2"));
    PROA_TRY(proa_wire_put_input(w, "X", a->value));
    PROA_TRY(proa_wire_put_output(w, "Out", value));
    PROA_TRY(proa_wire_put_ints(w, "shape", PROA_WIRE_INTS, a->shape));
    updates = reshaped(w, value, count);
    index = place_numbers(w, a, count);
    proa_tensor *out = proa_wire_temporary(w, &line);
    if (!updates || !index || !out) return proa_error();
    PROA_TRY(proa_wire_op(w, "scatter"));
    PROA_TRY(proa_wire_put_input(w, "X", flat));
    PROA_TRY(proa_wire_put_input(w, "Ids", index));
    PROA_TRY(proa_wire_put_input(w, "Updates", updates));
    PROA_TRY(proa_wire_put_output(w, "Out", out));
    PROA_TRY(proa_wire_put_int(w, "overwrite", PROA_WIRE_BOOLEAN, 1));
    proa_meta dims = {.dtype = PROA_I32, .ndim = 1, .shape = {a->x->ndim}};
    proa_tensor *shape = proa_wire_temporary(w, &dims);
    if (!shape) return proa_error();
    if (a->x->numel < 0) {
        PROA_TRY(proa_wire_op(w, "shape"));
        PROA_TRY(proa_wire_put_input(w, "Input", a->x));
        PROA_TRY(proa_wire_put_output(w, "Out", shape));
    }
    PROA_TRY(proa_wire_op(w, "reshape2"));
    PROA_TRY(proa_wire_put_input(w, "X", out));
    if (a->x->numel < 0) PROA_TRY(proa_wire_put_input(w, "Shape", shape));
    PROA_TRY(proa_wire_put_output(w, "Out", a->out));
    return proa_wire_put_ints(w, "shape", PROA_WIRE_INTS, (proa_ints){a->x->ndim, a->x->shape, NULL, NULL});
}
