"""Metrics of Paddle 1.x: precision_recall of classes, detection_map of boxes, for the operator-by-operator interpreter in
late.py."""
import numpy as np

from .. import _core
from .host_matching import described, offsets_of, refuse, spans


def _ratio(part, rest):
    return part / (part + rest) if part > 0 or rest > 0 else 1.0


def _f1(precision, recall):
    return 2 * precision * recall / (precision + recall) if precision > 0 or recall > 0 else 0.0


def _rates(states):
    """Macro and micro averages of precision, recall and F1 of counts [classes, (true and false positives and negatives)]."""
    precision = np.mean([_ratio(row[0], row[1]) for row in states])
    recall = np.mean([_ratio(row[0], row[3]) for row in states])
    total = states.sum(0)
    micro = _ratio(total[0], total[1]), _ratio(total[0], total[3])
    return [precision, recall, _f1(precision, recall), *micro, _f1(*micro)]


def precision_recall(given, outputs, attrs):
    """Rates of a batch, and of all batches by the states that come along."""
    op, classes = "precision_recall", attrs["class_number"]
    found, labels = (given[slot][0].numpy().reshape(-1) for slot in ("Indices", "Labels"))
    if len(found) != len(labels):
        raise refuse(op, "Labels", described(given["Labels"][0]), f"one a row of Indices {described(given['Indices'][0])}")
    weights = given["Weights"][0].numpy().reshape(-1) if given.get("Weights") else np.ones(len(found))
    if len(weights) != len(found):
        raise refuse(op, "Weights", described(given["Weights"][0]), f"one a row of Indices {described(given['Indices'][0])}")
    for slot, values in (("Indices", found), ("Labels", labels)):
        if len(values) and not 0 <= values.min() <= values.max() < classes:
            raise refuse(op, slot, f"between {values.min()} and {values.max()}", f"classes below {classes}")
    states = np.zeros((classes, 4))
    right = found == labels
    np.add.at(states[:, 0], found[right], weights[right])
    np.add.at(states[:, 1], found[~right], weights[~right])
    np.add.at(states[:, 3], labels[~right], weights[~right])
    states[:, 2] = weights.sum() - states[:, 0] - states[:, 1] - states[:, 3]
    before = given["StatesInfo"][0].numpy() if given.get("StatesInfo") else np.zeros((classes, 4))
    if before.shape != states.shape:
        raise refuse(op, "StatesInfo", described(given["StatesInfo"][0]), f"[{classes}, 4]")
    return {"BatchMetrics": [_core.to_tensor(_rates(states), dtype="float64")],
            "AccumMetrics": [_core.to_tensor(_rates(states + before), dtype="float64")],
            "AccumStatesInfo": [_core.to_tensor(states + before, dtype="float32")]}


def _overlap(box, other):
    """The intersection over union of boxes of corners."""
    sides = np.minimum(box[2:], other[2:]) - np.maximum(box[:2], other[:2])
    if (sides < 0).any():
        return 0.0
    both = sides.prod()
    union = (box[2:] - box[:2]).prod() + (other[2:] - other[:2]).prod() - both
    return both / union if union > 0 else 0.0


def _judged(found, truth, threshold, with_difficult):
    """[(class, score, whether it is right)] of an image's boxes: the best first, each true box once; none for difficult ones that
    do not count."""
    made = []
    for kind in sorted(set(found[:, 0].astype(int).tolist())):
        true, taken = truth[truth[:, 0] == kind], set()
        mine = found[found[:, 0] == kind]
        for row in mine[np.argsort(-mine[:, 1], kind="stable")]:
            overlaps = [_overlap(np.clip(row[2:], 0, 1), one[-4:]) for one in true]
            best = int(np.argmax(overlaps)) if overlaps else -1
            if best < 0 or overlaps[best] <= threshold:
                made.append((kind, row[1], False))
            elif with_difficult or true.shape[1] == 5 or not true[best, 1]:
                made.append((kind, row[1], best not in taken))
                taken.add(best)
    return made


