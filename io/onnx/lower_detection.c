/* Lowerings of the boxes of detectors: anchors, decoding, and non-maximum suppression. May use core, ops
 * and io's own headers. */
#if defined(PROA_HAVE_PROTOBUF_C)

#include "io/onnx/lower.h"

#include "impl/create.h"
#include "impl/detection.h"
#include "impl/regions.h"
#include "ops/ints.h"

#include <math.h>

/* Numbers 0 … n − 1 plus `offset`, in a shape. */
static onnx_value *ramp(onnx_graph *g, proa_dtype dtype, int64_t n, double offset, int64_t rows,
                        int64_t columns)
{
    double *at = onnx_alloc(g, (size_t)n, sizeof *at);
    for (int64_t i = 0; at && i < n; i++) at[i] = (double)i + offset;
    return at ? ONNX_RESHAPE(g, onnx_numbers(g, dtype, n, at), rows, columns) : NULL;
}

/* ---- YOLO ------------------------------------------------------------------------------------------- */

/* Values that the parts of yolo_box share. */
typedef struct yolo {
    const proa_yolo_box_args *a;
    onnx_value *parts; /* [N, anchors, 5 + classes, H, W] */
    int64_t anchors, rows, columns;
} yolo;

static onnx_value *part(onnx_graph *g, const yolo *y, int64_t k)
{
    return ONNX_RESHAPE(g, onnx_slice_one(g, y->parts, 2, k, k + 1), 0, y->anchors, y->rows, y->columns);
}

/* An image's height (0) or width (1): [N, 1, 1, 1]. */
static onnx_value *image_side(onnx_graph *g, const yolo *y, int64_t k)
{
    onnx_value *side = onnx_slice_one(g, onnx_in(g, y->a->img_size), 1, k, k + 1);
    return y->parts ? ONNX_RESHAPE(g, onnx_cast(g, side, y->parts->dtype), -1, 1, 1, 1) : NULL;
}

/* The low and high corner along x (axis 0) or y (axis 1). */
static void corners(onnx_graph *g, const yolo *y, int axis, onnx_value **low, onnx_value **high)
{
    const proa_yolo_box_args *a = y->a;
    const int64_t n = axis ? y->rows : y->columns;
    double *sizes = onnx_alloc(g, (size_t)y->anchors, sizeof *sizes);
    onnx_value *side = image_side(g, y, 1 - axis);
    *low = *high = NULL;
    if (!sizes || !side) return;
    proa_dtype dtype = side->dtype;
    for (int64_t i = 0; i < y->anchors; i++)
        sizes[i] = (double)a->anchors.at[2 * i + axis] / (double)(a->downsample_ratio * n) / 2;
    onnx_value *cells = ramp(g, dtype, n, -0.5 * (a->scale_x_y - 1), axis ? n : 1, axis ? 1 : n);
    onnx_value *moved = onnx_mul_by(g, ONNX_NODE(g, "Sigmoid", part(g, y, axis)), a->scale_x_y);
    onnx_value *centre = onnx_mul(g, onnx_add(g, moved, cells), onnx_mul_by(g, side, 1 / (double)n));
    onnx_value *anchors = ONNX_RESHAPE(g, onnx_numbers(g, dtype, y->anchors, sizes), y->anchors, 1, 1);
    onnx_value *half = onnx_mul(g, onnx_mul(g, ONNX_NODE(g, "Exp", part(g, y, 2 + axis)), anchors), side);
    *low = onnx_sub(g, centre, half);
    *high = onnx_add(g, centre, half);
    if (!a->clip_bbox) return;
    *low = ONNX_NODE(g, "Max", *low, onnx_number(g, dtype, 0));
    *high = ONNX_NODE(g, "Min", *high, onnx_add_to(g, side, -1));
}

