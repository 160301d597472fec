/* ctc_loss on the CPU: forward and backward variables in log space, in double, one sequence per task (Graves
 * et al., Connectionist Temporal Classification, 2006). May use core, kernels and ops. */
#include "impl/sequence.h"

#include "kernels/rowwise.h"

#include <stdatomic.h>

typedef struct ctc {
    const proa_ctc_loss_args *a;
    int64_t times, batch, classes;
    atomic_bool failed; /* no memory */
} ctc;

static double add_logs(double a, double b)
{
    double high = a > b ? a : b, low = a > b ? b : a;
    return isinf(low) ? high : high + log1p(exp(low - high));
}

static int64_t length_of(const proa_tensor *t, int64_t n)
{
    return rows_get_int((proa_dtype)t->dtype, t->data, n);
}

static int64_t label_at(const ctc *w, int64_t n, int64_t i)
{
    const proa_tensor *t = w->a->label;
    return rows_get_int((proa_dtype)t->dtype, t->data, n * t->shape[1] + i);
}

/* Entry s of the label with blanks between and around the letters. */
static int64_t symbol(const ctc *w, int64_t n, int64_t s)
{
    return s % 2 ? label_at(w, n, s / 2) : w->a->blank;
}

/* True if the path may skip the blank between s − 2 and s: the two letters differ. */
static bool may_skip(const ctc *w, int64_t n, int64_t s)
{
    return s % 2 && s > 2 && symbol(w, n, s) != symbol(w, n, s - 2);
}

/* Log-softmax over the classes for each frame of sequence n, [T, C]. */
static void log_softmax(const ctc *w, int64_t n, int64_t T, double *to)
{
    const proa_tensor *x = w->a->logits;
    for (int64_t t = 0; t < T; t++, to += w->classes) {
        int64_t at = (t * w->batch + n) * w->classes;
        double top = -INFINITY, sum = 0;
        for (int64_t c = 0; c < w->classes; c++) {
            to[c] = rows_get((proa_dtype)x->dtype, x->data, at + c);
            if (to[c] > top) top = to[c];
        }
        for (int64_t c = 0; c < w->classes; c++) sum += exp(to[c] - top);
        for (int64_t c = 0; c < w->classes; c++) to[c] -= top + log(sum);
    }
}

/* Forward variables (log): probability that frames 0 … t end in entry s. */
static void forward(const ctc *w, int64_t n, int64_t T, int64_t S, const double *lp, double *alpha)
{
    for (int64_t i = 0; i < T * S; i++) alpha[i] = -INFINITY;
    alpha[0] = lp[w->a->blank];
    if (S > 1) alpha[1] = lp[symbol(w, n, 1)];
    for (int64_t t = 1; t < T; t++)
        for (int64_t s = 0; s < S; s++) {
            const double *before = alpha + (t - 1) * S;
            double v = before[s];
            if (s > 0) v = add_logs(v, before[s - 1]);
            if (may_skip(w, n, s)) v = add_logs(v, before[s - 2]);
            alpha[t * S + s] = v + lp[t * w->classes + symbol(w, n, s)];
        }
}

/* Backward variables (log): from entry s at t to the end, without frame t. `next` and `now` are rows of S. */
static void backward_step(const ctc *w, int64_t n, int64_t S, const double *lp, const double *next,
                          double *now)
{
    for (int64_t s = 0; s < S; s++) {
        double v = next[s] + lp[symbol(w, n, s)];
        if (s + 1 < S) v = add_logs(v, next[s + 1] + lp[symbol(w, n, s + 1)]);
        if (s + 2 < S && may_skip(w, n, s + 2)) v = add_logs(v, next[s + 2] + lp[symbol(w, n, s + 2)]);
        now[s] = v;
    }
}

/* d loss / d logits at frame t: softmax minus each class's posterior, given the label. */
static void put_gradient(const ctc *w, int64_t n, int64_t t, int64_t S, const double *lp, const double *alpha,
                         const double *beta, double total, double *row)
{
    for (int64_t c = 0; c < w->classes; c++) row[c] = exp(lp[c]);
    for (int64_t s = 0; s < S; s++) row[symbol(w, n, s)] -= exp(alpha[s] + beta[s] - total);
    const proa_tensor *g = w->a->gradient;
    for (int64_t c = 0; c < w->classes; c++)
        rows_set((proa_dtype)g->dtype, g->data, (t * w->batch + n) * w->classes + c, row[c]);
}

