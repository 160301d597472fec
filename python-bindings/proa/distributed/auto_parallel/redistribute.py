"""Changes of placement of one process's part of a tensor, all differentiable. Throughout, the gradient of a part of a Shard is the
part of the gradient, and that of a Replicate or of a term of a Partial the whole gradient, equal on all processes."""
from ... import _core
from ...framework.dtype import dtype_name
from ..group import _State
from .placement_type import ReduceType, Replicate

_REDUCED = {ReduceType.kRedMax: "max", ReduceType.kRedMin: "min", ReduceType.kRedProd: "prod", ReduceType.kRedAny: "any",
            ReduceType.kRedAll: "all"}
_SUMMED = ("int32", "int64", "float16", "bfloat16", "float32", "float64")


def piece(size, parts):
    """The size of a piece: the first pieces have it, then comes a smaller one, or empty ones."""
    return -(-size // parts)


def bounds(size, parts, at):
    """Begin and end of piece `at`."""
    n = piece(size, parts)
    return min(at * n, size), min((at + 1) * n, size)


def fills(size, parts):
    """Whether no piece is empty."""
    return piece(size, parts) * (parts - 1) < size


def local_shape(shape, mesh, placements, coordinates):
    """The shape of the part at these coordinates."""
    shape = list(shape)
    for at, p in enumerate(placements):
        if p.is_shard():
            begin, end = bounds(shape[p.get_dim()], mesh.shape[at], coordinates[at])
            shape[p.get_dim()] = end - begin
    return shape


def line_of(mesh, at):
    """The processes along one dimension of the mesh; kept while their group lasts."""
    rank = _core.dist_place()[0]
    line = mesh._line_cache.get((rank, at))
    if line is None or not line.lasts():
        line = mesh._line_cache[rank, at] = _Line(mesh, at)
    return line


class _Line:
    """The processes along one dimension of the mesh, in its order; Proa's groups have theirs by rank."""

    def __init__(self, mesh, at):
        self.size, self.here = mesh.shape[at], mesh.coordinates()[at]
        self.group = mesh.group(at)
        line = next(line for line in mesh._lines((at,)) if _core.dist_place()[0] in line)
        ranks = sorted(line)
        self.to_group = None if ranks == line else [line.index(r) for r in ranks]    # of group rank g: its index in the mesh
        self.to_mesh = None if ranks == line else [ranks.index(r) for r in line]

    def lasts(self):
        """Whether the group is still there."""
        return _State.groups.get(self.group.id) is self.group

    @property
    def place(self):
        return {"group": self.group.id, "rank": self.group.rank, "nranks": self.size}


def _cut(x, axis, begin, end):
    return x if begin == 0 and end == x.shape[axis] else _core.slice(x, [axis], [begin], [end])


def _padded(x, axis, size):
    """x with zeros behind it along an axis."""
    if x.shape[axis] == size:
        return x
    shape = list(x.shape)
    shape[axis] = size - shape[axis]
    return _core.concat([x, _core.full(shape, 0, dtype=x.dtype)], axis)


def _ordered(x, axis, order):
    """The equal parts of an axis in another order."""
    if order is None:
        return x
    parts = _core.split(x, [x.shape[axis] // len(order)] * len(order), axis=axis)
    return _core.concat([parts[i] for i in order], axis)


def _moved(x, axis, to):
    """x with an axis moved to the front (0) or the end (−1), and the way back."""
    to = x.ndim - 1 if to < 0 else to
    if axis == to:
        return x, None
    order = [i for i in range(x.ndim) if i != axis]
    order.insert(to, axis)
    back = [order.index(i) for i in range(x.ndim)]
    return _core.transpose(x, order), back


def _back(x, back):
    return x if back is None else _core.transpose(x, back)


def gathered(x, axis, size, line):
    """The whole of an axis of `size`, of which each process has a piece."""
    x, back = _moved(_padded(x, axis, piece(size, line.size)), axis, -1)
    whole = _ordered(_core.mp_concat(x, **line.place), x.ndim - 1, line.to_mesh)
    return _cut(_back(whole, back), axis, 0, size)


def divided(x, axis, line):
    """This process's piece of an axis that all have whole."""
    size = x.shape[axis]
    begin, end = bounds(size, line.size, line.here)
    x, back = _moved(_padded(x, axis, piece(size, line.size) * line.size), axis, -1)
    part = _core.mp_split(_ordered(x, x.ndim - 1, line.to_group), **line.place)
    return _cut(_back(part, back), axis, 0, end - begin)


def reduced(x, kind, line):
    """The whole of which each process has a term."""
    if kind not in _REDUCED:
        wide = x if dtype_name(x.dtype) in _SUMMED else _core.cast(x, "int64")
        total = _core.mp_all_reduce(wide, group=line.group.id)
        total = total / line.size if kind is ReduceType.kRedAvg else total
        return total if total.dtype == x.dtype else _core.cast(total, x.dtype)
    terms = gathered(_core.unsqueeze(x, [0]), 0, line.size, line)
    return getattr(_core, _REDUCED[kind])(terms, 0)


def reduced_and_divided(x, kind, axis, line):
    """This process's piece of the whole of which each process has a term."""
    size, summed = x.shape[axis], kind in (ReduceType.kRedSum, ReduceType.kRedAvg)
    if not summed or size % line.size or dtype_name(x.dtype) not in _SUMMED:
        return divided(reduced(x, kind, line), axis, line)
    x, back = _moved(x, axis, 0)
    part = _core.reduce_scatter(_ordered(x, 0, line.to_group), group=line.group.id, nranks=line.size)
    part = _back(part, back)
    return part / line.size if kind is ReduceType.kRedAvg else part


def as_term(x, kind, line):
    """A term of a Partial that is x: all of x on the first process, and what changes nothing on others."""
    x = shared(x, line)
    if line.here == 0 or kind not in (ReduceType.kRedSum, ReduceType.kRedProd):
        return x
    nothing = _core.full(x.shape, 1 if kind is ReduceType.kRedProd else 0, dtype=x.dtype)
    return _core.where(_core.full(x.shape, False, dtype="bool"), x, nothing)  # x stays in the history: its gradient is awaited


def exchanged(x, axis, to, size, line):
    """This process's piece of axis `to`, of a tensor of which it had a piece of `axis`, whose size is given."""
    if size % line.size or x.shape[to] % line.size:
        return divided(gathered(x, axis, size, line), to, line)
    front, back = _moved(x, to, 0)
    came = _core.all_to_all(_ordered(front, 0, line.to_group), group=line.group.id)
    came = _ordered(came, 0, line.to_mesh)
    parts = _core.split(came, [came.shape[0] // line.size] * line.size)
    return _back(_core.concat(parts, _position(axis, to)), back)


def _position(axis, to):
    """The position of an axis after axis `to` was moved to the front."""
    return axis + 1 if axis < to else axis


def shared(x, line):
    """A Replicate on its way into what differs between processes: its gradient is the sum of theirs."""
    return x if x.stop_gradient else _core.mp_identity(x, group=line.group.id)


def redistribute(x, shape, mesh, source, target):
    """The part of a tensor of this shape under target's placements, of that under source's."""
    if source == target:
        return x
    now, shape = list(source), list(shape)
    lines = {at: line_of(mesh, at) for at, (a, b) in enumerate(zip(source, target)) if a != b and mesh.shape[at] > 1}

    def whole(at, axis):
        return not any(p.is_shard(axis) for i, p in enumerate(now) if i != at)

    for at, line in lines.items():
        p, q = now[at], target[at]
        if p.is_replicated() or q.is_shard() and whole(at, q.get_dim()):
            continue
        x = gathered(x, p.get_dim(), shape[p.get_dim()], line) if p.is_shard() else reduced(x, p.reduce_type(), line)
        now[at] = Replicate()
    for at, line in sorted(lines.items(), key=lambda entry: now[entry[0]].is_replicated()):  # last, what needs axes that are whole
        p, q = now[at], target[at]
        if p.is_shard():
            x = exchanged(x, p.get_dim(), q.get_dim(), shape[p.get_dim()], line)
        elif p.is_partial():
            x = reduced_and_divided(x, p.reduce_type(), q.get_dim(), line)
        elif q.is_shard():
            x = divided(x, q.get_dim(), line)
        elif q.is_partial():
            x = as_term(x, q.reduce_type(), line)
        now[at] = q
    return x
