"""Placements: how a tensor is laid out over one dimension of a mesh of processes."""
import enum


class ReduceType(enum.Enum):
    """The reduction that makes a Partial tensor whole."""

    kRedSum, kRedMax, kRedMin, kRedProd, kRedAvg, kRedAny, kRedAll = range(7)


class Placement:
    """Base of Shard, Replicate and Partial."""

    def is_shard(self, dim=None):
        """Whether the tensor is divided, along this axis if one is given."""
        return False

    def is_replicated(self):
        """Whether every process has the whole tensor."""
        return False

    def is_partial(self):
        """Whether the tensor is the reduction of what the processes have."""
        return False

    def _key(self):
        return (type(self).__name__,)

    def __eq__(self, other):
        return isinstance(other, Placement) and self._key() == other._key()

    def __hash__(self):
        return hash(self._key())


class Replicate(Placement):
    """Every process has the whole tensor."""

    def is_replicated(self):
        return True

    def __repr__(self):
        return "Replicate()"


class Shard(Placement):
    """The tensor is divided along one of its axes into pieces of equal size, but for the last ones.

    >>> import proa as paddle
    >>> paddle.distributed.Shard(1).get_dim()
    1
    """

    def __init__(self, dim):
        if isinstance(dim, bool) or not isinstance(dim, int):
            raise TypeError(f"Shard: dim must be an int, got {type(dim).__name__}")
        self._dim = dim

    def get_dim(self):
        """The axis that is divided."""
        return self._dim

    def is_shard(self, dim=None):
        return dim is None or dim == self._dim

    def _key(self):
        return "Shard", self._dim

    def __repr__(self):
        return f"Shard(dim={self._dim})"


class Partial(Placement):
    """The tensor is the reduction (by default the sum) of the tensors that the processes have."""

    def __init__(self, reduce_type=ReduceType.kRedSum):
        if not isinstance(reduce_type, ReduceType):
            raise TypeError(f"Partial: reduce_type must be a paddle.distributed.ReduceType, got {type(reduce_type).__name__}")
        self._reduce_type = reduce_type

    def reduce_type(self):
        """The reduction, a ReduceType."""
        return self._reduce_type

    def is_partial(self):
        return True

    def _key(self):
        return "Partial", self._reduce_type

    def __repr__(self):
        return f"Partial(reduce_type={self._reduce_type.name[4:].upper()})"


def checked_placements(who, placements, mesh, ndim):
    """A list of one placement for each dimension of the mesh (those that are not given: Replicate), with axes ≥ 0."""
    if not isinstance(placements, (list, tuple)) or not all(isinstance(p, Placement) for p in placements):
        raise TypeError(f"{who}: placements must be a list of Shard, Replicate and Partial, got {placements!r}")
    if any(not p.is_replicated() for p in placements[mesh.ndim:]):
        raise ValueError(f"{who}: {len(placements)} placements for a mesh of {mesh.ndim} dimensions; give one for each")
    made, seen = [], {}
    for at, p in enumerate(placements[:mesh.ndim]):
        if p.is_shard():
            axis = p.get_dim() + ndim if p.get_dim() < 0 else p.get_dim()
            if not 0 <= axis < ndim:
                raise ValueError(f"{who}: {p} divides axis {p.get_dim()} of a tensor of {ndim} axes")
            if axis in seen:
                raise ValueError(f"{who}: axis {axis} is divided over the mesh's dimensions {seen[axis]} and {at}; one may divide it")
            seen[axis], p = at, Shard(axis)
        made.append(p)
    return made + [Replicate()] * (mesh.ndim - len(made))


def to_placements(dim_map, mesh, partial_idx=()):
    """Placements of a tensor whose axis i is divided over the mesh's dimension dim_map[i] (−1: over none)."""
    made = [Partial() if at in partial_idx else Replicate() for at in range(mesh.ndim)]
    for axis, at in enumerate(dim_map):
        if at < 0:
            continue
        if not made[at].is_replicated():
            raise ValueError(f"to_placements: the mesh's dimension {at} has {made[at]} already, and axis {axis} names it, too")
        made[at] = Shard(axis)
    return made


def to_dim_map(placements, tensor_dims):
    """The mesh's dimension over which each axis is divided; −1: over none."""
    dim_map = [-1] * tensor_dims
    for at, p in enumerate(placements):
        if p.is_shard():
            if dim_map[p.get_dim()] >= 0:
                raise ValueError(f"to_dim_map: axis {p.get_dim()} is divided over the mesh's dimensions {dim_map[p.get_dim()]} and {at}")
            dim_map[p.get_dim()] = at
    return dim_map


def get_shard_spec(mesh, placements, tensor_dims):
    """The name of the mesh's dimension that divides each axis, or None."""
    return [mesh.dim_names[at] if at >= 0 else None for at in to_dim_map(placements, tensor_dims)]


def check_placements_equal(this, that):
    """Whether two lists of placements mean the same: those that one lacks are Replicate."""
    n = max(len(this), len(that))
    return all(a == b for a, b in zip([*this, *[Replicate()] * (n - len(this))], [*that, *[Replicate()] * (n - len(that))]))
