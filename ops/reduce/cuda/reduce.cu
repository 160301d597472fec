/* Reductions on a GPU: sum, prod, mean, max, min, any, all, p_norm, logsumexp, variance. Floating sums are in
 * double (logsumexp of float32 and narrower types in float), integer ones in int64. */
#include "ops/reduce/cuda/reduce.h"

template <class T> struct reduce_plain {
    typedef T A, L;
    int64_t item;
    T first;
    CUDA_BOTH_MEMBER T start() const { return first; }
    CUDA_BOTH_MEMBER T term(T x) const { return x; }
    CUDA_BOTH_MEMBER T end(T v, int64_t) const { return v; }
};
struct reduce_mean {
    typedef double A, L;
    int64_t item;
    CUDA_BOTH_MEMBER double start() const { return 0; }
    CUDA_BOTH_MEMBER double term(double x) const { return x; }
    CUDA_BOTH_MEMBER double end(double v, int64_t n) const { return v / (double)n; }
};
struct reduce_complex_mean {
    typedef cuda_c_C128 A, L;
    int64_t item;
    CUDA_BOTH_MEMBER A start() const { return {0, 0}; }
    CUDA_BOTH_MEMBER A term(A x) const { return x; }
    CUDA_BOTH_MEMBER A end(A v, int64_t n) const { return {v.re / (double)n, v.im / (double)n}; }
};
/* Real parts: terms become the result's dtype before they are folded. */
struct reduce_real {
    typedef double A;
    typedef cuda_c_C128 L;
    int64_t item;
    double first;
    CUDA_BOTH_MEMBER A start() const { return first; }
    CUDA_BOTH_MEMBER A term(L x) const { return x.re; }
    CUDA_BOTH_MEMBER L end(A v, int64_t) const { return {v, 0}; }
};
/* any and all: maximum and minimum of 0 and 1. */
template <class T> struct reduce_truth {
    typedef T A, L;
    int64_t item;
    T first;
    CUDA_BOTH_MEMBER T start() const { return first; }
    CUDA_BOTH_MEMBER T term(T x) const { return x != 0; }
    CUDA_BOTH_MEMBER T end(T v, int64_t) const { return v; }
};

struct reduce_complex_truth {
    typedef double A;
    typedef cuda_c_C128 L;
    int64_t item;
    double first;
    CUDA_BOTH_MEMBER A start() const { return first; }
    CUDA_BOTH_MEMBER A term(L x) const { return x.re != 0 || x.im != 0; }
    CUDA_BOTH_MEMBER L end(A v, int64_t) const { return {v, 0}; }
};

static reduce_plan make_plan(const proa_tensor *out, const proa_tensor *x, const proa_ints *axis)
{
    cuda_tensor t = cuda_look(x);
    int64_t axes[PROA_MAX_DIMS];
    int n = cuda_ints(axis, PROA_MAX_DIMS, axes);
    unsigned mask = n ? 0 : ~0u;
    for (int i = 0; i < n; i++) mask |= 1u << (axes[i] < 0 ? axes[i] + (t.ndim ? t.ndim : 1) : axes[i]);
    return reduce_plan_of(out, x, mask);
}

