/* Shape inference and rules of the ops that gather by index, and of those that select or fill by mask.
 * Inference checks dtypes and shapes; kernels check that indices are in range. */
#include "core/error.h"
#include "ops/ints.h"
#include "ops/shape/slice.h"
#include "impl/create.h"
#include "impl/index.h"
#include "impl/reduce.h"
#include "impl/shape.h"

#include "ops/index/index.h"

proa_status proa__single_axis(const char *who, const char *arg, int64_t axis, int ndim, int *to)
{
    int64_t n = ndim ? ndim : 1;
    if (axis >= -n && axis < n) return proa__axis(who, arg, axis, ndim, to);
    return OP_FAIL(who, OUT_OF_RANGE, arg, "is %lld; expected %lld to %lld for a tensor of %d axes",
                   (long long)axis, (long long)-n, (long long)n - 1, ndim);
}

proa_status proa__check_index_dtype(const char *who, const char *arg, const proa_tensor *index)
{
    if (index->dtype == PROA_I32 || index->dtype == PROA_I64) return PROA_OK;
    return proa__operand_dtype_fail(proa_find_op(who), arg, "is %s; expected int32 or int64",
                                    proa__tensor_text(index));
}

/* ---- gather, index_select --------------------------------------------------------------- */

/* x's shape with axis replaced by index's length; a 0-D index drops it. */
static void replace_axis(const proa_tensor *x, int axis, const proa_tensor *index, proa_meta *m)
{
    m->dtype = (proa_dtype)x->dtype;
    m->ndim = 0;
    for (int i = 0; i < x->ndim; i++) {
        if (i != axis) m->shape[m->ndim++] = x->shape[i];
        else if (index->ndim) m->shape[m->ndim++] = index->shape[0];
    }
}

proa_status gather_infer(const proa_gather_args *a, proa_gather_metas *m)
{
    int axis = 0;
    int64_t v;
    PROA_TRY(proa__check_index_dtype("gather", "index", a->index));
    PROA_TRY(proa__int_or("gather", "axis", a->axis, &a->axis_tensor, &v));
    if (a->x->ndim == 0) return OP_FAIL("gather", INVALID_ARGUMENT, "x", "is 0-D and has nothing to gather");
    if (v != PROA_UNKNOWN) PROA_TRY(proa__single_axis("gather", "axis", v, a->x->ndim, &axis));
    if (a->index->ndim > 2 || (a->index->ndim == 2 && a->index->shape[1] >= 0 && a->index->shape[1] != 1))
        return OP_FAIL("gather", INVALID_ARGUMENT, "index", "is %s; expected shape [n], [n, 1] or []",
                       proa__tensor_text(a->index));
    replace_axis(a->x, axis, a->index, &m->out);
    for (int i = 0; v == PROA_UNKNOWN && i < m->out.ndim; i++) m->out.shape[i] = -1;
    return PROA_OK;
}

/* Gathers x's places along an axis that only the run knows, as x was, and adds d_out there. */
static proa_tensor *gather_along_variable_grad(const proa_gather_args *a, proa_tensor *d_out)
{
    proa_ints shape = proa__shape_like(a->x), all = {1, &a->x->numel, NULL, NULL};
    proa_tensor *ones = proa_full(shape, 1, .dtype = PROA_I64);
    proa_tensor *count = proa_cumsum(ones, .flatten = true, .exclusive = true);
    if (a->x->numel < 0) all = (proa_ints){.tensor = proa_reshape(proa_size(a->x), PROA_INTS(1))};
    proa_tensor *places = proa_gather(proa_reshape(count, shape), a->index, .axis_tensor = a->axis_tensor);
    proa_tensor *flat =
        proa_index_select_grad(proa_reshape(d_out, PROA_INTS(-1)), proa_reshape(places, PROA_INTS(-1)), all);
    return proa_reshape(flat, shape);
}

proa_status gather_vjp(const proa_gather_args *a, proa_gather_grads *g)
{
    int64_t axis;
    PROA_TRY(proa__int_or("gather", "axis", a->axis, &a->axis_tensor, &axis));
    if (axis == PROA_UNKNOWN) {
        g->d_x = gather_along_variable_grad(a, g->d_out);
        return proa_error();
    }
    g->d_x = proa_index_select_grad(g->d_out, a->index, proa__shape_like(a->x), .axis = axis);
    return proa_error();
}

