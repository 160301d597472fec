/* GPU kernels of fill_diagonal, trace, tile_grad and as_strided_grad, which need more than the strided copies
 * that serve most shape ops (pad3d is in pad.cu). */
#include "ops/index/cuda/index.h"

/* ---- diagonals --------------------------------------------------------------------------- */

struct diagonal_fill {
    int64_t count, step, columns, offset, numel;
    bool matrix; /* two dims: the offset must stay in the row */
};
template <class T> __global__ void fill_diagonal_kernel(diagonal_fill d, T *out, T value)
{
    for (CUDA_EACH(k, d.count)) {
        int64_t i = k * d.step, at = d.matrix ? i + d.offset : i,
                to = d.matrix ? i % d.columns + d.offset : 0;
        if (to >= 0 && to < d.columns && at >= 0 && at < d.numel) out[at] = value;
    }
}

CUDA_KERNEL(fill_diagonal, true)
{
    cuda_tensor x = cuda_look(a->x), out = cuda_look(a->out);
    proa_scalar number = {PROA_SCALAR_FLOAT, 0, a->value};
    char one[16];
    cuda_scalar_to(&number, x.dtype, one);
    PROA_TRY(index_start(c, a->out, a->x));
    if (x.numel == 0) return PROA_OK;
    diagonal_fill d = {0, 1, x.dim(-1), a->offset, x.numel, x.ndim == 2};
    int64_t stride = 1, end = x.numel;
    for (int i = x.ndim - 1; i > 0; i--) d.step += stride *= x.shape[i];
    if (d.matrix && !a->wrap && end > d.columns * d.columns) end = d.columns * d.columns;
    d.count = (end + d.step - 1) / d.step;
    CUDA_SWITCH_UNIT(cuda_item(x.dtype), T, T value; memcpy(&value, one, sizeof value);
                     return cuda_launch(c, cuda_blocks(d.count), CUDA_BLOCK, fill_diagonal_kernel<T>, d,
                                        out.as<T>(), value);)
}

struct trace_plan {
    const char *x;
    char *out;
    proa_dtype dtype;
    int64_t item, length, step, outputs; /* step along the diagonal, elements */
    int ndim;
    int64_t shape[PROA_MAX_DIMS], stride[PROA_MAX_DIMS];
};
template <class A> __global__ void trace_kernel(trace_plan p)
{
    for (int64_t o = blockIdx.x; o < p.outputs; o += gridDim.x) {
        const char *from = p.x + cuda_offset(p.ndim, p.shape, p.stride, o) * p.item;
        A sum = {};
        for (int64_t k = threadIdx.x; k < p.length; k += CUDA_BLOCK)
            sum = sum + cuda_load<A>(from + k * p.step * p.item, p.dtype);
        sum = cuda_block_reduce<cuda_sum>(sum);
        if (threadIdx.x == 0) cuda_store<A>(p.out + o * p.item, p.dtype, sum);
    }
}

CUDA_KERNEL(trace, true)
{
    cuda_tensor x = cuda_look(a->x), out = cuda_look(a->out);
    int p1 = (int)(a->axis1 < 0 ? a->axis1 + x.ndim : a->axis1),
        p2 = (int)(a->axis2 < 0 ? a->axis2 + x.ndim : a->axis2);
    trace_plan p = {x.data, out.data, x.dtype, cuda_item(x.dtype), 0, 0, out.numel};
    int64_t steps[PROA_MAX_DIMS], step = 1;
    for (int i = x.ndim - 1; i >= 0; step *= x.shape[i--]) steps[i] = step;
    for (int i = 0; i < x.ndim; i++)
        if (i != p1 && i != p2) p.shape[p.ndim] = x.shape[i], p.stride[p.ndim++] = steps[i];
    int64_t from1 = a->offset < 0 ? -a->offset : 0, from2 = a->offset > 0 ? a->offset : 0;
    int64_t rows = x.shape[p1] - from1, columns = x.shape[p2] - from2;
    p.length = rows < columns ? rows : columns;
    p.step = steps[p1] + steps[p2];
    if (p.length > 0) p.x += (from1 * steps[p1] + from2 * steps[p2]) * p.item;
    if (p.outputs == 0) return PROA_OK;
    CUDA_SWITCH_SUM(x.dtype, A,
                    return cuda_launch(c, cuda_blocks(p.outputs, 1), CUDA_BLOCK, trace_kernel<A>, p););
}

