/* Reductions over any axes for CUDA kernels. Few terms: one thread per output. Many terms: one warp or block
 * per output, or, where neighboring outputs are contiguous, one block for REDUCE_COLUMNS of them. Too few
 * blocks to fill a GPU: the terms are cut into slices, which a second launch combines. The order depends on
 * shape, strides, dtype and alignment alone. */
#ifndef PROA_OPS_REDUCE_CUDA_REDUCE_H
#define PROA_OPS_REDUCE_CUDA_REDUCE_H

#include "devices/cuda/kernel.h"

/* Outputs by kept dims, terms by reduced ones; strides in bytes. */
struct reduce_plan {
    int kept, reduced;
    int64_t outputs, terms, kept_shape[PROA_MAX_DIMS], kept_stride[PROA_MAX_DIMS], shape[PROA_MAX_DIMS],
        stride[PROA_MAX_DIMS];
    const char *x;
    char *out;
    proa_dtype in, to;
};

CUDA_FN int64_t reduce_offset(int n, const int64_t *shape, const int64_t *stride, int64_t at)
{
    int64_t offset = 0;
    for (int i = n - 1; i > 0; i--) offset += cuda_split(at, shape[i]) * stride[i];
    return n ? offset + at * stride[0] : 0;
}

/* Partition of an output's terms: `count` slices of `each` terms. */
struct reduce_slices {
    int64_t count, each;
};

/* F: L, what it reads and writes; A, what it folds in; start(); term(L); Op::join; end(A, terms). */
template <class F>
CUDA_FN void reduce_put(const reduce_plan &p, const F &f, const reduce_slices &s, typename F::A *parts,
                        int64_t item, typename F::A v)
{
    typedef typename F::L L;
    if (s.count == 1) cuda_store<L>(p.out + item * f.item, p.to, f.end(v, p.terms));
    else parts[item] = v;
}

template <class F, class Op>
__global__ void reduce_blocks_kernel(reduce_plan p, F f, reduce_slices s, typename F::A *parts)
{
    typedef typename F::A A;
    typedef typename F::L L;
    for (int64_t item = blockIdx.x; item < p.outputs * s.count; item += gridDim.x) {
        int64_t o = item / s.count, begin = item % s.count * s.each, end = begin + s.each;
        const char *x = p.x + reduce_offset(p.kept, p.kept_shape, p.kept_stride, o);
        A v = f.start();
        for (int64_t i = begin + threadIdx.x; i < end && i < p.terms; i += CUDA_BLOCK)
            v = Op::join(v, f.term(cuda_load<L>(x + reduce_offset(p.reduced, p.shape, p.stride, i), p.in)));
        v = cuda_block_reduce<Op>(v);
        if (threadIdx.x == 0) reduce_put(p, f, s, parts, item, v);
    }
}

/* Terms are contiguous, of type X, taken V at a time by groups of G threads. */
template <class X, int G, int V, class F, class Op>
__global__ void reduce_rows_kernel(reduce_plan p, F f, reduce_slices s, typename F::A *parts)
{
    typedef typename F::A A;
    for (CUDA_ROWS(G, item, p.outputs * s.count)) {
        int64_t o = item / s.count, begin = item % s.count * s.each, end = begin + s.each;
        const X *x = (const X *)(const void *)(p.x + reduce_offset(p.kept, p.kept_shape, p.kept_stride, o));
        A v = f.start();
        for (int64_t i = begin + threadIdx.x % G * V; i < end && i < p.terms; i += G * V) {
            typename F::L some[V];
            cuda_take<V>(x + i, some);
            for (int k = 0; k < V; k++) v = Op::join(v, f.term(some[k]));
        }
        v = cuda_group_reduce<G, Op>(v);
        if (threadIdx.x % G == 0) reduce_put(p, f, s, parts, item, v);
    }
}