def _average(marks, positives, eleven):
    """The average precision of [(score, whether it is right)]."""
    right = np.array([hit for _, hit in sorted(marks, key=lambda mark: -mark[0])], "float64")
    precision, recall = right.cumsum() / np.arange(1, len(right) + 1), right.cumsum() / positives
    if eleven:
        return sum(precision[recall >= at / 10].max(initial=0) for at in range(11)) / 11
    steps = np.diff(recall, prepend=0)
    return float((precision * steps)[steps > 1e-6].sum())


def _marks(given, slot):
    """{class: [(score, 1 or 0)]} of an earlier state."""
    if not given.get(slot):
        return {}
    rows = given[slot][0].numpy().reshape(-1, 2)
    return {kind: [tuple(row) for row in rows[a:b].tolist()]
            for kind, (a, b) in enumerate(spans(offsets_of("detection_map", given, slot))) if b > a}


def _as_sequences(marks, classes):
    rows = [marks.get(kind, []) for kind in range(classes)]
    out = _core.to_tensor(np.array([mark for part in rows for mark in part]).reshape(-1, 2), dtype="float32")
    out._lod = [np.cumsum([0, *map(len, rows)]).tolist()]
    return out


def detection_map(given, outputs, attrs):
    """The mean average precision of found boxes [class, score, corners], and its state: counts of true boxes by class, and the
    scores of right and of wrong ones. The state that comes along is added if HasState is not 0."""
    op, classes, kind = "detection_map", attrs["class_num"], attrs.get("ap_type", "integral")
    if kind not in ("integral", "11point"):
        raise refuse(op, "ap_type", repr(kind), "integral or 11point")
    found, truth = given["DetectRes"][0], given["Label"][0]
    if found.ndim != 2 or found.shape[1] != 6 or truth.ndim != 2 or truth.shape[1] not in (5, 6):
        raise refuse(op, "DetectRes", f"{described(found)} and Label {described(truth)}", "[N, 6], and [M, 6] or [M, 5]")
    images = [spans(offsets_of(op, given, slot)) for slot in ("DetectRes", "Label")]
    if len(images[0]) != len(images[1]):
        raise refuse(op, "Label", f"{len(images[1])} sequences", f"one an image of DetectRes, {len(images[0])}")
    positives, marks = {}, [{}, {}]
    if given.get("HasState") and given["HasState"][0].numpy().any():
        marks = [_marks(given, slot) for slot in ("TruePos", "FalsePos")]
        positives = {i: int(n) for i, n in enumerate(given["PosCount"][0].numpy().reshape(-1)) if n}
    with_difficult, found, truth = attrs.get("evaluate_difficult", True), found.numpy(), truth.numpy()
    for row in truth:
        if with_difficult or len(row) == 5 or not row[1]:
            positives[int(row[0])] = positives.get(int(row[0]), 0) + 1
    for (a, b), (c, d) in zip(*images):
        for label, score, right in _judged(found[a:b], truth[c:d], attrs.get("overlap_threshold", 0.5), with_difficult):
            for which, hit in zip(marks, (right, not right)):
                which.setdefault(label, []).append((float(score), float(hit)))
    counted = [label for label, n in positives.items() if n and label != attrs.get("background_label", 0)]
    rates = [_average(marks[0][label], positives[label], kind == "11point") if label in marks[0] else 0.0 for label in counted]
    counts = np.array([[positives.get(label, 0)] for label in range(classes)])
    return {"MAP": [_core.to_tensor([sum(rates) / len(rates) if rates else 0.0], dtype="float32")],
            "AccumPosCount": [_core.to_tensor(counts, dtype="int32")],
            "AccumTruePos": [_as_sequences(marks[0], classes)], "AccumFalsePos": [_as_sequences(marks[1], classes)]}
