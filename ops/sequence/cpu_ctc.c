/* ctc_loss on the CPU: forward and backward variables in log space, in double, one sequence per task (Graves
 * et al., Connectionist Temporal Classification, 2006); the softmax over the classes in the logits' dtype, in
 * float for half types. May use core, kernels and ops. */
#include "impl/sequence.h"

#include "kernels/rowwise.h"
#include "kernels/simd_softmax.h"

#include <stdatomic.h>

#define T float
#include "cpu_ctc.inc"
#undef T
#define T double
#include "cpu_ctc.inc"
#undef T

typedef struct ctc {
    const proa_ctc_loss_args *a;
    int64_t times, batch, classes;
    atomic_bool failed; /* no memory */
} ctc;

/* One sequence: its label with blanks between and around the letters, and its rows of `length` entries.
 * Before the rows of log-probabilities lie PAD entries of −inf. */
enum { PAD = 2 };
typedef struct sequence {
    int64_t frames, length;
    int64_t *symbol;
    double *skip; /* 0 where a path may come from s − 2, as the letters differ; else −inf */
    double *chances, *alpha, *beta; /* by [frame][entry], the latter two with PAD in front of a row */
    double *posterior;              /* by class: 0 between frames */
    double *sums;                   /* a row: what the next frame's variables add up */
    void *row;                      /* classes in float or double */
} sequence;

static int64_t length_of(const proa_tensor *t, int64_t n)
{
    return rows_get_int((proa_dtype)t->dtype, t->data, n);
}

static int64_t label_at(const ctc *w, int64_t n, int64_t i)
{
    const proa_tensor *t = w->a->label;
    return rows_get_int((proa_dtype)t->dtype, t->data, n * t->shape[1] + i);
}

/* log(x) for x in [1, 3], by 2 · atanh((x − 1) / (x + 1)) of x or x / 2; without branches, so that loops
 * vectorize. */
static inline double log_of_three(double x)
{
    double whole = x > 1.42 ? 0.69314718055994530942 : 0.0, s = x > 1.42 ? 0.5 * x : x;
    double z = (s - 1.0) / (s + 1.0), q = z * z, p = 1.0 / 23;
    p = p * q + 1.0 / 21, p = p * q + 1.0 / 19, p = p * q + 1.0 / 17, p = p * q + 1.0 / 15;
    p = p * q + 1.0 / 13, p = p * q + 1.0 / 11, p = p * q + 1.0 / 9, p = p * q + 1.0 / 7;
    p = p * q + 1.0 / 5, p = p * q + 1.0 / 3, p = p * q + 1.0;
    return whole + 2.0 * z * p;
}

/* log(e^a + e^b + e^c); −inf is the logarithm of nothing. */
static inline double add_logs(double a, double b, double c)
{
    double top = a > b ? a : b;
    top = top > c ? top : c;
    double shift = top > -(double)INFINITY ? top : 0.0;
    double sum = vexp_double(a - shift) + vexp_double(b - shift) + vexp_double(c - shift);
    return top > -(double)INFINITY ? top + log_of_three(sum) : top;
}

/* to[s] = log of the sum of row[s], row[s + by] and, where skip[s] allows, row[s + 2 · by]. */
static void add_neighbors(const double *row, int by, const double *skip, int64_t n, double *to)
{
    const double *near = row + by, *far = row + 2 * by;
#pragma omp simd
    for (int64_t s = 0; s < n; s++) to[s] = add_logs(row[s], near[s], far[s] + skip[s]);
}

static void read_symbols(const ctc *w, int64_t n, sequence *q)
{
    for (int64_t s = 0; s < q->length; s++) q->symbol[s] = s % 2 ? label_at(w, n, s / 2) : w->a->blank;
    for (int64_t s = 0; s < q->length + PAD; s++) {
        bool may = s % 2 && s > 2 && s < q->length && q->symbol[s] != q->symbol[s - 2];
        q->skip[s] = may ? 0 : -(double)INFINITY;
    }
}

/* Softmax of all frames into the gradient, and the log-probabilities of the symbols. */
static void read_frames(const ctc *w, int64_t n, sequence *q)
{
    const proa_tensor *x = w->a->logits;
    proa_dtype d = (proa_dtype)x->dtype;
    void *g = w->a->gradient->data;
    for (int64_t t = 0; t < q->frames; t++) {
        int64_t at = (t * w->batch + n) * w->classes;
        double *to = q->chances + t * q->length;
        double whole = d == PROA_F64 ? softmax_frame_double(d, x->data, g, at, w->classes, q->row)
                                     : softmax_frame_float(d, x->data, g, at, w->classes, q->row);
        for (int64_t s = 0; s < q->length; s++) to[s] = rows_get(d, x->data, at + q->symbol[s]) - whole;
    }
}

/* Forward variables (log): probability that frames 0 … t end in entry s. */
static void forward(const sequence *q)
{
    int64_t S = q->length, step = S + PAD;
    for (int64_t t = 0; t < q->frames; t++) {
        double *now = q->alpha + t * step + PAD;
        now[-1] = now[-2] = -(double)INFINITY;
        if (t) add_neighbors(now - step, -1, q->skip, S, now);
        else
            for (int64_t s = 0; s < S; s++) now[s] = s < 2 ? 0 : -(double)INFINITY;
        for (int64_t s = 0; s < S; s++) now[s] += q->chances[t * S + s];
    }
}

/* d loss / d logits at frame t: subtracts each class's posterior, given the label, from its softmax. beta:
 * from entry s at t to the end, without frame t. */
