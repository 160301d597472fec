"""NumPy references of RoI pooling (roi_align, roi_pool, psroi_pool, prroi_pool), deformable convolution, region proposals and
matrix_nms, and of their gradients. One function per op, named as the op: tests/ops/test_ops.py calls it with the
op's fields, tensors as NumPy arrays, and compares Proa's outputs with the outputs that it returns, in the op table's
order (None: not compared)."""
import numpy as np


def owners(boxes_num, offsets):
    counts = np.diff(offsets) if boxes_num is None else boxes_num
    return np.repeat(np.arange(len(counts)), counts)


def taps(v, n):
    """[samples, n]: linear-interpolation weights of n pixels in samples at positions v; zeros for samples outside."""
    out = np.zeros((len(v), n))
    for i, at in enumerate(v):
        if -1 <= at <= n:
            at = min(max(at, 0), n - 1)
            low = min(int(at), n - 1)
            out[i, low] += 1 - (at - low)
            out[i, min(low + 1, n - 1)] += at - low
    return out


def mixtures(box, shape, rows, columns, scale, ratio, aligned):
    """([cell rows, image rows], [cell columns, image columns]): weights of RoI align, averaged over a cell's samples."""
    shift = 0.5 if aligned else 0.0
    made = []
    for low, high, cells, n in ((box[1], box[3], rows, shape[0]), (box[0], box[2], columns, shape[1])):
        low, size = low * scale - shift, (high - low) * scale
        size = size if aligned else max(size, 1.0)
        each = ratio if ratio > 0 else max(int(np.ceil(size / cells)), 0)
        at = low + (np.arange(cells * each) + 0.5) * size / cells / max(each, 1)
        made.append(taps(at, n).reshape(cells, each, n).sum(1) / each)
    return made


def roi_align(x, boxes, boxes_num, offsets, pooled_height, pooled_width, spatial_scale, sampling_ratio, aligned):
    out = [np.einsum("cij,hi,wj->chw", x[k], *mixtures(box, x.shape[2:], pooled_height, pooled_width, spatial_scale,
                                                       sampling_ratio, aligned))
           for k, box in zip(owners(boxes_num, offsets), boxes)]
    return np.array(out).reshape(len(boxes), x.shape[1], pooled_height, pooled_width)


def roi_align_grad(x, boxes, boxes_num, offsets, d_out, pooled_height, pooled_width, spatial_scale, sampling_ratio, aligned):
    d_x = np.zeros_like(x)
    for k, box, d in zip(owners(boxes_num, offsets), boxes, d_out):
        d_x[k] += np.einsum("chw,hi,wj->cij", d, *mixtures(box, x.shape[2:], pooled_height, pooled_width, spatial_scale,
                                                           sampling_ratio, aligned))
    return d_x


def hat_integral(v):
    """∫ of max(0, 1 − |t|) up to v."""
    v = np.clip(v, -1, 1)
    return np.where(v < 0, (v + 1) ** 2 / 2, 1 - (1 - v) ** 2 / 2)


def spans(box, rows, columns, scale):
    """(row, column, edges of its cell: left, top, right, bottom)."""
    left, top, right, bottom = box * scale
    wide, high = max(right - left, 0) / columns, max(bottom - top, 0) / rows
    for r in range(rows):
        for c in range(columns):
            yield r, c, (left + c * wide, top + r * high, left + (c + 1) * wide, top + (r + 1) * high)


def integral_weights(low, high, n):
    return hat_integral(high - np.arange(n)) - hat_integral(low - np.arange(n))


def edge_weights(at, n):
    return np.maximum(0, 1 - np.abs(at - np.arange(n)))


def prroi_pool(x, boxes, boxes_num, offsets, pooled_height, pooled_width, spatial_scale):
    out = np.zeros((len(boxes), x.shape[1], pooled_height, pooled_width))
    for i, (k, box) in enumerate(zip(owners(boxes_num, offsets), boxes)):
        for r, c, (left, top, right, bottom) in spans(box, pooled_height, pooled_width, spatial_scale):
            if (right - left) * (bottom - top) > 0:
                down, across = integral_weights(top, bottom, x.shape[2]), integral_weights(left, right, x.shape[3])
                out[i, :, r, c] = np.einsum("chw,h,w->c", x[k], down, across) / ((right - left) * (bottom - top))
    return out


