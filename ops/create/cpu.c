/* Kernels of creation ops: constants, ranges, eye, triangles and their indices. All but tril and triu also
 * serve devices, by fills or by copies of what the host computes. May use core and kernels only. */
#include "core/copy.h"
#include "core/device.h"
#include "ops/create/range.h"
#include "ops/ints.h"
#include "kernels/iterator.h"
#include "ops/scalar.h"
#include "impl/create.h"

/* ---- constants ---- */

typedef struct fill_job {
    char *data;
    int64_t item;
    _Alignas(16) char value[16];
} fill_job;

static void fill_range(int64_t begin, int64_t end, void *context)
{
    const fill_job *j = context;
    char *to = j->data + begin * j->item;
    int64_t bytes = (end - begin) * j->item;
    bool uniform = true;
    for (int64_t i = 1; i < j->item; i++) uniform &= j->value[i] == j->value[0];
    if (uniform) memset(to, j->value[0], (size_t)bytes);
    else proa__gather(to, j->value, end - begin, 0, j->item);
}

static proa_status fill_all(proa_tensor *out, const proa_scalar *value)
{
    fill_job j = {.data = out->data, .item = (int64_t)proa_dtype_size((proa_dtype)out->dtype)};
    proa__scalar_to(value, (proa_dtype)out->dtype, 0, j.value);
    if (proa__on_device(out)) return proa__fill(out, j.value);
    if (out->numel > 0) proa__parallel(out->numel, PROA_GRAIN, fill_range, &j);
    return PROA_OK;
}

PROA_KERNEL_ANYWHERE(full_cpu, full) { return fill_all(a->out, &a->fill_value); }
PROA_KERNEL_ANYWHERE(full_like_cpu, full_like) { return fill_all(a->out, &a->fill_value); }
PROA_KERNEL_ANYWHERE(fill_cpu, fill) { return fill_all(a->out, &a->value); }

/* Results that the host computes entirely, also for a device: `job` writes host memory, which is then
 * copied. */
typedef struct host_job {
    char *data;
    void *memory; /* of its own, to be copied to the device; NULL: the output's */
    proa_tensor *out;
    size_t bytes;
} host_job;

static proa_status host_begin(host_job *j, proa_tensor *out)
{
    *j = (host_job){out->data, NULL, out, (size_t)out->numel * proa_dtype_size((proa_dtype)out->dtype)};
    if (!proa__on_device(out)) return PROA_OK;
    j->data = j->memory = proa_scratch(j->bytes);
    return j->memory ? PROA_OK : proa_error();
}

static proa_status host_end(host_job *j)
{
    proa_status status = j->memory ? proa__put(j->out, j->memory, j->bytes) : PROA_OK;
    proa_scratch_free(j->memory);
    return status;
}

/* ---- ranges ---- */

typedef struct range_job {
    char *data;
    proa_dtype dtype;
    bool whole;
    int64_t start, step, last;
    double first, delta, end;
} range_job;

enum { STEP = 256 };

/* Values go through int64 or double, then to the dtype. */
static void range_part(int64_t begin, int64_t end, void *context)
{
    const range_job *j = context;
    int64_t item = (int64_t)proa_dtype_size(j->dtype);
    int64_t integers[STEP];
    double numbers[STEP];
    for (int64_t i = begin; i < end; i += STEP) {
        int64_t n = end - i < STEP ? end - i : STEP;
        if (j->whole) {
            for (int64_t k = 0; k < n; k++)
                integers[k] = (int64_t)((uint64_t)j->start + (uint64_t)(i + k) * (uint64_t)j->step);
            proa__convert(j->dtype, j->data + i * item, PROA_I64, integers, n);
            continue;
        }
        /* the second half of a linspace is computed from the end, so that both ends are exact */
        for (int64_t k = 0; k < n; k++) {
            int64_t at = i + k;
            bool near = j->last < 0 || at < (j->last + 1) / 2;
            numbers[k] = near ? j->first + (double)at * j->delta : j->end - (double)(j->last - at) * j->delta;
        }
        proa__convert(j->dtype, j->data + i * item, PROA_F64, numbers, n);
    }
}

PROA_KERNEL_ANYWHERE(arange_cpu, arange)
{
    proa_number start, end, step;
    PROA_TRY(proa__number("arange", "start", &a->start, &start));
    PROA_TRY(proa__number("arange", "end", &a->end, &end));
    PROA_TRY(proa__number("arange", "step", &a->step, &step));
    host_job h;
    PROA_TRY(host_begin(&h, a->out));
    range_job j = {.data = h.data,
                   .dtype = (proa_dtype)a->out->dtype,
                   .start = start.i,
                   .step = step.i,
                   .whole = start.integer && step.integer,
                   .first = start.f,
                   .delta = step.f,
                   .last = -1};
    proa__parallel(a->out->numel, PROA_GRAIN, range_part, &j);
    return host_end(&h);
}