proa_status index_select_infer(const proa_index_select_args *a, proa_index_select_metas *m)
{
    int axis;
    PROA_TRY(proa__check_index_dtype("index_select", "index", a->index));
    if (a->x->ndim == 0)
        return OP_FAIL("index_select", INVALID_ARGUMENT, "x", "is 0-D and has nothing to select");
    PROA_TRY(proa__single_axis("index_select", "axis", a->axis, a->x->ndim, &axis));
    if (a->index->ndim != 1)
        return OP_FAIL("index_select", INVALID_ARGUMENT, "index", "is %s; expected one axis",
                       proa__tensor_text(a->index));
    replace_axis(a->x, axis, a->index, &m->out);
    return PROA_OK;
}

proa_status index_select_vjp(const proa_index_select_args *a, proa_index_select_grads *g)
{
    g->d_x = proa_index_select_grad(g->d_out, a->index, proa__shape_like(a->x), .axis = a->axis);
    return proa_error();
}

proa_status index_select_grad_infer(const proa_index_select_grad_args *a, proa_index_select_grad_metas *m)
{
    static const char who[] = "index_select_grad";
    int axis;
    PROA_TRY(proa__check_index_dtype(who, "index", a->index));
    PROA_TRY(proa__dims_meta(who, "shape", &a->shape, a->d_out->dtype, &m->d_x));
    PROA_TRY(proa__axis(who, "axis", a->axis, m->d_x.ndim, &axis));
    int64_t want = a->index->numel;
    for (int i = 0; i < m->d_x.ndim && want >= 0; i++) {
        if (i == axis) continue;
        if (m->d_x.shape[i] < 0) want = -1;
        else if (__builtin_mul_overflow(want, m->d_x.shape[i], &want))
            return OP_FAIL(who, OVERFLOW, "shape", "and index call for more than 2^63 elements");
    }
    if (want >= 0 && a->d_out->numel >= 0 && want != a->d_out->numel)
        return OP_FAIL(who, INVALID_ARGUMENT, "d_out", "is %s; index and shape call for %lld elements",
                       proa__tensor_text(a->d_out), (long long)want);
    return PROA_OK;
}

proa_status index_select_grad_vjp(const proa_index_select_grad_args *a, proa_index_select_grad_grads *g)
{
    g->d_d_out = proa_gather(g->d_d_x, a->index, .axis = a->axis);
    return proa_error();
}

/* ---- points ------------------------------------------------------------------------------ */

proa_status proa__points_shape(const char *who, const proa_tensor *index, int ndim, const int64_t *shape,
                               proa_meta *m)
{
    PROA_TRY(proa__check_index_dtype(who, "index", index));
    if (index->ndim == 0)
        return OP_FAIL(who, INVALID_ARGUMENT, "index", "is 0-D; expected points along its last axis");
    int64_t depth = index->shape[index->ndim - 1];
    if (depth < 0)
        return OP_FAIL(who, UNSUPPORTED, "index", "is %s; the length of its last axis must be known",
                       proa__tensor_text(index));
    if (depth > ndim || index->ndim - 1 + ndim - depth > PROA_MAX_DIMS)
        return OP_FAIL(who, INVALID_ARGUMENT, "index", "is %s: its points have %lld coordinates, but x is %s",
                       proa__tensor_text(index), (long long)depth, proa__shape_text(shape, ndim));
    m->ndim = 0;
    for (int i = 0; i + 1 < index->ndim; i++) m->shape[m->ndim++] = index->shape[i];
    for (int i = (int)depth; i < ndim; i++) m->shape[m->ndim++] = shape[i];
    return PROA_OK;
}

proa_status proa__check_points(const char *who, const char *arg, const proa_tensor *values,
                               const proa_tensor *index, int ndim, const int64_t *shape)
{
    proa_meta m;
    PROA_TRY(proa__points_shape(who, index, ndim, shape, &m));
    bool fits = m.ndim == values->ndim && proa__shapes_agree(m.shape, values->shape, m.ndim);
    if (fits) return PROA_OK;
    return OP_FAIL(who, INVALID_ARGUMENT, arg, "is %s; expected shape %s", proa__tensor_text(values),
                   proa__shape_text(m.shape, m.ndim));
}

proa_status gather_nd_infer(const proa_gather_nd_args *a, proa_gather_nd_metas *m)
{
    m->out.dtype = (proa_dtype)a->x->dtype;
    return proa__points_shape("gather_nd", a->index, a->x->ndim, a->x->shape, &m->out);
}

proa_status gather_nd_vjp(const proa_gather_nd_args *a, proa_gather_nd_grads *g)
{
    g->d_x = proa_gather_nd_grad(g->d_out, a->index, proa__shape_like(a->x));
    return proa_error();
}

