/* Shape inference of the losses, of label_smooth and accuracy. May use core, kernels and the generated op
 * headers. */
#include "core/error.h"
#include "impl/loss.h"

#include "kernels/rowwise.h"

static proa_status mismatch(const char *op, const char *argument, const proa_tensor *got, const char *what,
                            const proa_tensor *like)
{
    return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), argument, "is %s; expected %s %s",
                         proa__tensor_text(got), what, proa__tensor_text(like));
}

/* Checks that b has a's dtype and shape; `name` is b's argument. */
static proa_status twins(const char *op, const proa_tensor *a, const char *name, const proa_tensor *b)
{
    if (a->dtype == b->dtype && rows_same_shape(a, b)) return PROA_OK;
    return mismatch(op, name, b, "dtype and shape of", a);
}

static proa_meta scalar(proa_dtype dtype) { return (proa_meta){.dtype = dtype, .ndim = 0}; }

/* ---- softmax_with_cross_entropy ---- */

/* Checks label against logits (or softmax) and makes the loss's meta: x with axis of length 1. */
static proa_status cross_entropy_shapes(const char *op, const proa_tensor *x, const proa_tensor *label,
                                        bool soft, int64_t axis, proa_meta *loss)
{
    if (x->ndim == 0 || axis < -x->ndim || axis >= x->ndim)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "axis",
                             "is %lld; expected an axis of %s", (long long)axis, proa__tensor_text(x));
    if (axis < 0) axis += x->ndim;
    *loss = proa_meta_of(x);
    loss->shape[axis] = 1;
    if (soft) return twins(op, x, "label", label);
    if (!rows_is_integer(label->dtype))
        return proa__operand_dtype_fail(proa_find_op(op), "label",
                                        "is %s; expected class numbers of an integer dtype, or soft_label",
                                        proa_dtype_name((proa_dtype)label->dtype));
    bool fits = label->ndim == x->ndim || label->ndim == x->ndim - 1;
    for (int i = 0, k = 0; fits && i < x->ndim; i++) {
        if (i == axis && label->ndim < x->ndim) continue;
        fits = rows_dims_agree(label->shape[k++], i == axis ? 1 : x->shape[i]);
    }
    return fits ? PROA_OK : mismatch(op, "label", label, "one class number a row along axis of", x);
}

proa_status softmax_with_cross_entropy_infer(const proa_softmax_with_cross_entropy_args *a,
                                             proa_softmax_with_cross_entropy_metas *m)
{
    m->softmax = proa_meta_of(a->logits);
    return cross_entropy_shapes("softmax_with_cross_entropy", a->logits, a->label, a->soft_label, a->axis,
                                &m->loss);
}

proa_status softmax_with_cross_entropy_grad_infer(const proa_softmax_with_cross_entropy_grad_args *a,
                                                  proa_softmax_with_cross_entropy_grad_metas *m)
{
    const char *op = "softmax_with_cross_entropy_grad";
    proa_meta loss = {.ndim = 0};
    if (!rows_is_floating(a->softmax->dtype))
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "softmax",
                             "is %s; expected a floating dtype",
                             proa_dtype_name((proa_dtype)a->softmax->dtype));
    PROA_TRY(cross_entropy_shapes(op, a->softmax, a->label, a->soft_label, a->axis, &loss));
    bool fits = a->d_loss->dtype == a->softmax->dtype && a->d_loss->ndim == loss.ndim;
    for (int i = 0; fits && i < loss.ndim; i++) fits = rows_dims_agree(a->d_loss->shape[i], loss.shape[i]);
    if (!fits) return mismatch(op, "d_loss", a->d_loss, "length 1 along axis, else like", a->softmax);
    m->d_logits = proa_meta_of(a->softmax);
    return PROA_OK;
}

proa_status class_cross_entropy_infer(const proa_class_cross_entropy_args *a,
                                      proa_class_cross_entropy_metas *m)
{
    PROA_TRY(cross_entropy_shapes("class_cross_entropy", a->logits, a->label, false, -1, &m->loss));
    m->sums = m->loss;
    m->sums.shape[m->sums.ndim - 1] = 2;
    return PROA_OK;
}

proa_status class_cross_entropy_grad_infer(const proa_class_cross_entropy_grad_args *a,
                                           proa_class_cross_entropy_grad_metas *m)
{
    const char *op = "class_cross_entropy_grad";
    proa_meta loss = {.ndim = 0};
    PROA_TRY(cross_entropy_shapes(op, a->logits, a->label, false, -1, &loss));
    for (int t = 0; t < 2; t++) {
        const proa_tensor *of_rows = t ? a->sums : a->d_loss;
        bool fits = of_rows->dtype == a->logits->dtype && of_rows->ndim == loss.ndim;
        for (int i = 0; fits && i < loss.ndim; i++)
            fits = rows_dims_agree(of_rows->shape[i], loss.shape[i] * (i + 1 == loss.ndim ? 1 + t : 1));
        if (!fits)
            return mismatch(op, t ? "sums" : "d_loss", of_rows,
                            t ? "length 2 along the last axis, else like"
                              : "length 1 along the last axis, else like",
                            a->logits);
    }
    m->d_logits = proa_meta_of(a->logits);
    return PROA_OK;
}

/* ---- nll_loss ---- */

