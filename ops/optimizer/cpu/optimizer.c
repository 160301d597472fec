/* CPU kernels of the optimizer steps: one pass over memory. Each thread updates the same share of every large
 * parameter; small ones are not split. Lamb, which needs norms first, is in lamb.c. May use core and the row
 * helpers of ops/. */
#include "impl/optimizer.h"

#include "core/blocked.h"
#include "ops/selected_rows/merge.h"

typedef enum step_kind { SGD, MOMENTUM, ADAM, ADAGRAD, RMSPROP, ADADELTA, ADAMAX } step_kind;

/* PIECE: elements converted on the stack at a time; TURN: elements updated while the next ones are
 * prefetched. */
enum { MAX_STATES = 3, NUMBERS = 6, PIECE = 512, TURN = 256 };

/* SHARE: elements worth a thread. SMALL: elements per thread from which a parameter is split. LINE:
 * granularity, so that no two threads write one cache line. */
enum { SHARE = 8192, SMALL = 1024, LINE = 64 };

typedef struct step {
    step_kind kind;
    proa_tensors params, grads, masters, states[MAX_STATES];
    int n_states;
    bool in_place;    /* nothing is converted: a share is one piece */
    bool touched;     /* lazy: SelectedRows gradients update only the rows that they store */
    rows_merge *rows; /* per parameter; NULL without SelectedRows gradients */
    double *numbers;  /* NUMBERS a parameter */
    int64_t parts;    /* shares that each large parameter is divided into */
    int64_t small;    /* elements of the parameters that are not split */
} step;

/* Data of tensor t of parameter i: in the parameter's layout (blocked or row-major). */
static inline char *memory_of(const step *w, int64_t i, const proa_tensor *t)
{
    return proa__format(w->params.at[i]) ? proa__blocked_data(t) : t->data;
}

/* Steps compute in float or double: optimizer.inc, and the formulas that it includes, once for each type
 * T. */
#define STEP_FORMULA static inline __attribute__((unused))
#define T float
#define STEP_ROOT sqrtf
#include "optimizer.inc"
#undef T
#undef STEP_ROOT
#define T double
#define STEP_ROOT sqrt
#include "optimizer.inc"
#undef T
#undef STEP_ROOT

/* Whether the step visits only rows that the SelectedRows gradient of parameter `index` stores. */
static bool visits_rows(const step *w, int64_t index) { return w->touched && w->rows && w->rows[index].t; }

static int64_t extent(const step *w, int64_t index)
{
    if (visits_rows(w, index)) return w->rows[index].count * w->rows[index].length;
    return w->params.at[index]->numel;
}

/* Updates elements [at, at + n) of parameter `index`; `idle`: they are in rows that Adam's SelectedRows
 * gradient does not store, for which epsilon is numbers[5]. */
static void piece(const step *w, int64_t index, int64_t at, int64_t n, bool idle)
{
    double own[NUMBERS];
    const double *k = w->numbers + index * NUMBERS;
    if (idle) {
        memcpy(own, k, sizeof own);
        own[3] = k[5];
        k = own;
    }
    (w->params.at[index]->dtype == PROA_F64 ? piece_double : piece_float)(w, index, at, n, k);
}

/* End of the run of elements from `at` on that are treated alike: the row, if the gradient stores it
 * (*given), else all rows up to the next stored one. */
static int64_t run_end(const rows_merge *m, int64_t at, bool *given)
{
    int64_t row = at / m->length, next = rows_merge_find(m, row);
    *given = next < m->count && m->row[next] == row;
    if (*given) return (row + 1) * m->length;
    return next < m->count ? m->row[next] * m->length : INT64_MAX;
}

/* Updates elements [at, stop), counted over those that the step visits, in pieces that `piece` can take. */
static void stretch(const step *w, int64_t index, int64_t at, int64_t stop)
{
    bool rows = visits_rows(w, index), split = w->kind == ADAM && !rows && w->rows && w->rows[index].t;
    for (int64_t n; at < stop; at += n) {
        int64_t place = at;
        bool given = true;
        n = stop - at < PIECE || w->in_place ? stop - at : PIECE;
        if (split) {
            int64_t end = run_end(&w->rows[index], at, &given);
            if (n > end - at) n = end - at;
        } else if (rows) { /* a piece is part of one row */
            const rows_merge *m = &w->rows[index];
            int64_t column = at % m->length;
            place = m->row[at / m->length] * m->length + column;
            if (n > m->length - column) n = m->length - column;
        }
        piece(w, index, place, n, !given);
    }
}

