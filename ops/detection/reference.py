"""NumPy references of object detection: anchors (prior_box, anchor_generator, …), box coding, non-maximum
suppression and matching. One function per op, named as the op: tests/ops/test_ops.py calls it with the op's fields,
tensors as NumPy arrays, and compares Proa's outputs with the outputs that it returns, in the op table's order (None:
not compared)."""
import numpy as np


def yolo_box(x, img_size, anchors, class_num, conf_thresh, downsample_ratio, clip_bbox, scale_x_y, iou_aware,
             iou_aware_factor):
    n, _, h, w = x.shape
    pairs = np.array(anchors).reshape(-1, 2)
    count = len(pairs)
    sigmoid = lambda v: 1 / (1 + np.exp(-v))
    parts = x[:, count if iou_aware else 0:].reshape(n, count, 5 + class_num, h, w)
    sure = sigmoid(parts[:, :, 4])
    if iou_aware:
        sure = sure ** (1 - iou_aware_factor) * sigmoid(x[:, :count]) ** iou_aware_factor
    tall, wide = img_size[:, 0].reshape(-1, 1, 1, 1), img_size[:, 1].reshape(-1, 1, 1, 1)
    shift = 0.5 * (scale_x_y - 1)
    cx = (np.arange(w) + sigmoid(parts[:, :, 0]) * scale_x_y - shift) * wide / w
    cy = (np.arange(h)[:, None] + sigmoid(parts[:, :, 1]) * scale_x_y - shift) * tall / h
    half_w = np.exp(parts[:, :, 2]) * pairs[:, 0].reshape(-1, 1, 1) * wide / (downsample_ratio * w) / 2
    half_h = np.exp(parts[:, :, 3]) * pairs[:, 1].reshape(-1, 1, 1) * tall / (downsample_ratio * h) / 2
    corners = [cx - half_w, cy - half_h, cx + half_w, cy + half_h]
    if clip_bbox:
        corners = [np.maximum(corners[0], 0), np.maximum(corners[1], 0), np.minimum(corners[2], wide - 1),
                   np.minimum(corners[3], tall - 1)]
    on = sure >= conf_thresh
    scores = np.where(on[:, :, None], sure[:, :, None] * sigmoid(parts[:, :, 5:]), 0)
    return (np.where(on[..., None], np.stack(corners, -1), 0).reshape(n, -1, 4),
            scores.transpose(0, 1, 3, 4, 2).reshape(n, -1, class_num))


def prior_box(input, image, min_sizes, max_sizes, aspect_ratios, variances, flip, clip, step_w, step_h, offset,
              min_max_aspect_ratios_order):
    (h, w), (tall, wide) = input.shape[2:], image.shape[2:]
    ratios = [1.0]
    for ratio in aspect_ratios:
        if all(abs(ratio - one) > 1e-6 for one in ratios):
            ratios += [ratio, 1 / ratio] if flip else [ratio]
    if step_w == 0 or step_h == 0:
        step_w, step_h = wide / w, tall / h
    sides = []
    for i, least in enumerate(min_sizes):
        by_ratio = [(least * r ** 0.5, least / r ** 0.5) for r in ratios]
        mean = [((least * max_sizes[i]) ** 0.5,) * 2] if max_sizes else []
        sides += by_ratio[:1] + mean + by_ratio[1:] if min_max_aspect_ratios_order else by_ratio + mean
    half = np.array(sides) / 2
    cx = np.broadcast_to(((np.arange(w) + offset) * step_w)[None, :, None], (h, w, len(half)))
    cy = np.broadcast_to(((np.arange(h) + offset) * step_h)[:, None, None], (h, w, len(half)))
    boxes = np.stack([(cx - half[:, 0]) / wide, (cy - half[:, 1]) / tall, (cx + half[:, 0]) / wide,
                      (cy + half[:, 1]) / tall], -1)
    return np.clip(boxes, 0, 1) if clip else boxes, np.broadcast_to(np.array(variances), boxes.shape)


