"""Hybrid parallelism's grid of ranks (data, pipeline, sharding, segment, model), and the process groups along each axis."""
import itertools
import math

from ...group import get_rank, get_world_size, new_group, world

_AXES = {"data", "pipe", "sharding", "sep", "model"}


class ParallelMode:
    """Kinds of parallelism."""

    DATA_PARALLEL, TENSOR_PARALLEL, PIPELINE_PARALLEL, SHARDING_PARALLEL, SEGMENT_PARALLEL = range(5)


class CommunicateTopology:
    """Ranks numbered row by row over named axes: the last varies fastest.

    >>> from proa.distributed import fleet
    >>> grid = fleet.CommunicateTopology(["data", "model"], [2, 2])
    >>> grid.get_comm_list("model")
    [[0, 1], [2, 3]]
    """

    def __init__(self, hybrid_group_names=("data", "pipe", "sharding", "sep", "model"), dims=(1, 1, 1, 1, 1)):
        if len(hybrid_group_names) != len(dims):
            raise ValueError(f"CommunicateTopology: {len(hybrid_group_names)} names, {len(dims)} dims; expected as many")
        self._parallel_names, self._dims = list(hybrid_group_names), list(dims)
        self._coords = list(itertools.product(*(range(d) for d in self._dims)))
        self._ranks = {coord: rank for rank, coord in enumerate(self._coords)}
        self._world_size = math.prod(self._dims)

    def get_hybrid_group_names(self):
        """The axes' names."""
        return self._parallel_names

    def _axis(self, name):
        if name not in self._parallel_names:
            raise ValueError(f"CommunicateTopology: there is no axis {name!r}; there are {self._parallel_names}")
        return self._parallel_names.index(name)

    def get_dim(self, axis_name):
        """The length of an axis."""
        return self._dims[self._axis(axis_name)]

    get_dim_size = get_dim

    def world_size(self):
        """The number of ranks."""
        return self._world_size

    def get_rank(self, **args):
        """The rank at a coordinate of every axis."""
        if len(args) != len(self._dims):
            raise AssertionError(f"CommunicateTopology.get_rank: expected a number for each of {self._parallel_names}")
        return self._ranks[tuple(args[name] for name in self._parallel_names)]

    def get_coord(self, rank):
        """A rank's coordinate, by name: a tuple with attributes."""
        if not 0 <= rank < self._world_size:
            raise AssertionError(f"CommunicateTopology.get_coord: rank {rank} is not below {self._world_size}")
        import collections
        return collections.namedtuple("Coordinate", self._parallel_names)(*self._coords[rank])

    def get_axis_list(self, axis_name, index):
        """The ranks whose coordinate on the axis is index, ascending."""
        at = self._axis(axis_name)
        return [rank for rank, coord in enumerate(self._coords) if coord[at] == index]

    def get_comm_list(self, axis_name):
        """The groups along an axis."""
        return self.get_fused_ranks([axis_name])

    def get_fused_ranks(self, fused_axis):
        """The groups of ranks that differ in these axes alone."""
        at = [self._axis(name) for name in fused_axis]
        groups = {}
        for rank, coord in enumerate(self._coords):
            groups.setdefault(tuple(c for i, c in enumerate(coord) if i not in at), []).append(rank)
        return list(groups.values())

    def get_rank_from_stage(self, global_rank, **kwargs):
        """The rank whose coordinate is another rank's, but for the axes that kwargs name."""
        coord = self.get_coord(global_rank)._asdict()
        coord.update(kwargs)
        return self.get_rank(**coord)


