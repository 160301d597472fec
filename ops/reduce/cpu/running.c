/* Kernels of cummax, cummin and logcumsumexp. May use core, kernels and ops headers. */
#include "ops/ints.h"
#include "kernels/rowwise.h"
#include "kernels/upcast.h"
#include "impl/reduce.h"

#include <math.h>

/* ---- cummax, cummin ----------------------------------------------------------------------- */

typedef struct extreme_job {
    rows_around shape;
    const void *x;
    void *out, *indices;
    bool largest;
} extreme_job;

#define IS_NAN(v) ((v) != (v)) /* integers never are */

/* Blocks [begin, end): row i of each from row i − 1, element by element. */
#define NAME extreme_int_32
#define T int32_t
#define I int32_t
#include "ops/reduce/cpu/running_extreme.inc"
#define NAME extreme_int_64
#define T int32_t
#define I int64_t
#include "ops/reduce/cpu/running_extreme.inc"
#define NAME extreme_long_32
#define T int64_t
#define I int32_t
#include "ops/reduce/cpu/running_extreme.inc"
#define NAME extreme_long_64
#define T int64_t
#define I int64_t
#include "ops/reduce/cpu/running_extreme.inc"
#define NAME extreme_float_32
#define T float
#define I int32_t
#include "ops/reduce/cpu/running_extreme.inc"
#define NAME extreme_float_64
#define T float
#define I int64_t
#include "ops/reduce/cpu/running_extreme.inc"
#define NAME extreme_double_32
#define T double
#define I int32_t
#include "ops/reduce/cpu/running_extreme.inc"
#define NAME extreme_double_64
#define T double
#define I int64_t
#include "ops/reduce/cpu/running_extreme.inc"

static proa_status extreme(const char *who, proa_tensor *out, proa_tensor *indices, const proa_tensor *x,
                           int64_t axis, bool largest)
{
    extreme_job j = {.shape = rows_split(x, axis), .indices = indices->data, .largest = largest};
    proa_dtype as =
        x->dtype == PROA_I32 || x->dtype == PROA_I64 ? (proa_dtype)x->dtype : proa__upcast_dtype(x);
    bool small = indices->dtype == PROA_I32;
    proa_upcast w[2] = {0};
    if (x->numel == 0) return PROA_OK;
    if (small && j.shape.n > INT32_MAX)
        return OP_FAIL(who, OVERFLOW, "dtype", "is int32, too small for the %lld places along axis",
                       (long long)j.shape.n);
    proa_status s = proa__upcast_read(&w[0], x, as);
    if (!s) s = proa__upcast_write(&w[1], out, as);
    if (!s) {
        j.x = w[0].data, j.out = w[1].data;
        proa__parallel(j.shape.outer, rows_grain(j.shape.n * j.shape.inner),
                       as == PROA_I32   ? (small ? extreme_int_32 : extreme_int_64)
                       : as == PROA_I64 ? (small ? extreme_long_32 : extreme_long_64)
                       : as == PROA_F32 ? (small ? extreme_float_32 : extreme_float_64)
                                        : (small ? extreme_double_32 : extreme_double_64),
                       &j);
    }
    proa__upcast_end(w, 2, s == PROA_OK);
    return s;
}

PROA_KERNEL(cummax_cpu, cummax) { return extreme("cummax", a->out, a->indices, a->x, a->axis, true); }
PROA_KERNEL(cummin_cpu, cummin) { return extreme("cummin", a->out, a->indices, a->x, a->axis, false); }

/* ---- logcumsumexp -------------------------------------------------------------------------- */

typedef struct exp_job {
    rows_around shape;
    double *x, *out, *d_out, *d_x;
    bool exclusive, reverse;
} exp_job;

/* Line number l: its first element, and the step along it in the order of the scan. */
static int64_t line_start(const exp_job *j, int64_t l, int64_t *step)
{
    int64_t first = l / j->shape.inner * j->shape.n * j->shape.inner + l % j->shape.inner;
    *step = j->reverse ? -j->shape.inner : j->shape.inner;
    return j->reverse ? first + (j->shape.n - 1) * j->shape.inner : first;
}