ONNX_LOWER(lower_yolo_box, yolo_box)
{
    const int64_t count = a->anchors.count / 2, last = 4, third = 2, classes_last[] = {0, 1, 3, 4, 2};
    yolo y = {a, NULL, count, a->x->shape[2], a->x->shape[3]};
    onnx_value *x = onnx_in(g, a->x), *box[4];
    if (y.rows < 0 || y.columns < 0) {
        onnx_refuse(g, "the size of x must be known: give it in input_spec");
        return;
    }
    onnx_value *raw = a->iou_aware ? onnx_slice_one(g, x, 1, count, INT64_MAX) : x;
    y.parts = ONNX_RESHAPE(g, raw, 0, count, 5 + a->class_num, y.rows, y.columns);
    onnx_value *sure = ONNX_NODE(g, "Sigmoid", part(g, &y, 4));
    if (!sure) return;
    proa_dtype dtype = sure->dtype;
    if (a->iou_aware) {
        onnx_value *iou = ONNX_NODE(g, "Sigmoid", onnx_slice_one(g, x, 1, 0, count));
        sure = ONNX_NODE(g, "Pow", sure, onnx_number(g, dtype, 1 - a->iou_aware_factor));
        sure = onnx_mul(g, sure, ONNX_NODE(g, "Pow", iou, onnx_number(g, dtype, a->iou_aware_factor)));
    }
    for (int axis = 0; axis < 2; axis++) corners(g, &y, axis, &box[axis], &box[2 + axis]);
    for (int i = 0; i < 4; i++) box[i] = onnx_unsqueeze(g, box[i], 1, &last);
    onnx_value *on = onnx_not(g, onnx_test(g, "Less", sure, onnx_number(g, dtype, a->conf_thresh)));
    onnx_value *zero = onnx_number(g, dtype, 0);
    onnx_value *boxes = onnx_where(g, onnx_unsqueeze(g, on, 1, &last), onnx_concat(g, 4, box, 4), zero);
    onnx_value *classes = ONNX_NODE(g, "Sigmoid", onnx_slice_one(g, y.parts, 2, 5, INT64_MAX));
    classes = onnx_mul(g, classes, onnx_unsqueeze(g, sure, 1, &third));
    classes =
        onnx_transpose(g, onnx_where(g, onnx_unsqueeze(g, on, 1, &third), classes, zero), 5, classes_last);
    onnx_bind(g, a->boxes, ONNX_RESHAPE(g, boxes, 0, count * y.rows * y.columns, 4));
    onnx_bind(g, a->scores, ONNX_RESHAPE(g, classes, 0, count * y.rows * y.columns, a->class_num));
}

/* ---- anchors ---------------------------------------------------------------------------------------- */

/* A tensor of zeros like t, for ops that ask for shapes only; NULL with an error if a dim is not known. */
static proa_tensor *zeros_like(onnx_graph *g, const proa_tensor *t)
{
    const proa_ints shape = {.count = t->ndim, .at = t->shape};
    if (t->numel >= 0) return proa_full(shape, 0, .dtype = (proa_dtype)t->dtype);
    onnx_refuse(g, "sizes of its inputs must be known: give them in input_spec");
    return NULL;
}

/* The result of an op that was run now. */
static void bind_constant(onnx_graph *g, const proa_tensor *out, proa_tensor *made)
{
    size_t bytes = made ? (size_t)made->numel * proa_dtype_size((proa_dtype)made->dtype) : 0;
    void *elements = onnx_alloc(g, bytes, 1);
    if (!elements || !made || proa_copy_out(made, elements, bytes) != PROA_OK) return;
    onnx_bind(g, out, onnx_data(g, (proa_dtype)made->dtype, made->ndim, made->shape, elements));
}

/* The boxes depend on the sizes of images only. */
ONNX_LOWER(lower_prior_box, prior_box)
{
    proa_prior_box_args now = *a;
    now.input = zeros_like(g, a->input);
    now.image = zeros_like(g, a->image);
    now.boxes = now.variance = NULL;
    if (proa_error() != PROA_OK || proa_call_op(c->op, &now) != PROA_OK) return;
    bind_constant(g, a->boxes, now.boxes);
    bind_constant(g, a->variance, now.variance);
}

ONNX_LOWER(lower_anchor_generator, anchor_generator)
{
    proa_anchor_generator_args now = *a;
    now.input = zeros_like(g, a->input);
    now.anchors = now.variance = NULL;
    if (proa_error() != PROA_OK || proa_call_op(c->op, &now) != PROA_OK) return;
    bind_constant(g, a->anchors, now.anchors);
    bind_constant(g, a->variance, now.variance);
}

/* ---- decoding --------------------------------------------------------------------------------------- */

