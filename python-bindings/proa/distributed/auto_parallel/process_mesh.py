"""ProcessMesh: an array of processes, whose dimensions tensors are divided over."""
from ... import _core
from ..group import ParallelEnv, get_group, init_parallel_env, is_initialized, new_group

_ids = {}     # (shape, process ids) → unique id
_groups = {}  # ranks → id of their group, while the job lasts
_current = []  # meshes of open `with` blocks


def get_current_process_mesh():
    """The mesh of the innermost `with mesh:` block, or None."""
    return _current[-1] if _current else None


def _checked(mesh, shape, process_ids):
    import numpy as np
    if mesh is None:
        if shape is None or process_ids is None:
            raise ValueError("ProcessMesh: mesh must be given, an array of process ids")
        mesh = np.array(process_ids).reshape(shape)
    if not isinstance(mesh, (list, np.ndarray)):
        raise ValueError(f"ProcessMesh: mesh must be a list or an array of process ids, got {type(mesh).__name__}")
    mesh = np.array(mesh)
    ids = mesh.flatten().tolist()
    if not ids or not all(type(p) is int and p >= 0 for p in ids):
        raise ValueError(f"ProcessMesh: mesh must hold process ids, ints of at least 0, got {ids}")
    if len(set(ids)) != len(ids):
        raise ValueError(f"ProcessMesh: every process may be in a mesh once, got {ids}")
    return mesh, ids


