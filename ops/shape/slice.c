/* Shape inference, views and rules of slice, strided_slice, as_strided, set_strided and their gradients.
 * Clamping and the special end −1 follow Paddle 2.6.2; a start past the end is an error there, too. */
#include "ops/shape/slice.h"

#include "impl/shape.h"

/* Start, step and count of one axis; the count stays −1 when the axis or a bound is unknown. */
static inline proa_status cut_axis(const proa_cut_spec *s, int i, int64_t dim, proa_cut *c)
{
    int axis = c->axes[i];
    int64_t from = proa__ints_at(s->starts, i), to = proa__ints_at(s->ends, i);
    int64_t step = s->strides && s->strides->count ? proa__ints_at(s->strides, i) : 1;
    c->start[axis] = 0, c->step[axis] = step, c->count[axis] = -1;
    if (step == 0) return OP_FAIL(s->who, INVALID_ARGUMENT, "strides", "is 0 for axis %d", axis);
    if (from == PROA_UNKNOWN || to == PROA_UNKNOWN || step == PROA_UNKNOWN || dim < 0) return PROA_OK;
    if (from == -1 && to == 0 && c->dropped >> axis & 1)
        to = step < 0 ? -1 : INT64_MAX; /* the last element */
    if (from < 0) from = from + dim < 0 ? 0 : from + dim;
    if (to < 0 && !(to == -1 && step < 0)) to = to + dim < 0 ? 0 : to + dim;
    int64_t high = step > 0 ? dim : dim - 1; /* bounds past the end mean the end */
    if (to > dim) to = dim;
    bool crossed = step > 0 ? (from < dim ? from : dim) > to : from < to && to < dim;
    if (crossed)
        return OP_FAIL(s->who, INVALID_ARGUMENT, "starts",
                       "%lld is beyond ends %lld on axis %d of length %lld", (long long)from, (long long)to,
                       axis, (long long)dim);
    if (from > high) from = high;
    int64_t span = step > 0 ? to - from : from - to, size = step > 0 ? step : -(step + 1) + 1;
    c->start[axis] = from < 0 ? 0 : from;
    c->count[axis] = span <= 0 ? 0 : size == 1 ? span : (span - 1) / size + 1;
    return PROA_OK;
}

/* proa__axes; at once where they are plain numbers in rising order, as indices give them. */
static inline proa_status axes_of(const proa_cut_spec *s, const char *arg, const proa_ints *v, int ndim,
                                  int *axes, int *n)
{
    int64_t last = -1, i = 0;
    if (v->at && !v->tensor && !v->tensors)
        for (; i < v->count && v->at[i] > last && v->at[i] < ndim; i++) axes[i] = (int)(last = v->at[i]);
    *n = (int)i;
    return i == v->count && !v->tensor ? PROA_OK : proa__axes(s->who, arg, v, ndim, axes, n);
}

proa_status proa__cut(const proa_cut_spec *s, int ndim, const int64_t *shape, proa_cut *c)
{
    int n_drop = 0, drop[PROA_MAX_DIMS];
    int64_t n[3] = {0, 0, 0};
    PROA_TRY(axes_of(s, "axes", s->axes, ndim, c->axes, &c->n_axes));
    PROA_TRY(axes_of(s, "decrease_axis", s->decrease, ndim, drop, &n_drop));
    PROA_TRY(proa__ints_count(s->who, "starts", s->starts, &n[0]));
    PROA_TRY(proa__ints_count(s->who, "ends", s->ends, &n[1]));
    if (s->strides) PROA_TRY(proa__ints_count(s->who, "strides", s->strides, &n[2]));
    if (n[0] != c->n_axes || n[1] != c->n_axes || (n[2] && n[2] != c->n_axes))
        return OP_FAIL(s->who, INVALID_ARGUMENT, "starts",
                       "has %lld entries and ends %lld; expected %d, one an axis", (long long)n[0],
                       (long long)n[1], c->n_axes);
    c->dropped = 0;
    for (int i = 0; i < n_drop; i++) c->dropped |= 1u << drop[i];
    c->ndim = ndim;
    for (int i = 0; i < ndim; i++) c->start[i] = 0, c->step[i] = 1, c->count[i] = shape[i];
    for (int i = 0; i < c->n_axes; i++) PROA_TRY(cut_axis(s, i, shape[c->axes[i]], c));
    for (int i = 0; i < ndim; i++)
        if (c->dropped >> i & 1 && c->count[i] >= 0 && c->count[i] != 1)
            return OP_FAIL(s->who, OUT_OF_RANGE, "decrease_axis",
                           "drops axis %d, which is left with %lld elements; expected 1 (x is %s)", i,
                           (long long)c->count[i], proa__shape_text(shape, ndim));
    return PROA_OK;
}

