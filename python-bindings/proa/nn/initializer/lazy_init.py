"""paddle.LazyGuard: layers whose parameters get memory and values when initialize() is called. Uses framework and _core."""
import math

from ... import _core
from ...framework.dtype import dtype_name
from ...framework.parameter import Parameter

__all__ = ["LazyGuard"]


class _State:
    on = False


def lazy():
    """Whether parameters are made without values."""
    return _State.on


class LazyGuard:
    """Parameters that are made inside have a shape and a dtype, but no memory until param.initialize().

    >>> import proa as paddle
    >>> with paddle.LazyGuard():
    ...     net = paddle.nn.Linear(2, 3)
    >>> for param in net.parameters():
    ...     param.initialize()
    >>> net(paddle.ones([1, 2])).shape
    [1, 3]
    """

    def __enter__(self):
        _State.on = True

    def __exit__(self, *exception):
        _State.on = False


class LazyParameter(Parameter):
    """A parameter before its initialize(), which makes it a Parameter. Its handle is one that no op takes."""

    def __new__(cls, shape, dtype, initializer=None, **kwargs):
        nothing = _core.rows_new(_core.full([0], 0, "int64"), _core.full([0, 1], 0, "float32"), 0)
        return cls._share(nothing)

    def __init__(self, shape, dtype, initializer, **kwargs):
        self._shape, self._dtype, self._initializer, self._described = list(shape), dtype, initializer, kwargs
        self._describe(**kwargs)

    shape = declared_shape = property(lambda self: list(self._shape))
    ndim = property(lambda self: len(self._shape))
    size = property(lambda self: math.prod(self._shape))
    dtype = property(lambda self: self._dtype)

    stop_gradient = property(lambda self: self._stopped, lambda self, value: setattr(self, "_stopped", bool(value)))

    def _is_initialized(self):
        return False

    def _with_memory(self):
        """The parameter itself, as a Parameter of zeros."""
        shape, dtype, kept = self._shape, self._dtype, (self.name, self.trainable)
        for attribute in ("_shape", "_dtype", "_initializer", "_described", "_stopped"):
            delattr(self, attribute)
        self.__class__ = Parameter
        self._become(_core.full(shape, 0.0, dtype))
        self.name, self.trainable = kept
        self.persistable = True
        return self

    def initialize(self):
        """Allocates the parameter and sets its initial values."""
        initializer = self._initializer
        initializer(self._with_memory())

    def set_value(self, value):
        """Allocates the parameter with these values."""
        return self._with_memory().set_value(value)

    def __str__(self):
        return f"Parameter(shape={self._shape}, dtype={dtype_name(self._dtype)}, not initialized)"

    __repr__ = __str__

    def __deepcopy__(self, memo):
        from ...framework import unique_name
        described = dict(self._described, name=self.name + unique_name.generate("_deepcopy"), trainable=self.trainable)
        new = memo[id(self)] = LazyParameter(self._shape, self._dtype, self._initializer, **described)
        return new

    def __reduce_ex__(self, protocol):
        raise RuntimeError(f"the parameter {self.name!r} has no values yet: call its initialize() before it is pickled or saved")