def box_coder(prior_box, prior_box_var, target_box, code_type, box_normalized, axis, variance):
    more = 0 if box_normalized else 1
    decode = code_type == "decode_center_size"
    var = prior_box_var if prior_box_var is not None else np.broadcast_to(np.array(variance or [1.0] * 4), prior_box.shape)
    at = (slice(None), None) if decode and axis == 1 else (None,)
    prior, var = prior_box[at], var[at]
    sides = prior[..., 2:] - prior[..., :2] + more
    centre = prior[..., :2] + sides / 2
    if decode:
        middle = var[..., :2] * target_box[..., :2] * sides + centre
        half = np.exp(var[..., 2:] * target_box[..., 2:]) * sides / 2
        return np.concatenate([middle - half, middle + half - more], -1)
    target = target_box[:, None]
    offsets = ((target[..., :2] + target[..., 2:]) / 2 - centre) / sides
    scales = np.log(np.abs((target[..., 2:] - target[..., :2] + more) / sides))
    return np.concatenate([offsets, scales], -1) / var


def overlap(a, b, more=0):
    sides = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]) + more
    both = np.prod(np.maximum(sides, 0)) if (sides - more >= 0).all() else 0
    return both / (np.prod(a[2:] - a[:2] + more) + np.prod(b[2:] - b[:2] + more) - both)


def nms(boxes, threshold):
    kept = []
    for i, box in enumerate(boxes):
        if all(overlap(boxes[k], box) <= threshold for k in kept):
            kept.append(i)
    return np.array(kept, "int64")


def best_of_class(boxes, scores, score_threshold, nms_top_k, nms_threshold, more, nms_eta):
    """The indices of the boxes of a class that remain, best first."""
    best = [i for i in np.argsort(-scores, kind="stable") if scores[i] > score_threshold]
    kept, limit = [], nms_threshold
    for i in best[:nms_top_k] if nms_top_k > -1 else best:
        if all(overlap(boxes[k], boxes[i], more) <= limit for k in kept):
            kept.append(i)
            limit = limit * nms_eta if nms_eta < 1 and limit > 0.5 else limit
    return kept


def multiclass_nms(bboxes, scores, boxes_num, score_threshold, nms_top_k, keep_top_k, nms_threshold, normalized, nms_eta,
                   background_label):
    rows, places, counts, first = [], [], [], 0
    if boxes_num is None:
        images = [(np.broadcast_to(b, (len(s), *b.shape)), s) for b, s in zip(bboxes, scores)]
    else:
        cuts = np.cumsum(boxes_num)[:-1]
        images = [(np.swapaxes(b, 0, 1), s.T) for b, s in zip(np.split(bboxes, cuts), np.split(scores, cuts))]
    for boxes, of in images:
        found = []
        for label in range(len(of)):
            if label != background_label:
                kept = best_of_class(boxes[label], of[label], score_threshold, nms_top_k, nms_threshold, 0 if normalized else 1, nms_eta)
                found += [(label, of[label][i], i) for i in kept]
        if keep_top_k > -1:
            found = sorted(sorted(found, key=lambda one: -one[1])[:keep_top_k], key=lambda one: one[0])
        if boxes_num is not None:
            found.sort(key=lambda one: (one[0], one[2]))
        rows += [[label, score, *boxes[label][i]] for label, score, i in found]
        places += [[first + i if boxes_num is None else (first + i) * len(of) + label] for label, _, i in found]
        first += boxes.shape[1]
        counts.append(len(found))
    return (np.array(rows).reshape(-1, 6), np.array(places, "int32").reshape(-1, 1), np.array(counts, "int32"))


def anchor_generator(input, anchor_sizes, aspect_ratios, variances, stride, offset):
    h, w = input.shape[2:]
    across, down = stride
    x, y = np.arange(w) * across + offset * (across - 1), np.arange(h) * down + offset * (down - 1)
    half = []
    for ratio in aspect_ratios:
        base = np.round(np.sqrt(across * down / ratio))
        half += [[(size / across * base - 1) / 2, (size / down * np.round(base * ratio) - 1) / 2] for size in anchor_sizes]
    half = np.array(half)
    centre = np.stack(np.broadcast_arrays(x[None, :, None], y[:, None, None]), -1)
    boxes = np.concatenate([centre - half, centre + half], -1)
    return boxes, np.broadcast_to(np.array(variances), boxes.shape)


