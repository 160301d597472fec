/* Internal interface of datasets, for the loader and the readers of CSV, IDX and text files. Core only. */
#ifndef PROA_IO_DATASET_H
#define PROA_IO_DATASET_H

#include "core/internal.h"
#include "core/tensor.h"

#include <proa/data.h>

struct proa_dataset {
    proa_dataset_desc desc;
};

/* Makes the batch of n samples: d->fields new tensors in `to`. */
proa_status proa__dataset_batch(proa_dataset *d, const int64_t *indices, int64_t n, proa_tensor **to);
/* A dataset whose sample i is row i of each of n tensors, which it keeps. Field 0 is multiplied by `scale`,
 * converted to `dtype` (PROA_NODTYPE: not converted) and shaped to `shape` behind the batch dim (count 0: not
 * reshaped). */
proa_dataset *proa__rows_dataset(proa_tensor *const *fields, int n, proa_ints shape, proa_dtype dtype,
                                 double scale);

#endif
