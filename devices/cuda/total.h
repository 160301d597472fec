/* Sum of a functor over n items in double, in two launches: the first makes at most 512 partial sums (their
 * number depends on n), the second adds them in one block. For .cu files; uses kernel.h. */
#ifndef PROA_CUDA_TOTAL_H
#define PROA_CUDA_TOTAL_H

#include "devices/cuda/kernel.h"

enum { CUDA_TOTAL_PARTS = 512 };

/* Two sums that cuda_total computes at a time. */
struct cuda_pair {
    double a, b;
};
CUDA_FN cuda_pair operator+(cuda_pair x, cuda_pair y) { return {x.a + y.a, x.b + y.b}; }
CUDA_FN cuda_pair cuda_shuffle_xor(cuda_pair v, int by)
{
    return {__shfl_xor_sync(~0u, v.a, by), __shfl_xor_sync(~0u, v.b, by)};
}

template <class S, class F> __global__ void cuda_total_parts_kernel(F f, int64_t n, S *parts)
{
    S sum = {};
    for (CUDA_EACH(i, n)) sum = sum + f(i);
    sum = cuda_block_reduce<cuda_sum>(sum);
    if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}

template <class S, class E> __global__ void cuda_total_end_kernel(const S *parts, int n, E end)
{
    S sum = {};
    for (int i = (int)threadIdx.x; i < n; i += CUDA_BLOCK) sum = sum + parts[i];
    sum = cuda_block_reduce<cuda_sum>(sum);
    if (threadIdx.x == 0) end(sum);
}

/* Queues end(Σ f(i)), called by one thread, for i in [0, n); S: double or cuda_pair, what f returns. */
template <class S, class F, class E> static proa_status cuda_total(cuda_context *c, int64_t n, F f, E end)
{
    unsigned blocks = cuda_blocks(n, 4 * CUDA_BLOCK);
    if (blocks > CUDA_TOTAL_PARTS) blocks = CUDA_TOTAL_PARTS;
    S *parts = (S *)cuda_scratch(c, blocks * sizeof(S));
    if (!parts) return cuda_host->error();
    proa_status status = cuda_launch(c, blocks, CUDA_BLOCK, (cuda_total_parts_kernel<S, F>), f, n, parts);
    if (status == PROA_OK)
        status = cuda_launch(c, 1, CUDA_BLOCK, (cuda_total_end_kernel<S, E>), parts, (int)blocks, end);
    cuda_scratch_free(c, parts);
    return status;
}

#endif
