/* Describes a convolution to cuDNN from an op's attributes, for the GPU kernels of ops/conv. Uses
 * library.h. */
#ifndef PROA_OPS_CONV_CUDA_CONV_H
#define PROA_OPS_CONV_CUDA_CONV_H

#include "devices/cuda/library.h"

/* Attributes of the ops of the family; inference has checked them. */
struct conv_attributes {
    int dims;
    bool transposed;
    const proa_ints *stride, *padding, *dilation;
    int64_t groups;
    proa_padding_algorithm algorithm;
    proa_data_format format;
};
#define CONV_ATTRIBUTES(a, N, transposed)                                                                \
    {                                                                                                    \
        N, transposed, &(a)->stride, &(a)->padding, &(a)->dilation, (a)->groups, (a)->padding_algorithm, \
            (a)->data_format                                                                             \
    }

/* The operand that the direction names is written; bias may be NULL or absent. */
proa_status conv_run(cuda_context *c, cuda_conv_direction direction, const conv_attributes *a,
                     const proa_tensor *in, const proa_tensor *filter, const proa_tensor *out,
                     const proa_tensor *bias);

#endif