/* For neighboring outputs with adjacent terms: a warp reads one term of REDUCE_COLUMNS outputs at once. */
enum { REDUCE_COLUMNS = 32, REDUCE_LINES = CUDA_BLOCK / REDUCE_COLUMNS };
template <class F, class Op>
__global__ void reduce_columns_kernel(reduce_plan p, F f, reduce_slices s, typename F::A *parts)
{
    typedef typename F::A A;
    typedef typename F::L L;
    __shared__ char memory[CUDA_BLOCK * sizeof(A)] __attribute__((aligned(16)));
    A *part = (A *)(void *)memory;
    int column = (int)threadIdx.x % REDUCE_COLUMNS, line = (int)threadIdx.x / REDUCE_COLUMNS;
    int64_t units = (p.outputs + REDUCE_COLUMNS - 1) / REDUCE_COLUMNS;
    for (int64_t item = blockIdx.x; item < units * s.count; item += gridDim.x) {
        int64_t slice = item % s.count, o = item / s.count * REDUCE_COLUMNS + column;
        int64_t begin = slice * s.each, end = o < p.outputs ? begin + s.each : 0;
        const char *x = p.x + reduce_offset(p.kept, p.kept_shape, p.kept_stride, o);
        A v = f.start();
        for (int64_t i = begin + line; i < end && i < p.terms; i += REDUCE_LINES)
            v = Op::join(v, f.term(cuda_load<L>(x + reduce_offset(p.reduced, p.shape, p.stride, i), p.in)));
        __syncthreads(); /* a thread may still read the previous item's result */
        part[threadIdx.x] = v;
        __syncthreads();
        if (line > 0 || o >= p.outputs) continue;
        for (int l = 1; l < REDUCE_LINES; l++) v = Op::join(v, part[l * REDUCE_COLUMNS + column]);
        reduce_put(p, f, s, parts, o * s.count + slice, v);
    }
}

/* Combines the slices of an output. */
template <class F, class Op>
__global__ void reduce_end_kernel(reduce_plan p, F f, reduce_slices s, const typename F::A *parts)
{
    for (CUDA_ROWS(32, o, p.outputs)) {
        typename F::A v = f.start();
        for (int64_t i = threadIdx.x % 32; i < s.count; i += 32) v = Op::join(v, parts[o * s.count + i]);
        v = cuda_warp_reduce<Op>(v);
        if (threadIdx.x % 32 == 0) reduce_put(p, f, reduce_slices{1, 0}, (typename F::A *)NULL, o, v);
    }
}

template <class F, class Op> __global__ void reduce_threads_kernel(reduce_plan p, F f)
{
    typedef typename F::A A;
    typedef typename F::L L;
    for (CUDA_EACH(o, p.outputs)) {
        const char *x = p.x + reduce_offset(p.kept, p.kept_shape, p.kept_stride, o);
        A v = f.start();
        for (int64_t i = 0; i < p.terms; i++)
            v = Op::join(v, f.term(cuda_load<L>(x + reduce_offset(p.reduced, p.shape, p.stride, i), p.in)));
        cuda_store<L>(p.out + o * f.item, p.to, f.end(v, p.terms));
    }
}

/* Merges adjacent dims that can be iterated as one; returns the new number of dims. */
static inline int reduce_merge(int n, int64_t *shape, int64_t *stride)
{
    int kept = 0;
    for (int d = 0; d < n; d++) {
        if (shape[d] == 1) continue;
        bool joins = kept > 0 && stride[kept - 1] == stride[d] * shape[d];
        if (joins) shape[kept - 1] *= shape[d];
        else shape[kept++] = shape[d];
        stride[kept - 1] = stride[d];
    }
    return kept;
}

/* Fills the plan of a reduction of x to out; bit i of mask: axis i of x is reduced. */
static inline reduce_plan reduce_plan_of(const proa_tensor *out, const proa_tensor *x, unsigned mask)
{
    cuda_tensor t = cuda_look(x), to = cuda_look(out);
    reduce_plan p = {};
    p.outputs = p.terms = 1;
    for (int d = 0; d < t.ndim; d++) {
        if (mask >> d & 1) {
            p.shape[p.reduced] = t.shape[d];
            p.stride[p.reduced++] = t.strides[d];
            p.terms *= t.shape[d];
        } else {
            p.kept_shape[p.kept] = t.shape[d];
            p.kept_stride[p.kept++] = t.strides[d];
            p.outputs *= t.shape[d];
        }
    }
    p.kept = reduce_merge(p.kept, p.kept_shape, p.kept_stride);
    p.reduced = reduce_merge(p.reduced, p.shape, p.stride);
    p.x = t.data;
    p.out = to.data;
    p.in = t.dtype;
    p.to = to.dtype;
    return p;
}

enum { REDUCE_FEW = 64, REDUCE_BLOCKS = 2048, REDUCE_EACH = 8192 };

/* Chooses slices and calls launch(slices, parts), then folds the slices' results. units: blocks that a launch
 * without slices has. A slice has a multiple of REDUCE_EACH / lines terms. */