ONNX_LOWER(lower_box_coder, box_coder)
{
    const bool decode = a->code_type == PROA_BOX_CODE_DECODE_CENTER_SIZE;
    const double more = a->box_normalized ? 0 : 1;
    const int64_t at = decode && a->axis == 1 ? 1 : 0, second = 1;
    onnx_value *prior = onnx_unsqueeze(g, onnx_in(g, a->prior_box), 1, &at),
               *target = onnx_in(g, a->target_box);
    if (!prior || !target) return;
    onnx_value *variance = onnx_in(g, a->prior_box_var);
    if (variance) variance = onnx_unsqueeze(g, variance, 1, &at);
    else if (a->variance.count == 4)
        variance = ONNX_RESHAPE(g, onnx_numbers(g, prior->dtype, 4, a->variance.at), 1, 1, 4);
    onnx_value *low = onnx_slice_one(g, prior, 2, 0, 2),
               *sides = onnx_sub(g, onnx_slice_one(g, prior, 2, 2, 4), low);
    if (more > 0) sides = onnx_add_to(g, sides, more);
    onnx_value *centre = onnx_add(g, low, onnx_mul_by(g, sides, 0.5));
    if (decode) {
        onnx_value *move = onnx_slice_one(g, target, 2, 0, 2), *grow = onnx_slice_one(g, target, 2, 2, 4);
        if (variance) move = onnx_mul(g, move, onnx_slice_one(g, variance, 2, 0, 2));
        if (variance) grow = onnx_mul(g, grow, onnx_slice_one(g, variance, 2, 2, 4));
        onnx_value *middle = onnx_add(g, onnx_mul(g, move, sides), centre);
        onnx_value *half = onnx_mul_by(g, onnx_mul(g, ONNX_NODE(g, "Exp", grow), sides), 0.5);
        onnx_value *high = onnx_add(g, middle, half),
                   *both[] = {onnx_sub(g, middle, half), more > 0 ? onnx_add_to(g, high, -more) : high};
        onnx_bind(g, a->out, onnx_concat(g, 2, both, 2));
        return;
    }
    target = onnx_unsqueeze(g, target, 1, &second);
    onnx_value *first = onnx_slice_one(g, target, 2, 0, 2), *end = onnx_slice_one(g, target, 2, 2, 4),
               *size = onnx_sub(g, end, first);
    if (more > 0) size = onnx_add_to(g, size, more);
    onnx_value *offset =
        onnx_div(g, onnx_sub(g, onnx_mul_by(g, onnx_add(g, first, end), 0.5), centre), sides);
    onnx_value *both[] = {offset, ONNX_NODE(g, "Log", ONNX_NODE(g, "Abs", onnx_div(g, size, sides)))};
    onnx_value *out = onnx_concat(g, 2, both, 2);
    onnx_bind(g, a->out, variance ? onnx_div(g, out, variance) : out);
}

/* ---- non-maximum suppression -------------------------------------------------------------------------- */

/* Indices (image, class, box) of what is kept: [n, 3]. */
static onnx_value *suppress(onnx_graph *g, onnx_value *boxes, onnx_value *scores, double overlap,
                            const double *least)
{
    onnx_value *all = onnx_whole(g, PROA_I64, INT32_MAX);
    onnx_value *y =
        ONNX_NODE(g, "NonMaxSuppression", onnx_cast(g, boxes, PROA_F32), onnx_cast(g, scores, PROA_F32), all,
                  onnx_number(g, PROA_F32, overlap), least ? onnx_number(g, PROA_F32, *least) : NULL);
    return onnx_typed(y, PROA_I64);
}

/* Boxes in the order of their importance, which fall as scores. */
ONNX_LOWER(lower_nms, nms)
{
    const int64_t n = a->boxes->shape[0], first = 0;
    if (n < 0) {
        onnx_refuse(g, "the number of boxes must be known");
        return;
    }
    double *falling = onnx_alloc(g, (size_t)n, sizeof *falling);
    for (int64_t i = 0; falling && i < n; i++) falling[i] = (double)(n - i);
    if (!falling) return;
    onnx_value *scores = ONNX_RESHAPE(g, onnx_numbers(g, PROA_F32, n, falling), 1, 1, n);
    onnx_value *kept =
        suppress(g, onnx_unsqueeze(g, onnx_in(g, a->boxes), 1, &first), scores, a->threshold, NULL);
    onnx_bind(g, a->out, ONNX_RESHAPE(g, onnx_slice_one(g, kept, 1, 2, 3), -1));
}

/* Scores without the background's, and without those of a class that are not among its k best: −∞ is kept
 * by no threshold. */
static onnx_value *candidates(onnx_graph *g, const proa_multiclass_nms_args *a, onnx_value *scores)
{
    const int64_t classes = a->scores->shape[1], boxes = a->scores->shape[2];
    onnx_value *none = onnx_number(g, PROA_F32, -INFINITY);
    if (a->background_label >= 0 && a->background_label < classes) {
        const int64_t shape[] = {1, classes, 1};
        bool *mask = onnx_alloc(g, (size_t)classes, sizeof *mask);
        if (!mask) return NULL;
        mask[a->background_label] = true;
        scores = onnx_where(g, onnx_data(g, PROA_BOOL, 3, shape, mask), none, scores);
    }
    if (a->nms_top_k < 0 || a->nms_top_k >= boxes) return scores;
    onnx_value *best = ONNX_NODE(g, "TopK", scores, onnx_int(g, a->nms_top_k));
    onnx_put_int(g, best, "axis", 2);
    (void)onnx_also(g, best, PROA_I64);
    onnx_value *least = onnx_slice_one(g, best, 2, a->nms_top_k - 1, a->nms_top_k);
    return onnx_where(g, onnx_test(g, "Less", scores, least), none, scores);
}

