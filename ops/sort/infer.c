/* Shape inference and rules of the sorting ops. Their gradients scatter d_out back to the elements' source
 * positions. */
#include "ops/ints.h"
#include "impl/index.h"
#include "impl/shape.h"
#include "impl/sort.h"

static proa_meta places_of(const proa_meta *values)
{
    proa_meta m = *values;
    m.dtype = PROA_I64;
    return m;
}

/* Scatters d_out to `indices` along axis into zeros with x's shape. */
static proa_tensor *put_back(proa_tensor *x, proa_tensor *d_out, proa_tensor *indices, int64_t axis)
{
    if (!x || x->ndim == 0) return d_out;
    return proa_take_along_axis_grad(d_out, indices, proa__shape_like(x), axis);
}

proa_status sort_infer(const proa_sort_args *a, proa_sort_metas *m)
{
    int axis;
    m->out = proa_meta_of(a->x);
    m->indices = places_of(&m->out);
    return proa__axis("sort", "axis", a->axis, a->x->ndim, &axis);
}

proa_status sort_vjp(const proa_sort_args *a, proa_sort_grads *g)
{
    g->d_x = put_back(a->x, g->d_out, a->indices, a->axis);
    return proa_error();
}

proa_status argsort_infer(const proa_argsort_args *a, proa_argsort_metas *m)
{
    int axis;
    m->out = proa_meta_of(a->x);
    m->out.dtype = PROA_I64;
    return proa__axis("argsort", "axis", a->axis, a->x->ndim, &axis);
}

proa_status topk_infer(const proa_topk_args *a, proa_topk_metas *m)
{
    int axis;
    int64_t k;
    PROA_TRY(proa__axis("topk", "axis", a->axis, a->x->ndim, &axis));
    PROA_TRY(proa__int_or("topk", "k", a->k, &a->k_tensor, &k));
    int64_t have = a->x->ndim ? a->x->shape[axis] : 1;
    if (k != PROA_UNKNOWN && (k < 1 || (have >= 0 && k > have)))
        return OP_FAIL("topk", INVALID_ARGUMENT, "k", "is %lld; expected 1 to %lld, the length of axis %d",
                       (long long)k, (long long)have, axis);
    m->out = proa_meta_of(a->x);
    if (a->x->ndim) m->out.shape[axis] = k == PROA_UNKNOWN ? -1 : k;
    m->indices = places_of(&m->out);
    return PROA_OK;
}

proa_status topk_vjp(const proa_topk_args *a, proa_topk_grads *g)
{
    g->d_x = put_back(a->x, g->d_out, a->indices, a->axis);
    return proa_error();
}

/* x's meta with one element along axis, or without it. */
static proa_meta one_along(const proa_tensor *x, int axis, bool keepdim)
{
    proa_meta m = proa_meta_of(x);
    if (!x->ndim) return m;
    if (keepdim) {
        m.shape[axis] = 1;
        return m;
    }
    m.ndim--;
    for (int i = axis; i < m.ndim; i++) m.shape[i] = m.shape[i + 1];
    return m;
}

proa_status kthvalue_infer(const proa_kthvalue_args *a, proa_kthvalue_metas *m)
{
    int axis;
    PROA_TRY(proa__axis("kthvalue", "axis", a->axis, a->x->ndim, &axis));
    int64_t have = a->x->ndim ? a->x->shape[axis] : 1;
    if (a->k < 1 || (have >= 0 && a->k > have))
        return OP_FAIL("kthvalue", INVALID_ARGUMENT, "k",
                       "is %lld; expected 1 to %lld, the length of axis %d", (long long)a->k, (long long)have,
                       axis);
    m->out = one_along(a->x, axis, a->keepdim);
    m->indices = places_of(&m->out);
    return PROA_OK;
}

/* put_back of outputs with one element along axis, or without it. */
static proa_tensor *put_one_back(proa_tensor *x, proa_tensor *d, proa_tensor *indices, int64_t axis,
                                 bool keepdim)
{
    if (x && x->ndim && !keepdim) {
        int64_t at = axis < 0 ? axis + x->ndim : axis;
        d = proa_unsqueeze(d, PROA_INTS(at));
        indices = proa_unsqueeze(indices, PROA_INTS(at));
    }
    return put_back(x, d, indices, axis);
}

proa_status kthvalue_vjp(const proa_kthvalue_args *a, proa_kthvalue_grads *g)
{
    g->d_x = put_one_back(a->x, g->d_out, a->indices, a->axis, a->keepdim);
    return proa_error();
}

proa_status mode_infer(const proa_mode_args *a, proa_mode_metas *m)
{
    int axis;
    PROA_TRY(proa__axis("mode", "axis", a->axis, a->x->ndim, &axis));
    if (a->x->ndim && a->x->shape[axis] == 0)
        return OP_FAIL("mode", INVALID_ARGUMENT, "x", "is %s; expected elements along axis %d",
                       proa__tensor_text(a->x), axis);
    m->out = one_along(a->x, axis, a->keepdim);
    m->indices = places_of(&m->out);
    return PROA_OK;
}

proa_status mode_vjp(const proa_mode_args *a, proa_mode_grads *g)
{
    g->d_x = put_one_back(a->x, g->d_out, a->indices, a->axis, a->keepdim);
    return proa_error();
}

proa_status searchsorted_infer(const proa_searchsorted_args *a, proa_searchsorted_metas *m)
{
    const proa_tensor *s = a->sorted_sequence, *v = a->values;
    if (s->dtype != v->dtype)
        return OP_FAIL("searchsorted", INVALID_ARGUMENT, "values",
                       "is %s; expected sorted_sequence's dtype, %s", proa__tensor_text(v),
                       proa_dtype_name((proa_dtype)s->dtype));
    bool fits = s->ndim == 1 ||
                (s->ndim > 1 && s->ndim == v->ndim && proa__shapes_agree(s->shape, v->shape, s->ndim - 1));
    if (!fits)
        return OP_FAIL("searchsorted", UNAVAILABLE, "sorted_sequence",
                       "is %s and values %s; expected one axis, or equal dims but the last",
                       proa__tensor_text(s), proa__tensor_text(v));
    m->out = proa_meta_of(v);
    m->out.dtype = a->out_int32 ? PROA_I32 : PROA_I64;
    return PROA_OK;
}
