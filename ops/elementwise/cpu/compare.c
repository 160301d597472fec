/* CPU kernels of comparisons, logical and bitwise ops, generated from the scalar formulas. May use core
 * only. */
#define PROA_FORMULAS_COMPARE 1
#include "ops/elementwise/complex.h"
#include "ops/elementwise/inner_loops.h"

#include "formulas.inc"

/* "Not" is logical for bool and bitwise for integers, so it has a row of its own. */
#define INVERT_ROW(name, T, expression)                           \
    static void name(char *const *p, int64_t n, const void *args) \
    {                                                             \
        (void)args;                                               \
        T *out = (T *)(void *)p[0];                               \
        const T *x = (const T *)(const void *)p[1];               \
        PROA_ROW_LOOP out[i] = (T)(expression);                   \
    }
INVERT_ROW(invert_bool, uint8_t, x[i] == 0)
INVERT_ROW(invert_1, uint8_t, ~x[i])
INVERT_ROW(invert_8, uint64_t, ~x[i])

PROA_KERNEL(bitwise_not_cpu, bitwise_not)
{
    proa_dtype d = (proa_dtype)a->out->dtype, as = proa_dtype_size(d) == 1 ? d : PROA_I64;
    proa_row row = d == PROA_BOOL ? invert_bool : as == PROA_I64 ? invert_8 : invert_1;
    proa_map map = {.row = row, .n = 2, .tensor = {a->out, a->x}, .as = {as, as}};
    return proa__map_run(&map);
}