PROA_KERNEL_ANYWHERE(linspace_cpu, linspace)
{
    proa_number start, stop;
    PROA_TRY(proa__number("linspace", "start", &a->start, &start));
    PROA_TRY(proa__number("linspace", "stop", &a->stop, &stop));
    int64_t last = a->out->numel - 1;
    host_job h;
    PROA_TRY(host_begin(&h, a->out));
    range_job j = {.data = h.data,
                   .dtype = (proa_dtype)a->out->dtype,
                   .first = start.f,
                   .end = stop.f,
                   .delta = last > 0 ? (stop.f - start.f) / (double)last : 0,
                   .last = last};
    if (last == 0) j.end = start.f;
    proa__parallel(a->out->numel, PROA_GRAIN, range_part, &j);
    return host_end(&h);
}

/* ---- diagonals and triangles ---- */

PROA_KERNEL_ANYWHERE(eye_cpu, eye)
{
    proa_tensor *out = a->out;
    if (out->numel <= 0) return PROA_OK;
    _Alignas(16) char one[16];
    proa_scalar value = {.kind = PROA_SCALAR_INT, .i = 1};
    proa__scalar_to(&value, (proa_dtype)out->dtype, 0, one);
    proa_tensor all = proa__window(out), diagonal = all;
    PROA_TRY(proa__fill_window(&all, NULL));
    diagonal.ndim = 1;
    diagonal.shape[0] = out->shape[0] < out->shape[1] ? out->shape[0] : out->shape[1];
    diagonal.strides[0] = all.strides[0] + all.strides[1];
    return proa__fill_window(&diagonal, one);
}

typedef struct triangle_job {
    char *out;
    const char *x;
    int64_t rows, columns, item, diagonal;
    bool lower;
} triangle_job;

static void triangle_rows(int64_t begin, int64_t end, void *context)
{
    const triangle_job *j = context;
    for (int64_t r = begin; r < end; r++) {
        /* columns [0, cut) lie on or below the diagonal (lower), or strictly below it (upper) */
        int64_t cut = r % j->rows + j->diagonal + (j->lower ? 1 : 0);
        cut = cut < 0 ? 0 : cut > j->columns ? j->columns : cut;
        size_t left = (size_t)(cut * j->item), right = (size_t)((j->columns - cut) * j->item);
        char *out = j->out + r * j->columns * j->item;
        const char *x = j->x + r * j->columns * j->item;
        if (j->lower) {
            memcpy(out, x, left);
            memset(out + left, 0, right);
        } else {
            memset(out, 0, left);
            memcpy(out + left, x + left, right);
        }
    }
}

static proa_status triangle(proa_tensor *out, const proa_tensor *x, int64_t diagonal, bool lower)
{
    if (out->numel <= 0) return PROA_OK;
    int64_t rows = x->shape[x->ndim - 2], columns = x->shape[x->ndim - 1], limit = rows + columns;
    diagonal = diagonal > limit ? limit : diagonal < -limit ? -limit : diagonal;
    triangle_job j = {out->data, x->data, rows, columns, (int64_t)proa_dtype_size((proa_dtype)x->dtype),
                      diagonal,  lower};
    proa__parallel(out->numel / columns, PROA_GRAIN / (columns + 1) + 1, triangle_rows, &j);
    return PROA_OK;
}

PROA_KERNEL(tril_cpu, tril) { return triangle(a->out, a->x, a->diagonal, true); }
PROA_KERNEL(triu_cpu, triu) { return triangle(a->out, a->x, a->diagonal, false); }

PROA_KERNEL_ANYWHERE(assign_value_cpu, assign_value)
{
    proa_dtype d = (proa_dtype)a->out->dtype;
    host_job h;
    PROA_TRY(host_begin(&h, a->out));
    if (a->values.count) proa__convert(d, h.data, PROA_F64, a->values.at, a->out->numel);
    else if (a->out->numel) proa__convert(d, h.data, PROA_I64, a->int_values.at, a->out->numel);
    return host_end(&h);
}

/* ---- places of triangles ---- */

/* Lists the indices of a triangle row by row: the columns up to the diagonal (lower), or from the diagonal on
 * (upper). */
static proa_status list_triangle(proa_tensor *out, int64_t rows, int64_t columns, int64_t offset, bool lower)
{
    host_job h;
    PROA_TRY(host_begin(&h, out));
    int64_t n = out->shape[1], k = 0;
    if (offset < -rows) offset = -rows;
    if (offset > columns) offset = columns;
    for (int64_t i = lower && offset < 0 ? -offset : 0; i < rows; i++) {
        int64_t edge = i + offset, from = lower || edge < 0 ? 0 : edge, to = columns;
        if (from >= columns) break; /* this row has none, and so have those below it */
        if (lower && edge + 1 < columns) to = edge + 1;
        for (int64_t j = from; j < to; j++, k++) {
            int64_t pair[2] = {i, j};
            for (int p = 0; p < 2; p++)
                if (out->dtype == PROA_I32) ((int32_t *)(void *)h.data)[p * n + k] = (int32_t)pair[p];
                else ((int64_t *)(void *)h.data)[p * n + k] = pair[p];
        }
    }
    return host_end(&h);
}

PROA_KERNEL_ANYWHERE(tril_indices_cpu, tril_indices)
{
    return list_triangle(a->out, a->rows, a->cols, a->offset, true);
}

PROA_KERNEL_ANYWHERE(triu_indices_cpu, triu_indices)
{
    return list_triangle(a->out, a->rows, a->cols, a->offset, false);
}
