/* Rounds floats to the integers of INT8 results. For kernel files; needs the C library alone. */
#ifndef PROA_OPS_INT8_ROUNDING_H
#define PROA_OPS_INT8_ROUNDING_H

#include <math.h>
#include <stdint.h>

typedef struct rounding {
    float scale, low, high;
} rounding;

/* x · scale to the nearest integer from low to high, halves to even. A NaN becomes `low`. */
static inline int32_t rounded(float x, rounding r)
{
    float v = x * r.scale;
    v = v > r.low ? v : r.low;
    return (int32_t)rintf(v < r.high ? v : r.high);
}

#endif
