"""paddle.autograd.backward and paddle.grad: argument checks, then the call into the engine."""
from .. import _core
from .._asks import asks


def _tensors(who, name, value):
    if isinstance(value, _core.Tensor):
        return [value]
    if not isinstance(value, (list, tuple)) or not all(isinstance(t, _core.Tensor) for t in value):
        raise AssertionError(f"{who}: {name} must be a Tensor or a list of Tensors, got {type(value).__name__}")
    if not value:
        raise AssertionError(f"{who}: {name} must not be empty")
    return list(value)


def _gradients(who, name, value, count):
    if value is None:
        return None
    value = list(value) if isinstance(value, (list, tuple)) else [value]
    if not all(g is None or isinstance(g, _core.Tensor) for g in value):
        raise AssertionError(f"{who}: {name} must be Tensors or None")
    if len(value) != count:
        if not value:
            return None
        raise AssertionError(f"{who}: {name} has {len(value)} entries for {count} tensors")
    return value


def _on_mesh(tensors):
    """Whether some of the tensors are on a mesh of processes."""
    return any(getattr(t, "_mesh", None) is not None for t in tensors)


def backward(tensors, grad_tensors=None, retain_graph=False):
    """Adds to the leaves the gradients of all `tensors`, which start with grad_tensors (None: ones)."""
    tensors = _tensors("backward", "tensors", tensors)
    if len({id(t) for t in tensors}) != len(tensors):
        raise AssertionError("backward: tensors contains the same Tensor twice")
    if not isinstance(retain_graph, bool):
        raise AssertionError(f"backward: retain_graph must be a bool, got {retain_graph!r}")
    grads = _gradients("backward", "grad_tensors", grad_tensors, len(tensors))
    if _on_mesh(tensors):
        from ..distributed.auto_parallel.history import parts_of_outputs
        tensors, grads = parts_of_outputs(tensors, grads)
    _core.backward(tensors, grads, retain_graph)


@asks("eager")
def grad(outputs, inputs, grad_outputs=None, retain_graph=None, create_graph=False, only_inputs=True,
         allow_unused=False, no_grad_vars=None):
    """The gradients of outputs by inputs, a list; no leaf's grad changes. create_graph records them in turn."""
    outputs, inputs = _tensors("grad", "outputs", outputs), _tensors("grad", "inputs", inputs)
    grads = _gradients("grad", "grad_outputs", grad_outputs, len(outputs))
    retain_graph = create_graph if retain_graph is None else retain_graph
    for name, value in (("create_graph", create_graph), ("retain_graph", retain_graph),
                        ("allow_unused", allow_unused), ("only_inputs", only_inputs)):
        if not isinstance(value, bool):
            raise AssertionError(f"grad: {name} must be a bool, got {value!r}")
    if not only_inputs:
        raise AssertionError("grad: only_inputs must be True; backward() adds to the leaves")
    if _on_mesh(outputs) or _on_mesh(inputs):
        from ..distributed.auto_parallel.history import grad_of_parts
        return grad_of_parts(outputs, inputs, grads, retain_graph, create_graph, allow_unused, no_grad_vars)
    if no_grad_vars is None:
        return _core.grad(outputs, inputs, grads, retain_graph, create_graph, allow_unused)
    stops = list(no_grad_vars) if isinstance(no_grad_vars, set) else _tensors("grad", "no_grad_vars", no_grad_vars)
    hooks = [(t, _core.register_hook(t, lambda g: _core.full_like(g, 0.0))) for t in stops if not t.stop_gradient]
    try:
        return _core.grad(outputs, inputs, grads, retain_graph, create_graph, allow_unused)
    finally:
        for tensor, hook in hooks:
            _core.remove_hook(tensor, hook)