def prroi_pool_grad(x, boxes, boxes_num, offsets, d_out, pooled_height, pooled_width, spatial_scale):
    d_x, d_boxes, (height, width) = np.zeros_like(x), np.zeros_like(boxes), x.shape[2:]
    out = prroi_pool(x, boxes, boxes_num, offsets, pooled_height, pooled_width, spatial_scale)
    for i, (k, box) in enumerate(zip(owners(boxes_num, offsets), boxes)):
        for r, c, (left, top, right, bottom) in spans(box, pooled_height, pooled_width, spatial_scale):
            area, d = (right - left) * (bottom - top), d_out[i, :, r, c]
            if area <= 0:
                continue
            down, across = integral_weights(top, bottom, height), integral_weights(left, right, width)
            d_x[k] += d[:, None, None] / area * down[:, None] * across
            for axis, edges, cells, cell in ((0, (left, right), pooled_width, c), (1, (top, bottom), pooled_height, r)):
                other = bottom - top if axis == 0 else right - left
                for sign, at, part in ((-1, edges[0], cell / cells), (1, edges[1], (cell + 1) / cells)):
                    side = np.einsum("chw,h,w->c", x[k], *((down, edge_weights(at, width)) if axis == 0
                                                           else (edge_weights(at, height), across)))
                    moved = sign * ((side - out[i, :, r, c] * other) * d).sum() / area * spatial_scale
                    d_boxes[i, axis] += moved * (1 - part)
                    d_boxes[i, axis + 2] += moved * part
    return d_x, d_boxes


def half_up(v):
    return np.floor(np.abs(v) + 0.5) * np.sign(v)


def cells_of(box, scale, shape, rows, columns):
    """(row, column, pixels) of the cells of a box that is rounded to pixels."""
    x1, y1, x2, y2 = (int(half_up(v * scale)) for v in box)

    def span(k, low, high, cells, n):
        cell = max(high - low + 1, 1) / cells
        return slice(min(max(int(np.floor(k * cell)) + low, 0), n), min(max(int(np.ceil((k + 1) * cell)) + low, 0), n))
    for r in range(rows):
        for c in range(columns):
            yield r, c, (span(r, y1, y2, rows, shape[0]), span(c, x1, x2, columns, shape[1]))


def roi_pool(x, boxes, boxes_num, offsets, pooled_height, pooled_width, spatial_scale):
    out = np.zeros((len(boxes), x.shape[1], pooled_height, pooled_width))
    arg_max = np.full(out.shape, -1, "int64")
    plane = np.arange(x.shape[2] * x.shape[3]).reshape(x.shape[2:])
    for i, (k, box) in enumerate(zip(owners(boxes_num, offsets), boxes)):
        for r, c, at in cells_of(box, spatial_scale, x.shape[2:], pooled_height, pooled_width):
            if plane[at].size:
                part = x[k][(slice(None), *at)].reshape(x.shape[1], -1)
                out[i, :, r, c], arg_max[i, :, r, c] = part.max(1), plane[at].ravel()[part.argmax(1)]
    return out, arg_max


def roi_pool_grad(x, boxes, boxes_num, offsets, arg_max, d_out, pooled_height, pooled_width, spatial_scale):
    d_x = np.zeros((*x.shape[:2], x.shape[2] * x.shape[3]))
    for i, k in enumerate(owners(boxes_num, offsets)):
        for c in range(x.shape[1]):
            there = arg_max[i, c] >= 0
            np.add.at(d_x[k, c], arg_max[i, c][there], d_out[i, c][there])
    return d_x.reshape(x.shape)


