/* histogram and bincount on a GPU: integer counts by atomics; weighted counts by sums over elements sorted by
 * bin, so that their order is fixed. */
#include "ops/index/cuda/index.h"

#include <math.h>

/* ---- histogram --------------------------------------------------------------------------- */

enum { COUNT_BLOCKS = 256, COUNT_SHARED = 2048 };

struct count_range {
    double low, high;
};
struct count_wider {
    static CUDA_MEMBER count_range join(count_range a, count_range b)
    {
        return {a.low < b.low ? a.low : b.low, a.high > b.high ? a.high : b.high};
    }
};

/* Minimum and maximum of the elements of one block, without NaN. */
__global__ void count_range_kernel(const char *x, proa_dtype dtype, int64_t item, int64_t n,
                                   count_range *part)
{
    count_range r = {INFINITY, -INFINITY};
    for (CUDA_EACH(i, n)) {
        double v = cuda_load<double>(x + i * item, dtype);
        if (v == v) r = count_wider::join(r, {v, v});
    }
    r = cuda_block_reduce<count_wider>(r);
    if (threadIdx.x == 0) part[blockIdx.x] = r;
}

/* Copies the range to the host, which waits. low > high: there is no number. */
static proa_status range_of(cuda_context *c, const cuda_tensor &x, count_range *r)
{
    count_range part[COUNT_BLOCKS];
    unsigned blocks = cuda_blocks(x.numel);
    if (blocks > COUNT_BLOCKS) blocks = COUNT_BLOCKS;
    count_range *parts = (count_range *)cuda_scratch(c, sizeof part);
    if (!parts) return cuda_host->error();
    proa_status s = cuda_launch(c, blocks, CUDA_BLOCK, count_range_kernel, x.data, x.dtype,
                                cuda_item(x.dtype), x.numel, parts);
    if (s == PROA_OK) s = cuda_read(c, part, parts, blocks * sizeof *part);
    cuda_scratch_free(c, parts);
    *r = {INFINITY, -INFINITY};
    for (unsigned i = 0; s == PROA_OK && i < blocks; i++) {
        if (part[i].low < r->low) r->low = part[i].low;
        if (part[i].high > r->high) r->high = part[i].high;
    }
    return s;
}

struct histogram_plan {
    const char *x;
    proa_dtype dtype;
    int64_t item, n, bins, *count;
    double low, high;
    bool single; /* bin edges in float32, as Paddle's */
    CUDA_MEMBER int64_t bin(double v) const
    {
        if (!(v >= low && v <= high)) return -1;
        int64_t b = single ? (int64_t)(((float)v - (float)low) * (float)bins / (float)(high - low))
                           : (int64_t)((v - low) * (double)bins / (high - low));
        return b < bins ? b : bins - 1;
    }
};

/* Counts in shared memory if the bins fit into it. */
__global__ void histogram_kernel(histogram_plan p)
{
    __shared__ unsigned long long count[COUNT_SHARED];
    bool own = p.bins <= COUNT_SHARED;
    for (int64_t b = threadIdx.x; own && b < p.bins; b += CUDA_BLOCK) count[b] = 0;
    __syncthreads();
    for (CUDA_EACH(i, p.n)) {
        int64_t b = p.bin(cuda_load<double>(p.x + i * p.item, p.dtype));
        if (b >= 0 && own) atomicAdd(&count[b], 1ull);
        else if (b >= 0) cuda_atomic_add(&p.count[b], 1);
    }
    __syncthreads();
    for (int64_t b = threadIdx.x; own && b < p.bins; b += CUDA_BLOCK)
        if (count[b]) cuda_atomic_add(&p.count[b], (int64_t)count[b]);
}

