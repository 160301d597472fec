/* Shapes and rule of yolov3_loss. May use core, kernels and public ops. */
#include "kernels/rowwise.h"
#include "ops/ints.h"
#include "impl/detection.h"

/* Arguments that yolov3_loss and its gradient share. */
typedef struct yolo {
    const char *op;
    const proa_tensor *x, *box, *label, *score;
    proa_ints anchors, mask;
    int64_t class_num, ratio;
} yolo;

#define YOLO(a, name)                                                                                \
    ((yolo){name, (a)->x, (a)->gt_box, (a)->gt_label, (a)->gt_score, (a)->anchors, (a)->anchor_mask, \
            (a)->class_num, (a)->downsample_ratio})

static proa_status check_anchors(const yolo *y)
{
    int64_t pairs = y->anchors.count / 2;
    if (pairs < 1 || y->anchors.count % 2)
        return OP_FAIL(y->op, INVALID_ARGUMENT, "anchors",
                       "has %lld numbers; expected pairs of width and height", (long long)y->anchors.count);
    for (int64_t i = 0; i < y->anchors.count; i++)
        if (y->anchors.at[i] < 1)
            return OP_FAIL(y->op, INVALID_ARGUMENT, "anchors", "has %lld; expected sides above 0",
                           (long long)y->anchors.at[i]);
    if (y->mask.count < 1)
        return OP_FAIL(y->op, INVALID_ARGUMENT, "anchor_mask", "is empty; expected indices of anchors");
    for (int64_t i = 0; i < y->mask.count; i++)
        if (y->mask.at[i] < 0 || y->mask.at[i] >= pairs)
            return OP_FAIL(y->op, INVALID_ARGUMENT, "anchor_mask",
                           "has %lld; expected indices of the %lld anchors", (long long)y->mask.at[i],
                           (long long)pairs);
    if (y->class_num >= 1 && y->class_num <= INT32_MAX && y->ratio >= 1 && y->ratio <= INT32_MAX)
        return PROA_OK;
    bool classes = y->class_num < 1 || y->class_num > INT32_MAX;
    return OP_FAIL(y->op, INVALID_ARGUMENT, classes ? "class_num" : "downsample_ratio",
                   "is %lld; expected 1 or more", (long long)(classes ? y->class_num : y->ratio));
}

static bool is_pair(const proa_tensor *t, const proa_tensor *x, const proa_tensor *box)
{
    return t->ndim == 2 && rows_dims_agree(t->shape[0], x->shape[0]) &&
           rows_dims_agree(t->shape[1], box->shape[1]);
}

static proa_status check_truth(const yolo *y)
{
    const proa_tensor *x = y->x, *box = y->box, *label = y->label, *score = y->score;
    int64_t channels = y->mask.count * (5 + y->class_num);
    if (x->ndim != 4 || !rows_dims_agree(x->shape[1], channels))
        return OP_FAIL(y->op, INVALID_ARGUMENT, "x",
                       "is %s; expected [N, %lld, H, W]: %lld anchors with %lld channels each",
                       proa__tensor_text(x), (long long)channels, (long long)y->mask.count,
                       (long long)(5 + y->class_num));
    if (box->ndim != 3 || box->dtype != x->dtype || !rows_dims_agree(box->shape[2], 4) ||
        !rows_dims_agree(box->shape[0], x->shape[0]))
        return OP_FAIL(y->op, INVALID_ARGUMENT, "gt_box", "is %s for x %s; expected x's dtype and [N, B, 4]",
                       proa__tensor_text(box), proa__tensor_text(x));
    if ((label->dtype != PROA_I32 && label->dtype != PROA_I64) || !is_pair(label, x, box))
        return OP_FAIL(y->op, INVALID_ARGUMENT, "gt_label", "is %s; expected int32 [N, B] for gt_box %s",
                       proa__tensor_text(label), proa__tensor_text(box));
    if (!proa__absent(score) && (score->dtype != x->dtype || !is_pair(score, x, box)))
        return OP_FAIL(y->op, INVALID_ARGUMENT, "gt_score",
                       "is %s; expected x's dtype and [N, B] for gt_box %s", proa__tensor_text(score),
                       proa__tensor_text(box));
    return PROA_OK;
}

/* Metas of the two masks. */
static proa_status masks_of(const yolo *y, proa_meta *objectness, proa_meta *match)
{
    PROA_TRY(check_anchors(y));
    PROA_TRY(check_truth(y));
    *objectness = proa_meta_of(y->x);
    objectness->shape[1] = y->mask.count;
    *match = (proa_meta){.dtype = PROA_I32, .ndim = 2, .shape = {y->x->shape[0], y->box->shape[1]}};
    return PROA_OK;
}

proa_status yolov3_loss_infer(const proa_yolov3_loss_args *a, proa_yolov3_loss_metas *m)
{
    yolo y = YOLO(a, "yolov3_loss");
    PROA_TRY(masks_of(&y, &m->objectness, &m->match));
    m->loss = (proa_meta){.dtype = (proa_dtype)a->x->dtype, .ndim = 1, .shape = {a->x->shape[0]}};
    return PROA_OK;
}

static bool fits(const proa_tensor *t, const proa_meta *m)
{
    return t->dtype == m->dtype && t->ndim == m->ndim && proa__shapes_agree(t->shape, m->shape, m->ndim);
}

proa_status yolov3_loss_grad_infer(const proa_yolov3_loss_grad_args *a, proa_yolov3_loss_grad_metas *m)
{
    yolo y = YOLO(a, "yolov3_loss_grad");
    proa_meta objectness, match;
    PROA_TRY(masks_of(&y, &objectness, &match));
    bool masks = fits(a->objectness, &objectness) && fits(a->match, &match);
    if (!masks)
        return OP_FAIL(y.op, INVALID_ARGUMENT, "objectness",
                       "is %s and match %s; expected what yolov3_loss of x %s makes",
                       proa__tensor_text(a->objectness), proa__tensor_text(a->match),
                       proa__tensor_text(a->x));
    if (a->d_loss->dtype != a->x->dtype || a->d_loss->ndim != 1 ||
        !rows_dims_agree(a->d_loss->shape[0], a->x->shape[0]))
        return OP_FAIL(y.op, INVALID_ARGUMENT, "d_loss", "is %s; expected one number an image of x %s",
                       proa__tensor_text(a->d_loss), proa__tensor_text(a->x));
    m->d_x = proa_meta_of(a->x);
    return PROA_OK;
}

proa_status yolov3_loss_vjp(const proa_yolov3_loss_args *a, proa_yolov3_loss_grads *g)
{
    if (!g->want_x) return PROA_OK;
    g->d_x = proa_yolov3_loss_grad(a->x, a->gt_box, a->gt_label, a->gt_score, a->objectness, a->match,
                                   g->d_loss, a->anchors, a->anchor_mask, a->class_num, a->ignore_thresh,
                                   a->downsample_ratio, .no_use_label_smooth = !a->use_label_smooth,
                                   .scale_x_y = rows_option_float(a->scale_x_y));
    return proa_error();
}
