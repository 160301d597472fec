/* Shape inference, views and rules of diagonals. May use core and ops. */
#include "ops/shape/diagonal.h"

#include "ops/shape/slice.h"
#include "ops/wire_like.h"
#include "ops_impl.h"

proa_status proa__diagonal(const char *who, int ndim, const int64_t *shape, int64_t offset, int64_t axis1,
                           int64_t axis2, shape_diagonal *d)
{
    if (ndim < 2) return OP_FAIL(who, INVALID_ARGUMENT, "x", "has %d axes; a diagonal needs 2 or more", ndim);
    PROA_TRY(proa__axis(who, "axis1", axis1, ndim, &d->a));
    PROA_TRY(proa__axis(who, "axis2", axis2, ndim, &d->b));
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
    PROA_TRY(proa__axis("diag_embed", "dim1", a->dim1, ndim, &first));
    PROA_TRY(proa__axis("diag_embed", "dim2", a->dim2, ndim, &second));
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
    bool fits = a->y->dtype == a->x->dtype && a->y->ndim == taken.ndim;
    for (int i = 0; fits && i < taken.ndim; i++)
        fits = taken.shape[i] < 0 || a->y->shape[i] < 0 || taken.shape[i] == a->y->shape[i];
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
