/* The one way to run a scalar formula over tensors on a GPU: broadcasting, strides and conversions are
 * here. A functor has T, what it computes in, R, what it gives, and operator(). */
#ifndef PROA_OPS_ELEMENTWISE_CUDA_H
#define PROA_OPS_ELEMENTWISE_CUDA_H

#include "devices/cuda/kernel.h"

#define PROA_FORMULA static __host__ __device__ __forceinline__ __attribute__((unused))
#include "ops/elementwise/formulas.h"

#define CUDA_CALL __device__ __forceinline__

enum { CUDA_MAP_VECTOR = 4 }; /* elements that a thread of the plain kernel takes at once */

struct cuda_map_operand {
    char *data;
    proa_dtype dtype;
    int64_t strides[PROA_MAX_DIMS]; /* bytes; 0 where broadcast */
};

/* Operand 0 is the output, contiguous. Dims are merged. */
template <int N> struct cuda_map {
    int ndim;
    int64_t numel, shape[PROA_MAX_DIMS];
    cuda_map_operand at[N + 1];
};

template <int N, class F, class T> struct cuda_apply;
template <class F, class T> struct cuda_apply<1, F, T> {
    static __device__ __forceinline__ typename F::R call(const F &f, const T *v) { return f(v[0]); }
};
template <class F, class T> struct cuda_apply<2, F, T> {
    static __device__ __forceinline__ typename F::R call(const F &f, const T *v) { return f(v[0], v[1]); }
};
template <class F, class T> struct cuda_apply<3, F, T> {
    static __device__ __forceinline__ typename F::R call(const F &f, const T *v)
    {
        return f(v[0], v[1], v[2]);
    }
};

/* Any strides, any dtypes. */
template <int N, class F> __global__ void map_kernel(cuda_map<N> m, F f)
{
    typedef typename F::T T;
    typedef typename F::R R;
    for (CUDA_EACH(i, m.numel)) {
        int64_t rest = i, at[N + 1] = {0};
        for (int d = m.ndim - 1; d >= 0; d--) {
            int64_t k = rest % m.shape[d];
            rest /= m.shape[d];
            for (int o = 0; o <= N; o++) at[o] += k * m.at[o].strides[d];
        }
        T v[N];
        for (int o = 0; o < N; o++) v[o] = cuda_load<T>(m.at[o + 1].data + at[o + 1], m.at[o + 1].dtype);
        cuda_store<R>(m.at[0].data + at[0], m.at[0].dtype, cuda_apply<N, F, T>::call(f, v));
    }
}

template <class T> struct alignas(sizeof(T) * CUDA_MAP_VECTOR) cuda_vector {
    T at[CUDA_MAP_VECTOR];
};

