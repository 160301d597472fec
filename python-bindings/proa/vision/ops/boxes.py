"""Non-maximum suppression of boxes, in NumPy."""
from ... import _core


def _suppressed(boxes, threshold):
    """The numbers of the boxes that no kept box before them overlaps by more than threshold."""
    import numpy as np
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    gone, kept = np.zeros(len(boxes), bool), []
    for i in range(len(boxes)):
        if gone[i]:
            continue
        kept.append(i)
        low, high = np.maximum(boxes[i, :2], boxes[i + 1:, :2]), np.minimum(boxes[i, 2:], boxes[i + 1:, 2:])
        both = np.prod(np.clip(high - low, 0, None), axis=1)
        with np.errstate(divide="ignore", invalid="ignore"):
            gone[i + 1:] |= both / (area[i] + area[i + 1:] - both) > threshold
    return np.array(kept, "int64")


def nms(boxes, iou_threshold=0.3, scores=None, category_idxs=None, categories=None, top_k=None):
    """Numbers of the boxes [n, 4] (x1, y1, x2, y2) that stay, best first. Without scores they are in order already;
    with category_idxs and categories boxes of different categories do not suppress each other, and top_k of
    them stay (without categories top_k changes nothing, as in Paddle)."""
    import numpy as np
    values = boxes.numpy()
    if scores is None:
        return _core.to_tensor(_suppressed(values, iou_threshold))
    points = scores.numpy()
    if category_idxs is None:
        order = np.argsort(-points, kind="stable")
        kept = order[_suppressed(values[order], iou_threshold)]
        return _core.to_tensor(kept)
    if categories is None:
        raise AssertionError("nms: with category_idxs, categories must list the categories")
    which, found = category_idxs.numpy(), []
    for category in categories:
        mine = np.nonzero(which == category)[0]
        mine = mine[np.argsort(-points[mine], kind="stable")]
        found.append(mine[_suppressed(values[mine], iou_threshold)])
    kept = np.concatenate(found) if found else np.zeros(0, "int64")
    kept = kept[np.argsort(-points[kept], kind="stable")]
    return _core.to_tensor(kept if top_k is None else kept[:top_k])
