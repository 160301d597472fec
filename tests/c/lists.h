/* Short lists of tensors, which belong to the open scope, and a tensor of reproducible numbers. */
#ifndef PROA_TESTS_LISTS_H
#define PROA_TESTS_LISTS_H

#include <proa.h>

/* The first n of two tensors; none where there is no memory. */
static inline proa_tensors list_of(int64_t n, proa_tensor *a, proa_tensor *b)
{
    proa_tensors list = {n, proa_scope_alloc(2 * sizeof(proa_tensor *))};
    if (!list.at) return (proa_tensors){0, NULL};
    list.at[0] = a, list.at[1] = b;
    return list;
}

static inline proa_tensors one(proa_tensor *t) { return list_of(1, t, NULL); }

/* Numbers from -0.5 to 0.5 that rise and fall, others for each seed; NULL where there is no memory. */
static inline proa_tensor *ramp(proa_ints shape, int seed)
{
    proa_tensor *t = proa_empty(shape, PROA_F32);
    for (int64_t i = 0; t && i < proa_numel(t); i++)
        ((float *)proa_data(t))[i] = (float)((i * 37 + seed * 17) % 101) / 101 - 0.5f;
    return t;
}

#endif
