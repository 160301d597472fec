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


def even_odd(polygon, points):
    """Whether each of the points is in a polygon."""
    inside = np.zeros(len(points), bool)
    for (ax, ay), (bx, by) in zip(polygon, np.roll(polygon, -1, 0)):
        passes = (ay <= points[:, 1]) != (by <= points[:, 1])
        with np.errstate(divide="ignore", invalid="ignore"):
            inside ^= passes & (points[:, 0] > ax + (points[:, 1] - ay) / (by - ay) * (bx - ax))
    return inside


def polygon_overlap(a, b):
    """Intersection over union of polygons; what they share is counted on a fine grid."""
    a, b = a.reshape(-1, 2), b.reshape(-1, 2)
    areas = [abs((p[:, 0] * np.roll(p[:, 1], -1) - p[:, 1] * np.roll(p[:, 0], -1)).sum()) / 2 for p in (a, b)]
    low, high = np.minimum(a.min(0), b.min(0)), np.maximum(a.max(0), b.max(0))
    steps = (np.arange(400) + 0.5) / 400
    grid = np.stack(np.meshgrid(*(low[k] + steps * (high[k] - low[k]) for k in (0, 1))), -1).reshape(-1, 2)
    shared = (even_odd(a, grid) & even_odd(b, grid)).mean() * (high - low).prod()
    return shared / (sum(areas) - shared) if shared else 0.0


def kept_of(boxes, scores, threshold, eta, judge):
    """Indices that stay, in their order, by (threshold, eta)."""
    kept, limit = [], threshold
    for i in scores:
        if all(judge(boxes[k], boxes[i]) <= limit for k in kept):
            kept.append(i)
            limit = limit * eta if eta < 1 and limit > 0.5 else limit
    return kept


def locality_aware_nms(bboxes, scores, score_threshold, nms_top_k, keep_top_k, nms_threshold=0.3, normalized=True, nms_eta=1.0,
                       background_label=-1):
    def judge(a, b):
        return overlap(a, b, 0 if normalized else 1) if len(a) == 4 else polygon_overlap(a, b)
    rows, ends = [], [0]
    for boxes, of in zip(bboxes.astype("float64"), scores.astype("float64")):
        found = []
        for label in range(len(of)):
            if label == background_label:
                continue
            at, mine = 0, of[label]
            for i in range(1, len(boxes)):
                if judge(boxes[i], boxes[at]) > nms_threshold:
                    boxes[at] = (boxes[i] * mine[i] + boxes[at] * mine[at]) / (mine[i] + mine[at])
                    mine[at], mine[i] = mine[at] + mine[i], -np.inf
                else:
                    at = i
            best = [i for i in np.argsort(-mine, kind="stable") if mine[i] > score_threshold]
            best = best[:nms_top_k] if nms_top_k > -1 else best
            found += [(label, mine[i], *boxes[i]) for i in kept_of(boxes, best, nms_threshold, nms_eta, judge)]
        if keep_top_k > -1:
            found = sorted(sorted(found, key=lambda one: -one[1])[:keep_top_k], key=lambda one: one[0])
        rows += found
        ends.append(len(rows))
    if not rows:
        return np.full((1, 1), -1.0), np.array([0, 1])
    return np.array(rows), np.array(ends)


def decoded(offsets, anchor, info):
    """A box from offsets of an anchor, in pixels before scaling, inside of the image."""
    size = anchor[2:] - anchor[:2] + 1
    centre, half = offsets[:2] * size + anchor[:2] + size / 2, np.exp(offsets[2:]) * size / 2
    end = np.round(info[1::-1] / info[2]) - 1
    return np.clip(np.concatenate([centre - half, centre + half - 1]) / info[2], 0, np.tile(end, 2))


def retinanet_detection_output(bboxes, scores, anchors, im_info, score_threshold, nms_top_k, keep_top_k, nms_threshold, nms_eta=1.0):
    rows, ends = [], [0]
    for image, info in enumerate(im_info):
        boxes, of = [], []
        for level, (box, score, anchor) in enumerate(zip(bboxes, scores, anchors)):
            flat = score[image].reshape(-1)
            best = [i for i in np.argsort(-flat, kind="stable") if flat[i] > (score_threshold if level + 1 < len(scores) else 0)]
            for i in best[:nms_top_k] if nms_top_k > -1 else best:
                at, label = divmod(int(i), score.shape[2])
                boxes.append(decoded(box[image, at], anchor[at], info))
                of.append((label, flat[i]))
        found = []
        for label in range(scores[0].shape[2]):
            mine = sorted((i for i in range(len(of)) if of[i][0] == label), key=lambda i: -of[i][1])
            kept = kept_of(boxes, mine, nms_threshold, nms_eta, lambda a, b: overlap(a, b, 1))
            found += [(label + 1, of[i][1], *boxes[i]) for i in kept]
        found.sort(key=lambda one: -one[1])
        rows += found[:keep_top_k] if keep_top_k > -1 else found
        ends.append(len(rows))
    return np.array(rows).reshape(-1, 6), np.array(ends)


def sigmoid(v):
    return 1 / (1 + np.exp(-v))


def entropy(v, label):
    return np.maximum(v, 0) - v * label + np.log1p(np.exp(-np.abs(v)))


