/* Shape inference, views, rules and Paddle's forms of the diagonal ops; also view_dtype, and the readers of
 * Paddle's crop, crop_tensor and is_empty. May use core and ops. */
#include "ops/shape/diagonal.h"

#include "ops/index/index.h"
#include "ops/shape/slice.h"
#include "ops/wire_like.h"
#include "impl/create.h"
#include "impl/elementwise.h"
#include "impl/shape.h"

proa_status proa__diagonal(const char *who, int ndim, const int64_t *shape, int64_t offset, int64_t axis1,
                           int64_t axis2, shape_diagonal *d)
{
    if (ndim < 2) return OP_FAIL(who, INVALID_ARGUMENT, "x", "has %d axes; a diagonal needs 2 or more", ndim);
    PROA_TRY(proa__single_axis(who, "axis1", axis1, ndim, &d->a));
    PROA_TRY(proa__single_axis(who, "axis2", axis2, ndim, &d->b));
    if (d->a == d->b)
        return OP_FAIL(who, INVALID_ARGUMENT, "axis2", "is %lld, the same axis as axis1", (long long)axis2);
    d->from_a = offset >= 0 ? 0 : offset == INT64_MIN ? INT64_MAX : -offset;
    d->from_b = offset > 0 ? offset : 0;
    if (shape[d->a] < 0 || shape[d->b] < 0) {
        d->length = -1;
        return PROA_OK;
    }
    int64_t rows = shape[d->a] - d->from_a, columns = shape[d->b] - d->from_b;
    d->length = rows < columns ? rows : columns;
    if (d->length < 0) d->length = 0;
    if (d->length == 0) d->from_a = d->from_b = 0;
    return PROA_OK;
}

/* A shape without axes a and b, and with the diagonal's length behind. */
static void diagonal_shape(const shape_diagonal *d, int ndim, const int64_t *from, int64_t *to)
{
    int n = 0;
    for (int i = 0; i < ndim; i++)
        if (i != d->a && i != d->b) to[n++] = from[i];
    to[n] = d->length;
}

proa_tensor proa__diagonal_window(const proa_tensor *t, const shape_diagonal *d)
{
    proa_tensor w = proa__window(t);
    int64_t strides[PROA_MAX_DIMS];
    int n = 0;
    if (d->length > 0) w.data += d->from_a * t->strides[d->a] + d->from_b * t->strides[d->b];
    for (int i = 0; i < t->ndim; i++)
        if (i != d->a && i != d->b) strides[n++] = t->strides[i];
    strides[n] = t->strides[d->a] + t->strides[d->b];
    diagonal_shape(d, t->ndim, t->shape, w.shape);
    memcpy(w.strides, strides, (size_t)(n + 1) * sizeof *strides);
    w.ndim = (int8_t)(n + 1);
    w.numel = 1;
    for (int i = 0; i <= n; i++) w.numel *= w.shape[i];
    return w;
}

/* ---- diag ------------------------------------------------------------------------------- */

proa_status diag_infer(const proa_diag_args *a, proa_diag_metas *m)
{
    const proa_tensor *x = a->x;
    shape_diagonal d;
    m->out = proa_meta_of(x);
    if (x->ndim > 2)
        return OP_FAIL("diag", INVALID_ARGUMENT, "x", "is %s; expected at most 2 axes", proa__tensor_text(x));
    if (x->ndim == 2) {
        PROA_TRY(proa__diagonal("diag", 2, x->shape, a->offset, 0, 1, &d));
        m->out.ndim = 1;
        m->out.shape[0] = d.length;
        if (d.length >= 0 && (a->offset > x->shape[1] || a->offset < -x->shape[0]))
            return OP_FAIL("diag", BAD_STATE, "offset", "is %lld; x is %s, which has no such diagonal",
                           (long long)a->offset, proa__tensor_text(x));
        return PROA_OK;
    }
    int64_t n = x->ndim ? x->shape[0] : 1, side;
    if (a->offset == INT64_MIN || __builtin_add_overflow(n, a->offset < 0 ? -a->offset : a->offset, &side))
        return OP_FAIL("diag", OVERFLOW, "offset", "is %lld", (long long)a->offset);
    m->out.ndim = 2;
    m->out.shape[0] = m->out.shape[1] = n < 0 ? -1 : side;
    return PROA_OK;
}