/* Everything contiguous and of the functor's own dtypes; addresses aligned to a vector. */
template <int N, class F> __global__ void map_plain_kernel(cuda_map<N> m, F f)
{
    typedef typename F::T T;
    typedef typename F::R R;
    int64_t vectors = m.numel / CUDA_MAP_VECTOR;
    for (CUDA_EACH(i, vectors)) {
        cuda_vector<T> in[N];
        cuda_vector<R> out;
        for (int o = 0; o < N; o++) in[o] = ((const cuda_vector<T> *)(const void *)m.at[o + 1].data)[i];
        for (int k = 0; k < CUDA_MAP_VECTOR; k++) {
            T v[N];
            for (int o = 0; o < N; o++) v[o] = in[o].at[k];
            out.at[k] = cuda_apply<N, F, T>::call(f, v);
        }
        ((cuda_vector<R> *)(void *)m.at[0].data)[i] = out;
    }
    int64_t tail = vectors * CUDA_MAP_VECTOR + (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (tail >= m.numel) return; /* fewer than a vector's elements are left: the first threads take them */
    T v[N];
    for (int o = 0; o < N; o++) v[o] = ((const T *)(const void *)m.at[o + 1].data)[tail];
    ((R *)(void *)m.at[0].data)[tail] = cuda_apply<N, F, T>::call(f, v);
}

/* Merges neighbouring dims that every operand walks as one. */
template <int N> static void cuda_map_merge(cuda_map<N> *m)
{
    int n = 0;
    for (int d = 0; d < m->ndim; d++) {
        if (m->shape[d] == 1) continue;
        bool joins = n > 0;
        for (int o = 0; o <= N && joins; o++)
            joins = m->at[o].strides[n - 1] == m->at[o].strides[d] * m->shape[d];
        if (!joins) {
            m->shape[n] = m->shape[d];
            for (int o = 0; o <= N; o++) m->at[o].strides[n] = m->at[o].strides[d];
            n++;
            continue;
        }
        m->shape[n - 1] *= m->shape[d];
        for (int o = 0; o <= N; o++) m->at[o].strides[n - 1] = m->at[o].strides[d];
    }
    m->ndim = n;
}

/* tensors: the output, then N inputs that broadcast to it. Dims as they are. */
template <int N> static void cuda_map_lay(cuda_map<N> *m, proa_tensor *const *tensors)
{
    cuda_tensor out = cuda_look(tensors[0]);
    m->ndim = out.ndim;
    m->numel = out.numel;
    for (int d = 0; d < out.ndim; d++) m->shape[d] = out.shape[d];
    for (int o = 0; o <= N; o++) {
        cuda_tensor t = cuda_look(tensors[o]);
        m->at[o].data = t.data;
        m->at[o].dtype = t.dtype;
        int lead = out.ndim - t.ndim;
        for (int d = 0; d < out.ndim; d++)
            m->at[o].strides[d] = d < lead || t.shape[d - lead] == 1 ? 0 : t.strides[d - lead];
    }
}

/* The same, dims merged. False: there is nothing to do. */
template <int N> static bool cuda_map_fill(cuda_map<N> *m, proa_tensor *const *tensors)
{
    cuda_map_lay(m, tensors);
    cuda_map_merge(m);
    return m->numel > 0;
}

/* True if the plain kernel may run: one contiguous run of the functor's own dtypes, aligned to vectors. */
template <int N, class F> static bool cuda_map_is_plain(const cuda_map<N> *m)
{
    for (int o = 0; o <= N; o++) {
        int own = o ? (int)cuda_dtype_of<typename F::T>::value : (int)cuda_dtype_of<typename F::R>::value;
        int64_t item = o ? (int64_t)sizeof(typename F::T) : (int64_t)sizeof(typename F::R);
        proa_dtype d = m->at[o].dtype == PROA_BOOL && o == 0 ? PROA_U8 : m->at[o].dtype;
        if ((int)d != own || (uintptr_t)m->at[o].data % (size_t)(item * CUDA_MAP_VECTOR)) return false;
        if (m->ndim > 1 || (m->ndim == 1 && m->at[o].strides[0] != item)) return false;
    }
    return true;
}

template <int N, class F> static proa_status cuda_map_run(cuda_context *c, proa_tensor *const *tensors, F f)
{
    cuda_map<N> m;
    if (!cuda_map_fill(&m, tensors)) return PROA_OK;
    if (cuda_map_is_plain<N, F>(&m))
        return cuda_launch(c, cuda_blocks(m.numel, CUDA_BLOCK * CUDA_MAP_VECTOR), CUDA_BLOCK,
                           (map_plain_kernel<N, F>), m, f);
    return cuda_launch(c, cuda_blocks(m.numel), CUDA_BLOCK, (map_kernel<N, F>), m, f);
}

/* The dtype that a formula computes in for inputs of dtype d, as the CPU chooses it; `rows` has those it
 * has. */
static inline proa_dtype cuda_compute_dtype(unsigned rows, proa_dtype d)
{
    if (rows >> d & 1) return d;
    if (d == PROA_F16 || d == PROA_BF16) return PROA_F32;
    if (d <= PROA_I64)
        for (int w = (int)d + 1; w <= PROA_I64; w++)
            if (rows >> w & 1) return (proa_dtype)w;
    return PROA_F32;
}

#endif
