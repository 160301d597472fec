/* CPU kernel of the Lamb step: one pass computes moments and norms, a second one updates the parameter. Where
 * parameters are divided among ranks, the ranks sum their parts' squared norms in between. May use core and
 * the row helpers of ops/. */
#include "impl/optimizer.h"

#include "core/group.h"
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

static lamb lamb_of(const proa_lamb_step_args *a, int64_t i)
{
    return (lamb){.param = a->params.at[i],
                  .grad = a->grads.at[i],
                  .truth = a->masters.count ? a->masters.at[i] : a->params.at[i],
                  .m = a->moments1.at[i],
                  .v = a->moments2.at[i],
                  .beta1 = a->beta1,
                  .beta2 = a->beta2,
                  .pow1 = number(a->beta1_pows.at[i]),
                  .pow2 = number(a->beta2_pows.at[i]),
                  .epsilon = a->epsilon,
                  .decay = a->weight_decay};
}

/* First pass over a parameter: moments; squared norms of the parameter and of the direction. */
static proa_status measure(lamb *w, double squares[2])
{
    int64_t n = (w->param->numel + CHUNK - 1) / CHUNK;
    w->norms = proa_scratch((size_t)n * 2 * sizeof(double));
    if (!w->norms) return proa_error();
    proa_status status = rows_merge_begin(w->grad, &w->rows);
    if (status == PROA_OK) proa__parallel(n, 2, run_first, w);
    rows_merge_end(&w->rows);
    squares[0] = squares[1] = 0;
    for (int64_t c = 0; c < n; c++) squares[0] += w->norms[2 * c], squares[1] += w->norms[2 * c + 1];
    proa_scratch_free(w->norms);
    return status;
}

/* Second pass over a parameter: the update, and the powers of β. */
static void update(const proa_lamb_step_args *a, int64_t i, lamb *w, const double squares[2])
{
    bool adapt = (a->weight_decay > 0 || a->always_adapt) && squares[0] > 0 && squares[1] > 0;
    double lr = number(a->learning_rate);
    w->lr = adapt ? lr * sqrt(squares[0] / squares[1]) : lr;
    proa__parallel((w->param->numel + CHUNK - 1) / CHUNK, 2, run_second, w);
    advance(a->beta1_pows.at[i], a->beta1);
    advance(a->beta2_pows.at[i], a->beta2);
}

/* Sums squares over the groups among whose ranks the parameters are divided. */
static proa_status sum_over(proa_ints groups, double *squares, int64_t count)
{
    for (int64_t i = 0; i < groups.count; i++) {
        proa_group *g = proa__group("lamb_step", groups.at[i]);
        if (!g) return proa_error();
        PROA_TRY(g->all_reduce(g, squares, count, PROA_F64, PROA_REDUCE_SUM));
    }
    return PROA_OK;
}

PROA_KERNEL(lamb_step_cpu, lamb_step)
{
    if (!proa__absent(a->skip_update) && *(const uint8_t *)a->skip_update->data) return PROA_OK;
    int64_t count = a->params.count;
    if (!a->groups.count) {
        for (int64_t i = 0; i < count; i++) {
            double squares[2];
            lamb w = lamb_of(a, i);
            PROA_TRY(measure(&w, squares));
            update(a, i, &w, squares);
        }
        return PROA_OK;
    }
    double *squares = proa_scratch((size_t)count * 2 * sizeof *squares);
    proa_status status = squares ? PROA_OK : proa_error();
    for (int64_t i = 0; i < count && status == PROA_OK; i++) {
        lamb w = lamb_of(a, i);
        status = measure(&w, squares + 2 * i);
    }
    if (status == PROA_OK) status = sum_over(a->groups, squares, 2 * count);
    for (int64_t i = 0; i < count && status == PROA_OK; i++) {
        lamb w = lamb_of(a, i);
        update(a, i, &w, squares + 2 * i);
    }
    proa_scratch_free(squares);
    return status;
}
