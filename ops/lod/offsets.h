/* LoD offsets for CPU kernels, validated once and then read without checks, and sizes of rows. May use core
 * and kernels only. */
#ifndef PROA_OPS_LOD_OFFSETS_H
#define PROA_OPS_LOD_OFFSETS_H

#include "kernels/rowwise.h"

typedef struct offsets {
    const int64_t *at; /* n + 1 */
    int64_t n;         /* sequences */
} offsets;

/* t as offsets: from 0, never falling, and up to `rows` (−1: wherever they end). */
static inline __attribute__((unused)) proa_status offsets_of(const char *op, const char *name,
                                                             const proa_tensor *t, int64_t rows, offsets *to)
{
    *to = (offsets){(const int64_t *)(const void *)t->data, t->shape[0] - 1};
    bool ok = to->n >= 0 && to->at[0] == 0;
    for (int64_t i = 0; ok && i < to->n; i++) ok = to->at[i] <= to->at[i + 1];
    if (ok && (rows < 0 || to->at[to->n] == rows)) return PROA_OK;
    if (ok)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), name,
                             "end at %lld; expected the number of rows, %lld", (long long)to->at[to->n],
                             (long long)rows);
    return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), name,
                         "do not begin at 0 and rise; expected where each sequence begins and the last ends");
}

/* Bytes of one row (an entry along axis 0) of t. */
static inline __attribute__((unused)) size_t row_bytes(const proa_tensor *t)
{
    size_t bytes = proa_dtype_size((proa_dtype)t->dtype);
    for (int i = 1; i < t->ndim; i++) bytes *= (size_t)t->shape[i];
    return bytes;
}

static inline __attribute__((unused)) int64_t row_items(const proa_tensor *t)
{
    int64_t n = 1;
    for (int i = 1; i < t->ndim; i++) n *= t->shape[i];
    return n;
}

#endif