/* ---- tile, backwards --------------------------------------------------------------------- */

struct tile_back {
    const char *d_out;
    char *d_x;
    proa_dtype dtype;
    int64_t item, numel, copies;
    int ndim;
    int64_t size[PROA_MAX_DIMS], times[PROA_MAX_DIMS], stride[PROA_MAX_DIMS], tile[PROA_MAX_DIMS];
};
template <class A> __global__ void tile_grad_kernel(tile_back t)
{
    for (CUDA_EACH(i, t.numel)) {
        int64_t first = cuda_offset(t.ndim, t.size, t.stride, i);
        A sum = {};
        for (int64_t k = 0; k < t.copies; k++)
            sum = sum +
                  cuda_load<A>(t.d_out + (first + cuda_offset(t.ndim, t.times, t.tile, k)) * t.item, t.dtype);
        cuda_store<A>(t.d_x + i * t.item, t.dtype, sum);
    }
}

CUDA_KERNEL(tile_grad, true)
{
    cuda_tensor d_x = cuda_look(a->d_x), d_out = cuda_look(a->d_out);
    tile_back t = {d_out.data, d_x.data, d_x.dtype, cuda_item(d_x.dtype), d_x.numel, 1, d_out.ndim};
    int64_t step = 1;
    if (d_x.numel == 0) return PROA_OK;
    for (int i = t.ndim - 1, lead = t.ndim - d_x.ndim; i >= 0; step *= d_out.shape[i--]) {
        t.size[i] = i < lead ? 1 : d_x.shape[i - lead];
        t.times[i] = d_out.shape[i] / t.size[i];
        t.stride[i] = step;
        t.tile[i] = step * t.size[i];
        t.copies *= t.times[i];
    }
    CUDA_SWITCH_SUM(d_x.dtype, A,
                    return cuda_launch(c, cuda_blocks(d_x.numel), CUDA_BLOCK, tile_grad_kernel<A>, t););
}

/* ---- as_strided, backwards ---------------------------------------------------------------- */

struct strided_places {
    int ndim;
    int64_t offset, shape[PROA_MAX_DIMS], stride[PROA_MAX_DIMS];
};
__global__ void strided_keys_kernel(cuda_order o, strided_places p)
{
    for (CUDA_EACH(i, o.length))
        o.put_key(i, (uint64_t)(p.offset + cuda_offset(p.ndim, p.shape, p.stride, i)));
}

CUDA_KERNEL(as_strided_grad, true)
{
    cuda_tensor d_out = cuda_look(a->d_out), d_x = cuda_look(a->d_x);
    strided_places p = {d_out.ndim, a->offset};
    cuda_order o;
    PROA_TRY(index_clear(c, a->d_x));
    if (d_out.numel == 0) return PROA_OK;
    for (int i = 0; i < d_out.ndim; i++)
        p.shape[i] = d_out.shape[i], p.stride[i] = d_out.shape[i] == 1 ? 0 : a->stride.at[i];
    proa_status s = index_order(c, &o, d_out.numel, d_x.numel);
    if (s == PROA_OK) s = cuda_launch(c, cuda_blocks(d_out.numel), CUDA_BLOCK, strided_keys_kernel, o, p);
    index_sum sum = {d_out.data, d_x.data, d_out.dtype, d_x.dtype, 1, 1, d_x.numel, true, NULL};
    if (s == PROA_OK) s = index_sum_rows(c, &o, &sum);
    cuda_order_free(c, &o);
    return s;
}
