/* Shape inference, views and rules of reshape, squeeze, unsqueeze, flatten and transpose, and the view of
 * share_data. Paddle's meaning of 0 and −1 in a shape, and its unsqueeze, which inserts one axis after the
 * other, are implemented here. */
#include "ops/ints.h"
#include "impl/shape.h"

/* ---- reshape ---------------------------------------------------------------------------- */

/* Fills the −1 at `hole` so that the element counts agree. Unknown dims of x cancel against copied ones. */
static proa_status fill_hole(const proa_tensor *x, int hole, uint32_t copied, proa_meta *m)
{
    int64_t have = 1, want = 1;
    for (int i = 0; i < x->ndim; i++) {
        if (copied >> i & 1) continue;
        if (x->shape[i] < 0) return PROA_OK; /* stays −1 */
        have *= x->shape[i];
    }
    for (int i = 0; i < m->ndim; i++) {
        if (i == hole || copied >> i & 1) continue;
        if (m->shape[i] < 0) return PROA_OK;
        if (__builtin_mul_overflow(want, m->shape[i], &want)) want = 0;
    }
    if (want == 0 || have % want)
        return OP_FAIL("reshape", INVALID_ARGUMENT, "shape", "leaves no whole number for −1: x is %s",
                       proa__shape_text(x->shape, x->ndim));
    m->shape[hole] = have / want;
    return PROA_OK;
}

static proa_status check_count(const proa_tensor *x, const proa_meta *m)
{
    int64_t n = proa__meta_numel(m);
    if (n < 0 || x->numel < 0 || n == x->numel) return PROA_OK;
    return OP_FAIL("reshape", INVALID_ARGUMENT, "shape",
                   "%s has %lld elements, but x is %s with %lld; use one −1 to infer a dim",
                   proa__shape_text(m->shape, m->ndim), (long long)n, proa__shape_text(x->shape, x->ndim),
                   (long long)x->numel);
}

proa_status reshape_infer(const proa_reshape_args *a, proa_reshape_metas *m)
{
    int64_t want[PROA_MAX_DIMS];
    int n = 0, hole = -1;
    uint32_t copied = 0;
    bool unknown = false;
    PROA_TRY(proa__shape_list("reshape", "shape", &a->shape, want, &n));
    m->out.dtype = (proa_dtype)a->x->dtype;
    m->out.ndim = (int8_t)n;
    for (int i = 0; i < n; i++) {
        m->out.shape[i] = want[i];
        if (want[i] == PROA_UNKNOWN) {
            m->out.shape[i] = -1;
            unknown = true;
        } else if (want[i] == 0 && i < a->x->ndim) {
            m->out.shape[i] = a->x->shape[i];
            copied |= 1u << i;
        } else if (want[i] == 0 && a->x->numel > 0) {
            return OP_FAIL("reshape", INVALID_ARGUMENT, "shape",
                           "has 0 (copy) at place %d, but x has only %d axes: %s", i, a->x->ndim,
                           proa__shape_text(a->x->shape, a->x->ndim));
        } else if (want[i] == -1) {
            if (hole >= 0)
                return OP_FAIL("reshape", INVALID_ARGUMENT, "shape",
                               "has −1 at places %d and %d; expected one", hole, i);
            hole = i;
        } else if (want[i] < -1) {
            return OP_FAIL("reshape", INVALID_ARGUMENT, "shape", "has %lld at place %d; expected ≥ −1",
                           (long long)want[i], i);
        }
    }
    if (hole >= 0 && !unknown) PROA_TRY(fill_hole(a->x, hole, copied, &m->out));
    return check_count(a->x, &m->out);
}

/* Byte strides that show a strided x in another shape of as many elements, or false when none can. Groups of
 * axes with equal products are matched; within a group x's axes must be evenly spaced. */
static bool restride(const proa_tensor *x, const proa_meta *m, int64_t *strides)
{
    int64_t item = (int64_t)proa_dtype_size((proa_dtype)x->dtype);
    int from = x->ndim - 1, to = m->ndim - 1;
    while (from >= 0 || to >= 0) {
        while (from >= 0 && x->shape[from] == 1) from--;
        if (from < 0) {
            for (; to >= 0; to--) strides[to] = item;
            return true;
        }
        int64_t step = x->strides[from], have = x->shape[from--], made = 1;
        for (; to >= 0 && made < have; to--) strides[to] = step * made, made *= m->shape[to];
        while (made != have) {
            if (made < have) {
                strides[to] = step * made;
                made *= m->shape[to--];
                continue;
            }
            while (from >= 0 && x->shape[from] == 1) from--;
            if (from < 0 || x->strides[from] != step * have) return false;
            have *= x->shape[from--];
        }
        for (; to >= 0 && m->shape[to] == 1; to--) strides[to] = item;
    }
    return true;
}

