"""Tensors that go from one mesh to another, and those of meshes that this process is not in: a process runs the whole program, and
has shapes alone of what other processes compute. Gradients go back the way tensors came."""
from ... import _core
from ...autograd import PyLayer
from ..communication import recv, send
from .dist_tensor import DistTensor, make
from .dispatch import is_dist
from .placement_type import Replicate
from .redistribute import redistribute


def shapes_alone(call, outs):
    """The results of a call on a mesh that this process is not in: without parts."""
    from ...framework import mode
    from ...static.program import Program
    program, flows, token = Program()._core, False, None
    with mode.opened(program):
        for i, (spot, tensor) in enumerate(zip(call.spots, call.tensors)):
            where, key, at = spot
            variable = program.data(f"x{i}", tensor.shape, tensor.dtype)
            if at is None:
                where[key] = variable
            else:
                where[key][at] = variable
        result = call.called()
    if _core.is_recording():
        flows = any(not t.stop_gradient for t in call.tensors)
        token = _joined([t._token for t in call.tensors if is_dist(t)])
    count = 0

    def wrap(value):
        nonlocal count
        if isinstance(value, (list, tuple)):
            return type(value)(wrap(v) for v in value)
        if not isinstance(value, _core.Tensor):
            return value
        out = (None, None) if outs is None else outs[min(count, len(outs) - 1)]
        count += 1
        made = make(DistTensor, None, call.mesh, out[0] or [Replicate()] * call.mesh.ndim, value.declared_shape, value.dtype)
        made._flows, made._token = flows, token
        return made

    return wrap(result)


def _joined(tokens):
    """One token whose backward is that of all."""
    found = None
    for token in {id(t): t for t in tokens if t is not None}.values():
        found = token if found is None else _core.add(found, token)
    return found


class _Crossing(PyLayer):
    """The whole of a tensor on its way from the processes of one mesh to those of another. Processes that only send have a token, whose
    backward receives the gradient."""

    @staticmethod
    def forward(ctx, source, target, shape, dtype, value):
        ctx.source, ctx.target, ctx.shape, ctx.dtype, here = source, target, shape, dtype, _core.dist_place()[0]
        if here in source and here == source[0]:
            for rank in target:
                if rank not in source:
                    send(value, rank)
        if here in source:
            return value.clone() if here in target else _core.full([1], 0.0)
        came = _core.full(shape, 0, dtype=dtype)
        recv(came, source[0])
        return came

    @staticmethod
    def backward(ctx, grad):
        here = _core.dist_place()[0]
        if here in ctx.target:
            if here == ctx.target[0]:
                for rank in ctx.source:
                    if rank not in ctx.target:
                        send(grad, rank)
            return grad if here in ctx.source else _core.full([1], 0.0)
        came = _core.full(ctx.shape, 0, dtype=ctx.dtype)
        recv(came, ctx.target[0])
        return came


def moved(x, mesh, placements):
    """A tensor on another mesh: made whole on its own, sent to who is not there, and divided on the other."""
    here, source, target = _core.dist_place()[0], x._mesh.process_ids, mesh.process_ids
    if here not in source and here not in target:
        made = make(DistTensor, None, mesh, placements, x.shape, x.dtype)
        made._flows, made._token = x._flows, x._token
        return made
    whole, flows = x._whole() if here in source else None, not x.stop_gradient and _core.is_recording()
    if set(source) != set(target):
        whole = _crossed(x, source, target, whole, flows)
    made = make(DistTensor, None, mesh, placements, x.shape, x.dtype)
    if here in target:
        made._local = redistribute(whole, x.shape, mesh, [Replicate()] * mesh.ndim, placements)
    else:
        made._flows, made._token = flows, whole if flows else None
    return made


def _crossed(x, source, target, whole, flows):
    """The whole on target's processes; on the others a token."""
    if not flows:
        recording = _core.set_recording(False)
        try:
            return _Crossing.forward(_Nothing(), source, target, x.shape, x.dtype, whole)
        finally:
            _core.set_recording(recording)
    if whole is None:  # something must lead backward from here
        whole = x._token
        if whole is None:
            whole = _core.full([1], 0.0)
            whole.stop_gradient = False
    return _Crossing.apply(source, target, x.shape, x.dtype, whole)


class _Nothing:
    """The context of a crossing without history."""
