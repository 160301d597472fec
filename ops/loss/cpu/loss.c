/* CPU kernels of the losses other than softmax_with_cross_entropy and class_cross_entropy, and of
 * label_smooth and accuracy. May use core, kernels and ops. */
#include "impl/loss.h"

#include "kernels/rowwise.h"

#include <stdatomic.h>

typedef enum loss_kind { BCE, SIGMOID_CE, HUBER, KLDIV } loss_kind;

typedef struct loss_work {
    loss_kind kind;
    proa_dtype dtype;
    const void *x, *label, *weight;
    void *y, *residual;
    int64_t numel;
    double number;        /* delta of Huber, ignore_index of the sigmoid's */
    atomic_bool *outside; /* BCE: whether an input is no probability */
} loss_work;

/* log(1 + x) for x in [0, 1]. */
static inline float log1p_unit_float(float x) { return m_log1p_unit_F32(x); }
static inline double log1p_unit_double(double x) { return m_log1p_unit_F64(x); }

#define T float
#include "loss.inc"
#undef T
#define T double
#include "loss.inc"
#undef T

static void range(int64_t begin, int64_t end, void *context)
{
    const loss_work *f = context;
    (f->dtype == PROA_F64 ? pieces_double : pieces_float)(f, begin, end);
}

static void run_loss(loss_work *f, const proa_tensor *x, const proa_tensor *label)
{
    f->dtype = (proa_dtype)x->dtype;
    f->x = x->data;
    f->label = label->data;
    proa__parallel(x->numel, rows_grain(8), range, f);
}

PROA_KERNEL(bce_loss_cpu, bce_loss)
{
    atomic_bool outside = false;
    loss_work f = {.kind = BCE, .y = a->out->data, .outside = &outside};
    run_loss(&f, a->input, a->label);
    if (!atomic_load(&outside)) return PROA_OK;
    int64_t i = 0;
    double x;
    while (x = rows_get(f.dtype, f.x, i), x >= 0 && x <= 1) i++;
    return ROWS_FAIL(bce_loss, INVALID_ARGUMENT, "input",
                     "entry %lld is %g; expected a probability from 0 to 1: apply sigmoid first, or use "
                     "binary_cross_entropy_with_logits",
                     (long long)i, x);
}

PROA_KERNEL(sigmoid_cross_entropy_with_logits_cpu, sigmoid_cross_entropy_with_logits)
{
    loss_work f = {.kind = SIGMOID_CE, .y = a->out->data, .number = (double)a->ignore_index};
    if (!proa__absent(a->pos_weight)) f.weight = a->pos_weight->data;
    run_loss(&f, a->x, a->label);
    if (!a->normalize) return PROA_OK;
    int64_t n = a->x->numel;
    double count = 0;
    for (int64_t i = 0; i < n; i++) count += rows_get(f.dtype, f.label, i) != f.number;
    if (count < 1e-5) count = 1e-5;
    for (int64_t i = 0; i < n; i++) rows_set(f.dtype, f.y, i, rows_get(f.dtype, f.y, i) / count);
    return PROA_OK;
}

PROA_KERNEL(huber_loss_cpu, huber_loss)
{
    loss_work f = {.kind = HUBER, .y = a->out->data, .residual = a->residual->data, .number = a->delta};
    run_loss(&f, a->input, a->label);
    return PROA_OK;
}

/* Terms of a partial sum: sums do not depend on the number of threads. */
enum { SUM_SLICE = 1 << 14 };

static void kldiv_slices(int64_t begin, int64_t end, void *context)
{
    const loss_work *f = context;
    double *sums = f->y;
    for (int64_t i = begin; i < end; i++) {
        int64_t from = i * SUM_SLICE, to = from + SUM_SLICE < f->numel ? from + SUM_SLICE : f->numel;
        sums[i] = (f->dtype == PROA_F64 ? kldiv_sum_double : kldiv_sum_float)(f, from, to);
    }
}

PROA_KERNEL(kldiv_loss_cpu, kldiv_loss)
{
    loss_work f = {.kind = KLDIV, .y = a->loss->data};
    if (a->reduction == PROA_LOSS_REDUCTION_NONE) {
        run_loss(&f, a->x, a->target);
        return PROA_OK;
    }
    int64_t n = a->x->numel, slices = (n + SUM_SLICE - 1) / SUM_SLICE;
    double s = 0, *sums = proa_scratch((size_t)(slices > 0 ? slices : 1) * sizeof *sums);
    if (!sums) return proa_error();
    f.dtype = (proa_dtype)a->x->dtype, f.x = a->x->data, f.label = a->target->data, f.y = sums, f.numel = n;
    proa__parallel(slices, 1, kldiv_slices, &f);
    for (int64_t i = 0; i < slices; i++) s += sums[i];
    proa_scratch_free(sums);
    if (a->reduction == PROA_LOSS_REDUCTION_MEAN) s /= (double)n;
    if (a->reduction == PROA_LOSS_REDUCTION_BATCHMEAN && a->x->shape[0] > 0) /* of nothing 0, as in Paddle */
        s /= (double)a->x->shape[0];
    rows_set(f.dtype, a->loss->data, 0, s);
    return PROA_OK;
}

