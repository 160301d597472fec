/* Shape inference, views and rules of expand, broadcast_to and expand_as. Autograd sums the gradient back to
 * x's shape. */
#include "ops/shape/slice.h"
#include "impl/shape.h"

static proa_status expanded(const char *who, const proa_tensor *x, const proa_ints *shape, proa_meta *m)
{
    int n = 0;
    PROA_TRY(proa__ints_list(who, "shape", shape, PROA_MAX_DIMS, m->shape, &n));
    m->dtype = (proa_dtype)x->dtype;
    m->ndim = (int8_t)n;
    int lead = n - x->ndim;
    if (lead < 0)
        return OP_FAIL(who, INVALID_ARGUMENT, "shape", "has %d entries, fewer than x has axes: %s", n,
                       proa__shape_text(x->shape, x->ndim));
    for (int i = 0; i < n; i++) {
        int64_t want = m->shape[i], have = i < lead ? 1 : x->shape[i - lead];
        if (want == PROA_UNKNOWN) {
            m->shape[i] = have > 1 ? have : -1;
        } else if (want == -1) {
            if (i < lead)
                return OP_FAIL(who, INVALID_ARGUMENT, "shape", "has −1 (keep) at the new axis %d", i);
            m->shape[i] = have;
        } else if (want < 0 || (have != 1 && have >= 0 && have != want)) {
            return OP_FAIL(who, INVALID_ARGUMENT, "shape",
                           "wants %lld at place %d, where x has %lld; x is %s", (long long)want, i,
                           (long long)have, proa__shape_text(x->shape, x->ndim));
        }
    }
    return PROA_OK;
}

void proa__expand_window(proa_tensor *w, int ndim, const int64_t *shape)
{
    int lead = ndim - w->ndim;
    for (int i = ndim - 1; i >= 0; i--) {
        bool repeats = i < lead || (w->shape[i - lead] == 1 && shape[i] != 1);
        w->strides[i] = repeats ? 0 : w->strides[i - lead];
        w->shape[i] = shape[i];
    }
    w->ndim = (int8_t)ndim;
}

static proa_status expanded_view(proa_tensor *x, const proa_meta *m, proa_tensor **out)
{
    proa_tensor w = proa__window(x);
    proa__expand_window(&w, m->ndim, m->shape);
    *out = proa__tensor_view(x, w.ndim, w.shape, w.strides, 0);
    return *out ? PROA_OK : proa_error();
}

proa_status expand_infer(const proa_expand_args *a, proa_expand_metas *m)
{
    return expanded("expand", a->x, &a->shape, &m->out);
}
proa_status broadcast_to_infer(const proa_broadcast_to_args *a, proa_broadcast_to_metas *m)
{
    return expanded("broadcast_to", a->x, &a->shape, &m->out);
}
proa_status expand_as_infer(const proa_expand_as_args *a, proa_expand_as_metas *m)
{
    m->out = proa_meta_of(a->y);
    m->out.dtype = (proa_dtype)a->x->dtype;
    return proa__check_broadcast("expand_as", "x", a->x, &m->out);
}

proa_status expand_view(proa_expand_args *a, const proa_meta *m) { return expanded_view(a->x, m, &a->out); }
proa_status broadcast_to_view(proa_broadcast_to_args *a, const proa_meta *m)
{
    return expanded_view(a->x, m, &a->out);
}
proa_status expand_as_view(proa_expand_as_args *a, const proa_meta *m)
{
    return expanded_view(a->x, m, &a->out);
}

proa_status expand_vjp(__attribute__((unused)) const proa_expand_args *a, proa_expand_grads *g)
{
    g->d_x = g->d_out;
    return PROA_OK;
}
proa_status broadcast_to_vjp(__attribute__((unused)) const proa_broadcast_to_args *a,
                             proa_broadcast_to_grads *g)
{
    g->d_x = g->d_out;
    return PROA_OK;
}
proa_status expand_as_vjp(__attribute__((unused)) const proa_expand_as_args *a, proa_expand_as_grads *g)
{
    g->d_x = g->d_out;
    return PROA_OK;
}
