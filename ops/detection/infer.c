/* Shapes of yolo_box, prior_box, box_coder and non-maximum suppression. May use core and ops. */
#include "ops/detection/detection.h"

#include "ops/ints.h"

static bool is(int64_t dim, int64_t want) { return dim < 0 || dim == want; }

proa_status yolo_box_infer(const proa_yolo_box_args *a, proa_yolo_box_metas *m)
{
    const proa_tensor *x = a->x, *size = a->img_size;
    int64_t count = a->anchors.count / 2, each = 5 + a->class_num + a->iou_aware;
    if (count < 1 || a->anchors.count % 2)
        return OP_FAIL("yolo_box", INVALID_ARGUMENT, "anchors",
                       "has %lld numbers; expected pairs of width and height", (long long)a->anchors.count);
    if (a->class_num < 1 || a->class_num > INT32_MAX)
        return OP_FAIL("yolo_box", INVALID_ARGUMENT, "class_num", "is %lld; expected 1 or more",
                       (long long)a->class_num);
    if (a->downsample_ratio < 1)
        return OP_FAIL("yolo_box", INVALID_ARGUMENT, "downsample_ratio", "is %lld; expected 1 or more",
                       (long long)a->downsample_ratio);
    if (x->ndim != 4 || !is(x->shape[1], count * each))
        return OP_FAIL("yolo_box", INVALID_ARGUMENT, "x",
                       "is %s; expected [N, %lld, H, W]: %lld anchors with %lld channels each",
                       proa__tensor_text(x), (long long)(count * each), (long long)count, (long long)each);
    if (size->ndim != 2 || size->dtype != PROA_I32 || !is(size->shape[1], 2) ||
        (x->shape[0] >= 0 && !is(size->shape[0], x->shape[0])))
        return OP_FAIL("yolo_box", INVALID_ARGUMENT, "img_size",
                       "is %s; expected the height and width of each image of x, int32 [N, 2]",
                       proa__tensor_text(size));
    bool known = x->shape[2] >= 0 && x->shape[3] >= 0;
    m->boxes = proa_meta_of(x);
    m->boxes.ndim = 3;
    m->boxes.shape[1] = known ? count * x->shape[2] * x->shape[3] : -1;
    m->boxes.shape[2] = 4;
    m->scores = m->boxes;
    m->scores.shape[2] = a->class_num;
    return PROA_OK;
}

proa_status proa__prior_ratios(const proa_prior_box_args *a, double *to, int64_t *count)
{
    to[0] = 1;
    *count = 1;
    for (int64_t i = 0; i < a->aspect_ratios.count; i++) {
        double ratio = (float)a->aspect_ratios.at[i];
        if (!(ratio > 0))
            return OP_FAIL("prior_box", INVALID_ARGUMENT, "aspect_ratios", "has %g; expected numbers above 0",
                           ratio);
        if (*count + 2 > DETECTION_RATIOS)
            return OP_FAIL("prior_box", INVALID_ARGUMENT, "aspect_ratios",
                           "has %lld numbers; expected at most %d", (long long)a->aspect_ratios.count,
                           DETECTION_RATIOS / 2 - 1);
        *count = detection_add_ratio(to, *count, ratio, a->flip);
    }
    return PROA_OK;
}

proa_status prior_box_infer(const proa_prior_box_args *a, proa_prior_box_metas *m)
{
    const proa_tensor *x = a->input;
    double ratios[DETECTION_RATIOS];
    int64_t count;
    if (x->ndim != 4 || a->image->ndim != 4)
        return OP_FAIL("prior_box", INVALID_ARGUMENT, x->ndim != 4 ? "input" : "image",
                       "is %s; expected [N, C, H, W]", proa__tensor_text(x->ndim != 4 ? x : a->image));
    if (a->min_sizes.count < 1)
        return OP_FAIL("prior_box", INVALID_ARGUMENT, "min_sizes", "is empty; expected a size or more");
    if (a->max_sizes.count && a->max_sizes.count != a->min_sizes.count)
        return OP_FAIL("prior_box", INVALID_ARGUMENT, "max_sizes",
                       "has %lld sizes; expected as many as min_sizes, %lld", (long long)a->max_sizes.count,
                       (long long)a->min_sizes.count);
    if (a->variances.count != 4)
        return OP_FAIL("prior_box", INVALID_ARGUMENT, "variances", "has %lld numbers; expected 4",
                       (long long)a->variances.count);
    PROA_TRY(proa__prior_ratios(a, ratios, &count));
    m->boxes =
        (proa_meta){.dtype = x->dtype,
                    .ndim = 4,
                    .shape = {x->shape[2], x->shape[3], count * a->min_sizes.count + a->max_sizes.count, 4}};
    m->variance = m->boxes;
    return PROA_OK;
}