static proa_status nll_shapes(const char *op, const proa_tensor *input, const proa_tensor *label,
                              const proa_tensor *weight, proa_loss_reduction reduction, proa_meta *out)
{
    if (input->ndim < 2)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "input",
                             "is %s; expected [N, C, …]", proa__tensor_text(input));
    bool fits = label->ndim == input->ndim - 1 && rows_is_integer(label->dtype);
    for (int i = 0; fits && i < label->ndim; i++)
        fits = rows_dims_agree(label->shape[i], input->shape[i ? i + 1 : 0]);
    if (!fits) return mismatch(op, "label", label, "integer classes [N, …] for input", input);
    if (!proa__absent(weight) && (weight->dtype != input->dtype || weight->ndim != 1 ||
                                  !rows_dims_agree(weight->shape[0], input->shape[1])))
        return mismatch(op, "weight", weight, "one weight a class (axis 1) of", input);
    if (reduction == PROA_LOSS_REDUCTION_BATCHMEAN)
        return proa__op_fail(PROA_ERR_INVALID_ARGUMENT, proa_find_op(op), "reduction",
                             "is batchmean; expected mean, sum or none");
    *out = scalar((proa_dtype)input->dtype);
    if (reduction != PROA_LOSS_REDUCTION_NONE) return PROA_OK;
    *out = proa_meta_of(label);
    out->dtype = (proa_dtype)input->dtype;
    return PROA_OK;
}

proa_status nll_loss_infer(const proa_nll_loss_args *a, proa_nll_loss_metas *m)
{
    m->total_weight = scalar((proa_dtype)a->input->dtype);
    return nll_shapes("nll_loss", a->input, a->label, a->weight, a->reduction, &m->out);
}

proa_status nll_loss_grad_infer(const proa_nll_loss_grad_args *a, proa_nll_loss_grad_metas *m)
{
    proa_meta out = {.ndim = 0};
    PROA_TRY(nll_shapes("nll_loss_grad", a->input, a->label, a->weight, a->reduction, &out));
    if (a->d_out->ndim != out.ndim || a->d_out->dtype != out.dtype)
        return mismatch("nll_loss_grad", "d_out", a->d_out, "the loss's shape for input", a->input);
    if (a->total_weight->dtype != a->input->dtype ||
        (a->total_weight->numel >= 0 && a->total_weight->numel != 1))
        return mismatch("nll_loss_grad", "total_weight", a->total_weight, "one number of the dtype of",
                        a->input);
    m->d_input = proa_meta_of(a->input);
    return PROA_OK;
}

/* ---- elementwise losses ---- */

proa_status bce_loss_infer(const proa_bce_loss_args *a, proa_bce_loss_metas *m)
{
    m->out = proa_meta_of(a->input);
    return twins("bce_loss", a->input, "label", a->label);
}

proa_status sigmoid_cross_entropy_with_logits_infer(const proa_sigmoid_cross_entropy_with_logits_args *a,
                                                    proa_sigmoid_cross_entropy_with_logits_metas *m)
{
    m->out = proa_meta_of(a->x);
    PROA_TRY(twins("sigmoid_cross_entropy_with_logits", a->x, "label", a->label));
    if (proa__absent(a->pos_weight)) return PROA_OK;
    return twins("sigmoid_cross_entropy_with_logits", a->x, "pos_weight", a->pos_weight);
}

proa_status huber_loss_infer(const proa_huber_loss_args *a, proa_huber_loss_metas *m)
{
    m->out = m->residual = proa_meta_of(a->input);
    return twins("huber_loss", a->input, "label", a->label);
}

proa_status kldiv_loss_infer(const proa_kldiv_loss_args *a, proa_kldiv_loss_metas *m)
{
    m->loss = a->reduction == PROA_LOSS_REDUCTION_NONE ? proa_meta_of(a->x) : scalar((proa_dtype)a->x->dtype);
    if (a->reduction == PROA_LOSS_REDUCTION_BATCHMEAN && a->x->ndim == 0)
        return ROWS_FAIL(kldiv_loss, INVALID_ARGUMENT, "reduction", "is batchmean, but x has no batch dim");
    return twins("kldiv_loss", a->x, "target", a->target);
}

proa_status label_smooth_infer(const proa_label_smooth_args *a, proa_label_smooth_metas *m)
{
    m->out = proa_meta_of(a->label);
    if (a->label->ndim == 0)
        return ROWS_FAIL(label_smooth, INVALID_ARGUMENT, "label", "is 0-D; expected [..., classes]");
    if (!(a->epsilon >= 0 && a->epsilon <= 1))
        return ROWS_FAIL(label_smooth, INVALID_ARGUMENT, "epsilon", "is %g; expected 0 to 1", a->epsilon);
    if (proa__absent(a->prior_dist)) return PROA_OK;
    int64_t classes = a->label->shape[a->label->ndim - 1];
    if (a->prior_dist->dtype != a->label->dtype || !rows_dims_agree(a->prior_dist->numel, classes))
        return mismatch("label_smooth", "prior_dist", a->prior_dist, "one number a class of", a->label);
    return PROA_OK;
}

proa_status accuracy_infer(const proa_accuracy_args *a, proa_accuracy_metas *m)
{
    if (a->indices->ndim != 2 || (a->indices->dtype != PROA_I64 && a->indices->dtype != PROA_I32))
        return ROWS_FAIL(accuracy, INVALID_ARGUMENT, "indices", "is %s; expected int64 [rows, k]",
                         proa__tensor_text(a->indices));
    bool fits = a->label->ndim >= 1 && a->label->ndim <= 2 && rows_is_integer(a->label->dtype) &&
                rows_dims_agree(a->label->shape[0], a->indices->shape[0]) &&
                (a->label->ndim == 1 || rows_dims_agree(a->label->shape[1], 1));
    if (!fits) return mismatch("accuracy", "label", a->label, "one integer a row of indices", a->indices);
    m->accuracy = scalar(PROA_F32);
    m->correct = m->total = scalar(PROA_I32);
    return PROA_OK;
}
