/* CPU kernels of scale, clip and pow by numbers (each but scale's bias may come from a one-element tensor),
 * and of powers of tensors. May use core only. */
#define PROA_FORMULAS_POWER 1
#include "ops/elementwise/complex.h"
#include "ops/elementwise/numbers.h"
#include "ops/elementwise/inner_loops.h"
#include "ops/scalar.h"

#include "formulas.inc"

#define NUMBERS_HEAD(name, D)                                           \
    static void name##_##D(char *const *p, int64_t n, const void *args) \
    {                                                                   \
        typedef proa_c_##D T;                                           \
        const proa_numbers *v = args;                                   \
        T first, second;                                                \
        memcpy(&first, v->a, sizeof first);                             \
        memcpy(&second, v->b, sizeof second);                           \
        T *out = (T *)(void *)p[0];                                     \
        const T *x = (const T *)(const void *)p[1];

#define SCALE_ROW(D, MUL, ADD)                                \
    NUMBERS_HEAD(scale_row, D)                                \
    if (v->flag) {                                            \
        PROA_ROW_LOOP out[i] = ADD(MUL(x[i], first), second); \
    } else {                                                  \
        PROA_ROW_LOOP out[i] = MUL(ADD(x[i], second), first); \
    }                                                         \
    }
SCALE_ROW(I32, multiply_I32, add_I32)
SCALE_ROW(I64, multiply_I64, add_I64)
SCALE_ROW(F32, multiply_F32, add_F32)
SCALE_ROW(F64, multiply_F64, add_F64)
SCALE_ROW(C64, multiply_C64, add_C64)
SCALE_ROW(C128, multiply_C128, add_C128)
const proa_rows proa__scale_rows = {{[PROA_I32] = scale_row_I32,
                                     [PROA_I64] = scale_row_I64,
                                     [PROA_F32] = scale_row_F32,
                                     [PROA_F64] = scale_row_F64,
                                     [PROA_C64] = scale_row_C64,
                                     [PROA_C128] = scale_row_C128},
                                    PROA_ROW_OUT_SAME,
                                    NULL,
                                    0};

/* The dtype in which the row for d computes. */
static proa_dtype row_dtype(proa_dtype d)
{
    if (d < PROA_I32) return PROA_I32;
    return d == PROA_F16 || d == PROA_BF16 ? PROA_F32 : d;
}

void proa__scale_numbers(const proa_scale_args *a, proa_dtype d, proa_numbers *to)
{
    proa_scalar bias = {.kind = PROA_SCALAR_FLOAT, .f = a->bias};
    to->flag = a->bias_after_scale;
    proa__scalar_to(&a->scale, row_dtype(d), 1, to->a);
    proa__scalar_to(&bias, row_dtype(d), 0, to->b);
}

PROA_KERNEL(scale_cpu, scale)
{
    proa_numbers v;
    proa__scale_numbers(a, (proa_dtype)a->x->dtype, &v);
    proa_tensor *t[] = {a->out, a->x};
    return proa__map_rows(&proa__scale_rows, 2, t, &v);
}

/* NaN passes; where the limits cross, the upper one wins: min(max(x, low), high). */
#define CLIP_ROW(D)                        \
    NUMBERS_HEAD(clip_row, D)              \
    PROA_ROW_LOOP                          \
    {                                      \
        T r = x[i] < first ? first : x[i]; \
        out[i] = r > second ? second : r;  \
    }                                      \
    }
CLIP_ROW(I32)
CLIP_ROW(I64)
CLIP_ROW(F32)
CLIP_ROW(F64)
const proa_rows proa__clip_rows = {{[PROA_I32] = clip_row_I32,
                                    [PROA_I64] = clip_row_I64,
                                    [PROA_F32] = clip_row_F32,
                                    [PROA_F64] = clip_row_F64},
                                   PROA_ROW_OUT_SAME,
                                   NULL,
                                   0};

/* A limit that is not given, or lies outside an integer's range, is the range's end. */
static void clip_limit(const proa_scalar *s, proa_dtype d, bool upper, void *to)
{
    static const int32_t ends_32[] = {INT32_MIN, INT32_MAX};
    static const int64_t ends_64[] = {INT64_MIN, INT64_MAX};
    double end = upper ? INFINITY : -INFINITY, value = end;
    if (s->kind == PROA_SCALAR_INT || s->kind == PROA_SCALAR_BOOL) value = (double)s->i;
    else if (s->kind == PROA_SCALAR_FLOAT) value = s->f;
    else if (s->kind == PROA_SCALAR_TENSOR) proa__scalar_to(s, PROA_F64, 0, &value);
    if (d == PROA_I32 && !(fabs(value) < 0x1p31)) memcpy(to, &ends_32[value > 0], 4);
    else if (d == PROA_I64 && !(fabs(value) < 0x1p63)) memcpy(to, &ends_64[value > 0], 8);
    else proa__scalar_to(s, d, end, to);
}

void proa__clip_numbers(const proa_clip_args *a, proa_dtype d, proa_numbers *to)
{
    clip_limit(&a->min, row_dtype(d), false, to->a);
    clip_limit(&a->max, row_dtype(d), true, to->b);
}

PROA_KERNEL(clip_cpu, clip)
{
    proa_numbers v;
    proa__clip_numbers(a, (proa_dtype)a->x->dtype, &v);
    proa_tensor *t[] = {a->out, a->x};
    return proa__map_rows(&proa__clip_rows, 2, t, &v);
}

/* Frequent exponents have loops of their own; the first number is the exponent. */
#define POWER_ROW(D)                                   \
    NUMBERS_HEAD(power_row, D)                         \
    (void)second;                                      \
    if (first == 2) {                                  \
        PROA_ROW_LOOP out[i] = x[i] * x[i];            \
    } else if (first == 3) {                           \
        PROA_ROW_LOOP out[i] = x[i] * x[i] * x[i];     \
    } else if (first == (T)0.5) {                      \
        PROA_ROW_LOOP out[i] = sqrt_##D(x[i]);         \
    } else if (first == -1) {                          \
        PROA_ROW_LOOP out[i] = 1 / x[i];               \
    } else {                                           \
        PROA_ROW_LOOP out[i] = m_pow_##D(x[i], first); \
    }                                                  \
    }
#define INTEGER_POWER_ROW(D)                                 \
    NUMBERS_HEAD(power_row, D)                               \
    (void)second;                                            \
    PROA_ROW_LOOP out[i] = elementwise_pow_##D(x[i], first); \
    }
INTEGER_POWER_ROW(I32)
INTEGER_POWER_ROW(I64)
POWER_ROW(F32)
POWER_ROW(F64)
const proa_rows proa__power_rows = {{[PROA_I32] = power_row_I32,
                                     [PROA_I64] = power_row_I64,
                                     [PROA_F32] = power_row_F32,
                                     [PROA_F64] = power_row_F64},
                                    PROA_ROW_OUT_SAME,
                                    NULL,
                                    0};

void proa__power_numbers(const proa_pow_args *a, proa_dtype d, proa_numbers *to)
{
    memset(to->b, 0, sizeof to->b);
    proa__scalar_to(&a->y, row_dtype(d), 1, to->a);
}

PROA_KERNEL(pow_cpu, pow)
{
    proa_numbers v;
    proa__power_numbers(a, (proa_dtype)a->x->dtype, &v);
    proa_tensor *t[] = {a->out, a->x};
    return proa__map_rows(&proa__power_rows, 2, t, &v);
}