class ProcessMesh:
    """Processes of the job in an n-dimensional array. In a job of several ranks, all of them make the same meshes, in one order.

    >>> import proa as paddle
    >>> mesh = paddle.distributed.ProcessMesh([[2, 4, 5], [0, 1, 3]], dim_names=["x", "y"])
    >>> mesh.shape, mesh.get_dim_size("y"), mesh[:, 0].process_ids
    ([2, 3], 3, [2, 0])
    """

    def __init__(self, mesh=None, dim_names=None, shape=None, process_ids=None):
        self._mesh, self._process_ids = _checked(mesh, shape, process_ids)
        self._shape = list(self._mesh.shape)
        if dim_names is not None and not isinstance(dim_names, list):
            raise ValueError(f"ProcessMesh: dim_names must be a list of strings, got {type(dim_names).__name__}")
        self._dim_names = [f"d{i}" for i in range(self.ndim)] if dim_names is None else list(dim_names)
        if len(self._dim_names) != self.ndim or len(set(self._dim_names)) != self.ndim:
            raise ValueError(f"ProcessMesh: dim_names must be {self.ndim} different names, one a dimension, got {dim_names}")
        self._coordinates, self._line_cache = {}, {}  # by rank, which another job may change
        self._unique_id = _ids.setdefault((tuple(self._shape), tuple(self._process_ids)), len(_ids) + 1)
        self._join()

    mesh = property(lambda self: self._mesh, doc="The array of process ids.")
    shape = property(lambda self: list(self._shape), doc="Sizes of the dimensions.")
    ndim = property(lambda self: len(self._shape), doc="Number of dimensions.")
    size = property(lambda self: len(self._process_ids), doc="Number of processes.")
    process_ids = property(lambda self: list(self._process_ids), doc="All processes, row by row.")
    dim_names = property(lambda self: self._dim_names, doc="Names of the dimensions.")
    unique_id = property(lambda self: self._unique_id, doc="The same number for meshes of one shape and the same processes.")

    def get_dim_size(self, dim_name):
        """The size of a dimension."""
        return self._shape[self._at("get_dim_size", dim_name)]

    dim_size = get_dim_size

    def get_mesh_with_dim(self, dim_name):
        """The mesh with this dimension moved to the front."""
        at = self._at("get_mesh_with_dim", dim_name)
        order = [at, *(i for i in range(self.ndim) if i != at)]
        return ProcessMesh(self._mesh.transpose(order), [self._dim_names[i] for i in order])

    def contains(self, process_id):
        """Whether the process is in the mesh."""
        return process_id in self._process_ids

    def empty(self):
        """Whether there are no processes: never."""
        return False

    def _at(self, who, dim_name):
        if dim_name not in self._dim_names:
            raise ValueError(f"ProcessMesh.{who}: there is no dimension {dim_name!r}; there are {self._dim_names}")
        return self._dim_names.index(dim_name)

    def __getitem__(self, index):
        picked = self._mesh[index]
        if not picked.shape:
            return ProcessMesh([int(picked)])
        items = index if isinstance(index, tuple) else (index,)
        kept = [name for i, name in enumerate(self._dim_names) if i >= len(items) or isinstance(items[i], slice)]
        return ProcessMesh(picked, kept)

    def __enter__(self):
        _current.append(self)
        return self

    def __exit__(self, *raised):
        _current.pop()

    def __deepcopy__(self, memo):
        memo[id(self)] = self  # nothing changes a mesh
        return self

    def __eq__(self, other):
        return isinstance(other, ProcessMesh) and self._shape == other._shape and self._process_ids == other._process_ids

    def __hash__(self):
        return hash((tuple(self._shape), tuple(self._process_ids)))

    def __str__(self):
        return f"shape {self._shape}, process_ids {self._process_ids}, dim_names {self._dim_names}"

    def __repr__(self):
        names = ",".join(self._dim_names)
        return f"{{shape: {self._shape}, process_ids: [{','.join(map(str, self._process_ids))}], dim_names: [{names}]}}"

    # ---- this process's place, and whom it talks to ----

    def coordinates(self):
        """This process's index along each dimension; None outside of the mesh."""
        rank = _core.dist_place()[0]
        if rank not in self._process_ids:
            return None
        found = self._coordinates.get(rank)
        if found is None:
            at, found = self._process_ids.index(rank), []
            for n in reversed(self._shape):
                found.insert(0, at % n)
                at //= n
            self._coordinates[rank] = found
        return found

    def _lines(self, dims):
        """The processes that differ in these dimensions alone, a list for each of the others' indices."""
        rest = [i for i in range(self.ndim) if i not in dims]
        lines = self._mesh.transpose([*rest, *dims]).reshape([-1, _product([self._shape[i] for i in dims])])
        return [list(map(int, line)) for line in lines]

    def _join(self):
        """Makes the groups of all lines along some of the dimensions, where the job has several ranks: all ranks call it."""
        if ParallelEnv().world_size > 1 and not is_initialized():
            init_parallel_env()
        if _core.dist_place()[1] < 2:
            return
        for chosen in range(1, 1 << self.ndim):
            for line in self._lines([i for i in range(self.ndim) if chosen >> i & 1]):
                join(line)

    def group(self, *dims):
        """The group of this process and of those that differ from it in these dimensions alone, in the mesh's order."""
        rank = _core.dist_place()[0]
        line = next((line for line in self._lines(dims) if rank in line), None)
        if line is None:
            raise RuntimeError(f"process {rank} is not in the mesh {self!r}")
        world = _core.dist_place()[1]
        if max(line) >= world:
            raise RuntimeError(f"the mesh {self!r} names process {max(line)}, and this job has {world}: start it with "
                               f"python -m proa.distributed.launch --nproc_per_node {max(line) + 1}")
        return join(line)


def _product(numbers):
    n = 1
    for number in numbers:
        n *= number
    return n


def join(line):
    """The group of these ranks; groups keep ascending order, which meshes need not have."""
    ranks, world = tuple(sorted(line)), _core.dist_place()[1]
    if ranks[-1] >= world or len(ranks) < 2:
        return None
    if ranks == tuple(range(world)):
        return get_group(0)
    found = _groups.get(ranks)
    try:
        group = get_group(found) if found is not None else None
    except ValueError:  # of a job that ended
        group = None
    if group is None or tuple(group.ranks) != ranks:
        group = new_group(list(ranks))
        _groups[ranks] = group.id
    return group


def compute_compatible_process_mesh(process_mesh_list):
    """The mesh that holds all of these: the one with the most processes and dimensions; None if none does."""
    found = None
    for mesh in process_mesh_list:
        if mesh is None or found is None:
            found = found or mesh
            continue
        a, b = set(found.process_ids), set(mesh.process_ids)
        if not (a <= b or b <= a):
            return None
        if a < b or a == b and mesh.ndim > found.ndim:
            found = mesh
    return found


def merge_process_meshes(process_meshes):
    """One dimension of all processes that are in some mesh."""
    ids = sorted({p for mesh in process_meshes if mesh is not None for p in mesh.process_ids})
    return ProcessMesh(ids) if ids else None
