"""static_pylayer: a function with a backward of its own in a program. The backward becomes a block of the program, which
gradients inline (jit/control/control_grad.c)."""
from ... import _core
from ...framework import in_dynamic_mode
from .control_flow import _filled, _flat

__all__ = ["static_pylayer"]


def _unrecorded(function, args):
    recording = _core.set_recording(False)
    try:
        return function(*args)
    finally:
        _core.set_recording(recording)


def _backward(function, inputs):
    """function with one gradient for each input: zeros where it returns None."""
    def run(*grads):
        made = _unrecorded(function, grads)
        made = list(made) if isinstance(made, (list, tuple)) else [made]
        if len(made) != len(inputs):
            raise AssertionError(f"static_pylayer: backward_fn must return one gradient for each of the {len(inputs)} inputs, got "
                                 f"{len(made)}")
        return [_core.full_like(x, 0) if d is None else d for x, d in zip(inputs, made)]
    return run


def static_pylayer(forward_fn, inputs, backward_fn=None, name=None):
    """forward_fn(*inputs), a nest of variables, whose gradients to the inputs are backward_fn(*gradients of the results). Without
    backward_fn no gradient flows, and no input may want one.

    >>> import proa as paddle
    >>> paddle.enable_static()
    >>> with paddle.static.program_guard(paddle.static.Program()):
    ...     x = paddle.static.data("x", [2])
    ...     x.stop_gradient = False
    ...     y = paddle.static.nn.static_pylayer(lambda x: x * 3.0, [x], lambda dy: dy * 5.0)
    ...     dx, = paddle.static.gradients(y, x)
    ...     result, = paddle.static.Executor().run(feed={"x": [1.0, 1.0]}, fetch_list=[dx])
    >>> paddle.disable_static()
    >>> result.tolist()
    [5.0, 5.0]
    """
    if in_dynamic_mode():
        raise AssertionError("static_pylayer: programs only; in dynamic mode use paddle.autograd.PyLayer")
    if not isinstance(inputs, list):
        raise AssertionError(f"static_pylayer: inputs must be a list, got {type(inputs).__name__}")
    variables = [x for x in inputs if isinstance(x, _core.Tensor)]
    wanting = [] if backward_fn else [x.name for x in variables if not x.stop_gradient]
    if wanting:
        raise ValueError(f"static_pylayer: without backward_fn every input needs stop_gradient=True; {wanting[0]} wants a gradient")
    for what, function in (("forward_fn", forward_fn), ("backward_fn", backward_fn)):
        if not callable(function) and (function is not None or what == "forward_fn"):
            raise AssertionError(f"static_pylayer: {what} must be callable, got {type(function).__name__}")
    result = _unrecorded(forward_fn, inputs)
    made = []
    structure = _flat(result, made)
    if backward_fn is not None and made:
        made = _core.with_backward(made, variables, _backward(backward_fn, variables))
    return _filled(structure, iter(made))
