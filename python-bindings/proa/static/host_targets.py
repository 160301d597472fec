"""Labels for the training of two-stage detectors and of RetinaNet (rpn_target_assign, retinanet_target_assign,
generate_proposal_labels), for the operator-by-operator interpreter in late.py. Sides of boxes count their last pixel."""
import numpy as np

from .. import _core
from .host_matching import described, offsets_of, refuse, spans


def boxes_of(op, given, slot):
    """A slot's boxes as an array [N, 4]."""
    x = given[slot][0]
    if x.ndim != 2 or x.shape[1] != 4:
        raise refuse(op, slot, described(x), "boxes [N, 4]")
    return x.numpy()


def image_info(op, given, images):
    """Height, width and scale of each image."""
    x = given["ImInfo"][0]
    if list(x.shape) != [images, 3] or not (x.numpy()[:, 2] > 0).all():
        raise refuse(op, "ImInfo", described(x), f"height, width and a scale above 0 of each image, [{images}, 3]")
    return x.numpy()


def flat_of(op, given, slot, rows):
    """A slot's numbers, one a row."""
    x = given[slot][0]
    if int(np.prod(x.shape)) != rows:
        raise refuse(op, slot, described(x), f"one a row of {rows}")
    return x.numpy().reshape(-1)


def images_of(op, given, *slots):
    """[(begin, end) of each image] of slots that have as many sequences."""
    found = [spans(offsets_of(op, given, slot)) for slot in slots]
    for slot, own in zip(slots, found):
        if len(own) != len(found[0]):
            raise refuse(op, slot, f"{len(own)} sequences", f"one an image of {slots[0]}, {len(found[0])}")
    return found


def overlaps(a, b):
    """The intersection over union of each of a and each of b, [len(a), len(b)]."""
    sides = [np.maximum(one[:, 2:] - one[:, :2] + 1, 0) for one in (a, b)]
    both = np.minimum(a[:, None, 2:], b[None, :, 2:]) - np.maximum(a[:, None, :2], b[None, :, :2]) + 1
    both = np.maximum(both, 0).prod(-1)
    return both / (sides[0].prod(-1)[:, None] + sides[1].prod(-1)[None] - both)


def offsets_to(boxes, truth, weights=(1.0, 1.0, 1.0, 1.0)):
    """True boxes as offsets from others: of the centre in units of the sides, and logarithms of ratios of the sides."""
    sides, wanted = (one[:, 2:] - one[:, :2] + 1 for one in (boxes, truth))
    centre = (truth[:, :2] + 0.5 * wanted - boxes[:, :2] - 0.5 * sides) / sides
    return np.concatenate([centre, np.log(wanted / sides)], 1) / np.asarray(weights, boxes.dtype)


def some_of(places, count, at_random):
    """`count` of the places: the first, or any, in order."""
    if len(places) <= count or not at_random:
        return places[:count]
    return np.sort(places[_core.randperm(len(places), "int64").numpy()[:max(count, 0)]])


def _sequenced(rows, dtype, shape):
    """Arrays of each image as one tensor with sequences."""
    out = _core.to_tensor(np.concatenate(rows).reshape(shape) if rows else np.zeros([0, *shape[1:]]), dtype=dtype)
    out._lod = [np.cumsum([0, *map(len, rows)]).tolist()]
    return out


def _assigned(found, low, high, fraction=None, batch=0, at_random=False):
    """(anchors to locate, those of objects, those of background, weights) by overlaps [anchors, true boxes]. An anchor that is
    background again leaves its location to the first object's, with weight 0."""
    most = found.max(1, initial=0) if found.shape[1] else np.zeros(len(found))
    objects = most >= high
    if found.shape[1]:
        objects |= (found == found.max(0, initial=-1)).any(1)
    background = np.flatnonzero(most < low)
    inside = np.flatnonzero(objects)
    if fraction is not None:
        inside = some_of(inside, int(fraction * batch), at_random)
        background = some_of(background, batch - len(inside), at_random)
    again = np.intersect1d(inside, background)
    kept = np.setdiff1d(inside, again)
    located = np.concatenate([np.repeat(inside[:1], len(again)), kept])
    weights = np.ones((len(located), 4))
    weights[:len(again)] = 0
    return located, kept, background, weights


