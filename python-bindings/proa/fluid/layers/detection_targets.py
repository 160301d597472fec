"""Labels for the training of detectors, and their last step: functions of fluid.layers.detection."""
from ... import _core
from ...static.variable import Variable
from ..data_feeder import check_type, check_variable_and_dtype
from ..layer_helper import LayerHelper, one_op

__all__ = ["generate_mask_labels", "generate_proposal_labels", "locality_aware_nms", "retinanet_detection_output",
           "retinanet_target_assign", "rpn_target_assign"]


def _floating(op, **variables):
    for name, one in variables.items():
        check_variable_and_dtype(one, name, ["float32", "float64"], op)


def _integers(op, **variables):
    for name, one in variables.items():
        check_variable_and_dtype(one, name, ["int32"], op)


def _rows_of(x, width, index):
    """The rows of x, width numbers each, that an index names."""
    return _core.gather(_core.reshape(x, [-1, width]), index, 0)


# Numbers a row of each result, 0 for none: a vector. The others have as many as `width` says.
_ROWS = {"LocationIndex": 0, "ScoreIndex": 0, "MaxOverlapWithGT": 0, "TargetLabel": 1, "ForegroundNumber": 1, "LabelsInt32": 1,
         "RoiHasMaskInt32": 1, "TargetBBox": 4, "BBoxInsideWeight": 4, "Rois": 4, "MaskRois": 4}
_WHOLE = frozenset(("LocationIndex", "ScoreIndex", "TargetLabel", "ForegroundNumber", "LabelsInt32", "RoiHasMaskInt32", "MaskInt32"))


def _labels(op, inputs, attrs, *outputs, like, width=0):
    """Results of an operator of labels, none of which has a gradient: int32, or of a variable's dtype."""
    helper, made = LayerHelper(op), {}
    for slot in outputs:
        numbers = _ROWS.get(slot, width)
        made[slot] = [helper.create_variable_for_type_inference("int32" if slot in _WHOLE else like.dtype,
                                                                shape=[-1, numbers] if numbers else [-1])]
    helper.append_op(op, {slot: [one] for slot, one in inputs.items() if one is not None}, made, attrs)
    for one, in made.values():
        one.stop_gradient = True
    return tuple(one for one, in made.values())


def _assigned(op, inputs, attrs, *more):
    """Results of an assignment of anchors."""
    return _labels(op, inputs, attrs, "LocationIndex", "ScoreIndex", "TargetLabel", "TargetBBox", "BBoxInsideWeight", *more,
                   like=inputs["Anchor"])


def rpn_target_assign(bbox_pred, cls_logits, anchor_box, anchor_var, gt_boxes, is_crowd, im_info, rpn_batch_size_per_im=256,
                      rpn_straddle_thresh=0.0, rpn_fg_fraction=0.5, rpn_positive_overlap=0.7, rpn_negative_overlap=0.3,
                      use_random=True):
    """(logits, offsets) that a region proposal network is to be trained on, and (labels, offsets, weights) for them."""
    op = "rpn_target_assign"
    _floating(op, bbox_pred=bbox_pred, cls_logits=cls_logits, anchor_box=anchor_box, anchor_var=anchor_var, gt_boxes=gt_boxes,
              im_info=im_info)
    _integers(op, is_crowd=is_crowd)
    located, scored, label, target, weight = _assigned(
        op, {"Anchor": anchor_box, "GtBoxes": gt_boxes, "IsCrowd": is_crowd, "ImInfo": im_info},
        {"rpn_batch_size_per_im": rpn_batch_size_per_im, "rpn_straddle_thresh": float(rpn_straddle_thresh),
         "rpn_positive_overlap": rpn_positive_overlap, "rpn_negative_overlap": rpn_negative_overlap,
         "rpn_fg_fraction": rpn_fg_fraction, "use_random": use_random})
    return _rows_of(cls_logits, 1, scored), _rows_of(bbox_pred, 4, located), label, target, weight


def retinanet_target_assign(bbox_pred, cls_logits, anchor_box, anchor_var, gt_boxes, gt_labels, is_crowd, im_info,
                            num_classes=1, positive_overlap=0.5, negative_overlap=0.4):
    """(scores, offsets) that a RetinaNet is to be trained on, and (labels, offsets, weights, numbers of objects) for them."""
    op = "retinanet_target_assign"
    _floating(op, bbox_pred=bbox_pred, cls_logits=cls_logits, anchor_box=anchor_box, anchor_var=anchor_var, gt_boxes=gt_boxes,
              im_info=im_info)
    _integers(op, gt_labels=gt_labels, is_crowd=is_crowd)
    located, scored, label, target, weight, number = _assigned(
        op, {"Anchor": anchor_box, "GtBoxes": gt_boxes, "GtLabels": gt_labels, "IsCrowd": is_crowd, "ImInfo": im_info},
        {"positive_overlap": positive_overlap, "negative_overlap": negative_overlap}, "ForegroundNumber")
    return _rows_of(cls_logits, num_classes, scored), _rows_of(bbox_pred, 4, located), label, target, weight, number


