/* Macros by which formulas.inc, generated from the op table, turns scalar formulas into inner loops and
 * kernels. A kernel file defines PROA_FORMULAS_<GROUP> and includes formulas.inc. May use kernels/iterator.h,
 * kernels/simd_activations.h and formulas.h. */
#ifndef PROA_OPS_ELEMENTWISE_INNER_LOOPS_H
#define PROA_OPS_ELEMENTWISE_INNER_LOOPS_H

#include "ops/elementwise/formulas.h"
#include "kernels/iterator.h"
#include "kernels/simd_activations.h"
#include "impl/elementwise.h"

/* Results may overwrite an input in place (p[0] == p[1]): element i depends on element i alone. */
#define PROA_ROW_LOOP _Pragma("GCC ivdep") for (int64_t i = 0; i < n; i++)

/* Attributes are read once, in the row's own type. */
#define PROA_ROW_HEAD_(op, D)                                             \
    static void op##_row_##D(char *const *p, int64_t n, const void *args) \
    {                                                                     \
        typedef proa_c_##D T;                                             \
        const proa_##op##_args *a = args;                                 \
        (void)a;                                                          \
        const T *x = (const T *)(const void *)p[1];
#define PROA_ROW_OUT_(type) type *out = (type *)(void *)p[0];
#define PROA_ROW_Y_ const T *y = (const T *)(const void *)p[2];
#define PROA_ROW_Z_ const T *z = (const T *)(const void *)p[3];

/* Vector formulas that are valid where m_<op>_is_quick_<D> holds: numbers that are not (huge ones, for sines)
 * take the scalar formula, in pieces of QUICK_PIECE. Results of such a piece are buffered, because they may
 * overwrite the input. */
#define PROA_QUICK_sin_F32 , QUICK
#define PROA_QUICK_cos_F32 , QUICK
#define PROA_QUICK_tan_F32 , QUICK
#define PROA_QUICK_sin_F64 , QUICK
#define PROA_QUICK_cos_F64 , QUICK
#define PROA_QUICK_tan_F64 , QUICK
#define PROA_QUICK_lgamma_F32 , QUICK
#define PROA_QUICK_remainder_F32 , QUICK
#define PROA_QUICK_exp_C64 , QUICK
enum { QUICK_PIECE = 64 };
#define PROA_ROW_QUICK_(op, D, operands)                                                     \
    T buffer[QUICK_PIECE];                                                                   \
    for (int64_t first = 0, m; first < n; first += m) {                                      \
        int quick = 1;                                                                       \
        m = n - first < QUICK_PIECE ? n - first : QUICK_PIECE;                               \
        for (int64_t i = first; i < first + m; i++) quick &= m_##op##_is_quick_##D operands; \
        T *to = quick ? out + first : buffer;                                                \
        _Pragma("GCC ivdep") for (int64_t i = first; i < first + m; i++) to[i - first] =     \
            m_##op##_quick_##D operands;                                                     \
        if (quick) continue;                                                                 \
        for (int64_t i = first; i < first + m; i++)                                          \
            out[i] = m_##op##_is_quick_##D operands ? buffer[i - first] : op##_##D operands; \
    }                                                                                        \
    }
#define PROA_SECOND_(a, b, ...) b
#define PROA_SECOND(...) PROA_SECOND_(__VA_ARGS__)
/* QUICK where PROA_QUICK_<op>_<D> is defined, PLAIN elsewhere. */
#define PROA_QUICK_(op, D) PROA_SECOND(PROA_QUICK_##op##_##D, PLAIN, )

#define PROA_ROW_UNARY_PLAIN(op, D)                                               \
    PROA_ROW_HEAD_(op, D) PROA_ROW_OUT_(T) PROA_ROW_LOOP out[i] = op##_##D(x[i]); \
    }
#define PROA_ROW_UNARY_QUICK(op, D) PROA_ROW_HEAD_(op, D) PROA_ROW_OUT_(T) PROA_ROW_QUICK_(op, D, (x[i]))
#define PROA_ROW_UNARY_0(op, D) PROA_PASTE(PROA_ROW_UNARY_, PROA_QUICK_(op, D))(op, D)
#define PROA_ROW_UNARY_1(op, D, b)                              \
    PROA_ROW_HEAD_(op, D) PROA_ROW_OUT_(T) const T b = (T)a->b; \
    PROA_ROW_LOOP out[i] = op##_##D(x[i], b);                   \
    }
#define PROA_ROW_UNARY_2(op, D, b, c)                                        \
    PROA_ROW_HEAD_(op, D) PROA_ROW_OUT_(T) const T b = (T)a->b, c = (T)a->c; \
    PROA_ROW_LOOP out[i] = op##_##D(x[i], b, c);                             \
    }