template <class Op> static proa_status add_up(cuda_context *c, const reduce_plan &p, int first)
{
    if (p.in > PROA_F64 && p.to <= PROA_F64) return reduce<Op>(c, p, reduce_real{0, (double)first});
    if (p.in > PROA_F64 || p.to > PROA_F64)
        return reduce<Op>(c, p, reduce_plain<cuda_c_C128>{0, {(double)first, 0}});
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

CUDA_KERNEL(sum, true) { return add_up<cuda_sum>(c, make_plan(a->out, a->x, &a->axis), 0); }
CUDA_KERNEL(prod, true) { return add_up<cuda_prod>(c, make_plan(a->out, a->x, &a->axis), 1); }
CUDA_KERNEL(max, CAN_REDUCE) { return extreme<cuda_max>(c, make_plan(a->out, a->x, &a->axis), true); }
CUDA_KERNEL(min, CAN_REDUCE) { return extreme<cuda_min>(c, make_plan(a->out, a->x, &a->axis), false); }
CUDA_KERNEL(amax, CAN_REDUCE) { return extreme<cuda_max>(c, make_plan(a->out, a->x, &a->axis), true); }
CUDA_KERNEL(amin, CAN_REDUCE) { return extreme<cuda_min>(c, make_plan(a->out, a->x, &a->axis), false); }
CUDA_KERNEL(mean, true)
{
    if (CUDA_IS(a->x, CUDA_BIT(C64) | CUDA_BIT(C128)))
        return reduce<cuda_sum>(c, make_plan(a->out, a->x, &a->axis), reduce_complex_mean{0});
    return reduce<cuda_sum>(c, make_plan(a->out, a->x, &a->axis), reduce_mean{0});
}
template <class Op> static proa_status truth(cuda_context *c, const reduce_plan &p, int first)
{
    if (p.in > PROA_F64) return reduce<Op>(c, p, reduce_complex_truth{0, (double)first});
    if (p.in <= PROA_I64) return reduce<Op>(c, p, reduce_truth<int64_t>{0, first});
    return reduce<Op>(c, p, reduce_truth<double>{0, (double)first});
}
CUDA_KERNEL(any, true) { return truth<cuda_max>(c, make_plan(a->out, a->x, &a->axis), 0); }
CUDA_KERNEL(all, true) { return truth<cuda_min>(c, make_plan(a->out, a->x, &a->axis), 1); }

/* ---- norms and log Σ e^x ----------------------------------------------------------------- */

/* Σ |x|^p, and its root. */
struct reduce_power {
    typedef double A, L;
    int64_t item;
    double p;
    CUDA_BOTH_MEMBER double start() const { return 0; }
    CUDA_BOTH_MEMBER double term(double x) const
    {
        return p == 2 ? x * x : p == 1 ? fabs(x) : p == 0 ? (double)(x != 0) : pow(fabs(x), p);
    }
    CUDA_BOTH_MEMBER double end(double v, int64_t) const
    {
        return p == 2 ? sqrt(v) : p == 1 || p == 0 ? v : pow(v, 1 / p);
    }
};
template <class T> struct reduce_size {
    typedef T A, L;
    int64_t item;
    T first;
    CUDA_BOTH_MEMBER T start() const { return first; }
    CUDA_BOTH_MEMBER T term(T x) const { return x < 0 ? -x : x; }
    CUDA_BOTH_MEMBER T end(T v, int64_t) const { return v; }
};

template <class T> static proa_status extreme_size(cuda_context *c, const reduce_plan &p, bool largest)
{
    if (largest) return reduce<cuda_max>(c, p, reduce_size<T>{0, (T)-INFINITY});
    return reduce<cuda_min>(c, p, reduce_size<T>{0, (T)INFINITY});
}

CUDA_KERNEL(p_norm, CUDA_IS(a->x, CUDA_FLOATS))
{
    cuda_tensor x = cuda_look(a->x);
    unsigned all = (1u << x.ndim) - 1, one = x.ndim ? 1u << (a->axis < 0 ? a->axis + x.ndim : a->axis) : 0;
    reduce_plan p = reduce_plan_of(a->out, a->x, a->asvector ? all : one);
    if (!isinf(a->porder)) return reduce<cuda_sum>(c, p, reduce_power{0, a->porder});
    if (x.dtype == PROA_F64) return extreme_size<double>(c, p, a->porder > 0);
    return extreme_size<float>(c, p, a->porder > 0);
}

/* Maximum so far, and Σ e^(x − maximum) if that is finite. */
template <class T> struct reduce_peak {
    T top, sum;
};
template <class T> CUDA_FN reduce_peak<T> cuda_shuffle_xor(reduce_peak<T> v, int by)
{
    return {__shfl_xor_sync(~0u, v.top, by), __shfl_xor_sync(~0u, v.sum, by)};
}
struct reduce_join_peaks {
    template <class T> static __device__ __forceinline__ T shift(T top) { return isinf(top) ? (T)0 : top; }
    template <class T> static __device__ __forceinline__ T at(reduce_peak<T> v, T to)
    {
        return v.top == (T)-INFINITY ? (T)0 : v.sum * exp(shift(v.top) - to);
    }
    template <class T>
    static __device__ __forceinline__ reduce_peak<T> join(reduce_peak<T> a, reduce_peak<T> b)
    {
        T top = cuda_max::join(a.top, b.top), to = shift(top);
        return {top, at(a, to) + at(b, to)};
    }
};
template <class T> struct reduce_log_sum_exp {
    typedef reduce_peak<T> A;
    typedef T L;
    int64_t item;
    __device__ __forceinline__ A start() const { return {(T)-INFINITY, 0}; }
    __device__ __forceinline__ A term(T x) const { return {x, exp(x - reduce_join_peaks::shift(x))}; }
    __device__ __forceinline__ T end(A v, int64_t) const
    {
        return log(v.sum) + reduce_join_peaks::shift(v.top);
    }
};

CUDA_KERNEL(logsumexp, CUDA_IS(a->x, CUDA_FLOATS))
{
    reduce_plan p = make_plan(a->out, a->x, &a->axis);
    if (p.in == PROA_F64) return reduce<reduce_join_peaks>(c, p, reduce_log_sum_exp<double>{0});
    return reduce<reduce_join_peaks>(c, p, reduce_log_sum_exp<float>{0});
}

/* ---- variance ------------------------------------------------------------------------------ */

/* Number of terms, their mean, and the sum of their squared distances from it. */
struct reduce_moments {
    double n, mean, squares;
};
CUDA_FN reduce_moments cuda_shuffle_xor(reduce_moments v, int by)
{
    return {__shfl_xor_sync(~0u, v.n, by), __shfl_xor_sync(~0u, v.mean, by),
            __shfl_xor_sync(~0u, v.squares, by)};
}
/* Two sets' moments together: Chan, Golub and LeVeque, 1979. */
struct reduce_join_moments {
    static __device__ __forceinline__ reduce_moments join(reduce_moments a, reduce_moments b)
    {
        double n = a.n + b.n, apart = b.mean - a.mean;
        if (n == 0) return a;
        return {n, a.mean + apart * (b.n / n), a.squares + b.squares + apart * apart * (a.n * b.n / n)};
    }
};
struct reduce_variance {
    typedef reduce_moments A;
    typedef double L;
    int64_t item, less;
    __device__ __forceinline__ A start() const { return {0, 0, 0}; }
    __device__ __forceinline__ A term(double x) const { return {1, x, 0}; }
    __device__ __forceinline__ double end(A v, int64_t n) const
    {
        return v.squares / (double)(n > less ? n - less : less);
    }
};

CUDA_KERNEL(variance, CUDA_IS(a->x, CUDA_FLOATS))
{
    reduce_plan p = make_plan(a->out, a->x, &a->axis);
    return reduce<reduce_join_moments>(c, p, reduce_variance{0, a->unbiased ? 1 : 0});
}
