/* CPU kernels of cross, kron and its gradient, and renorm, computed in int64, double or complex double (kron
 * in float, too) whatever the dtype; elements are converted to and from those types. May use core, kernels
 * and ops headers. */
#include "ops/products/products.h"
#include "kernels/rowwise.h"
#include "kernels/upcast.h"
#include "impl/products.h"

#include <math.h>

/* Dtype that values are multiplied in: integers wrap as they do in their own dtype. */
static proa_dtype product_dtype(const proa_tensor *t)
{
    return t->dtype <= PROA_I64 ? PROA_I64 : t->dtype <= PROA_F64 ? PROA_F64 : PROA_C128;
}

/* ---- cross ------------------------------------------------------------------------------ */

#define NAME cross_integers
#define T uint64_t
#include "cross.inc"
#undef NAME
#undef T
#define NAME cross_doubles
#define T double
#include "cross.inc"
#undef NAME
#undef T
#define NAME cross_complex
#define T double _Complex
#include "cross.inc"
#undef NAME
#undef T

PROA_KERNEL(cross_cpu, cross)
{
    int axis;
    proa_upcast w[3] = {0};
    if (a->out->numel == 0) return PROA_OK;
    PROA_TRY(proa__cross_axis(a->x, a->axis, &axis));
    proa_dtype d = product_dtype(a->x);
    int64_t n = 1;
    for (int i = axis + 1; i < a->x->ndim; i++) n *= a->x->shape[i];
    proa_status s = proa__upcast_read(&w[0], a->x, d);
    if (!s) s = proa__upcast_read(&w[1], a->y, d);
    if (!s) s = proa__upcast_write(&w[2], a->out, d);
    if (!s)
        (d == PROA_I64   ? cross_integers
         : d == PROA_F64 ? cross_doubles
                         : cross_complex)(w[2].data, w[0].data, w[1].data, a->out->numel / (3 * n), n);
    proa__upcast_end(w, 3, s == PROA_OK);
    return s;
}

/* ---- kron ------------------------------------------------------------------------------- */

typedef struct kron_job {
    kron_shape s;
    int64_t x_rows, y_rows, x_length, y_length, out_length;
    char *x, *y, *out; /* out is d_out in the gradient */
    char *d_x, *d_y;
} kron_job;

static void kron_begin(kron_job *j)
{
    int last = j->s.ndim - 1;
    j->x_rows = j->y_rows = 1;
    for (int i = 0; i < last; i++) j->x_rows *= j->s.x[i], j->y_rows *= j->s.y[i];
    j->x_length = last < 0 ? 1 : j->s.x[last];
    j->y_length = last < 0 ? 1 : j->s.y[last];
    j->out_length = j->x_length * j->y_length;
}

/* The row of the product that row `row` of x and row `other` of y make. */
static int64_t kron_row(const kron_job *j, int64_t row, int64_t other)
{
    int64_t to = 0, step = 1;
    for (int i = j->s.ndim - 2; i >= 0; i--) {
        to += (row % j->s.x[i] * j->s.y[i] + other % j->s.y[i]) * step;
        step *= j->s.out[i];
        row /= j->s.x[i];
        other /= j->s.y[i];
    }
    return to;
}

#define NAME kron_integers
#define T uint64_t
#include "kron.inc"
#undef NAME
#undef T
#define NAME kron_floats
#define T float
#include "kron.inc"
#undef NAME
#undef T
#define NAME kron_doubles
#define T double
#include "kron.inc"
#undef NAME
#undef T
#define NAME kron_complex
#define T double _Complex
#include "kron.inc"
#undef NAME
#undef T