/* Each thread gets the same share of every parameter, in one piece: threads that split the product that made
 * the gradient by rows have most of that share in cache, and from step to step parameter and states stay
 * there. Small parameters are not split, and stay with the first thread while there are few. */
static void shares(int64_t begin, int64_t end, void *context)
{
    const step *w = context;
    int64_t least = w->parts * SMALL, small = w->small > least ? w->small : least;
    for (int64_t part = begin; part < end; part++)
        for (int64_t i = 0, before = 0; i < w->params.count; i++) {
            int64_t n = extent(w, i), at = 0, stop = n;
            if (n >= least) {
                at = part * n / w->parts / LINE * LINE;
                if (part + 1 < w->parts) stop = (part + 1) * n / w->parts / LINE * LINE;
            } else {
                if (before * w->parts / small != part) stop = 0;
                before += n;
            }
            if (at < stop) stretch(w, i, at, stop);
        }
}

static void end_rows(step *w)
{
    for (int64_t i = 0; w->rows && i < w->params.count; i++) rows_merge_end(&w->rows[i]);
    proa_scratch_free(w->rows);
}

/* True if parameter i, its gradient and its states can all have the gradient's layout: they get it. */
static proa_status align(const step *w, int64_t i, bool *done)
{
    proa_tensor *p = w->params.at[i];
    int format = proa__format(w->grads.at[i]);
    *done = format && !w->masters.count && p->dtype == w->grads.at[i]->dtype;
    if (*done) PROA_TRY(proa__move_to_format(p, format, done));
    for (int k = 0; *done && k < w->n_states; k++)
        if (w->states[k].count) PROA_TRY(proa__move_to_format(w->states[k].at[i], format, done));
    return PROA_OK;
}

/* Converts parameters and states of convolutions to the blocked layout in which backward makes their
 * gradients, so that later steps convert no layouts; all other tensors become row-major. */
static proa_status align_all(const step *w)
{
    for (int64_t i = 0; i < w->params.count; i++) {
        bool done = false;
        if (w->grads.at[i]->flags & PROA_T_BLOCKED) PROA_TRY(align(w, i, &done));
        if (done) continue;
        PROA_TRY(proa__plain(w->grads.at[i]));
        PROA_TRY(proa__plain_to_write(w->params.at[i]));
        if (w->masters.count) PROA_TRY(proa__plain_to_write(w->masters.at[i]));
        for (int k = 0; k < w->n_states; k++)
            if (w->states[k].count) PROA_TRY(proa__plain_to_write(w->states[k].at[i]));
    }
    return PROA_OK;
}

/* Indexes SelectedRows gradients by row in w->rows, if there are any; end_rows frees it. */
static proa_status begin_rows(step *w)
{
    bool any = false;
    int64_t n = w->params.count;
    for (int64_t i = 0; i < n && !any; i++) any = w->grads.at[i]->kind == PROA_ROWS;
    if (!any) return PROA_OK;
    w->rows = proa_scratch((size_t)n * sizeof *w->rows);
    if (!w->rows) return proa_error();
    memset(w->rows, 0, (size_t)n * sizeof *w->rows);
    for (int64_t i = 0; i < n; i++) {
        proa_status status = rows_merge_begin(w->grads.at[i], &w->rows[i]);
        if (status == PROA_OK) continue;
        end_rows(w);
        return status;
    }
    return PROA_OK;
}

static bool all_in_place(proa_tensors list)
{
    for (int64_t i = 0; i < list.count; i++)
        if (!rows_in_place((proa_dtype)list.at[i]->dtype)) return false;
    return true;
}

/* Prepares a step: aligns layouts, indexes SelectedRows gradients, allocates every parameter's numbers and
 * sets them to `same`. */