def parts_of(box, scale, shape, rows, columns):
    """(row, column, pixels) of the cells of a box whose corners are rounded before they are scaled."""
    x1, y1, x2, y2 = (half_up(v) for v in box)

    def span(k, low, high, cells, n):
        low, high = low * scale, (high + 1) * scale
        cell = max(high - low, 0.1) / cells
        return slice(min(max(int(np.floor(k * cell + low)), 0), n), min(max(int(np.ceil((k + 1) * cell + low)), 0), n))
    for r in range(rows):
        for c in range(columns):
            yield r, c, (span(r, y1, y2, rows, shape[0]), span(c, x1, x2, columns, shape[1]))


def psroi_pool(x, boxes, boxes_num, offsets, pooled_height, pooled_width, output_channels, spatial_scale):
    out = np.zeros((len(boxes), output_channels, pooled_height, pooled_width))
    parts = x.reshape(len(x), output_channels, pooled_height, pooled_width, *x.shape[2:])
    for i, (k, box) in enumerate(zip(owners(boxes_num, offsets), boxes)):
        for r, c, at in parts_of(box, spatial_scale, x.shape[2:], pooled_height, pooled_width):
            part = parts[k, :, r, c][(slice(None), *at)]
            if part.size:
                out[i, :, r, c] = part.mean((1, 2))
    return out


def psroi_pool_grad(x, boxes, boxes_num, offsets, d_out, pooled_height, pooled_width, output_channels, spatial_scale):
    d_x = np.zeros_like(x)
    parts = d_x.reshape(len(x), output_channels, pooled_height, pooled_width, *x.shape[2:])
    for i, (k, box) in enumerate(zip(owners(boxes_num, offsets), boxes)):
        for r, c, at in parts_of(box, spatial_scale, x.shape[2:], pooled_height, pooled_width):
            part = parts[k, :, r, c][(slice(None), *at)]
            if part.size:
                part += (d_out[i, :, r, c] / part[0].size)[:, None, None]
    return d_x


def sampled(x, y, at):
    """x [channels, h, w] at positions y, at [...]: (values, their slopes down and across), 0 outside."""
    h, w = x.shape[1:]
    framed = np.pad(x, ((0, 0), (1, 1), (1, 1)))
    inside = (y > -1) & (at > -1) & (y < h) & (at < w)
    y, at = np.where(inside, y, 0), np.where(inside, at, 0)
    top, left = np.floor(y).astype(int), np.floor(at).astype(int)
    down, across = y - top, at - left
    a, b, c, d = (framed[:, top + 1 + i, left + 1 + k] for i in (0, 1) for k in (0, 1))
    upper, lower = a * (1 - across) + b * across, c * (1 - across) + d * across
    return ((upper * (1 - down) + lower * down) * inside, (lower - upper) * inside,
            ((b - a) * (1 - down) + (d - c) * down) * inside, (top, left, down, across, inside))


def positions(x, offset, weight, stride, padding, dilation, deformable_groups):
    """y and x of all samples: [n, parts, points, oh, ow]."""
    kh, kw = weight.shape[2:]
    n, _, oh, ow = offset.shape
    moved = offset.reshape(n, deformable_groups, kh * kw, 2, oh, ow)
    rows = np.arange(oh)[:, None] * stride[0] - padding[0]
    columns = np.arange(ow) * stride[1] - padding[1]
    point = np.arange(kh * kw)[:, None, None]
    return moved[:, :, :, 0] + rows + point // kw * dilation[0], moved[:, :, :, 1] + columns + point % kw * dilation[1]


