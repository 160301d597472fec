/* Matrix products by cuBLASLt whose rows are not aligned as tensor cores want them. */
#ifndef PROA_OPS_MATMUL_CUDA_PADDED_H
#define PROA_OPS_MATMUL_CUDA_PADDED_H

#include "devices/cuda/library.h"

/* cuda_library_gemm. Where rows of an operand or of the result do not begin at multiples of 16 bytes and the
 * product is large, it goes through copies whose n, k and rows are padded with zeros: then the library
 * has kernels that are several times as fast. */
proa_status cuda_padded_gemm(cuda_context *c, const cuda_gemm *g);

#endif