#define PROA_ROW_UNARY_3(op, D, b, c, d)                                                  \
    PROA_ROW_HEAD_(op, D) PROA_ROW_OUT_(T) const T b = (T)a->b, c = (T)a->c, d = (T)a->d; \
    PROA_ROW_LOOP out[i] = op##_##D(x[i], b, c, d);                                       \
    }
/* A flag picks one of two formulas, <op>_on and <op>_off, before the loop starts. */
#define PROA_ROW_FLAGGED_1(op, D, flag)                                                               \
    PROA_ROW_HEAD_(op, D) PROA_ROW_OUT_(T) if (a->flag) { PROA_ROW_LOOP out[i] = op##_on_##D(x[i]); } \
    else                                                                                              \
    {                                                                                                 \
        PROA_ROW_LOOP out[i] = op##_off_##D(x[i]);                                                    \
    }                                                                                                 \
    }
#define PROA_ROW_FLAGGED2_1(op, D, flag)                            \
    PROA_ROW_HEAD_(op, D) PROA_ROW_OUT_(T) PROA_ROW_Y_ if (a->flag) \
    {                                                               \
        PROA_ROW_LOOP out[i] = op##_on_##D(x[i], y[i]);             \
    }                                                               \
    else                                                            \
    {                                                               \
        PROA_ROW_LOOP out[i] = op##_off_##D(x[i], y[i]);            \
    }                                                               \
    }

#define PROA_ROW_BINARY_PLAIN(op, D)                                                                \
    PROA_ROW_HEAD_(op, D) PROA_ROW_OUT_(T) PROA_ROW_Y_ PROA_ROW_LOOP out[i] = op##_##D(x[i], y[i]); \
    }
#define PROA_ROW_BINARY_QUICK(op, D) \
    PROA_ROW_HEAD_(op, D) PROA_ROW_OUT_(T) PROA_ROW_Y_ PROA_ROW_QUICK_(op, D, (x[i], y[i]))
#define PROA_ROW_BINARY_0(op, D) PROA_PASTE(PROA_ROW_BINARY_, PROA_QUICK_(op, D))(op, D)
#define PROA_ROW_BINARY_1(op, D, b)                                         \
    PROA_ROW_HEAD_(op, D) PROA_ROW_OUT_(T) PROA_ROW_Y_ const T b = (T)a->b; \
    PROA_ROW_LOOP out[i] = op##_##D(x[i], y[i], b);                         \
    }
#define PROA_ROW_BINARY_2(op, D, b, c)                                                   \
    PROA_ROW_HEAD_(op, D) PROA_ROW_OUT_(T) PROA_ROW_Y_ const T b = (T)a->b, c = (T)a->c; \
    PROA_ROW_LOOP out[i] = op##_##D(x[i], y[i], b, c);                                   \
    }
#define PROA_ROW_TERNARY_0(op, D)                                                               \
    PROA_ROW_HEAD_(op, D)                                                                       \
    PROA_ROW_OUT_(T) PROA_ROW_Y_ PROA_ROW_Z_ PROA_ROW_LOOP out[i] = op##_##D(x[i], y[i], z[i]); \
    }

/* `lanes: true` in the op table: with AVX-512, float32 loops come from kernels/simd_activations.h. */
#if defined(__AVX512F__)
#define PROA_NONTEMPORAL(op) op##_nontemporal_F32
/* Whole vectors, then what is left under a mask. */
#define PROA_LANES_LOOP_(vector, rest)                      \
    int64_t i = 0;                                          \
    for (; i + 16 <= n; i += 16) {                          \
        if (nontemporal) _mm512_stream_ps(out + i, vector); \
        else _mm512_storeu_ps(out + i, vector);             \
    }                                                       \
    if (i < n) {                                            \
        __mmask16 in = (__mmask16)((1u << (n - i)) - 1);    \
        _mm512_mask_storeu_ps(out + i, in, rest);           \
    }
#define PROA_LANES_LOOP_1_(f) PROA_LANES_LOOP_(f(_mm512_loadu_ps(x + i)), f(_mm512_maskz_loadu_ps(in, x + i)))
#define PROA_LANES_LOOP_2_(f)                                           \
    PROA_LANES_LOOP_(f(_mm512_loadu_ps(x + i), _mm512_loadu_ps(y + i)), \
                     f(_mm512_maskz_loadu_ps(in, x + i), _mm512_maskz_loadu_ps(in, y + i)))
#define PROA_LANES_ROWS_(op, body)                                                                       \
    static inline __attribute__((always_inline)) void op##_lanes(char *const *p, int64_t n,              \
                                                                 const void *args, bool nontemporal)     \
    {                                                                                                    \
        const proa_##op##_args *a = args;                                                                \
        const float *x = (const float *)(const void *)p[1];                                              \
        float *out = (float *)(void *)p[0];                                                              \
        (void)a;                                                                                         \
        body                                                                                             \
    }                                                                                                    \
    static void op##_row_F32(char *const *p, int64_t n, const void *args) { op##_lanes(p, n, args, 0); } \
    static void op##_nontemporal_F32(char *const *p, int64_t n, const void *args)                        \
    {                                                                                                    \
        op##_lanes(p, n, args, 1);                                                                       \
    }
