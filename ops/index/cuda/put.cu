/* index_put on a GPU: the rows that points or a mask name are listed, then the value's elements go to them.
 * At a row that is named twice the last one counts; with `accumulate` the values of a row are added in the
 * order of the points, so that results are bitwise reproducible. */
#include "ops/index/cuda/index.h"

/* Rows of x, [total, inner], that the index names; scratch. A row of −1 is out of range. */
struct put_rows {
    int64_t *rows, count, total, inner;
};

__global__ void put_point_rows_kernel(index_points p, int64_t *rows)
{
    for (CUDA_EACH(k, p.count)) rows[k] = p.row(k);
}
__global__ void put_mask_marks_kernel(const uint8_t *mask, int64_t n, int64_t *before)
{
    for (CUDA_EACH(i, n + 1)) before[i] = i < n && mask[i] != 0;
}
__global__ void put_mask_rows_kernel(const uint8_t *mask, int64_t n, const int64_t *before, int64_t *rows)
{
    for (CUDA_EACH(i, n))
        if (mask[i]) rows[before[i]] = i;
}

static int64_t *put_scratch(cuda_context *c, int64_t n)
{
    return (int64_t *)cuda_scratch(c, (size_t)(n + 1) * sizeof(int64_t));
}

/* The host waits once for the number of elements that the mask selects. */
static proa_status put_rows_of_mask(cuda_context *c, const proa_tensor *mask, put_rows *r)
{
    cuda_tensor m = cuda_look(mask);
    int64_t *before = put_scratch(c, m.numel);
    if (!before) return cuda_host->error();
    proa_status s = cuda_launch(c, cuda_blocks(m.numel + 1), CUDA_BLOCK, put_mask_marks_kernel,
                                m.as<uint8_t>(), m.numel, before);
    if (s == PROA_OK) s = cuda_scan(c, before, m.numel + 1);
    if (s == PROA_OK) s = cuda_read(c, &r->count, before + m.numel, sizeof r->count);
    if (s == PROA_OK && !(r->rows = put_scratch(c, r->count))) s = cuda_host->error();
    if (s == PROA_OK && m.numel)
        s = cuda_launch(c, cuda_blocks(m.numel), CUDA_BLOCK, put_mask_rows_kernel, m.as<uint8_t>(), m.numel,
                        before, r->rows);
    cuda_scratch_free(c, before);
    return s;
}

static proa_status put_rows_of_points(cuda_context *c, const proa_tensor *index, const proa_tensor *x,
                                      put_rows *r)
{
    index_points p = index_points_of(c, index, x);
    r->count = p.count;
    r->rows = put_scratch(c, p.count);
    if (!r->rows) return cuda_host->error();
    if (p.count == 0) return PROA_OK;
    return cuda_launch(c, cuda_blocks(p.count), CUDA_BLOCK, put_point_rows_kernel, p, r->rows);
}

/* A walk that reads `value` broadcast to [points…, x's other axes]. */
static proa_status put_walk(const proa_index_put_args *a, int64_t count, index_walk *w)
{
    cuda_tensor x = cuda_look(a->x), index = cuda_look(a->index), value = cuda_look(a->value);
    bool mask = index.dtype == PROA_BOOL;
    int lead = mask ? 1 : index.ndim - 1;
    for (int i = 0; i < lead; i++) w->shape[w->ndim++] = mask ? count : index.shape[i];
    for (int i = mask ? index.ndim : (int)index.dim(-1); i < x.ndim; i++) w->shape[w->ndim++] = x.shape[i];
    if (mask && value.ndim == w->ndim && value.shape[0] != 1 && value.shape[0] != count)
        return cuda_fail(PROA_ERR_INVALID_ARGUMENT,
                         "index_put: value has %lld rows; expected 1 or %lld, as many as the mask selects",
                         (long long)value.shape[0], (long long)count);
    index_steps(a->value, w->ndim, w->shape, w->value);
    w->count = 1;
    for (int i = 0; i < w->ndim; i++) w->count *= w->shape[i];
    return PROA_OK;
}

