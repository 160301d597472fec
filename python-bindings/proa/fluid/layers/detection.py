"""fluid.layers.detection: object detection: anchors, box coding and matching, non-maximum suppression, RoI pooling,
YOLO and SSD."""
from ... import _core
from ..data_feeder import check_type, check_variable_and_dtype
from ..layer_helper import one_op
from .detection_targets import (generate_mask_labels, generate_proposal_labels, locality_aware_nms, retinanet_detection_output,
                                retinanet_target_assign, rpn_target_assign)

__all__ = ["anchor_generator", "bipartite_match", "box_clip", "box_coder", "box_decoder_and_assign", "collect_fpn_proposals",
           "density_prior_box", "detection_output", "distribute_fpn_proposals", "generate_mask_labels", "generate_proposal_labels",
           "generate_proposals", "iou_similarity", "locality_aware_nms", "matrix_nms", "multiclass_nms",
           "polygon_box_transform", "prior_box", "prroi_pool", "psroi_pool", "retinanet_detection_output",
           "retinanet_target_assign", "roi_align", "roi_pool", "rpn_target_assign", "sigmoid_focal_loss",
           "target_assign", "yolo_box", "yolov3_loss"]


def _floats(values):
    return [float(v) for v in (values if isinstance(values, (list, tuple)) else [values])]


def prior_box(input, image, min_sizes, max_sizes=None, aspect_ratios=(1.0,), variance=(0.1, 0.1, 0.2, 0.2), flip=False,
              clip=False, steps=(0.0, 0.0), offset=0.5, name=None, min_max_aspect_ratios_order=False):
    """(boxes, variances) of the places of a map."""
    attrs = {"min_sizes": _floats(min_sizes), "aspect_ratios": _floats(aspect_ratios), "variances": _floats(variance),
             "flip": flip, "clip": clip, "step_w": float(steps[0]), "step_h": float(steps[1]), "offset": float(offset),
             "min_max_aspect_ratios_order": min_max_aspect_ratios_order}
    if max_sizes:
        attrs["max_sizes"] = _floats(max_sizes)
    return one_op("prior_box", {"Input": input, "Image": image}, attrs, "Boxes", "Variances", name=name)


def density_prior_box(input, image, densities=None, fixed_sizes=None, fixed_ratios=None, variance=(0.1, 0.1, 0.2, 0.2),
                      clip=False, steps=(0.0, 0.0), offset=0.5, flatten_to_2d=False, name=None):
    """(boxes, variances), several a place."""
    return one_op("density_prior_box", {"Input": input, "Image": image},
                  {"densities": list(densities), "fixed_sizes": _floats(fixed_sizes), "fixed_ratios": _floats(fixed_ratios),
                   "variances": _floats(variance), "clip": clip, "step_w": float(steps[0]), "step_h": float(steps[1]),
                   "offset": float(offset), "flatten_to_2d": flatten_to_2d}, "Boxes", "Variances", name=name)


def anchor_generator(input, anchor_sizes=None, aspect_ratios=None, variance=(0.1, 0.1, 0.2, 0.2), stride=None, offset=0.5,
                     name=None):
    """(anchors, variances) of the places of a map."""
    return one_op("anchor_generator", {"Input": input},
                  {"anchor_sizes": _floats(anchor_sizes), "aspect_ratios": _floats(aspect_ratios),
                   "variances": _floats(variance), "stride": _floats(stride), "offset": float(offset)}, "Anchors",
                  "Variances", name=name)


def box_coder(prior_box, prior_box_var, target_box, code_type="encode_center_size", box_normalized=True, name=None, axis=0):
    """Boxes as offsets from prior ones, or back."""
    inputs, attrs = {"PriorBox": prior_box, "TargetBox": target_box}, {"code_type": code_type, "axis": axis,
                                                                       "box_normalized": box_normalized}
    if isinstance(prior_box_var, (list, tuple)):
        attrs["variance"] = _floats(prior_box_var)
    else:
        inputs["PriorBoxVar"] = prior_box_var
    return one_op("box_coder", inputs, attrs, "OutputBox", name=name)


def box_clip(input, im_info, name=None):
    """Boxes cut at the image's border."""
    return one_op("box_clip", {"Input": input, "ImInfo": im_info}, {}, "Output", name=name)


def box_decoder_and_assign(prior_box, prior_box_var, target_box, box_score, box_clip, name=None):
    """(decoded boxes, the box of the best class)."""
    return one_op("box_decoder_and_assign", {"PriorBox": prior_box, "PriorBoxVar": prior_box_var, "TargetBox": target_box,
                                             "BoxScore": box_score}, {"box_clip": box_clip}, "DecodeBox", "OutputAssignBox",
                  name=name)


