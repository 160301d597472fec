"""Object detection in real Paddle: anchors (prior_box, anchor_generator, …), box coding, non-maximum suppression and
matching. One function per op, named as the op: tests/ops/run_matrix.py calls it with the op's fields, tensors as
Paddle tensors, and saves the outputs that it returns, in the op table's order (None: not compared), for
tests/ops/test_ops.py."""
import paddle
from paddle.vision import ops


def yolo_box(x, img_size, anchors, class_num, conf_thresh, downsample_ratio, clip_bbox, scale_x_y, iou_aware,
             iou_aware_factor):
    return ops.yolo_box(x, img_size, anchors, class_num, conf_thresh, downsample_ratio, clip_bbox, None, scale_x_y,
                        iou_aware, iou_aware_factor)


def prior_box(input, image, min_sizes, max_sizes, aspect_ratios, variances, flip, clip, step_w, step_h, offset,
              min_max_aspect_ratios_order):
    return ops.prior_box(input, image, min_sizes, max_sizes or None, aspect_ratios, variances, flip, clip,
                         [step_w, step_h], offset, min_max_aspect_ratios_order)


def box_coder(prior_box, prior_box_var, target_box, code_type, box_normalized, axis, variance):
    var = prior_box_var if prior_box_var is not None else variance or None
    return ops.box_coder(prior_box, var, target_box, code_type, box_normalized, axis)


def nms(boxes, threshold):
    return ops.nms(boxes, threshold)


def multiclass_nms(bboxes, scores, boxes_num, score_threshold, nms_top_k, keep_top_k, nms_threshold, normalized, nms_eta,
                   background_label):
    return paddle._C_ops.multiclass_nms3(bboxes, scores, boxes_num, score_threshold, nms_top_k, keep_top_k, nms_threshold,
                                         normalized, nms_eta, background_label)


def legacy(op, *inputs, **attrs):
    return getattr(paddle._legacy_C_ops, op)(*inputs, *[one for pair in attrs.items() for one in pair])


def anchor_generator(input, **attrs):
    return legacy("anchor_generator", input, **attrs)


def density_prior_box(input, image, **attrs):
    return legacy("density_prior_box", input, image, **attrs)


def iou_similarity(x, y, **attrs):
    return legacy("iou_similarity", x, y, **attrs)


def bipartite_match(dist, offsets, **attrs):
    return legacy("bipartite_match", dist, **attrs)


def polygon_box_transform(input):
    return legacy("polygon_box_transform", input)


def yolov3_loss(x, gt_box, gt_label, gt_score, anchors, anchor_mask, class_num, ignore_thresh, downsample_ratio, use_label_smooth,
                scale_x_y):
    return ops.yolo_loss(x, gt_box, gt_label, anchors, anchor_mask, class_num, ignore_thresh, downsample_ratio, gt_score,
                         use_label_smooth, None, scale_x_y), None, None