/* owner[row] = 1 + the last point that names the row, which alone writes it; 0: none. */
__global__ void put_owners_kernel(put_rows r, int64_t *owner)
{
    for (CUDA_EACH(k, r.count))
        if (r.rows[k] >= 0) cuda_atomic_max(&owner[r.rows[k]], k + 1);
}
template <class T>
__global__ void put_last_kernel(put_rows r, index_walk w, const int64_t *owner, const T *value, T *out)
{
    for (CUDA_EACH(i, w.count)) {
        int64_t k = i, at = cuda_split(k, r.inner), row = r.rows[k];
        if (row >= 0 && owner[row] == k + 1) out[row * r.inner + at] = value[w.value_at(i)];
    }
}

static proa_status put_last(cuda_context *c, const proa_index_put_args *a, const put_rows &r,
                            const index_walk &w)
{
    cuda_tensor out = cuda_look(a->out), value = cuda_look(a->value);
    int64_t zero = 0, *owner = put_scratch(c, r.total);
    if (!owner) return cuda_host->error();
    proa_status s = cuda_fill(c, owner, &zero, sizeof zero, r.total);
    if (s == PROA_OK) s = cuda_launch(c, cuda_blocks(r.count), CUDA_BLOCK, put_owners_kernel, r, owner);
    if (s == PROA_OK)
        CUDA_SWITCH_UNIT(cuda_item(out.dtype), T,
                         s = cuda_launch(c, cuda_blocks(w.count), CUDA_BLOCK, put_last_kernel<T>, r, w, owner,
                                         value.as<T>(), out.as<T>());)
    cuda_scratch_free(c, owner);
    return s;
}

__global__ void put_keys_kernel(cuda_order o, put_rows r)
{
    for (CUDA_EACH(i, o.length)) {
        int64_t k = i, at = cuda_split(k, r.inner), row = r.rows[k];
        o.put_key(i, (uint64_t)((row < 0 ? r.total : row) * r.inner + (row < 0 ? 0 : at)));
    }
}

static proa_status put_sums(cuda_context *c, const proa_index_put_args *a, const put_rows &r,
                            const index_walk &w)
{
    cuda_order o;
    cuda_tensor out = cuda_look(a->out), value = cuda_look(a->value);
    proa_status s = index_order(c, &o, w.count, out.numel);
    if (s != PROA_OK) return s;
    s = cuda_launch(c, cuda_blocks(w.count), CUDA_BLOCK, put_keys_kernel, o, r);
    index_sum sum = {value.data, out.data, value.dtype, out.dtype, 1, 1, out.numel, false, &w};
    if (s == PROA_OK) s = index_sum_rows(c, &o, &sum);
    cuda_order_free(c, &o);
    return s;
}

CUDA_KERNEL(index_put, true)
{
    cuda_tensor x = cuda_look(a->x), index = cuda_look(a->index);
    bool mask = index.dtype == PROA_BOOL;
    int64_t depth = mask ? index.ndim : index.dim(-1);
    put_rows r = {NULL, 0, 1, 1};
    index_walk w = {};
    for (int i = 0; i < x.ndim; i++) *(i < depth ? &r.total : &r.inner) *= x.shape[i];
    proa_status s = index_start(c, a->out, a->x);
    if (s == PROA_OK)
        s = mask ? put_rows_of_mask(c, a->index, &r) : put_rows_of_points(c, a->index, a->x, &r);
    if (s == PROA_OK) s = put_walk(a, r.count, &w);
    if (s == PROA_OK && w.count && x.numel) s = a->accumulate ? put_sums(c, a, r, w) : put_last(c, a, r, w);
    if (r.rows) cuda_scratch_free(c, r.rows);
    return s;
}