PROA_KERNEL(kron_cpu, kron)
{
    kron_job j = {0};
    proa_upcast w[3] = {0};
    if (a->out->numel == 0) return PROA_OK;
    PROA_TRY(proa__kron_shape("kron", a->x, a->y, &j.s));
    /* An element is one product, which float32 and narrower types round once in float32, too. */
    proa_dtype d = product_dtype(a->x);
    if (d == PROA_F64) d = proa__upcast_dtype(a->x);
    kron_begin(&j);
    proa_status s = proa__upcast_read(&w[0], a->x, d);
    if (!s) s = proa__upcast_read(&w[1], a->y, d);
    if (!s) s = proa__upcast_write(&w[2], a->out, d);
    if (!s) {
        j.x = w[0].data, j.y = w[1].data, j.out = w[2].data;
        proa__parallel(j.x_rows * j.y_rows, PROA_GRAIN / (j.out_length + 1) + 1,
                       d == PROA_I64   ? kron_integers
                       : d == PROA_F32 ? kron_floats
                       : d == PROA_F64 ? kron_doubles
                                       : kron_complex,
                       &j);
    }
    proa__upcast_end(w, 3, s == PROA_OK);
    return s;
}

#define SAME(v) (v)
#define CONJUGATE(v) (__builtin_conj(v))
#define NAME kron_grad_doubles
#define T double
#define CONJ SAME
#include "kron_grad.inc"
#undef NAME
#undef T
#undef CONJ
#define NAME kron_grad_complex
#define T double _Complex
#define CONJ CONJUGATE
#include "kron_grad.inc"
#undef NAME
#undef T
#undef CONJ

PROA_KERNEL(kron_grad_cpu, kron_grad)
{
    kron_job j = {0};
    proa_upcast w[5] = {0};
    PROA_TRY(proa__kron_shape("kron_grad", a->x, a->y, &j.s));
    proa_dtype d = product_dtype(a->x);
    kron_begin(&j);
    proa_status s = proa__upcast_read(&w[0], a->x, d);
    if (!s) s = proa__upcast_read(&w[1], a->y, d);
    if (!s) s = proa__upcast_read(&w[2], a->d_out, d);
    if (!s) s = proa__upcast_write(&w[3], a->d_x, d);
    if (!s) s = proa__upcast_write(&w[4], a->d_y, d);
    if (!s) {
        j.x = w[0].data, j.y = w[1].data, j.out = w[2].data, j.d_x = w[3].data, j.d_y = w[4].data;
        if (a->d_x->numel) memset(j.d_x, 0, (size_t)a->d_x->numel * proa_dtype_size(d));
        if (a->d_y->numel) memset(j.d_y, 0, (size_t)a->d_y->numel * proa_dtype_size(d));
        if (a->d_out->numel) (d == PROA_F64 ? kron_grad_doubles : kron_grad_complex)(&j);
    }
    proa__upcast_end(w, 5, s == PROA_OK);
    return s;
}

/* ---- renorm ------------------------------------------------------------------------------- */

/* For slice k: computes its p-norm in double, then scales its elements down to the maximum norm. */
PROA_KERNEL(renorm_cpu, renorm)
{
    int axis;
    proa_upcast w[2] = {0};
    if (a->x->numel == 0) return PROA_OK;
    PROA_TRY(proa__axis("renorm", "axis", a->axis, a->x->ndim, &axis));
    rows_around r = rows_split(a->x, axis);
    proa_status s = proa__upcast_read(&w[0], a->x, PROA_F64);
    if (!s) s = proa__upcast_write(&w[1], a->out, PROA_F64);
    const double *x = (const double *)(void *)w[0].data;
    double *out = (double *)(void *)w[1].data;
    for (int64_t k = 0; k < r.n && !s; k++) {
        double sum = 0;
        for (int64_t o = 0; o < r.outer; o++)
            for (int64_t i = 0; i < r.inner; i++) sum += pow(fabs(x[(o * r.n + k) * r.inner + i]), a->p);
        double norm = pow(sum, 1 / a->p), factor = norm > a->max_norm ? a->max_norm / norm : 1;
        for (int64_t o = 0; o < r.outer; o++)
            for (int64_t i = 0; i < r.inner; i++)
                out[(o * r.n + k) * r.inner + i] = x[(o * r.n + k) * r.inner + i] * factor;
    }
    proa__upcast_end(w, 2, s == PROA_OK);
    return s;
}
