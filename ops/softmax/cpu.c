/* CPU kernels of softmax, log_softmax and their backward ops: one row at a time when the axis is the last,
 * otherwise blocks of neighboring columns. May use core, kernels and ops. */
#include "impl/softmax.h"

#include "kernels/nontemporal.h"
#include "kernels/rowwise.h"
#include "kernels/simd_softmax.h"

enum {
    COLUMNS = 64,
    NONTEMPORAL_ROW = 4096
}; /* NONTEMPORAL_ROW: elements that wait in the first-level cache */

#define T float
#include "cpu.inc"
#undef T
#define T double
#include "cpu.inc"
#undef T

typedef struct work {
    proa_dtype dtype;
    bool is_log, is_grad, nontemporal;
    const void *x, *d; /* grad: the forward output and its gradient */
    void *y;
    rows_around r;
    int64_t blocks; /* of columns, per outer index */
} work;

static void one(const work *w, int64_t at, int64_t columns)
{
    int64_t n = w->r.n, inner = w->r.inner;
    bool wide = w->dtype == PROA_F64;
    if (inner == 1) {
        if (w->is_grad)
            (wide ? grad_row_double : grad_row_float)(w->dtype, w->is_log, w->nontemporal, w->x, w->d, w->y,
                                                      at, n);
        else if (w->is_log)
            (wide ? log_softmax_row_double : log_softmax_row_float)(w->dtype, w->x, w->y, at, n);
        else if (w->nontemporal && n <= NONTEMPORAL_ROW && wide)
            softmax_row_nontemporal_double((const double *)w->x + at, (double *)w->y + at, n);
        else if (w->nontemporal && n <= NONTEMPORAL_ROW)
            softmax_row_nontemporal_float((const float *)w->x + at, (float *)w->y + at, n);
        else (wide ? softmax_row_double : softmax_row_float)(w->dtype, w->x, w->y, at, n);
    } else if (w->is_grad) {
        (wide ? grad_columns_double : grad_columns_float)(w->dtype, w->is_log, w->x, w->d, w->y, at, n, inner,
                                                          columns);
    } else {
        (wide ? columns_double : columns_float)(w->dtype, w->is_log, w->x, w->y, at, n, inner, columns);
    }
}

static void range(int64_t begin, int64_t end, void *context)
{
    const work *w = context;
    for (int64_t i = begin; i < end; i++) {
        int64_t outer = i / w->blocks, column = i % w->blocks * COLUMNS;
        int64_t left = w->r.inner - column;
        one(w, outer * w->r.n * w->r.inner + column, left < COLUMNS ? left : COLUMNS);
    }
    if (w->nontemporal) proa__copy_nontemporal_end();
}

static proa_status run_work(work *w, const proa_tensor *like, int64_t axis)
{
    w->dtype = (proa_dtype)like->dtype;
    w->r = rows_split(like, axis);
    if (like->numel == 0) return PROA_OK;
    int64_t item = (int64_t)proa_dtype_size(w->dtype);
    w->nontemporal = rows_in_place(w->dtype) && nontemporal_pays(like->numel * item, w->r.n * item) &&
                     w->y != w->x && w->y != w->d;
    w->blocks = (w->r.inner + COLUMNS - 1) / COLUMNS;
    int64_t columns = w->r.inner < COLUMNS ? w->r.inner : COLUMNS;
    proa__parallel(w->r.outer * w->blocks, rows_grain(ROWS_COSTLY * w->r.n * columns), range, w);
    return PROA_OK;
}

PROA_KERNEL(softmax_cpu, softmax)
{
    work w = {.x = a->x->data, .y = a->out->data};
    return run_work(&w, a->x, a->axis);
}

PROA_KERNEL(log_softmax_cpu, log_softmax)
{
    work w = {.is_log = true, .x = a->x->data, .y = a->out->data};
    return run_work(&w, a->x, a->axis);
}

PROA_KERNEL(softmax_grad_cpu, softmax_grad)
{
    work w = {.is_grad = true, .x = a->out->data, .d = a->d_out->data, .y = a->d_x->data};
    return run_work(&w, a->out, a->axis);
}

PROA_KERNEL(log_softmax_grad_cpu, log_softmax_grad)
{
    work w = {.is_log = true, .is_grad = true, .x = a->out->data, .d = a->d_out->data, .y = a->d_x->data};
    return run_work(&w, a->out, a->axis);
}
