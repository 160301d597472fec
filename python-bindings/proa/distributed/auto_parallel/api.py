"""shard_tensor, reshard, shard_layer and what belongs to them: tensors and layers on a mesh of processes."""
from ... import _core
from ...framework.parameter import Parameter
from .dist_tensor import DistParameter, DistTensor, make
from .dispatch import is_dist
from .optimizer import shard_optimizer
from .placement_type import Replicate, checked_placements, get_shard_spec, to_dim_map, to_placements
from .process_mesh import ProcessMesh
from .redistribute import bounds, local_shape, redistribute

__all__ = ["DistAttr", "dtensor_from_fn", "reshard", "shard_layer", "shard_optimizer", "shard_tensor"]


def _need_mesh(who, mesh):
    if not isinstance(mesh, ProcessMesh):
        raise ValueError(f"{who}: mesh must be a paddle.distributed.ProcessMesh, got {type(mesh).__name__}")


class DistAttr:
    """A mesh, and for each axis of a tensor the name of the mesh's dimension that divides it, or None.

    >>> import proa as paddle
    >>> mesh = paddle.distributed.ProcessMesh([[2, 4, 5], [0, 1, 3]], dim_names=["x", "y"])
    >>> paddle.distributed.DistAttr(mesh, ["x", None]).dims_mapping
    [0, -1]
    """

    def __init__(self, mesh, sharding_specs):
        _need_mesh("DistAttr", mesh)
        if not isinstance(sharding_specs, list) or not all(name is None or isinstance(name, str) for name in sharding_specs):
            raise ValueError(f"DistAttr: sharding_specs must be a list of names of the mesh's dimensions and None, got {sharding_specs!r}")
        unknown = [name for name in sharding_specs if name is not None and name not in mesh.dim_names]
        if unknown:
            raise ValueError(f"DistAttr: sharding_specs has {unknown}; the mesh's dimensions are {mesh.dim_names}")
        self._sharding_specs, self.process_mesh = sharding_specs, mesh
        self.dims_mapping = [-1 if name is None else mesh.dim_names.index(name) for name in sharding_specs]
        self._partial = []

    @classmethod
    def _of(cls, tensor):
        made = cls(tensor._mesh, get_shard_spec(tensor._mesh, tensor._placements, tensor.ndim))
        made._partial = [at for at, p in enumerate(tensor._placements) if p.is_partial()]
        return made

    sharding_specs = property(lambda self: self._sharding_specs, doc="A dimension's name or None, for each axis.")

    def _is_partial(self):
        return bool(self._partial)

    def _partial_dims(self):
        return set(self._partial)

    def __eq__(self, other):
        mine = self.process_mesh, self.dims_mapping, self._partial
        return isinstance(other, DistAttr) and mine == (other.process_mesh, other.dims_mapping, other._partial)

    __hash__ = None

    def __repr__(self):
        mapping = ",".join(map(str, self.dims_mapping))
        return f"{{process_mesh: {self.process_mesh!r}, dims_mappings: [{mapping}], partial: {self._partial}}}"


def shard_tensor(data, mesh, placements, dtype=None, place=None, stop_gradient=True):
    """A tensor on the mesh of what to_tensor takes. All processes pass the same data; each keeps its part. A parameter becomes one on
    the mesh, under its name; of other tensors the result is a new leaf.

    >>> import proa as paddle
    >>> import proa.distributed as dist
    >>> x = dist.shard_tensor([[1.0, 2.0]], dist.ProcessMesh([0]), [dist.Shard(0)])
    >>> x.shape, x.placements, x.is_dist()
    ([1, 2], [Shard(dim=0)], True)
    """
    _need_mesh("shard_tensor", mesh)
    if is_dist(data):
        return reshard(data, mesh, placements)
    recording = _core.set_recording(False)
    try:
        tensor = _core.to_tensor(data, dtype=dtype, place=place)
        placements = checked_placements("shard_tensor", placements, mesh, tensor.ndim)
        part = _part(tensor, mesh, placements)
    finally:
        _core.set_recording(recording)
    if isinstance(data, Parameter):
        described = {**data.__dict__, "name": data.name, "trainable": data.trainable}
        return DistParameter(part, mesh, placements, tensor.shape, tensor.dtype, **described)
    made = make(DistTensor, part, mesh, placements, tensor.shape, tensor.dtype)
    if not stop_gradient:
        made.stop_gradient = False
    return made


def _part(tensor, mesh, placements):
    """A copy of this process's part of a tensor that all have; None outside of the mesh."""
    coordinates = mesh.coordinates()
    if coordinates is None:
        return None
    if mesh.size > _core.dist_place()[1] and not any(p.is_partial() for p in placements):  # a job of fewer processes: nobody to talk to
        shape = local_shape(tensor.shape, mesh, placements, coordinates)
        for at, p in enumerate(placements):
            if p.is_shard():
                begin, end = bounds(tensor.shape[p.get_dim()], mesh.shape[at], coordinates[at])
                tensor = _core.slice(tensor, [p.get_dim()], [begin], [end])
        assert tensor.shape == shape
        return tensor.clone()
    return redistribute(tensor, tensor.shape, mesh, [Replicate()] * mesh.ndim, placements).clone()


