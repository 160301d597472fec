/* Checks that the index ops share. May use core. */
#ifndef PROA_OPS_INDEX_H
#define PROA_OPS_INDEX_H

#include "core/tensor.h"

/* INVALID_ARGUMENT unless int32 or int64. */
proa_status proa__check_index_dtype(const char *who, const char *arg, const proa_tensor *index);
/* values must have the shape of what the points of index name in a tensor of `shape`. */
proa_status proa__check_points(const char *who, const char *arg, const proa_tensor *values,
                               const proa_tensor *index, int ndim, const int64_t *shape);
/* Shape of take/put along an axis: indices, with the other dims broadcast with arr's if asked. */
proa_status proa__along_shape(const char *who, const proa_tensor *arr, const proa_tensor *indices,
                              int64_t axis, bool broadcast, proa_meta *m);
/* m's shape broadcast with t's. */
proa_status proa__broadcast_meta(const char *who, const char *arg, const proa_tensor *t, proa_meta *m);
#endif
