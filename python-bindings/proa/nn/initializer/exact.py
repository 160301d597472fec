"""Initializers of given structure: constants, given values, identity, interpolation and orthogonal kernels."""
import math

from ... import _core
from ..._asks import asks, need_kernel
from ...framework import mode
from ...framework.dtype import dtype_name
from .initializer import Initializer, constant, drawn, store


class Constant(Initializer):
    """One value everywhere."""

    def __init__(self, value=0.0):
        if value is None:
            raise AssertionError("Constant: value must not be None")
        self._value = value

    def forward(self, var, block=None):
        self._check(var, block)
        store(var, _core.full(var.shape, float(self._value), var.dtype))


class Assign(Initializer):
    """The values of an array, list, tuple or tensor."""

    _dtypes = ("float16", "bfloat16", "float32", "float64", "int32", "int8", "uint8")

    def __init__(self, value, name=None):
        if not isinstance(value, (list, tuple, _core.Tensor)) and not hasattr(value, "__array__"):
            raise AssertionError(f"Assign: value must be an array, list, tuple or Tensor, got {type(value).__name__}")
        self._value = value.numpy() if isinstance(value, _core.Tensor) else value

    def shape(self):
        """The values' shape."""
        return list(constant(self._value).shape)

    def forward(self, var, block=None):
        self._check(var, block)
        if dtype_name(var.dtype) not in self._dtypes:
            raise ValueError(f"Assign: the parameter must be {', '.join(self._dtypes)}, got {dtype_name(var.dtype)}")
        need_kernel("Assign", "b,i1,i4,i8,f4,f8", var=var)
        store(var, constant(self._value))


class Dirac(Initializer):
    """A convolution's kernel that hands its input through, channel by channel, in each of `groups` groups."""

    @asks("groups<?")
    def __init__(self, groups=1, name=None):
        if not isinstance(groups, int) or groups <= 0:
            raise AssertionError(f"Dirac: groups must be a positive int, got {groups!r}")
        self._groups = groups

    def _fill(self, var, block):
        import numpy as np
        self._check(var, block)
        shape = var.shape
        if len(shape) not in (3, 4, 5):
            raise ValueError(f"Dirac: the parameter must have 3, 4 or 5 dimensions, got shape {shape}")
        if shape[0] % self._groups:
            raise ValueError(f"Dirac: dimension 0 of shape {shape} must be divisible by groups, {self._groups}")
        drawn(var)
        values = np.zeros(shape, "float32")
        size = shape[0] // self._groups
        centre = tuple(n // 2 for n in shape[2:])
        for group in range(self._groups):
            for i in range(min(size, shape[1])):
                values[(group * size + i, i, *centre)] = 1.0
        store(var, constant(values))


class Bilinear(Initializer):
    """A transposed convolution's kernel that interpolates, as Paddle has it."""

    def forward(self, var, block=None):
        import numpy as np
        self._check(var, block, ValueError)
        shape = var.shape
        if len(shape) != 4 or shape[2] != shape[3]:
            raise ValueError(f"Bilinear: the parameter's shape must be [out, in, k, k], got {shape}")
        if dtype_name(var.dtype) not in ("float16", "bfloat16", "float32", "float64"):
            raise TypeError(f"Bilinear: the parameter must be floating, got {dtype_name(var.dtype)}")
        size = shape[3]
        factor = math.ceil(size / 2.0)
        centre = (2 * factor - 1 - factor % 2) / (2.0 * factor)
        i = np.arange(math.prod(shape), dtype="float64")
        x, y = i % size, (i / size) % size  # Paddle's y keeps its fraction
        values = (1 - np.abs(x / factor - centre)) * (1 - np.abs(y / factor - centre))
        store(var, constant(values.reshape(shape).astype("float32")))


class Orthogonal(Initializer):
    """A matrix (later dimensions flattened) with orthonormal rows or columns, times gain."""

    def __init__(self, gain=1.0, name=None):
        if gain is None:
            raise AssertionError("Orthogonal: gain must not be None")
        self._gain = gain

    def _fill(self, var, block):
        import numpy as np
        self._check(var, block)
        shape = var.shape
        if len(shape) < 2:
            raise ValueError(f"Orthogonal: the parameter must have 2 dimensions or more, got shape {shape}")
        rows, cols = shape[0], math.prod(shape[1:])
        with mode.eager():
            normal = _core.gaussian([max(rows, cols), min(rows, cols)], mean=0.0, std=1.0, dtype=drawn(var)).numpy()
        q, r = np.linalg.qr(normal)
        q = q * np.sign(np.diag(r)) * self._gain
        store(var, constant(np.ascontiguousarray(q.T if rows < cols else q, q.dtype).reshape(shape)
                            .astype(normal.dtype)))
