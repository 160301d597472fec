"""Sharding rules of ops: a rule returns the placements that each input is to have and those of the results, or None, for all
inputs Replicate. Each dimension of the mesh is decided by itself; no two of them divide one axis."""
from ... import _core
from ...framework.dtype import dtype_name
from .dispatch import agree
from .placement_type import Partial, ReduceType, Replicate, Shard
from .redistribute import fills, line_of

DROPPED = None, None, True  # a result that nobody reads
_SUMS = (ReduceType.kRedSum, ReduceType.kRedAvg)

# Ops each of whose elements depends on those at its index, beside those that the op table says.
_POINTWISE = frozenset("""
abs angle bitwise_not clip equal greater_equal greater_than imag isfinite isinf isnan less_equal less_than logical_and logical_not
logical_or logical_xor not_equal pow real where zeros_like ones_like full_like
operator.add operator.sub operator.mul operator.truediv operator.floordiv operator.mod operator.pow operator.and operator.or operator.xor
operator.lt operator.le operator.eq operator.ne operator.gt operator.ge operator.neg operator.abs operator.invert
""".split())
_LINEAR = frozenset(("neg", "assign", "operator.neg", "add", "subtract", "operator.add", "operator.sub"))
_BILINEAR = frozenset(("multiply", "operator.mul", "divide", "operator.truediv"))


def rule_of(name, function):
    """The rule for an op, or None."""
    if name in _POINTWISE or getattr(function, "__pointwise__", False):
        return pointwise
    return _RULES.get(name)


# ---- elementwise ----------------------------------------------------------------------------

def _broadcast(tensors):
    shape = []
    for t in tensors:
        dims = t.shape
        shape = [1] * (len(dims) - len(shape)) + shape
        for i, n in enumerate(reversed(dims)):
            if n != 1:
                shape[len(shape) - 1 - i] = n
    return shape


def _linear_at(call, at):
    """The common Partial of a linear op's inputs along a dimension of the mesh, and the inputs that have it; or None."""
    found = [call.placements(t)[at] for t in call.tensors]
    terms = [p for p in found if p.is_partial()]
    if not terms or any(p != terms[0] for p in terms) or terms[0].reduce_type() not in _SUMS:
        return None
    numbers = len(call.args) + len(call.keywords) - len(call.tensors)
    if call.name in _LINEAR and len(terms) == len(found) and not numbers:
        return found
    first = bool(call.args) and call.args[0] is call.tensors[0] and dtype_name(call.tensors[0].dtype) != "bool"
    scaled = call.name in _BILINEAR and first and found[0].is_partial() and all(p.is_replicated() for p in found[1:])
    return found if scaled else None


def pointwise(call):
    """Elementwise ops with broadcasting: the inputs are divided as the first divided one is."""
    shape = _broadcast(call.tensors)
    targets, out, taken = call.replicated(), [Replicate()] * call.mesh.ndim, set()
    for at in call.dims:
        terms = _linear_at(call, at)
        if terms is not None:
            for target, p in zip(targets, terms):
                target[at] = p
            out[at] = terms[0]
            continue
        axis = next((a for a in _divided_axes(call, shape, at) if a not in taken), None)
        if axis is None:
            continue
        taken.add(axis)
        out[at] = Shard(axis)
        for target, t in zip(targets, call.tensors):
            own = axis - (len(shape) - t.ndim)
            if own >= 0 and t.shape[own] == shape[axis]:
                target[at] = Shard(own)
    return targets, [(out, shape)]


def _divided_axes(call, shape, at):
    for t in call.tensors:
        p = call.placements(t)[at]
        if p.is_shard():
            axis = p.get_dim() + len(shape) - t.ndim
            if t.shape[p.get_dim()] == shape[axis] and shape[axis] > 1:
                yield axis


# ---- products -------------------------------------------------------------------------------