def iou_similarity(x, y, box_normalized=True, name=None):
    """The intersection over union of all pairs."""
    return one_op("iou_similarity", {"X": x, "Y": y}, {"box_normalized": box_normalized}, "Out", name=name)


def bipartite_match(dist_matrix, match_type=None, dist_threshold=None, name=None):
    """(matched rows of each column, their distances)."""
    return one_op("bipartite_match", {"DistMat": dist_matrix}, {"match_type": match_type, "dist_threshold": dist_threshold},
                  "ColToRowMatchIndices", "ColToRowMatchDist", name=name)


def target_assign(input, matched_indices, negative_indices=None, mismatch_value=None, name=None):
    """(targets, weights) by matched indices."""
    return one_op("target_assign", {"X": input, "MatchIndices": matched_indices, "NegIndices": negative_indices},
                  {"mismatch_value": mismatch_value or 0}, "Out", "OutWeight", name=name)


def polygon_box_transform(input, name=None):
    """Offsets as coordinates."""
    return one_op("polygon_box_transform", {"Input": input}, {}, "Output", name=name)


def multiclass_nms(bboxes, scores, score_threshold, nms_top_k, keep_top_k, nms_threshold=0.3, normalized=True, nms_eta=1.0,
                   background_label=0, name=None):
    """The boxes that remain, [label, score, box] each."""
    return one_op("multiclass_nms", {"BBoxes": bboxes, "Scores": scores},
                  {"background_label": background_label, "score_threshold": float(score_threshold), "nms_top_k": nms_top_k,
                   "nms_threshold": float(nms_threshold), "keep_top_k": keep_top_k, "nms_eta": float(nms_eta),
                   "normalized": normalized}, "Out", name=name)


def detection_output(loc, scores, prior_box, prior_box_var, background_label=0, nms_threshold=0.3, nms_top_k=400,
                     keep_top_k=200, score_threshold=0.01, nms_eta=1.0, return_index=False):
    """SSD's boxes: loc decoded from prior boxes, softmax of scores, and what multiclass_nms keeps; with return_index also
    the places of those boxes."""
    from ...nn.functional import softmax
    boxes = box_coder(prior_box, prior_box_var, loc, "decode_center_size")
    chances = _core.transpose(softmax(scores), [0, 2, 1])
    chances.stop_gradient = True
    attrs = {"background_label": background_label, "score_threshold": float(score_threshold), "nms_top_k": nms_top_k,
             "nms_threshold": float(nms_threshold), "keep_top_k": keep_top_k, "nms_eta": float(nms_eta), "normalized": True}
    inputs = {"BBoxes": boxes, "Scores": chances}
    return one_op("multiclass_nms2" if return_index else "multiclass_nms", inputs, attrs, "Out",
                  *(["Index"] if return_index else []))


def matrix_nms(bboxes, scores, score_threshold, post_threshold, nms_top_k, keep_top_k, use_gaussian=False,
               gaussian_sigma=2.0, background_label=0, normalized=True, return_index=False, name=None):
    """The boxes that remain, scores lowered by overlap."""
    out, index = one_op("matrix_nms", {"BBoxes": bboxes, "Scores": scores},
                        {"background_label": background_label, "score_threshold": float(score_threshold),
                         "post_threshold": float(post_threshold), "nms_top_k": nms_top_k, "keep_top_k": keep_top_k,
                         "gaussian_sigma": float(gaussian_sigma), "use_gaussian": use_gaussian, "normalized": normalized},
                        "Out", "Index", name=name)
    return (out, index) if return_index else out


def roi_pool(input, rois, pooled_height=1, pooled_width=1, spatial_scale=1.0, rois_num=None, name=None):
    """The largest of each part of regions."""
    return one_op("roi_pool", {"X": input, "ROIs": rois, "RoisNum": rois_num},
                  {"pooled_height": pooled_height, "pooled_width": pooled_width, "spatial_scale": float(spatial_scale)}, "Out",
                  "~Argmax", name=name)


def roi_align(input, rois, pooled_height=1, pooled_width=1, spatial_scale=1.0, sampling_ratio=-1, rois_num=None,
              name=None):
    """The mean of each part of regions, read between pixels."""
    return one_op("roi_align", {"X": input, "ROIs": rois, "RoisNum": rois_num},
                  {"pooled_height": pooled_height, "pooled_width": pooled_width, "spatial_scale": float(spatial_scale),
                   "sampling_ratio": sampling_ratio}, "Out", name=name)


def psroi_pool(input, rois, output_channels, spatial_scale, pooled_height, pooled_width, name=None):
    """The mean of each part of regions, from a channel of its own."""
    return one_op("psroi_pool", {"X": input, "ROIs": rois},
                  {"output_channels": output_channels, "spatial_scale": float(spatial_scale),
                   "pooled_height": pooled_height, "pooled_width": pooled_width}, "Out", name=name)


