"""Operators of text matching and ranking of Paddle 1.x on sequences (match_matrix_tensor, var_conv_2d, filter_by_instag,
tree_conv), for the operator-by-operator interpreter in late.py. They call ops, whose rules give their gradients."""
import numpy as np

from .. import _core


def refuse(op, argument, found, expected):
    """The error of an argument."""
    return ValueError(f"(InvalidArgument) {op}: {argument} is {found}; expected {expected}")


def described(x):
    """A tensor's dtype and shape, for errors."""
    return f"{str(x.dtype).removeprefix('paddle.')}{list(x.shape)}"


def offsets_of(op, given, slot):
    """The offsets of the last level of a slot's sequences."""
    x = given[slot][0]
    if not x._lod:
        raise refuse(op, slot, f"{described(x)} without sequences (LoD)", "sequences")
    return x._lod[-1]


def spans(offsets):
    """(begin, end) of each sequence."""
    return list(zip(offsets, offsets[1:]))


def in_a_row(parts, like, width=1):
    """Tensors of [rows, width] one behind the other, as sequences."""
    out = _core.concat(parts, 0) if parts else _core.full([0, width], 0, like.dtype)
    out._lod = [np.cumsum([0, *(part.shape[0] for part in parts)]).tolist()]
    return out


def match_matrix_tensor(given, outputs, attrs):
    """x · W[:, t] · yᵀ of each pair of sequences and each of dim_t matrices, in one column."""
    op, count = "match_matrix_tensor", attrs.get("dim_t", 1)
    x, y, w = (given[slot][0] for slot in ("X", "Y", "W"))
    if x.ndim != 2 or y.ndim != 2 or list(w.shape) != [x.shape[1], count, y.shape[1]]:
        raise refuse(op, "W", described(w), f"[{x.shape[-1]}, {count}, {y.shape[-1]}] for X {described(x)} and Y {described(y)}")
    pairs = list(zip(spans(offsets_of(op, given, "X")), spans(offsets_of(op, given, "Y"))))
    if len(pairs) != len(x._lod[-1]) - 1 or len(pairs) != len(y._lod[-1]) - 1:
        raise refuse(op, "Y", f"{len(y._lod[-1]) - 1} sequences", f"as many as X has, {len(x._lod[-1]) - 1}")
    between = _core.reshape(_core.matmul(x, _core.reshape(w, [x.shape[1], -1])), [-1, count, y.shape[1]])
    parts = []
    for (a, b), (c, d) in pairs:
        found = _core.matmul(_core.transpose(between[a:b], [1, 0, 2]), y[c:d], transpose_y=True)
        parts.append(_core.reshape(found, [-1, 1]))
    return {"Out": [in_a_row(parts, x)], "Tmp": [_core.reshape(between, [-1, 1])]}


