/* Element-wise sums into a tensor: backward of gathers, tiles and pads. float16 and bfloat16 are summed in
 * float32 scratch and rounded once. Kernel files only (static functions); may use core. */
#ifndef PROA_OPS_ACCUMULATE_H
#define PROA_OPS_ACCUMULATE_H

#include "core/half.h"
#include "ops/ints.h"

typedef struct accumulator {
    proa_tensor *out;
    char *data; /* out's memory, or float32 scratch; contiguous */
    float *scratch;
    int64_t item; /* bytes of one sum */
} accumulator;

static inline bool accumulates_half(const accumulator *acc)
{
    return acc->out->dtype == PROA_F16 || acc->out->dtype == PROA_BF16;
}

typedef struct half_rows {
    float *wide;
    uint16_t *half;
    bool is_f16;
} half_rows;

static __attribute__((unused)) void widen_range(int64_t begin, int64_t end, void *context)
{
    const half_rows *r = context;
    for (int64_t i = begin; i < end; i++)
        r->wide[i] = r->is_f16 ? proa__f16_to_f32(r->half[i]) : proa__bf16_to_f32(r->half[i]);
}

static __attribute__((unused)) void narrow_range(int64_t begin, int64_t end, void *context)
{
    const half_rows *r = context;
    for (int64_t i = begin; i < end; i++)
        r->half[i] = r->is_f16 ? proa__f32_to_f16(r->wide[i]) : proa__f32_to_bf16(r->wide[i]);
}

enum { ACCUMULATE_GRAIN = 1 << 15 };

/* Starts the sums at the elements of base (contiguous), or at zero if base is NULL. */
static __attribute__((unused)) proa_status accumulate_begin(accumulator *acc, proa_tensor *out,
                                                            const proa_tensor *base)
{
    *acc = (accumulator){out, out->data, NULL, (int64_t)proa_dtype_size((proa_dtype)out->dtype)};
    size_t bytes;
    if (!accumulates_half(acc)) {
        proa_tensor w = proa__window(out);
        if (!base) return proa__fill_window(&w, NULL);
        proa_tensor from = proa__window(base);
        return proa__copy_window(&w, &from);
    }
    acc->item = (int64_t)sizeof(float);
    if (!proa__mul_size((size_t)out->numel, sizeof(float), &bytes)) return proa_error();
    acc->scratch = proa_scratch(bytes);
    if (!acc->scratch) return proa_error();
    acc->data = (char *)acc->scratch;
    if (!base) memset(acc->scratch, 0, bytes);
    half_rows r = {acc->scratch, base ? (uint16_t *)(void *)base->data : NULL, out->dtype == PROA_F16};
    if (base) proa__parallel(out->numel, ACCUMULATE_GRAIN, widen_range, &r);
    return PROA_OK;
}

/* Rounds the scratch of float16 and bfloat16 sums into out and frees it. */
static __attribute__((unused)) proa_status accumulate_end(accumulator *acc)
{
    if (!acc->scratch) return PROA_OK;
    half_rows r = {acc->scratch, (uint16_t *)(void *)acc->out->data, acc->out->dtype == PROA_F16};
    proa__parallel(acc->out->numel, ACCUMULATE_GRAIN, narrow_range, &r);
    proa_scratch_free(acc->scratch);
    acc->scratch = NULL;
    return PROA_OK;
}

#define ACCUMULATE_ROW(SUM, T, VALUE)                 \
    for (int64_t i = 0; i < n; i++) {                 \
        T v = *(const T *)(const void *)(s + i * ss); \
        SUM *sum = (SUM *)(void *)(d + i * ds);       \
        *sum = (SUM)(*sum + (VALUE));                 \
    }                                                 \
    break
#define ACCUMULATE_CASE(T) ACCUMULATE_ROW(T, T, v)

/* Adds n elements at s to the sums at d; strides are in bytes. Integers wrap. */
static __attribute__((unused)) void accumulate_row(const accumulator *acc, char *d, int64_t ds, const char *s,
                                                   int64_t ss, int64_t n)
{
    switch ((proa_dtype)acc->out->dtype) {
    case PROA_F32:
        if (ds == 4 && ss == 4) {
            float *to = (float *)(void *)d;
            const float *from = (const float *)(const void *)s;
            for (int64_t i = 0; i < n; i++) to[i] += from[i];
            break;
        }
        ACCUMULATE_CASE(float);
    case PROA_F64: ACCUMULATE_CASE(double);
    case PROA_F16: ACCUMULATE_ROW(float, uint16_t, proa__f16_to_f32(v));
    case PROA_BF16: ACCUMULATE_ROW(float, uint16_t, proa__bf16_to_f32(v));
    case PROA_C64: ACCUMULATE_CASE(float _Complex);
    case PROA_C128: ACCUMULATE_CASE(double _Complex);
    case PROA_I16: ACCUMULATE_CASE(uint16_t);
    case PROA_I32: ACCUMULATE_CASE(uint32_t);
    case PROA_I64: ACCUMULATE_CASE(uint64_t);
    default: ACCUMULATE_CASE(uint8_t);
    }
}

/* accumulate_row over several axes, in row-major order of s; with stride 0 an element of d receives several
 * terms. */
static __attribute__((unused)) void accumulate_strided(const accumulator *acc, char *d, const int64_t *ds,
                                                       const char *s, const int64_t *ss, const int64_t *shape,
                                                       int ndim)
{
    if (ndim == 0) {
        accumulate_row(acc, d, 0, s, 0, 1);
        return;
    }
    if (ndim == 1) {
        accumulate_row(acc, d, ds[0], s, ss[0], shape[0]);
        return;
    }
    for (int64_t i = 0; i < shape[0]; i++)
        accumulate_strided(acc, d + i * ds[0], ds + 1, s + i * ss[0], ss + 1, shape + 1, ndim - 1);
}

#endif
