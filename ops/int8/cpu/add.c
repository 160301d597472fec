/* CPU kernel of add_int8: the sum of two tensors of 8-bit integers, each with its own scale, with optional
 * ReLU, rounded to 8 bits or left in float32. Compiled once per CPU level; static functions and the kernel
 * only. */
#include "kernels/iterator.h"
#include "impl/int8.h"

#include <math.h>

typedef struct adding {
    float scale_x, scale_y, low, high;
} adding;

static inline float sum_of(float x, float y, const adding *a) { return x * a->scale_x + y * a->scale_y; }

static inline int32_t rounded_sum(float x, float y, const adding *a)
{
    float v = sum_of(x, y, a);
    v = v > a->low ? v : a->low;
    return (int32_t)rintf(v < a->high ? v : a->high);
}

static inline float positive_sum(float x, float y, const adding *a)
{
    float v = sum_of(x, y, a);
    return v > a->low ? v : a->low;
}

/* The row that adds TX and TY and stores the `result` as TO. */
#define ADDING_ROW(name, TX, TY, TO, result)                                               \
    static void name(char *const *p, int64_t n, const void *args)                          \
    {                                                                                      \
        const adding a = *(const adding *)args;                                            \
        const TX *restrict x = (const TX *)(const void *)p[1];                             \
        const TY *restrict y = (const TY *)(const void *)p[2];                             \
        TO *restrict out = (TO *)(void *)p[0];                                             \
        for (int64_t i = 0; i < n; i++) out[i] = (TO)result((float)x[i], (float)y[i], &a); \
    }
#define ADDING_ROWS(name, TX, TY)                             \
    ADDING_ROW(name##_signed, TX, TY, int8_t, rounded_sum)    \
    ADDING_ROW(name##_unsigned, TX, TY, uint8_t, rounded_sum) \
    ADDING_ROW(name##_float, TX, TY, float, sum_of)           \
    ADDING_ROW(name##_positive, TX, TY, float, positive_sum)
ADDING_ROWS(signed_signed, int8_t, int8_t)
ADDING_ROWS(signed_unsigned, int8_t, uint8_t)
ADDING_ROWS(unsigned_signed, uint8_t, int8_t)
ADDING_ROWS(unsigned_unsigned, uint8_t, uint8_t)

typedef void row(char *const *p, int64_t n, const void *args);

#define ROWS_OF(name)                                                 \
    {                                                                 \
        name##_signed, name##_unsigned, name##_float, name##_positive \
    }
static row *const rows[2][2][4] = {{ROWS_OF(signed_signed), ROWS_OF(signed_unsigned)},
                                   {ROWS_OF(unsigned_signed), ROWS_OF(unsigned_unsigned)}};

PROA_KERNEL(add_int8_cpu, add_int8)
{
    proa_dtype d = a->dtype, x = (proa_dtype)a->x->dtype, y = (proa_dtype)a->y->dtype;
    adding sum = {(float)a->scale_x, (float)a->scale_y, d == PROA_U8 || a->relu ? 0 : -128, (float)a->high};
    int to = d == PROA_I8 ? 0 : d == PROA_U8 ? 1 : a->relu ? 3 : 2;
    proa_map map = {.row = rows[x == PROA_U8][y == PROA_U8][to],
                    .n = 3,
                    .tensor = {a->out, a->x, a->y},
                    .as = {d, x, y},
                    .args = &sum};
    return proa__map_run(&map);
}
