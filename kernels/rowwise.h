/* Helpers of row-wise kernels, whose body is compiled for float and for double: half types are converted a
 * tile at a time, float32 and float64 are read and written in place. May use core only; for kernel files and
 * shape inference. */
#ifndef PROA_KERNELS_ROWWISE_H
#define PROA_KERNELS_ROWWISE_H

#include "core/half.h"
#include "core/internal.h"
#include "core/tensor.h"
#include "kernels/simd_math.h"

/* Inside a body file (`#define T float`, `#include "body.inc"`): FN(name) is name_float or name_double. */
#define ROWS_PASTE_(a, b) a##_##b
#define ROWS_PASTE(a, b) ROWS_PASTE_(a, b)
#define FN(name) ROWS_PASTE(name, T)

/* Fails with an error of op `name`; the op is looked up only then. */
#define ROWS_FAIL(name, code, argument, ...) \
    proa__op_fail(PROA_ERR_##code, proa_find_op(#name), argument, __VA_ARGS__)

enum { ROWS_PIECE = 256 }; /* elements converted at a time */

static inline bool rows_in_place(proa_dtype dtype) { return dtype == PROA_F32 || dtype == PROA_F64; }

/* Elements [at, at+n) of p as floats: p itself for float32, otherwise converted into buffer. */
static inline const float *rows_load_float(proa_dtype dtype, const void *p, int64_t at, int64_t n,
                                           float *buffer)
{
    if (dtype == PROA_F32) return (const float *)p + at;
    const uint16_t *h = (const uint16_t *)p + at;
    if (dtype == PROA_F16) proa__f16_to_f32_row(h, buffer, n);
    else proa__bf16_to_f32_row(h, buffer, n);
    return buffer;
}

static inline const double *rows_load_double(proa_dtype dtype, const void *p, int64_t at, int64_t n,
                                             double *buffer)
{
    (void)dtype, (void)n, (void)buffer;
    return (const double *)p + at;
}

/* Destination of elements [at, …): their memory, or buffer, which rows_store_* then converts. */
static inline float *rows_place_float(proa_dtype dtype, void *p, int64_t at, float *buffer)
{
    return dtype == PROA_F32 ? (float *)p + at : buffer;
}

static inline double *rows_place_double(proa_dtype dtype, void *p, int64_t at, double *buffer)
{
    (void)dtype, (void)buffer;
    return (double *)p + at;
}

static inline void rows_store_float(proa_dtype dtype, void *p, int64_t at, int64_t n, const float *from)
{
    if (dtype == PROA_F32) {
        if (from != (const float *)p + at) memcpy((float *)p + at, from, (size_t)n * sizeof *from);
        return;
    }
    uint16_t *h = (uint16_t *)p + at;
    if (dtype == PROA_F16) proa__f32_to_f16_row(from, h, n);
    else proa__f32_to_bf16_row(from, h, n);
}

static inline void rows_store_double(proa_dtype dtype, void *p, int64_t at, int64_t n, const double *from)
{
    (void)dtype;
    if (from != (const double *)p + at) memcpy((double *)p + at, from, (size_t)n * sizeof *from);
}

/* Element i of a floating tensor's memory, as double. */
static inline double rows_get(proa_dtype dtype, const void *p, int64_t i)
{
    if (dtype == PROA_F64) return ((const double *)p)[i];
    float buffer[1];
    return (double)*rows_load_float(dtype, p, i, 1, buffer);
}

static inline void rows_set(proa_dtype dtype, void *p, int64_t i, double v)
{
    if (dtype == PROA_F64) {
        ((double *)p)[i] = v;
        return;
    }
    float f = (float)v;
    rows_store_float(dtype, p, i, 1, &f);
}

/* Element i of an integer (or bool) tensor's memory. */
static inline int64_t rows_get_int(proa_dtype dtype, const void *p, int64_t i)
{
    switch (dtype) {
    case PROA_I64: return ((const int64_t *)p)[i];
    case PROA_I32: return ((const int32_t *)p)[i];
    case PROA_I16: return ((const int16_t *)p)[i];
    case PROA_I8: return ((const int8_t *)p)[i];
    default: return ((const uint8_t *)p)[i];
    }
}

static inline bool rows_is_integer(int dtype) { return dtype >= PROA_U8 && dtype <= PROA_I64; }

static inline bool rows_is_floating(int dtype) { return dtype >= PROA_F16 && dtype <= PROA_F64; }

/* A shape split at an axis: [outer, n, inner]. */
typedef struct rows_around {
    int64_t outer, n, inner;
} rows_around;

static inline rows_around rows_split(const proa_tensor *t, int64_t axis)
{
    rows_around r = {1, 1, 1};
    if (axis < 0) axis += t->ndim;
    for (int64_t i = 0; i < t->ndim; i++) {
        if (i < axis) r.outer *= t->shape[i];
        else if (i == axis) r.n = t->shape[i];
        else r.inner *= t->shape[i];
    }
    return r;
}

/* True if two dims agree; −1 is unknown and agrees with all. */
static inline bool rows_dims_agree(int64_t a, int64_t b) { return a == b || a < 0 || b < 0; }

static inline bool rows_same_shape(const proa_tensor *a, const proa_tensor *b)
{
    if (a->ndim != b->ndim) return false;
    for (int i = 0; i < a->ndim; i++)
        if (!rows_dims_agree(a->shape[i], b->shape[i])) return false;
    return true;
}

/* An attribute's value for an options struct, where 0 means "default": 0 becomes PROA_ZERO. */
static inline int64_t rows_option(int64_t v) { return v ? v : PROA_ZERO; }
static inline double rows_option_float(double v) { return v != 0 ? v : (double)PROA_ZERO; }

/* Cost of an element with an exponential, a random number or a sequential sum, in units of a copied
 * element. */
enum { ROWS_COSTLY = 4 };

/* Grain of a parallel loop whose items have `elements_each` elements: fewer per thread do not pay. */
static inline int64_t rows_grain(int64_t elements_each)
{
    int64_t grain = 16384 / (elements_each > 0 ? elements_each : 1);
    return grain > 0 ? grain : 1;
}

#endif