def _assign(op, given, choose):
    """The outputs that both ops have; choose(anchors, sides of the image) gives places of anchors and their assignment."""
    anchors, truth = (boxes_of(op, given, slot) for slot in ("Anchor", "GtBoxes"))
    images = images_of(op, given, "GtBoxes")[0]
    info, crowd = image_info(op, given, len(images)), flat_of(op, given, "IsCrowd", len(truth))
    kinds = flat_of(op, given, "GtLabels", len(truth)) if "GtLabels" in given else None
    made = {slot: [] for slot in ("LocationIndex", "ScoreIndex", "TargetLabel", "TargetBBox", "BBoxInsideWeight",
                                  "ForegroundNumber")}
    for i, (a, b) in enumerate(images):
        mine = np.flatnonzero(crowd[a:b] == 0) + a
        boxes, (height, width) = truth[mine] * info[i, 2], info[i, :2]
        places = choose.inside(anchors, height, width)
        found = overlaps(anchors[places], boxes)
        located, objects, background, weights = choose.assigned(found)
        nearest = found.argmax(1) if len(mine) else np.zeros(len(found), int)
        labels = np.ones(len(objects), int) if kinds is None else kinds[mine][nearest[objects]]
        made["LocationIndex"].append(places[located] + i * len(anchors))
        made["ScoreIndex"].append(places[np.concatenate([objects, background])] + i * len(anchors))
        made["TargetLabel"].append(np.concatenate([labels, np.zeros(len(background), int)]))
        made["TargetBBox"].append(offsets_to(anchors[places[located]], boxes[nearest[located]]) if len(located) else
                                  np.zeros((0, 4)))
        made["BBoxInsideWeight"].append(weights)
        made["ForegroundNumber"].append(np.array([len(located) + 1]))
    like = given["Anchor"][0].dtype
    forms = {"LocationIndex": ("int32", [-1]), "ScoreIndex": ("int32", [-1]), "TargetLabel": ("int32", [-1, 1]),
             "TargetBBox": (like, [-1, 4]), "BBoxInsideWeight": (like, [-1, 4]), "ForegroundNumber": ("int32", [-1, 1])}
    return {slot: [_sequenced(rows, *forms[slot])] for slot, rows in made.items()}


class _Rpn:
    """The choice of rpn_target_assign: anchors that stay inside of the image, as many as a batch has."""

    def __init__(self, attrs):
        self.margin = attrs.get("rpn_straddle_thresh", 0.0)
        self.low, self.high = attrs.get("rpn_negative_overlap", 0.3), attrs.get("rpn_positive_overlap", 0.7)
        self.batch, self.fraction = attrs.get("rpn_batch_size_per_im", 256), attrs.get("rpn_fg_fraction", 0.25)
        self.at_random = attrs.get("use_random", True)

    def inside(self, anchors, height, width):
        if self.margin < 0:
            return np.arange(len(anchors))
        low, high = anchors[:, :2], anchors[:, 2:]
        return np.flatnonzero((low >= -self.margin).all(1) & (high < np.array([width, height]) + self.margin).all(1))

    def assigned(self, found):
        return _assigned(found, self.low, self.high, self.fraction, self.batch, self.at_random)


class _Retina:
    """The choice of retinanet_target_assign: all anchors."""

    def __init__(self, attrs):
        self.low, self.high = attrs.get("negative_overlap", 0.4), attrs.get("positive_overlap", 0.5)

    def inside(self, anchors, height, width):
        return np.arange(len(anchors))

    def assigned(self, found):
        return _assigned(found, self.low, self.high)


def rpn_target_assign(given, outputs, attrs):
    """Anchors that are objects and anchors that are background, for a region proposal network (Ren et al., 2015)."""
    return _assign("rpn_target_assign", {k: v for k, v in given.items() if k != "GtLabels"}, _Rpn(attrs))


def retinanet_target_assign(given, outputs, attrs):
    """Anchors that are objects, with their classes, and anchors that are background (Lin et al., 2017)."""
    return _assign("retinanet_target_assign", given, _Retina(attrs))


