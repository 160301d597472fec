"""RoI pooling (roi_align, roi_pool, psroi_pool), deformable convolution, region proposals and matrix_nms in real
Paddle. One function per op, named as the op: tests/ops/run_matrix.py calls it with the op's fields, tensors as
Paddle tensors, and saves the outputs that it returns, in the op table's order (None: not compared), for
tests/ops/test_ops.py."""
import paddle
from paddle.vision import ops


def roi_align(x, boxes, boxes_num, offsets, pooled_height, pooled_width, spatial_scale, sampling_ratio, aligned):
    return ops.roi_align(x, boxes, boxes_num, (pooled_height, pooled_width), spatial_scale, sampling_ratio, aligned)


def roi_pool(x, boxes, boxes_num, offsets, pooled_height, pooled_width, spatial_scale):
    return paddle._legacy_C_ops.roi_pool(x, boxes, boxes_num, "pooled_height", pooled_height, "pooled_width", pooled_width,
                                         "spatial_scale", spatial_scale)


def psroi_pool(x, boxes, boxes_num, offsets, pooled_height, pooled_width, output_channels, spatial_scale):
    return ops.psroi_pool(x, boxes, boxes_num, (pooled_height, pooled_width), spatial_scale)


def deformable_conv(x, offset, weight, mask, stride, padding, dilation, deformable_groups, groups):
    return ops.deform_conv2d(x, offset, weight, None, stride, padding, dilation, deformable_groups, groups, mask)


def matrix_nms(bboxes, scores, score_threshold, nms_top_k, keep_top_k, post_threshold, use_gaussian, gaussian_sigma,
               background_label, normalized):
    out, number, index = ops.matrix_nms(bboxes, scores, score_threshold, post_threshold, nms_top_k, keep_top_k, use_gaussian,
                                        gaussian_sigma, background_label, normalized, True)
    return out, index, number


def generate_proposals(scores, bbox_deltas, im_shape, anchors, variances, pre_nms_top_n, post_nms_top_n, nms_thresh, min_size,
                       eta, pixel_offset):
    return ops.generate_proposals(scores, bbox_deltas, im_shape, anchors, variances, pre_nms_top_n, post_nms_top_n, nms_thresh,
                                  min_size, eta, pixel_offset, True)


def distribute_fpn_proposals(fpn_rois, rois_num, offsets, min_level, max_level, refer_level, refer_scale, pixel_offset):
    return ops.distribute_fpn_proposals(fpn_rois, min_level, max_level, refer_level, refer_scale, pixel_offset, rois_num)


def collect_fpn_proposals(multi_rois, multi_scores, multi_rois_num, offsets, post_nms_top_n):
    return paddle._legacy_C_ops.collect_fpn_proposals(multi_rois, multi_scores, multi_rois_num, "post_nms_topN",
                                                      post_nms_top_n)
