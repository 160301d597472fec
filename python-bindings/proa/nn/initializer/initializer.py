"""Initializer, the base, and what initializers share: storing values in a tensor."""
from ... import _core
from ..._errors import of_dtype, of_kind
from ...framework import mode
from ...framework.dims import is_empty
from ...framework.dtype import dtype_name
from .table import fans


class Initializer:
    """Calling an initializer with a tensor sets the tensor's values."""

    def __call__(self, param, block=None):
        recording = _core.set_recording(False)
        try:
            return self._fill(param, block)
        finally:
            _core.set_recording(recording)

    def _fill(self, param, block):
        return self.forward(param, block)

    def forward(self, param, block=None):
        """Sets param's values: every subclass writes its own."""
        raise NotImplementedError(f"{type(self).__name__} has no forward()")

    def _check(self, var, block, error=AssertionError):
        """As in Paddle, a wrong var or block is an AssertionError."""
        if not isinstance(var, _core.Tensor):
            raise error(f"{type(self).__name__}: var must be a Tensor, got {type(var).__name__}")
        self._check_block(block, error)

    def _check_block(self, block, error=AssertionError):
        """Blocks are given by programs alone, and nothing here reads them."""
        if block is not None and not hasattr(block, "append_op"):
            raise error(f"{type(self).__name__}: block must be a program's block or None, got {type(block).__name__}")

    def _compute_fans(self, var):
        """fan_in and fan_out of a tensor."""
        return fans(var.shape)


def drawn(tensor):
    """The dtype to draw tensor's values in: half types are drawn as float32."""
    name = dtype_name(tensor.dtype)
    if is_empty(tensor):
        raise of_kind(f"an initializer that draws numbers needs a parameter with elements, got shape {tensor.shape}")
    if name not in ("float16", "bfloat16", "float32", "float64"):
        raise of_dtype(f"an initializer that draws numbers needs a floating parameter, got {name}")
    return _core.float64 if name == "float64" else _core.float32


def constant(values):
    """An array as a tensor; while a program is built, as an operator that makes it."""
    if mode.in_dynamic_mode():
        return _core.to_tensor(values)
    with mode.eager():
        tensor = _core.to_tensor(values)
        flat = tensor.flatten().tolist() if tensor.size else []
    if dtype_name(tensor.dtype) in ("float32", "float64"):
        return _core.assign_value(tensor.shape, tensor.dtype, values=flat)
    return _core.assign_value(tensor.shape, tensor.dtype, int_values=[int(v) for v in flat])


def store(tensor, values):
    """Sets tensor to values of the same shape, cast to its dtype."""
    if list(values.shape) != list(tensor.shape):
        raise ValueError(f"the initial value's shape {list(values.shape)} is not the parameter's, "
                         f"{list(tensor.shape)}")
    if tensor.is_symbolic:  # in a startup program
        _core.assign_to(values if values.dtype == tensor.dtype else _core.cast(values, tensor.dtype), tensor)
        return
    tensor.set_value(values if values.dtype == tensor.dtype else _core.cast(values, tensor.dtype))
