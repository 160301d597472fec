/* Reductions over any axes for CUDA kernels: a block an output where there are many terms, a thread an output
 * where there are few, in an order that depends on the shape alone. */
#ifndef PROA_OPS_REDUCE_CUDA_H
#define PROA_OPS_REDUCE_CUDA_H

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
    for (int i = n - 1; i >= 0; i--) {
        offset += at % shape[i] * stride[i];
        at /= shape[i];
    }
    return offset;
}

/* F: L, what it reads and writes; A, what it folds in; start(); term(L); Op::join; end(A, terms). */
template <class F, class Op> __global__ void reduce_blocks_kernel(reduce_plan p, F f)
{
    typedef typename F::A A;
    typedef typename F::L L;
    for (int64_t o = blockIdx.x; o < p.outputs; o += gridDim.x) {
        const char *x = p.x + reduce_offset(p.kept, p.kept_shape, p.kept_stride, o);
        A v = f.start();
        for (int64_t i = threadIdx.x; i < p.terms; i += CUDA_BLOCK)
            v = Op::join(v, f.term(cuda_load<L>(x + reduce_offset(p.reduced, p.shape, p.stride, i), p.in)));
        v = cuda_block_reduce<Op>(v);
        if (threadIdx.x == 0) cuda_store<L>(p.out + o * f.item, p.to, f.end(v, p.terms));
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

/* mask: bit i set = axis i of x is reduced. */
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
    p.x = t.data;
    p.out = to.data;
    p.in = t.dtype;
    p.to = to.dtype;
    return p;
}

template <class Op, class F> static proa_status reduce(cuda_context *c, const reduce_plan &p, F f)
{
    f.item = cuda_item(p.to);
    if (p.outputs == 0) return PROA_OK;
    if (p.terms < 64)
        return cuda_launch(c, cuda_blocks(p.outputs), CUDA_BLOCK, (reduce_threads_kernel<F, Op>), p, f);
    return cuda_launch(c, cuda_blocks(p.outputs, 1), CUDA_BLOCK, (reduce_blocks_kernel<F, Op>), p, f);
}

#endif
