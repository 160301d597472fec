/* Shapes of locality_aware_nms and retinanet_detection_output. May use core, kernels and ops. */
#include "kernels/rowwise.h"
#include "ops/ints.h"
#include "impl/detection.h"

static proa_meta offsets_meta(int64_t images)
{
    return (proa_meta){.dtype = PROA_I64, .ndim = 1, .shape = {images < 0 ? -1 : images + 1}};
}

proa_status locality_aware_nms_infer(const proa_locality_aware_nms_args *a, proa_locality_aware_nms_metas *m)
{
    const char *op = "locality_aware_nms";
    const proa_tensor *box = a->bboxes, *score = a->scores;
    int64_t sides = box->ndim == 3 ? box->shape[2] : 0;
    if (sides >= 0 && sides != 4 && sides != 8 && sides != 16 && sides != 24 && sides != 32)
        return OP_FAIL(op, INVALID_ARGUMENT, "bboxes",
                       "is %s; expected boxes [N, M, 4], or polygons of 8, 16, 24 or 32 numbers",
                       proa__tensor_text(box));
    if (score->ndim != 3 || score->dtype != box->dtype || !rows_dims_agree(score->shape[0], box->shape[0]) ||
        !rows_dims_agree(score->shape[2], box->shape[1]))
        return OP_FAIL(op, INVALID_ARGUMENT, "scores", "is %s for boxes %s; expected [N, classes, M]",
                       proa__tensor_text(score), proa__tensor_text(box));
    m->out = (proa_meta){.dtype = box->dtype, .ndim = 2, .shape = {-1, -1}};
    m->out_offsets = offsets_meta(-1);
    return PROA_OK;
}

/* Tensors of one level: bboxes [N, M, 4], scores [N, M, classes], anchors [M, 4]. */
static proa_status check_level(const proa_retinanet_detection_output_args *a, int64_t i)
{
    const char *op = "retinanet_detection_output";
    const proa_tensor *box = a->bboxes.at[i], *score = a->scores.at[i], *anchor = a->anchors.at[i];
    const proa_tensor *first = a->scores.at[0];
    if (box->ndim != 3 || !rows_dims_agree(box->shape[2], 4))
        return OP_FAIL(op, INVALID_ARGUMENT, "bboxes", "[%lld] is %s; expected [N, M, 4]", (long long)i,
                       proa__tensor_text(box));
    if (score->ndim != 3 || score->dtype != box->dtype || !rows_dims_agree(score->shape[0], box->shape[0]) ||
        !rows_dims_agree(score->shape[1], box->shape[1]) || first->ndim != 3 ||
        !rows_dims_agree(score->shape[2], first->shape[2]) ||
        !rows_dims_agree(score->shape[0], first->shape[0]))
        return OP_FAIL(
            op, INVALID_ARGUMENT, "scores",
            "[%lld] is %s; expected [N, M, classes] for bboxes %s, with the batch and classes of all",
            (long long)i, proa__tensor_text(score), proa__tensor_text(box));
    if (anchor->ndim != 2 || anchor->dtype != box->dtype || !rows_dims_agree(anchor->shape[1], 4) ||
        !rows_dims_agree(anchor->shape[0], box->shape[1]))
        return OP_FAIL(op, INVALID_ARGUMENT, "anchors", "[%lld] is %s; expected [M, 4] for bboxes %s",
                       (long long)i, proa__tensor_text(anchor), proa__tensor_text(box));
    return PROA_OK;
}

proa_status retinanet_detection_output_infer(const proa_retinanet_detection_output_args *a,
                                             proa_retinanet_detection_output_metas *m)
{
    const char *op = "retinanet_detection_output";
    int64_t levels = a->bboxes.count;
    if (levels < 1 || a->scores.count != levels || a->anchors.count != levels)
        return OP_FAIL(op, INVALID_ARGUMENT, "scores",
                       "has %lld levels, anchors %lld; expected as many as bboxes, %lld",
                       (long long)a->scores.count, (long long)a->anchors.count, (long long)levels);
    for (int64_t i = 0; i < levels; i++) PROA_TRY(check_level(a, i));
    const proa_tensor *first = a->bboxes.at[0], *info = a->im_info;
    if (info->ndim != 2 || info->dtype != first->dtype || !rows_dims_agree(info->shape[1], 3) ||
        !rows_dims_agree(info->shape[0], first->shape[0]))
        return OP_FAIL(op, INVALID_ARGUMENT, "im_info",
                       "is %s; expected height, width and scale of each image, [N, 3]",
                       proa__tensor_text(info));
    m->out = (proa_meta){.dtype = first->dtype, .ndim = 2, .shape = {-1, 6}};
    m->out_offsets = offsets_meta(first->shape[0]);
    return PROA_OK;
}