def _sampled(boxes, truth, crowd, attrs):
    """(places of objects, of background, each box's true box, its overlap) of an image's boxes, which begin with the true ones."""
    found = overlaps(boxes, truth)
    most, nearest = found.max(1), found.argmax(1)
    most[:len(truth)][crowd != 0] = -1
    objects = np.flatnonzero(most >= attrs["fg_thresh"])
    background = np.flatnonzero((most < attrs["bg_thresh_hi"]) & (most >= attrs["bg_thresh_lo"]))
    if not attrs.get("is_cascade_rcnn", False):
        batch, at_random = attrs["batch_size_per_im"], attrs.get("use_random", True)
        objects = some_of(objects, int(batch * attrs["fg_fraction"]), at_random)
        background = some_of(background, batch - len(objects), at_random)
    return objects, background, nearest, most


def _image_labels(boxes, truth, kinds, crowd, scale, attrs):
    """The outputs of one image."""
    boxes = np.concatenate([truth, boxes])
    objects, background, nearest, most = _sampled(boxes, truth, crowd, attrs)
    chosen = np.concatenate([objects, background])
    labels = np.where(np.arange(len(chosen)) < len(objects), kinds[nearest[chosen]], 0)
    agnostic = attrs.get("is_cls_agnostic", False)
    targets = np.zeros((len(chosen), 2 if agnostic else attrs["class_nums"], 4))
    weights = np.zeros_like(targets)
    inside = np.flatnonzero(labels > 0)
    columns = np.ones(len(inside), int) if agnostic else labels[inside]
    if len(inside) and columns.max() >= targets.shape[1]:
        raise refuse("generate_proposal_labels", "GtClasses", f"class {columns.max()}", f"classes below class_nums, {targets.shape[1]}")
    targets[inside, columns] = offsets_to(boxes[chosen[inside]], truth[nearest[chosen[inside]]], attrs["bbox_reg_weights"])
    weights[inside, columns] = 1
    return {"Rois": boxes[chosen] * scale, "LabelsInt32": labels, "BboxTargets": targets.reshape(len(chosen), -1),
            "BboxInsideWeights": weights.reshape(len(chosen), -1), "BboxOutsideWeights": weights.reshape(len(chosen), -1),
            "MaxOverlapWithGT": most[chosen]}


def generate_proposal_labels(given, outputs, attrs):
    """Proposals and true boxes that a batch has, with their classes and offsets to true boxes (Girshick, 2015)."""
    op = "generate_proposal_labels"
    rois, truth = (boxes_of(op, given, slot) for slot in ("RpnRois", "GtBoxes"))
    images, owned = images_of(op, given, "RpnRois", "GtBoxes")
    info = image_info(op, given, len(images))
    kinds, crowd = (flat_of(op, given, slot, len(truth)) for slot in ("GtClasses", "IsCrowd"))
    most = flat_of(op, given, "MaxOverlap", len(rois)) if given.get("MaxOverlap") else None
    made = []
    for i, ((a, b), (c, d)) in enumerate(zip(images, owned)):
        if c == d:
            raise refuse(op, "GtBoxes", f"no box of image {i}", "one or more an image")
        boxes = rois[a:b] / info[i, 2]
        if attrs.get("is_cascade_rcnn", False) and most is not None:
            boxes = boxes[(boxes[:, 2:] - boxes[:, :2] + 1 > 0).all(1) & (most[a:b] < 1)]
            boxes = boxes if len(boxes) else np.zeros((1, 4), rois.dtype)
        made.append(_image_labels(boxes, truth[c:d], kinds[c:d], crowd[c:d], info[i, 2], attrs))
    width = 4 * (2 if attrs.get("is_cls_agnostic", False) else attrs["class_nums"])
    shapes = {"Rois": [-1, 4], "LabelsInt32": [-1, 1], "MaxOverlapWithGT": [-1]}
    return {slot: [_sequenced([one[slot] for one in made], "int32" if slot == "LabelsInt32" else given["RpnRois"][0].dtype,
                              shapes.get(slot, [-1, width]))]
            for slot in ("Rois", "LabelsInt32", "BboxTargets", "BboxInsideWeights", "BboxOutsideWeights", "MaxOverlapWithGT")}
