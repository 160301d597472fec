/* CUDA kernels of isclose, allclose, equal_all, atan2 and bitwise_not, which have no generated kernels. */
#include "ops/elementwise/cuda/elementwise.h"

/* ---- comparisons --------------------------------------------------------------------------- */

template <class X> struct close_size {
    static CUDA_MEMBER double of(X x) { return fabs((double)x); }
};
template <> struct close_size<cuda_c_C128> {
    static CUDA_MEMBER double of(cuda_c_C128 x) { return hypot(x.re, x.im); }
};
template <class X> struct close_fn {
    typedef X T;
    typedef uint8_t R;
    double relative, absolute;
    bool equal_nan;
    CUDA_MEMBER R operator()(T x, T y) const
    {
        double bound = absolute + relative * close_size<X>::of(y);
        bool near = isfinite(bound) && close_size<X>::of(x - y) <= bound; /* no number is near infinity */
        return x == y || near || (x != x && y != y && equal_nan);
    }
};
CUDA_KERNEL(isclose, true)
{
    proa_tensor *t[] = {a->out, a->x, a->y};
    if (CUDA_IS(a->x, CUDA_BIT(C64) | CUDA_BIT(C128)))
        return cuda_map_run<2>(c, t, close_fn<cuda_c_C128>{a->rtol, a->atol, a->equal_nan});
    return cuda_map_run<2>(c, t, close_fn<double>{a->rtol, a->atol, a->equal_nan});
}

/* Both broadcast with each other; *same starts as 1. */
template <class F> __global__ void all_pairs_kernel(cuda_map<2> m, F f, uint8_t *same)
{
    typedef typename F::T T;
    for (CUDA_EACH(i, m.numel)) {
        const char *x = m.at[1].data + cuda_offset(m.ndim, m.shape, m.at[1].strides, i);
        const char *y = m.at[2].data + cuda_offset(m.ndim, m.shape, m.at[2].strides, i);
        if (!f(cuda_load<T>(x, m.at[1].dtype), cuda_load<T>(y, m.at[2].dtype))) *same = 0;
    }
}
template <class F>
static proa_status all_pairs(cuda_context *c, const proa_tensor *out, const proa_tensor *x,
                             const proa_tensor *y, F f)
{
    cuda_tensor p = cuda_look(x), q = cuda_look(y), to = cuda_look(out);
    uint8_t yes = 1;
    cuda_map<2> m = {p.ndim > q.ndim ? p.ndim : q.ndim, 1};
    for (int o = 1; o <= 2; o++) m.at[o].data = (o == 1 ? p : q).data, m.at[o].dtype = (o == 1 ? p : q).dtype;
    for (int i = 1; i <= m.ndim; i++) {
        int d = m.ndim - i;
        int64_t n = i <= p.ndim ? p.dim(-i) : 1, k = i <= q.ndim ? q.dim(-i) : 1;
        m.numel *= m.shape[d] = n == 1 ? k : n;
        m.at[1].strides[d] = n == 1 ? 0 : p.strides[p.ndim - i];
        m.at[2].strides[d] = k == 1 ? 0 : q.strides[q.ndim - i];
    }
    proa_status s = cuda_fill(c, to.data, &yes, 1, 1);
    if (s != PROA_OK || m.numel == 0) return s;
    return cuda_launch(c, cuda_blocks(m.numel), CUDA_BLOCK, all_pairs_kernel<F>, m, f, to.as<uint8_t>());
}
CUDA_KERNEL(allclose, true)
{
    if (CUDA_IS(a->x, CUDA_BIT(C64) | CUDA_BIT(C128)))
        return all_pairs(c, a->out, a->x, a->y, close_fn<cuda_c_C128>{a->rtol, a->atol, a->equal_nan});
    return all_pairs(c, a->out, a->x, a->y, close_fn<double>{a->rtol, a->atol, a->equal_nan});
}

template <class X> struct equal_fn {
    typedef X T;
    CUDA_MEMBER bool operator()(T x, T y) const { return x == y; }
};
CUDA_KERNEL(equal_all, true)
{
    cuda_tensor x = cuda_look(a->x), y = cuda_look(a->y);
    uint8_t no = 0;
    bool same = x.ndim == y.ndim;
    for (int i = 0; same && i < x.ndim; i++) same = x.shape[i] == y.shape[i];
    if (!same) return cuda_fill(c, cuda_look(a->out).data, &no, 1, 1);
    if (x.dtype <= PROA_I64) return all_pairs(c, a->out, a->x, a->y, equal_fn<int64_t>{});
    if (x.dtype > PROA_F64) return all_pairs(c, a->out, a->x, a->y, equal_fn<cuda_c_C128>{});
    return all_pairs(c, a->out, a->x, a->y, equal_fn<double>{});
}

/* ---- atan2, bitwise_not ------------------------------------------------------------------ */

template <class X> struct atan2_fn {
    typedef X T;
    typedef X R;
    CUDA_MEMBER R operator()(T x, T y) const { return atan2(x, y); }
};
CUDA_KERNEL(atan2, true)
{
    proa_tensor *t[] = {a->out, a->x, a->y};
    if (cuda_look(a->out).dtype == PROA_F64) return cuda_map_run<2>(c, t, atan2_fn<double>{});
    return cuda_map_run<2>(c, t, atan2_fn<float>{});
}

struct not_fn {
    typedef int64_t T;
    typedef int64_t R;
    bool truth;
    CUDA_MEMBER R operator()(T x) const { return truth ? x == 0 : ~x; }
};
CUDA_KERNEL(bitwise_not, true)
{
    proa_tensor *t[] = {a->out, a->x};
    return cuda_map_run<1>(c, t, not_fn{cuda_look(a->x).dtype == PROA_BOOL});
}
