"""py_func and Print: operators that call Python when the program runs. A program with one cannot be saved."""
import itertools

from .. import _core
from ..framework import mode
from ..framework.dtype import dtype_name
from .scope import ScopeTensor

__all__ = ["Print", "py_func"]


def _list(value):
    return [] if value is None else list(value) if isinstance(value, (list, tuple)) else [value]


def _called(fn, like):
    """The function that the core calls: lists of tensors in, tensors of the dtypes of `like` out."""
    def run(tensors):
        with mode.eager():
            made = fn(*[ScopeTensor(t) for t in tensors])
            made = _list(made)
            return [value if isinstance(value, _core.Tensor) else _core.to_tensor(_plain(value, dtype))
                    for value, dtype in zip(made, itertools.chain(like, itertools.repeat(None)))]
    return run


def _plain(value, dtype):
    import numpy as np
    if isinstance(value, ScopeTensor):
        return value.numpy()
    array = np.asarray(value)
    if dtype is not None and not hasattr(value, "dtype"):
        array = array.astype(dtype_name(dtype))
    return array


def call_in_run(fn, inputs, specs):
    """Calls fn on the values of variables in every run; variables for the tensors that it returns, by (dtype, shape)."""
    number = _core.host_function(_called(fn, [dtype for dtype, _ in specs]), -1, b"")
    return _core.host_call(inputs, number, specs)


def py_func(func, x, out, backward_func=None, skip_vars_in_backward_input=None):
    """Calls func(*x) in every run; out (variables of Block.create_var) says dtypes and shapes of what it returns.

    backward_func(*x, *out, *gradients of out) returns the gradients of x; it is not given the variables in
    skip_vars_in_backward_input.
    """
    for what, fn in (("func", func), ("backward_func", backward_func)):
        if not callable(fn) and (fn is not None or what == "func"):
            raise TypeError(f"py_func: {what} must be callable, got {type(fn).__name__}")
    inputs, outputs = _list(x), _list(out)
    for one in inputs:
        if not isinstance(one, _core.Tensor):
            raise TypeError(f"py_func: x must be Variables, got {type(one).__name__}")
    skipped = [v.name for v in _list(skip_vars_in_backward_input)]
    unknown = [name for name in skipped if name not in {v.name for v in [*inputs, *outputs]}]
    if unknown:
        raise ValueError(f"py_func: skip_vars_in_backward_input has {unknown[0]!r}, which is neither in x nor in out")
    if not outputs:  # an operator needs a result to stay: one that nobody sees
        number = _core.host_function(_called(lambda *values: (func(*values), False)[1:], [_core.bool]), -1, b"")
        _core.host_call(inputs, number, [(_core.bool, [])])
        return None
    number = _core.host_function(_called(func, [v.dtype for v in outputs]), -1, b"")
    specs = [(v.dtype, v.declared_shape) for v in outputs]
    made = _core.host_call(inputs, number, specs)
    if backward_func is not None:  # a second operator hands the results on, and has them at hand for its gradient
        backward = _core.host_function(_called(backward_func, [v.dtype for v in inputs]), -1, b"")
        how = bytes([v.name in skipped for v in inputs] + [2 + (v.name in skipped) for v in outputs])
        number = _core.host_function(lambda tensors: tensors[len(inputs):], backward, how)
        made = _core.host_call([*inputs, *made], number, specs)
    program = _core.program_current()
    for one, wanted in zip(made, outputs):
        name = None if program is None else _core.variable_name(program, wanted)
        if wanted.stop_gradient:
            one.stop_gradient = True
        if name is not None and _core.is_declared(program, name):
            _core.define(program, name, one)
            one.name = name
            _core.follow(program, wanted, name)
    return made if isinstance(out, (list, tuple)) else made[0] if made else None


def _text(title, value, message, summarize, parts):
    import numpy as np
    array = np.array(value)
    lines = [f"Variable: {title}"] if parts["name"] else []
    if message:
        lines.append(f"  - message: {message}")
    if parts["lod"]:
        lines.append("  - lod: {}")
    lines.append("  - place: Place(cpu)")
    if parts["shape"]:
        lines.append(f"  - shape: {list(array.shape)}")
    if parts["layout"]:
        lines.append("  - layout: NCHW")
    if parts["type"]:
        lines.append(f"  - dtype: {array.dtype.name}")
    flat = array.ravel()
    shown = flat if summarize < 0 else flat[:summarize]
    lines.append(f"  - data: [{' '.join(f'{v:g}' if array.dtype.kind == 'f' else str(v) for v in shown)}]")
    return "\n".join(lines)


def Print(input, first_n=-1, message=None, summarize=20, print_tensor_name=True, print_tensor_type=True,
          print_tensor_shape=True, print_tensor_layout=True, print_tensor_lod=True, print_phase="both"):
    """Prints input whenever the program computes it (print_phase 'forward'), its gradient ('backward'), or both;
    first_n: how often at most. Returns input."""
    if print_phase not in ("forward", "backward", "both"):
        raise ValueError(f"Print: print_phase must be 'forward', 'backward' or 'both', got {print_phase!r}")
    parts = {"name": print_tensor_name, "type": print_tensor_type, "shape": print_tensor_shape,
             "layout": print_tensor_layout, "lod": print_tensor_lod}
    name = input.name

    def show(title, phase):
        count = itertools.count(1)

        def run(value):
            if print_phase in (phase, "both") and (first_n < 0 or next(count) <= first_n):
                print(_text(title, value, message, summarize, parts), flush=True)
            return value
        return run

    forward, backward = show(name, "forward"), show(name + "@GRAD", "backward")
    number = _core.host_function(_called(backward, [input.dtype]), -1, b"")
    number = _core.host_function(_called(forward, [input.dtype]), number, b"\1")
    return _core.host_call([input], number, [(input.dtype, input.declared_shape)])[0]