/* out stays NULL when x's strides cannot show the new shape. */
static proa_status reshaped_view(proa_tensor *x, const proa_meta *m, proa_tensor **out)
{
    int64_t strides[PROA_MAX_DIMS];
    bool dense = !(x->flags & PROA_T_STRIDED);
    if (!dense && !restride(x, m, strides)) return PROA_OK;
    *out = proa__tensor_view(x, m->ndim, m->shape, dense ? NULL : strides, 0);
    return *out ? PROA_OK : proa_error();
}

/* A 0-D tensor is copied, as in Paddle. */
proa_status reshape_view(proa_reshape_args *a, const proa_meta *m)
{
    return a->x->ndim ? reshaped_view(a->x, m, &a->out) : PROA_OK;
}
proa_status squeeze_view(proa_squeeze_args *a, const proa_meta *m) { return reshaped_view(a->x, m, &a->out); }
proa_status unsqueeze_view(proa_unsqueeze_args *a, const proa_meta *m)
{
    return reshaped_view(a->x, m, &a->out);
}
proa_status flatten_view(proa_flatten_args *a, const proa_meta *m)
{
    return a->x->ndim ? reshaped_view(a->x, m, &a->out) : PROA_OK;
}

proa_status share_data_view(proa_share_data_args *a, const proa_meta *m)
{
    a->out = proa__tensor_view(a->x, m->ndim, m->shape, a->x->strides, 0);
    return a->out ? PROA_OK : proa_error();
}

/* d_out in the shape of x. A 0 dim would mean "copy" to reshape; empty tensors take a strided view. */
static proa_tensor *back_to(proa_tensor *d_out, proa_tensor *x)
{
    if (x && x->numel == 0) {
        int64_t strides[PROA_MAX_DIMS] = {0};
        return proa_as_strided(d_out, ((proa_ints){x->ndim, x->shape, NULL, NULL}),
                               ((proa_ints){x->ndim, strides, NULL, NULL}));
    }
    proa_ints shape = x ? (proa_ints){x->ndim, x->shape, NULL, NULL} : (proa_ints){0, NULL, NULL, NULL};
    int unknown = 0;
    for (int i = 0; x && i < x->ndim; i++) unknown += x->shape[i] < 0;
    return proa_reshape(d_out, unknown > 1 ? proa__shape_like(x) : shape);
}

proa_status reshape_vjp(const proa_reshape_args *a, proa_reshape_grads *g)
{
    g->d_x = back_to(g->d_out, a->x);
    return proa_error();
}
proa_status squeeze_vjp(const proa_squeeze_args *a, proa_squeeze_grads *g)
{
    g->d_x = back_to(g->d_out, a->x);
    return proa_error();
}
proa_status unsqueeze_vjp(const proa_unsqueeze_args *a, proa_unsqueeze_grads *g)
{
    g->d_x = back_to(g->d_out, a->x);
    return proa_error();
}
proa_status flatten_vjp(const proa_flatten_args *a, proa_flatten_grads *g)
{
    g->d_x = back_to(g->d_out, a->x);
    return proa_error();
}

/* ---- squeeze, unsqueeze, flatten -------------------------------------------------------- */

/* Axes that are known only when the program runs are taken to have length 1, as in Paddle. */
static proa_status squeeze_unknown(const proa_squeeze_args *a, proa_meta *m)
{
    int64_t n;
    PROA_TRY(proa__ints_count("squeeze", "axis", &a->axis, &n));
    if (n > a->x->ndim)
        return OP_FAIL("squeeze", INVALID_ARGUMENT, "axis", "names %lld axes; x has %d", (long long)n,
                       a->x->ndim);
    *m = (proa_meta){.dtype = (proa_dtype)a->x->dtype, .ndim = (int8_t)(a->x->ndim - n)};
    for (int i = 0; i < m->ndim; i++) m->shape[i] = -1;
    return PROA_OK;
}

proa_status squeeze_infer(const proa_squeeze_args *a, proa_squeeze_metas *m)
{
    int axes[PROA_MAX_DIMS], n = 0;
    uint32_t named = 0;
    if (proa__ints_unknown(&a->axis)) return squeeze_unknown(a, &m->out);
    PROA_TRY(proa__axes("squeeze", "axis", &a->axis, a->x->ndim, axes, &n));
    for (int i = 0; i < n; i++) named |= 1u << axes[i];
    m->out.dtype = (proa_dtype)a->x->dtype;
    m->out.ndim = 0;
    for (int i = 0; i < a->x->ndim; i++) {
        int64_t d = a->x->shape[i];
        bool goes = n ? (named >> i & 1) && (d == 1 || d < 0) : d == 1;
        if (!goes) m->out.shape[m->out.ndim++] = d;
    }
    return PROA_OK;
}