static double one_sequence(const ctc *w, int64_t n, int64_t T, int64_t L, double *scratch)
{
    int64_t S = 2 * L + 1;
    double *lp = scratch, *alpha = lp + T * w->classes, *row = alpha + T * S, *beta = row + w->classes,
           *next = beta + S;
    log_softmax(w, n, T, lp);
    forward(w, n, T, S, lp, alpha);
    double total = alpha[(T - 1) * S + S - 1];
    if (S > 1) total = add_logs(total, alpha[(T - 1) * S + S - 2]);
    if (isinf(total)) return -total;
    for (int64_t s = 0; s < S; s++) beta[s] = s >= S - 2 ? 0 : -INFINITY;
    for (int64_t t = T - 1; t >= 0; t--) {
        put_gradient(w, n, t, S, lp + t * w->classes, alpha + t * S, beta, total, row);
        if (t == 0) break;
        backward_step(w, n, S, lp + t * w->classes, beta, next);
        memcpy(beta, next, (size_t)S * sizeof *beta);
    }
    return -total;
}

static void sequences(int64_t begin, int64_t end, void *context)
{
    ctc *w = context;
    const proa_tensor *loss = w->a->loss;
    for (int64_t n = begin; n < end; n++) {
        int64_t T = length_of(w->a->logits_length, n), L = length_of(w->a->label_length, n), repeats = 0;
        for (int64_t i = 1; i < L; i++) repeats += label_at(w, n, i) == label_at(w, n, i - 1);
        double cost = T == 0 ? INFINITY : 0; /* as in Paddle: no frame, or too few frames for the label */
        if (T > 0 && L + repeats <= T) {
            size_t doubles = (size_t)(T * (w->classes + 2 * L + 1) + w->classes + 2 * (2 * L + 1));
            double *scratch = proa_scratch(doubles * sizeof *scratch);
            if (!scratch) {
                atomic_store(&w->failed, true);
                return;
            }
            cost = one_sequence(w, n, T, L, scratch);
            proa_scratch_free(scratch);
        }
        rows_set((proa_dtype)loss->dtype, loss->data, n, cost);
    }
}

static proa_status check(const ctc *w)
{
    const proa_ctc_loss_args *a = w->a;
    for (int64_t n = 0; n < w->batch; n++) {
        int64_t T = length_of(a->logits_length, n), L = length_of(a->label_length, n);
        if (T < 0 || T > w->times)
            return ROWS_FAIL(ctc_loss, OUT_OF_RANGE, "logits_length",
                             "entry %lld is %lld; expected 0 to %lld", (long long)n, (long long)T,
                             (long long)w->times);
        if (L < 0 || L > a->label->shape[1])
            return ROWS_FAIL(ctc_loss, OUT_OF_RANGE, "label_length", "entry %lld is %lld; expected 0 to %lld",
                             (long long)n, (long long)L, (long long)a->label->shape[1]);
        for (int64_t i = 0; i < L; i++)
            if (label_at(w, n, i) < 0 || label_at(w, n, i) >= w->classes)
                return ROWS_FAIL(ctc_loss, OUT_OF_RANGE, "label",
                                 "entry [%lld, %lld] is %lld; expected 0 to %lld", (long long)n, (long long)i,
                                 (long long)label_at(w, n, i), (long long)w->classes - 1);
    }
    return PROA_OK;
}

PROA_KERNEL(ctc_loss_cpu, ctc_loss)
{
    const int64_t *shape = a->logits->shape;
    ctc w = {.a = a, .times = shape[0], .batch = shape[1], .classes = shape[2]};
    PROA_TRY(check(&w));
    memset(a->gradient->data, 0,
           (size_t)a->gradient->numel * proa_dtype_size((proa_dtype)a->gradient->dtype));
    proa__parallel(w.batch, 1 + (1 << 14) / (w.times * w.classes + 1), sequences, &w); /* logits a thread */
    if (!atomic_load(&w.failed)) return PROA_OK;
    return proa_fail(PROA_ERR_OUT_OF_MEMORY, "ctc_loss: no memory for the forward variables");
}

PROA_KERNEL(ctc_loss_grad_cpu, ctc_loss_grad)
{
    int64_t times = a->logits->shape[0], batch = a->logits->shape[1], classes = a->logits->shape[2];
    proa_dtype dtype = (proa_dtype)a->logits->dtype;
    for (int64_t t = 0; t < times; t++)
        for (int64_t n = 0; n < batch; n++) {
            int64_t length = length_of(a->logits_length, n), at = (t * batch + n) * classes;
            double by = rows_get(dtype, a->d_loss->data, n);
            if (a->norm_by_times) by = length > 0 ? by / (double)length : 0;
            for (int64_t c = at; c < at + classes; c++)
                rows_set(dtype, a->d_logits->data, c, by * rows_get(dtype, a->gradient->data, c));
        }
    return PROA_OK;
}
