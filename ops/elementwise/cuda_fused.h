/* The kernels of a fused elementwise chain: the walk is here, the chain is text that devices/cuda/fuse.c
 * writes. NVRTC compiles both at run time, and the emulator's compiler for tests. A chain has X, the dtype's
 * C type, INPUTS, OUTPUTS, and run(x, y) of one element. May use devices/cuda/device.h. */
#ifndef PROA_OPS_ELEMENTWISE_CUDA_FUSED_H
#define PROA_OPS_ELEMENTWISE_CUDA_FUSED_H

#include "devices/cuda/device.h"

#define PROA_FORMULA static __device__ __forceinline__ __attribute__((unused))
#include "ops/elementwise/cuda_fused_map.h"
#include "ops/elementwise/cuda_numbers.h"
#include "ops/elementwise/formulas.h"

/* ---- elements ------------------------------------------------------------------------ */

/* Of a C type of a dtype: T, what it is computed in, and step, which every result inside a chain passes: it
 * is rounded to the dtype, and a product cannot become one operation with the next step's sum. So a chain
 * gives what its ops give one after the other. */
template <class X> struct fused_type;
template <> struct fused_type<float> {
    typedef float T;
    static CUDA_MEMBER float get(float x) { return x; }
    static CUDA_MEMBER float put(float x) { return x; }
    static CUDA_MEMBER float step(float x)
    {
#if !defined(CUDA_EMULATED)
        asm("" : "+f"(x));
#endif
        return x;
    }
};
template <> struct fused_type<double> {
    typedef double T;
    static CUDA_MEMBER double get(double x) { return x; }
    static CUDA_MEMBER double put(double x) { return x; }
    static CUDA_MEMBER double step(double x)
    {
#if !defined(CUDA_EMULATED)
        asm("" : "+d"(x));
#endif
        return x;
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

/* Any strides: an element at a time. */
template <class C> CUDA_FN void fused_any(const fused_map &m)
{
    typedef typename C::X X;
    typedef fused_type<X> type;
    enum { OUT = C::OUTPUTS, N = C::OUTPUTS + C::INPUTS };
    for (CUDA_EACH(i, m.numel)) {
        int64_t rest = i, at[N] = {0};
        for (int d = (int)m.ndim - 1; d >= 0; d--) {
            int64_t k = cuda_split(rest, m.shape[d]);
#pragma unroll
            for (int o = 0; o < N; o++) at[o] += k * m.at[o].strides[d];
        }
        typename type::T x[C::INPUTS], y[OUT];
#pragma unroll
        for (int o = OUT; o < N; o++)
            x[o - OUT] = type::get(*(const X *)(const void *)(m.at[o].data + at[o]));
        C::run(x, y);
#pragma unroll
        for (int o = 0; o < OUT; o++) *(X *)(void *)(m.at[o].data + at[o]) = type::put(y[o]);
    }
}

/* 16 bytes at a time: along the last dim, a multiple of so many, every operand is contiguous and aligned, or
 * one element. */
template <class C> CUDA_FN void fused_packed(const fused_map &m)
{
    typedef typename C::X X;
    typedef fused_type<X> type;
    enum { OUT = C::OUTPUTS, N = C::OUTPUTS + C::INPUTS, V = 16 / sizeof(X) };
    typedef cuda_pack<X, V> pack;
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
        pack in[C::INPUTS], out[OUT];
#pragma unroll
        for (int o = OUT; o < N; o++) {
            const char *p = m.at[o].data + at[o];
            if (m.at[o].strides[last]) {
                in[o - OUT] = *(const pack *)(const void *)p;
                continue;
            }
            X one = *(const X *)(const void *)p;
#pragma unroll
            for (int e = 0; e < V; e++) in[o - OUT].at[e] = one;
        }
#pragma unroll
        for (int e = 0; e < V; e++) {
            typename type::T x[C::INPUTS], y[OUT];
#pragma unroll
            for (int o = 0; o < C::INPUTS; o++) x[o] = type::get(in[o].at[e]);
            C::run(x, y);
#pragma unroll
            for (int o = 0; o < OUT; o++) out[o].at[e] = type::put(y[o]);
        }
#pragma unroll
        for (int o = 0; o < OUT; o++) *(pack *)(void *)(m.at[o].data + at[o]) = out[o];
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