CUDA_KERNEL(histogram, true)
{
    cuda_tensor x = cuda_look(a->input), out = cuda_look(a->out);
    count_range r = {(double)a->min, (double)a->max};
    PROA_TRY(index_clear(c, a->out));
    if (x.numel == 0) return PROA_OK;
    if (a->min == a->max) {
        PROA_TRY(range_of(c, x, &r));
        if (r.low > r.high) return PROA_OK;
    }
    if (!isfinite(r.low) || !isfinite(r.high))
        return cuda_fail(PROA_ERR_INVALID_ARGUMENT,
                         "histogram: input: reaches from %g to %g; give min and max, or finite numbers",
                         r.low, r.high);
    if (r.low == r.high) r.low -= 1, r.high += 1;
    histogram_plan p = {x.data,  x.dtype, cuda_item(x.dtype),
                        x.numel, a->bins, out.as<int64_t>(),
                        r.low,   r.high,  x.dtype >= PROA_F16 && x.dtype <= PROA_F32};
    unsigned blocks = cuda_blocks(x.numel);
    return cuda_launch(c, blocks < 1024 ? blocks : 1024, CUDA_BLOCK, histogram_kernel, p);
}

/* ---- bincount ---------------------------------------------------------------------------- */

struct bincount_plan {
    const char *x;
    proa_dtype dtype;
    int64_t item, n;
    cuda_report report;
    CUDA_MEMBER int64_t at(int64_t i) const { return cuda_load<int64_t>(x + i * item, dtype); }
};

__global__ void bincount_length_kernel(bincount_plan p, int64_t *length)
{
    int64_t most = 0;
    for (CUDA_EACH(i, p.n)) {
        int64_t v = p.at(i);
        if (v < 0 || v == INT64_MAX) cuda_raise(p.report, i, v, 0, INT64_MAX - 1);
        else if (v >= most) most = v + 1;
    }
    most = cuda_block_reduce<cuda_max>(most);
    if (threadIdx.x == 0) cuda_atomic_max(length, most);
}
__global__ void bincount_kernel(bincount_plan p, int64_t *count)
{
    for (CUDA_EACH(i, p.n)) cuda_atomic_add(&count[p.at(i)], 1);
}
__global__ void bincount_keys_kernel(bincount_plan p, cuda_order o)
{
    for (CUDA_EACH(i, p.n)) o.put_key(i, (uint64_t)p.at(i));
}

/* 1 + the largest number; waits, and reports a negative number. */
static proa_status length_of(cuda_context *c, const bincount_plan &p, int64_t *length)
{
    *length = 0;
    int64_t *there = (int64_t *)cuda_scratch(c, sizeof *there);
    if (!there) return cuda_host->error();
    proa_status s = cuda_fill(c, there, length, sizeof *length, 1);
    if (s == PROA_OK) s = cuda_launch(c, cuda_blocks(p.n), CUDA_BLOCK, bincount_length_kernel, p, there);
    if (s == PROA_OK) s = cuda_read(c, length, there, sizeof *length);
    cuda_scratch_free(c, there);
    return s;
}

CUDA_KERNEL(bincount, true)
{
    cuda_tensor x = cuda_look(a->x);
    bool weighted = cuda_given(a->weights);
    bincount_plan p = {x.data, x.dtype, cuda_item(x.dtype), x.numel, cuda_reports(c, "x")};
    int64_t length = 0;
    if (x.numel) {
        PROA_TRY(length_of(c, p, &length));
        if (length < a->minlength) length = a->minlength;
    }
    proa_dtype w = weighted ? cuda_look(a->weights).dtype : PROA_I64;
    proa_meta meta = {!weighted ? PROA_I64 : w == PROA_F32 ? PROA_F32 : PROA_F64, 1, {length}};
    proa_tensor *made = cuda_host->output_resize((void *)(uintptr_t)a, c->running, 0, &meta);
    if (!made) return cuda_host->error();
    cuda_tensor out = cuda_look(made);
    PROA_TRY(index_clear(c, made));
    if (x.numel == 0) return PROA_OK;
    if (!weighted)
        return cuda_launch(c, cuda_blocks(x.numel), CUDA_BLOCK, bincount_kernel, p, out.as<int64_t>());
    cuda_order o;
    proa_status s = index_order(c, &o, x.numel, length);
    if (s == PROA_OK) s = cuda_launch(c, cuda_blocks(x.numel), CUDA_BLOCK, bincount_keys_kernel, p, o);
    index_sum sum = {cuda_look(a->weights).data, out.data, w, out.dtype, 1, 1, length, true, NULL};
    if (s == PROA_OK) s = index_sum_rows(c, &o, &sum);
    cuda_order_free(c, &o);
    return s;
}
