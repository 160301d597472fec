/* CUDA's language for a C++ compiler on the host: what a .cu file of Proa may use, and no more. Included
 * before everything else when the plug-in is built to be emulated. Blocks run one after another, their
 * threads as fibers (fibers.cc), so that barriers and shuffles work; device memory is unreachable while
 * no kernel runs. */
#ifndef PROA_CUDA_EMULATE_H
#define PROA_CUDA_EMULATE_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <functional>

#define CUDA_EMULATED 1
#define __global__ static
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
/* Blocks run one at a time: their shared memory may be the same. Like a GPU's, it starts with what was
 * left. */
#define __shared__ static
#define __launch_bounds__(...)
#define __restrict__ __restrict

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
};
/* Visible to chains that are compiled while a test runs (compiler.cc). */
extern __attribute__((visibility("default"))) dim3 threadIdx, blockIdx, blockDim, gridDim;
enum { warpSize = 32 };

/* Runs body(context) once for every thread of the grid; a block has `shared` bytes at emulate_shared(), and
 * an access beyond them is a crash. */
void emulate_launch(dim3 grid, dim3 block, void (*body)(void *), void *context, size_t shared = 0);
char *emulate_shared();
/* line, here and below: source line of the call; threads that meet must be at the same one. */
void emulate_barrier(unsigned line);
/* Exchanges 8-byte values within a warp: each live lane provides one and gets that of `lane`. */
uint64_t emulate_exchange(uint64_t value, unsigned lane, unsigned line);
/* Queues `run` on the compute stream, or adds it to the graph that is being recorded; false inside queued
 * work, where the caller runs it directly. */
bool emulate_keep(std::function<void()> run);
/* Queues work between processes on a stream: `step` is called until it returns true, when the host waits or
 * asks for an event behind it. */
void emulate_poll(void *stream, std::function<bool()> step);
/* Runs all queued work except that between processes, as the driver's functions that free memory
 * must. */
void emulate_finish();
void emulate_warp_barrier(unsigned line);
/* Bit mask of the warp's live lanes that provided the same value. */
unsigned emulate_match(uint64_t value, unsigned line);
/* Makes device memory accessible between the two calls, as for library calls. */
void emulate_open();
void emulate_close();
/* compiler.cc: the driver's functions for what is compiled at run time. */
int emulate_module_load(void **module, const void *image, size_t bytes);
int emulate_module_kernel(void *module, const char *name, void **kernel);
int emulate_module_unload(void *module);

#define EMULATE_LINE unsigned line = __builtin_LINE()
static inline void __syncthreads(EMULATE_LINE) { emulate_barrier(line); }
static inline void __syncwarp(unsigned = ~0u, EMULATE_LINE) { emulate_warp_barrier(line); }

template <class T> static inline T emulate_shuffle(T value, unsigned lane, unsigned line)
{
    static_assert(sizeof(T) <= 8, "a shuffle moves at most 8 bytes");
    uint64_t bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = emulate_exchange(bits, lane, line);
    memcpy(&value, &bits, sizeof value);
    return value;
}
static inline unsigned emulate_lane()
{
    return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % warpSize;
}
template <class T> static inline T __shfl_sync(unsigned, T v, int lane, EMULATE_LINE)
{
    return emulate_shuffle(v, (unsigned)lane % warpSize, line);
}
template <class T> static inline T __shfl_down_sync(unsigned, T v, unsigned by, EMULATE_LINE)
{
    unsigned lane = emulate_lane();
    return emulate_shuffle(v, lane + by < warpSize ? lane + by : lane, line);
}
template <class T> static inline T __shfl_up_sync(unsigned, T v, unsigned by, EMULATE_LINE)
{
    unsigned lane = emulate_lane();
    return emulate_shuffle(v, lane >= by ? lane - by : lane, line);
}
template <class T> static inline T __shfl_xor_sync(unsigned, T v, int mask, EMULATE_LINE)
{
    return emulate_shuffle(v, (emulate_lane() ^ (unsigned)mask) % warpSize, line);
}
static inline unsigned __match_any_sync(unsigned, unsigned v, EMULATE_LINE) { return emulate_match(v, line); }
static inline int __popc(unsigned v) { return __builtin_popcount(v); }
template <class T> static inline T atomicAdd(T *at, T v)
{
    T old = *at;
    *at = old + v;
    return old;
}
template <class T> static inline T atomicMax(T *at, T v)
{
    T old = *at;
    if (v > old) *at = v;
    return old;
}
template <class T> static inline T atomicMin(T *at, T v)
{
    T old = *at;
    if (v < old) *at = v;
    return old;
}
template <class T> static inline T atomicExch(T *at, T v)
{
    T old = *at;
    *at = v;
    return old;
}
template <class T> static inline T atomicCAS(T *at, T expected, T v)
{
    T old = *at;
    if (old == expected) *at = v;
    return old;
}

#endif
