/* Shapes of the ops that generate, match, clip and decode anchor boxes. May use core, kernels and ops. */
#include "ops/detection/detection.h"

#include "kernels/rowwise.h"
#include "ops/ints.h"

static bool is(int64_t dim, int64_t want) { return rows_dims_agree(dim, want); }

static proa_status check_map(const char *op, const char *name, const proa_tensor *x)
{
    if (x->ndim == 4) return PROA_OK;
    return OP_FAIL(op, INVALID_ARGUMENT, name, "is %s; expected [N, C, H, W]", proa__tensor_text(x));
}

static proa_status check_count(const char *op, const char *name, int64_t count, int64_t want)
{
    if (want ? count == want : count > 0) return PROA_OK;
    return OP_FAIL(op, INVALID_ARGUMENT, name, "has %lld numbers; expected %s%lld", (long long)count,
                   want ? "" : "more than ", (long long)want);
}

static proa_status check_boxes(const char *op, const char *name, const proa_tensor *t)
{
    if (t->ndim == 2 && is(t->shape[1], 4)) return PROA_OK;
    return OP_FAIL(op, INVALID_ARGUMENT, name, "is %s; expected [boxes, 4]", proa__tensor_text(t));
}

static proa_status check_positive(const char *op, const char *name, proa_floats v)
{
    for (int64_t i = 0; i < v.count; i++)
        if (!((float)v.at[i] > 0))
            return OP_FAIL(op, INVALID_ARGUMENT, name, "has %g; expected numbers above 0", v.at[i]);
    return PROA_OK;
}

proa_status anchor_generator_infer(const proa_anchor_generator_args *a, proa_anchor_generator_metas *m)
{
    const char *op = "anchor_generator";
    PROA_TRY(check_map(op, "input", a->input));
    PROA_TRY(check_count(op, "anchor_sizes", a->anchor_sizes.count, 0));
    PROA_TRY(check_count(op, "aspect_ratios", a->aspect_ratios.count, 0));
    PROA_TRY(check_count(op, "variances", a->variances.count, 4));
    PROA_TRY(check_count(op, "stride", a->stride.count, 2));
    PROA_TRY(check_positive(op, "aspect_ratios", a->aspect_ratios));
    PROA_TRY(check_positive(op, "stride", a->stride));
    int64_t each = a->anchor_sizes.count * a->aspect_ratios.count;
    m->anchors = m->variance = (proa_meta){.dtype = (proa_dtype)a->input->dtype,
                                           .ndim = 4,
                                           .shape = {a->input->shape[2], a->input->shape[3], each, 4}};
    return PROA_OK;
}

proa_status density_prior_box_infer(const proa_density_prior_box_args *a, proa_density_prior_box_metas *m)
{
    const char *op = "density_prior_box";
    int64_t each = 0, h = a->input->ndim == 4 ? a->input->shape[2] : 0,
            w = a->input->ndim == 4 ? a->input->shape[3] : 0;
    PROA_TRY(check_map(op, "input", a->input));
    PROA_TRY(check_map(op, "image", a->image));
    PROA_TRY(check_count(op, "fixed_sizes", a->fixed_sizes.count, 0));
    PROA_TRY(check_count(op, "fixed_ratios", a->fixed_ratios.count, 0));
    PROA_TRY(check_count(op, "densities", a->densities.count, a->fixed_sizes.count));
    PROA_TRY(check_count(op, "variances", a->variances.count, 4));
    PROA_TRY(check_positive(op, "fixed_ratios", a->fixed_ratios));
    for (int64_t i = 0; i < a->densities.count; i++) {
        int64_t density = a->densities.at[i];
        if (density < 1 || density > INT16_MAX)
            return OP_FAIL(op, INVALID_ARGUMENT, "densities", "has %lld; expected 1 or more",
                           (long long)density);
        each += density * density * a->fixed_ratios.count;
    }
    m->boxes = (proa_meta){.dtype = (proa_dtype)a->input->dtype, .ndim = 4, .shape = {h, w, each, 4}};
    if (a->flatten_to_2d)
        m->boxes = (proa_meta){.dtype = (proa_dtype)a->input->dtype,
                               .ndim = 2,
                               .shape = {h < 0 || w < 0 ? -1 : h * w * each, 4}};
    m->variance = m->boxes;
    return PROA_OK;
}