def var_conv_2d(given, outputs, attrs):
    """The convolution of images of different sizes, whose heights and widths are the lengths of ROW's and COLUMN's sequences;
    as large as they are, over the strides."""
    from ..nn.functional import unfold
    op, x, w = "var_conv_2d", given["X"][0], given["W"][0]
    channels, filters = attrs.get("InputChannel", 1), attrs.get("OutputChannel", 1)
    kernel, stride = ([attrs.get(f"{what}{side}", 1) for side in "HW"] for what in ("Kernel", "Stride"))
    if min(channels, filters, *kernel, *stride) < 1:
        raise refuse(op, "KernelH", f"{kernel[0]}, KernelW {kernel[1]}, strides {stride}", "1 or more, as are channels")
    if list(w.shape) != [filters, channels * kernel[0] * kernel[1]]:
        raise refuse(op, "W", described(w), f"[{filters}, {channels * kernel[0] * kernel[1]}]")
    sizes = [np.diff(offsets_of(op, given, slot)).tolist() for slot in ("ROW", "COLUMN")]
    of = spans(offsets_of(op, given, "X"))
    if len(of) != len(sizes[0]) or len(of) != len(sizes[1]) or any(
            b - a != channels * h * v for (a, b), h, v in zip(of, *sizes)):
        raise refuse(op, "X", f"sequences of lengths {[b - a for a, b in of]}",
                     f"InputChannel · rows · columns elements an image, {channels} times {list(zip(*sizes))}")
    before = [k // 2 for k in kernel]
    behind = [k - 1 - b for k, b in zip(kernel, before)]
    outs, columns = [], []
    for (a, b), h, v in zip(of, *sizes):
        if a == b:
            outs.append(_core.full([0, 1], 0, x.dtype))
            columns.append(outs[-1])
            continue
        windows = unfold(_core.reshape(x[a:b], [1, channels, h, v]), kernel, stride, before + behind)[0]
        columns.append(_core.reshape(windows, [-1, 1]))
        outs.append(_core.reshape(_core.matmul(w, windows), [-1, 1]))
    return {"Out": [in_a_row(outs, x)], "Col": [in_a_row(columns, x)]}


def filter_by_instag(given, outputs, attrs):
    """The instances (sequences of rows with is_lod, else rows) with one of the tags; LossWeight is 1 for each. Without any: one row
    of out_val_if_empty, with weight 0."""
    op, x, wanted = "filter_by_instag", given["Ins"][0], set(given["Filter_tag"][0].numpy().reshape(-1).tolist())
    if x.ndim < 1:
        raise refuse(op, "Ins", described(x), "rows")
    tags, owned = given["Ins_tag"][0].numpy().reshape(-1), spans(offsets_of(op, given, "Ins_tag"))
    whole = attrs.get("is_lod", True) and bool(x._lod)
    rows = spans(x._lod[-1]) if whole else [(i, i + 1) for i in range(x.shape[0])]
    if len(rows) != len(owned):
        raise refuse(op, "Ins_tag", f"{len(owned)} sequences of tags", f"one each of {len(rows)} instances")
    kept = [span for span, (a, b) in zip(rows, owned) if wanted.intersection(tags[a:b].tolist())]
    lengths = [b - a for a, b in kept] or [1]
    begins = np.cumsum([0, *lengths])
    if kept:
        out = _core.gather(x, _core.to_tensor(np.concatenate([np.arange(a, b) for a, b in kept]), dtype="int64"), 0)
    else:
        out = _core.full([1, *x.shape[1:]], attrs.get("out_val_if_empty", 0), x.dtype)
        if not x.stop_gradient:  # a gradient of zeros flows back
            out = _core.add(out, _core.scale(_core.sum(x), 0.0))
    where = [[begin, a, b - a] for begin, (a, b) in zip(begins.tolist(), kept)] or [[0, 1, 1]]
    weights = _core.full([len(lengths), 1], 1.0 if kept else 0.0, "float32")
    index = _core.to_tensor(np.array(where), dtype="int64")
    out._lod = [begins.tolist()]
    weights._lod = index._lod = [list(range(len(lengths) + 1))]
    return {"Out": [out], "LossWeight": [weights], "IndexMap": [index]}


def _patch_weights(edges, nodes, depth):
    """[nodes, nodes, 3]: by how much a node belongs to the left, right and top of the patch of another (Mou et al., 2016)."""
    children, count = {}, 1
    for parent, child in edges.tolist():
        if not parent or not child:
            break
        if not (0 < parent <= nodes and 0 < child <= nodes):
            raise refuse("tree_conv", "EdgeSet", f"an edge {parent} – {child}", f"numbers of nodes, 1 to {nodes}")
        children.setdefault(parent, []).append(child)
        count += 1
    found = np.zeros((nodes, nodes, 3))
    for root in range(1, min(count, nodes) + 1):
        open_nodes, seen = [(root, 1, 1, 0)], set()
        while open_nodes:
            node, place, siblings, level = open_nodes.pop()
            if node in seen:
                continue
            seen.add(node)
            top = (depth - level) / depth
            left = (1 - top) * (0.5 if siblings == 1 else (place - 1) / (siblings - 1))
            found[root - 1, node - 1] += left, (1 - top) * (1 - left), top
            if level + 1 < depth:
                below = children.get(node, [])
                open_nodes += [(child, i, len(below), level + 1) for i, child in enumerate(below, 1)]
    return found


def tree_conv(given, outputs, attrs):
    """A convolution over the nodes of trees: each one's descendants above max_depth, with weights by their place."""
    edges, x, w = (given[slot][0] for slot in ("EdgeSet", "NodesVector", "Filter"))
    depth = attrs.get("max_depth", 2)
    if x.ndim != 3 or edges.ndim != 3 or edges.shape[0] != x.shape[0] or edges.shape[2] != 2:
        raise refuse("tree_conv", "EdgeSet", described(edges), f"int32 [N, edges, 2] for NodesVector {described(x)}")
    if w.ndim != 4 or list(w.shape[:2]) != [x.shape[2], 3]:
        raise refuse("tree_conv", "Filter", described(w), f"[{x.shape[2]}, 3, output_size, filters]")
    if depth < 1:
        raise refuse("tree_conv", "max_depth", depth, "1 or more")
    nodes = x.shape[1]
    weights = np.stack([_patch_weights(one, nodes, depth) for one in edges.numpy()]) if x.shape[0] else np.zeros((0, nodes, nodes, 3))
    weights = weights.transpose(0, 1, 3, 2).reshape(len(weights), nodes * 3, nodes)
    patches = _core.matmul(_core.to_tensor(weights, dtype=x.dtype), x)
    patches = _core.reshape(patches, [-1, nodes, 3 * x.shape[2]])
    kernel = _core.reshape(_core.transpose(w, [1, 0, 2, 3]), [3 * x.shape[2], -1])
    return {"Out": [_core.reshape(_core.matmul(patches, kernel), [-1, nodes, *w.shape[2:]])]}
