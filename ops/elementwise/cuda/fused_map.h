/* The only argument of a fused chain's kernels: shape, addresses and strides of the operands, filled by the
 * host. Compiled as C, C++ and by NVRTC: needs <stdint.h> alone. */
#ifndef PROA_OPS_ELEMENTWISE_CUDA_FUSED_MAP_H
#define PROA_OPS_ELEMENTWISE_CUDA_FUSED_MAP_H

#include <stdint.h>

enum { FUSED_OPERANDS = 12, FUSED_DIMS = 9 };

typedef struct fused_operand {
    char *data;
    int64_t strides[FUSED_DIMS]; /* bytes; 0 where broadcast */
} fused_operand;

/* Outputs first, then inputs. Dims are merged; there is at least one. */
typedef struct fused_map {
    int64_t ndim, numel, shape[FUSED_DIMS];
    fused_operand at[FUSED_OPERANDS];
} fused_map;

#endif