proa_status iou_similarity_infer(const proa_iou_similarity_args *a, proa_iou_similarity_metas *m)
{
    PROA_TRY(check_boxes("iou_similarity", "x", a->x));
    PROA_TRY(check_boxes("iou_similarity", "y", a->y));
    if (a->x->dtype != a->y->dtype)
        return OP_FAIL("iou_similarity", INVALID_ARGUMENT, "y", "is %s, but x is %s; expected one dtype",
                       proa__tensor_text(a->y), proa__tensor_text(a->x));
    m->out =
        (proa_meta){.dtype = (proa_dtype)a->x->dtype, .ndim = 2, .shape = {a->x->shape[0], a->y->shape[0]}};
    return PROA_OK;
}

proa_status bipartite_match_infer(const proa_bipartite_match_args *a, proa_bipartite_match_metas *m)
{
    const char *op = "bipartite_match";
    bool parts = !proa__absent(a->offsets);
    if (a->dist->ndim != 2)
        return OP_FAIL(op, INVALID_ARGUMENT, "dist", "is %s; expected [rows, columns]",
                       proa__tensor_text(a->dist));
    if (strcmp(a->match_type, "bipartite") != 0 && strcmp(a->match_type, "per_prediction") != 0)
        return OP_FAIL(op, INVALID_ARGUMENT, "match_type",
                       "is '%s'; expected 'bipartite' or 'per_prediction'", a->match_type);
    if (parts && (a->offsets->dtype != PROA_I64 || a->offsets->ndim != 1 || a->offsets->shape[0] == 0))
        return OP_FAIL(op, INVALID_ARGUMENT, "offsets", "are %s; expected int64 [sequences + 1]",
                       proa__tensor_text(a->offsets));
    int64_t n = !parts ? 1 : a->offsets->shape[0] < 0 ? -1 : a->offsets->shape[0] - 1;
    m->match_dist = m->match_indices =
        (proa_meta){.dtype = PROA_I32, .ndim = 2, .shape = {n, a->dist->shape[1]}};
    m->match_dist.dtype = (proa_dtype)a->dist->dtype;
    return PROA_OK;
}

proa_status box_clip_infer(const proa_box_clip_args *a, proa_box_clip_metas *m)
{
    const proa_tensor *im = a->im_info, *offsets = a->offsets;
    PROA_TRY(check_boxes("box_clip", "input", a->input));
    if (offsets->dtype != PROA_I64 || offsets->ndim != 1 || offsets->shape[0] == 0)
        return OP_FAIL("box_clip", INVALID_ARGUMENT, "offsets", "are %s; expected int64 [images + 1]",
                       proa__tensor_text(offsets));
    if (im->ndim != 2 || im->dtype != a->input->dtype || !is(im->shape[1], 3) ||
        !is(im->shape[0], offsets->shape[0] < 0 ? -1 : offsets->shape[0] - 1))
        return OP_FAIL("box_clip", INVALID_ARGUMENT, "im_info",
                       "is %s for offsets %s; expected input's dtype and [images, 3]", proa__tensor_text(im),
                       proa__tensor_text(offsets));
    m->out = proa_meta_of(a->input);
    return PROA_OK;
}

proa_status box_decoder_and_assign_infer(const proa_box_decoder_and_assign_args *a,
                                         proa_box_decoder_and_assign_metas *m)
{
    const char *op = "box_decoder_and_assign";
    const proa_tensor *prior = a->prior_box, *target = a->target_box, *score = a->box_score;
    PROA_TRY(check_boxes(op, "prior_box", prior));
    if (!is(a->prior_box_var->numel, 4) || a->prior_box_var->dtype != prior->dtype)
        return OP_FAIL(op, INVALID_ARGUMENT, "prior_box_var",
                       "is %s; expected four numbers of prior_box's dtype",
                       proa__tensor_text(a->prior_box_var));
    if (score->ndim != 2 || score->dtype != prior->dtype || !is(score->shape[0], prior->shape[0]))
        return OP_FAIL(op, INVALID_ARGUMENT, "box_score", "is %s for boxes %s; expected [boxes, classes]",
                       proa__tensor_text(score), proa__tensor_text(prior));
    if (target->ndim != 2 || target->dtype != prior->dtype || !is(target->shape[0], prior->shape[0]) ||
        !is(target->shape[1], score->shape[1] < 0 ? -1 : 4 * score->shape[1]))
        return OP_FAIL(op, INVALID_ARGUMENT, "target_box",
                       "is %s for scores %s; expected [boxes, 4 · classes]", proa__tensor_text(target),
                       proa__tensor_text(score));
    m->decode_box = proa_meta_of(target);
    m->assign_box = proa_meta_of(prior);
    return PROA_OK;
}

proa_status polygon_box_transform_infer(const proa_polygon_box_transform_args *a,
                                        proa_polygon_box_transform_metas *m)
{
    PROA_TRY(check_map("polygon_box_transform", "input", a->input));
    m->out = proa_meta_of(a->input);
    return PROA_OK;
}
