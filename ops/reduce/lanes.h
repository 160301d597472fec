/* Vectors of sixteen float32 for reductions over contiguous rows. For kernel files; needs nothing but C. */
#ifndef PROA_OPS_REDUCE_LANES_H
#define PROA_OPS_REDUCE_LANES_H

#include <stdint.h>

typedef float f32_lanes __attribute__((vector_size(64), aligned(4), may_alias));
typedef int32_t i32_lanes __attribute__((vector_size(64)));
typedef double f64_lanes __attribute__((vector_size(64)));
typedef float f32_half __attribute__((vector_size(32), aligned(4), may_alias));
enum { LANES = 16, EIGHT = 8 };

#define LANES_AT(x) (*(const f32_lanes *)(const void *)(x))
#define HALF_AT(x) (*(const f32_half *)(const void *)(x))

static inline __attribute__((unused)) void lanes_add(f32_lanes *a, const f32_lanes *b) { *a += *b; }
/* NaN wins. */
static inline __attribute__((unused)) void lanes_max(f32_lanes *a, const f32_lanes *b)
{
    i32_lanes take = (*b > *a) | (*b != *b);
    *a = (f32_lanes)((take & (i32_lanes)*b) | (~take & (i32_lanes)*a));
}
static inline __attribute__((unused)) void lanes_min(f32_lanes *a, const f32_lanes *b)
{
    i32_lanes take = (*b < *a) | (*b != *b);
    *a = (f32_lanes)((take & (i32_lanes)*b) | (~take & (i32_lanes)*a));
}

/* The sixteen lanes, folded. Vectors pass by address: by value their place depends on the CPU level. */
static inline __attribute__((always_inline, unused)) float lanes_fold(const f32_lanes *lanes,
                                                                      void (*fold)(f32_lanes *,
                                                                                   const f32_lanes *))
{
    f32_lanes v = *lanes;
    f32_lanes w = __builtin_shufflevector(v, v, 8, 9, 10, 11, 12, 13, 14, 15, 0, 1, 2, 3, 4, 5, 6, 7);
    fold(&v, &w);
    w = __builtin_shufflevector(v, v, 4, 5, 6, 7, 0, 1, 2, 3, 12, 13, 14, 15, 8, 9, 10, 11);
    fold(&v, &w);
    w = __builtin_shufflevector(v, v, 2, 3, 0, 1, 6, 7, 4, 5, 10, 11, 8, 9, 14, 15, 12, 13);
    fold(&v, &w);
    w = __builtin_shufflevector(v, v, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
    fold(&v, &w);
    return v[0];
}

/* Loads stay in the order written: hardware that fetches ahead follows addresses that rise. */
#define LANES_ORDER __asm__ volatile("" ::: "memory")

/* v: eight vectors `step` elements apart, folded. */
#define LANES_TREE(v, x, step, FOLD)                                                \
    f32_lanes v = LANES_AT(x), v##1 = LANES_AT((x) + (step));                       \
    LANES_ORDER;                                                                    \
    f32_lanes v##2 = LANES_AT((x) + 2 * (step)), v##3 = LANES_AT((x) + 3 * (step)); \
    LANES_ORDER;                                                                    \
    f32_lanes v##4 = LANES_AT((x) + 4 * (step)), v##5 = LANES_AT((x) + 5 * (step)); \
    LANES_ORDER;                                                                    \
    f32_lanes v##6 = LANES_AT((x) + 6 * (step)), v##7 = LANES_AT((x) + 7 * (step)); \
    LANES_ORDER;                                                                    \
    FOLD(&v, &v##1), FOLD(&v##2, &v##3), FOLD(&v##4, &v##5), FOLD(&v##6, &v##7);    \
    FOLD(&v, &v##2), FOLD(&v##4, &v##6), FOLD(&v, &v##4)

#endif
