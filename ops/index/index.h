/* Checks and result shapes that the index ops share. May use core. */
#ifndef PROA_OPS_INDEX_H
#define PROA_OPS_INDEX_H

#include "core/tensor.h"

/* proa__axis for ops that take one axis (indexing, scans, diagonals): OUT_OF_RANGE for another than x
 * has. Reductions, which take lists of axes, say INVALID_ARGUMENT. */
proa_status proa__single_axis(const char *who, const char *arg, int64_t axis, int ndim, int *to);
/* INVALID_ARGUMENT unless index is int32 or int64. */
proa_status proa__check_index_dtype(const char *who, const char *arg, const proa_tensor *index);
/* Shape of gather_nd's result for `index` in a tensor of `shape`: leading dims of index, then the axes behind
 * those that a point names. */
proa_status proa__points_shape(const char *who, const proa_tensor *index, int ndim, const int64_t *shape,
                               proa_meta *m);
/* INVALID_ARGUMENT unless `values` has the shape that gather_nd would give for `index` in a tensor of
 * `shape`. */
proa_status proa__check_points(const char *who, const char *arg, const proa_tensor *values,
                               const proa_tensor *index, int ndim, const int64_t *shape);
/* Result shape of take_along_axis and put_along_axis: that of indices; with `broadcast`, dims other than the
 * axis are broadcast with arr's. */
proa_status proa__along_shape(const char *who, const proa_tensor *arr, const proa_tensor *indices,
                              int64_t axis, bool broadcast, proa_meta *m);
/* Broadcasts m's shape with t's, in place. */
proa_status proa__broadcast_meta(const char *who, const char *arg, const proa_tensor *t, proa_meta *m);
#endif
