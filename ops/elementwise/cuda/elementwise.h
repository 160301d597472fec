/* Applies a scalar formula to tensors on a GPU; broadcasting, strides and dtype conversions are handled here.
 * A functor has T, the type it computes in, R, its result type, and operator(). */
#ifndef PROA_OPS_ELEMENTWISE_CUDA_ELEMENTWISE_H
#define PROA_OPS_ELEMENTWISE_CUDA_ELEMENTWISE_H

#include "devices/cuda/divisor.h"
#include "devices/cuda/kernel.h"

#define PROA_FORMULA static __host__ __device__ __forceinline__ __attribute__((unused))
#include "ops/elementwise/formulas.h"
#include "ops/elementwise/cuda/halves.h"

#define CUDA_CALL __device__ __forceinline__

/* Neighboring elements in a group, and groups that a thread reads before it writes the first. */
enum { CUDA_MAP_GROUP = 4, CUDA_MAP_EACH = 2 };

struct cuda_map_operand {
    char *data;
    proa_dtype dtype;
    int64_t strides[PROA_MAX_DIMS]; /* bytes; 0 where broadcast */
};

/* Operand 0 is the output, contiguous. Dims are merged. */
template <int N> struct cuda_map {
    int ndim;
    int64_t numel, shape[PROA_MAX_DIMS];
    cuda_divisor by[PROA_MAX_DIMS]; /* of shape, from dim 1 on, where numel < 2^31; by cuda_map_merge */
    cuda_map_operand at[N + 1];
    __host__ __device__ bool narrow() const { return numel >> 31 == 0; }
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
template <int N> CUDA_FN void cuda_map_walk_narrow(const cuda_map<N> &m, uint32_t i, int64_t *at)
{
    for (int o = 0; o <= N; o++) at[o] = 0;
#pragma unroll 1
    for (int d = m.ndim - 1; d >= 0; d--) {
        uint32_t k = i;
        if (d) i = m.by[d].split(i, &k);
        for (int o = 0; o <= N; o++) at[o] += k * m.at[o].strides[d];
    }
}
template <int N> CUDA_FN void cuda_map_walk(const cuda_map<N> &m, int64_t i, int64_t *at)
{
    if (m.narrow()) return cuda_map_walk_narrow(m, (uint32_t)i, at);
    for (int o = 0; o <= N; o++) at[o] = 0;
#pragma unroll 1
    for (int d = m.ndim - 1; d >= 0; d--) {
        int64_t k = d ? cuda_split(i, m.shape[d]) : i;
        for (int o = 0; o <= N; o++) at[o] += k * m.at[o].strides[d];
    }
}

/* Applies f to operands of any strides and dtypes, one element at a time. */
template <int N, class F> CUDA_FN void cuda_map_one(const cuda_map<N> &m, const F &f, const int64_t *at)
{
    typename F::T v[N];
    for (int o = 0; o < N; o++)
        v[o] = cuda_load<typename F::T>(m.at[o + 1].data + at[o + 1], m.at[o + 1].dtype);
    cuda_store<typename F::R>(m.at[0].data + at[0], m.at[0].dtype,
                              cuda_apply<N, F, typename F::T>::call(f, v));
}
template <int N, class F> __global__ void map_kernel(cuda_map<N> m, F f)
{
    for (CUDA_EACH(i, m.numel)) {
        int64_t at[N + 1];
        cuda_map_walk(m, i, at);
        cuda_map_one(m, f, at);
    }
}

/* A thread's groups of one operand in memory; false in `there`: behind the last. */
struct cuda_map_places {
    const char *at[CUDA_MAP_EACH];
    bool there[CUDA_MAP_EACH];
    /* Reads to[k] of type P wherever there is a group. */
    template <class P, class R> CUDA_MEMBER void read(R *to) const
    {
#pragma unroll
        for (int k = 0; k < CUDA_MAP_EACH; k++)
            if (there[k]) to[k] = R(*(const P *)(const void *)at[k]);
    }
};

/* Access to the elements of groups, which are neighbors, or one element that is repeated. What is read stays
 * as it is in memory until `values` converts it, so that all reads are under way before the first result is
 * awaited. Formulas in float32 also read and write 16-bit floats. */
template <class T> struct cuda_map_access {
    struct raw { /* T may be complex */
        cuda_pack<T, CUDA_MAP_GROUP> all;
        raw() = default;
        CUDA_MEMBER explicit raw(const cuda_pack<T, CUDA_MAP_GROUP> &p) : all(p) {}
        CUDA_MEMBER explicit raw(T one) : all{one, one, one, one} {}
    };
    static bool takes(proa_dtype d) { return (int)d == (int)cuda_dtype_of<T>::value; }
    static CUDA_MEMBER void read(const cuda_map_places &p, proa_dtype, bool repeated, raw *to)
    {
        if (repeated) p.read<T>(to);
        else p.read<cuda_pack<T, CUDA_MAP_GROUP>>(to);
    }
    static CUDA_MEMBER void values(const raw &r, proa_dtype, T *to)
    {
        for (int k = 0; k < CUDA_MAP_GROUP; k++) to[k] = r.all.at[k];
    }
    static CUDA_MEMBER void write(char *p, proa_dtype, const T *from)
    {
        cuda_pack<T, CUDA_MAP_GROUP> all;
        for (int k = 0; k < CUDA_MAP_GROUP; k++) all.at[k] = from[k];
        *(cuda_pack<T, CUDA_MAP_GROUP> *)(void *)p = all;
    }
};
template <> struct cuda_map_access<float> {
    struct raw { /* the bits of four floats; of halves: two words, each of two */
        cuda_pack<uint32_t, 4> all;
        raw() = default;
        CUDA_MEMBER explicit raw(const cuda_pack<uint32_t, 4> &p) : all(p) {}
        CUDA_MEMBER explicit raw(const cuda_pack<uint32_t, 2> &p) : all{p.at[0], p.at[1], 0, 0} {}
        CUDA_MEMBER explicit raw(uint32_t one) : all{one, one, one, one} {}
        CUDA_MEMBER explicit raw(uint16_t one) : raw(one * 0x10001u) {}
    };
    static bool takes(proa_dtype d) { return d == PROA_F32 || d == PROA_F16 || d == PROA_BF16; }
    static CUDA_MEMBER void read(const cuda_map_places &p, proa_dtype d, bool repeated, raw *to)
    {
        if (repeated) {
            if (d == PROA_F32) p.read<uint32_t>(to);
            else p.read<uint16_t>(to);
        } else if (d == PROA_F32) p.read<cuda_pack<uint32_t, 4>>(to);
        else p.read<cuda_pack<uint32_t, 2>>(to);
    }
    template <class X> static CUDA_MEMBER void halves(const raw &r, float *to)
    {
        for (int k = 0; k < CUDA_MAP_GROUP; k++)
            to[k] = cuda_float(X{(uint16_t)(r.all.at[k / 2] >> 16 * (k % 2))});
    }
    static CUDA_MEMBER void values(const raw &r, proa_dtype d, float *to)
    {
        if (d == PROA_F16) return halves<cuda_f16>(r, to);
        if (d == PROA_BF16) return halves<cuda_bf16>(r, to);
        for (int k = 0; k < CUDA_MAP_GROUP; k++) to[k] = cuda_bits_f32(r.all.at[k]);
    }
    static CUDA_MEMBER void write(char *p, proa_dtype d, const float *from)
    {
        void *at = p;
        if (d == PROA_F16) return cuda_put<CUDA_MAP_GROUP>((cuda_f16 *)at, from);
        if (d == PROA_BF16) return cuda_put<CUDA_MAP_GROUP>((cuda_bf16 *)at, from);
        cuda_put<CUDA_MAP_GROUP>((float *)at, from);
    }
};

/* A walk over groups. Only a walk of one dim has elements left behind the last whole group. */
template <int N> struct cuda_map_groups {
    cuda_map<N> walk; /* its shape and numel count whole groups */
    int left;
    bool repeated[N + 1]; /* by operand: one element is read for the whole group */
    uint32_t step[N + 1]; /* bytes from a group to the next along the last dim; 0 where repeated */
};

template <int N, class F> __global__ void map_groups_kernel(cuda_map_groups<N> g, F f)
{
    typedef typename F::T T;
    typedef cuda_map_access<T> access;
    const cuda_map<N> &m = g.walk;
    uint32_t first = blockIdx.x * (CUDA_BLOCK * CUDA_MAP_EACH) + threadIdx.x, n = (uint32_t)m.numel;
    int64_t at[CUDA_MAP_EACH][N + 1];
    typename access::raw in[N][CUDA_MAP_EACH];
#pragma unroll
    for (int k = 0; k < CUDA_MAP_EACH; k++) {
        uint32_t i = first + k * CUDA_BLOCK;
        if (m.ndim > 1) cuda_map_walk_narrow(m, i, at[k]);
        else
            for (int o = 0; o <= N; o++) at[k][o] = (int64_t)((uint64_t)i * g.step[o]);
    }
    for (int o = 0; o < N; o++) {
        cuda_map_places p;
#pragma unroll
        for (int k = 0; k < CUDA_MAP_EACH; k++) {
            p.at[k] = m.at[o + 1].data + at[k][o + 1];
            p.there[k] = first + k * CUDA_BLOCK < n;
        }
        access::read(p, m.at[o + 1].dtype, g.repeated[o + 1], in[o]);
    }
#pragma unroll 1
    for (int k = 0; k < CUDA_MAP_EACH && first + k * CUDA_BLOCK < n; k++) { /* one body: formulas are long */
        T all[N][CUDA_MAP_GROUP];
        typename F::R out[CUDA_MAP_GROUP];
        for (int o = 0; o < N; o++) access::values(in[o][0], m.at[o + 1].dtype, all[o]);
#pragma unroll
        for (int e = 0; e < CUDA_MAP_GROUP; e++) {
            T v[N];
            for (int o = 0; o < N; o++) v[o] = all[o][e];
            out[e] = cuda_apply<N, F, T>::call(f, v);
        }
        cuda_map_access<typename F::R>::write(m.at[0].data + at[0][0], m.at[0].dtype, out);
#pragma unroll
        for (int next = 1; next < CUDA_MAP_EACH; next++) {
            at[next - 1][0] = at[next][0];
            for (int o = 0; o < N; o++) in[o][next - 1] = in[o][next];
        }
    }
    if (blockIdx.x || (int)threadIdx.x >= g.left) return;
    for (int o = 0; o <= N; o++) /* a thread takes one of the elements that are left */
        at[0][o] = m.numel * g.step[o] + threadIdx.x * (g.step[o] / CUDA_MAP_GROUP);
    cuda_map_one(m, f, at[0]);
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
    for (int d = 1; d < n && m->narrow(); d++) m->by[d] = cuda_divisor_of(m->shape[d]);
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

/* Fills g; false if the kernel of groups cannot run: along the last dim every operand must be contiguous and
 * aligned to what is read at once, or one element, and its dtype one that is taken. */
template <int N, class F> static bool cuda_map_group(const cuda_map<N> *m, cuda_map_groups<N> *g)
{
    int last = m->ndim - 1;
    int64_t row = m->ndim ? m->shape[last] : 1;
    if ((last > 0 && row % CUDA_MAP_GROUP) || m->numel / CUDA_MAP_GROUP >> 31) return false;
    g->walk = *m;
    for (int o = 0; o <= N; o++) {
        const cuda_map_operand *p = &m->at[o];
        proa_dtype d = p->dtype == PROA_BOOL && o == 0 ? PROA_U8 : p->dtype;
        int64_t item = cuda_item(d), group = item * CUDA_MAP_GROUP, step = last < 0 ? item : p->strides[last];
        bool takes = o ? cuda_map_access<typename F::T>::takes(d) : cuda_map_access<typename F::R>::takes(d);
        g->repeated[o] = o > 0 && step == 0;
        if (!takes || (step != item && !g->repeated[o])) return false;
        g->step[o] = g->repeated[o] ? 0 : (uint32_t)group;
        if (last >= 0) g->walk.at[o].strides[last] = g->step[o];
        bool aligned = (uintptr_t)p->data % (uintptr_t)group == 0;
        for (int i = 0; i < last; i++) aligned = aligned && p->strides[i] % group == 0;
        if (!aligned && !g->repeated[o]) return false;
    }
    g->left = (int)(m->numel % CUDA_MAP_GROUP);
    g->walk.numel = m->numel / CUDA_MAP_GROUP;
    if (last >= 0) g->walk.shape[last] = row / CUDA_MAP_GROUP;
    for (int d = 1; d <= last; d++) g->walk.by[d] = cuda_divisor_of(g->walk.shape[d]);
    return true;
}

/* The functor that computes F where the result is a half (halves.h); constructed from an F. */
template <class F> struct cuda_map_half {
    typedef F type;
};

template <int N, class F> static proa_status cuda_map_launch(cuda_context *c, const cuda_map<N> *m, F f)
{
    const int64_t each = CUDA_BLOCK * CUDA_MAP_EACH;
    cuda_map_groups<N> g;
    if (!cuda_map_group<N, F>(m, &g))
        return cuda_launch(c, cuda_blocks(m->numel), CUDA_BLOCK, (map_kernel<N, F>), *m, f);
    unsigned blocks = g.walk.numel ? (unsigned)((g.walk.numel + each - 1) / each) : 1;
    return cuda_launch(c, blocks, CUDA_BLOCK, (map_groups_kernel<N, F>), g, f);
}

/* Applies f over a walk that is merged and not empty. */
template <int N, class F> static proa_status cuda_map_start(cuda_context *c, const cuda_map<N> *m, F f)
{
    typedef typename cuda_map_half<F>::type half;
    if (CUDA_HALVES >> m->at[0].dtype & 1) return cuda_map_launch<N, half>(c, m, half(f));
    return cuda_map_launch<N, F>(c, m, f);
}

template <int N, class F> static proa_status cuda_map_run(cuda_context *c, proa_tensor *const *tensors, F f)
{
    cuda_map<N> m;
    return cuda_map_fill(&m, tensors) ? cuda_map_start<N>(c, &m, f) : PROA_OK;
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
