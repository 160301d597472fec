/* Padding for padding_algorithm SAME, shared by convolution and pooling on every device. Uses nothing. */
#ifndef PROA_OPS_PADDING_H
#define PROA_OPS_PADDING_H

#include <stdint.h>

/* Padding for ceil(size / stride) outputs; if the total is odd, `after` gets one more than `before`. */
static inline void proa__same_padding(int64_t size, int64_t kernel, int64_t stride, int64_t *before,
                                      int64_t *after)
{
    int64_t outputs = (size + stride - 1) / stride, total = (outputs - 1) * stride + kernel - size;
    if (total < 0) total = 0;
    *before = total / 2;
    *after = total - total / 2;
}

#endif