static void cut_meta(const proa_cut *c, int dtype, proa_meta *m)
{
    m->dtype = (proa_dtype)dtype;
    m->ndim = 0;
    for (int i = 0; i < c->ndim; i++)
        if (!(c->dropped >> i & 1)) m->shape[m->ndim++] = c->count[i];
}

void proa__cut_window(const proa_cut *c, proa_tensor *w)
{
    int n = 0;
    for (int i = 0; i < c->ndim; i++) {
        proa__narrow(w, i, c->start[i], c->count[i], c->step[i]);
        if (c->dropped >> i & 1) continue;
        w->shape[n] = w->shape[i], w->strides[n] = w->strides[i];
        n++;
    }
    w->ndim = (int8_t)n;
}

static proa_status cut_view(const proa_cut_spec *s, proa_tensor *x, proa_tensor **out)
{
    proa_cut c;
    PROA_TRY(proa__cut(s, x->ndim, x->shape, &c));
    int64_t shape[PROA_MAX_DIMS], strides[PROA_MAX_DIMS], offset = 0;
    int n = 0;
    for (int i = 0; i < x->ndim; i++) {
        if (c.count[i] > 0) offset += c.start[i] * x->strides[i];
        if (c.dropped >> i & 1) continue;
        shape[n] = c.count[i];
        strides[n++] = x->strides[i] * c.step[i];
    }
    *out = proa__tensor_view(x, n, shape, strides, offset);
    return *out ? PROA_OK : proa_error();
}

/* ---- slice, strided_slice --------------------------------------------------------------- */

proa_status slice_infer(const proa_slice_args *a, proa_slice_metas *m)
{
    proa_cut c;
    PROA_TRY(proa__cut(&SLICE_SPEC(a), a->input->ndim, a->input->shape, &c));
    cut_meta(&c, a->input->dtype, &m->out);
    return PROA_OK;
}

proa_status slice_view(proa_slice_args *a, __attribute__((unused)) const proa_meta *m)
{
    return cut_view(&SLICE_SPEC(a), a->input, &a->out);
}

proa_status slice_vjp(const proa_slice_args *a, proa_slice_grads *g)
{
    g->d_input = proa_strided_slice_grad(g->d_out, proa__shape_like(a->input), a->axes, a->starts, a->ends,
                                         .decrease_axis = a->decrease_axis);
    return proa_error();
}

proa_status strided_slice_infer(const proa_strided_slice_args *a, proa_strided_slice_metas *m)
{
    proa_cut c;
    PROA_TRY(proa__cut(&STRIDED_SLICE_SPEC(a), a->x->ndim, a->x->shape, &c));
    cut_meta(&c, a->x->dtype, &m->out);
    return PROA_OK;
}

proa_status strided_slice_view(proa_strided_slice_args *a, __attribute__((unused)) const proa_meta *m)
{
    return cut_view(&STRIDED_SLICE_SPEC(a), a->x, &a->out);
}

proa_status strided_slice_vjp(const proa_strided_slice_args *a, proa_strided_slice_grads *g)
{
    g->d_x = proa_strided_slice_grad(g->d_out, proa__shape_like(a->x), a->axes, a->starts, a->ends,
                                     .strides = a->strides, .decrease_axis = a->decrease_axis);
    return proa_error();
}

