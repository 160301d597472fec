/* Kernels of copies: strided copies, fills, and writes of a few bytes that are passed as a kernel argument.
 * Contiguous copies are the driver's. */
#include "kernel.h"

template <class T> __global__ void strided_kernel(proa_strided_copy s, int64_t n)
{
    for (CUDA_EACH(i, n)) {
        int64_t rest = i, to = 0, from = 0;
        for (int d = s.ndim - 1; d >= 0; d--) {
            int64_t k = d ? cuda_split(rest, s.shape[d]) : rest;
            to += k * s.to[d];
            from += k * s.from[d];
        }
        *(T *)(void *)(s.dst + to) = *(const T *)(const void *)(s.src + from);
    }
}

template <class T> static proa_status strided(cuda_context *c, const proa_strided_copy *s)
{
    int64_t n = 1;
    for (int d = 0; d < s->ndim; d++) n *= s->shape[d];
    if (n == 0) return PROA_OK;
    proa_strided_copy copy = *s;
    c->strided_copies++;
    return cuda_launch(c, cuda_blocks(n), CUDA_BLOCK, strided_kernel<T>, copy, n);
}

proa_status cuda_copy_strided(cuda_context *c, const proa_strided_copy *s)
{
    CUDA_SWITCH_UNIT(s->item, T, return strided<T>(c, s);)
}

template <class T> __global__ void fill_kernel(T *to, T value, int64_t n)
{
    for (CUDA_EACH(i, n)) to[i] = value;
}

template <class T> static proa_status fill(cuda_context *c, void *to, const void *value, int64_t n)
{
    T one, *at = (T *)to;
    memcpy(&one, value, sizeof one);
    if (n == 0) return PROA_OK;
    return cuda_launch(c, cuda_blocks(n), CUDA_BLOCK, fill_kernel<T>, at, one, n);
}

proa_status cuda_fill(cuda_context *c, void *to, const void *value, size_t item, int64_t n)
{
    CUDA_SWITCH_UNIT(item, T, return fill<T>(c, to, value, n);)
}

__global__ void write_small_kernel(char *to, cuda_small from, unsigned bytes)
{
    if (threadIdx.x < bytes) to[threadIdx.x] = from.at[threadIdx.x];
}

proa_status cuda_write_small(cuda_context *c, void *to, const void *from, size_t bytes)
{
    cuda_small small = {};
    char *at = (char *)to;
    unsigned n = (unsigned)bytes;
    if (n == 0) return PROA_OK;
    memcpy(&small, from, bytes);
    return cuda_launch(c, 1, (unsigned)sizeof small, write_small_kernel, at, small, n);
}
