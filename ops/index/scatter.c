/* Shape inference and rules of the ops that write by index, and of unique. */
#include "ops/ints.h"
#include "ops/shape/slice.h"
#include "impl/elementwise.h"
#include "impl/index.h"
#include "impl/reduce.h"
#include "impl/shape.h"

#include "ops/index/index.h"

static proa_status same_dtype(const char *who, const char *arg, const proa_tensor *t, const proa_tensor *x)
{
    if (t->dtype == x->dtype) return PROA_OK;
    return OP_FAIL(who, INVALID_ARGUMENT, arg, "is %s; expected x's dtype, %s", proa__tensor_text(t),
                   proa_dtype_name((proa_dtype)x->dtype));
}

/* ---- rows -------------------------------------------------------------------------------- */

/* updates must be x with its axis as long as index (or without it, for a 0-D index). */
static proa_status check_rows(const char *who, const char *arg, const proa_tensor *updates,
                              const proa_tensor *index, const proa_tensor *x, int axis)
{
    int64_t want[PROA_MAX_DIMS];
    int n = 0;
    for (int i = 0; i < x->ndim; i++) {
        if (i != axis) want[n++] = x->shape[i];
        else if (index->ndim) want[n++] = index->shape[0];
    }
    bool fits = n == updates->ndim && proa__shapes_agree(want, updates->shape, n);
    if (fits) return same_dtype(who, arg, updates, x);
    return OP_FAIL(who, INVALID_ARGUMENT, arg, "is %s; expected shape %s", proa__tensor_text(updates),
                   proa__shape_text(want, n));
}

proa_status scatter_infer(const proa_scatter_args *a, proa_scatter_metas *m)
{
    PROA_TRY(proa__check_index_dtype("scatter", "index", a->index));
    if (a->x->ndim == 0) return OP_FAIL("scatter", INVALID_ARGUMENT, "x", "is 0-D and has no rows");
    if (a->index->ndim > 2 || (a->index->ndim == 2 && a->index->shape[1] >= 0 && a->index->shape[1] != 1))
        return OP_FAIL("scatter", INVALID_ARGUMENT, "index", "is %s; expected shape [n], [n, 1] or []",
                       proa__tensor_text(a->index));
    m->out = proa_meta_of(a->x);
    return check_rows("scatter", "updates", a->updates, a->index, a->x, 0);
}

proa_status scatter_vjp(const proa_scatter_args *a, proa_scatter_grads *g)
{
    if (g->want_x) g->d_x = proa_index_fill(g->d_out, a->index, 0, proa_scalar_int(0));
    if (g->want_updates) g->d_updates = proa_gather(g->d_out, a->index);
    return proa_error();
}

proa_status index_add_infer(const proa_index_add_args *a, proa_index_add_metas *m)
{
    int axis;
    PROA_TRY(proa__check_index_dtype("index_add", "index", a->index));
    PROA_TRY(proa__axis("index_add", "axis", a->axis, a->x->ndim, &axis));
    if (a->index->ndim != 1 || a->x->ndim == 0)
        return OP_FAIL("index_add", INVALID_ARGUMENT, "index",
                       "is %s and x %s; expected one axis, and at least one", proa__tensor_text(a->index),
                       proa__tensor_text(a->x));
    m->out = proa_meta_of(a->x);
    return check_rows("index_add", "value", a->value, a->index, a->x, axis);
}

proa_status index_add_vjp(const proa_index_add_args *a, proa_index_add_grads *g)
{
    g->d_x = g->d_out;
    if (g->want_value) g->d_value = proa_index_select(g->d_out, a->index, .axis = a->axis);
    return proa_error();
}

proa_status index_fill_infer(const proa_index_fill_args *a, proa_index_fill_metas *m)
{
    int axis;
    PROA_TRY(proa__check_index_dtype("index_fill", "index", a->index));
    m->out = proa_meta_of(a->x);
    return proa__axis("index_fill", "axis", a->axis, a->x->ndim, &axis);
}

proa_status index_fill_vjp(const proa_index_fill_args *a, proa_index_fill_grads *g)
{
    g->d_x = proa_index_fill(g->d_out, a->index, a->axis, proa_scalar_int(0));
    return proa_error();
}

/* ---- points ------------------------------------------------------------------------------ */

proa_status scatter_nd_add_infer(const proa_scatter_nd_add_args *a, proa_scatter_nd_add_metas *m)
{
    m->out = proa_meta_of(a->x);
    PROA_TRY(same_dtype("scatter_nd_add", "updates", a->updates, a->x));
    return proa__check_points("scatter_nd_add", "updates", a->updates, a->index, a->x->ndim, a->x->shape);
}

proa_status scatter_nd_add_vjp(const proa_scatter_nd_add_args *a, proa_scatter_nd_add_grads *g)
{
    g->d_x = g->d_out;
    if (g->want_updates) g->d_updates = proa_gather_nd(g->d_out, a->index);
    return proa_error();
}