proa_status diag_vjp(const proa_diag_args *a, proa_diag_grads *g)
{
    int64_t offset = a->offset ? a->offset : PROA_ZERO;
    if (a->x->ndim == 2) g->d_x = proa_diagonal_grad(g->d_out, proa__shape_like(a->x), .offset = offset);
    else g->d_x = proa_diagonal(g->d_out, .offset = offset);
    if (a->x->ndim == 0) g->d_x = proa_reshape(g->d_x, PROA_SCALAR_SHAPE);
    return proa_error();
}

/* ---- diagonal --------------------------------------------------------------------------- */

proa_status diagonal_infer(const proa_diagonal_args *a, proa_diagonal_metas *m)
{
    shape_diagonal d;
    const proa_tensor *x = a->x;
    PROA_TRY(proa__diagonal("diagonal", x->ndim, x->shape, a->offset, a->axis1, a->axis2, &d));
    m->out = proa_meta_of(x);
    m->out.ndim--;
    diagonal_shape(&d, x->ndim, x->shape, m->out.shape);
    return PROA_OK;
}

proa_status diagonal_view(proa_diagonal_args *a, __attribute__((unused)) const proa_meta *m)
{
    shape_diagonal d;
    const proa_tensor *x = a->x;
    PROA_TRY(proa__diagonal("diagonal", x->ndim, x->shape, a->offset, a->axis1, a->axis2, &d));
    proa_tensor w = proa__diagonal_window(x, &d);
    a->out = proa__tensor_view(a->x, w.ndim, w.shape, w.strides, w.data - x->data);
    return a->out ? PROA_OK : proa_error();
}

#define GIVEN(v) ((v) ? (v) : PROA_ZERO)

proa_status diagonal_vjp(const proa_diagonal_args *a, proa_diagonal_grads *g)
{
    g->d_x = proa_diagonal_grad(g->d_out, proa__shape_like(a->x), .offset = GIVEN(a->offset),
                                .axis1 = GIVEN(a->axis1), .axis2 = GIVEN(a->axis2));
    return proa_error();
}

proa_status diagonal_grad_infer(const proa_diagonal_grad_args *a, proa_diagonal_grad_metas *m)
{
    shape_diagonal d;
    proa_meta taken = {.dtype = (proa_dtype)a->d_out->dtype};
    PROA_TRY(proa__dims_meta("diagonal_grad", "shape", &a->shape, a->d_out->dtype, &m->d_x));
    PROA_TRY(proa__diagonal("diagonal_grad", m->d_x.ndim, m->d_x.shape, a->offset, a->axis1, a->axis2, &d));
    taken.ndim = (int8_t)(m->d_x.ndim - 1);
    diagonal_shape(&d, m->d_x.ndim, m->d_x.shape, taken.shape);
    return proa__check_broadcast("diagonal_grad", "d_out", a->d_out, &taken);
}

proa_status diagonal_grad_vjp(const proa_diagonal_grad_args *a, proa_diagonal_grad_grads *g)
{
    g->d_d_out = proa_diagonal(g->d_d_x, .offset = GIVEN(a->offset), .axis1 = GIVEN(a->axis1),
                               .axis2 = GIVEN(a->axis2));
    return proa_error();
}

proa_status diag_embed_infer(const proa_diag_embed_args *a, proa_diag_embed_metas *m)
{
    const proa_tensor *x = a->input;
    int first, second, ndim = x->ndim + 1;
    if (x->ndim < 1 || x->ndim == PROA_MAX_DIMS)
        return OP_FAIL("diag_embed", INVALID_ARGUMENT, "input", "has %d axes; expected 1 to %d", x->ndim,
                       PROA_MAX_DIMS - 1);
    PROA_TRY(proa__single_axis("diag_embed", "dim1", a->dim1, ndim, &first));
    PROA_TRY(proa__single_axis("diag_embed", "dim2", a->dim2, ndim, &second));
    if (first == second)
        return OP_FAIL("diag_embed", INVALID_ARGUMENT, "dim2", "is %lld, the same axis as dim1",
                       (long long)a->dim2);
    int64_t n = x->shape[x->ndim - 1], side;
    if (a->offset == INT64_MIN || __builtin_add_overflow(n, a->offset < 0 ? -a->offset : a->offset, &side))
        return OP_FAIL("diag_embed", OVERFLOW, "offset", "is %lld", (long long)a->offset);
    m->out = (proa_meta){.dtype = (proa_dtype)x->dtype, .ndim = (int8_t)ndim};
    for (int i = 0, from = 0; i < ndim; i++)
        m->out.shape[i] = i != first && i != second ? x->shape[from++] : n < 0 ? -1 : side;
    return PROA_OK;
}