template <class Op, class F, class Launch>
static proa_status reduce_sliced(cuda_context *c, const reduce_plan &p, F f, int64_t units, int64_t lines,
                                 Launch launch)
{
    int64_t each = REDUCE_EACH / lines, most = (p.terms + each - 1) / each;
    int64_t count = REDUCE_BLOCKS / units < most ? REDUCE_BLOCKS / units : most;
    if (count <= 1) return launch(reduce_slices{1, p.terms}, (typename F::A *)NULL);
    each *= (most + count - 1) / count;
    reduce_slices s = {(p.terms + each - 1) / each, each};
    typename F::A *parts = (typename F::A *)cuda_scratch(c, (size_t)(p.outputs * s.count) * sizeof *parts);
    if (!parts) return cuda_host->error();
    proa_status status = launch(s, parts);
    if (status == PROA_OK)
        status = cuda_launch(c, CUDA_ROW_BLOCKS(32, p.outputs), CUDA_BLOCK, (reduce_end_kernel<F, Op>), p, f,
                             s, parts);
    cuda_scratch_free(c, parts);
    return status;
}

/* True if the terms of all outputs are contiguous and aligned, so that they may be read as packs of type
 * X. */
template <class X> static bool reduce_packs(const reduce_plan &p)
{
    bool packs = p.terms % (int64_t)(16 / sizeof(X)) == 0 && (uintptr_t)p.x % 16 == 0;
    for (int d = 0; d < p.kept; d++) packs = packs && p.kept_stride[d] % 16 == 0;
    return packs;
}
template <class X, class Op, class F>
static proa_status reduce_rows(cuda_context *c, const reduce_plan &p, F f)
{
    enum { V = 16 / sizeof(X) };
    if (p.terms <= 1024)
        return cuda_launch(c, CUDA_ROW_BLOCKS(32, p.outputs), CUDA_BLOCK,
                           (reduce_rows_kernel<X, 32, V, F, Op>), p, f, reduce_slices{1, p.terms},
                           (typename F::A *)NULL);
    return reduce_sliced<Op>(c, p, f, p.outputs, 1, [&](reduce_slices s, typename F::A *parts) {
        return cuda_launch(c, cuda_blocks(p.outputs * s.count, 1), CUDA_BLOCK,
                           (reduce_rows_kernel<X, CUDA_BLOCK, V, F, Op>), p, f, s, parts);
    });
}

template <class Op, class F> static proa_status reduce(cuda_context *c, const reduce_plan &p, F f)
{
    int64_t item = cuda_item(p.in), units = (p.outputs + REDUCE_COLUMNS - 1) / REDUCE_COLUMNS;
    constexpr int read = cuda_dtype_of<typename F::L>::value;
    f.item = cuda_item(p.to);
    if (p.outputs == 0) return PROA_OK;
    if (p.terms < REDUCE_FEW)
        return cuda_launch(c, cuda_blocks(p.outputs), CUDA_BLOCK, (reduce_threads_kernel<F, Op>), p, f);
    if (p.outputs >= REDUCE_COLUMNS && p.kept_stride[p.kept - 1] == item)
        return reduce_sliced<Op>(c, p, f, units, REDUCE_COLUMNS, [&](reduce_slices s, typename F::A *parts) {
            return cuda_launch(c, cuda_blocks(units * s.count, 1), CUDA_BLOCK, (reduce_columns_kernel<F, Op>),
                               p, f, s, parts);
        });
    if constexpr (read == PROA_F32 || read == PROA_F64)
        if (p.reduced == 1 && p.stride[0] == item) {
            if (p.in == PROA_F16 && reduce_packs<cuda_f16>(p)) return reduce_rows<cuda_f16, Op>(c, p, f);
            if (p.in == PROA_BF16 && reduce_packs<cuda_bf16>(p)) return reduce_rows<cuda_bf16, Op>(c, p, f);
            if (p.in == PROA_F32 && reduce_packs<float>(p)) return reduce_rows<float, Op>(c, p, f);
        }
    return reduce_sliced<Op>(c, p, f, p.outputs, 1, [&](reduce_slices s, typename F::A *parts) {
        return cuda_launch(c, cuda_blocks(p.outputs * s.count, 1), CUDA_BLOCK, (reduce_blocks_kernel<F, Op>),
                           p, f, s, parts);
    });
}

#endif
