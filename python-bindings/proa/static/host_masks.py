"""Labels of masks (generate_mask_labels) for the training of Mask R-CNN, for the operator-by-operator interpreter in late.py."""
import numpy as np

from .. import _core
from .host_matching import described, refuse, spans
from .host_targets import boxes_of, flat_of, image_info, images_of

_FINER = 5  # borders are followed on a grid that is so much finer than pixels, as in COCO's tools


def _border(points):
    """Places of the finer grid along a polygon's sides, one a step."""
    corners = np.trunc(_FINER * points + 0.5).astype(int)
    across, down = [], []
    for begin, end in zip(corners, np.roll(corners, -1, 0)):
        steps = np.abs(end - begin)
        axis = 0 if steps[0] >= steps[1] else 1
        back = begin[axis] > end[axis]
        low, high = (end, begin) if back else (begin, end)
        count = steps[axis]
        slope = (high[1 - axis] - low[1 - axis]) / count if count else 0.0
        at = np.arange(count + 1)
        at = at[::-1] if back else at
        along, beside = low[axis] + at, np.trunc(low[1 - axis] + slope * at + 0.5).astype(int)
        across.append(along if axis == 0 else beside)
        down.append(beside if axis == 0 else along)
    return np.concatenate(across), np.concatenate(down)


def filled(points, size):
    """[size, size]: pixels inside of a polygon, by the parity of the border's crossings above them."""
    across, down = _border(points)
    moved = np.flatnonzero(across[1:] != across[:-1]) + 1
    before, here = across[moved - 1], across[moved]
    column = (np.where(here < before, here, here - 1) + 0.5) / _FINER - 0.5
    row = (np.minimum(down[moved], down[moved - 1]) + 0.5) / _FINER - 0.5
    held = (np.floor(column) == column) & (column >= 0) & (column <= size - 1)
    row = np.ceil(np.clip(row[held], 0, size)).astype(int)
    crossings = np.bincount(column[held].astype(int) * size + row, minlength=size * size + 1)[:size * size]
    return (crossings.cumsum() % 2).reshape(size, size).T


def _mask(polygons, box, size):
    """A true mask's polygons in a box, as size · size pixels."""
    sides = np.maximum(box[2:] - box[:2], 1)
    made = [filled(((points - box[:2]) * size / sides).astype("float32").astype("float64"), size) for points in polygons]
    return (sum(made) > 0).astype(int) if made else np.zeros((size, size), int)


def _overlaps(boxes, others):
    """Intersections over unions, 0 where boxes do not meet; sides count their last pixel."""
    both = np.minimum(boxes[:, None, 2:], others[None, :, 2:]) - np.maximum(boxes[:, None, :2], others[None, :, :2]) + 1
    areas = [(one[:, 2:] - one[:, :2] + 1).prod(-1) for one in (boxes, others)]
    both = np.where((both > 0).all(-1), both.prod(-1), 0)
    return both / (areas[0][:, None] + areas[1][None] - both)


def _image_masks(rois, labels, polygons, attrs):
    """(rows of rois with a mask, classes and masks [n, size²]); the first background one, if there are no objects."""
    size, inside = attrs["resolution"], np.flatnonzero(labels > 0)
    if not len(inside) or not polygons:
        rows = np.flatnonzero(labels == 0)[:1]
        return rows, np.zeros(len(rows), int), -np.ones((len(rows), size * size), int)
    around = np.array([[*np.concatenate(own).min(0), *np.concatenate(own).max(0)] for own in polygons])
    nearest = _overlaps(rois[inside], around).argmax(1)
    masks = [_mask(polygons[k], box, size).reshape(-1) for k, box in zip(nearest, rois[inside])]
    return inside, labels[inside], np.stack(masks)


def _polygons_of(given, objects):
    """The polygons of each true object, from three levels of sequences."""
    x = given["GtSegms"][0]
    if len(x._lod or []) != 3 or x.ndim != 2 or x.shape[1] != 2:
        raise refuse("generate_mask_labels", "GtSegms", f"{described(x)} with {len(x._lod or [])} levels of sequences",
                     "points [N, 2] with three: images, objects, polygons")
    points, (_, of_objects, of_polygons) = x.numpy(), x._lod
    found = [[points[a:b] for a, b in spans(of_polygons)[c:d] if b > a] for c, d in spans(of_objects)]
    if len(found) != objects or any(not own for own in found):
        raise refuse("generate_mask_labels", "GtSegms", f"polygons of {len(found)} objects", f"some each of {objects} in GtClasses")
    return found


def generate_mask_labels(given, outputs, attrs):
    """Of each image the regions with an object, and the object's mask in them: −1 in the planes of other classes."""
    op, size, classes = "generate_mask_labels", attrs["resolution"], attrs["num_classes"]
    rois = boxes_of(op, given, "Rois")
    images, owned = images_of(op, given, "Rois", "GtClasses")
    info, labels = image_info(op, given, len(images)), flat_of(op, given, "LabelsInt32", len(rois))
    kinds = given["GtClasses"][0].numpy().reshape(-1)
    crowd, polygons = flat_of(op, given, "IsCrowd", len(kinds)), _polygons_of(given, len(kinds))
    if len(labels) and labels.max() >= classes:
        raise refuse(op, "LabelsInt32", f"class {labels.max()}", f"classes below num_classes, {classes}")
    boxes, rows, masks = [], [], []
    for i, ((a, b), (c, d)) in enumerate(zip(images, owned)):
        own = [polygons[k] for k in range(c, d) if kinds[k] > 0 and not crowd[k]]
        chosen, of, found = _image_masks(rois[a:b] / info[i, 2], labels[a:b], own, attrs)
        spread = np.full((len(chosen), classes, size * size), -1)
        inside = np.flatnonzero(of > 0)
        spread[inside, of[inside]] = found[inside]
        boxes.append(rois[a:b][chosen])
        rows.append(np.where(of > 0, chosen, 0).reshape(-1, 1))
        masks.append(spread.reshape(len(chosen), -1))
    made = {"MaskRois": _core.to_tensor(np.concatenate(boxes), dtype=given["Rois"][0].dtype),
            "RoiHasMaskInt32": _core.to_tensor(np.concatenate(rows), dtype="int32"),
            "MaskInt32": _core.to_tensor(np.concatenate(masks), dtype="int32")}
    for one in made.values():
        one._lod = [np.cumsum([0, *map(len, boxes)]).tolist()]
    return {slot: [one] for slot, one in made.items()}