proa_status gather_nd_grad_infer(const proa_gather_nd_grad_args *a, proa_gather_nd_grad_metas *m)
{
    PROA_TRY(proa__dims_meta("gather_nd_grad", "shape", &a->shape, a->d_out->dtype, &m->d_x));
    return proa__check_points("gather_nd_grad", "d_out", a->d_out, a->index, m->d_x.ndim, m->d_x.shape);
}

proa_status gather_nd_grad_vjp(const proa_gather_nd_grad_args *a, proa_gather_nd_grad_grads *g)
{
    g->d_d_out = proa_gather_nd(g->d_d_x, a->index);
    return proa_error();
}

/* ---- along an axis ---------------------------------------------------------------------- */

proa_status index_sample_infer(const proa_index_sample_args *a, proa_index_sample_metas *m)
{
    PROA_TRY(proa__check_index_dtype("index_sample", "index", a->index));
    int64_t p = a->x->ndim == 2 ? a->x->shape[0] : 0, q = a->index->ndim == 2 ? a->index->shape[0] : 0;
    if (a->x->ndim != 2 || a->index->ndim != 2 || (p >= 0 && q >= 0 && p != q))
        return OP_FAIL("index_sample", INVALID_ARGUMENT, "index",
                       "is %s and x is %s; expected two matrices of as many rows",
                       proa__tensor_text(a->index), proa__tensor_text(a->x));
    m->out = proa_meta_of(a->index);
    m->out.dtype = (proa_dtype)a->x->dtype;
    return PROA_OK;
}

proa_status index_sample_vjp(const proa_index_sample_args *a, proa_index_sample_grads *g)
{
    g->d_x = proa_take_along_axis_grad(g->d_out, a->index, proa__shape_like(a->x), 1);
    return proa_error();
}

proa_status proa__along_shape(const char *who, const proa_tensor *arr, const proa_tensor *indices,
                              int64_t axis, bool broadcast, proa_meta *m)
{
    int at;
    PROA_TRY(proa__check_index_dtype(who, "indices", indices));
    if (arr->ndim != indices->ndim || arr->ndim == 0)
        return OP_FAIL(who, INVALID_ARGUMENT, "indices",
                       "is %s and arr is %s; expected as many axes, at least one", proa__tensor_text(indices),
                       proa__tensor_text(arr));
    PROA_TRY(proa__axis(who, "axis", axis, arr->ndim, &at));
    *m = proa_meta_of(indices);
    m->dtype = (proa_dtype)arr->dtype;
    for (int i = 0; i < arr->ndim; i++) {
        int64_t p = arr->shape[i], q = indices->shape[i];
        if (i == at || p < 0) continue;
        if (broadcast && q == 1) m->shape[i] = p;
        else if (broadcast && p == 1) continue;
        else if (q >= 0 && (broadcast ? p != q : q > p))
            return OP_FAIL(who, INVALID_ARGUMENT, "indices", "has length %lld on axis %d, where arr has %lld",
                           (long long)q, i, (long long)p);
    }
    return PROA_OK;
}

proa_status take_along_axis_infer(const proa_take_along_axis_args *a, proa_take_along_axis_metas *m)
{
    return proa__along_shape("take_along_axis", a->arr, a->indices, a->axis, a->broadcast, &m->out);
}

proa_status take_along_axis_vjp(const proa_take_along_axis_args *a, proa_take_along_axis_grads *g)
{
    g->d_arr = proa_take_along_axis_grad(g->d_out, a->indices, proa__shape_like(a->arr), a->axis);
    return proa_error();
}

/* d_out's dims: on the axis indices', elsewhere arr's or less, or more where arr has length 1. */
static bool fits_along(const proa_tensor *d_out, const proa_tensor *indices, const proa_meta *arr, int axis)
{
    if (arr->ndim != d_out->ndim || indices->ndim != d_out->ndim) return false;
    for (int i = 0; i < d_out->ndim; i++) {
        int64_t d = d_out->shape[i], q = indices->shape[i], p = arr->shape[i];
        if (d < 0 || q < 0 || p < 0) continue;
        if (i == axis ? d != q : (q != d && q != 1) || (p != 1 && p < d)) return false;
    }
    return true;
}

