/* Gradients of shape ops in Paddle's programs: Paddle's op takes the forward input X, ours only its shape, so
 * that a written program creates zeros of that shape. May use core and ops. */
#include "ops/ints.h"
#include "ops/wire_like.h"
#include "impl/shape.h"

static proa_status put_pair(proa_wire_writer *w, const char *x_slot, proa_tensor *x, const char *d_slot,
                            proa_tensor *d_out)
{
    PROA_TRY(proa_wire_put_input(w, x_slot, x));
    return proa_wire_put_input(w, d_slot, d_out);
}

/* ---- as_strided, tile ------------------------------------------------------------------- */

proa_status as_strided_grad_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "input"), *d_out = proa_wire_input(r, "out@GRAD");
    if (!x || !d_out) return proa_error();
    int64_t offset = proa_wire_int(r, "offset", 0);
    proa_tensor *d_x =
        proa_as_strided_grad(d_out, proa__shape_like(x), proa_wire_ints(r, "dims"),
                             proa_wire_ints(r, "stride"), .offset = offset ? offset : PROA_ZERO);
    return proa_wire_result(r, "input@GRAD", d_x);
}

proa_status as_strided_grad_write(const void *args, proa_wire_writer *w)
{
    const proa_as_strided_grad_args *a = args;
    proa_tensor *x = proa__wire_put_like(w, &a->x_shape, a->d_x);
    if (!x) return proa_error();
    PROA_TRY(proa_wire_op(w, "as_strided_grad"));
    PROA_TRY(put_pair(w, "input", x, "out@GRAD", a->d_out));
    PROA_TRY(proa_wire_put_output(w, "input@GRAD", a->d_x));
    PROA_TRY(proa_wire_put_ints(w, "dims", PROA_WIRE_LONGS, a->shape));
    PROA_TRY(proa_wire_put_ints(w, "stride", PROA_WIRE_LONGS, a->stride));
    return proa_wire_put_int(w, "offset", PROA_WIRE_LONG, a->offset);
}

proa_status tile_grad_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X"), *d_out = proa_wire_input(r, "Out@GRAD");
    if (!x || !d_out) return proa_error();
    proa_ints times = proa_wire_list(r, "repeat_times", "RepeatTimes", "repeat_times_tensor");
    return proa_wire_result(r, "X@GRAD", proa_tile_grad(d_out, proa__shape_like(x), times));
}

proa_status tile_grad_write(const void *args, proa_wire_writer *w)
{
    const proa_tile_grad_args *a = args;
    proa_tensor *x = proa__wire_put_like(w, &a->shape, a->d_x);
    if (!x) return proa_error();
    PROA_TRY(proa_wire_op(w, "tile_grad"));
    PROA_TRY(put_pair(w, "X", x, "Out@GRAD", a->d_out));
    PROA_TRY(proa_wire_put_output(w, "X@GRAD", a->d_x));
    return proa__wire_put_list(w, "repeat_times", &a->repeat_times, "RepeatTimes", "repeat_times_tensor");
}

/* ---- slice, strided_slice --------------------------------------------------------------- */

static proa_status read_slice(proa_wire_reader *r, proa_ints strides)
{
    proa_tensor *x = proa_wire_input(r, "Input"), *d_out = proa_wire_input(r, "Out@GRAD");
    if (!x || !d_out) return proa_error();
    proa_tensor *d_x =
        proa_strided_slice_grad(d_out, proa__shape_like(x), proa_wire_ints(r, "axes"),
                                proa_wire_list(r, "starts", "StartsTensor", "StartsTensorList"),
                                proa_wire_list(r, "ends", "EndsTensor", "EndsTensorList"), .strides = strides,
                                .decrease_axis = proa_wire_ints(r, "decrease_axis"));
    return proa_wire_result(r, "Input@GRAD", d_x);
}