proa_status strided_slice_grad_infer(const proa_strided_slice_grad_args *a, proa_strided_slice_grad_metas *m)
{
    proa_cut c;
    proa_meta cut;
    PROA_TRY(proa__dims_meta("strided_slice_grad", "shape", &a->shape, a->d_out->dtype, &m->d_x));
    PROA_TRY(proa__cut(&SLICE_GRAD_SPEC(a), m->d_x.ndim, m->d_x.shape, &c));
    cut_meta(&c, a->d_out->dtype, &cut);
    for (int i = 0; i < cut.ndim; i++)
        if (cut.ndim != a->d_out->ndim ||
            (cut.shape[i] >= 0 && a->d_out->shape[i] >= 0 && cut.shape[i] != a->d_out->shape[i]))
            return OP_FAIL("strided_slice_grad", INVALID_ARGUMENT, "d_out", "is %s; the slice has shape %s",
                           proa__tensor_text(a->d_out), proa__shape_text(cut.shape, cut.ndim));
    return PROA_OK;
}

proa_status strided_slice_grad_vjp(const proa_strided_slice_grad_args *a, proa_strided_slice_grad_grads *g)
{
    if (!a->strides.count && !a->strides.tensor)
        g->d_d_out = proa_slice(g->d_d_x, a->axes, a->starts, a->ends, .decrease_axis = a->decrease_axis);
    else
        g->d_d_out = proa_strided_slice(g->d_d_x, a->axes, a->starts, a->ends, a->strides,
                                        .decrease_axis = a->decrease_axis);
    return proa_error();
}

/* ---- any strides ------------------------------------------------------------------------ */

proa_status proa__dims_meta(const char *who, const char *arg, const proa_ints *shape, int dtype, proa_meta *m)
{
    int n = 0;
    PROA_TRY(proa__shape_list(who, arg, shape, m->shape, &n));
    m->dtype = (proa_dtype)dtype;
    m->ndim = (int8_t)n;
    for (int i = 0; i < n; i++) {
        if (m->shape[i] == PROA_UNKNOWN) m->shape[i] = -1;
        else if (m->shape[i] < 0)
            return OP_FAIL(who, INVALID_ARGUMENT, arg, "has %lld at place %d; expected ≥ 0",
                           (long long)m->shape[i], i);
    }
    return PROA_OK;
}

/* Checks that shape, strides and offset reach only elements of a row-major tensor of numel elements (−1:
 * unknown). */
static proa_status check_places(const char *who, int64_t numel, const proa_ints *shape,
                                const proa_ints *stride, int64_t offset, int dtype, proa_meta *m)
{
    PROA_TRY(proa__dims_meta(who, "shape", shape, dtype, m));
    if (stride->count != shape->count)
        return OP_FAIL(who, INVALID_ARGUMENT, "strides", "has %lld entries; expected %lld, as shape has",
                       (long long)stride->count, (long long)shape->count);
    if (proa__meta_numel(m) == 0 || numel < 0) return PROA_OK;
    int64_t low = offset, high = offset;
    for (int i = 0; i < m->ndim; i++) {
        int64_t reach;
        if (__builtin_mul_overflow(m->shape[i] - 1, stride->at[i], &reach) ||
            __builtin_add_overflow(reach < 0 ? low : high, reach, reach < 0 ? &low : &high))
            return OP_FAIL(who, OVERFLOW, "strides", "reach further than 2^63 elements");
    }
    if (low < 0 || high >= numel)
        return OP_FAIL(who, OUT_OF_RANGE, "strides", "reach elements %lld to %lld, but x has %lld",
                       (long long)low, (long long)high, (long long)numel);
    return PROA_OK;
}

proa_status as_strided_infer(const proa_as_strided_args *a, proa_as_strided_metas *m)
{
    return check_places("as_strided", a->x->numel, &a->shape, &a->stride, a->offset, a->x->dtype, &m->out);
}