class HybridCommunicateGroup:
    """This process's groups along every axis of a topology; all processes make all groups, in the same order."""

    def __init__(self, topology):
        self._topo = topology
        self.nranks, self.global_rank = topology.world_size(), get_rank()
        if self.nranks != get_world_size():
            raise ValueError(f"HybridCommunicateGroup: the topology has {self.nranks} ranks, the job {get_world_size()}; its dims' "
                             "product must be the number of processes")
        names = topology.get_hybrid_group_names()
        self._groups = {name: self._group_along([name]) for name in names}
        self._check_group = self._group_along([n for n in names if n != "data"])
        self._alone = None if _AXES.issubset(names) else self._group_along([])  # of every axis that is missing
        self._fused = {}

    def _group_along(self, axes):
        """The group of these axes that this process belongs to."""
        mine = None
        for ranks in self._topo.get_fused_ranks([axis for axis in axes if axis in self._topo.get_hybrid_group_names()]):
            group = new_group(ranks) if self.nranks > 1 else world()
            if self.global_rank in ranks:
                mine = group
        return mine

    def _size(self, axis):
        return self._topo.get_dim(axis) if axis in self._topo.get_hybrid_group_names() else 1

    def _place(self, axis):
        if axis not in self._topo.get_hybrid_group_names():
            return 0
        return getattr(self._topo.get_coord(self.global_rank), axis)

    def topology(self):
        """The topology."""
        return self._topo

    def get_global_rank(self):
        """This process's rank."""
        return self.global_rank

    def get_parallel_mode(self):
        """The mode that the degrees ask for; None with one rank."""
        for axis, mode in (("pipe", ParallelMode.PIPELINE_PARALLEL), ("sep", ParallelMode.SEGMENT_PARALLEL),
                           ("model", ParallelMode.TENSOR_PARALLEL), ("sharding", ParallelMode.SHARDING_PARALLEL)):
            if self._size(axis) > 1:
                return mode
        return ParallelMode.DATA_PARALLEL if self._size("data") > 1 else None

    def get_stage_id(self):
        """This process's stage of the pipeline."""
        return self._place("pipe")

    get_pipe_parallel_rank = get_stage_id

    def get_rank_from_stage(self, stage_id, **kwargs):
        """The rank of this place at another stage."""
        if "pipe" in self._topo.get_hybrid_group_names():
            kwargs["pipe"] = stage_id
        elif stage_id != 0:
            raise ValueError(f"get_rank_from_stage: there is one stage, as the topology has no axis 'pipe'; got stage {stage_id}")
        return self._topo.get_rank_from_stage(self.global_rank, **kwargs)

    def get_check_parallel_group(self, sharding=False):
        """The ranks of one data coordinate, which look at norms and infinities together."""
        return self._check_group

    def create_fuse_group(self, fused_strategy_list):
        """The groups along several axes: (ranks, group) of this process. All processes call it."""
        key = tuple(fused_strategy_list)
        if key not in self._fused:
            self._fused[key] = self._group_along(list(key))
        return self._fused[key].ranks, self._fused[key]

    def get_pp_mp_parallel_group(self):
        """The ranks that differ in pipe and model alone."""
        return self.create_fuse_group(["pipe", "model"])[1]

    def get_dp_sep_parallel_group(self):
        """The ranks that differ in data and sep alone."""
        return self.create_fuse_group(["data", "sep"])[1]

    def get_p2p_groups(self):
        """The ranks of the stages before and after, which messages of a pipeline go between."""
        stages = self._size("pipe")
        return (self.get_rank_from_stage((self.get_stage_id() + 1) % stages),
                self.get_rank_from_stage((self.get_stage_id() - 1) % stages))


def _axis_methods(label, axis):
    """get_<label>_parallel_rank and its like."""

    def group(self):
        return self._groups.get(axis) or self._alone

    return {f"get_{label}_parallel_rank": lambda self: self._place(axis),
            f"get_{label}_parallel_world_size": lambda self: self._size(axis),
            f"get_{label}_parallel_group": group,
            f"get_{label}_parallel_group_src_rank": lambda self: group(self).ranks[0]}


for _label, _axis in (("data", "data"), ("model", "model"), ("sharding", "sharding"), ("sep", "sep"), ("pipe", "pipe")):
    for _name, _method in _axis_methods(_label, _axis).items():
        if not hasattr(HybridCommunicateGroup, _name):
            _method.__name__ = _name
            _method.__doc__ = f"Of this process's group along the axis {_axis}."
            setattr(HybridCommunicateGroup, _name, _method)