/* ---- trace ------------------------------------------------------------------------------ */

proa_status trace_infer(const proa_trace_args *a, proa_trace_metas *m)
{
    shape_diagonal d;
    const proa_tensor *x = a->x;
    PROA_TRY(proa__diagonal("trace", x->ndim, x->shape, a->offset, a->axis1, a->axis2, &d));
    m->out = proa_meta_of(x);
    diagonal_shape(&d, x->ndim, x->shape, m->out.shape);
    m->out.ndim = (int8_t)(x->ndim - 2);
    return PROA_OK;
}

proa_status trace_vjp(const proa_trace_args *a, proa_trace_grads *g)
{
    proa_tensor *d = proa_unsqueeze(g->d_out, PROA_INTS(-1));
    g->d_x = proa_diagonal_grad(d, proa__shape_like(a->x), .offset = GIVEN(a->offset),
                                .axis1 = GIVEN(a->axis1), .axis2 = GIVEN(a->axis2));
    return proa_error();
}

/* ---- fill_diagonal_tensor ---------------------------------------------------------------- */

proa_status fill_diagonal_tensor_infer(const proa_fill_diagonal_tensor_args *a,
                                       proa_fill_diagonal_tensor_metas *m)
{
    static const char who[] = "fill_diagonal_tensor";
    shape_diagonal d;
    proa_meta taken = {.dtype = (proa_dtype)a->x->dtype, .ndim = (int8_t)(a->x->ndim - 1)};
    m->out = proa_meta_of(a->x);
    PROA_TRY(proa__diagonal(who, a->x->ndim, a->x->shape, a->offset, a->dim1, a->dim2, &d));
    diagonal_shape(&d, a->x->ndim, a->x->shape, taken.shape);
    bool fits = a->y->dtype == a->x->dtype && a->y->ndim == taken.ndim &&
                proa__shapes_agree(taken.shape, a->y->shape, taken.ndim);
    if (fits) return PROA_OK;
    return OP_FAIL(who, INVALID_ARGUMENT, "y", "is %s; expected x's dtype and shape %s",
                   proa__tensor_text(a->y), proa__shape_text(taken.shape, taken.ndim));
}

proa_status fill_diagonal_tensor_vjp(const proa_fill_diagonal_tensor_args *a,
                                     proa_fill_diagonal_tensor_grads *g)
{
    int64_t offset = GIVEN(a->offset), dim1 = GIVEN(a->dim1), dim2 = GIVEN(a->dim2);
    proa_tensor *taken = proa_diagonal(g->d_out, .offset = offset, .axis1 = dim1, .axis2 = dim2);
    g->d_x = proa_fill_diagonal_tensor(g->d_out, proa_full_like(taken, 0), .offset = offset, .dim1 = dim1,
                                       .dim2 = dim2);
    return proa_error();
}

/* ---- Paddle's diagonal_grad carries the input where ours carries its shape --------------- */

proa_status diagonal_grad_read(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "Input"), *d_out = proa_wire_input(r, "Out@GRAD");
    if (!x || !d_out) return proa_error();
    int64_t offset = proa_wire_int(r, "offset", 0), axis1 = proa_wire_int(r, "axis1", 0);
    int64_t axis2 = proa_wire_int(r, "axis2", 1);
    proa_tensor *d_x = proa_diagonal_grad(d_out, proa__shape_like(x), .offset = GIVEN(offset),
                                          .axis1 = GIVEN(axis1), .axis2 = GIVEN(axis2));
    return proa_wire_result(r, "Input@GRAD", d_x);
}

