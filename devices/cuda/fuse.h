/* Generator of the CUDA source for a fused elementwise chain: turns the chain's steps into the type that the
 * kernels of ops/elementwise/cuda/fused.h take. C. */
#ifndef PROA_CUDA_FUSE_H
#define PROA_CUDA_FUSE_H

#include <proa/op.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Names of the two kernels in the generated source. */
#define CUDA_FUSED_ANY "fused_any_kernel"
#define CUDA_FUSED_PACKED "fused_packed_kernel"

enum { CUDA_FUSE_BYTES = 16384 }; /* for the source of the longest chain */

/* Writes a chain's source to `to`. steps: fused_elementwise's; dtypes: floating, one an input.
 * PROA_DECLINED, without an error, for an op without a formula in device code. */
proa_status cuda_fuse(const proa_steps *steps, int n_inputs, const proa_dtype *dtypes,
                      char to[CUDA_FUSE_BYTES]);

/* Names of the ops that a chain may consist of, for tests; NULL ends the list. */
const char *const *cuda_fuse_ops(void);

#ifdef __cplusplus
}
#endif
#endif
