/* Helpers of convolutions, pooling and other ops over images: whether a data format is channels-last, and
 * checked attributes with one value per spatial dim. May use core. */
#ifndef PROA_OPS_WINDOWS_H
#define PROA_OPS_WINDOWS_H

#include "core/tensor.h"

#include <proa/ops/types.h>

/* Name of an op that exists for ranks 1 to 3 (`ranks:` of the table), from its text before and after the
 * rank. */
#define PROA__OF_RANK(rank, before, after) \
    (((const char *const[]){before "1d" after, before "2d" after, before "3d" after})[(rank)-1])
/* Number of spatial dims of a batch of images [N, C, …]. */
static inline int proa__spatial_rank(const proa_tensor *x) { return x->ndim - 2; }

static inline bool proa__channels_last(proa_data_format f)
{
    return f == PROA_DATA_FORMAT_NHWC || f == PROA_DATA_FORMAT_NLC || f == PROA_DATA_FORMAT_NDHWC;
}

/* Reads argument `name` of `op`, one value ≥ `low` per spatial dim, into the last `dims` entries of to[3]. */
static inline proa_status proa__window_values(const char *op, const char *name, const proa_ints *v, int dims,
                                              int64_t low, int64_t *to)
{
    if (v->count != dims)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), name,
                             "must have %d values, one a spatial dim, got %lld", dims, (long long)v->count);
    for (int i = 0; i < dims; i++) {
        if (v->at[i] < low || v->at[i] > INT32_MAX)
            return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), name,
                                 "has value %lld; expected at least %lld", (long long)v->at[i],
                                 (long long)low);
        to[3 - dims + i] = v->at[i];
    }
    return PROA_OK;
}

#endif