static proa_status start(step *w, const double *same)
{
    size_t n = (size_t)w->params.count;
    PROA_TRY(align_all(w));
    PROA_TRY(begin_rows(w));
    w->in_place = !w->rows && all_in_place(w->params) && all_in_place(w->grads) && all_in_place(w->masters);
    for (int k = 0; k < w->n_states; k++) w->in_place = w->in_place && all_in_place(w->states[k]);
    w->numbers = proa_scratch(n * NUMBERS * sizeof(double) + 1);
    if (!w->numbers) {
        end_rows(w);
        return proa_error();
    }
    for (size_t i = 0; i < n; i++) memcpy(w->numbers + i * NUMBERS, same, NUMBERS * sizeof(double));
    return PROA_OK;
}

static proa_status finish(step *w)
{
    int64_t count = w->params.count, elements = 0;
    for (int64_t i = 0; i < count; i++) elements += extent(w, i);
    w->parts = elements / SHARE < 1 ? 1 : elements / SHARE;
    if (w->parts > proa_threads()) w->parts = proa_threads();
    for (int64_t i = 0; i < count; i++)
        if (extent(w, i) < w->parts * SMALL) w->small += extent(w, i);
    proa__parallel(w->parts, 1, shares, w);
    proa_scratch_free(w->numbers);
    end_rows(w);
    return PROA_OK;
}

static double number(const proa_tensor *t) { return rows_get((proa_dtype)t->dtype, t->data, 0); }

/* Multiplies β^t by β in its own precision, as Paddle does, so that the numbers agree step for step. */
static void advance(const proa_tensor *t, double beta)
{
    double v = number(t);
    rows_set((proa_dtype)t->dtype, t->data, 0,
             t->dtype == PROA_F64 ? v * beta : (double)((float)v * (float)beta));
}

/* The op updates in place and has no output whose format could be chosen. */
static int no_format(const void *args, const void *state)
{
    (void)args, (void)state;
    return 0;
}

static bool skipped(const proa_tensor *t) { return !proa__absent(t) && *(const uint8_t *)t->data; }

PROA_KERNEL_BLOCKED(sgd_step_cpu, sgd_step, NULL, NULL, no_format)
{
    if (skipped(a->skip_update)) return PROA_OK;
    step w = {.kind = SGD, .params = a->params, .grads = a->grads, .masters = a->masters, .touched = true};
    PROA_TRY(start(&w, (double[NUMBERS]){number(a->learning_rate)}));
    return finish(&w);
}

PROA_KERNEL_BLOCKED(momentum_step_cpu, momentum_step, NULL, NULL, no_format)
{
    if (skipped(a->skip_update)) return PROA_OK;
    step w = {.kind = MOMENTUM,
              .params = a->params,
              .grads = a->grads,
              .masters = a->masters,
              .states = {a->velocities},
              .n_states = 1};
    PROA_TRY(start(&w, (double[NUMBERS]){number(a->learning_rate), a->mu, a->weight_decay, a->rescale_grad,
                                         a->use_nesterov}));
    return finish(&w);
}

/* Paddle keeps β and epsilon of Adam as float32 attributes and computes the factor in the parameter's type;
 * double here differs by less than a float32 rounding. For SelectedRows gradients its CPU kernel of Adam
 * (AdamW has none) advances β^t before using it, and does not scale epsilon for rows that the gradient lacks;
 * `as_rows` does the same. */
static void adam_numbers(step *w, proa_tensors pows1, proa_tensors pows2, double lr, double beta1,
                         double beta2, double epsilon, double keep, bool as_rows)
{
    for (int64_t i = 0; i < w->params.count; i++) {
        bool early = as_rows && w->grads.at[i]->kind == PROA_ROWS;
        if (early) advance(pows1.at[i], beta1), advance(pows2.at[i], beta2);
        double *k = w->numbers + i * NUMBERS, p1 = number(pows1.at[i]), p2 = number(pows2.at[i]);
        k[0] = lr * sqrt(1 - p2) / (1 - p1);
        k[1] = beta1;
        k[2] = beta2;
        k[3] = epsilon * sqrt(1 - p2);
        k[4] = keep;
        k[5] = early ? epsilon : k[3];
        if (!early) advance(pows1.at[i], beta1), advance(pows2.at[i], beta2);
    }
}

