/* CPU kernels of complex, as_complex and as_real, and of isclose, allclose and equal_all. May use core,
 * kernels and ops headers. */
#include "ops/broadcast.h"
#include "kernels/iterator.h"
#include "impl/elementwise.h"

#include <math.h>

#define COMPLEX_ROW(name, T)                                                              \
    static void name(char *const *p, int64_t n, __attribute__((unused)) const void *args) \
    {                                                                                     \
        const T *re = (const T *)(const void *)p[1], *im = (const T *)(const void *)p[2]; \
        T *out = (T *)(void *)p[0];                                                       \
        for (int64_t i = 0; i < n; i++) out[2 * i] = re[i], out[2 * i + 1] = im[i];       \
    }
COMPLEX_ROW(pair_floats, float)
COMPLEX_ROW(pair_doubles, double)

PROA_KERNEL(complex_cpu, complex)
{
    bool wide = a->out->dtype == PROA_C128;
    proa_dtype part = wide ? PROA_F64 : PROA_F32;
    proa_map map = {.row = wide ? pair_doubles : pair_floats, .n = 3, .tensor = {a->out, a->real, a->imag}};
    map.as[0] = (proa_dtype)a->out->dtype, map.as[1] = map.as[2] = part;
    return proa__map_run(&map);
}

static proa_status same_bytes(proa_tensor *out, const proa_tensor *x)
{
    size_t bytes = (size_t)out->numel * proa_dtype_size((proa_dtype)out->dtype);
    if (bytes) memcpy(out->data, x->data, bytes);
    return PROA_OK;
}

PROA_KERNEL(as_complex_cpu, as_complex) { return same_bytes(a->out, a->x); }
PROA_KERNEL(as_real_cpu, as_real) { return same_bytes(a->out, a->x); }

/* ---- comparisons ------------------------------------------------------------------------ */

typedef struct tolerance {
    double relative, absolute;
    bool equal_nan;
} tolerance;

static inline bool is_close(const tolerance *t, bool same, bool nans, double distance, double size)
{
    double bound = t->absolute + t->relative * size;
    bool near = isfinite(bound) && distance <= bound; /* no number is near infinity */
    return same || near || (nans && t->equal_nan);
}

#define CLOSE_ROW(name, T, SIZE)                                                        \
    static void name(char *const *p, int64_t n, const void *args)                       \
    {                                                                                   \
        const T *x = (const T *)(const void *)p[1], *y = (const T *)(const void *)p[2]; \
        uint8_t *out = (uint8_t *)p[0];                                                 \
        for (int64_t i = 0; i < n; i++) {                                               \
            bool nans = x[i] != x[i] && y[i] != y[i];                                   \
            out[i] = is_close(args, x[i] == y[i], nans, SIZE(x[i] - y[i]), SIZE(y[i])); \
        }                                                                               \
    }
CLOSE_ROW(close_real, double, fabs)
CLOSE_ROW(close_complex, double _Complex, __builtin_cabs)

static proa_status run_close(proa_tensor *out, proa_tensor *x, proa_tensor *y, const tolerance *t)
{
    bool pairs = x->dtype == PROA_C64 || x->dtype == PROA_C128;
    proa_dtype d = pairs ? PROA_C128 : PROA_F64;
    proa_map map = {.row = pairs ? close_complex : close_real, .n = 3, .tensor = {out, x, y}, .args = t};
    map.as[0] = PROA_BOOL, map.as[1] = map.as[2] = d;
    return proa__map_run(&map);
}

PROA_KERNEL(isclose_cpu, isclose)
{
    return run_close(a->out, a->x, a->y, &(tolerance){a->rtol, a->atol, a->equal_nan});
}

PROA_KERNEL(allclose_cpu, allclose)
{
    proa_meta both = proa_meta_of(a->x);
    if (!proa__broadcast_into(&both, a->y)) return proa_error();
    proa_tensor each = {.dtype = PROA_BOOL, .ndim = both.ndim, .numel = 1};
    for (int i = both.ndim - 1; i >= 0; i--) {
        each.shape[i] = both.shape[i];
        each.strides[i] = each.numel;
        each.numel *= both.shape[i];
    }
    each.data = proa_scratch((size_t)each.numel + 1);
    if (!each.data) return proa_error();
    proa_status s = run_close(&each, a->x, a->y, &(tolerance){a->rtol, a->atol, a->equal_nan});
    *(uint8_t *)a->out->data = each.numel == 0 || !memchr(each.data, 0, (size_t)each.numel);
    proa_scratch_free(each.data);
    return s;
}

enum { PIECE = 256 };

static bool equal_elements(const proa_tensor *x, const proa_tensor *y)
{
    proa_dtype d = (proa_dtype)x->dtype, wide = d > PROA_F64 ? PROA_C128 : PROA_F64;
    int64_t item = (int64_t)proa_dtype_size(d), parts = wide == PROA_C128 ? 2 : 1;
    double p[2 * PIECE], q[2 * PIECE];
    if (x->numel == 0) return true;
    if (d <= PROA_I64) return memcmp(x->data, y->data, (size_t)(x->numel * item)) == 0;
    for (int64_t i = 0; i < x->numel; i += PIECE) {
        int64_t n = x->numel - i < PIECE ? x->numel - i : PIECE;
        proa__convert(wide, p, d, x->data + i * item, n);
        proa__convert(wide, q, d, y->data + i * item, n);
        for (int64_t k = 0; k < n * parts; k++)
            if (!(p[k] == q[k])) return false;
    }
    return true;
}

PROA_KERNEL(equal_all_cpu, equal_all)
{
    bool same = a->x->ndim == a->y->ndim;
    for (int i = 0; same && i < a->x->ndim; i++) same = a->x->shape[i] == a->y->shape[i];
    *(uint8_t *)a->out->data = same && equal_elements(a->x, a->y);
    return PROA_OK;
}
