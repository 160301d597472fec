/* Foundation of device code that nvcc, the emulator's C++ compiler and NVRTC all compile: qualifiers, types
 * and conversions (docs/cuda.md). Uses nothing of the host, of Proa or of CUDA's headers. */
#ifndef PROA_CUDA_DEVICE_H
#define PROA_CUDA_DEVICE_H

#include <stdint.h>
#include <string.h>

#if defined(CUDA_EMULATED)
#include "core/half.h"
#endif

#define CUDA_FN static __device__ __forceinline__
#define CUDA_BOTH static __host__ __device__ __forceinline__
#define CUDA_BOTH_MEMBER __host__ __device__ __forceinline__
#define CUDA_MEMBER __device__ __forceinline__

/* for (CUDA_EACH(i, n)): the thread's share of n items. */
#define CUDA_EACH(i, n)                                         \
    int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; \
    i < (n);                                                    \
    i += (int64_t)gridDim.x * blockDim.x

/* Quotient of non-negative numbers. Most fit into 32 bits, where division is faster than in 64. */
CUDA_FN int64_t cuda_div(int64_t n, int64_t by)
{
    return ((n | by) >> 32) == 0 ? (int64_t)((uint32_t)n / (uint32_t)by) : n / by;
}
/* Replaces n by the quotient and returns the remainder. */
CUDA_FN int64_t cuda_split(int64_t &n, int64_t by)
{
    int64_t all = n;
    n = cuda_div(n, by);
    return all - n * by;
}

/* float16 and bfloat16 as distinct types that hold the bits. */
struct cuda_f16 {
    uint16_t bits;
};
struct cuda_bf16 {
    uint16_t bits;
};

CUDA_BOTH float cuda_bits_f32(uint32_t u)
{
    float f;
    memcpy(&f, &u, sizeof f);
    return f;
}
CUDA_BOTH uint32_t cuda_f32_bits(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

#if defined(CUDA_EMULATED)
CUDA_BOTH float cuda_float(cuda_f16 h) { return proa__f16_to_f32(h.bits); }
CUDA_BOTH cuda_f16 cuda_to_f16(float f) { return {proa__f32_to_f16(f)}; }
#else
CUDA_FN float cuda_float(cuda_f16 h)
{
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h.bits));
    return f;
}
CUDA_FN cuda_f16 cuda_to_f16(float f)
{
    cuda_f16 h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h.bits) : "f"(f));
    return h;
}
#endif
CUDA_BOTH float cuda_float(cuda_bf16 h) { return cuda_bits_f32((uint32_t)h.bits << 16); }
/* One instruction from sm_80 on, even for two values that are packed into a word. Both forms round to nearest
 * even and make NaN quiet; the instruction drops its payload. */
CUDA_FN cuda_bf16 cuda_to_bf16(float f)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    cuda_bf16 h;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h.bits) : "f"(f));
    return h;
#else
    uint32_t u = cuda_f32_bits(f);
    if ((u & 0x7fffffffu) > 0x7f800000u) return {(uint16_t)(u >> 16 | 0x40u)};
    return {(uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16)};
#endif
}

/* V elements that are read or written by one memory access. */
template <class X, int V> struct alignas(sizeof(X) * V) cuda_pack {
    X at[V];
};

#endif