PROA_KERNEL_BLOCKED(adam_step_cpu, adam_step, NULL, NULL, no_format)
{
    if (skipped(a->skip_update)) return PROA_OK;
    step w = {.kind = ADAM,
              .params = a->params,
              .grads = a->grads,
              .masters = a->masters,
              .states = {a->moments1, a->moments2},
              .n_states = 2,
              .touched = a->lazy_mode};
    PROA_TRY(start(&w, (double[NUMBERS]){0}));
    adam_numbers(&w, a->beta1_pows, a->beta2_pows, number(a->learning_rate), a->beta1, a->beta2, a->epsilon,
                 1, true);
    return finish(&w);
}

PROA_KERNEL_BLOCKED(adamw_step_cpu, adamw_step, NULL, NULL, no_format)
{
    if (skipped(a->skip_update)) return PROA_OK;
    step w = {.kind = ADAM,
              .params = a->params,
              .grads = a->grads,
              .masters = a->masters,
              .states = {a->moments1, a->moments2},
              .n_states = 2,
              .touched = a->lazy_mode};
    double lr = number(a->learning_rate) * a->lr_ratio;
    PROA_TRY(start(&w, (double[NUMBERS]){0}));
    adam_numbers(&w, a->beta1_pows, a->beta2_pows, lr, a->beta1, a->beta2, a->epsilon,
                 a->with_decay ? 1 - lr * a->coeff : 1, false);
    return finish(&w);
}

PROA_KERNEL_BLOCKED(adagrad_step_cpu, adagrad_step, NULL, NULL, no_format)
{
    if (skipped(a->skip_update)) return PROA_OK;
    step w = {.kind = ADAGRAD,
              .params = a->params,
              .grads = a->grads,
              .masters = a->masters,
              .states = {a->moments},
              .n_states = 1,
              .touched = true};
    PROA_TRY(start(&w, (double[NUMBERS]){number(a->learning_rate), a->epsilon}));
    return finish(&w);
}

PROA_KERNEL_BLOCKED(rmsprop_step_cpu, rmsprop_step, NULL, NULL, no_format)
{
    if (skipped(a->skip_update)) return PROA_OK;
    step w = {.kind = RMSPROP,
              .params = a->params,
              .grads = a->grads,
              .masters = a->masters,
              .states = {a->mean_squares, {0, NULL}, a->moments},
              .n_states = 3};
    if (a->centered) w.states[1] = a->mean_grads;
    PROA_TRY(start(&w, (double[NUMBERS]){number(a->learning_rate), a->rho, a->epsilon, a->momentum}));
    return finish(&w);
}

PROA_KERNEL_BLOCKED(adadelta_step_cpu, adadelta_step, NULL, NULL, no_format)
{
    if (skipped(a->skip_update)) return PROA_OK;
    step w = {.kind = ADADELTA,
              .params = a->params,
              .grads = a->grads,
              .masters = a->masters,
              .states = {a->avg_squared_grads, a->avg_squared_updates},
              .n_states = 2};
    PROA_TRY(start(&w, (double[NUMBERS]){number(a->learning_rate), a->rho, a->epsilon}));
    return finish(&w);
}

PROA_KERNEL_BLOCKED(adamax_step_cpu, adamax_step, NULL, NULL, no_format)
{
    if (skipped(a->skip_update)) return PROA_OK;
    step w = {.kind = ADAMAX,
              .params = a->params,
              .grads = a->grads,
              .masters = a->masters,
              .states = {a->moments, a->inf_norms},
              .n_states = 2};
    PROA_TRY(start(&w, (double[NUMBERS]){0}));
    for (int64_t i = 0; i < a->params.count; i++) {
        double *k = w.numbers + i * NUMBERS, pow = number(a->beta1_pows.at[i]);
        k[0] = number(a->learning_rate) / (1 - pow);
        k[1] = a->beta1;
        k[2] = a->beta2;
        k[3] = a->epsilon;
        advance(a->beta1_pows.at[i], a->beta1);
    }
    return finish(&w);
}