def columns_of(x, y, at, parts):
    """Samples and slopes [n, channels, points, oh, ow] of x."""
    n, channels = x.shape[:2]
    grouped = x.reshape(n, parts, channels // parts, *x.shape[2:])
    made = [[sampled(grouped[i, p], y[i, p], at[i, p])[:3] for p in range(parts)] for i in range(n)]
    return [np.array([np.concatenate([part[k] for part in image]) for image in made]) for k in range(3)]


def spread_mask(mask, like, parts):
    """mask for each channel: [n, channels, points, oh, ow]."""
    n, channels, points = like.shape[:3]
    if mask is None:
        return np.ones_like(like)
    return np.repeat(mask.reshape(n, parts, points, *like.shape[3:]), channels // parts, 1)


def deformable_conv(x, offset, weight, mask, stride, padding, dilation, deformable_groups, groups):
    y, at = positions(x, offset, weight, stride, padding, dilation, deformable_groups)
    values = columns_of(x, y, at, deformable_groups)[0]
    values = values * spread_mask(mask, values, deformable_groups)
    n, _, points, oh, ow = values.shape
    values = values.reshape(n, groups, -1, points, oh, ow)
    kernel = weight.reshape(groups, -1, weight.shape[1], points)
    return np.einsum("ngcphw,gocp->ngohw", values, kernel).reshape(n, -1, oh, ow)


def deformable_conv_grad(x, offset, weight, mask, d_out, stride, padding, dilation, deformable_groups, groups):
    y, at = positions(x, offset, weight, stride, padding, dilation, deformable_groups)
    values, down, across = columns_of(x, y, at, deformable_groups)
    strength = spread_mask(mask, values, deformable_groups)
    n, channels, points, oh, ow = values.shape
    kernel = weight.reshape(groups, -1, weight.shape[1], points)
    d = d_out.reshape(n, groups, -1, oh, ow)
    d_values = np.einsum("ngohw,gocp->ngcphw", d, kernel).reshape(values.shape)
    d_weight = np.einsum("ngohw,ngcphw->gocp", d, (values * strength).reshape(n, groups, -1, points, oh, ow))
    by_part = (n, deformable_groups, channels // deformable_groups, points, oh, ow)
    slopes = [(d_values * strength * slope).reshape(by_part).sum(2) for slope in (down, across)]
    d_mask = None if mask is None else (d_values * values).reshape(by_part).sum(2).reshape(mask.shape)
    d_x = np.zeros((n, channels, x.shape[2] + 2, x.shape[3] + 2))
    back = (d_values * strength).reshape(by_part)
    for i in range(n):
        for p in range(deformable_groups):
            top, left, low, right, inside = sampled(x[i, :1], y[i, p], at[i, p])[3]
            mine = d_x[i, p * by_part[2]:(p + 1) * by_part[2]]
            for a in (0, 1):
                for b in (0, 1):
                    share = (low if a else 1 - low) * (right if b else 1 - right) * inside
                    np.add.at(mine, (slice(None), top + 1 + a, left + 1 + b), back[i, p] * share)
    return d_x[:, :, 1:-1, 1:-1], np.stack(slopes, 3).reshape(offset.shape), d_weight.reshape(weight.shape), d_mask


def overlap(a, b, more):
    sides = np.minimum(a[2:], b[2:]) - np.maximum(a[:2], b[:2]) + more
    if (sides - more < 0).any():
        return 0.0
    both = sides.prod()
    area = [0.0 if (c[2:] < c[:2]).any() else np.prod(c[2:] - c[:2] + more) for c in (a, b)]
    return both / (sum(area) - both)


def matrix_nms(bboxes, scores, score_threshold, nms_top_k, keep_top_k, post_threshold, use_gaussian, gaussian_sigma,
               background_label, normalized):
    rows, places, counts = [], [], []
    for image, (boxes, of) in enumerate(zip(bboxes, scores)):
        found = []
        for label in range(len(of)):
            if label == background_label:
                continue
            best = [i for i in np.argsort(-of[label], kind="stable") if of[label][i] > score_threshold]
            best = best[:nms_top_k] if nms_top_k > -1 else best
            highest = []
            for i, box in enumerate(best):
                with_better = [overlap(boxes[box], boxes[b], 0 if normalized else 1) for b in best[:i]]
                with np.errstate(all="ignore"):
                    decay = [np.exp((h * h - o * o) * gaussian_sigma) if use_gaussian else (1 - o) / (1 - h)
                             for o, h in zip(with_better, highest)]
                highest.append(max(with_better, default=0.0))
                score = of[label][box] * np.nanmin([1.0, *decay])
                if score > post_threshold:
                    found.append((label, score, box))
        found.sort(key=lambda one: -one[1])
        found = found[:keep_top_k] if keep_top_k > -1 else found
        rows += [[label, score, *boxes[box]] for label, score, box in found]
        places += [[image * len(boxes) + box] for *_, box in found]
        counts.append(len(found))
    return np.array(rows).reshape(-1, 6), np.array(places, "int32").reshape(-1, 1), np.array(counts, "int32")


def generate_proposals(scores, bbox_deltas, im_shape, anchors, variances, pre_nms_top_n, post_nms_top_n, nms_thresh, min_size,
                       eta, pixel_offset):
    rois, probs, counts = [], [], []
    scaled = im_shape.shape[1] == 3
    pixel_offset = pixel_offset or scaled
    more = 1 if pixel_offset else 0
    anchors, variances = anchors.reshape(-1, 4), variances.reshape(-1, 4)
    for of, delta, size in zip(scores, bbox_deltas, im_shape):
        of = of.transpose(1, 2, 0).ravel()
        delta = delta.transpose(1, 2, 0).reshape(-1, 4) * variances
        sides = anchors[:, 2:] - anchors[:, :2] + more
        centre = anchors[:, :2] + sides / 2 + delta[:, :2] * sides
        half = np.exp(np.minimum(delta[:, 2:], np.log(1000 / 16))) * sides / 2
        limit = size[[1, 0]] - more
        boxes = np.concatenate([np.clip(centre - half, 0, limit), np.clip(centre + half - more, 0, limit)], 1)
        order = np.argsort(-of, kind="stable")
        order = order[:pre_nms_top_n] if pre_nms_top_n > 0 else order
        kept, threshold = [], nms_thresh
        for i in order:
            w, h = boxes[i, 2:] - boxes[i, :2] + more
            if pixel_offset and not (boxes[i, 0] + w / 2 <= size[1] and boxes[i, 1] + h / 2 <= size[0]):
                continue
            if scaled:
                w, h = (boxes[i, 2:] - boxes[i, :2]) / size[2] + 1
            if min(w, h) < max(min_size, 1.0):
                continue
            if nms_thresh <= 0 or all(overlap(boxes[k], boxes[i], more) <= threshold for k in kept):
                kept.append(i)
                threshold = threshold * eta if eta < 1 and threshold > 0.5 else threshold
        found = bool(kept)
        kept = kept[:post_nms_top_n] if nms_thresh > 0 and post_nms_top_n > 0 else kept
        rois.append(boxes[kept] if found else np.zeros((1, 4)))
        probs.append(of[kept] if found else np.zeros(1))
        counts.append(len(rois[-1]))
    return np.concatenate(rois), np.concatenate(probs)[:, None], np.array(counts, "int32")


def distribute_fpn_proposals(fpn_rois, rois_num, offsets, min_level, max_level, refer_level, refer_scale, pixel_offset):
    sides = fpn_rois[:, 2:] - fpn_rois[:, :2]
    area = np.where((sides < 0).any(1), 0, (sides + (1 if pixel_offset else 0)).prod(1))
    level = np.floor(np.log2(np.sqrt(area) / refer_scale + 1e-6) + refer_level)
    level = np.clip(level, min_level, max_level)
    mine, images = owners(rois_num, offsets), len(rois_num) if rois_num is not None else len(offsets) - 1
    order = np.argsort(level, kind="stable")
    restore = np.empty((len(level), 1), "int32")
    restore[order, 0] = np.arange(len(level))
    levels = range(min_level, max_level + 1)
    return ([fpn_rois[level == k] for k in levels], restore,
            [np.bincount(mine[level == k], minlength=images).astype("int32") for k in levels])


def collect_fpn_proposals(multi_rois, multi_scores, multi_rois_num, offsets, post_nms_top_n):
    rois, scores = np.concatenate(multi_rois), np.concatenate([s.ravel() for s in multi_scores])
    mine = np.concatenate([np.repeat(np.arange(len(n)), n) for n in multi_rois_num])
    best = np.argsort(-scores, kind="stable")[:post_nms_top_n]
    best = best[np.argsort(mine[best], kind="stable")]
    return rois[best], np.bincount(mine[best], minlength=len(multi_rois_num[0])).astype("int32")
