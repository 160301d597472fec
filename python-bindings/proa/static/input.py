"""InputSpec: the shape, dtype and name of an input, without its values."""
from .. import _core
from ..framework.dtype import to_dtype


def _dtype(value):
    try:
        return None if value is None else to_dtype(value)
    except (TypeError, ValueError):
        raise TypeError(f"InputSpec: dtype {value!r} is unknown") from None


class InputSpec:
    """shape: ints, None or -1 where a size is open."""

    def __init__(self, shape, dtype="float32", name=None, stop_gradient=False):
        self.shape = self._verify(shape)
        self.dtype = _dtype(dtype)
        self.name = name
        self.stop_gradient = stop_gradient

    @staticmethod
    def _verify(shape):
        if not isinstance(shape, (list, tuple)):
            raise TypeError(f"InputSpec: shape must be a list or tuple, got {type(shape).__name__}")
        for i, n in enumerate(shape):
            if n is not None and not isinstance(n, int):
                raise ValueError(f"InputSpec: shape[{i}] must be an int or None, got {n!r}")
        return tuple(-1 if n is None or n < -1 else n for n in shape)

    @classmethod
    def from_tensor(cls, tensor, name=None):
        """The spec of a Tensor."""
        if not isinstance(tensor, _core.Tensor):
            raise ValueError(f"InputSpec.from_tensor: tensor must be a Tensor, got {type(tensor).__name__}")
        return cls(tensor.declared_shape, tensor.dtype, name or tensor.name)

    @classmethod
    def from_numpy(cls, ndarray, name=None):
        """The spec of an array."""
        return cls(ndarray.shape, ndarray.dtype, name)

    def batch(self, batch_size):
        """Puts a batch dim before the shape."""
        if isinstance(batch_size, (list, tuple)):
            if len(batch_size) != 1:
                raise ValueError(f"InputSpec.batch: batch_size must have one entry, got {list(batch_size)}")
            batch_size = batch_size[0]
        if not isinstance(batch_size, int):
            raise TypeError(f"InputSpec.batch: batch_size must be an int, got {type(batch_size).__name__}")
        self.shape = (batch_size, *self.shape)
        return self

    def unbatch(self):
        """Takes the first dim off the shape."""
        if not self.shape:
            raise ValueError("InputSpec.unbatch: the shape is empty")
        self.shape = self.shape[1:]
        return self

    def __repr__(self):
        return f"{type(self).__name__}(shape={self.shape}, dtype={self.dtype}, name={self.name}, " \
            f"stop_gradient={self.stop_gradient})"

    def _key(self):
        return self.shape, self.dtype, self.name, self.stop_gradient

    def __hash__(self):
        return hash((self.shape, self.dtype, self.stop_gradient))

    def __eq__(self, other):
        return type(self) is type(other) and self._key() == other._key()