/* The sum so far is `sum`·e^top, with top the greatest x so far, so that nothing overflows. */
static void log_lines(int64_t begin, int64_t end, void *context)
{
    const exp_job *j = context;
    for (int64_t l = begin; l < end; l++) {
        int64_t step, at = line_start(j, l, &step);
        double top = -INFINITY, sum = 0;
        for (int64_t k = 0; k < j->shape.n; k++, at += step) {
            double v = j->x[at], before = sum > 0 || sum != sum ? top + log(sum) : -INFINITY;
            if (v == top && v > -INFINITY) sum += 1;
            else if (v > top) sum = sum * exp(top - v) + 1, top = v;
            else if (v > -INFINITY || v != v) sum += exp(v - top);
            j->out[at] = j->exclusive ? before : sum > 0 || sum != sum ? top + log(sum) : -INFINITY;
        }
    }
}

static double ratio(double a, double b) { return a == b ? 1 : exp(a - b); }

/* dx_i = e^x_i Σ d_k e^−out_k over the k that x_i is summed in, from the last one back. With
 * A_k = Σ_{m ≥ k} d_m e^(out_k − out_m) no exponent is above 0, for out never falls. */
static void log_lines_back(int64_t begin, int64_t end, void *context)
{
    const exp_job *j = context;
    for (int64_t l = begin; l < end; l++) {
        int64_t step, at = line_start(j, l, &step), n = j->shape.n;
        double sum = 0, next = 0;
        at += (n - 1) * step;
        for (int64_t k = n - 1; k >= 0; k--, at -= step) {
            double out = j->out[at], x = j->x[at];
            if (j->exclusive) j->d_x[at] = k < n - 1 ? sum * ratio(x, next) : 0;
            sum = j->d_out[at] + (k < n - 1 ? sum * ratio(out, next) : 0);
            next = out;
            if (!j->exclusive) j->d_x[at] = sum * ratio(x, out);
        }
    }
}

static rows_around lines_of(const proa_tensor *x, int64_t axis, bool flatten)
{
    return flatten ? (rows_around){1, x->numel, 1} : rows_split(x, axis);
}

PROA_KERNEL(logcumsumexp_cpu, logcumsumexp)
{
    exp_job j = {
        .shape = lines_of(a->x, a->axis, a->flatten), .exclusive = a->exclusive, .reverse = a->reverse};
    proa_upcast w[2] = {0};
    if (a->x->numel == 0) return PROA_OK;
    proa_status s = proa__upcast_read(&w[0], a->x, PROA_F64);
    if (!s) s = proa__upcast_write(&w[1], a->out, PROA_F64);
    if (!s) {
        j.x = (double *)(void *)w[0].data, j.out = (double *)(void *)w[1].data;
        proa__parallel(j.shape.outer * j.shape.inner, rows_grain(8 * j.shape.n), log_lines, &j);
    }
    proa__upcast_end(w, 2, s == PROA_OK);
    return s;
}

PROA_KERNEL(logcumsumexp_grad_cpu, logcumsumexp_grad)
{
    exp_job j = {
        .shape = lines_of(a->x, a->axis, a->flatten), .exclusive = a->exclusive, .reverse = a->reverse};
    proa_upcast w[4] = {0};
    if (a->x->numel == 0) return PROA_OK;
    proa_status s = proa__upcast_read(&w[0], a->x, PROA_F64);
    if (!s) s = proa__upcast_read(&w[1], a->out, PROA_F64);
    if (!s) s = proa__upcast_read(&w[2], a->d_out, PROA_F64);
    if (!s) s = proa__upcast_write(&w[3], a->d_x, PROA_F64);
    if (!s) {
        j.x = (double *)(void *)w[0].data, j.out = (double *)(void *)w[1].data;
        j.d_out = (double *)(void *)w[2].data, j.d_x = (double *)(void *)w[3].data;
        proa__parallel(j.shape.outer * j.shape.inner, rows_grain(8 * j.shape.n), log_lines_back, &j);
    }
    proa__upcast_end(w, 4, s == PROA_OK);
    return s;
}
