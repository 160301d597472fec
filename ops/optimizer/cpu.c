/* Portable kernels of the optimiser steps: one pass over memory, all parameters' pieces shared out among
 * threads together, so that many small parameters cost no more than one large one. Lamb needs norms first:
 * cpu_lamb.c. May use core and the row helpers of ops/. */
#include "ops_impl.h"

#include "ops/rows.h"

typedef enum step_kind { SGD, MOMENTUM, ADAM, ADAGRAD, RMSPROP, ADADELTA, ADAMAX } step_kind;

enum { MAX_STATES = 3, NUMBERS = 5, PIECE = 512, CHUNK = 16384 };

typedef struct step {
    step_kind kind;
    proa_tensors params, grads, masters, states[MAX_STATES];
    int n_states;
    double *numbers;   /* NUMBERS a parameter */
    int64_t *chunk_of; /* number of the first chunk of each parameter, and how many there are */
} step;

static inline float root_float(float v) { return sqrtf(v); }
static inline double root_double(double v) { return sqrt(v); }

#define T float
#include "cpu.inc"
#undef T
#define T double
#include "cpu.inc"
#undef T

static void chunks(int64_t begin, int64_t end, void *context)
{
    const step *w = context;
    int64_t low = 0, high = w->params.count; /* the parameter that chunk `begin` is in */
    while (high - low > 1) {
        int64_t mid = (low + high) / 2;
        if (w->chunk_of[mid] <= begin) low = mid;
        else high = mid;
    }
    for (int64_t c = begin; c < end; c++) {
        while (w->chunk_of[low + 1] <= c) low++;
        int64_t at = (c - w->chunk_of[low]) * CHUNK, stop = at + CHUNK;
        const proa_tensor *p = w->params.at[low];
        if (stop > p->numel) stop = p->numel;
        for (; at < stop; at += PIECE)
            (p->dtype == PROA_F64 ? piece_double : piece_float)(w, low, at,
                                                                stop - at < PIECE ? stop - at : PIECE);
    }
}

/* Room for the numbers and the chunk table, in one block; numbers start as `same`. */
static proa_status start(step *w, const double *same)
{
    size_t n = (size_t)w->params.count;
    w->numbers = proa_scratch((n * NUMBERS) * sizeof(double) + (n + 1) * sizeof(int64_t));
    if (!w->numbers) return proa_error();
    w->chunk_of = (int64_t *)(void *)(w->numbers + n * NUMBERS);
    w->chunk_of[0] = 0;
    for (size_t i = 0; i < n; i++) {
        memcpy(w->numbers + i * NUMBERS, same, NUMBERS * sizeof(double));
        w->chunk_of[i + 1] = w->chunk_of[i] + (w->params.at[i]->numel + CHUNK - 1) / CHUNK;
    }
    return PROA_OK;
}

static proa_status finish(step *w)
{
    int64_t count = w->params.count, elements = 0;
    for (int64_t i = 0; i < count && elements < CHUNK; i++) elements += w->params.at[i]->numel;
    if (elements < CHUNK) chunks(0, w->chunk_of[count], w); /* waking threads would cost more */
    else proa__parallel(w->chunk_of[count], 2, chunks, w);
    proa_scratch_free(w->numbers);
    return PROA_OK;
}

static double number(const proa_tensor *t) { return rows_get((proa_dtype)t->dtype, t->data, 0); }

/* β^t moves on in its own precision, as in Paddle: the same numbers step for step. */
static void advance(const proa_tensor *t, double beta)
{
    double v = number(t);
    rows_set((proa_dtype)t->dtype, t->data, 0,
             t->dtype == PROA_F64 ? v * beta : (double)((float)v * (float)beta));
}

static bool skipped(const proa_tensor *t) { return !proa__absent(t) && *(const uint8_t *)t->data; }

PROA_KERNEL(sgd_step_cpu, sgd_step)
{
    step w = {.kind = SGD, .params = a->params, .grads = a->grads, .masters = a->masters};
    PROA_TRY(start(&w, (double[NUMBERS]){number(a->learning_rate)}));
    return finish(&w);
}

PROA_KERNEL(momentum_step_cpu, momentum_step)
{
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
 * double here differs by less than a float32 rounding. */
static void adam_numbers(step *w, proa_tensors pows1, proa_tensors pows2, double lr, double beta1,
                         double beta2, double epsilon, double keep)
{
    for (int64_t i = 0; i < w->params.count; i++) {
        double *k = w->numbers + i * NUMBERS, p1 = number(pows1.at[i]), p2 = number(pows2.at[i]);
        k[0] = lr * sqrt(1 - p2) / (1 - p1);
        k[1] = beta1;
        k[2] = beta2;
        k[3] = epsilon * sqrt(1 - p2);
        k[4] = keep;
        advance(pows1.at[i], beta1);
        advance(pows2.at[i], beta2);
    }
}

PROA_KERNEL(adam_step_cpu, adam_step)
{
    if (skipped(a->skip_update)) return PROA_OK;
    step w = {.kind = ADAM,
              .params = a->params,
              .grads = a->grads,
              .masters = a->masters,
              .states = {a->moments1, a->moments2},
              .n_states = 2};
    PROA_TRY(start(&w, (double[NUMBERS]){0}));
    adam_numbers(&w, a->beta1_pows, a->beta2_pows, number(a->learning_rate), a->beta1, a->beta2, a->epsilon,
                 1);
    return finish(&w);
}

PROA_KERNEL(adamw_step_cpu, adamw_step)
{
    if (skipped(a->skip_update)) return PROA_OK;
    step w = {.kind = ADAM,
              .params = a->params,
              .grads = a->grads,
              .masters = a->masters,
              .states = {a->moments1, a->moments2},
              .n_states = 2};
    double lr = number(a->learning_rate) * a->lr_ratio;
    PROA_TRY(start(&w, (double[NUMBERS]){0}));
    adam_numbers(&w, a->beta1_pows, a->beta2_pows, lr, a->beta1, a->beta2, a->epsilon,
                 a->with_decay ? 1 - lr * a->coeff : 1);
    return finish(&w);
}

PROA_KERNEL(adagrad_step_cpu, adagrad_step)
{
    step w = {.kind = ADAGRAD,
              .params = a->params,
              .grads = a->grads,
              .masters = a->masters,
              .states = {a->moments},
              .n_states = 1};
    PROA_TRY(start(&w, (double[NUMBERS]){number(a->learning_rate), a->epsilon}));
    return finish(&w);
}

PROA_KERNEL(rmsprop_step_cpu, rmsprop_step)
{
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

PROA_KERNEL(adadelta_step_cpu, adadelta_step)
{
    step w = {.kind = ADADELTA,
              .params = a->params,
              .grads = a->grads,
              .masters = a->masters,
              .states = {a->avg_squared_grads, a->avg_squared_updates},
              .n_states = 2};
    PROA_TRY(start(&w, (double[NUMBERS]){number(a->learning_rate), a->rho, a->epsilon}));
    return finish(&w);
}

PROA_KERNEL(adamax_step_cpu, adamax_step)
{
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
