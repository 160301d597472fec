/* Shapes of region proposals, of their distribution over pyramid levels, and of matrix_nms. May use core and
 * ops. */
#include "ops/detection/detection.h"
#include "ops/regions/regions.h"

static bool is(int64_t dim, int64_t want) { return rows_dims_agree(dim, want); }

proa_status matrix_nms_infer(const proa_matrix_nms_args *a, proa_matrix_nms_metas *m)
{
    return proa__nms_infer("matrix_nms", a->bboxes, a->scores, &m->out, &m->index, &m->rois_num);
}

/* Anchors or variances: four numbers for each of x's places and anchors. */
static bool fits_scores(const proa_tensor *t, const proa_tensor *scores)
{
    const int64_t *s = scores->shape;
    if (t->dtype != scores->dtype || t->ndim < 2 || t->ndim > 4 || !is(t->shape[t->ndim - 1], 4))
        return false;
    return t->numel < 0 || s[1] < 0 || s[2] < 0 || s[3] < 0 || t->numel == s[1] * s[2] * s[3] * 4;
}

proa_status generate_proposals_infer(const proa_generate_proposals_args *a, proa_generate_proposals_metas *m)
{
    const char *op = "generate_proposals";
    const proa_tensor *s = a->scores, *d = a->bbox_deltas, *im = a->im_shape;
    if (s->ndim != 4)
        return OP_FAIL(op, INVALID_ARGUMENT, "scores", "is %s; expected [N, A, H, W]", proa__tensor_text(s));
    if (d->ndim != 4 || d->dtype != s->dtype || !is(d->shape[0], s->shape[0]) ||
        !is(d->shape[1], s->shape[1] < 0 ? -1 : 4 * s->shape[1]) || !is(d->shape[2], s->shape[2]) ||
        !is(d->shape[3], s->shape[3]))
        return OP_FAIL(op, INVALID_ARGUMENT, "bbox_deltas",
                       "is %s for scores %s; expected their dtype and [N, 4·A, H, W]", proa__tensor_text(d),
                       proa__tensor_text(s));
    if (im->ndim != 2 || im->dtype != s->dtype || !is(im->shape[0], s->shape[0]) ||
        (im->shape[1] >= 0 && im->shape[1] != 2 && im->shape[1] != 3))
        return OP_FAIL(
            op, INVALID_ARGUMENT, "im_shape",
            "is %s for scores %s; expected their dtype and [N, 2]: height and width of each image, or with "
            "their scale [N, 3]",
            proa__tensor_text(im), proa__tensor_text(s));
    const proa_tensor *bad = !fits_scores(a->anchors, s)     ? a->anchors
                             : !fits_scores(a->variances, s) ? a->variances
                                                             : NULL;
    if (bad)
        return OP_FAIL(op, INVALID_ARGUMENT, bad == a->anchors ? "anchors" : "variances",
                       "is %s for scores %s; expected their dtype and [H, W, A, 4]", proa__tensor_text(bad),
                       proa__tensor_text(s));
    m->rois = (proa_meta){.dtype = (proa_dtype)s->dtype, .ndim = 2, .shape = {-1, 4}};
    m->probs = (proa_meta){.dtype = (proa_dtype)s->dtype, .ndim = 2, .shape = {-1, 1}};
    m->rois_num = (proa_meta){.dtype = PROA_I32, .ndim = 1, .shape = {s->shape[0]}};
    return PROA_OK;
}

static proa_status check_boxes(const char *op, const char *name, const proa_tensor *t)
{
    if (t->ndim == 2 && is(t->shape[1], 4)) return PROA_OK;
    return OP_FAIL(op, INVALID_ARGUMENT, name, "is %s; expected [boxes, 4]", proa__tensor_text(t));
}

/* Sets *images to the number of images: the length of `num` if it is present, else that of `offsets` less
 * one; −1: unknown. INVALID_ARGUMENT if both are absent. */