def centred_overlap(a, b):
    low = np.maximum(a[..., :2] - a[..., 2:] / 2, b[..., :2] - b[..., 2:] / 2)
    both = np.clip(np.minimum(a[..., :2] + a[..., 2:] / 2, b[..., :2] + b[..., 2:] / 2) - low, 0, None).prod(-1)
    return both / (a[..., 2:].prod(-1) + b[..., 2:].prod(-1) - both)


def yolo_matches(x, gt_box, anchors, anchor_mask, class_num, ignore_thresh, downsample_ratio, scale_x_y):
    """(predictions [N, masks, 5 + classes, H, W], whether each is ignored, the mask's index of each true box)."""
    n, _, h, w = x.shape
    parts, pairs, size = x.reshape(n, len(anchor_mask), 5 + class_num, h, w), np.reshape(anchors, (-1, 2)), downsample_ratio * h
    grid = np.stack(np.meshgrid(np.arange(w), np.arange(h)))
    centre = (sigmoid(parts[:, :, :2]) * scale_x_y - (scale_x_y - 1) / 2 + grid) / np.array([w, h])[:, None, None]
    sides = np.exp(parts[:, :, 2:4]) * (pairs[list(anchor_mask)] / size)[:, :, None, None]
    made = np.moveaxis(np.concatenate([centre, sides], 2), 2, -1)[:, :, :, :, None]
    given = (gt_box[..., 2:] > 1e-6).all(-1)
    found = np.where(given[:, None, None, None], centred_overlap(made, gt_box[:, None, None, None]), 0)
    shapes = np.concatenate([np.zeros_like(pairs), pairs / size], 1)
    best = centred_overlap(np.concatenate([gt_box[..., :2] * 0, gt_box[..., 2:]], -1)[:, :, None], shapes).argmax(-1)
    place = np.array([list(anchor_mask).index(k) if k in anchor_mask else -1 for k in range(len(pairs))])
    return parts, found.max(-1) > ignore_thresh, np.where(given, place[best], -1)


def yolov3_loss(x, gt_box, gt_label, gt_score, anchors, anchor_mask, class_num, ignore_thresh, downsample_ratio,
                use_label_smooth=True, scale_x_y=1.0):
    parts, ignored, match = yolo_matches(x, gt_box, anchors, anchor_mask, class_num, ignore_thresh, downsample_ratio, scale_x_y)
    (n, b), (h, w) = gt_label.shape, x.shape[2:]
    objectness, loss = np.where(ignored, -1.0, 0.0), np.zeros(n)
    rest = min(1 / class_num, 1 / 40) if use_label_smooth else 0.0
    for i, k in np.ndindex(n, b):
        m, score = match[i, k], 1.0 if gt_score is None else gt_score[i, k]
        if m < 0:
            continue
        at = gt_box[i, k, :2] * (w, h)
        column, row = at.astype(int)
        mine = parts[i, m, :, row, column]
        place = entropy(mine[:2], at - at.astype(int)).sum()
        pair = np.array(anchors[2 * anchor_mask[m]:][:2])
        place += np.abs(mine[2:4] - np.log(gt_box[i, k, 2:] * downsample_ratio * h / pair)).sum()
        labels = np.where(np.arange(class_num) == gt_label[i, k], 1 - rest, rest)
        loss[i] += (place * (2 - gt_box[i, k, 2] * gt_box[i, k, 3]) + entropy(mine[5:], labels).sum()) * score
        objectness[i, m, row, column] = score
    sure = parts[:, :, 4]
    loss += np.where(objectness > 1e-5, entropy(sure, 1) * objectness, np.where(objectness > -0.5, entropy(sure, 0), 0)).sum((1, 2, 3))
    return loss, objectness, match


def yolov3_loss_grad(x, gt_box, gt_label, gt_score, objectness, match, d_loss, anchors, anchor_mask, class_num, ignore_thresh,
                     downsample_ratio, use_label_smooth=True, scale_x_y=1.0):
    (n, b), (h, w) = gt_label.shape, x.shape[2:]
    parts = x.reshape(n, len(anchor_mask), 5 + class_num, h, w)
    d_x, rest = np.zeros_like(parts), min(1 / class_num, 1 / 40) if use_label_smooth else 0.0
    for i, k in np.ndindex(n, b):
        m, score = match[i, k], 1.0 if gt_score is None else gt_score[i, k]
        if m < 0:
            continue
        at = gt_box[i, k, :2] * (w, h)
        column, row = at.astype(int)
        mine, to = parts[i, m, :, row, column], d_x[i, m, :, row, column]
        pair = np.array(anchors[2 * anchor_mask[m]:][:2])
        wanted = np.log(gt_box[i, k, 2:] * downsample_ratio * h / pair)
        scale = (2 - gt_box[i, k, 2] * gt_box[i, k, 3]) * score
        to[:2] += (sigmoid(mine[:2]) - (at - at.astype(int))) * scale
        to[2:4] += np.where(mine[2:4] > wanted, 1, -1) * scale
        to[5:] += (sigmoid(mine[5:]) - np.where(np.arange(class_num) == gt_label[i, k], 1 - rest, rest)) * score
    sure = parts[:, :, 4]
    d_x[:, :, 4] = np.where(objectness > 1e-5, (sigmoid(sure) - 1) * objectness, np.where(objectness > -0.5, sigmoid(sure), 0))
    return (d_x * d_loss[:, None, None, None, None]).reshape(x.shape)


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
