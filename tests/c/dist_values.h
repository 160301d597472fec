/* Test data of collectives: small integers that ranks reduce, the expected results, and bytes that ranks
 * exchange. */
#ifndef PROA_TESTS_DIST_VALUES_H
#define PROA_TESTS_DIST_VALUES_H

#include "core/half.h"

#include <proa.h>

static inline float of(int rank, int64_t i) { return (float)((i * 7 + rank * 13) % 11 - 5); }

static inline void put(void *data, proa_dtype d, int64_t i, double v)
{
    switch (d) {
    case PROA_F16: ((uint16_t *)data)[i] = proa__f32_to_f16((float)v); break;
    case PROA_BF16: ((uint16_t *)data)[i] = proa__f32_to_bf16((float)v); break;
    case PROA_F32: ((float *)data)[i] = (float)v; break;
    case PROA_F64: ((double *)data)[i] = v; break;
    case PROA_I8: ((int8_t *)data)[i] = (int8_t)v; break;
    case PROA_U8: ((uint8_t *)data)[i] = (uint8_t)(int8_t)v; break;
    case PROA_I16: ((int16_t *)data)[i] = (int16_t)v; break;
    case PROA_I32: ((int32_t *)data)[i] = (int32_t)v; break;
    case PROA_BOOL: ((uint8_t *)data)[i] = v > 0; break;
    default: ((int64_t *)data)[i] = (int64_t)v; break;
    }
}

static inline double reduced(int size, int64_t i, proa_dtype d, proa_reduce_type op)
{
    double r = 0;
    for (int k = 0; k < size; k++) {
        double v = of(k, i);
        if (d == PROA_BOOL) v = v > 0;
        if (d == PROA_U8 && op != PROA_REDUCE_TYPE_SUM && op != PROA_REDUCE_TYPE_PROD) v = (uint8_t)(int8_t)v;
        if (k == 0) r = v;
        else if (op == PROA_REDUCE_TYPE_MAX) r = v > r ? v : r;
        else if (op == PROA_REDUCE_TYPE_MIN) r = v < r ? v : r;
        else if (op == PROA_REDUCE_TYPE_PROD) r *= v;
        else r += v;
    }
    if (d == PROA_BOOL) return r > 0;
    if (d == PROA_I8) return (int8_t)(int64_t)r;
    return op == PROA_REDUCE_TYPE_AVG ? r / size : r;
}

static inline uint8_t byte_of(int rank, size_t i) { return (uint8_t)(i * 31 + (size_t)rank * 101 + i / 251); }

static inline void fill_bytes(void *at, int rank, size_t n)
{
    for (size_t i = 0; i < n; i++) ((uint8_t *)at)[i] = byte_of(rank, i);
}

#endif
