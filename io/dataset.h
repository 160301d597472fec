/* Inside of datasets, shared by loader and readers. Core only. */
#ifndef PROA_IO_DATASET_H
#define PROA_IO_DATASET_H

#include "core/internal.h"
#include "core/tensor.h"

#include <proa/data.h>

struct proa_dataset {
    proa_dataset_desc desc;
};

/* Puts `fields` new tensors of the batch into `to`. */
proa_status proa__dataset_batch(proa_dataset *d, const int64_t *indices, int64_t n, proa_tensor **to);
/* Slices of kept tensors; field 0 becomes `dtype` (PROA_NODTYPE: stays) times `scale`, with `shape` behind
 * the first dim (count 0: stays). */
proa_dataset *proa__rows_dataset(proa_tensor *const *fields, int n, proa_ints shape, proa_dtype dtype,
                                 double scale);

#endif
