/* Division of a number below 2^31 by a divisor that the host knows, 1 to 2^31 − 1: a product and a shift
 * (Granlund and Montgomery, Division by Invariant Integers). Uses device.h alone. */
#ifndef PROA_CUDA_DIVISOR_H
#define PROA_CUDA_DIVISOR_H

#include "devices/cuda/device.h"

struct cuda_divisor {
    uint32_t by, factor, shift;
    /* The quotient; *rest becomes the remainder. */
    CUDA_MEMBER uint32_t split(uint32_t n, uint32_t *rest) const
    {
        uint32_t q = by == 1 ? n : (uint32_t)((uint64_t)n * factor >> 32) >> shift;
        *rest = n - q * by;
        return q;
    }
};
static inline cuda_divisor cuda_divisor_of(int64_t by)
{
    uint32_t bits = 1;
    while ((int64_t)1 << bits < by) bits++;
    uint64_t power = (uint64_t)1 << (31 + bits), n = (uint64_t)by;
    return {(uint32_t)n, (uint32_t)((power + n - 1) / n), bits - 1};
}

#endif
