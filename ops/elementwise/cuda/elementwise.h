/* Applies a scalar formula to tensors on a GPU; broadcasting, strides and dtype conversions are handled here.
 * A functor has T, the type it computes in, R, its result type, and operator(). */
#ifndef PROA_OPS_ELEMENTWISE_CUDA_ELEMENTWISE_H
#define PROA_OPS_ELEMENTWISE_CUDA_ELEMENTWISE_H

#include "devices/cuda/kernel.h"

#define PROA_FORMULA static __host__ __device__ __forceinline__ __attribute__((unused))
#include "ops/elementwise/formulas.h"

#define CUDA_CALL __device__ __forceinline__

/* Elements that a thread of the plain kernel reads at once, and that it works on at once. */
enum { CUDA_MAP_READ = 8, CUDA_MAP_VECTOR = 4 };

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

/* Offset of element i of the walk in each operand. */
template <int N> CUDA_FN void cuda_map_walk(const cuda_map<N> &m, int64_t i, int64_t *at)
{
    for (int o = 0; o <= N; o++) at[o] = 0;
    for (int d = m.ndim - 1; d >= 0; d--) {
        int64_t k = d ? cuda_split(i, m.shape[d]) : i;
        for (int o = 0; o <= N; o++) at[o] += k * m.at[o].strides[d];
    }
}

/* Applies f to operands of any strides and dtypes, one element at a time. */
template <int N, class F> __global__ void map_kernel(cuda_map<N> m, F f)
{
    typedef typename F::T T;
    typedef typename F::R R;
    for (CUDA_EACH(i, m.numel)) {
        int64_t at[N + 1];
        cuda_map_walk(m, i, at);
        T v[N];
        for (int o = 0; o < N; o++) v[o] = cuda_load<T>(m.at[o + 1].data + at[o + 1], m.at[o + 1].dtype);
        cuda_store<R>(m.at[0].data + at[0], m.at[0].dtype, cuda_apply<N, F, T>::call(f, v));
    }
}

/* Reads eight neighbors of an operand, as two fours, and writes four of the result. Formulas in float32 also
 * read and write 16-bit floats. */
template <class T> struct cuda_map_access {
    static bool takes(proa_dtype d) { return (int)d == (int)cuda_dtype_of<T>::value; }
    static CUDA_MEMBER void read(const cuda_map_operand &p, int64_t i, T *low, T *high)
    {
        typedef cuda_pack<T, CUDA_MAP_VECTOR> pack; /* T may be complex */
        const T *at = (const T *)(const void *)p.data + i;
        pack first = *(const pack *)(const void *)at,
             second = *(const pack *)(const void *)(at + CUDA_MAP_VECTOR);
        for (int k = 0; k < CUDA_MAP_VECTOR; k++) low[k] = first.at[k], high[k] = second.at[k];
    }
    static CUDA_MEMBER void write(const cuda_map_operand &p, int64_t i, const T *from)
    {
        cuda_pack<T, CUDA_MAP_VECTOR> all;
        for (int k = 0; k < CUDA_MAP_VECTOR; k++) all.at[k] = from[k];
        *(cuda_pack<T, CUDA_MAP_VECTOR> *)(void *)((T *)(void *)p.data + i) = all;
    }
};
template <> struct cuda_map_access<float> {
    static bool takes(proa_dtype d) { return d == PROA_F32 || d == PROA_F16 || d == PROA_BF16; }
    template <class X> static CUDA_MEMBER void halves(const X *p, float *low, float *high)
    {
        float all[CUDA_MAP_READ];
        cuda_take<CUDA_MAP_READ>(p, all);
        for (int k = 0; k < CUDA_MAP_VECTOR; k++) low[k] = all[k], high[k] = all[k + CUDA_MAP_VECTOR];
    }
    static CUDA_MEMBER void read(const cuda_map_operand &p, int64_t i, float *low, float *high)
    {
        const void *at = p.data;
        if (p.dtype == PROA_F16) return halves((const cuda_f16 *)at + i, low, high);
        if (p.dtype == PROA_BF16) return halves((const cuda_bf16 *)at + i, low, high);
        cuda_take<CUDA_MAP_VECTOR>((const float *)at + i, low);
        cuda_take<CUDA_MAP_VECTOR>((const float *)at + i + CUDA_MAP_VECTOR, high);
    }
    static CUDA_MEMBER void write(const cuda_map_operand &p, int64_t i, const float *from)
    {
        void *at = p.data;
        if (p.dtype == PROA_F16) return cuda_put<CUDA_MAP_VECTOR>((cuda_f16 *)at + i, from);
        if (p.dtype == PROA_BF16) return cuda_put<CUDA_MAP_VECTOR>((cuda_bf16 *)at + i, from);
        cuda_put<CUDA_MAP_VECTOR>((float *)at + i, from);
    }
};