/* Paddle's does not broadcast d_out: an expand_v2 before it does. */
proa_status diagonal_grad_write(const void *args, proa_wire_writer *w)
{
    const proa_diagonal_grad_args *a = args;
    shape_diagonal d;
    proa_tensor *x = proa__wire_put_like(w, &a->shape, a->d_x), *d_out = a->d_out;
    if (!x) return proa_error();
    PROA_TRY(proa__diagonal("diagonal_grad", a->d_x->ndim, a->d_x->shape, a->offset, a->axis1, a->axis2, &d));
    proa_meta taken = {.dtype = (proa_dtype)d_out->dtype, .ndim = (int8_t)(a->d_x->ndim - 1)};
    diagonal_shape(&d, a->d_x->ndim, a->d_x->shape, taken.shape);
    bool same = d_out->ndim == taken.ndim;
    for (int i = 0; same && i < taken.ndim; i++) same = d_out->shape[i] == taken.shape[i];
    if (!same) {
        d_out = proa_wire_temporary(w, &taken);
        if (!d_out) return proa_error();
        PROA_TRY(proa_wire_op(w, "expand_v2"));
        PROA_TRY(proa_wire_put_input(w, "X", a->d_out));
        PROA_TRY(proa_wire_put_output(w, "Out", d_out));
        PROA_TRY(
            proa_wire_put_ints(w, "shape", PROA_WIRE_INTS, (proa_ints){taken.ndim, taken.shape, NULL, NULL}));
    }
    PROA_TRY(proa_wire_op(w, "diagonal_grad"));
    PROA_TRY(proa_wire_put_input(w, "Input", x));
    PROA_TRY(proa_wire_put_input(w, "Out@GRAD", d_out));
    PROA_TRY(proa_wire_put_output(w, "Input@GRAD", a->d_x));
    PROA_TRY(proa_wire_put_int(w, "offset", PROA_WIRE_INT, a->offset));
    PROA_TRY(proa_wire_put_int(w, "axis1", PROA_WIRE_INT, a->axis1));
    return proa_wire_put_int(w, "axis2", PROA_WIRE_INT, a->axis2);
}

/* ---- fill_diagonal -------------------------------------------------------------------------- */

proa_status fill_diagonal_infer(const proa_fill_diagonal_args *a, proa_fill_diagonal_metas *m)
{
    const proa_tensor *x = a->x;
    m->out = proa_meta_of(x);
    if (x->ndim < 2)
        return OP_FAIL("fill_diagonal", INVALID_ARGUMENT, "x", "has %d axes; expected 2 or more", x->ndim);
    for (int i = 1; i < x->ndim && x->ndim > 2; i++)
        if (x->shape[i] >= 0 && x->shape[0] >= 0 && x->shape[i] != x->shape[0])
            return OP_FAIL("fill_diagonal", INVALID_ARGUMENT, "x",
                           "is %s; beyond two axes all lengths must be equal", proa__tensor_text(x));
    return PROA_OK;
}

proa_status fill_diagonal_vjp(const proa_fill_diagonal_args *a, proa_fill_diagonal_grads *g)
{
    g->d_x = proa_fill_diagonal(g->d_out, .offset = GIVEN(a->offset), .wrap = a->wrap);
    return proa_error();
}

/* ---- view_dtype ----------------------------------------------------------------------------- */

proa_status view_dtype_infer(const proa_view_dtype_args *a, proa_view_dtype_metas *m)
{
    const proa_tensor *x = a->x;
    int64_t from = (int64_t)proa_dtype_size((proa_dtype)x->dtype), to = (int64_t)proa_dtype_size(a->dtype);
    int64_t last = x->ndim ? x->shape[x->ndim - 1] : 1, bytes;
    if (to == 0) return OP_FAIL("view_dtype", INVALID_ARGUMENT, "dtype", "is none; expected a dtype");
    m->out = proa_meta_of(x);
    m->out.dtype = a->dtype;
    if (from == to) return PROA_OK;
    if (x->ndim == 0)
        return OP_FAIL("view_dtype", INVALID_ARGUMENT, "x", "is 0-D; %s has elements of another size",
                       proa_dtype_name(a->dtype));
    if (last < 0 ? from < to : __builtin_mul_overflow(last, from, &bytes) || bytes % to)
        return OP_FAIL("view_dtype", INVALID_ARGUMENT, "x", "is %s; its last axis does not split into %s",
                       proa__tensor_text(x), proa_dtype_name(a->dtype));
    m->out.shape[x->ndim - 1] = last < 0 ? -1 : bytes / to;
    return PROA_OK;
}