static proa_status images_of(const char *op, const char *name, const proa_tensor *num,
                             const proa_tensor *offsets, int64_t *images)
{
    bool counts = num && !proa__absent(num), parts = offsets && !proa__absent(offsets);
    const proa_tensor *t = counts ? num : offsets;
    if (!counts && !parts)
        return OP_FAIL(op, INVALID_ARGUMENT, name,
                       "is missing; expected the number of boxes of each image, or boxes with LoD");
    bool ok = t->ndim == 1 && (t->dtype == PROA_I64 || (counts && t->dtype == PROA_I32));
    if (!ok || (!counts && t->shape[0] == 0))
        return OP_FAIL(op, INVALID_ARGUMENT, counts ? name : "offsets", "is %s; expected %s",
                       proa__tensor_text(t), counts ? "int32 [images]" : "int64 [images + 1]");
    *images = t->shape[0] < 0 ? -1 : t->shape[0] - !counts;
    return PROA_OK;
}

proa_status distribute_fpn_proposals_infer(const proa_distribute_fpn_proposals_args *a,
                                           proa_distribute_fpn_proposals_metas *m)
{
    const char *op = "distribute_fpn_proposals";
    int64_t images, levels = a->max_level - a->min_level + 1;
    PROA_TRY(check_boxes(op, "fpn_rois", a->fpn_rois));
    if (a->min_level < -64 || a->max_level > 64 || levels < 1)
        return OP_FAIL(op, INVALID_ARGUMENT, "max_level",
                       "is %lld and min_level %lld; expected levels of a pyramid, the smallest first",
                       (long long)a->max_level, (long long)a->min_level);
    if (a->refer_scale < 1)
        return OP_FAIL(op, INVALID_ARGUMENT, "refer_scale", "is %lld; expected 1 or more",
                       (long long)a->refer_scale);
    PROA_TRY(images_of(op, "rois_num", a->rois_num, a->offsets, &images));
    PROA_TRY(proa_metas_resize(&m->multi_rois, levels));
    PROA_TRY(proa_metas_resize(&m->multi_rois_num, levels));
    for (int64_t i = 0; i < levels; i++) {
        m->multi_rois.at[i] =
            (proa_meta){.dtype = (proa_dtype)a->fpn_rois->dtype, .ndim = 2, .shape = {-1, 4}};
        m->multi_rois_num.at[i] = (proa_meta){.dtype = PROA_I32, .ndim = 1, .shape = {images}};
    }
    m->restore_index = (proa_meta){.dtype = PROA_I32, .ndim = 2, .shape = {a->fpn_rois->shape[0], 1}};
    return PROA_OK;
}

proa_status collect_fpn_proposals_infer(const proa_collect_fpn_proposals_args *a,
                                        proa_collect_fpn_proposals_metas *m)
{
    const char *op = "collect_fpn_proposals";
    int64_t levels = a->multi_rois.count, images = -1;
    if (levels < 1 || a->multi_scores.count != levels)
        return OP_FAIL(op, INVALID_ARGUMENT, "multi_scores",
                       "has %lld tensors; expected one for each of %lld levels",
                       (long long)a->multi_scores.count, (long long)levels);
    if (a->post_nms_top_n < 0)
        return OP_FAIL(op, INVALID_ARGUMENT, "post_nms_top_n", "is %lld; expected 0 or more",
                       (long long)a->post_nms_top_n);
    for (int64_t i = 0; i < levels; i++) {
        const proa_tensor *b = a->multi_rois.at[i], *s = a->multi_scores.at[i];
        int64_t here;
        PROA_TRY(check_boxes(op, "multi_rois", b));
        if (b->dtype != a->multi_rois.at[0]->dtype || s->dtype != b->dtype || !is(s->numel, b->shape[0]))
            return OP_FAIL(op, INVALID_ARGUMENT, "multi_scores",
                           "has %s for boxes %s; expected one dtype and a score for each box",
                           proa__tensor_text(s), proa__tensor_text(b));
        PROA_TRY(images_of(op, "multi_rois_num", i < a->multi_rois_num.count ? a->multi_rois_num.at[i] : NULL,
                           i < a->offsets.count ? a->offsets.at[i] : NULL, &here));
        if (!is(images, here))
            return OP_FAIL(op, INVALID_ARGUMENT, "multi_rois_num",
                           "of level %lld is for %lld images, those before for %lld", (long long)i,
                           (long long)here, (long long)images);
        images = here >= 0 ? here : images;
    }
    m->rois = (proa_meta){.dtype = (proa_dtype)a->multi_rois.at[0]->dtype, .ndim = 2, .shape = {-1, 4}};
    m->rois_num = (proa_meta){.dtype = PROA_I32, .ndim = 1, .shape = {images}};
    return PROA_OK;
}
