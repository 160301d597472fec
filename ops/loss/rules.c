/* Gradients of the losses, from public ops. The d_out of a loss that is reduced to a scalar is a scalar and
 * broadcasts. May use core, kernels and the public ops. */
#include "impl/create.h"
#include "impl/elementwise.h"
#include "impl/loss.h"
#include "impl/reduce.h"
#include "impl/shape.h"
#include "impl/softmax.h"

#include "kernels/rowwise.h"

/* ---- softmax_with_cross_entropy ---- */

static proa_tensor *cross_entropy_grad(proa_tensor *label, proa_tensor *softmax, proa_tensor *d_loss,
                                       const proa_softmax_with_cross_entropy_args *a)
{
    return proa_softmax_with_cross_entropy_grad(
        label, softmax, d_loss, .soft_label = a->soft_label, .no_use_softmax = !a->use_softmax,
        .ignore_index = rows_option(a->ignore_index), .axis = rows_option(a->axis));
}

proa_status softmax_with_cross_entropy_vjp(const proa_softmax_with_cross_entropy_args *a,
                                           proa_softmax_with_cross_entropy_grads *g)
{
    if (!g->want_logits) return PROA_OK;
    proa_tensor *through_softmax = NULL, *through_loss = NULL;
    if (!proa__absent(g->d_softmax))
        through_softmax = a->use_softmax
                              ? proa_softmax_grad(a->softmax, g->d_softmax, .axis = rows_option(a->axis))
                              : g->d_softmax;
    if (!proa__absent(g->d_loss)) through_loss = cross_entropy_grad(a->label, a->softmax, g->d_loss, a);
    g->d_logits = through_softmax && through_loss ? proa_add(through_softmax, through_loss)
                  : through_loss                  ? through_loss
                                                  : through_softmax;
    return proa_error();
}

proa_status class_cross_entropy_vjp(const proa_class_cross_entropy_args *a, proa_class_cross_entropy_grads *g)
{
    g->d_logits = proa_class_cross_entropy_grad(a->logits, a->label, a->sums, g->d_loss,
                                                .ignore_index = rows_option(a->ignore_index));
    return proa_error();
}

/* 1 in the rows whose label is not ignore_index, else 0, in like's dtype. */
static proa_tensor *counted(proa_tensor *label, int64_t axis, int64_t ignore_index, const proa_tensor *like)
{
    if (!label) return NULL;
    if (label->ndim < like->ndim) label = proa_unsqueeze(label, PROA_INTS(axis));
    proa_tensor *ignore = proa_full_like(label, PROA_SCALAR(ignore_index));
    return proa_cast(proa_not_equal(label, ignore), (proa_dtype)like->dtype);
}

/* d_logits = d_loss · c with c = softmax(logits) − one-hot(label): d_d_loss = Σ d_d_logits · c, and the
 * gradient for logits is softmax's. */
proa_status class_cross_entropy_grad_vjp(const proa_class_cross_entropy_grad_args *a,
                                         proa_class_cross_entropy_grad_grads *g)
{
    proa_tensor *w = g->d_d_logits;
    if (g->want_d_loss) {
        proa_tensor *c =
            proa_class_cross_entropy_grad(a->logits, a->label, a->sums, proa_full_like(a->d_loss, 1),
                                          .ignore_index = rows_option(a->ignore_index));
        g->d_d_loss = proa_sum(proa_multiply(w, c), .axis = PROA_INTS(-1), .keepdim = true);
    }
    if (g->want_logits) {
        proa_tensor *scale = proa_multiply(a->d_loss, counted(a->label, -1, a->ignore_index, a->logits));
        g->d_logits = proa_softmax_grad(proa_softmax(a->logits), proa_multiply(w, scale));
    }
    return proa_error();
}

/* d_logits is linear in d_loss with coefficients c = d_logits(1), and c is softmax plus a constant; without
 * softmax c = −label / p, whose derivative by p is label / p². */
proa_status softmax_with_cross_entropy_grad_vjp(const proa_softmax_with_cross_entropy_grad_args *a,
                                                proa_softmax_with_cross_entropy_grad_grads *g)
{
    proa_softmax_with_cross_entropy_args f = {.soft_label = a->soft_label,
                                              .use_softmax = a->use_softmax,
                                              .ignore_index = a->ignore_index,
                                              .axis = a->axis};
    proa_tensor *w = g->d_d_logits;
    proa_tensor *c = cross_entropy_grad(a->label, a->softmax, proa_full_like(a->d_loss, 1), &f);
    if (g->want_d_loss)
        g->d_d_loss = proa_sum(proa_multiply(w, c), .axis = PROA_INTS(a->axis), .keepdim = true);
    if (g->want_softmax) {
        proa_tensor *slope = proa_multiply(w, a->d_loss);
        if (!a->use_softmax) {
            g->d_softmax = proa_neg(proa_divide(proa_multiply(slope, c), a->softmax));
        } else if (a->soft_label) {
            g->d_softmax = slope;
        } else { /* ignored rows have no slope */
            g->d_softmax = proa_multiply(slope, counted(a->label, a->axis, a->ignore_index, a->softmax));
        }
    }
    return proa_error();
}

/* ---- nll_loss ---- */

