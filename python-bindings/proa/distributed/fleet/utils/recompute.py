"""recompute (activation checkpointing): a function's activations are not stored; backward runs it again."""
import contextlib
import warnings

from .... import _core
from ....amp.auto_cast import amp_guard
from ....amp.auto_cast import state as amp_state
from ....autograd import PyLayer, backward


@contextlib.contextmanager
def _random_state(state):
    """Inside, random numbers go on from this state; afterwards from where they were. None: as they are."""
    if state is None:
        yield
        return
    before = _core.get_rng_state()
    _core.set_rng_state(state)
    try:
        yield
    finally:
        _core.set_rng_state(before)


class _Recomputed(PyLayer):
    @staticmethod
    def forward(ctx, function, random_state, arguments, keywords, *tensors):
        ctx.function, ctx.random_state, ctx.keywords = function, random_state, keywords
        ctx.arguments = arguments  # places of tensors among them are None
        ctx.amp = (amp_state.level, amp_state.dtype, amp_state.lists)
        ctx.save_for_backward(*tensors)
        return function(*_filled(arguments, tensors), **keywords)

    @staticmethod
    def backward(ctx, *grads):
        inputs = []
        for tensor in ctx.saved_tensor():
            again = tensor.detach()
            again.stop_gradient = tensor.stop_gradient
            inputs.append(again)
        level, dtype, (white, black) = ctx.amp
        recording = _core.set_recording(True)
        try:
            with _random_state(ctx.random_state), amp_guard(level != "O0", white, black, level if level != "O0" else "O1",
                                                            dtype if level != "O0" else "bfloat16"):
                outputs = ctx.function(*_filled(ctx.arguments, inputs), **ctx.keywords)
            outputs = [outputs] if isinstance(outputs, _core.Tensor) else list(outputs)
            wanted = [(out, grad) for out, grad in zip((o for o in outputs if isinstance(o, _core.Tensor)), grads)
                      if not out.stop_gradient]
            if not wanted:
                raise RuntimeError("recompute: none of the outputs has requires_grad=True, this recompute() is not necessary")
            backward([out for out, _ in wanted], [grad for _, grad in wanted])
        finally:
            _core.set_recording(recording)
        found = [None if tensor.stop_gradient else tensor.grad for tensor in inputs]
        return tuple(found) if len(found) != 1 else found[0]


def _filled(arguments, tensors):
    tensors = iter(tensors)
    return [next(tensors) if given is _TENSOR else given for given in arguments]


_TENSOR = object()


def recompute(function, *args, **kwargs):
    """function(*args) whose activations are not kept: backward runs it again, with the same random numbers
    (preserve_rng_state) and precision. The result is the function's.

    >>> import proa as paddle
    >>> from proa.distributed.fleet.utils import recompute
    >>> net, x = paddle.nn.Linear(2, 2), paddle.ones([1, 2])
    >>> x.stop_gradient = False
    >>> recompute(net, x).sum().backward()
    >>> net.weight.grad.shape
    [2, 2]
    """
    preserve = kwargs.pop("preserve_rng_state", True)
    kwargs.pop("use_reentrant", None)  # both of Paddle's ways give the same
    tensors = [a for a in args if isinstance(a, _core.Tensor)]
    if any(a.is_dist() for a in tensors):
        return _of_parts(function, args, {**kwargs, "preserve_rng_state": preserve})
    parameters = function.parameters() if hasattr(function, "parameters") else []
    if not _core.is_recording() or not any(not t.stop_gradient for t in [*tensors, *parameters]):
        if _core.is_recording():
            warnings.warn("[Recompute]: None of the inputs to current recompute block need grad, therefore there is NO need to "
                          "recompute this block in backward !")
        return function(*args, **kwargs)
    if not any(not t.stop_gradient for t in tensors):  # something must lead backward to the function
        lead = _core.full([1], 0.0, _core.float32)
        lead.stop_gradient = False
        inner = function

        def function(unused, *rest, **keywords):
            return inner(*rest, **keywords)

        args, tensors = (lead, *args), [lead, *tensors]
    arguments = [_TENSOR if isinstance(a, _core.Tensor) else a for a in args]
    return _Recomputed.apply(function, _core.get_rng_state() if preserve else None, arguments, kwargs, *tensors)


