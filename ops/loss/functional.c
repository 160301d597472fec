/* Losses and metrics of proa/functional.h: compositions of public ops, as Paddle 2.6's functions are.
 * May use core, kernels and public ops. */
#include <proa/functional.h>

#include "ops/ints.h"
#include "kernels/rowwise.h"

#include <math.h>

/* Returns t from the function's scope to the caller's. */
static proa_tensor *result(proa_tensor *t) { return t ? proa_return(t) : NULL; }

static proa_tensor *reduced(proa_tensor *loss, proa_loss_reduction reduction)
{
    if (!loss) return NULL;
    switch (reduction) {
    case PROA_LOSS_REDUCTION_SUM: return proa_sum(loss);
    case PROA_LOSS_REDUCTION_MEAN: return proa_mean(loss);
    case PROA_LOSS_REDUCTION_NONE: return loss;
    default: proa_fail(PROA_ERR_INVALID_ARGUMENT, "loss: reduction: expected mean, sum or none"); return NULL;
    }
}

/* ---- cross_entropy ---- */

/* A 0-D tensor of x's dtype. */
static proa_tensor *number(proa_tensor *x, double v)
{
    return x ? proa_full(PROA_SCALAR_SHAPE, v, .dtype = (proa_dtype)x->dtype) : NULL;
}

/* total / count, and 0 rather than NaN when nothing counts. */
static proa_tensor *safe_mean(proa_tensor *total, proa_tensor *count)
{
    if (!total || !count) return NULL;
    proa_tensor *none = proa_cast(proa_equal(count, number(count, 0)), (proa_dtype)count->dtype);
    return proa_divide(total, proa_add(count, none));
}

/* One factor a row, of the label's shape: the label's class weight, 0 where ignored. */
static proa_tensor *hard_weights(proa_tensor *label, proa_tensor *counts, proa_tensor *weight)
{
    if (!counts) return NULL;
    proa_tensor *valid = proa_multiply(label, proa_cast(counts, (proa_dtype)label->dtype));
    proa_tensor *each = proa_gather(weight, proa_reshape(valid, PROA_SHAPE(-1)));
    return proa_multiply(proa_reshape(each, proa__shape_like(label)),
                         proa_cast(counts, (proa_dtype)weight->dtype));
}

static proa_tensor *hard_loss(proa_tensor *label, proa_tensor *loss, int64_t ignore,
                              const proa_cross_entropy_opts *o)
{
    bool mean = o->reduction == PROA_LOSS_REDUCTION_MEAN;
    if (!o->weight && !mean) return reduced(loss, o->reduction);
    proa_tensor *counts =
        proa_not_equal(label, proa_full(PROA_SCALAR_SHAPE, ignore, .dtype = (proa_dtype)label->dtype));
    proa_tensor *factor = NULL;
    if (o->weight) {
        factor = hard_weights(label, counts, o->weight);
        loss = proa_multiply(loss, factor);
    } else if (loss) {
        factor = proa_cast(counts, (proa_dtype)loss->dtype);
    }
    return mean ? safe_mean(proa_sum(loss), proa_sum(factor)) : reduced(loss, o->reduction);
}

static proa_tensor *soft_loss(proa_tensor *label, proa_tensor *loss, int64_t axis,
                              const proa_cross_entropy_opts *o)
{
    if (!o->weight) return reduced(loss, o->reduction);
    int64_t shape[PROA_MAX_DIMS]; /* the weights along axis */
    for (int i = 0; i < label->ndim; i++) shape[i] = 1;
    shape[axis] = -1;
    proa_tensor *along = proa_reshape(o->weight, ((proa_ints){.count = label->ndim, .at = shape}));
    proa_tensor *factor = proa_sum(proa_multiply(label, along), .axis = PROA_INTS(axis), .keepdim = true);
    loss = proa_multiply(loss, factor);
    return o->reduction == PROA_LOSS_REDUCTION_MEAN ? safe_mean(proa_sum(loss), proa_sum(factor))
                                                    : reduced(loss, o->reduction);
}

/* Class numbers as a smoothed distribution of logits' shape. */
static proa_tensor *smoothed(proa_tensor *logits, proa_tensor *label, int64_t axis, bool soft, double epsilon)
{
    if (!soft) {
        if (label->ndim == logits->ndim) label = proa_squeeze(label, .axis = PROA_INTS(axis));
        label = proa_one_hot(label, logits->shape[axis], .dtype = (proa_dtype)logits->dtype);
        if (label && axis != logits->ndim - 1) { /* the classes go back to their axis */
            int64_t perm[PROA_MAX_DIMS];
            for (int i = 0, from = 0; i < logits->ndim; i++) perm[i] = i == axis ? logits->ndim - 1 : from++;
            label = proa_transpose(label, ((proa_ints){.count = logits->ndim, .at = perm}));
        }
    }
    if (!label) return NULL;
    double uniform = epsilon / (double)logits->shape[axis];
    return proa_scale(label, .scale = PROA_SCALAR(1 - epsilon), .bias = uniform);
}

/* One loss per row. class_cross_entropy serves eager float32 and float64 only: programs keep Paddle's op, and
 * in half types a sum of exponentials may overflow. */
