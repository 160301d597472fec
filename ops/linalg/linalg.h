/* Sizes, batch indices and right-hand sides (vectors or matrices) of linear algebra ops, shared by inference,
 * rules and kernels. May use core and the ops. */
#ifndef PROA_OPS_LINALG_H
#define PROA_OPS_LINALG_H

#include "core/internal.h"
#include "core/tensor.h"
#include "impl/linalg.h"

static inline __attribute__((unused)) int64_t linalg_rows(const proa_tensor *x)
{
    return x->shape[x->ndim - 2];
}
static inline __attribute__((unused)) int64_t linalg_columns(const proa_tensor *x)
{
    return x->shape[x->ndim - 1];
}
/* The smaller dim; −1 when one is unknown. */
static inline __attribute__((unused)) int64_t linalg_least(int64_t m, int64_t n)
{
    return m < 0 || n < 0 ? -1 : m < n ? m : n;
}

/* solve: true if y is a batch of vectors: it has one dim, or the dims of x without the last. */
static inline __attribute__((unused)) bool linalg_is_vector(const proa_tensor *x, const proa_tensor *y)
{
    if (y->ndim == 1) return true;
    bool same = y->ndim == x->ndim - 1;
    for (int i = 0; same && i < y->ndim; i++)
        same = x->shape[i] == y->shape[i] || x->shape[i] < 0 || y->shape[i] < 0;
    return same;
}

/* Number of matrices (or vectors) in t; the last `core` dims are one of them. */
static inline __attribute__((unused)) int64_t linalg_count(const proa_tensor *t, int core)
{
    int64_t n = 1;
    for (int i = 0; i < t->ndim - core; i++) n *= t->shape[i];
    return n;
}

/* Index in t of the matrix that matrix `index` of out is computed from; batch dims broadcast. */
static inline __attribute__((unused)) int64_t linalg_at(const proa_tensor *t, int core,
                                                        const proa_tensor *out, int out_core, int64_t index)
{
    int64_t at = 0, step = 1;
    int lead = (out->ndim - out_core) - (t->ndim - core);
    for (int i = out->ndim - out_core - 1; i >= lead && i >= 0; i--) {
        int64_t where = index % out->shape[i], dim = t->shape[i - lead];
        index /= out->shape[i];
        if (dim != 1) at += where * step;
        step *= dim;
    }
    return at;
}

#endif
