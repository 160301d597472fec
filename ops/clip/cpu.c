/* CPU kernels of clipping by norm. Squares are summed in double over fixed chunks, and the chunks' sums are
 * added in order, so that results do not depend on the thread count. May use core, kernels and ops. */
#include "impl/clip.h"

#include "kernels/rowwise.h"

enum { CHUNK = 16384 };

typedef struct norm_work {
    const proa_tensor *t;
    void *out;
    double factor;
    double *parts; /* sum of squares of each chunk */
} norm_work;

static void square_chunks(int64_t begin, int64_t end, void *context)
{
    const norm_work *w = context;
    proa_dtype dtype = (proa_dtype)w->t->dtype;
    for (int64_t c = begin; c < end; c++) {
        int64_t stop = (c + 1) * CHUNK < w->t->numel ? (c + 1) * CHUNK : w->t->numel;
        double sum = 0;
        for (int64_t i = c * CHUNK; i < stop; i += ROWS_PIECE) {
            int64_t n = stop - i < ROWS_PIECE ? stop - i : ROWS_PIECE;
            float buffer[ROWS_PIECE];
            if (dtype == PROA_F64) {
                const double *x = (const double *)(const void *)w->t->data + i;
#pragma omp simd reduction(+ : sum)
                for (int64_t k = 0; k < n; k++) sum += x[k] * x[k];
            } else {
                const float *x = rows_load_float(dtype, w->t->data, i, n, buffer);
#pragma omp simd reduction(+ : sum)
                for (int64_t k = 0; k < n; k++) sum += (double)x[k] * (double)x[k];
            }
        }
        w->parts[c] = sum;
    }
}

static proa_status squared(const proa_tensor *t, double *total)
{
    int64_t n = (t->numel + CHUNK - 1) / CHUNK;
    norm_work w = {.t = t, .parts = proa_scratch((size_t)(n ? n : 1) * sizeof(double))};
    if (!w.parts) return proa_error();
    proa__parallel(n, 2, square_chunks, &w);
    for (int64_t i = 0; i < n; i++) *total += w.parts[i];
    proa_scratch_free(w.parts);
    return PROA_OK;
}

static void scale_range(int64_t begin, int64_t end, void *context)
{
    const norm_work *w = context;
    proa_dtype dtype = (proa_dtype)w->t->dtype;
    if (dtype == PROA_F64) {
        const double *x = (const double *)(const void *)w->t->data;
        double *y = w->out;
        for (int64_t i = begin; i < end; i++) y[i] = x[i] * w->factor;
        return;
    }
    float buffer[ROWS_PIECE], factor = (float)w->factor;
    for (int64_t i = begin, n; i < end; i += n) {
        n = end - i < ROWS_PIECE ? end - i : ROWS_PIECE;
        const float *x = rows_load_float(dtype, w->t->data, i, n, buffer);
        float *y = rows_place_float(dtype, w->out, i, buffer);
        for (int64_t k = 0; k < n; k++) y[k] = x[k] * factor;
        rows_store_float(dtype, w->out, i, n, y);
    }
}

static void scale(const proa_tensor *t, void *out, double factor)
{
    norm_work w = {.t = t, .out = out, .factor = factor};
    proa__parallel(t->numel, rows_grain(1), scale_range, &w);
}

PROA_KERNEL(clip_by_norm_cpu, clip_by_norm)
{
    double sum = 0;
    PROA_TRY(squared(a->x, &sum));
    double norm = sqrt(sum);
    scale(a->x, a->out->data, norm > a->max_norm ? a->max_norm / norm : 1);
    return PROA_OK;
}

PROA_KERNEL(squared_l2_norm_cpu, squared_l2_norm)
{
    double sum = 0;
    PROA_TRY(squared(a->x, &sum));
    rows_set((proa_dtype)a->out->dtype, a->out->data, 0, sum);
    return PROA_OK;
}

PROA_KERNEL(global_squared_norm_cpu, global_squared_norm)
{
    double sum = 0;
    for (int64_t i = 0; i < a->xs.count; i++) PROA_TRY(squared(a->xs.at[i], &sum));
    rows_set((proa_dtype)a->out->dtype, a->out->data, 0, sum);
    return PROA_OK;
}

PROA_KERNEL(clip_by_global_norm_cpu, clip_by_global_norm)
{
    double norm = sqrt(rows_get((proa_dtype)a->squared_norm->dtype, a->squared_norm->data, 0));
    double factor = a->max_norm / (norm > a->max_norm ? norm : a->max_norm);
    for (int64_t i = 0; i < a->xs.count; i++) scale(a->xs.at[i], a->xs.at[i]->data, factor);
    return PROA_OK;
}