proa_status unsqueeze_infer(const proa_unsqueeze_args *a, proa_unsqueeze_metas *m)
{
    int64_t axes[PROA_MAX_DIMS];
    int n = 0, rank = a->x->ndim;
    PROA_TRY(proa__ints_list("unsqueeze", "axis", &a->axis, PROA_MAX_DIMS, axes, &n));
    if (rank + n > PROA_MAX_DIMS)
        return OP_FAIL("unsqueeze", INVALID_ARGUMENT, "axis", "would make %d axes; at most %d are possible",
                       rank + n, PROA_MAX_DIMS);
    m->out = proa_meta_of(a->x);
    bool unknown = false; /* with an axis that a variable supplies, every dim may be any */
    for (int i = 0; i < n; i++) unknown |= axes[i] == PROA_UNKNOWN;
    for (int i = 0; unknown && i < rank + n; i++) m->out.shape[i] = -1;
    for (int i = 0; i < n; i++, rank++) {
        if (unknown) continue;
        if (axes[i] < -rank - 1 || axes[i] > rank)
            return OP_FAIL("unsqueeze", INVALID_ARGUMENT, "axis", "is %lld; expected %d to %d",
                           (long long)axes[i], -rank - 1, rank);
        int at = (int)(axes[i] < 0 ? axes[i] + rank + 1 : axes[i]);
        for (int k = rank; k > at; k--) m->out.shape[k] = m->out.shape[k - 1];
        m->out.shape[at] = 1;
    }
    m->out.ndim = (int8_t)rank;
    return PROA_OK;
}

proa_status flatten_infer(const proa_flatten_args *a, proa_flatten_metas *m)
{
    int start, stop;
    PROA_TRY(proa__axis("flatten", "start_axis", a->start_axis, a->x->ndim, &start));
    PROA_TRY(proa__axis("flatten", "stop_axis", a->stop_axis, a->x->ndim, &stop));
    if (start > stop)
        return OP_FAIL("flatten", INVALID_ARGUMENT, "stop_axis", "is %d, before start_axis %d", stop, start);
    m->out.dtype = (proa_dtype)a->x->dtype;
    m->out.ndim = 0;
    int64_t one = 1;
    for (int i = 0; i < a->x->ndim; i++) {
        int64_t d = a->x->shape[i];
        if (i < start || i > stop) m->out.shape[m->out.ndim++] = d;
        else if (d < 0 || one < 0) one = -1;
        else one *= d;
        if (i == stop) m->out.shape[m->out.ndim++] = one;
    }
    if (a->x->ndim == 0) m->out.shape[m->out.ndim++] = 1;
    return PROA_OK;
}

/* ---- transpose -------------------------------------------------------------------------- */

static proa_status permutation(const proa_transpose_args *a, int *perm)
{
    int n = 0;
    if (a->x->ndim == 0 && a->perm.count == 0) return PROA_OK;
    PROA_TRY(proa__axes("transpose", "perm", &a->perm, a->x->ndim, perm, &n));
    if (n == a->x->ndim) return PROA_OK;
    return OP_FAIL("transpose", INVALID_ARGUMENT, "perm", "has %d entries; expected one an axis of x: %s", n,
                   proa__shape_text(a->x->shape, a->x->ndim));
}

proa_status transpose_infer(const proa_transpose_args *a, proa_transpose_metas *m)
{
    int perm[PROA_MAX_DIMS] = {0};
    PROA_TRY(permutation(a, perm));
    m->out.dtype = (proa_dtype)a->x->dtype;
    m->out.ndim = a->x->ndim;
    for (int i = 0; i < a->x->ndim; i++) m->out.shape[i] = a->x->shape[perm[i]];
    return PROA_OK;
}

proa_status transpose_view(proa_transpose_args *a, const proa_meta *m)
{
    int perm[PROA_MAX_DIMS] = {0};
    int64_t strides[PROA_MAX_DIMS];
    PROA_TRY(permutation(a, perm));
    for (int i = 0; i < m->ndim; i++) strides[i] = a->x->strides[perm[i]];
    a->out = proa__tensor_view(a->x, m->ndim, m->shape, strides, 0);
    return a->out ? PROA_OK : proa_error();
}

proa_status transpose_vjp(const proa_transpose_args *a, proa_transpose_grads *g)
{
    int64_t back[PROA_MAX_DIMS] = {0};
    int64_t n = a->perm.count;
    for (int64_t i = 0; i < n; i++) back[a->perm.at[i] < 0 ? a->perm.at[i] + n : a->perm.at[i]] = i;
    g->d_x = proa_transpose(g->d_out, ((proa_ints){n, back, NULL, NULL}));
    return proa_error();
}