/* Elements of another size: a contiguous x only, and larger ones only at an address that suits them. */
proa_status view_dtype_view(proa_view_dtype_args *a, const proa_meta *m)
{
    proa_tensor *x = a->x;
    int64_t to = (int64_t)proa_dtype_size(m->dtype), from = (int64_t)proa_dtype_size((proa_dtype)x->dtype);
    int64_t dense[PROA_MAX_DIMS], numel;
    const int64_t *strides = x->strides;
    if (to != from) {
        bool fits = to < from || (x->storage && (uintptr_t)x->data % (uintptr_t)to == 0);
        if (x->flags & PROA_T_STRIDED || !fits) return PROA_OK;
        if (!proa__row_major(m->shape, m->ndim, (size_t)to, dense, &numel)) return proa_error();
        strides = dense;
    }
    a->out = proa__tensor_view_as(x, m->dtype, m->ndim, m->shape, strides, 0);
    return a->out ? PROA_OK : proa_error();
}

proa_status view_dtype_vjp(const proa_view_dtype_args *a, proa_view_dtype_grads *g)
{
    g->d_x = proa_view_dtype(g->d_out, (proa_dtype)a->x->dtype);
    return proa_error();
}

/* ---- older spellings, as compositions -------------------------------------------------------- */

/* A list that a tensor, or one tensor an entry, may supply; an empty list where nothing does. */
static proa_ints list_or_tensor(proa_wire_reader *r, const char *attr, const char *one, const char *each)
{
    proa_tensor *tensor = proa_wire_input(r, one);
    if (proa__is_given(tensor)) return (proa_ints){.tensor = tensor};
    proa_tensors all = proa_wire_inputs(r, each);
    proa_ints list = proa_wire_ints(r, attr);
    if (!all.count) return list;
    proa_tensor **at = proa_scope_alloc((size_t)all.count * sizeof *at);
    if (at) memcpy(at, all.at, (size_t)all.count * sizeof *at);
    return (proa_ints){all.count, NULL, NULL, at};
}

/* Sets `to` to the entries of a crop's list for a tensor of ndim axes; *n is 0 for an empty list. */
static proa_status crop_list(const char *arg, proa_ints list, int ndim, int64_t *to, int *n)
{
    *n = 0;
    if (!list.count && !proa__is_given(list.tensor)) return PROA_OK;
    PROA_TRY(proa__ints_list("slice", arg, &list, PROA_MAX_DIMS, to, n));
    if (*n != ndim)
        return OP_FAIL("slice", INVALID_ARGUMENT, arg, "of a crop has %d entries for a tensor of %d axes", *n,
                       ndim);
    for (int i = 0; i < *n; i++)
        if (to[i] == PROA_UNKNOWN)
            return OP_FAIL("slice", UNSUPPORTED, arg,
                           "comes from a variable; in a program a crop is by numbers");
    return PROA_OK;
}

/* crop and crop_tensor: a box of `shape` (−1: up to the end) at `offsets`; crop's Y has the box's shape. */
proa_status slice_read_crop(proa_wire_reader *r)
{
    proa_tensor *x = proa_wire_input(r, "X"), *like = proa_wire_input(r, "Y");
    if (!x) return proa_error();
    int64_t shape[PROA_MAX_DIMS], offsets[PROA_MAX_DIMS];
    int n_shape, n_offsets;
    proa_ints sizes = proa__is_given(like) ? (proa_ints){like->ndim, like->shape, NULL, NULL}
                                           : list_or_tensor(r, "shape", "Shape", "ShapeTensor");
    PROA_TRY(crop_list("shape", sizes, x->ndim, shape, &n_shape));
    PROA_TRY(crop_list("offsets", list_or_tensor(r, "offsets", "Offsets", "OffsetsTensor"), x->ndim, offsets,
                       &n_offsets));
    int64_t axes[PROA_MAX_DIMS], from[PROA_MAX_DIMS], to[PROA_MAX_DIMS];
    for (int i = 0; i < x->ndim; i++) {
        axes[i] = i;
        from[i] = n_offsets ? offsets[i] : 0;
        to[i] = !n_shape || shape[i] < 0 ? INT32_MAX : from[i] + shape[i];
    }
    return proa_wire_result(r, "Out",
                            proa_slice(x, ((proa_ints){x->ndim, axes, NULL, NULL}),
                                       ((proa_ints){x->ndim, from, NULL, NULL}),
                                       ((proa_ints){x->ndim, to, NULL, NULL})));
}

proa_status size_read_is_empty(proa_wire_reader *r)
{
    proa_tensor *size = proa_size(proa_wire_input(r, "X"));
    return proa_wire_result(r, "Out", size ? proa_equal(size, proa__zero_of(size)) : NULL);
}