/* The rows of `kept` with the best `most` scores, in their order. */
static onnx_value *best_rows(onnx_graph *g, onnx_value *kept, onnx_value *scores, int64_t most)
{
    onnx_value *count[] = {onnx_slice_one(g, onnx_typed(ONNX_NODE(g, "Shape", kept), PROA_I64), 0, 0, 1),
                           onnx_int(g, most)};
    const int64_t first = 0;
    onnx_value *k = onnx_reduce(g, "ReduceMin", onnx_concat(g, 2, count, 0), 1, &first, true);
    onnx_value *found = ONNX_NODE(g, "TopK", ONNX_NODE(g, "GatherND", scores, kept), k);
    onnx_value *places = ONNX_NODE(g, "TopK", onnx_also(g, found, PROA_I64), k);
    onnx_put_int(g, places, "largest", 0);
    (void)onnx_also(g, places, PROA_I64);
    return onnx_gather(g, kept, places, 0);
}

ONNX_LOWER(lower_multiclass_nms, multiclass_nms)
{
    const int64_t images = a->scores->ndim == 3 ? a->scores->shape[0] : -1, boxes = a->bboxes->shape[1],
                  second = 1;
    if (a->bboxes->ndim != 3 || images != 1 || a->scores->shape[1] < 0 || boxes < 0) {
        onnx_refuse(g, "it is exported for one image with a known number of boxes and classes");
        return;
    }
    if (!a->normalized || a->nms_eta < 1) {
        onnx_refuse(g, "boxes that are not normalized, and nms_eta below 1, have no counterpart in ONNX");
        return;
    }
    onnx_value *scores = onnx_cast(g, onnx_in(g, a->scores), PROA_F32), *all = onnx_in(g, a->bboxes);
    onnx_value *kept = suppress(g, all, candidates(g, a, scores), a->nms_threshold, &a->score_threshold);
    if (a->keep_top_k > -1) kept = best_rows(g, kept, scores, a->keep_top_k);
    if (!kept || !all) return;
    onnx_value *label = onnx_cast(g, onnx_slice_one(g, kept, 1, 1, 2), all->dtype);
    onnx_value *place = onnx_slice_one(g, kept, 1, 2, 3);
    onnx_value *score =
        onnx_unsqueeze(g, onnx_cast(g, ONNX_NODE(g, "GatherND", scores, kept), all->dtype), 1, &second);
    onnx_value *box = onnx_gather(g, ONNX_RESHAPE(g, all, boxes, 4), ONNX_RESHAPE(g, place, -1), 0);
    onnx_value *row[] = {label, score, box};
    onnx_bind(g, a->out, onnx_concat(g, 3, row, 1));
    if (onnx_is_read(g, a->index)) onnx_bind(g, a->index, place);
    onnx_bind(g, a->rois_num, onnx_slice_one(g, onnx_typed(ONNX_NODE(g, "Shape", kept), PROA_I64), 0, 0, 1));
}

/* ---- deformable convolution
 * ----------------------------------------------------------------------------- */

ONNX_LOWER(lower_deformable_conv, deformable_conv)
{
    onnx_window w = {.n = 2, .size = {a->weight->shape[2], a->weight->shape[3]}};
    onnx_window_fill(&w, &a->stride, &a->padding, &a->dilation, PROA_PADDING_ALGORITHM_EXPLICIT);
    onnx_value *y = ONNX_NODE(g, "DeformConv", onnx_in(g, a->x), onnx_in(g, a->weight), onnx_in(g, a->offset),
                              NULL, onnx_in(g, a->mask));
    onnx_put_ints(g, y, "kernel_shape", 2, w.size);
    onnx_put_ints(g, y, "strides", 2, w.stride);
    onnx_put_ints(g, y, "dilations", 2, w.dilation);
    onnx_put_pads(g, y, &w);
    onnx_put_int(g, y, "group", a->groups);
    onnx_put_int(g, y, "offset_group", a->deformable_groups);
    onnx_bind(g, a->out, y);
}

const onnx_rule onnx_rules_detection[] = {
    {"yolo_box", lower_yolo_box, NULL, 9, 0},
    {"prior_box", lower_prior_box, NULL, 0, 0},
    {"anchor_generator", lower_anchor_generator, NULL, 0, 0},
    {"box_coder", lower_box_coder, NULL, 0, 0},
    {"nms", lower_nms, NULL, 10, 0},
    {"multiclass_nms", lower_multiclass_nms, NULL, 11, 0},
    {"deformable_conv", lower_deformable_conv, NULL, 19, 0},
    {0},
};

#else
typedef int proa__no_onnx_detection; /* C wants a declaration in every file */
#endif
