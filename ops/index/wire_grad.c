/* Gradients of gathering ops in Paddle's programs: Paddle's op takes the forward input X, ours only its
 * shape, so that a written program creates zeros of that shape. May use core and ops. */
#include "ops/ints.h"
#include "ops/wire_like.h"
#include "impl/index.h"

/* slots: input, indices, incoming gradient, result. */
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

/* *t with an axis of length 1 at `axis`, in a new variable. */
static proa_status put_axis(proa_wire_writer *w, proa_tensor **t, int64_t axis)
{
    proa_meta m = proa_meta_of(*t);
    for (int64_t i = m.ndim++; i > axis; i--) m.shape[i] = m.shape[i - 1];
    m.shape[axis] = 1;
    proa_tensor *wide = proa_wire_temporary(w, &m);
    if (!wide) return proa_error();
    PROA_TRY(proa_wire_op(w, "unsqueeze2"));
    PROA_TRY(proa_wire_put_input(w, "X", *t));
    PROA_TRY(proa_wire_put_output(w, "Out", wide));
    *t = wide;
    return proa_wire_put_ints(w, "axes", PROA_WIRE_INTS, PROA_INTS(axis));
}

proa_status index_select_grad_write(const void *args, proa_wire_writer *w)
{
    const proa_index_select_grad_args *a = args;
    proa_tensor *x = proa__wire_put_like(w, &a->shape, a->d_x), *index = a->index, *d_out = a->d_out;
    if (!x) return proa_error();
    if (index->ndim == 0) { /* Paddle's kernel takes a 0-D index for an empty one */
        PROA_TRY(put_axis(w, &index, 0));
        PROA_TRY(put_axis(w, &d_out, a->axis < 0 ? a->axis + a->d_x->ndim : a->axis));
    }
    PROA_TRY(proa_wire_op(w, "index_select_grad"));
    PROA_TRY(put_three(w, of_index, x, index, d_out, a->d_x));
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

/* The gradient of arr stretched to the result's lengths, summed where arr has length 1. */
static proa_status put_stretched(proa_wire_writer *w, const proa_take_along_axis_grad_args *a, int64_t axis,
                                 proa_tensor *index, const proa_meta *full)
{
    int64_t axes[PROA_MAX_DIMS];
    int n = 0;
    for (int i = 0; i < full->ndim; i++)
        if (full->shape[i] != a->d_arr->shape[i]) axes[n++] = i;
    proa_ints shape = {full->ndim, full->shape, NULL, NULL};
    proa_tensor *x = proa__wire_put_like(w, n ? &shape : &a->shape, a->d_arr);
    proa_tensor *d_x = n ? proa_wire_temporary(w, full) : a->d_arr;
    if (!x || !d_x) return proa_error();
    PROA_TRY(proa_wire_op(w, "take_along_axis_grad"));
    PROA_TRY(put_three(w, of_axis, x, index, a->d_out, d_x));
    PROA_TRY(proa_wire_put_int(w, "Axis", PROA_WIRE_INT, axis));
    if (n == 0) return PROA_OK;
    PROA_TRY(proa_wire_op(w, "reduce_sum"));
    PROA_TRY(proa_wire_put_input(w, "X", d_x));
    PROA_TRY(proa_wire_put_output(w, "Out", a->d_arr));
    PROA_TRY(proa_wire_put_ints(w, "dim", PROA_WIRE_INTS, (proa_ints){n, axes, NULL, NULL}));
    PROA_TRY(proa_wire_put_int(w, "keep_dim", PROA_WIRE_BOOLEAN, 1));
    PROA_TRY(proa_wire_put_int(w, "reduce_all", PROA_WIRE_BOOLEAN, 0));
    PROA_TRY(proa_wire_put_int(w, "in_dtype", PROA_WIRE_INT, -1));
    return proa_wire_put_int(w, "out_dtype", PROA_WIRE_INT, -1);
}

/* Paddle broadcasts in Python: its op reads an index for each element of the incoming gradient. */
proa_status take_along_axis_grad_write(const void *args, proa_wire_writer *w)
{
    const proa_take_along_axis_grad_args *a = args;
    int64_t axis = a->axis < 0 ? a->axis + a->d_arr->ndim : a->axis;
    proa_meta full = proa_meta_of(a->d_arr);
    proa_tensor *index;
    bool known = true;
    for (int i = 0; i < full.ndim; i++) known = known && full.shape[i] >= 0 && a->d_out->shape[i] >= 0;
    for (int i = 0; known && i < full.ndim; i++)
        if (i != axis && full.shape[i] == 1) full.shape[i] = a->d_out->shape[i];
    PROA_TRY(proa__wire_put_broadcast(w, a->indices, a->d_out, &index));
    return put_stretched(w, a, axis, index, &full);
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