def _of_parts(function, args, keywords):
    """recompute of a function of tensors on a mesh: of each process's parts."""
    from ...auto_parallel.dist_tensor import DistTensor, make
    placed = {}

    def of_parts(*given, **more):
        whole = [make(DistTensor, part, a._mesh, a._placements, a.shape, a.dtype) if isinstance(a, DistTensor) else part
                 for a, part in zip(args, given)]
        found = function(*whole, **more)
        outs = list(found) if isinstance(found, (list, tuple)) else [found]
        placed["outs"], placed["several"] = outs, isinstance(found, (list, tuple))
        parts = [o._local_value() if isinstance(o, DistTensor) else o for o in outs]
        return parts if placed["several"] else parts[0]

    parts = recompute(of_parts, *(a._local_value() if isinstance(a, DistTensor) else a for a in args), **keywords)
    made = [make(DistTensor, part, o._mesh, o._placements, o.shape, o.dtype) if isinstance(o, DistTensor) else part
            for o, part in zip(placed["outs"], parts if placed["several"] else [parts])]
    return made if placed["several"] else made[0]


def recompute_hybrid(ctx, function, *args, **kwargs):
    """recompute where tensor parallel ranks have equal inputs: with ctx["partition"] each rank of ctx["mp_group"] keeps its part of
    them, and they are gathered in backward. ctx["offload"] is accepted: a CPU's activations are in the host's memory.

    >>> import proa as paddle
    >>> from proa.incubate.distributed.fleet import recompute_hybrid
    >>> x = paddle.ones([2, 2]); x.stop_gradient = False
    >>> group = paddle.distributed.get_group(0)
    >>> recompute_hybrid({"mp_group": group, "partition": True}, paddle.tanh, x).sum().backward()
    >>> x.grad.shape
    [2, 2]
    """
    group = ctx.get("mp_group")
    if group is None:
        raise ValueError("recompute_hybrid: ctx must have mp_group, the group of tensor parallelism")
    place = {"group": group.id, "rank": group.rank, "nranks": group.nranks}
    shapes = {i: a.shape for i, a in enumerate(args) if isinstance(a, _core.Tensor) and ctx.get("partition") and group.nranks > 1
              and not a.stop_gradient and a.size % group.nranks == 0}

    def of_parts(*given, **more):
        whole = [_core.reshape(_core.mp_concat(g, **place), shapes[i]) if i in shapes else g for i, g in enumerate(given)]
        return function(*whole, **more)

    of_parts.parameters = getattr(function, "parameters", list)
    parts = [_core.mp_split(_core.reshape(a, [-1]), **place) if i in shapes else a for i, a in enumerate(args)]
    return recompute(of_parts, *parts, **kwargs)


def recompute_sequential(ctx, functions, *args, **kwargs):
    """A sequence of layers in ctx["segments"] parts, each recomputed but the last, which Paddle recomputes too."""
    segments, preserve = ctx.get("segments", 1), ctx.get("preserve_rng_state", True)
    layers = list(functions)
    size = max(len(layers) // segments, 1)

    def run(begin, end):
        def part(*inputs):
            for layer in layers[begin:end]:
                inputs = (layer(*inputs),)
            return inputs[0]
        return part

    bounds = [*range(0, size * (segments - 1), size)]
    for begin in bounds:
        args = (recompute(run(begin, begin + size), *args, preserve_rng_state=preserve, **kwargs),)
    return recompute(run(size * len(bounds), len(layers)), *args, preserve_rng_state=preserve, **kwargs)
