/* Reductions over any axes: a block an output where there are many terms, a thread an output where there
 * are few. Floating sums run in double, integer ones in int64, in an order that depends on the shape
 * alone. */
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

/* F: A, what it folds in; start(); term(x); Op::join; end(sum, terms). */
template <class F, class Op> __global__ void reduce_blocks_kernel(reduce_plan p, F f)
{
    typedef typename F::A A;
    for (int64_t o = blockIdx.x; o < p.outputs; o += gridDim.x) {
        const char *x = p.x + reduce_offset(p.kept, p.kept_shape, p.kept_stride, o);
        A v = f.start();
        for (int64_t i = threadIdx.x; i < p.terms; i += CUDA_BLOCK)
            v = Op::join(v, f.term(cuda_load<A>(x + reduce_offset(p.reduced, p.shape, p.stride, i), p.in)));
        v = cuda_block_reduce<Op>(v);
        if (threadIdx.x == 0) cuda_store<A>(p.out + o * f.item, p.to, f.end(v, p.terms));
    }
}

template <class F, class Op> __global__ void reduce_threads_kernel(reduce_plan p, F f)
{
    typedef typename F::A A;
    for (CUDA_EACH(o, p.outputs)) {
        const char *x = p.x + reduce_offset(p.kept, p.kept_shape, p.kept_stride, o);
        A v = f.start();
        for (int64_t i = 0; i < p.terms; i++)
            v = Op::join(v, f.term(cuda_load<A>(x + reduce_offset(p.reduced, p.shape, p.stride, i), p.in)));
        cuda_store<A>(p.out + o * f.item, p.to, f.end(v, p.terms));
    }
}

template <class T> struct reduce_plain {
    typedef T A;
    int64_t item;
    T first;
    CUDA_BOTH_MEMBER T start() const { return first; }
    CUDA_BOTH_MEMBER T term(T x) const { return x; }
    CUDA_BOTH_MEMBER T end(T v, int64_t) const { return v; }
};
struct reduce_mean {
    typedef double A;
    int64_t item;
    CUDA_BOTH_MEMBER double start() const { return 0; }
    CUDA_BOTH_MEMBER double term(double x) const { return x; }
    CUDA_BOTH_MEMBER double end(double v, int64_t n) const { return v / (double)n; }
};
/* any and all, as largest and smallest of 0 and 1. */
template <class T> struct reduce_truth {
    typedef T A;
    int64_t item;
    T first;
    CUDA_BOTH_MEMBER T start() const { return first; }
    CUDA_BOTH_MEMBER T term(T x) const { return x != 0; }
    CUDA_BOTH_MEMBER T end(T v, int64_t) const { return v; }
};

static reduce_plan make_plan(const proa_tensor *out, const proa_tensor *x, const proa_ints *axis)
{
    cuda_tensor t = cuda_look(x), to = cuda_look(out);
    int64_t axes[PROA_MAX_DIMS];
    int n = cuda_ints(axis, PROA_MAX_DIMS, axes);
    unsigned mask = n ? 0 : ~0u;
    for (int i = 0; i < n; i++) mask |= 1u << (axes[i] < 0 ? axes[i] + (t.ndim ? t.ndim : 1) : axes[i]);
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

template <class Op> static proa_status add_up(cuda_context *c, const reduce_plan &p, int first)
{
    if (p.in <= PROA_I64 && p.to <= PROA_I64) return reduce<Op>(c, p, reduce_plain<int64_t>{0, first});
    return reduce<Op>(c, p, reduce_plain<double>{0, (double)first});
}

template <class Op> static proa_status extreme(cuda_context *c, const reduce_plan &p, bool largest)
{
    if (p.in <= PROA_I64) return reduce<Op>(c, p, reduce_plain<int64_t>{0, largest ? INT64_MIN : INT64_MAX});
    if (p.in == PROA_F64) return reduce<Op>(c, p, reduce_plain<double>{0, largest ? -INFINITY : INFINITY});
    return reduce<Op>(c, p, reduce_plain<float>{0, largest ? -INFINITY : INFINITY});
}

#define CAN_REDUCE CUDA_IS(a->x, CUDA_REALS) && CUDA_IS(a->out, CUDA_REALS)

CUDA_KERNEL(sum, CAN_REDUCE) { return add_up<cuda_sum>(c, make_plan(a->out, a->x, &a->axis), 0); }
CUDA_KERNEL(prod, CAN_REDUCE) { return add_up<cuda_prod>(c, make_plan(a->out, a->x, &a->axis), 1); }
CUDA_KERNEL(max, CAN_REDUCE) { return extreme<cuda_max>(c, make_plan(a->out, a->x, &a->axis), true); }
CUDA_KERNEL(min, CAN_REDUCE) { return extreme<cuda_min>(c, make_plan(a->out, a->x, &a->axis), false); }
CUDA_KERNEL(amax, CAN_REDUCE) { return extreme<cuda_max>(c, make_plan(a->out, a->x, &a->axis), true); }
CUDA_KERNEL(amin, CAN_REDUCE) { return extreme<cuda_min>(c, make_plan(a->out, a->x, &a->axis), false); }
CUDA_KERNEL(mean, CAN_REDUCE)
{
    return reduce<cuda_sum>(c, make_plan(a->out, a->x, &a->axis), reduce_mean{0});
}
template <class Op> static proa_status truth(cuda_context *c, const reduce_plan &p, int first)
{
    if (p.in <= PROA_I64) return reduce<Op>(c, p, reduce_truth<int64_t>{0, first});
    return reduce<Op>(c, p, reduce_truth<double>{0, (double)first});
}
CUDA_KERNEL(any, CAN_REDUCE) { return truth<cuda_max>(c, make_plan(a->out, a->x, &a->axis), 0); }
CUDA_KERNEL(all, CAN_REDUCE) { return truth<cuda_min>(c, make_plan(a->out, a->x, &a->axis), 1); }
