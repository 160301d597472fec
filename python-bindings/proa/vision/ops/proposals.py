"""generate_proposals and distribute_fpn_proposals of two-stage detectors, and matrix_nms."""
from ... import _core
from ...framework import mode


def matrix_nms(bboxes, scores, score_threshold, post_threshold, nms_top_k, keep_top_k, use_gaussian=False,
               gaussian_sigma=2.0, background_label=0, normalized=True, return_index=False, return_rois_num=True, name=None):
    """(rows [label, lowered score, box], how many belong to each image, which of the boxes) of bboxes [n, m, 4] and scores
    [n, classes, m]; None for what is not asked."""
    out, index, number = _core.matrix_nms(bboxes, scores, score_threshold, nms_top_k, keep_top_k, post_threshold,
                                          use_gaussian, gaussian_sigma, background_label, normalized)
    return out, number if return_rois_num else None, index if return_index else None


def generate_proposals(scores, bbox_deltas, img_size, anchors, variances, pre_nms_top_n=6000, post_nms_top_n=1000,
                       nms_thresh=0.5, min_size=0.1, eta=1.0, pixel_offset=False, return_rois_num=False, name=None):
    """(boxes [k, 4], scores [k, 1], how many belong to each image) of a region proposal network's scores [n, a, h, w] and
    offsets [n, 4·a, h, w]."""
    if not return_rois_num and not mode.by_name():
        raise AssertionError("generate_proposals: return_rois_num must be True outside of programs")
    rois, probs, number = _core.generate_proposals(scores, bbox_deltas, img_size, anchors, variances, pre_nms_top_n,
                                                   post_nms_top_n, nms_thresh, min_size, eta, pixel_offset)
    return rois, probs, number if return_rois_num else None


def distribute_fpn_proposals(fpn_rois, min_level, max_level, refer_level, refer_scale, pixel_offset=False, rois_num=None,
                             name=None):
    """(the boxes of each level, where each box went, how many of each level belong to each image)."""
    if max_level <= 0 or min_level > max_level:
        raise AssertionError(f"distribute_fpn_proposals: min_level ({min_level}) must not exceed max_level ({max_level})")
    if rois_num is None:
        if not mode.by_name():
            raise AssertionError("distribute_fpn_proposals: rois_num must be given outside of programs")
        from ...fluid.layers.detection import spread_over_levels
        return (*spread_over_levels(fpn_rois, min_level, max_level, refer_level, refer_scale, pixel_offset, None), None)
    rois, restore, numbers = _core.distribute_fpn_proposals(fpn_rois, rois_num, None, min_level, max_level, refer_level,
                                                            refer_scale, pixel_offset)
    return rois, restore, numbers
