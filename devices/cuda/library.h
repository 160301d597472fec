/* What kernels ask of CUDA's libraries, in our own words: library.cu calls cuBLASLt, the emulator
 * has plain loops. Every function queues its work on c->stream. C++; uses kernel.h. */
#ifndef PROA_CUDA_LIBRARY_H
#define PROA_CUDA_LIBRARY_H

#include "devices/cuda/kernel.h"

/* out[b] = alpha · x[b] · y[b] + beta · out[b]: x is m × k, y is k × n, out m × n, all of one floating
 * dtype, computed in float32 (float64 for float64). x and y are row-major with leading dimension ldx
 * and ldy, or transposed: then their memory is k × m and n × k. out is row-major with n columns. Batches
 * are `*_step` elements apart; 0 repeats one matrix. */
struct cuda_gemm {
    proa_dtype dtype;
    int64_t m, n, k;
    const void *x, *y;
    void *out;
    int64_t ldx, ldy;
    bool transpose_x, transpose_y;
    int64_t batches, x_step, y_step, out_step;
    double alpha, beta;
};
proa_status cuda_library_gemm(cuda_context *c, const cuda_gemm *g);

#endif