static void put_posterior(const ctc *w, int64_t n, int64_t t, double total, const sequence *q)
{
    const proa_tensor *g = w->a->gradient;
    const double *alpha = q->alpha + t * (q->length + PAD) + PAD;
    int64_t at = (t * w->batch + n) * w->classes;
#pragma omp simd
    for (int64_t s = 0; s < q->length; s++) q->sums[s] = vexp_double(alpha[s] + q->beta[s] - total);
    for (int64_t s = 0; s < q->length; s++) q->posterior[q->symbol[s]] += q->sums[s];
    for (int64_t s = 0; s < q->length; s++) {
        int64_t c = q->symbol[s], i = at + c;
        if (q->posterior[c] > 0)
            rows_set((proa_dtype)g->dtype, g->data, i,
                     rows_get((proa_dtype)g->dtype, g->data, i) - q->posterior[c]);
        q->posterior[c] = 0;
    }
}

static void clear_gradient(const ctc *w, int64_t n, int64_t from)
{
    const proa_tensor *g = w->a->gradient;
    int64_t item = (int64_t)proa_dtype_size((proa_dtype)g->dtype), bytes = w->classes * item;
    for (int64_t t = from; t < w->times; t++) memset(g->data + (t * w->batch + n) * bytes, 0, (size_t)bytes);
}

static double one_sequence(const ctc *w, int64_t n, const sequence *q)
{
    int64_t S = q->length, T = q->frames;
    const double *last = q->alpha + (T - 1) * (S + PAD) + PAD;
    forward(q);
    double total = add_logs(last[S - 1], S > 1 ? last[S - 2] : -(double)INFINITY, -(double)INFINITY);
    if (isinf(total)) {
        clear_gradient(w, n, 0);
        return -total;
    }
    for (int64_t s = 0; s < S + PAD; s++) q->beta[s] = s == S - 1 || s == S - 2 ? 0 : -(double)INFINITY;
    for (int64_t t = T - 1; t >= 0; t--) {
        put_posterior(w, n, t, total, q);
        for (int64_t s = 0; s < S; s++) q->beta[s] += q->chances[t * S + s];
        add_neighbors(q->beta, 1, q->skip + PAD, S, q->sums);
        memcpy(q->beta, q->sums, (size_t)S * sizeof(double));
    }
    return -total;
}

/* The memory of a sequence, in doubles, behind one another. */
static proa_status reserve(const ctc *w, sequence *q)
{
    int64_t S = q->length, step = S + PAD,
            each[] = {S, step, q->frames * S, q->frames * step, step, w->classes, S, w->classes};
    double **at[] = {NULL, &q->skip, &q->chances, &q->alpha, &q->beta, &q->posterior, &q->sums, NULL};
    int64_t all = 0;
    for (int i = 0; i < 8; i++) all += each[i];
    double *p = proa_scratch((size_t)all * sizeof *p);
    if (!p) return proa_error();
    q->symbol = (int64_t *)(void *)p;
    for (int i = 1; i < 7; i++) *at[i] = p += each[i - 1];
    q->row = p + each[6];
    memset(q->posterior, 0, (size_t)w->classes * sizeof(double));
    return PROA_OK;
}

static void sequences(int64_t begin, int64_t end, void *context)
{
    ctc *w = context;
    const proa_tensor *loss = w->a->loss;
    for (int64_t n = begin; n < end; n++) {
        int64_t L = length_of(w->a->label_length, n), repeats = 0;
        sequence q = {.frames = length_of(w->a->logits_length, n), .length = 2 * L + 1};
        for (int64_t i = 1; i < L; i++) repeats += label_at(w, n, i) == label_at(w, n, i - 1);
        double cost = q.frames == 0 ? INFINITY : 0; /* as in Paddle: no frame, or too few for the label */
        if (q.frames > 0 && L + repeats <= q.frames) {
            if (reserve(w, &q) != PROA_OK) {
                atomic_store(&w->failed, true);
                return;
            }
            read_symbols(w, n, &q);
            read_frames(w, n, &q);
            clear_gradient(w, n, q.frames);
            cost = one_sequence(w, n, &q);
            proa_scratch_free(q.symbol);
        } else clear_gradient(w, n, 0);
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
    proa__parallel(w.batch, 1 + (1 << 14) / (w.times * w.classes + 1), sequences, &w); /* logits a thread */
    if (!atomic_load(&w.failed)) return PROA_OK;
    return proa_fail(PROA_ERR_OUT_OF_MEMORY, "ctc_loss: no memory for the forward variables");
}

/* Item: frame of a sequence. */
static void scale_frames(int64_t begin, int64_t end, void *context)
{
    const proa_ctc_loss_grad_args *a = context;
    int64_t batch = a->logits->shape[1], classes = a->logits->shape[2];
    proa_dtype d = (proa_dtype)a->logits->dtype;
    void *row = proa_scratch((size_t)classes * sizeof(double));
    if (!row) return;
    for (int64_t i = begin; i < end; i++) {
        int64_t length = length_of(a->logits_length, i % batch);
        double by = rows_get(d, a->d_loss->data, i % batch);
        if (a->norm_by_times) by = length > 0 ? by / (double)length : 0;
        if (d == PROA_F64)
            scale_frame_double(d, a->gradient->data, a->d_logits->data, i * classes, classes, by, row);
        else scale_frame_float(d, a->gradient->data, a->d_logits->data, i * classes, classes, (float)by, row);
    }
    proa_scratch_free(row);
}

PROA_KERNEL(ctc_loss_grad_cpu, ctc_loss_grad)
{
    int64_t frames = a->logits->shape[0] * a->logits->shape[1], classes = a->logits->shape[2];
    proa__parallel(frames, 1 + (1 << 15) / (classes + 1), scale_frames, (void *)(uintptr_t)a);
    return proa_error();
}