def _letters(x, y, transpose_x, transpose_y):
    """Names of the axes of two factors and of the product: m rows, k summed, n columns, numbers for the batch's."""
    def named(t, transposed, first, second):
        batch = [i - (t.ndim - 2) for i in range(t.ndim - 2)]
        return batch + ([second, first] if transposed else [first, second])
    a, b = named(x, transpose_x, "m", "k"), named(y, transpose_y, "k", "n")
    longer = a if len(a) >= len(b) else b
    return a, b, longer[:-2] + ["m", "n"]


def _factors(call, x, y, transpose_x, transpose_y):
    """Placements of two factors and of their product, or None."""
    if x.ndim < 2 or y.ndim < 2:
        return None
    a, b, product = _letters(x, y, transpose_x, transpose_y)
    own_x, own_y, out = ([Replicate()] * call.mesh.ndim for _ in range(3))
    taken = set()
    for at in call.dims:
        letter = _letter_at(call.placements(x)[at], a, x, call.mesh.shape[at])
        letter = _letter_at(call.placements(y)[at], b, y, call.mesh.shape[at]) if letter is None else letter
        if letter is None or letter in taken:
            continue
        taken.add(letter)
        if letter in a and x.shape[a.index(letter)] > 1:
            own_x[at] = Shard(a.index(letter))
        if letter in b and y.shape[b.index(letter)] > 1:
            own_y[at] = Shard(b.index(letter))
        if letter == "k":
            out[at] = Partial()
        else:
            out[at] = Shard(product.index(letter))
    shape = [_size(letter, a, x, b, y) for letter in product]
    return own_x, own_y, out, shape


def _letter_at(placement, letters, t, parts):
    found = placement.is_shard() and t.shape[placement.get_dim()] > 1 and fills(t.shape[placement.get_dim()], parts)
    return letters[placement.get_dim()] if found else None


def _size(letter, a, x, b, y):
    sizes = [t.shape[letters.index(letter)] for letters, t in ((a, x), (b, y)) if letter in letters]
    return max(sizes)


def matmul(call):
    """Products of matrices; factors divided along the summed axis give a Partial."""
    given = call.given if call.name != "operator.matmul" else {"x": call.args[0], "y": call.args[1]}
    x, y = given["x"], given["y"]
    if x is y:
        return None
    found = _factors(call, x, y, given.get("transpose_x", False), given.get("transpose_y", False))
    if found is None:
        return None
    own_x, own_y, out, shape = found
    targets = call.replicated()
    targets[call.index(x)], targets[call.index(y)] = own_x, own_y
    return targets, [(out, shape)]


def linear(call):
    """x @ weight + bias: as the product, and the bias added to what it makes whole."""
    x, weight, bias = (call.given[name] for name in ("x", "weight", "bias"))

    def composed():
        product = _core.matmul(x, weight)
        return product if bias is None else _core.add(product, bias)
    return composed


# ---- reductions -----------------------------------------------------------------------------

def _axes(axis, ndim):
    if axis is None or isinstance(axis, (list, tuple)) and not axis:
        return list(range(ndim))
    axes = axis if isinstance(axis, (list, tuple)) else [axis]
    return [a + ndim if a < 0 else a for a in axes] if all(isinstance(a, int) for a in axes) else None


def _reduction(kind):
    """A rule of reductions; kind: the Partial that a reduced divided axis leaves, or None."""
    def rule(call):
        x, keep = call.given["x"], call.given.get("keepdim", False)
        axes = _axes(call.given.get("axis"), x.ndim)
        if axes is None:
            return None
        target, out = call.replicated()[0], [Replicate()] * call.mesh.ndim
        for at in call.dims:
            p = call.placements(x)[at]
            if p.is_partial() and kind is not None and kind in _SUMS and p.reduce_type() in _SUMS:
                target[at] = out[at] = p
            if not p.is_shard():
                continue
            axis, even = p.get_dim(), x.shape[p.get_dim()] % call.mesh.shape[at] == 0
            if axis not in axes:
                target[at], out[at] = p, Shard(axis if keep else axis - sum(a < axis for a in axes))
            elif even and kind is not None or kind is ReduceType.kRedSum and fills(x.shape[axis], call.mesh.shape[at]):
                target[at], out[at] = p, Partial(kind)
        shape = [1 if i in axes else n for i, n in enumerate(x.shape) if keep or i not in axes]
        return _targets(call, x, target), [(out, shape)]
    return rule


