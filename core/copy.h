/* Strided copies between tensors of one dtype, on any device: what the run door, views and the copying
 * ops share. */
#ifndef PROA_CORE_COPY_H
#define PROA_CORE_COPY_H

#include "core/tensor.h"

#include <proa/device.h>

/* Copies every element of src to the same place of dst: equal shapes and dtypes, any strides, no overlap
 * (unless both are the very same elements). */
proa_status proa__copy(proa_tensor *dst, const proa_tensor *src);
/* The same copy in the form that devices take, dims merged. */
void proa__copy_describe(proa_strided_copy *c, const proa_tensor *dst, const proa_tensor *src);
/* t itself if contiguous, else a new contiguous copy. */
proa_tensor *proa__contiguous(proa_tensor *t);

#endif
