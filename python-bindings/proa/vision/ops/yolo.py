"""YOLOv3 (Redmon and Farhadi, 2018): boxes and scores of its feature maps, and its loss."""
from ..._asks import asks
from ... import _core


def _anchors(who, anchors):
    if len(anchors) < 2 or len(anchors) % 2:
        raise ValueError(f"{who}: anchors must be pairs of width and height, got {list(anchors)}")
    return list(zip(anchors[0::2], anchors[1::2]))


def yolo_box(x, img_size, anchors, class_num, conf_thresh, downsample_ratio, clip_bbox=True, name=None, scale_x_y=1.0,
             iou_aware=False, iou_aware_factor=0.5):
    """(boxes [n, anchors·h·w, 4], scores [n, anchors·h·w, class_num]) of x [n, anchors·(5 + class_num), h, w] in pixels of
    images of img_size [n, 2] (height, width); zeros where the confidence lies below conf_thresh."""
    return _core.yolo_box(x, img_size, list(anchors), class_num, conf_thresh, downsample_ratio, clip_bbox, scale_x_y,
                          iou_aware, iou_aware_factor)


@asks("eager:anchors:list,tuple!InvalidArgument eager:anchor_mask:list,tuple!InvalidArgument")
def yolo_loss(x, gt_box, gt_label, anchors, anchor_mask, class_num, ignore_thresh, downsample_ratio, gt_score=None,
              use_label_smooth=True, name=None, scale_x_y=1.0):
    """The loss [n] of x [n, len(anchor_mask)·(5 + class_num), h, w] for true boxes gt_box [n, b, 4] (centre and sides, as
    parts of the image), gt_label [n, b] and gt_score [n, b]. Boxes without area count as absent."""
    _anchors("yolo_loss", anchors)
    if gt_label.dtype not in (_core.int32, _core.int64):
        gt_label = gt_label.astype("int32")
    gt_box, gt_score = (one if one is None or one.dtype == x.dtype else one.astype(x.dtype) for one in (gt_box, gt_score))
    loss, _, _ = _core.yolov3_loss(x, gt_box, gt_label, gt_score, list(anchors), list(anchor_mask), class_num, ignore_thresh,
                                   downsample_ratio, use_label_smooth, scale_x_y)
    return loss