def _targets(call, x, target):
    targets = call.replicated()
    targets[call.index(x)] = target
    return targets


# ---- ops that leave some axes alone ------------------------------------------------------------

def _kept(call, x, axes, names=("x",)):
    """x's placements as far as they divide none of the axes."""
    return [p if p.is_shard() and p.get_dim() not in axes else Replicate() for p in call.placements(x)]


def softmax(call):
    """Along one axis: the others may be divided."""
    x = call.given["x"]
    target = _kept(call, x, _axes(call.given["axis"], x.ndim))
    return _targets(call, x, target), [(target, x.shape)]


def along(call):
    """Sorting, sums and the like along one axis, each result of x's shape but for that axis."""
    x = call.given["x"]
    axes = _axes(call.given.get("axis", call.given.get("dim")), x.ndim)
    if axes is None or len(axes) >= max(x.ndim, 1) or not call.even(x) or call.given.get("flatten") or call.given.get("k_tensor") is not None:
        return None
    target = _kept(call, x, axes)
    return _targets(call, x, target), [(target, None)]


def attention(call):
    """Attention of [batch, positions, heads, size]: batch and heads may be divided."""
    q, k, v = (call.given[name] for name in ("query", "key", "value"))
    if call.given["attn_mask"] is not None or call.given["dropout_p"] or q.ndim != 4 or not all(call.even(t) for t in (q, k, v)):
        return None
    target = [p if p.is_shard(0) or p.is_shard(2) else Replicate() for p in call.placements(q)]
    for at, p in enumerate(target):
        if p.is_shard() and any(t.shape[p.get_dim()] % call.mesh.shape[at] for t in (k, v)) or len({id(t) for t in (q, k, v)}) < 3:
            return None
    return [list(target) for _ in call.tensors], [(target, None)]


def layer_norm(call):
    """Over the last axes: the first ones may be divided."""
    x, begin = call.given["x"], call.given["begin_norm_axis"]
    target = _kept(call, x, range(begin, x.ndim))
    return _targets(call, x, target), [(target, x.shape), DROPPED]


def batched(*names):
    """A rule of ops that treat the entries of axis 0 of the inputs of these names by themselves."""
    def rule(call):
        inputs = [call.given[name] for name in names if isinstance(call.given.get(name), _core.Tensor)]
        dim = next((at for at in call.dims for t in inputs if call.placements(t)[at].is_shard(0)), None)
        if dim is None or len({t.shape[0] for t in inputs}) > 1 or inputs[0].shape[0] % call.mesh.shape[dim]:
            return None
        targets, out = call.replicated(), [Replicate()] * call.mesh.ndim
        out[dim] = Shard(0)
        for t in inputs:
            targets[call.index(t)] = list(out)
        return targets, [(out, None)]
    return rule