static proa_tensor *losses(proa_tensor *logits, proa_tensor *label, bool soft, int64_t axis, int64_t ignore,
                           const proa_cross_entropy_opts *o)
{
    if (!label) return NULL;
    bool wide = logits->dtype == PROA_F32 || logits->dtype == PROA_F64;
    bool plain = !soft && !o->no_use_softmax && axis == logits->ndim - 1;
    if (plain && wide && !((logits->flags | label->flags) & PROA_T_SYMBOLIC))
        return proa_class_cross_entropy(logits, label, .ignore_index = rows_option(ignore)).loss;
    return proa_softmax_with_cross_entropy(logits, label, .soft_label = soft,
                                           .no_use_softmax = o->no_use_softmax,
                                           .ignore_index = rows_option(ignore), .axis = rows_option(axis))
        .loss;
}

proa_tensor *proa_cross_entropy_opt(proa_tensor *logits, proa_tensor *label, proa_cross_entropy_opts o)
{
    if (!logits || !label || proa_error()) return NULL;
    PROA_SCOPED;
    int64_t axis = o.axis == 0 ? -1 : o.axis == PROA_ZERO ? 0 : o.axis;
    int64_t ignore = o.ignore_index == 0 ? -100 : o.ignore_index == PROA_ZERO ? 0 : o.ignore_index;
    if (axis < -logits->ndim || axis >= logits->ndim) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT, "cross_entropy: axis: expected an axis of logits %s, got %lld",
                  proa__tensor_text(logits), (long long)axis);
        return NULL;
    }
    if (axis < 0) axis += logits->ndim;
    if (label->ndim != logits->ndim && label->ndim != logits->ndim - 1) {
        proa_fail(PROA_ERR_INVALID_ARGUMENT,
                  "cross_entropy: label: expected %d or %d dims beside logits %s, got %s", logits->ndim - 1,
                  logits->ndim, proa__tensor_text(logits), proa__tensor_text(label));
        return NULL;
    }
    bool flat = label->ndim < logits->ndim, soft = o.soft_label || o.label_smoothing > 0;
    if (o.label_smoothing > 0) label = smoothed(logits, label, axis, o.soft_label, o.label_smoothing);
    else if (flat) label = proa_unsqueeze(label, PROA_INTS(axis));
    proa_tensor *loss = losses(logits, label, soft, axis, ignore, &o);
    if (!loss) return NULL;
    loss = soft ? soft_loss(label, loss, axis, &o) : hard_loss(label, loss, ignore, &o);
    if (loss && flat && o.reduction == PROA_LOSS_REDUCTION_NONE)
        loss = proa_squeeze(loss, .axis = PROA_INTS(axis));
    return result(loss);
}

/* ---- between two tensors ---- */

proa_tensor *proa_mse_loss_opt(proa_tensor *input, proa_tensor *label, proa_loss_opts o)
{
    PROA_SCOPED;
    return result(reduced(proa_square(proa_subtract(input, label)), o.reduction));
}

proa_tensor *proa_l1_loss_opt(proa_tensor *input, proa_tensor *label, proa_loss_opts o)
{
    PROA_SCOPED;
    return result(reduced(proa_abs(proa_subtract(input, label)), o.reduction));
}

proa_tensor *proa_smooth_l1_loss_opt(proa_tensor *input, proa_tensor *label, proa_smooth_l1_loss_opts o)
{
    PROA_SCOPED;
    return result(reduced(proa_huber_loss(input, label, .delta = o.delta).out, o.reduction));
}

proa_tensor *proa_kl_div_opt(proa_tensor *input, proa_tensor *label, proa_loss_opts o)
{
    return proa_kldiv_loss(input, label, .reduction = o.reduction);
}

proa_tensor *proa_binary_cross_entropy_opt(proa_tensor *input, proa_tensor *label,
                                           proa_binary_cross_entropy_opts o)
{
    PROA_SCOPED;
    proa_tensor *loss = proa_bce_loss(input, label);
    if (o.weight) loss = proa_multiply(loss, o.weight);
    return result(reduced(loss, o.reduction));
}

proa_tensor *proa_binary_cross_entropy_with_logits_opt(proa_tensor *logit, proa_tensor *label,
                                                       proa_binary_cross_entropy_with_logits_opts o)
{
    PROA_SCOPED;
    proa_tensor *positive = PROA_NONE;
    if (o.pos_weight) { /* label · (pos_weight − 1) + 1 */
        proa_tensor *one = number(logit, 1);
        positive = proa_add(proa_multiply(label, proa_subtract(o.pos_weight, one)), one);
    }
    proa_tensor *loss = proa_sigmoid_cross_entropy_with_logits(logit, label, positive);
    if (o.weight) loss = proa_multiply(loss, o.weight);
    return result(reduced(loss, o.reduction));
}

/* ---- metrics ---- */

double proa_top_accuracy(proa_tensor *scores, proa_tensor *label, int64_t k)
{
    PROA_SCOPED;
    if (label && label != proa_none && label->ndim == 1) label = proa_unsqueeze(label, PROA_INTS(1));
    proa_topk_result best = proa_topk(scores, k);
    proa_accuracy_result share = proa_accuracy(best.out, best.indices, label);
    return proa_error() ? NAN : proa_item(share.accuracy);
}
