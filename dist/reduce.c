/* Element-wise sum, average, product, minimum and maximum of several buffers, by dtype. May use core. */
#include "dist/reduce.h"

#include "core/half.h"
#include "core/internal.h"

enum { BLOCK = 1024 }; /* elements: partial sums stay in the L1 cache */

#define ADD(a, b) ((a) + (b))
#define MUL(a, b) ((a) * (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MIN(a, b) ((a) < (b) ? (a) : (b))

/* Defines a function acc[i] = acc[i] ⊕ x[i] for type T, computed in type A */
#define STEP(name, T, A, OP)                                                \
    static void name(void *acc, const void *x, size_t n)                    \
    {                                                                       \
        T *to = acc;                                                        \
        const T *from = x;                                                  \
        for (size_t i = 0; i < n; i++) to[i] = (T)OP((A)to[i], (A)from[i]); \
    }
#define STEPS(suffix, T, A)       \
    STEP(sum_##suffix, T, A, ADD) \
    STEP(max_##suffix, T, T, MAX) \
    STEP(min_##suffix, T, T, MIN) \
    STEP(prod_##suffix, T, A, MUL)

/* unsigned arithmetic: integer sums and products wrap around */
STEPS(u8, uint8_t, uint32_t)
STEPS(i8, int8_t, uint32_t)
STEPS(i16, int16_t, uint32_t)
STEPS(i32, int32_t, uint32_t)
STEPS(i64, int64_t, uint64_t)
STEPS(f32, float, float)
STEPS(f64, double, double)

typedef void (*step_fn)(void *acc, const void *x, size_t n);
#define ROW(suffix)                                                           \
    {                                                                         \
        sum_##suffix, max_##suffix, min_##suffix, prod_##suffix, sum_##suffix \
    }
static const step_fn steps[PROA_DTYPE_COUNT][5] = {
    [PROA_BOOL] = {max_u8, max_u8, min_u8, min_u8, NULL},
    [PROA_U8] = ROW(u8),
    [PROA_I8] = ROW(i8),
    [PROA_I16] = ROW(i16),
    [PROA_I32] = ROW(i32),
    [PROA_I64] = ROW(i64),
    [PROA_F16] = ROW(f32),
    [PROA_BF16] = ROW(f32),
    [PROA_F32] = ROW(f32),
    [PROA_F64] = ROW(f64),
    [PROA_C64] = {sum_f32, NULL, NULL, NULL, sum_f32},
    [PROA_C128] = {sum_f64, NULL, NULL, NULL, sum_f64},
};

proa_status proa__reduce_check(const char *what, proa_dtype dtype, proa_reduce_type op)
{
    static const char *const names[] = {"SUM", "MAX", "MIN", "PROD", "AVG"};
    if (steps[dtype][op] && (op != PROA_REDUCE_TYPE_AVG || dtype >= PROA_F16)) return PROA_OK;
    return proa_fail(PROA_ERR_UNSUPPORTED, "%s: op: %s is not defined for %s; cast the tensor%s", what,
                     names[op], proa_dtype_name(dtype), op == PROA_REDUCE_TYPE_AVG ? ", or use SUM" : "");
}

void proa__half_to_float(float *out, const void *in, size_t n, proa_dtype half)
{
    const uint16_t *x = in;
    for (size_t i = 0; i < n; i++)
        out[i] = half == PROA_BF16 ? proa__bf16_to_f32(x[i]) : proa__f16_to_f32(x[i]);
}

void proa__float_to_half(void *out, const float *in, size_t n, proa_dtype half)
{
    uint16_t *to = out;
    for (size_t i = 0; i < n; i++)
        to[i] = half == PROA_BF16 ? proa__f32_to_bf16(in[i]) : proa__f32_to_f16(in[i]);
}

static void reduce_half(char *out, const void *const *in, int n, size_t count, proa_dtype half, step_fn step,
                        float divisor)
{
    float sum[BLOCK], other[BLOCK];
    for (size_t at = 0; at < count; at += BLOCK) {
        size_t m = count - at < BLOCK ? count - at : BLOCK;
        proa__half_to_float(sum, (const char *)in[0] + 2 * at, m, half);
        for (int k = 1; k < n; k++) {
            proa__half_to_float(other, (const char *)in[k] + 2 * at, m, half);
            step(sum, other, m);
        }
        if (divisor != 1)
            for (size_t i = 0; i < m; i++) sum[i] /= divisor;
        proa__float_to_half(out + 2 * at, sum, m, half);
    }
}

void proa__reduce_buffers(void *out, const void *const *in, int n, size_t count, proa_dtype dtype,
                          proa_reduce_type op, int ranks)
{
    step_fn step = steps[dtype][op];
    int divisor = op == PROA_REDUCE_TYPE_AVG ? ranks : 1;
    if (dtype == PROA_F16 || dtype == PROA_BF16) {
        reduce_half(out, in, n, count, dtype, step, (float)divisor);
        return;
    }
    bool single = dtype == PROA_F32 || dtype == PROA_C64;
    if (dtype == PROA_C64 || dtype == PROA_C128) {
        count *= 2;
        dtype = single ? PROA_F32 : PROA_F64;
    }
    size_t item = proa_dtype_size(dtype);
    for (size_t at = 0; at < count; at += BLOCK) {
        size_t m = count - at < BLOCK ? count - at : BLOCK;
        char *to = (char *)out + at * item;
        if (to != (const char *)in[0] + at * item) memcpy(to, (const char *)in[0] + at * item, m * item);
        for (int k = 1; k < n; k++) step(to, (const char *)in[k] + at * item, m);
        if (divisor == 1) continue;
        if (single)
            for (size_t i = 0; i < m; i++) ((float *)(void *)to)[i] /= (float)divisor;
        else
            for (size_t i = 0; i < m; i++) ((double *)(void *)to)[i] /= divisor;
    }
}
