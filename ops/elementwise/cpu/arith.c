/* CPU kernels of binary arithmetic, generated from the scalar formulas, and of where and atan2. May use core
 * only. */
#define PROA_FORMULAS_ARITH 1
#include "ops/elementwise/complex.h"
#include "ops/elementwise/inner_loops.h"

#include "formulas.inc"

/* where: elements are moved, so rows exist by size. Both are read and one is kept, which takes no masked
 * loads. */
#define WHERE_ROW(name, T)                                                              \
    static inline T name##_of(uint8_t c, T x, T y) { return c ? x : y; }                \
    static void name(char *const *p, int64_t n, const void *args)                       \
    {                                                                                   \
        (void)args;                                                                     \
        T *out = (T *)(void *)p[0];                                                     \
        const uint8_t *c = (const uint8_t *)p[1];                                       \
        const T *x = (const T *)(const void *)p[2], *y = (const T *)(const void *)p[3]; \
        PROA_ROW_LOOP out[i] = name##_of(c[i], x[i], y[i]);                             \
    }
WHERE_ROW(where_1, uint8_t)
WHERE_ROW(where_2, uint16_t)
WHERE_ROW(where_4, uint32_t)
WHERE_ROW(where_8, uint64_t)
WHERE_ROW(where_16, proa_pair64)

PROA_KERNEL(where_cpu, where)
{
    proa_dtype d = (proa_dtype)a->out->dtype;
    size_t size = proa_dtype_size(d);
    proa_row row = size == 1   ? where_1
                   : size == 2 ? where_2
                   : size == 4 ? where_4
                   : size == 8 ? where_8
                               : where_16;
    proa_map map = {
        .row = row, .n = 4, .tensor = {a->out, a->condition, a->x, a->y}, .as = {d, PROA_BOOL, d, d}};
    return proa__map_run(&map);
}

/* atan2: integers compute in double. */
#define ATAN2_ROW(D)                                                       \
    static void angle_row_##D(char *const *p, int64_t n, const void *args) \
    {                                                                      \
        (void)args;                                                        \
        proa_c_##D *out = (proa_c_##D *)(void *)p[0];                      \
        const proa_c_##D *x = (const proa_c_##D *)(const void *)p[1];      \
        const proa_c_##D *y = (const proa_c_##D *)(const void *)p[2];      \
        PROA_ROW_LOOP out[i] = atan2_##D(x[i], y[i]);                      \
    }
ATAN2_ROW(F32)
ATAN2_ROW(F64)

PROA_KERNEL(atan2_cpu, atan2)
{
    bool wide = a->out->dtype == PROA_F64;
    proa_dtype d = wide ? PROA_F64 : PROA_F32;
    proa_map map = {
        .row = wide ? angle_row_F64 : angle_row_F32, .n = 3, .tensor = {a->out, a->x, a->y}, .as = {d, d, d}};
    return proa__map_run(&map);
}
