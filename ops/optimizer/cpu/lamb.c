/* Portable kernel of the Lamb step: one pass computes moments and norms, a second one updates the parameter.
 * May use core and the row helpers of ops/. */
#include "impl/optimizer.h"

#include "ops/selected_rows/merge.h"

enum { PIECE = 512, CHUNK = 16384 };

typedef struct lamb {
    const proa_tensor *param, *grad, *truth, *m, *v; /* truth: the master, or the parameter itself */
    rows_merge rows;                                 /* of a SelectedRows gradient */
    double lr, beta1, beta2, pow1, pow2, epsilon, decay;
    double *norms; /* two a chunk, added up in order: the same bits whatever the thread count */
} lamb;

/* lamb.inc and the formulas that it includes, once for each computing type T. */
#define STEP_FORMULA static inline __attribute__((unused))
#define T float
#define STEP_ROOT sqrtf
#include "lamb.inc"
#undef T
#undef STEP_ROOT
#define T double
#define STEP_ROOT sqrt
#include "lamb.inc"
#undef T
#undef STEP_ROOT

static void run_first(int64_t begin, int64_t end, void *context)
{
    const lamb *w = context;
    for (int64_t c = begin; c < end; c++) {
        int64_t at = c * CHUNK, stop = at + CHUNK < w->param->numel ? at + CHUNK : w->param->numel;
        w->norms[2 * c] = w->norms[2 * c + 1] = 0;
        for (; at < stop; at += PIECE)
            (w->truth->dtype == PROA_F64 ? first_double : first_float)(
                w, at, stop - at < PIECE ? stop - at : PIECE, w->norms + 2 * c);
    }
}

static void run_second(int64_t begin, int64_t end, void *context)
{
    const lamb *w = context;
    for (int64_t c = begin; c < end; c++) {
        int64_t at = c * CHUNK, stop = at + CHUNK < w->param->numel ? at + CHUNK : w->param->numel;
        for (; at < stop; at += PIECE)
            (w->truth->dtype == PROA_F64 ? second_double
                                         : second_float)(w, at, stop - at < PIECE ? stop - at : PIECE);
    }
}

static double number(const proa_tensor *t) { return rows_get((proa_dtype)t->dtype, t->data, 0); }

/* Multiplies β^t by β in its own precision, as Paddle does, so that the numbers agree step for step. */
static void advance(const proa_tensor *t, double beta)
{
    double v = number(t);
    rows_set((proa_dtype)t->dtype, t->data, 0,
             t->dtype == PROA_F64 ? v * beta : (double)((float)v * (float)beta));
}

PROA_KERNEL(lamb_step_cpu, lamb_step)
{
    if (!proa__absent(a->skip_update) && *(const uint8_t *)a->skip_update->data) return PROA_OK;
    double lr = number(a->learning_rate);
    for (int64_t i = 0; i < a->params.count; i++) {
        const proa_tensor *param = a->params.at[i];
        lamb w = {.param = param,
                  .grad = a->grads.at[i],
                  .truth = a->masters.count ? a->masters.at[i] : param,
                  .m = a->moments1.at[i],
                  .v = a->moments2.at[i],
                  .beta1 = a->beta1,
                  .beta2 = a->beta2,
                  .pow1 = number(a->beta1_pows.at[i]),
                  .pow2 = number(a->beta2_pows.at[i]),
                  .epsilon = a->epsilon,
                  .decay = a->weight_decay};
        int64_t n = (param->numel + CHUNK - 1) / CHUNK;
        w.norms = proa_scratch((size_t)n * 2 * sizeof(double));
        if (!w.norms) return proa_error();
        proa_status status = rows_merge_begin(w.grad, &w.rows);
        if (status == PROA_OK) proa__parallel(n, 2, run_first, &w);
        rows_merge_end(&w.rows);
        double p = 0, r = 0;
        for (int64_t c = 0; c < n; c++) p += w.norms[2 * c], r += w.norms[2 * c + 1];
        proa_scratch_free(w.norms);
        PROA_TRY(status);
        bool adapt = (a->weight_decay > 0 || a->always_adapt) && p > 0 && r > 0;
        w.lr = adapt ? lr * sqrt(p / r) : lr;
        proa__parallel(n, 2, run_second, &w);
        advance(a->beta1_pows.at[i], a->beta1);
        advance(a->beta2_pows.at[i], a->beta2);
    }
    return PROA_OK;
}
