"""YOLOv3 (Redmon and Farhadi, 2018): boxes and scores of its feature maps, and its loss."""
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


def _entropy(x, label):
    """Cross-entropy of sigmoid(x) and label."""
    return x.clip(min=0) - x * label + (-x.abs()).exp().log1p()


def _overlaps(a, b):
    """IoU of boxes [..., 4] (centre and sides)."""
    import numpy as np
    low = np.maximum(a[..., :2] - a[..., 2:] / 2, b[..., :2] - b[..., 2:] / 2)
    high = np.minimum(a[..., :2] + a[..., 2:] / 2, b[..., :2] + b[..., 2:] / 2)
    sides = high - low
    both = np.where((sides < 0).any(-1), 0.0, sides[..., 0] * sides[..., 1])
    return both / (a[..., 2] * a[..., 3] + b[..., 2] * b[..., 3] - both)


def _objectness(parts, boxes, valid, pairs, input_size, ignore_thresh, scale):
    """[n, anchors, h, w]: −1 where a prediction overlaps a true box by more than ignore_thresh, else 0."""
    import numpy as np
    n, count, _, height, width = parts.shape
    p = parts[:, :, :4].astype("float64")

    def squash(v):
        return 1 / (1 + np.exp(-v)) * scale - 0.5 * (scale - 1.0)
    made = np.stack([(np.arange(width) + squash(p[:, :, 0])) / width,
                     (np.arange(height)[:, None] + squash(p[:, :, 1])) / height,
                     np.exp(p[:, :, 2]) * np.array([a for a, _ in pairs])[:, None, None] / input_size,
                     np.exp(p[:, :, 3]) * np.array([b for _, b in pairs])[:, None, None] / input_size], -1)
    mask = np.zeros([n, count, height, width])
    for i in range(n):
        mine = boxes[i][valid[i]]
        if len(mine):
            mask[i][_overlaps(made[i][..., None, :], mine).max(-1) > ignore_thresh] = -1
    return mask


def yolo_loss(x, gt_box, gt_label, anchors, anchor_mask, class_num, ignore_thresh, downsample_ratio, gt_score=None,
              use_label_smooth=True, name=None, scale_x_y=1.0):
    """The loss [n] of x [n, len(anchor_mask)·(5 + class_num), h, w] for true boxes gt_box [n, b, 4] (centre and sides, as
    parts of the image), gt_label [n, b] and gt_score [n, b]. Boxes without area count as absent."""
    import numpy as np
    pairs = _anchors("yolo_loss", anchors)
    n, channels, height, width = x.shape
    count, per = len(anchor_mask), 5 + class_num
    if channels != count * per:
        raise ValueError(f"yolo_loss: x must have {count * per} channels ({count} anchors of {per}), got {channels}")
    parts = x.reshape([n, count, per, height, width])
    boxes, labels = gt_box.numpy().astype("float64"), gt_label.numpy()
    scores = np.ones(labels.shape) if gt_score is None else gt_score.numpy().astype("float64")
    valid = (boxes[..., 2] >= 1e-6) & (boxes[..., 3] >= 1e-6)
    input_size = downsample_ratio * height
    used = [pairs[k] for k in anchor_mask]
    mask = _objectness(parts.numpy(), boxes, valid, used, input_size, ignore_thresh, scale_x_y)
    shapes = np.concatenate([np.zeros([len(pairs), 2]), np.array(pairs) / input_size], 1)
    where, targets, weights, classes = [], [], [], []
    for i, b in np.argwhere(valid):
        box = boxes[i, b]
        best = int(_overlaps(np.array([0, 0, box[2], box[3]]), shapes).argmax())
        if best not in list(anchor_mask):
            continue
        k, row, column = list(anchor_mask).index(best), int(box[1] * height), int(box[0] * width)
        if not (0 <= row < height and 0 <= column < width):
            continue  # the box's middle lies outside of the image
        where.append((i, k, row, column))
        targets.append([box[0] * width - column, box[1] * height - row, np.log(box[2] * input_size / pairs[best][0]),
                        np.log(box[3] * input_size / pairs[best][1])])
        weights.append([(2.0 - box[2] * box[3]) * scores[i, b], scores[i, b]])
        classes.append(labels[i, b])
        mask[i, k, row, column] = scores[i, b]

    def tensor(values):
        return _core.to_tensor(np.asarray(values)).astype(x.dtype)
    sure = parts[:, :, 4]
    positive = tensor(np.where(mask > 1e-5, mask, 0))
    negative = tensor((mask <= 1e-5) & (mask > -0.5))
    loss = (_entropy(sure, 1.0) * positive + _entropy(sure, 0.0) * negative).sum([1, 2, 3])
    if not where:
        return loss
    smooth = min(1.0 / class_num, 1.0 / 40) if use_label_smooth else 0.0
    hot = np.full([len(where), class_num], smooth)
    hot[np.arange(len(where)), classes] = 1.0 - smooth
    found = parts.transpose([0, 1, 3, 4, 2]).gather_nd(_core.to_tensor(np.array(where, "int64")))
    goal, weight = tensor(targets), tensor(weights)
    place = _entropy(found[:, :2], goal[:, :2]).sum(1) + (found[:, 2:4] - goal[:, 2:]).abs().sum(1)
    each = place * weight[:, 0] + _entropy(found[:, 5:], tensor(hot)).sum(1) * weight[:, 1]
    owner = tensor(np.array([w[0] for w in where])[None] == np.arange(n)[:, None])
    return loss + (owner * each.unsqueeze(0)).sum(1)