proa_status take_along_axis_grad_infer(const proa_take_along_axis_grad_args *a,
                                       proa_take_along_axis_grad_metas *m)
{
    static const char who[] = "take_along_axis_grad";
    int axis;
    PROA_TRY(proa__check_index_dtype(who, "indices", a->indices));
    PROA_TRY(proa__dims_meta(who, "shape", &a->shape, a->d_out->dtype, &m->d_arr));
    PROA_TRY(proa__axis(who, "axis", a->axis, m->d_arr.ndim, &axis));
    if (m->d_arr.ndim && fits_along(a->d_out, a->indices, &m->d_arr, axis)) return PROA_OK;
    return OP_FAIL(who, INVALID_ARGUMENT, "d_out",
                   "is %s, indices %s: they do not belong to an arr of shape %s", proa__tensor_text(a->d_out),
                   proa__tensor_text(a->indices), proa__shape_text(m->d_arr.shape, m->d_arr.ndim));
}

proa_status take_along_axis_grad_vjp(const proa_take_along_axis_grad_args *a,
                                     proa_take_along_axis_grad_grads *g)
{
    g->d_d_out = proa_take_along_axis(g->d_d_arr, a->indices, a->axis, .no_broadcast = false);
    return proa_error();
}

/* ---- masks ------------------------------------------------------------------------------ */

proa_status proa__broadcast_meta(const char *who, const char *arg, const proa_tensor *t, proa_meta *m)
{
    int rank = t->ndim > m->ndim ? t->ndim : m->ndim;
    proa_meta r = {.dtype = m->dtype, .ndim = (int8_t)rank};
    for (int i = 1; i <= rank; i++) {
        int64_t p = i <= m->ndim ? m->shape[m->ndim - i] : 1, q = i <= t->ndim ? t->shape[t->ndim - i] : 1;
        if (p >= 0 && q >= 0 && p != q && p != 1 && q != 1)
            return OP_FAIL(who, INVALID_ARGUMENT, arg, "is %s, which does not broadcast with %s",
                           proa__tensor_text(t), proa__shape_text(m->shape, m->ndim));
        r.shape[rank - i] = p == 1 ? q : q == 1 || q < 0 ? p : q;
        if (p < 0 && q == 1) r.shape[rank - i] = -1;
    }
    *m = r;
    return PROA_OK;
}

static proa_status check_mask(const char *who, const proa_tensor *mask)
{
    if (mask->dtype == PROA_BOOL) return PROA_OK;
    return proa__operand_dtype_fail(proa_find_op(who), "mask", "is %s; expected bool",
                                    proa__tensor_text(mask));
}

proa_status masked_select_infer(const proa_masked_select_args *a, proa_masked_select_metas *m)
{
    proa_meta full = proa_meta_of(a->x);
    PROA_TRY(check_mask("masked_select", a->mask));
    PROA_TRY(proa__broadcast_meta("masked_select", "mask", a->mask, &full));
    m->out = (proa_meta){.dtype = full.dtype, .ndim = 1, .shape = {-1}};
    return PROA_OK;
}

proa_status masked_select_vjp(const proa_masked_select_args *a, proa_masked_select_grads *g)
{
    g->d_x = proa_masked_select_grad(g->d_out, a->mask, proa__shape_like(a->x));
    return proa_error();
}

proa_status masked_select_grad_infer(const proa_masked_select_grad_args *a, proa_masked_select_grad_metas *m)
{
    PROA_TRY(check_mask("masked_select_grad", a->mask));
    PROA_TRY(proa__dims_meta("masked_select_grad", "shape", &a->shape, a->d_out->dtype, &m->d_x));
    return proa__broadcast_meta("masked_select_grad", "mask", a->mask, &m->d_x);
}

proa_status masked_select_grad_vjp(const proa_masked_select_grad_args *a, proa_masked_select_grad_grads *g)
{
    g->d_d_out = proa_masked_select(g->d_d_x, a->mask);
    return proa_error();
}

proa_status masked_fill_infer(const proa_masked_fill_args *a, proa_masked_fill_metas *m)
{
    m->out = proa_meta_of(a->x);
    PROA_TRY(check_mask("masked_fill", a->mask));
    return proa__broadcast_meta("masked_fill", "mask", a->mask, &m->out);
}

proa_status masked_fill_vjp(const proa_masked_fill_args *a, proa_masked_fill_grads *g)
{
    g->d_x = proa_masked_fill(g->d_out, a->mask, proa_scalar_int(0));
    return proa_error();
}

proa_status nonzero_infer(const proa_nonzero_args *a, proa_nonzero_metas *m)
{
    if (a->x->ndim == 0)
        return OP_FAIL("nonzero", INVALID_ARGUMENT, "x",
                       "is 0-D; expected at least one axis (proa_reshape to [1])");
    m->out = (proa_meta){.dtype = PROA_I64, .ndim = 2, .shape = {-1, a->x->ndim}};
    return PROA_OK;
}