proa_status slice_grad_read(proa_wire_reader *r) { return read_slice(r, (proa_ints){0, NULL, NULL, NULL}); }

proa_status strided_slice_grad_read(proa_wire_reader *r)
{
    return read_slice(r, proa_wire_list(r, "strides", "StridesTensor", "StridesTensorList"));
}

/* Restores the dropped axes in d_out by unsqueeze2, as Paddle's strided_slice_grad requires. */
static proa_status put_dropped(proa_wire_writer *w, const proa_strided_slice_grad_args *a,
                               proa_tensor **d_out)
{
    proa_meta meta = proa_meta_of(a->d_out);
    int from = 0, ndim = a->d_x->ndim;
    for (int i = 0; i < ndim; i++) {
        bool dropped = false;
        for (int64_t k = 0; k < a->decrease_axis.count; k++)
            dropped |= a->decrease_axis.at[k] == i || a->decrease_axis.at[k] + ndim == i;
        meta.shape[i] = dropped ? 1 : from < a->d_out->ndim ? a->d_out->shape[from++] : 1;
    }
    meta.ndim = (int8_t)ndim;
    if (!(*d_out = proa_wire_temporary(w, &meta))) return proa_error();
    PROA_TRY(proa_wire_op(w, "unsqueeze2"));
    PROA_TRY(proa_wire_put_input(w, "X", a->d_out));
    PROA_TRY(proa_wire_put_output(w, "Out", *d_out));
    return proa__wire_put_axes(w, "axes", PROA_WIRE_INTS, &a->decrease_axis, a->d_x->ndim);
}

/* Without strides it is a slice's, whose bounds mean the same. */
proa_status strided_slice_grad_write(const void *args, proa_wire_writer *w)
{
    const proa_strided_slice_grad_args *a = args;
    const proa_ints *lists[3] = {&a->starts, &a->ends, &a->strides};
    int64_t flags[PROA_MAX_DIMS];
    bool strided = a->strides.count || a->strides.tensor || a->strides.tensors;
    proa_tensor *x = proa__wire_put_like(w, &a->shape, a->d_x);
    if (!x) return proa_error();
    proa_tensor *d_out = a->d_out;
    proa_ints dropped = a->decrease_axis;
    if (strided && dropped.count) {
        PROA_TRY(put_dropped(w, a, &d_out));
        dropped = PROA_SCALAR_SHAPE;
    }
    PROA_TRY(proa_wire_op(w, strided ? "strided_slice_grad" : "slice_grad"));
    PROA_TRY(put_pair(w, "Input", x, "Out@GRAD", d_out));
    PROA_TRY(proa_wire_put_output(w, "Input@GRAD", a->d_x));
    PROA_TRY(proa__wire_put_axes(w, "axes", PROA_WIRE_INTS, &a->axes, a->d_x->ndim));
    PROA_TRY(proa__wire_put_list(w, "starts", &a->starts, "StartsTensor", "StartsTensorList"));
    PROA_TRY(proa__wire_put_list(w, "ends", &a->ends, "EndsTensor", "EndsTensorList"));
    if (strided)
        PROA_TRY(proa__wire_put_list(w, "strides", &a->strides, "StridesTensor", "StridesTensorList"));
    PROA_TRY(proa__wire_put_axes(w, "decrease_axis", PROA_WIRE_INTS, &dropped, a->d_x->ndim));
    int64_t n = a->axes.count < PROA_MAX_DIMS ? a->axes.count : PROA_MAX_DIMS;
    for (int64_t i = 0; i < n; i++) {
        flags[i] = 1;
        for (int k = 0; k < 3; k++)
            if (proa__is_given(lists[k]->tensor) ||
                (lists[k]->tensors && proa__is_given(lists[k]->tensors[i])))
                flags[i] = -1;
    }
    return proa_wire_put_ints(w, "infer_flags", PROA_WIRE_INTS, (proa_ints){n, flags, NULL, NULL});
}