proa_status as_strided_view(proa_as_strided_args *a, const proa_meta *m)
{
    int64_t strides[PROA_MAX_DIMS], item = (int64_t)proa_dtype_size((proa_dtype)a->x->dtype);
    if (a->x->flags & PROA_T_STRIDED) return PROA_OK; /* the kernel gets a contiguous x */
    bool empty = proa__meta_numel(m) == 0;            /* an unused stride is arbitrary */
    for (int i = 0; i < m->ndim; i++) strides[i] = empty || m->shape[i] == 1 ? item : a->stride.at[i] * item;
    a->out = proa__tensor_view(a->x, m->ndim, m->shape, strides, empty ? 0 : a->offset * item);
    return a->out ? PROA_OK : proa_error();
}

proa_status as_strided_vjp(const proa_as_strided_args *a, proa_as_strided_grads *g)
{
    g->d_x = proa_as_strided_grad(g->d_out, proa__shape_like(a->x), a->shape, a->stride, .offset = a->offset);
    return proa_error();
}

proa_status as_strided_grad_infer(const proa_as_strided_grad_args *a, proa_as_strided_grad_metas *m)
{
    proa_meta places;
    PROA_TRY(proa__dims_meta("as_strided_grad", "x_shape", &a->x_shape, a->d_out->dtype, &m->d_x));
    PROA_TRY(check_places("as_strided_grad", proa__meta_numel(&m->d_x), &a->shape, &a->stride, a->offset,
                          a->d_out->dtype, &places));
    if (places.ndim != a->d_out->ndim ||
        (a->d_out->numel >= 0 && proa__meta_numel(&places) != a->d_out->numel))
        return OP_FAIL("as_strided_grad", INVALID_ARGUMENT, "d_out", "is %s; expected the shape %s",
                       proa__tensor_text(a->d_out), proa__shape_text(places.shape, places.ndim));
    return PROA_OK;
}

proa_status as_strided_grad_vjp(const proa_as_strided_grad_args *a, proa_as_strided_grad_grads *g)
{
    g->d_d_out = proa_as_strided(g->d_d_x, a->shape, a->stride, .offset = a->offset);
    return proa_error();
}

proa_status set_strided_infer(const proa_set_strided_args *a, proa_set_strided_metas *m)
{
    proa_meta places;
    m->out = proa_meta_of(a->x);
    PROA_TRY(
        check_places("set_strided", a->x->numel, &a->shape, &a->strides, a->offset, a->x->dtype, &places));
    if (a->value->dtype != a->x->dtype)
        return OP_FAIL("set_strided", INVALID_ARGUMENT, "value", "is %s; expected x's dtype, %s",
                       proa__tensor_text(a->value), proa_dtype_name((proa_dtype)a->x->dtype));
    return proa__check_broadcast("set_strided", "value", a->value, &places);
}

proa_status proa__check_broadcast(const char *who, const char *arg, const proa_tensor *t, const proa_meta *to)
{
    int lead = to->ndim - t->ndim;
    bool fits = lead >= 0;
    for (int i = 0; fits && i < t->ndim; i++) {
        int64_t from = t->shape[i], want = to->shape[lead + i];
        fits = from == 1 || from == want || from < 0 || want < 0;
    }
    if (fits) return PROA_OK;
    return OP_FAIL(who, INVALID_ARGUMENT, arg, "is %s, which does not broadcast to %s", proa__tensor_text(t),
                   proa__shape_text(to->shape, to->ndim));
}

proa_status set_strided_vjp(const proa_set_strided_args *a, proa_set_strided_grads *g)
{
    if (g->want_x)
        g->d_x = proa_set_strided(g->d_out, proa__zero_of(a->value), a->shape, a->strides, a->offset);
    if (g->want_value) g->d_value = proa_as_strided(g->d_out, a->shape, a->strides, .offset = a->offset);
    return proa_error();
}