proa_status box_coder_infer(const proa_box_coder_args *a, proa_box_coder_metas *m)
{
    const proa_tensor *prior = a->prior_box, *var = a->prior_box_var, *target = a->target_box;
    bool decode = a->code_type == PROA_BOX_CODE_DECODE_CENTER_SIZE;
    if (prior->ndim != 2 || !is(prior->shape[1], 4))
        return OP_FAIL("box_coder", INVALID_ARGUMENT, "prior_box", "is %s; expected [M, 4]",
                       proa__tensor_text(prior));
    if (!proa__absent(var) && (var->ndim != 2 || var->dtype != prior->dtype || !is(var->shape[1], 4) ||
                               (prior->shape[0] >= 0 && !is(var->shape[0], prior->shape[0]))))
        return OP_FAIL("box_coder", INVALID_ARGUMENT, "prior_box_var", "is %s; expected prior_box's %s",
                       proa__tensor_text(var), proa__tensor_text(prior));
    if (a->variance.count && (a->variance.count != 4 || !proa__absent(var)))
        return OP_FAIL("box_coder", INVALID_ARGUMENT, "variance",
                       "has %lld numbers; expected 4, and none beside prior_box_var",
                       (long long)a->variance.count);
    if (a->axis != 0 && a->axis != 1)
        return OP_FAIL("box_coder", INVALID_ARGUMENT, "axis", "is %lld; expected 0 or 1", (long long)a->axis);
    int along = decode && a->axis == 1 ? 0 : 1;
    if (target->dtype != prior->dtype || target->ndim != 2 + decode ||
        !is(target->shape[target->ndim - 1], 4) ||
        (decode && prior->shape[0] >= 0 && !is(target->shape[along], prior->shape[0])))
        return OP_FAIL(
            "box_coder", INVALID_ARGUMENT, "target_box",
            "is %s for priors %s; expected their dtype, and [N, 4] to encode or [N, M, 4] to decode",
            proa__tensor_text(target), proa__tensor_text(prior));
    m->out = proa_meta_of(target);
    if (decode) return PROA_OK;
    m->out.ndim = 3;
    m->out.shape[1] = prior->shape[0];
    m->out.shape[2] = 4;
    return PROA_OK;
}

proa_status nms_infer(const proa_nms_args *a, proa_nms_metas *m)
{
    if (a->boxes->ndim != 2 || !is(a->boxes->shape[1], 4))
        return OP_FAIL("nms", INVALID_ARGUMENT, "boxes", "is %s; expected [N, 4]",
                       proa__tensor_text(a->boxes));
    m->out = (proa_meta){.dtype = PROA_I64, .ndim = 1, .shape = {-1}};
    return PROA_OK;
}

proa_status proa__nms_infer(const char *op, const proa_tensor *boxes, const proa_tensor *scores,
                            proa_meta *out, proa_meta *index, proa_meta *rois_num)
{
    const proa_tensor *b = boxes, *s = scores;
    if (b->ndim != 3 || !is(b->shape[2], 4))
        return OP_FAIL(op, INVALID_ARGUMENT, "bboxes", "is %s; expected [N, M, 4]", proa__tensor_text(b));
    if (s->ndim != 3 || s->dtype != b->dtype || !proa__shapes_agree(s->shape, b->shape, 1) ||
        !proa__shapes_agree(s->shape + 2, b->shape + 1, 1))
        return OP_FAIL(op, INVALID_ARGUMENT, "scores",
                       "is %s for boxes %s; expected their dtype and [N, classes, M]", proa__tensor_text(s),
                       proa__tensor_text(b));
    *out = (proa_meta){.dtype = b->dtype, .ndim = 2, .shape = {-1, 6}};
    *index = (proa_meta){.dtype = PROA_I32, .ndim = 2, .shape = {-1, 1}};
    *rois_num = (proa_meta){.dtype = PROA_I32, .ndim = 1, .shape = {b->shape[0]}};
    return PROA_OK;
}

proa_status multiclass_nms_infer(const proa_multiclass_nms_args *a, proa_multiclass_nms_metas *m)
{
    const proa_tensor *b = a->bboxes, *s = a->scores, *num = a->boxes_num;
    if (!proa__absent(num)) {
        if (num->dtype != PROA_I32 || num->ndim != 1)
            return OP_FAIL("multiclass_nms", INVALID_ARGUMENT, "boxes_num",
                           "is %s; expected int32 [N], the number of rows of each image",
                           proa__tensor_text(num));
        if (b->ndim != 3 || !is(b->shape[2], 4))
            return OP_FAIL("multiclass_nms", INVALID_ARGUMENT, "bboxes",
                           "is %s; expected [M, classes, 4] with boxes_num", proa__tensor_text(b));
        if (s->ndim != 2 || s->dtype != b->dtype || !proa__shapes_agree(s->shape, b->shape, 2))
            return OP_FAIL("multiclass_nms", INVALID_ARGUMENT, "scores",
                           "is %s for boxes %s; expected their dtype and [M, classes]", proa__tensor_text(s),
                           proa__tensor_text(b));
        m->out = (proa_meta){.dtype = b->dtype, .ndim = 2, .shape = {-1, 6}};
        m->index = (proa_meta){.dtype = PROA_I32, .ndim = 2, .shape = {-1, 1}};
        m->rois_num = proa_meta_of(num);
        return PROA_OK;
    }
    return proa__nms_infer("multiclass_nms", a->bboxes, a->scores, &m->out, &m->index, &m->rois_num);
}