def density_prior_box(input, image, densities, fixed_sizes, fixed_ratios, variances, clip, step_w, step_h, offset, flatten_to_2d):
    (h, w), (tall, wide) = input.shape[2:], image.shape[2:]
    if step_w == 0 or step_h == 0:
        step_w, step_h = wide / w, tall / h
    average, made = int((step_w + step_h) * 0.5), []
    for size, density in zip(fixed_sizes, densities):
        shift = average // density
        for ratio in fixed_ratios:
            half = np.array([size * ratio ** 0.5, size / ratio ** 0.5]) / 2
            for k in range(density * density):
                moved = np.array([k % density, k // density]) * shift - average / 2 + shift / 2
                made.append(np.concatenate([moved - half, moved + half]))
    centre = np.stack(np.broadcast_arrays(((np.arange(w) + offset) * step_w)[None], ((np.arange(h) + offset) * step_h)[:, None]), -1)
    boxes = (np.concatenate([centre, centre], -1)[:, :, None] + np.array(made)) / [wide, tall, wide, tall]
    boxes = np.concatenate([np.maximum(boxes[..., :2], 0), np.minimum(boxes[..., 2:], 1)], -1)
    boxes = np.clip(boxes, 0, 1) if clip else boxes
    boxes = boxes.reshape(-1, 4) if flatten_to_2d else boxes
    return boxes, np.broadcast_to(np.array(variances), boxes.shape)


def iou_similarity(x, y, box_normalized):
    more = 0 if box_normalized else 1
    sides = np.minimum(x[:, None, 2:], y[:, 2:]) - np.maximum(x[:, None, :2], y[:, :2]) + more
    both = np.maximum(sides, 0).prod(-1)
    area = [(b[:, 2:] - b[:, :2] + more).prod(-1) for b in (x, y)]
    return both / (area[0][:, None] + area[1] - both + 1e-10)


def bipartite_match(dist, offsets, match_type, dist_threshold):
    left, columns = dist.copy(), dist.shape[1]
    index, found = np.full(columns, -1, "int32"), np.zeros(columns)
    while (left >= 1e-6).any():
        row, column = np.unravel_index(left.argmax(), left.shape)
        index[column], found[column] = row, left[row, column]
        left[row], left[:, column] = 0, 0
    for c in range(columns):
        best = dist[:, c].argmax()
        if match_type == "per_prediction" and index[c] < 0 and dist[best, c] >= max(dist_threshold, 1e-6):
            index[c], found[c] = best, dist[best, c]
    return index[None], found[None]


def box_clip(input, im_info, offsets):
    parts = []
    for (height, width, scale), first, last in zip(im_info, offsets, offsets[1:]):
        limit = np.round(np.array([width, height, width, height]) / scale) - 1
        parts.append(np.clip(input[first:last], 0, limit))
    return np.concatenate(parts)


def box_decoder_and_assign(prior_box, prior_box_var, target_box, box_score, box_clip):
    rows, classes = box_score.shape
    target = target_box.reshape(rows, classes, 4) * prior_box_var
    sides = (prior_box[:, 2:] - prior_box[:, :2] + 1)[:, None]
    middle = prior_box[:, None, :2] + sides / 2 + target[..., :2] * sides
    half = np.exp(np.minimum(target[..., 2:], box_clip)) * sides / 2
    boxes = np.concatenate([middle - half, middle + half - 1], -1)
    best = 1 + box_score[:, 1:].argmax(1)
    return boxes.reshape(rows, -1), boxes[np.arange(rows), best]


def polygon_box_transform(input):
    n, channels, h, w = input.shape
    places = np.stack([np.broadcast_to(np.arange(w) * 4, (h, w)), np.broadcast_to(np.arange(h)[:, None] * 4, (h, w))])
    return places[np.arange(channels) % 2] - input
