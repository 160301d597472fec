/* Range check of int32 and int64 index tensors, and the [outer, length, inner] view of a tensor around an
 * axis. For kernel files (static functions); may use core. */
#ifndef PROA_OPS_INDICES_H
#define PROA_OPS_INDICES_H

#include "ops/ints.h"

#include <stdatomic.h>

/* Entry i of a contiguous int32 or int64 tensor. */
static inline int64_t index_at(const proa_tensor *t, int64_t i)
{
    return t->dtype == PROA_I32 ? ((const int32_t *)(const void *)t->data)[i]
                                : ((const int64_t *)(const void *)t->data)[i];
}

typedef struct index_range {
    const proa_tensor *t;
    int64_t limit;
    atomic_bool bad;
} index_range;

static __attribute__((unused)) void index_range_part(int64_t begin, int64_t end, void *context)
{
    index_range *r = context;
    uint64_t limit = (uint64_t)r->limit, bad = 0;
    if (r->t->dtype == PROA_I32) {
        const int32_t *v = (const int32_t *)(const void *)r->t->data;
        for (int64_t i = begin; i < end; i++) bad |= (uint64_t)((uint64_t)(int64_t)v[i] >= limit);
    } else {
        const int64_t *v = (const int64_t *)(const void *)r->t->data;
        for (int64_t i = begin; i < end; i++) bad |= (uint64_t)((uint64_t)v[i] >= limit);
    }
    if (bad) atomic_store(&r->bad, true);
}

/* OUT_OF_RANGE unless every entry lies in [0, limit). */
static __attribute__((unused)) proa_status check_indices(const char *who, const char *arg,
                                                         const proa_tensor *t, int64_t limit)
{
    index_range r = {t, limit, false};
    proa__parallel(t->numel, 1 << 16, index_range_part, &r);
    if (!atomic_load(&r.bad)) return PROA_OK;
    for (int64_t i = 0; i < t->numel; i++) {
        int64_t v = index_at(t, i);
        if (v < 0 || v >= limit)
            return OP_FAIL(who, OUT_OF_RANGE, arg, "entry %lld is %lld; expected 0 to %lld", (long long)i,
                           (long long)v, (long long)limit - 1);
    }
    return PROA_OK;
}

/* A row-major tensor viewed as [outer, length, inner] around one axis. */
typedef struct around {
    int64_t outer, length, inner;
} around;

static __attribute__((unused)) around around_axis(const proa_tensor *t, int axis)
{
    around r = {1, t->ndim ? t->shape[axis] : 1, 1};
    for (int i = 0; i < axis; i++) r.outer *= t->shape[i];
    for (int i = axis + 1; i < t->ndim; i++) r.inner *= t->shape[i];
    return r;
}

/* Minimum number of items per thread when each item moves `bytes` bytes. */
static inline int64_t grain_for(int64_t bytes)
{
    return bytes >= 1 << 16 ? 1 : (1 << 16) / (bytes < 1 ? 1 : bytes) + 1;
}

/* memcpy with a constant size in the common cases. */
static inline void copy_item(char *d, const char *s, int64_t bytes)
{
    switch (bytes) {
    case 1: *d = *s; break;
    case 2: memcpy(d, s, 2); break;
    case 4: memcpy(d, s, 4); break;
    case 8: memcpy(d, s, 8); break;
    case 16: memcpy(d, s, 16); break;
    default: memcpy(d, s, (size_t)bytes); break;
    }
}

#endif