/* Shape of x's indexed part, [points…, x's other axes]; of a mask the number of points is not known. */
static proa_status places_of(const proa_index_put_args *a, proa_meta *m)
{
    m->dtype = (proa_dtype)a->x->dtype;
    if (a->index->dtype != PROA_BOOL)
        return proa__points_shape("index_put", a->index, a->x->ndim, a->x->shape, m);
    const proa_tensor *mask = a->index;
    bool fits = mask->ndim > 0 && mask->ndim <= a->x->ndim &&
                proa__shapes_agree(mask->shape, a->x->shape, mask->ndim);
    if (!fits)
        return OP_FAIL("index_put", INVALID_ARGUMENT, "index",
                       "is %s; expected a mask over the leading axes of x, %s", proa__tensor_text(mask),
                       proa__tensor_text(a->x));
    m->ndim = 1;
    m->shape[0] = -1;
    for (int i = mask->ndim; i < a->x->ndim; i++) m->shape[m->ndim++] = a->x->shape[i];
    return PROA_OK;
}

proa_status index_put_infer(const proa_index_put_args *a, proa_index_put_metas *m)
{
    proa_meta places;
    m->out = proa_meta_of(a->x);
    PROA_TRY(same_dtype("index_put", "value", a->value, a->x));
    if (a->accumulate && a->x->dtype == PROA_BOOL)
        return OP_FAIL("index_put", INVALID_ARGUMENT, "accumulate", "adds numbers, but x is bool");
    PROA_TRY(places_of(a, &places));
    return proa__check_broadcast("index_put", "value", a->value, &places);
}

/* Sums d over the axes on which t was broadcast. */
static proa_tensor *unbroadcast(proa_tensor *d, const proa_tensor *t)
{
    int64_t axes[PROA_MAX_DIMS], leading[PROA_MAX_DIMS];
    int count = 0, lead = d ? d->ndim - t->ndim : 0;
    for (int i = 0; d && i < d->ndim; i++) {
        if (i < lead) leading[i] = i;
        else if (t->shape[i - lead] == 1 && d->shape[i] != 1) axes[count++] = i;
    }
    if (d && count) d = proa_sum(d, .axis = {count, axes, NULL, NULL}, .keepdim = true);
    return d && lead ? proa_sum(d, .axis = {lead, leading, NULL, NULL}) : d;
}

proa_status index_put_vjp(const proa_index_put_args *a, proa_index_put_grads *g)
{
    if (g->want_x)
        g->d_x = a->accumulate ? g->d_out : proa_index_put(g->d_out, a->index, proa__zero_of(g->d_out));
    if (!g->want_value) return proa_error();
    proa_tensor *points = a->index->dtype == PROA_BOOL ? proa_nonzero(a->index) : a->index;
    g->d_value = unbroadcast(points ? proa_gather_nd(g->d_out, points) : NULL, a->value);
    return proa_error();
}

/* ---- along an axis ---------------------------------------------------------------------- */

proa_status put_along_axis_infer(const proa_put_along_axis_args *a, proa_put_along_axis_metas *m)
{
    proa_meta places;
    PROA_TRY(same_dtype("put_along_axis", "values", a->values, a->arr));
    PROA_TRY(proa__along_shape("put_along_axis", a->arr, a->indices, a->axis, a->broadcast, &places));
    PROA_TRY(proa__check_broadcast("put_along_axis", "values", a->values, &places));
    m->out = proa_meta_of(a->arr);
    return PROA_OK;
}

/* 1 where t equals the result, else 0, in t's dtype. */
static proa_tensor *is_result(proa_tensor *t, proa_tensor *result)
{
    return proa_cast(proa_equal(t, result), (proa_dtype)t->dtype);
}

/* Number of elements that were combined into each element of out. */
static proa_tensor *share_count(const proa_put_along_axis_args *a)
{
    proa_tensor *one =
        proa_expand_as(proa_add(proa__zero_of(a->arr), proa_scale(proa__zero_of(a->arr), .bias = 1)), a->arr);
    return proa_put_along_axis(one, a->indices, proa_scale(proa__zero_of(a->arr), .bias = 1), a->axis,
                               .reduce = PROA_PUT_MODE_ADD, .no_include_self = !a->include_self,
                               .no_broadcast = !a->broadcast);
}

static proa_tensor *cleared(const proa_put_along_axis_args *a, proa_tensor *d)
{
    return proa_put_along_axis(d, a->indices, proa__zero_of(d), a->axis, .no_broadcast = !a->broadcast);
}

static proa_tensor *taken(const proa_put_along_axis_args *a, proa_tensor *t)
{
    return proa_take_along_axis(t, a->indices, a->axis, .no_broadcast = !a->broadcast);
}

/* Of products: d_out · out divided by the operand; of means: d_out divided by the number of elements; of
 * extrema: d_out for all that equal the result. */
