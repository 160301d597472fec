"""Boxes: prior boxes, offsets from them, and non-maximum suppression."""
from ... import _core
from ..._asks import asks


def _best(scores):
    return _core.argsort(scores, descending=True)


def nms(boxes, iou_threshold=0.3, scores=None, category_idxs=None, categories=None, top_k=None):
    """Numbers of the boxes [n, 4] (x1, y1, x2, y2) that stay, best first. Without scores they are in order already;
    with category_idxs and categories boxes of different categories do not suppress each other, and top_k of
    them stay (without categories top_k changes nothing, as in Paddle)."""
    if scores is None:
        return _core.nms(boxes, iou_threshold)

    def left(order):
        return _core.gather(order, _core.nms(_core.gather(boxes, order), iou_threshold))
    if category_idxs is None:
        return left(_best(scores))
    if categories is None:
        raise AssertionError("nms: with category_idxs, categories must list the categories")
    found = []
    for category in categories:
        mine = _core.squeeze(_core.nonzero(category_idxs == category), [1])
        found.append(left(_core.gather(mine, _best(_core.gather(scores, mine)))))
    kept = _core.concat(found) if found else _core.full([0], 0, _core.int64)
    kept = _core.gather(kept, _best(_core.gather(scores, kept)))
    return kept if top_k is None else kept[:top_k]


@asks("steps:list,tuple!ValueError")
def prior_box(input, image, min_sizes, max_sizes=None, aspect_ratios=(1.0,), variance=(0.1, 0.1, 0.2, 0.2), flip=False,
              clip=False, steps=(0.0, 0.0), offset=0.5, min_max_aspect_ratios_order=False, name=None):
    """SSD's prior boxes round the cells of input [N, C, H, W] as parts of image, and their variances: both [H, W, P, 4]."""
    def floats(value):
        return [float(v) for v in value] if isinstance(value, (list, tuple)) else [float(value)]
    if len(steps) != 2:
        raise ValueError(f"prior_box: steps must be two numbers (across, down), got {steps!r}")
    return _core.prior_box(input, image, floats(min_sizes), floats(max_sizes or []), floats(aspect_ratios), floats(variance),
                           flip, clip, float(steps[0]), float(steps[1]), offset, min_max_aspect_ratios_order)


def box_coder(prior_box, prior_box_var, target_box, code_type="encode_center_size", box_normalized=True, axis=0, name=None):
    """Boxes as offsets from prior boxes, or back: the centre's distance and the sides' logarithm, in units of the prior's.
    prior_box_var: a tensor with four numbers a prior, or a list of four for all."""
    tensor = isinstance(prior_box_var, _core.Tensor)
    if not tensor and not isinstance(prior_box_var, (list, tuple)):
        raise TypeError(f"box_coder: prior_box_var must be a tensor or a list, got {type(prior_box_var).__name__}")
    if not tensor and len(prior_box_var) != 4:
        raise AssertionError(f"box_coder: prior_box_var as a list must have 4 numbers, got {len(prior_box_var)}")
    numbers = [] if tensor else [float(v) for v in prior_box_var]
    return _core.box_coder(prior_box, prior_box_var if tensor else None, target_box, code_type, box_normalized, axis, numbers)
