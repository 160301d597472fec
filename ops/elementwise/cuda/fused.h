/* Kernels of a fused elementwise chain: the loop over the elements, for a chain type that devices/cuda/fuse.c
 * writes as source text; NVRTC (in tests, the emulator's compiler) compiles both at run time. A chain type
 * has T, which it computes in, INPUTS, OUTPUTS, PACK, run(x, y) for one element, and each(f), which names its
 * operands' types. May use devices/cuda/device.h. */
#ifndef PROA_OPS_ELEMENTWISE_CUDA_FUSED_H
#define PROA_OPS_ELEMENTWISE_CUDA_FUSED_H

#include "devices/cuda/device.h"

#define PROA_FORMULA static __device__ __forceinline__ __attribute__((unused))
#include "ops/elementwise/cuda/fused_map.h"
#include "ops/elementwise/cuda/numbers.h"
#include "ops/elementwise/formulas.h"
#include "ops/elementwise/cuda/halves.h"

/* ---- elements ------------------------------------------------------------------------ */

/* Traits of the C type of a dtype: T, in which it is computed, and step, through which every result inside a
 * chain passes. step rounds to the dtype, and keeps the compiler from contracting a product and the next
 * step's sum into one operation: it adds −0, which changes nothing, with an explicit rounding mode, and such
 * a sum is never contracted (PTX ISA, add). So a chain gives what its ops give one after the other. */
template <class X> struct fused_type;
template <> struct fused_type<float> {
    typedef float T;
    static CUDA_MEMBER float get(float x) { return x; }
    static CUDA_MEMBER float put(float x) { return x; }
    static CUDA_MEMBER float step(float x)
    {
#if defined(CUDA_EMULATED)
        return x;
#else
        return __fadd_rn(x, -0.0f);
#endif
    }
};
template <> struct fused_type<double> {
    typedef double T;
    static CUDA_MEMBER double get(double x) { return x; }
    static CUDA_MEMBER double put(double x) { return x; }
    static CUDA_MEMBER double step(double x)
    {
#if defined(CUDA_EMULATED)
        return x;
#else
        return __dadd_rn(x, -0.0);
#endif
    }
};
template <> struct fused_type<cuda_f16> {
    typedef float T;
    static CUDA_MEMBER float get(cuda_f16 x) { return cuda_float(x); }
    static CUDA_MEMBER cuda_f16 put(float x) { return cuda_to_f16(x); }
    static CUDA_MEMBER float step(float x) { return get(put(x)); }
};
template <> struct fused_type<cuda_bf16> {
    typedef float T;
    static CUDA_MEMBER float get(cuda_bf16 x) { return cuda_float(x); }
    static CUDA_MEMBER cuda_bf16 put(float x) { return cuda_to_bf16(x); }
    static CUDA_MEMBER float step(float x) { return get(put(x)); }
};

/* ---- the walks ----------------------------------------------------------------------- */

/* V neighbors of each operand, in registers. A chain's `each` visits all operands, outputs first. */
template <class C, int V> struct fused_values {
    typename C::T x[C::INPUTS][V], y[C::OUTPUTS][V];
};
template <class C, int V> struct fused_reader {
    const fused_map &m;
    const int64_t *at;
    fused_values<C, V> &v;
    template <class X> CUDA_MEMBER void operand(int o)
    {
        if (o < C::OUTPUTS) return;
        const char *p = m.at[o].data + at[o];
        typename C::T *to = v.x[o - C::OUTPUTS];
        if (V > 1 && m.at[o].strides[m.ndim - 1]) {
            cuda_pack<X, V> some = *(const cuda_pack<X, V> *)(const void *)p;
#pragma unroll
            for (int e = 0; e < V; e++) to[e] = fused_type<X>::get(some.at[e]);
            return;
        }
        typename C::T one = fused_type<X>::get(*(const X *)(const void *)p);
#pragma unroll
        for (int e = 0; e < V; e++) to[e] = one;
    }
};
template <class C, int V> struct fused_writer {
    const fused_map &m;
    const int64_t *at;
    fused_values<C, V> &v;
    template <class X> CUDA_MEMBER void operand(int o)
    {
        if (o >= C::OUTPUTS) return;
        cuda_pack<X, V> some;
#pragma unroll
        for (int e = 0; e < V; e++) some.at[e] = fused_type<X>::put(v.y[o][e]);
        *(cuda_pack<X, V> *)(void *)(m.at[o].data + at[o]) = some;
    }
};

template <class C, int V> CUDA_FN void fused_some(const fused_map &m, const int64_t *at)
{
    fused_values<C, V> v;
    fused_reader<C, V> reader = {m, at, v};
    fused_writer<C, V> writer = {m, at, v};
    C::each(reader);
#pragma unroll
    for (int e = 0; e < V; e++) {
        typename C::T x[C::INPUTS], y[C::OUTPUTS];
#pragma unroll
        for (int o = 0; o < C::INPUTS; o++) x[o] = v.x[o][e];
        C::run(x, y);
#pragma unroll
        for (int o = 0; o < C::OUTPUTS; o++) v.y[o][e] = y[o];
    }
    C::each(writer);
}

/* Any strides: an element at a time. */
template <class C> CUDA_FN void fused_any(const fused_map &m)
{
    enum { N = C::OUTPUTS + C::INPUTS };
    for (CUDA_EACH(i, m.numel)) {
        int64_t rest = i, at[N] = {0};
        for (int d = (int)m.ndim - 1; d >= 0; d--) {
            int64_t k = cuda_split(rest, m.shape[d]);
#pragma unroll
            for (int o = 0; o < N; o++) at[o] += k * m.at[o].strides[d];
        }
        fused_some<C, 1>(m, at);
    }
}

/* 16 bytes at a time of the narrowest operand, more of wider ones: along the last dim, a multiple of so many
 * elements, every operand is contiguous and aligned, or one element. */
template <class C> CUDA_FN void fused_packed(const fused_map &m)
{
    enum { N = C::OUTPUTS + C::INPUTS, V = C::PACK };
    int last = (int)m.ndim - 1;
    int64_t row = m.shape[last] / V;
    for (CUDA_EACH(i, m.numel / V)) {
        int64_t rest = i, at[N];
        int64_t k = last ? cuda_split(rest, row) : rest;
#pragma unroll
        for (int o = 0; o < N; o++) at[o] = k * V * m.at[o].strides[last];
        for (int d = last - 1; d >= 0; d--) {
            k = cuda_split(rest, m.shape[d]);
#pragma unroll
            for (int o = 0; o < N; o++) at[o] += k * m.at[o].strides[d];
        }
        fused_some<C, V>(m, at);
    }
}

/* The two kernels of a chain; the emulator calls them with the address of their argument. */
#if defined(CUDA_EMULATED)
#define FUSED_KERNEL(name, C)                                                           \
    extern "C" __attribute__((visibility("default"))) void name##_kernel(const void *m) \
    {                                                                                   \
        name<C>(*(const fused_map *)m);                                                 \
    }
#else
#define FUSED_KERNEL(name, C) \
    extern "C" __global__ void __launch_bounds__(256) name##_kernel(fused_map m) { name<C>(m); }
#endif
#define FUSED_KERNELS(C)       \
    FUSED_KERNEL(fused_any, C) \
    FUSED_KERNEL(fused_packed, C)

#endif