#define PROA_LANES_Y_ const float *y = (const float *)(const void *)p[2];
#define PROA_LANES_UNARY_0(op) PROA_LANES_ROWS_(op, PROA_LANES_LOOP_1_(simd_##op))
#define PROA_LANES_BINARY_0(op) PROA_LANES_ROWS_(op, PROA_LANES_Y_ PROA_LANES_LOOP_2_(simd_##op))
#define PROA_LANES_FLAGGED_1(op, flag) \
    PROA_LANES_ROWS_(                  \
        op, if (a->flag) { PROA_LANES_LOOP_1_(simd_##op##_on) } else {PROA_LANES_LOOP_1_(simd_##op##_off)})
#define PROA_LANES_FLAGGED2_1(op, flag)        \
    PROA_LANES_ROWS_(                          \
        op, PROA_LANES_Y_ if (a->flag) {       \
            PROA_LANES_LOOP_2_(simd_##op##_on) \
        } else {PROA_LANES_LOOP_2_(simd_##op##_off)})
#else
#define PROA_NONTEMPORAL(op) NULL
#define PROA_LANES_UNARY_0(op) PROA_ROW_UNARY_0(op, F32)
#define PROA_LANES_BINARY_0(op) PROA_ROW_BINARY_0(op, F32)
#define PROA_LANES_FLAGGED_1(op, flag) PROA_ROW_FLAGGED_1(op, F32, flag)
#define PROA_LANES_FLAGGED2_1(op, flag) PROA_ROW_FLAGGED2_1(op, F32, flag)
#endif

/* Results are bool. */
#define PROA_ROW_TEST_0(op, D)                                                          \
    PROA_ROW_HEAD_(op, D) PROA_ROW_OUT_(uint8_t) PROA_ROW_LOOP out[i] = op##_##D(x[i]); \
    }
#define PROA_ROW_COMPARE_0(op, D)                                                                         \
    PROA_ROW_HEAD_(op, D) PROA_ROW_OUT_(uint8_t) PROA_ROW_Y_ PROA_ROW_LOOP out[i] = op##_##D(x[i], y[i]); \
    }

/* Results are real where the input is complex. */
typedef float proa_real_C64, proa_real_F32;
typedef double proa_real_C128, proa_real_F64;
typedef int32_t proa_real_I32;
typedef int64_t proa_real_I64;
#define PROA_ROW_MODULUS_0(op, D)                                                             \
    PROA_ROW_HEAD_(op, D) PROA_ROW_OUT_(proa_real_##D) PROA_ROW_LOOP out[i] = op##_##D(x[i]); \
    }

#define PROA_ROW_OUT_UNARY PROA_ROW_OUT_SAME
#define PROA_ROW_OUT_BINARY PROA_ROW_OUT_SAME
#define PROA_ROW_OUT_TERNARY PROA_ROW_OUT_SAME
#define PROA_ROW_OUT_FLAGGED PROA_ROW_OUT_SAME
#define PROA_ROW_OUT_FLAGGED2 PROA_ROW_OUT_SAME
#define PROA_ROW_OUT_TEST PROA_ROW_OUT_BOOL
#define PROA_ROW_OUT_COMPARE PROA_ROW_OUT_BOOL
#define PROA_ROW_OUT_MODULUS PROA_ROW_OUT_REAL

/* Kernels: the fields by name, the output first. */
#define PROA_MAP_UNARY(op, o, x)                                  \
    PROA_KERNEL(op##_cpu, op)                                     \
    {                                                             \
        proa_tensor *t[] = {a->o, a->x};                          \
        return proa__map_rows(&PROA_LEVELED(op##_rows), 2, t, a); \
    }
#define PROA_MAP_BINARY(op, o, x, y)                              \
    PROA_KERNEL(op##_cpu, op)                                     \
    {                                                             \
        proa_tensor *t[] = {a->o, a->x, a->y};                    \
        return proa__map_rows(&PROA_LEVELED(op##_rows), 3, t, a); \
    }
#define PROA_MAP_TERNARY(op, o, x, y, z)                          \
    PROA_KERNEL(op##_cpu, op)                                     \
    {                                                             \
        proa_tensor *t[] = {a->o, a->x, a->y, a->z};              \
        return proa__map_rows(&PROA_LEVELED(op##_rows), 4, t, a); \
    }
#define PROA_MAP_TEST PROA_MAP_UNARY
#define PROA_MAP_FLAGGED PROA_MAP_UNARY
#define PROA_MAP_FLAGGED2 PROA_MAP_BINARY
#define PROA_MAP_MODULUS PROA_MAP_UNARY
#define PROA_MAP_COMPARE PROA_MAP_BINARY

#endif