def generate_proposal_labels(rpn_rois, gt_classes, is_crowd, gt_boxes, im_info, batch_size_per_im=256, fg_fraction=0.25,
                             fg_thresh=0.25, bg_thresh_hi=0.5, bg_thresh_lo=0.0, bbox_reg_weights=(0.1, 0.1, 0.2, 0.2),
                             class_nums=None, use_random=True, is_cls_agnostic=False, is_cascade_rcnn=False, max_overlap=None,
                             return_max_overlap=False):
    """(regions, labels, offsets, weights inside, weights outside) of a batch of proposals and true boxes, and with
    return_max_overlap their overlaps with true ones."""
    op = "generate_proposal_labels"
    _floating(op, rpn_rois=rpn_rois, gt_boxes=gt_boxes, im_info=im_info)
    _integers(op, gt_classes=gt_classes, is_crowd=is_crowd)
    if is_cascade_rcnn and max_overlap is None:
        raise AssertionError("Input max_overlap of generate_proposal_labels should not be None if is_cascade_rcnn is True")
    found = _labels(op, {"RpnRois": rpn_rois, "GtClasses": gt_classes, "IsCrowd": is_crowd, "GtBoxes": gt_boxes, "ImInfo": im_info,
                         "MaxOverlap": max_overlap},
                    {"batch_size_per_im": batch_size_per_im, "fg_fraction": fg_fraction, "fg_thresh": fg_thresh,
                     "bg_thresh_hi": bg_thresh_hi, "bg_thresh_lo": bg_thresh_lo, "bbox_reg_weights": list(bbox_reg_weights),
                     "class_nums": class_nums, "use_random": use_random, "is_cls_agnostic": is_cls_agnostic,
                     "is_cascade_rcnn": is_cascade_rcnn},
                    "Rois", "LabelsInt32", "BboxTargets", "BboxInsideWeights", "BboxOutsideWeights", "MaxOverlapWithGT", like=rpn_rois,
                    width=4 * (2 if is_cls_agnostic else class_nums))
    return found if return_max_overlap else found[:-1]


def generate_mask_labels(im_info, gt_classes, is_crowd, gt_segms, rois, labels_int32, num_classes, resolution):
    """(regions with objects, their rows, masks of the objects in them)."""
    given = {"ImInfo": im_info, "GtClasses": gt_classes, "IsCrowd": is_crowd, "GtSegms": gt_segms, "Rois": rois,
             "LabelsInt32": labels_int32}
    return _labels("generate_mask_labels", given, {"num_classes": num_classes, "resolution": resolution}, "MaskRois",
                   "RoiHasMaskInt32", "MaskInt32", like=rois, width=num_classes * resolution ** 2)


def retinanet_detection_output(bboxes, scores, anchors, im_info, score_threshold=0.05, nms_top_k=1000, keep_top_k=100,
                               nms_threshold=0.3, nms_eta=1.0):
    """The boxes that remain of all levels of a RetinaNet, [label, score, box] each."""
    op = "retinanet_detection_output"
    for name, several in (("bboxes", bboxes), ("scores", scores), ("anchors", anchors)):
        check_type(several, name, (list, tuple), op)
        for i, one in enumerate(several):
            check_variable_and_dtype(one, f"{name}[{i}]", ["float32", "float64"], op)
    check_variable_and_dtype(im_info, "im_info", ["float32", "float64"], op)
    out = one_op(op, {"BBoxes": list(bboxes), "Scores": list(scores), "Anchors": list(anchors), "ImInfo": im_info},
                 {"score_threshold": float(score_threshold), "nms_top_k": nms_top_k, "keep_top_k": keep_top_k,
                  "nms_threshold": float(nms_threshold), "nms_eta": float(nms_eta)}, "Out")
    out.stop_gradient = True
    return out


def locality_aware_nms(bboxes, scores, score_threshold, nms_top_k, keep_top_k, nms_threshold=0.3, normalized=True, nms_eta=1.0,
                       background_label=-1, name=None):
    """The boxes that remain, [label, score, box] each, of neighbours that were merged by their scores."""
    op = "locality_aware_nms"
    _floating(op, bboxes=bboxes, scores=scores)
    for what, value, kind in (("background_label", background_label, int), ("score_threshold", score_threshold, float),
                              ("nms_top_k", nms_top_k, int), ("nms_eta", nms_eta, float), ("nms_threshold", nms_threshold, float),
                              ("keep_top_k", keep_top_k, int), ("normalized", normalized, bool)):
        check_type(value, what, kind, op)
    if len(scores.shape) != 3 and isinstance(scores, Variable):
        raise ValueError(f"dim size of scores must be 3, but received {len(scores.shape)}")
    if len(bboxes.shape) != 3 and isinstance(bboxes, Variable):
        raise ValueError(f"dim size of bboxes must be 3, but received {len(bboxes.shape)}")
    out = one_op(op, {"BBoxes": bboxes, "Scores": scores},
                 {"background_label": background_label, "score_threshold": score_threshold, "nms_top_k": nms_top_k,
                  "nms_threshold": nms_threshold, "nms_eta": nms_eta, "keep_top_k": keep_top_k, "normalized": normalized},
                 "Out", name=name)
    out.stop_gradient = True
    return out
