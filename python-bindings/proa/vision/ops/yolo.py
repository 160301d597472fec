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


def _entropy(x, label):
    """Cross-entropy of sigmoid(x) and label."""
    return x.clip(min=0) - x * label + (-x.abs()).exp().log1p()


def _overlaps(a, b):
    """IoU of boxes, each a tuple of tensors (x and y of the centre, width, height)."""
    low, high = [], []
    for centre, side in ((0, 2), (1, 3)):
        low.append(_core.maximum(a[centre] - a[side] / 2, b[centre] - b[side] / 2))
        high.append(_core.minimum(a[centre] + a[side] / 2, b[centre] + b[side] / 2))
    sides = [(h - l).clip(min=0) for l, h in zip(low, high)]
    both = sides[0] * sides[1]
    return both / (a[2] * a[3] + b[2] * b[3] - both)


def _row(values, dtype, shape):
    return _core.cast(_core.to_tensor([float(v) for v in values]).reshape(shape), dtype)


def _ignored(parts, boxes, valid, used, input_size, ignore_thresh, scale):
    """[n, anchors, h, w]: whether a prediction overlaps a true box by more than ignore_thresh."""
    _, count, _, height, width = parts.declared_shape
    dtype, shift = parts.dtype, 0.5 * (scale - 1.0)
    columns, rows = _row(range(width), dtype, [width]), _row(range(height), dtype, [height, 1])
    made = [(parts[:, :, 0].sigmoid() * scale - shift + columns) / width,
            (parts[:, :, 1].sigmoid() * scale - shift + rows) / height,
            *(parts[:, :, 2 + i].exp() * _row([one[i] / input_size for one in used], dtype, [count, 1, 1]) for i in (0, 1))]
    spread = [one.unsqueeze([1, 2, 3]) for one in boxes]  # [n, 1, 1, 1, boxes]
    found = _overlaps([one.unsqueeze(-1) for one in made], spread)
    found = _core.where(valid.unsqueeze([1, 2, 3]), found, _core.full_like(found, 0.0))
    return found.max(-1) > ignore_thresh


def _placed(boxes, valid, pairs, anchor_mask, height, width, input_size):
    """Of each true box: (the cell's number among anchors · h · w, h · w cells an anchor, or one more than there are if none is
    to predict it; row; column; width and height of its anchor)."""
    x, y, w, h = boxes
    zero, dtype = _core.full_like(x, 0.0), x.dtype
    shapes = [_row([one[i] / input_size for one in pairs], dtype, [len(pairs)]) for i in (0, 1)]
    origin = _core.full_like(shapes[0], 0.0)
    best = _core.argmax(_overlaps([zero.unsqueeze(-1), zero.unsqueeze(-1), w.unsqueeze(-1), h.unsqueeze(-1)],
                                  [origin, origin, *shapes]), -1)
    order = [float(list(anchor_mask).index(k)) if k in anchor_mask else -1.0 for k in range(len(pairs))]
    mine, wide, high = (_core.gather(_row(values, dtype, [len(pairs)]), best.reshape([-1]), 0).reshape(best.shape)
                        for values in (order, [one[0] for one in pairs], [one[1] for one in pairs]))
    row, column = (y * height).floor(), (x * width).floor()
    inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)  # a middle may lie outside of the image
    cell = (mine * height + row) * width + column
    none = _core.full_like(cell, float(len(anchor_mask) * height * width))
    return _core.where(valid & (mine >= 0) & inside, cell, none).astype("int64"), row, column, wide, high


@asks("eager:anchors:list,tuple!InvalidArgument eager:anchor_mask:list,tuple!InvalidArgument")
def yolo_loss(x, gt_box, gt_label, anchors, anchor_mask, class_num, ignore_thresh, downsample_ratio, gt_score=None,
              use_label_smooth=True, name=None, scale_x_y=1.0):
    """The loss [n] of x [n, len(anchor_mask)·(5 + class_num), h, w] for true boxes gt_box [n, b, 4] (centre and sides, as
    parts of the image), gt_label [n, b] and gt_score [n, b]. Boxes without area count as absent."""
    pairs = _anchors("yolo_loss", anchors)
    _, channels, height, width = x.declared_shape
    count, per = len(anchor_mask), 5 + class_num
    if min(channels, height, width) < 0:
        raise ValueError(f"yolo_loss: channels, height and width of x must be known, got {list(x.declared_shape)}")
    if channels != count * per:
        raise ValueError(f"yolo_loss: x must have {count * per} channels ({count} anchors of {per}), got {channels}")
    cells, input_size, dtype = count * height * width, downsample_ratio * height, x.dtype
    parts = x.reshape([-1, count, per, height, width])
    boxes = [gt_box[..., i].astype(dtype) for i in range(4)]
    valid = (boxes[2] >= 1e-6) & (boxes[3] >= 1e-6)
    score = _core.full_like(boxes[0], 1.0) if gt_score is None else gt_score.astype(dtype)
    ignored = _ignored(parts.detach(), boxes, valid, [pairs[k] for k in anchor_mask], input_size, ignore_thresh, scale_x_y)
    cell, row, column, wide, high = _placed(boxes, valid, pairs, anchor_mask, height, width, input_size)
    held = cell < cells
    # Objectness: −1 where it is ignored, the score of the last box that a cell predicts, else 0.
    flat = _core.where(ignored, _core.full_like(parts[:, :, 4], -1.0), _core.full_like(parts[:, :, 4], 0.0)).reshape([-1, cells])
    mask = _core.put_along_axis(_core.concat([flat, flat[:, :1]], 1), cell, score, 1)[:, :cells]
    sure = parts[:, :, 4].reshape([-1, cells])
    positive = mask * (mask > 1e-5).astype(dtype)
    negative = ((mask <= 1e-5) & (mask > -0.5)).astype(dtype)
    loss = (_entropy(sure, 1.0) * positive + _entropy(sure, 0.0) * negative).sum(1)
    # Each box against the cell that is to predict it.
    taken = _core.where(held, cell, _core.full_like(cell, 0))
    rows = parts.transpose([0, 1, 3, 4, 2]).reshape([-1, cells, per])
    found = _core.take_along_axis(rows, taken.unsqueeze(-1).expand([-1, -1, per]), 1)
    one = _core.full_like(score, 1.0)
    wanted = [boxes[0] * width - column, boxes[1] * height - row,
              *((_core.where(held, side, one) * input_size / anchor).log() for side, anchor in ((boxes[2], wide), (boxes[3], high)))]
    place = (_entropy(found[..., 0], wanted[0]) + _entropy(found[..., 1], wanted[1]) + (found[..., 2] - wanted[2]).abs()
             + (found[..., 3] - wanted[3]).abs())
    smooth = min(1.0 / class_num, 1.0 / 40) if use_label_smooth else 0.0
    kind = _core.where(held, gt_label.astype("int64"), _core.full_like(taken, 0))
    hot = _core.one_hot(kind, class_num).astype(dtype) * (1.0 - 2 * smooth) + smooth
    each = (place * (2.0 - boxes[2] * boxes[3]) + _entropy(found[..., 5:], hot).sum(-1)) * score
    return loss + _core.where(held, each, _core.full_like(each, 0.0)).sum(1)
