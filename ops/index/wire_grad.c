/* Gradients of gathering ops on the wire: Paddle's carry the input X where ours carry its shape, so writing
 * makes zeros of that shape. May use core and ops. */
#include "ops/ints.h"
#include "ops/wire_like.h"
#include "impl/index.h"

/* slots: the input, the places, the incoming gradient, the result. */
static proa_status put_three(proa_wire_writer *w, const char *const slots[4], proa_tensor *x,
                             proa_tensor *places, proa_tensor *d_out, proa_tensor *d_x)
{
    PROA_TRY(proa_wire_put_input(w, slots[0], x));
    PROA_TRY(proa_wire_put_input(w, slots[1], places));
    PROA_TRY(proa_wire_put_input(w, slots[2], d_out));
    return proa_wire_put_output(w, slots[3], d_x);
}

static const char *const of_index[4] = {"X", "Index", "Out@GRAD", "X@GRAD"};
static const char *const of_axis[4] = {"Input", "Index", "Result@GRAD", "Input@GRAD"};
static const char *const of_mask[4] = {"X", "Mask", "Y@GRAD", "X@GRAD"};

/* ---- index_select ----------------------------------------------------------------------- */

proa_status index_select_grad_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X"), *d_out = proa_wire_input(r, "Out@GRAD");
    if (!x || !d_out) return proa_error();
    int64_t axis = proa_wire_int(r, "dim", 0);
    proa_tensor *d_x = proa_index_select_grad(d_out, proa_wire_input(r, "Index"), proa__shape_like(x),
                                              .axis = axis ? axis : PROA_ZERO);
    return proa_wire_result(r, "X@GRAD", d_x);
}

proa_status index_select_grad_write(const void *args, proa_wire_writer *w)
{
    const proa_index_select_grad_args *a = args;
    proa_tensor *x = proa__wire_put_like(w, &a->shape, a->d_x);
    if (!x) return proa_error();
    PROA_TRY(proa_wire_op(w, "index_select_grad"));
    PROA_TRY(put_three(w, of_index, x, a->index, a->d_out, a->d_x));
    return proa_wire_put_int(w, "dim", PROA_WIRE_INT, a->axis);
}

/* ---- gather_nd -------------------------------------------------------------------------- */

proa_status gather_nd_grad_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X"), *d_out = proa_wire_input(r, "Out@GRAD");
    if (!x || !d_out) return proa_error();
    return proa_wire_result(r, "X@GRAD",
                            proa_gather_nd_grad(d_out, proa_wire_input(r, "Index"), proa__shape_like(x)));
}

proa_status gather_nd_grad_write(const void *args, proa_wire_writer *w)
{
    const proa_gather_nd_grad_args *a = args;
    proa_tensor *x = proa__wire_put_like(w, &a->shape, a->d_x);
    if (!x) return proa_error();
    PROA_TRY(proa_wire_op(w, "gather_nd_grad"));
    return put_three(w, of_index, x, a->index, a->d_out, a->d_x);
}

/* ---- take_along_axis -------------------------------------------------------------------- */

proa_status take_along_axis_grad_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "Input"), *d_out = proa_wire_input(r, "Result@GRAD");
    if (!x || !d_out) return proa_error();
    proa_tensor *d_x = proa_take_along_axis_grad(d_out, proa_wire_input(r, "Index"), proa__shape_like(x),
                                                 proa_wire_int(r, "Axis", 0));
    return proa_wire_result(r, "Input@GRAD", d_x);
}

proa_status take_along_axis_grad_write(const void *args, proa_wire_writer *w)
{
    const proa_take_along_axis_grad_args *a = args;
    proa_tensor *x = proa__wire_put_like(w, &a->shape, a->d_arr);
    if (!x) return proa_error();
    PROA_TRY(proa_wire_op(w, "take_along_axis_grad"));
    PROA_TRY(put_three(w, of_axis, x, a->indices, a->d_out, a->d_arr));
    return proa_wire_put_int(w, "Axis", PROA_WIRE_INT, a->axis < 0 ? a->axis + a->d_arr->ndim : a->axis);
}

/* ---- masked_select ---------------------------------------------------------------------- */

proa_status masked_select_grad_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X"), *d_out = proa_wire_input(r, "Y@GRAD");
    if (!x || !d_out) return proa_error();
    return proa_wire_result(r, "X@GRAD",
                            proa_masked_select_grad(d_out, proa_wire_input(r, "Mask"), proa__shape_like(x)));
}

proa_status masked_select_grad_write(const void *args, proa_wire_writer *w)
{
    const proa_masked_select_grad_args *a = args;
    proa_tensor *x = proa__wire_put_like(w, &a->shape, a->d_x);
    if (!x) return proa_error();
    PROA_TRY(proa_wire_op(w, "masked_select_grad"));
    return put_three(w, of_mask, x, a->mask, a->d_out, a->d_x);
}