/* Applies f to contiguous, aligned operands of dtypes that cuda_map_access takes, CUDA_MAP_READ elements at a
 * time. */
template <int N, class F> __global__ void map_plain_kernel(cuda_map<N> m, F f)
{
    typedef typename F::T T;
    typedef typename F::R R;
    int64_t packs = m.numel / CUDA_MAP_READ;
    for (CUDA_EACH(i, packs)) {
        T in[2][N][CUDA_MAP_VECTOR];
        for (int o = 0; o < N; o++)
            cuda_map_access<T>::read(m.at[o + 1], i * CUDA_MAP_READ, in[0][o], in[1][o]);
#pragma unroll 1
        for (int half = 0; half < 2; half++) { /* one body for both: formulas are long */
            R out[CUDA_MAP_VECTOR];
#pragma unroll
            for (int k = 0; k < CUDA_MAP_VECTOR; k++) {
                T v[N];
                for (int o = 0; o < N; o++) v[o] = half ? in[1][o][k] : in[0][o][k];
                out[k] = cuda_apply<N, F, T>::call(f, v);
            }
            cuda_map_access<R>::write(m.at[0], i * CUDA_MAP_READ + half * CUDA_MAP_VECTOR, out);
        }
    }
    int64_t tail = packs * CUDA_MAP_READ + (int64_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (tail >= m.numel) return; /* fewer than are read at once are left: the first threads take them */
    int64_t at[N + 1];
    cuda_map_walk(m, tail, at);
    T v[N];
    for (int o = 0; o < N; o++) v[o] = cuda_load<T>(m.at[o + 1].data + at[o + 1], m.at[o + 1].dtype);
    cuda_store<R>(m.at[0].data + at[0], m.at[0].dtype, cuda_apply<N, F, T>::call(f, v));
}

/* Merges neighboring dims that every operand walks as one. */
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

/* Fills m, without merging dims, from the output and N inputs that broadcast to it. */
template <int N> static void cuda_map_operands(cuda_map<N> *m, proa_tensor *const *tensors)
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

/* Fills m and merges its dims; false if the output is empty. */
template <int N> static bool cuda_map_fill(cuda_map<N> *m, proa_tensor *const *tensors)
{
    cuda_map_operands(m, tensors);
    cuda_map_merge(m);
    return m->numel > 0;
}

/* True if the plain kernel may run: one contiguous run of dtypes that it takes, aligned to what it reads. */
template <int N, class F> static bool cuda_map_is_plain(const cuda_map<N> *m)
{
    for (int o = 0; o <= N; o++) {
        proa_dtype d = m->at[o].dtype == PROA_BOOL && o == 0 ? PROA_U8 : m->at[o].dtype;
        int64_t item = cuda_item(d), aligned = item * (item == 2 ? CUDA_MAP_READ : CUDA_MAP_VECTOR);
        bool takes = o ? cuda_map_access<typename F::T>::takes(d) : cuda_map_access<typename F::R>::takes(d);
        if (!takes || (uintptr_t)m->at[o].data % (uintptr_t)aligned) return false;
        if (m->ndim > 1 || (m->ndim == 1 && m->at[o].strides[0] != item)) return false;
    }
    return true;
}

template <int N, class F> static proa_status cuda_map_run(cuda_context *c, proa_tensor *const *tensors, F f)
{
    cuda_map<N> m;
    if (!cuda_map_fill(&m, tensors)) return PROA_OK;
    if (cuda_map_is_plain<N, F>(&m))
        return cuda_launch(c, cuda_blocks(m.numel, CUDA_BLOCK * CUDA_MAP_READ), CUDA_BLOCK,
                           (map_plain_kernel<N, F>), m, f);
    return cuda_launch(c, cuda_blocks(m.numel), CUDA_BLOCK, (map_kernel<N, F>), m, f);
}

/* The dtype in which a formula computes for inputs of dtype d, as on the CPU; bit d of `rows`: it has a
 * version for dtype d. */
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