def dtensor_from_fn(fn, mesh, placements, *args, **kwargs):
    """fn(*args, **kwargs) on the mesh. All processes draw the same random numbers if they have called paddle.seed alike.

    >>> import proa as paddle
    >>> import proa.distributed as dist
    >>> dist.dtensor_from_fn(paddle.ones, dist.ProcessMesh([0]), [dist.Replicate()], [2, 3]).shape
    [2, 3]
    """
    if not callable(fn):
        raise TypeError(f"dtensor_from_fn: fn must be callable, got {type(fn).__name__}")
    return shard_tensor(fn(*args, **kwargs), mesh, placements)


def reshard(dist_tensor, mesh, placements):
    """The tensor with other placements, or on another mesh. Every process of both meshes calls it.

    >>> import proa as paddle
    >>> import proa.distributed as dist
    >>> mesh = dist.ProcessMesh([0])
    >>> x = dist.shard_tensor([1.0, 2.0], mesh, [dist.Partial()])
    >>> dist.reshard(x, mesh, [dist.Shard(0)]).placements
    [Shard(dim=0)]
    """
    _need_mesh("reshard", mesh)
    if not isinstance(dist_tensor, _core.Tensor):
        raise TypeError(f"reshard: dist_tensor must be a Tensor, got {type(dist_tensor).__name__}")
    placements = checked_placements("reshard", placements, mesh, dist_tensor.ndim)
    if not is_dist(dist_tensor):
        raise ValueError("reshard: dist_tensor is on no mesh; shard_tensor it first")
    if mesh == dist_tensor._mesh:
        if dist_tensor._local is None:
            made = make(DistTensor, None, mesh, placements, dist_tensor.shape, dist_tensor.dtype)
            made._flows, made._token = dist_tensor._flows, dist_tensor._token
            return made
        return dist_tensor._placed(placements)
    from .stages import moved
    return moved(dist_tensor, mesh, placements)


def shard_layer(layer, process_mesh, shard_fn=None, input_fn=None, output_fn=None):
    """The layer with its parameters and buffers on the mesh: as shard_fn(name, sublayer, mesh) puts them, the others Replicate.
    input_fn(inputs, mesh) and output_fn(outputs, mesh) change what comes into the layer and goes out of it.

    >>> import proa as paddle
    >>> import proa.distributed as dist
    >>> net = dist.shard_layer(paddle.nn.Linear(2, 3), dist.ProcessMesh([0]))
    >>> net.weight.placements
    [Replicate()]
    """
    if process_mesh is None or not isinstance(process_mesh, ProcessMesh):
        raise ValueError(f"shard_layer: process_mesh must be a paddle.distributed.ProcessMesh, got {type(process_mesh).__name__}")
    for name, sub in layer.named_sublayers(include_self=True):
        if shard_fn is not None:
            shard_fn(name, sub, process_mesh)
        _replicate(sub, process_mesh)
    if input_fn is not None:
        def changed(_, inputs):
            made = input_fn(inputs, process_mesh)
            return tuple(made) if isinstance(made, list) else made
        layer.register_forward_pre_hook(changed)
    if output_fn is not None:
        layer.register_forward_post_hook(lambda _, inputs, outputs: output_fn(outputs, process_mesh))
    return layer


def _replicate(layer, mesh):
    """Copies the layer's own parameters and buffers that are on no mesh to all processes of this one."""
    for key, param in layer._parameters.items():
        if param is not None and not is_dist(param):
            layer._parameters[key] = shard_tensor(param, mesh, [Replicate()] * mesh.ndim)
    for key, buffer in layer._buffers.items():
        if buffer is not None and not is_dist(buffer):
            layer._buffers[key] = shard_tensor(buffer, mesh, [Replicate()] * mesh.ndim)


def dtensor_from_local(local_tensor, mesh, placements):
    """A tensor on the mesh of which this process has the given part; the parts are of one size."""
    _need_mesh("dtensor_from_local", mesh)
    placements = checked_placements("dtensor_from_local", placements, mesh, local_tensor.ndim)
    shape = [n * (mesh.shape[at] if at >= 0 else 1) for n, at in zip(local_tensor.shape, to_dim_map(placements, local_tensor.ndim))]
    return make(DistTensor, local_tensor, mesh, placements, shape, local_tensor.dtype)


def shard_op(op, process_mesh=None, in_shard_specs=None, out_shard_specs=None):
    """op with tensors among its inputs and outputs placed as the specs say: a list of dimensions' names or None for each tensor, or
    None for one that stays as it is."""
    def placed(tensor, spec):
        if spec is None or not isinstance(tensor, _core.Tensor):
            return tensor
        return shard_tensor(tensor, process_mesh, to_placements(DistAttr(process_mesh, spec).dims_mapping, process_mesh))

    def placed_op(*args, **kwargs):
        if in_shard_specs is not None:
            specs = iter(in_shard_specs)
            args = [placed(a, next(specs, None)) if isinstance(a, _core.Tensor) else a for a in args]
        out = op(*args, **kwargs)
        if out_shard_specs is None:
            return out
        if isinstance(out, (list, tuple)):
            return type(out)(placed(o, spec) for o, spec in zip(out, out_shard_specs))
        return placed(out, out_shard_specs[0])
    return placed_op