def prroi_pool(input, rois, spatial_scale=1.0, pooled_height=1, pooled_width=1, batch_roi_nums=None, name=None):
    """The exact integral of each part of regions."""
    for what, one in (("input", input), ("rois", rois)):
        check_variable_and_dtype(one, what, ["float32"], "prroi_pool")
    for what, value, kind in (("spatial_scale", spatial_scale, float), ("pooled_height", pooled_height, int),
                              ("pooled_width", pooled_width, int)):
        check_type(value, what, kind, "prroi_pool")
    return one_op("prroi_pool", {"X": input, "ROIs": rois, "BatchRoINums": batch_roi_nums},
                  {"spatial_scale": float(spatial_scale), "pooled_height": pooled_height, "pooled_width": pooled_width}, "Out",
                  name=name)


def sigmoid_focal_loss(x, label, fg_num, gamma=2.0, alpha=0.25):
    """The focal loss of classes counted from 1."""
    return one_op("sigmoid_focal_loss", {"X": x, "Label": label, "FgNum": fg_num},
                  {"gamma": float(gamma), "alpha": float(alpha)}, "Out")


def yolo_box(x, img_size, anchors, class_num, conf_thresh, downsample_ratio, clip_bbox=True, name=None, scale_x_y=1.0):
    """(boxes, scores) of YOLOv3's outputs."""
    return one_op("yolo_box", {"X": x, "ImgSize": img_size},
                  {"anchors": list(anchors), "class_num": class_num, "conf_thresh": float(conf_thresh),
                   "downsample_ratio": downsample_ratio, "clip_bbox": clip_bbox, "scale_x_y": float(scale_x_y)}, "Boxes",
                  "Scores", name=name)


def yolov3_loss(x, gt_box, gt_label, anchors, anchor_mask, class_num, ignore_thresh, downsample_ratio, gt_score=None,
                use_label_smooth=True, name=None, scale_x_y=1.0):
    """The loss of YOLOv3."""
    from ...vision.ops import yolo_loss
    return yolo_loss(x, gt_box, gt_label, list(anchors), list(anchor_mask), class_num, ignore_thresh, downsample_ratio,
                     gt_score, use_label_smooth, None, scale_x_y)


def spread_over_levels(rois, min_level, max_level, refer_level, refer_scale, pixel_offset, rois_num):
    """Outputs of the operator: boxes by level, indices that restore their order, with rois_num their numbers by level."""
    levels = max_level - min_level + 1
    made = ["MultiFpnRois", "RestoreIndex"] + (["MultiLevelRoIsNum"] if rois_num is not None else [])
    return one_op("distribute_fpn_proposals", {"FpnRois": rois, "RoisNum": rois_num},
                  {"min_level": min_level, "max_level": max_level, "refer_level": refer_level, "refer_scale": refer_scale,
                   "pixel_offset": pixel_offset}, *made,
                  counts={slot: levels for slot in ("MultiFpnRois", "MultiLevelRoIsNum") if slot in made})


def distribute_fpn_proposals(fpn_rois, min_level, max_level, refer_level, refer_scale, rois_num=None, name=None):
    """(regions of each level, how to put them back), and with rois_num their numbers by level."""
    return spread_over_levels(fpn_rois, min_level, max_level, refer_level, refer_scale, True, rois_num)


def collect_fpn_proposals(multi_rois, multi_scores, min_level, max_level, post_nms_top_n, rois_num_per_level=None,
                          name=None):
    """The best regions of all levels, and with rois_num_per_level how many belong to each image."""
    return one_op("collect_fpn_proposals", {"MultiLevelRois": multi_rois[:max_level - min_level + 1],
                                            "MultiLevelScores": multi_scores[:max_level - min_level + 1],
                                            "MultiLevelRoIsNum": rois_num_per_level}, {"post_nms_topN": post_nms_top_n},
                  "FpnRois", *(["RoisNum"] if rois_num_per_level is not None else []), name=name)


def generate_proposals(scores, bbox_deltas, im_info, anchors, variances, pre_nms_top_n=6000, post_nms_top_n=1000,
                       nms_thresh=0.5, min_size=0.1, eta=1.0, return_rois_num=False, name=None):
    """(regions, their scores) of a proposal network, and with return_rois_num how many belong to each image."""
    return one_op("generate_proposals", {"Scores": scores, "BboxDeltas": bbox_deltas, "ImInfo": im_info, "Anchors": anchors,
                                         "Variances": variances},
                  {"pre_nms_topN": pre_nms_top_n, "post_nms_topN": post_nms_top_n, "nms_thresh": float(nms_thresh),
                   "min_size": float(min_size), "eta": float(eta)}, "RpnRois", "RpnRoiProbs",
                  *(["RpnRoisNum"] if return_rois_num else []), name=name)