def embedding(call):
    """Ids or columns may be divided; a table divided by rows gives a Partial."""
    ids, table = call.given["x"], call.given["weight"]
    own_ids, own_table, out = ([Replicate()] * call.mesh.ndim for _ in range(3))
    rows = None
    for at in call.dims:
        p, q = call.placements(ids)[at], call.placements(table)[at]
        if p.is_shard():
            own_ids[at] = out[at] = p
        elif q.is_shard(1):
            own_table[at], out[at] = q, Shard(ids.ndim)
        elif q.is_shard(0) and rows is None and call.given["padding_idx"] == -1 and not call.given["sparse"]:
            own_table[at], out[at], rows = q, Partial(), at
    shape = [*ids.shape, table.shape[1]]
    targets = _targets(call, ids, own_ids)
    targets[call.index(table)] = own_table
    if rows is not None and call.mesh.coordinates() is not None:
        start = -(-table.shape[0] // call.mesh.shape[rows]) * call.mesh.coordinates()[rows]
        height = table.shape[0]

        def of_own_rows(x, weight, **_):
            return _core.mp_embedding(weight, x, start_index=start, vocab_size=height)
        call.args, call.keywords = [], {}
        call.keywords.update(x=ids, weight=table)
        call.spots = [(call.keywords, "x" if t is ids else "weight", None) for t in call.tensors]
        call.function = of_own_rows
    return targets, [(out, shape)]


def cross_entropy(call):
    """Losses of rows: rows may be divided, and classes where the label is a number. Results: softmax and loss, one of each row."""
    logits, label = call.given["logits"], call.given["label"]
    first = call.name == "class_cross_entropy"
    axis = call.given.get("axis", -1)
    classes = axis + logits.ndim if axis < 0 else axis
    if label.ndim < logits.ndim - 1 or not call.even(logits):
        return None
    own, labels, out = ([Replicate()] * call.mesh.ndim for _ in range(3))
    for at in call.dims:
        p, q = call.placements(logits)[at], call.placements(label)[at]
        p = p if p.is_shard() else q
        if p.is_shard() and p.get_dim() != classes and (p.get_dim() < classes or label.ndim == logits.ndim):
            if p in own or logits.shape[p.get_dim()] % call.mesh.shape[at]:
                continue
            own[at], labels[at], out[at] = p, p, p
    targets = _targets(call, logits, own)
    targets[call.index(label)] = labels
    split = _class_split(call, logits, classes) if first or not call.given["soft_label"] and call.given["use_softmax"] else None
    if split is not None and call.mesh.coordinates() is not None and all(p.is_replicated() for p in own):
        return lambda: _over_classes(call, logits, label, split, first)
    return targets, [(out, None), DROPPED if first else (out, None)]


def _class_split(call, logits, classes):
    """The dimension of the mesh that divides the classes, if they are the last axis and nothing else is divided."""
    found = [at for at in call.dims if call.placements(logits)[at].is_shard()]
    last = classes == logits.ndim - 1
    return found[0] if last and len(found) == 1 and call.placements(logits)[found[0]].is_shard(classes) else None


def _over_classes(call, logits, label, at, first):
    from .dist_tensor import DistTensor, make
    placements = [Replicate()] * call.mesh.ndim
    own = list(placements)
    own[at] = Shard(logits.ndim - 1)
    whole = call.local(label, placements)
    whole = whole if whole.ndim == logits.ndim else _core.unsqueeze(whole, [-1])
    softmax, loss = _core.mp_cross_entropy(call.local(logits, own), whole, ignore_index=call.given["ignore_index"],
                                           **line_of(call.mesh, at).place)
    rows = logits.shape[:-1]
    loss = make(DistTensor, loss, call.mesh, placements, [*rows, 1], loss.dtype)
    if first:  # beside the losses: the logarithm of each row's sum and its largest logit, which nobody reads here
        return loss, None
    return make(DistTensor, softmax, call.mesh, own, logits.shape, softmax.dtype), loss


# ---- shapes ---------------------------------------------------------------------------------

def transpose(call):
    """Axes in another order."""
    x, perm = call.given["x"], call.given["perm"]
    if not isinstance(perm, (list, tuple)) or not all(isinstance(i, int) for i in perm):
        return None
    perm = [i + x.ndim if i < 0 else i for i in perm]
    target = call.placements(x)
    out = [Shard(perm.index(p.get_dim())) if p.is_shard() else p for p in target]
    return _targets(call, x, target), [(out, [x.shape[i] for i in perm])]


def _resolved(shape, x):
    """The shape that reshape makes of x, or None if only tensors say it."""
    if not isinstance(shape, (list, tuple)) or not all(isinstance(n, int) for n in shape):
        return None
    shape = [x.shape[i] if n == 0 and i < x.ndim else n for i, n in enumerate(shape)]
    known = 1
    for n in shape:
        known *= n if n != -1 else 1
    if -1 in shape:
        if not known or x.size % known:
            return None
        shape[shape.index(-1)] = x.size // known
        return shape
    return shape if known == x.size else None


def _product(numbers):
    n = 1
    for number in numbers:
        n *= number
    return n


def reshape(call):
    """A divided axis stays divided where the pieces stay blocks of one axis."""
    x, shape = call.given["x"], _resolved(call.given["shape"], call.given["x"])
    if shape is None or not call.even(x) or not x.size:
        return None
    target, out, local = call.replicated()[0], [Replicate()] * call.mesh.ndim, list(shape)
    for at, p in enumerate(call.placements(x)):
        n = call.mesh.shape[at]
        if p.is_partial() and p.reduce_type() in _SUMS:
            target[at] = out[at] = p
        if not p.is_shard():
            continue
        before = _product(x.shape[:p.get_dim()])
        to = next((i for i, size in enumerate(shape) if _product(shape[:i]) == before and size % n == 0 and size > 1), None)
        if to is not None and Shard(to) not in out:
            target[at], out[at], local[to] = p, Shard(to), local[to] // n
    call.change("shape", local)
    return _targets(call, x, target), [(out, shape)]


def flatten(call):
    """Several axes as one: a reshape."""
    x = call.given["x"]
    first, last = (a + x.ndim if a < 0 else a for a in (call.given["start_axis"], call.given["stop_axis"]))
    if not x.ndim or not 0 <= first <= last < x.ndim:
        return None
    return lambda: _core.reshape(x, [*x.shape[:first], _product(x.shape[first:last + 1]), *x.shape[last + 1:]])


def dropout(call):
    """Dropout is a product with what it makes of ones, which all processes take from the mesh's first one."""
    x, function, given = call.given["x"], call.function, dict(call.given)

    def composed():
        given["x"] = _core.full(x.shape, 1, dtype=x.dtype)
        scaled, kept = function(**given)
        return _core.multiply(x, agree(call.mesh, scaled)), kept
    return composed


def squeeze(call):
    """Axes of size 1 go; none of them is divided in earnest."""
    x, axis = call.given["x"], call.given.get("axis")
    axes = [i for i, n in enumerate(x.shape) if n == 1] if axis is None else _axes(axis, x.ndim)
    if axes is None or not call.even(x):
        return None
    gone = [a for a in axes if x.shape[a] == 1]
    target = _kept(call, x, gone)
    out = [Shard(p.get_dim() - sum(a < p.get_dim() for a in gone)) if p.is_shard() else p for p in target]
    if not gone:
        return None
    call.change("axis", gone)
    return _targets(call, x, target), [(out, [n for i, n in enumerate(x.shape) if i not in gone])]


def unsqueeze(call):
    """New axes of size 1."""
    x, axis = call.given["x"], call.given["axis"]
    axes = axis if isinstance(axis, (list, tuple)) else [axis]
    if not all(isinstance(a, int) for a in axes):
        return None
    order, shape = list(range(x.ndim)), list(x.shape)
    for a in axes:
        a = a + len(order) + 1 if a < 0 else a
        order.insert(a, None)
        shape.insert(a, 1)
    target = call.placements(x)
    out = [Shard(order.index(p.get_dim())) if p.is_shard() else p for p in target]
    return _targets(call, x, target), [(out, shape)]


def joined(call):
    """Tensors one behind the other along an axis that is not divided; the others are as the first one's."""
    tensors, axis = call.given["x"], call.given["axis"]
    if call.given.get("axis_tensor") is not None or len(call.tensors) != len(tensors) or len({id(t) for t in tensors}) != len(tensors):
        return None
    first = next(t for t in tensors if any(not p.is_replicated() for p in call.placements(t)) or t is tensors[-1])
    axis = axis + first.ndim if axis < 0 else axis
    target = _kept(call, first, [axis])
    if any(t.ndim != first.ndim for t in tensors):
        return None
    shape = list(first.shape)
    shape[axis] = sum(t.shape[axis] for t in tensors)
    return [list(target) for _ in call.tensors], [(target, shape)]


def stacked(call):
    """Tensors along a new axis; all are as the first divided one is."""
    tensors, axis = call.given["x"], call.given["axis"]
    if len(call.tensors) != len(tensors) or any(t.shape != tensors[0].shape for t in tensors):
        return None
    first = next((t for t in tensors if any(p.is_shard() for p in call.placements(t))), tensors[0])
    axis = axis + first.ndim + 1 if axis < 0 else axis
    target = [p if p.is_shard() else Replicate() for p in call.placements(first)]
    out = [Shard(p.get_dim() + (p.get_dim() >= axis)) if p.is_shard() else p for p in target]
    return [list(target) for _ in call.tensors], [(out, [*first.shape[:axis], len(tensors), *first.shape[axis:]])]


def split(call):
    """Parts along an axis that is not divided."""
    x, axis = call.given["x"], call.given["axis"]
    if call.given.get("axis_tensor") is not None or not isinstance(axis, int) or not call.even(x):
        return None
    target = _kept(call, x, [axis + x.ndim if axis < 0 else axis])
    return _targets(call, x, target), [(target, None)]


def getitem(call):
    """Axes that are taken whole stay divided; for plain keys."""
    x, key = call.args
    keys = key if isinstance(key, tuple) else (key,)
    if not all(isinstance(k, (int, slice)) or k is None or k is Ellipsis for k in keys) or any(isinstance(k, bool) for k in keys):
        return None
    missing = x.ndim - sum(k is not None and k is not Ellipsis for k in keys)
    spread = []
    for k in keys:
        spread += [slice(None)] * missing if k is Ellipsis else [k]
    if Ellipsis not in [k if k is Ellipsis else None for k in keys]:
        spread += [slice(None)] * missing
    axis, at, whole = 0, 0, {}
    for k in spread:
        if k is None:
            at += 1
            continue
        if isinstance(k, slice):
            if k == slice(None):
                whole[axis] = at
            at += 1
        axis += 1
    if not call.even(x):
        return None
    target = [p if p.is_shard() and p.get_dim() in whole else Replicate() for p in call.placements(x)]
    out = [Shard(whole[p.get_dim()]) if p.is_shard() else p for p in target]
    return _targets(call, x, target), [(out, None)]


_RULES = {
    "matmul": matmul, "operator.matmul": matmul, "linear": linear,
    "sum": _reduction(ReduceType.kRedSum), "mean": _reduction(ReduceType.kRedAvg),
    **{name: _reduction(None) for name in ("max", "min", "amax", "amin", "prod", "any", "all", "logsumexp")},
    "softmax": softmax, "log_softmax": softmax, "layer_norm": layer_norm, "embedding": embedding,
    "class_cross_entropy": cross_entropy, "softmax_with_cross_entropy": cross_entropy,
    "transpose": transpose, "reshape": reshape, "squeeze": squeeze, "unsqueeze": unsqueeze,
    "flatten": flatten, "dropout": dropout,
    "concat": joined, "stack": stacked, "split": split, "getitem": getitem,
    **{name: along for name in ("cumsum", "cumprod", "sort", "argsort", "flip", "topk")}, "argmax": _reduction(None), "argmin": _reduction(None),
    **{name: batched("x") for name in ("conv1d", "conv2d", "conv3d", "max_pool2d", "avg_pool2d", "adaptive_avg_pool2d",
                                       "adaptive_max_pool2d", "group_norm", "instance_norm")},
    "scaled_dot_product_attention": attention,
}