proa_status nll_loss_vjp(const proa_nll_loss_args *a, proa_nll_loss_grads *g)
{
    if (g->want_input && !proa__absent(g->d_out))
        g->d_input =
            proa_nll_loss_grad(a->input, a->label, a->weight, a->total_weight, g->d_out,
                               .ignore_index = rows_option(a->ignore_index), .reduction = a->reduction);
    return proa_error();
}

/* nll_loss is linear in input: the gradient's gradient is nll_loss itself. */
proa_status nll_loss_grad_vjp(const proa_nll_loss_grad_args *a, proa_nll_loss_grad_grads *g)
{
    if (g->want_d_out)
        g->d_d_out = proa_nll_loss(g->d_d_input, a->label, a->weight,
                                   .ignore_index = rows_option(a->ignore_index), .reduction = a->reduction)
                         .out;
    return proa_error();
}

/* ---- elementwise losses ---- */

static proa_tensor *number(proa_tensor *like, double v)
{
    return proa_full(PROA_SCALAR_SHAPE, PROA_SCALAR(v), .dtype = (proa_dtype)like->dtype);
}

/* d_out · (x − label) / max(x·(1 − x), 1e-12) */
proa_status bce_loss_vjp(const proa_bce_loss_args *a, proa_bce_loss_grads *g)
{
    if (!g->want_input) return PROA_OK;
    proa_tensor *slope = proa_multiply(a->input, proa_subtract(number(a->input, 1), a->input));
    slope = proa_maximum(slope, number(a->input, 1e-12));
    g->d_input = proa_multiply(g->d_out, proa_divide(proa_subtract(a->input, a->label), slope));
    return proa_error();
}

/* d/dx: [x > 0] − label + pos_weight · (σ(x) − [x > 0]), 0 where ignored, over the count if normalized. */
proa_status sigmoid_cross_entropy_with_logits_vjp(const proa_sigmoid_cross_entropy_with_logits_args *a,
                                                  proa_sigmoid_cross_entropy_with_logits_grads *g)
{
    if (!g->want_x) return PROA_OK;
    proa_dtype dtype = (proa_dtype)a->x->dtype;
    proa_tensor *slope = proa_sigmoid(a->x);
    if (!proa__absent(a->pos_weight)) {
        proa_tensor *positive = proa_cast(proa_greater_than(a->x, number(a->x, 0)), dtype);
        slope = proa_add(positive, proa_multiply(a->pos_weight, proa_subtract(slope, positive)));
    }
    slope = proa_multiply(g->d_out, proa_subtract(slope, a->label));
    proa_tensor *counts =
        proa_cast(proa_not_equal(a->label, number(a->label, (double)a->ignore_index)), dtype);
    slope = proa_multiply(slope, counts);
    if (a->normalize) slope = proa_divide(slope, proa_maximum(proa_sum(counts), number(a->x, 1e-5)));
    g->d_x = slope;
    return proa_error();
}

/* With r = label − input: d_label = d_out · r clamped to ±delta, d_input its negative; residual passes
 * through. */
proa_status huber_loss_vjp(const proa_huber_loss_args *a, proa_huber_loss_grads *g)
{
    proa_tensor *d = NULL;
    if (!proa__absent(g->d_out)) {
        proa_tensor *r = proa_clip(a->residual, .min = PROA_SCALAR(-a->delta), .max = PROA_SCALAR(a->delta));
        d = proa_multiply(g->d_out, r);
    }
    if (!proa__absent(g->d_residual)) d = d ? proa_add(d, g->d_residual) : g->d_residual;
    if (!d) return proa_error();
    if (g->want_label) g->d_label = d;
    if (g->want_input) g->d_input = proa_neg(d);
    return proa_error();
}

/* The number that the reduction divides by, of target's dtype. */
static proa_tensor *kldiv_divisor(const proa_kldiv_loss_args *a)
{
    proa_tensor *t = a->target;
    bool rows = a->reduction == PROA_LOSS_REDUCTION_BATCHMEAN;
    int64_t n = rows ? t->shape[0] : a->reduction == PROA_LOSS_REDUCTION_MEAN ? t->numel : 1;
    if (n >= 0) return number(t, n > 0 ? (double)n : 1);
    if (!rows) return proa_sum(proa_full_like(t, 1)); /* unknown at capture: a sum of ones */
    return proa_cast(proa_slice(proa_shape(t), PROA_INTS(0), PROA_INTS(0), PROA_INTS(1)),
                     (proa_dtype)t->dtype);
}

/* −target · d_loss where target > 0, over the number that the reduction divides by. */
proa_status kldiv_loss_vjp(const proa_kldiv_loss_args *a, proa_kldiv_loss_grads *g)
{
    if (!g->want_x) return PROA_OK;
    proa_tensor *slope = proa_multiply(proa_maximum(a->target, number(a->target, 0)), g->d_loss);
    g->d_x = proa_neg(proa_divide(slope, kldiv_divisor(a)));
    return proa_error();
}

proa_status label_smooth_vjp(const proa_label_smooth_args *a, proa_label_smooth_grads *g)
{
    if (g->want_label) g->d_label = proa_multiply(g->d_out, number(g->d_out, 1 - a->epsilon));
    return proa_error();
}