/* ---- nll_loss: input [N, C, rest], label [N, rest] ---- */

static proa_status nll_check(const proa_tensor *label, int64_t classes, int64_t ignore, const proa_op *op)
{
    for (int64_t i = 0; i < label->numel; i++) {
        int64_t c = rows_get_int((proa_dtype)label->dtype, label->data, i);
        if ((c < 0 || c >= classes) && c != ignore)
            return proa__op_fail(PROA_ERR_OUT_OF_RANGE, op, "label",
                                 "entry %lld is %lld; expected 0 to %lld, or ignore_index %lld", (long long)i,
                                 (long long)c, (long long)classes - 1, (long long)ignore);
    }
    return PROA_OK;
}

static double class_weight(const proa_tensor *weight, int64_t c)
{
    return proa__absent(weight) ? 1 : rows_get((proa_dtype)weight->dtype, weight->data, c);
}

PROA_KERNEL(nll_loss_cpu, nll_loss)
{
    proa_dtype dtype = (proa_dtype)a->input->dtype;
    rows_around r = rows_split(a->input, 1);
    PROA_TRY(nll_check(a->label, r.n, a->ignore_index, proa_find_op("nll_loss")));
    double sum = 0, weights = 0;
    for (int64_t i = 0; i < a->label->numel; i++) {
        int64_t c = rows_get_int((proa_dtype)a->label->dtype, a->label->data, i);
        double loss = 0;
        if (c != a->ignore_index) {
            double w = class_weight(a->weight, c);
            loss = -w * rows_get(dtype, a->input->data, (i / r.inner * r.n + c) * r.inner + i % r.inner);
            weights += w;
        }
        if (a->reduction == PROA_LOSS_REDUCTION_NONE) rows_set(dtype, a->out->data, i, loss);
        sum += loss;
    }
    if (a->reduction == PROA_LOSS_REDUCTION_MEAN) sum = weights != 0 ? sum / weights : 0;
    if (a->reduction != PROA_LOSS_REDUCTION_NONE) rows_set(dtype, a->out->data, 0, sum);
    rows_set(dtype, a->total_weight->data, 0, a->reduction == PROA_LOSS_REDUCTION_NONE ? 0 : weights);
    return PROA_OK;
}

PROA_KERNEL(nll_loss_grad_cpu, nll_loss_grad)
{
    proa_dtype dtype = (proa_dtype)a->input->dtype;
    rows_around r = rows_split(a->input, 1);
    PROA_TRY(nll_check(a->label, r.n, a->ignore_index, proa_find_op("nll_loss_grad")));
    if (a->d_input->numel) memset(a->d_input->data, 0, (size_t)a->d_input->numel * proa_dtype_size(dtype));
    bool each = a->reduction == PROA_LOSS_REDUCTION_NONE;
    double over = rows_get(dtype, a->total_weight->data, 0);
    if (a->reduction != PROA_LOSS_REDUCTION_MEAN) over = 1;
    for (int64_t i = 0; i < a->label->numel; i++) {
        int64_t c = rows_get_int((proa_dtype)a->label->dtype, a->label->data, i);
        if (c == a->ignore_index || over == 0) continue;
        double d = rows_get(dtype, a->d_out->data, each ? i : 0);
        rows_set(dtype, a->d_input->data, (i / r.inner * r.n + c) * r.inner + i % r.inner,
                 -class_weight(a->weight, c) * d / over);
    }
    return PROA_OK;
}

/* ---- label_smooth, accuracy ---- */

PROA_KERNEL(label_smooth_cpu, label_smooth)
{
    proa_dtype dtype = (proa_dtype)a->label->dtype;
    int64_t classes = a->label->shape[a->label->ndim - 1];
    for (int64_t i = 0; i < a->label->numel; i++) {
        double prior = proa__absent(a->prior_dist) ? 1.0 / (double)classes
                                                   : rows_get(dtype, a->prior_dist->data, i % classes);
        rows_set(dtype, a->out->data, i,
                 (1 - a->epsilon) * rows_get(dtype, a->label->data, i) + a->epsilon * prior);
    }
    return PROA_OK;
}

PROA_KERNEL(accuracy_cpu, accuracy)
{
    int64_t rows = a->indices->shape[0], k = a->indices->shape[1];
    if (rows > INT32_MAX)
        return ROWS_FAIL(accuracy, OVERFLOW, "indices", "has %lld rows; counts are int32", (long long)rows);
    int32_t hits = 0;
    for (int64_t i = 0; i < rows; i++) {
        int64_t label = rows_get_int((proa_dtype)a->label->dtype, a->label->data, i);
        for (int64_t j = 0; j < k; j++)
            if (rows_get_int((proa_dtype)a->indices->dtype, a->indices->data, i * k + j) == label) {
                hits++;
                break;
            }
    }
    *(float *)(void *)a->accuracy->data = rows ? (float)hits / (float)rows : 0;
    *(int32_t *)(void *)a->correct->data = hits;
    *(int32_t *)(void *)a->total->data = (int32_t)rows;
    return PROA_OK;
}