proa_status put_along_axis_vjp(const proa_put_along_axis_args *a, proa_put_along_axis_grads *g)
{
    proa_tensor *d = g->d_out, *count;
    bool self = a->include_self && a->reduce != PROA_PUT_MODE_ASSIGN;
    switch (a->reduce) {
    case PROA_PUT_MODE_ASSIGN:
    case PROA_PUT_MODE_ADD:
        g->d_arr = self ? d : cleared(a, d);
        g->d_values = taken(a, d);
        break;
    case PROA_PUT_MODE_MULTIPLY:
        if (g->want_arr) g->d_arr = self ? proa_divide(proa_multiply(d, a->out), a->arr) : cleared(a, d);
        if (g->want_values) g->d_values = proa_divide(taken(a, proa_multiply(d, a->out)), a->values);
        break;
    case PROA_PUT_MODE_MEAN:
        count = share_count(a);
        d = proa_divide(d, count);
        g->d_arr = self ? d : cleared(a, d);
        g->d_values = taken(a, d);
        break;
    default:
        if (g->want_arr) {
            g->d_arr = proa_multiply(d, is_result(a->arr, a->out));
            if (!self) g->d_arr = cleared(a, d);
        }
        if (g->want_values) g->d_values = proa_multiply(taken(a, d), is_result(taken(a, a->out), a->values));
        break;
    }
    return proa_error();
}

/* ---- slices ----------------------------------------------------------------------------- */

/* The shape value is broadcast to: the cut, with none_axes of length 1 put in. */
static proa_status place_shape(const proa_set_value_args *a, proa_cut *c, proa_meta *m)
{
    proa_cut_spec s = {"set_value", &a->axes, &a->starts, &a->ends, &a->steps, &a->decrease_axes};
    PROA_TRY(proa__cut(&s, a->x->ndim, a->x->shape, c));
    m->ndim = 0;
    m->dtype = (proa_dtype)a->x->dtype;
    for (int i = 0; i < c->ndim; i++)
        if (!(c->dropped >> i & 1)) m->shape[m->ndim++] = c->count[i];
    for (int64_t i = 0; i < a->none_axes.count; i++) {
        int64_t at = a->none_axes.at[i];
        if (at < 0 || at > m->ndim || m->ndim == PROA_MAX_DIMS)
            return OP_FAIL("set_value", OUT_OF_RANGE, "none_axes", "has %lld; expected 0 to %d",
                           (long long)at, m->ndim);
        for (int k = m->ndim; k > at; k--) m->shape[k] = m->shape[k - 1];
        m->shape[at] = 1;
        m->ndim++;
    }
    return PROA_OK;
}

proa_status proa__set_value_places(const proa_set_value_args *a, proa_cut *c, proa_meta *m);
proa_status proa__set_value_places(const proa_set_value_args *a, proa_cut *c, proa_meta *m)
{
    return place_shape(a, c, m);
}

proa_status set_value_infer(const proa_set_value_args *a, proa_set_value_metas *m)
{
    proa_cut c;
    proa_meta places;
    PROA_TRY(same_dtype("set_value", "value", a->value, a->x));
    PROA_TRY(place_shape(a, &c, &places));
    m->out = proa_meta_of(a->x);
    return proa__check_broadcast("set_value", "value", a->value, &places);
}

proa_status set_value_vjp(const proa_set_value_args *a, proa_set_value_grads *g)
{
    if (g->want_x)
        g->d_x =
            proa_set_value(g->d_out, proa__zero_of(g->d_out), a->axes, a->starts, a->ends, .steps = a->steps,
                           .decrease_axes = a->decrease_axes, .none_axes = a->none_axes);
    if (!g->want_value) return proa_error();
    proa_tensor *d =
        a->steps.count || a->steps.tensor
            ? proa_strided_slice(g->d_out, a->axes, a->starts, a->ends, a->steps,
                                 .decrease_axis = a->decrease_axes)
            : proa_slice(g->d_out, a->axes, a->starts, a->ends, .decrease_axis = a->decrease_axes);
    g->d_value = a->none_axes.count ? proa_unsqueeze(d, a->none_axes) : d;
    return proa_error();
}

/* ---- unique ----------------------------------------------------------------------------- */

proa_status unique_infer(const proa_unique_args *a, proa_unique_metas *m)
{
    int axis = 0;
    if (a->axis.count > 1)
        return OP_FAIL("unique", INVALID_ARGUMENT, "axis", "has %lld entries; expected none or one",
                       (long long)a->axis.count);
    if (a->dtype != PROA_I32 && a->dtype != PROA_I64)
        return OP_FAIL("unique", INVALID_ARGUMENT, "dtype", "is %s; expected int32 or int64",
                       proa_dtype_name(a->dtype));
    m->out = (proa_meta){.dtype = (proa_dtype)a->x->dtype, .ndim = 1, .shape = {-1}};
    if (a->axis.count) {
        PROA_TRY(proa__axis("unique", "axis", a->axis.at[0], a->x->ndim, &axis));
        m->out = proa_meta_of(a->x);
        if (!a->x->ndim) m->out.ndim = 1;
        m->out.shape[axis] = -1;
    }
    proa_meta list = {.dtype = a->dtype, .ndim = 1, .shape = {-1}};
    if (a->return_index) m->index = list;
    if (a->return_counts) m->counts = list;
    if (a->return_inverse) {
        m->inverse = list;
        m->inverse.shape[0] = a->axis.count && a->x->ndim ? a->x->shape[axis] : a->x->numel;
    }
    return PROA_OK;
}
