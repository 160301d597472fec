/* Interface to CUDA's libraries: library.cu calls cuBLASLt, for which the emulator has plain loops;
 * convolution.cu calls cuDNN or its stand-in. Every function queues its work on c->stream. C++; uses
 * kernel.h. */
#ifndef PROA_CUDA_LIBRARY_H
#define PROA_CUDA_LIBRARY_H

#include "devices/cuda/kernel.h"

/* Epilogue of a product, applied before the result is stored: none; ReLU; gelu (tanh form); multiplication by
 * the derivative of gelu at `aux`; or none, with the rows of y summed as a second result. */
enum cuda_epilogue { CUDA_KEEP, CUDA_RELU, CUDA_GELU_TANH, CUDA_GELU_TANH_GRAD, CUDA_SUM_Y };

/* out[b] = epilogue(alpha · x[b] · y[b] + beta · out[b] + bias): x is m × k, y is k × n, out m × n, all
 * of one floating dtype, computed in float32 (float64 for float64). x and y are row-major with leading
 * dimension ldx and ldy, or transposed: then their memory is k × m and n × k. out is row-major with n
 * columns. Batches are `*_step` elements apart; 0 repeats one matrix. bias has n elements; NULL: none. aux
 * has out's form: what gelu is taken of, which CUDA_GELU_TANH writes (NULL: not), CUDA_GELU_TANH_GRAD reads.
 * sums has n elements and is written: out's columns summed (CUDA_GELU_TANH_GRAD), or y's (CUDA_SUM_Y).
 * DECLINED where the library has no such product with that bias or epilogue: then they are the caller's. */
struct cuda_gemm {
    proa_dtype dtype;
    int64_t m, n, k;
    const void *x, *y;
    void *out;
    int64_t ldx, ldy;
    bool transpose_x, transpose_y;
    int64_t batches, x_step, y_step, out_step;
    double alpha, beta;
    const void *bias;
    void *aux, *sums;
    cuda_epilogue epilogue;
};
proa_status cuda_library_gemm(cuda_context *c, const cuda_gemm *g);

/* True if tensor cores multiply the dtype, with operands of the precision of halves or of TF32. */
static inline bool cuda_rounded_products(proa_dtype d)
{
    return CUDA_HALVES >> d & 1 || (d == PROA_F32 && cuda_flag("allow_tf32"));
}

/* False if the library's epilogue does not do: its gelu takes an approximate tanh, good to the rounding of
 * halves and of TF32; and its addresses must be multiples of 16 bytes, aux's rows of 8 elements, which its
 * heuristic does not check. */
static inline bool cuda_epilogue_fits(const cuda_gemm *g)
{
    bool gelu = g->epilogue == CUDA_GELU_TANH || g->epilogue == CUDA_GELU_TANH_GRAD;
    if (gelu && !cuda_rounded_products(g->dtype)) return false;
    return ((uintptr_t)g->bias | (uintptr_t)g->aux | (uintptr_t)g->sums) % 16 == 0 && !(g->aux && g->n % 8);
}

/* A convolution of `dims` (2 or 3) spatial dims, out = in * filter, in one of its three directions: the
 * operand that a direction names is written, as result + beta · what it was. Spatial sizes are the last
 * `dims` of three; pad stands on both sides. in is [batch, in_channels, …], filter [out_channels,
 * in_channels / groups, …], out [batch, out_channels, …], contiguous, or all three with their channels last
 * in memory. Pointers are aligned to 16 bytes. */
enum cuda_conv_direction { CUDA_CONV_TO_OUT, CUDA_CONV_TO_IN, CUDA_CONV_BACKWARD_WEIGHTS };
struct cuda_conv {
    cuda_conv_direction direction;
    proa_dtype dtype;
    int dims;
    bool channels_last;
    int64_t batch, groups, in_channels, out_channels;
    int64_t in[3], out[3], kernel[3], stride[3], dilation[3], pad[3];
    void *at_in, *at_filter, *at_out;
    double beta;
};
/* Whether cuDNN (or its stand-in) is available. */
bool cuda_library_has_conv();
/* Runs a convolution with deterministic algorithms only, so results are bitwise reproducible. PROA_DECLINED,
 * without an error: the library has no algorithm for it, perhaps because of channels_last. */
proa_status cuda_library_conv(cuda_context *c, const cuda_conv *v);

#endif
