"""Distribution, the base of all distributions; Independent, which treats batch dims as event dims; and conversion of
arguments to tensors. Imports _core, framework.dims and tensor, and nothing else of the package."""
import numbers
import operator

from .. import _core
from .._errors import need_attribute, of_kind
from ..framework.dims import alike, is_empty
from ..tensor.manipulation import common_shape


def is_tensor(value):
    return isinstance(value, _core.Tensor)


def name_of(dtype):
    """'float32' of a dtype object, a name or NumPy's."""
    return str(dtype).rpartition(".")[2]


def tensors(who, *values):
    """The arguments as tensors of one floating dtype and shape, their dtype's name, and whether all were numbers.

    Tensors stay as they are, and do not mix with numbers or arrays; arrays keep float64, the rest becomes float32.
    """
    given = [is_tensor(v) for v in values]
    if all(given):
        return (*values, name_of(values[0].dtype), False)
    if any(given):
        raise ValueError(f"{who}: if one argument is a Tensor, all must be Tensors")
    import numpy as np
    for v in values:
        if not isinstance(v, (numbers.Real, list, tuple, np.ndarray)):
            raise TypeError(f"{who}: arguments must be float, list, tuple, numpy.ndarray or Tensor, "
                            f"got {type(v).__name__}")
    wide = [v.dtype for v in values if isinstance(v, np.ndarray) and v.dtype in (np.float32, np.float64)]
    dtype = wide[0] if wide else np.dtype("float32")
    arrays = np.broadcast_arrays(*(np.asarray(v).astype(dtype) for v in values))
    made = [_core.to_tensor(np.array(a)) for a in arrays]
    return (*made, str(dtype), all(isinstance(v, numbers.Real) for v in values))


def need(who, what, value, kinds, expected):
    """TypeError unless value is of one of the kinds."""
    if not isinstance(value, kinds):
        raise TypeError(f"{who}: {what} must be {expected}, got {type(value).__name__}")


def need_value(who, value):
    need(who, "value", value, _core.Tensor, "a Tensor; make one with paddle.to_tensor")


def broadcast(who, **named):
    """Numbers and tensors as tensors of their common shape."""
    for what, value in named.items():
        need(who, what, value, (numbers.Real, _core.Tensor), "a number or a Tensor")
    values = named.values()
    made = [v if is_tensor(v) else _core.to_tensor(float(v)) for v in values]
    shape = []
    for v in made:
        shape = common_shape("distribution", shape, v.shape)
    return [v if alike(v.shape, shape) else v.expand(shape) for v in made]


def shape_list(who, shape, strict=False):
    """The ints of a sample's shape: TypeError for what holds no entries, as an op refuses other entries than ints. strict: TypeError
    for texts and dicts, too."""
    if strict and isinstance(shape, (str, bytes, dict)):
        raise TypeError(f"{who}: shape must be a list or tuple of ints, got {type(shape).__name__}")
    if is_tensor(shape):
        return shape.tolist()
    try:
        entries = list(shape)
    except TypeError:
        raise TypeError(f"{who}: shape must be a list or tuple of ints, got {type(shape).__name__}") from None
    try:
        return [operator.index(n) for n in entries]
    except TypeError:
        raise of_kind(f"{who}: shape must be a list or tuple of ints, got {shape!r}") from None


def drawn_shape(who, shape, strict=False):
    """shape_list of a sample, which has at least one draw."""
    shape = shape_list(who, shape, strict)
    if 0 in shape:
        raise of_kind(f"{who}: shape must have entries above 0, got {shape}")
    return shape


def need_elements(who, what, value):
    """Refuses parameters of no distribution."""
    if is_empty(value):
        raise of_kind(f"{who}: {what} must have elements, got shape {value.shape}")


def need_seed(who, seed):
    if not isinstance(seed, int):
        raise of_kind(f"{who}: seed must be an int, got {type(seed).__name__}")


def uniform(shape, dtype="float32", low=0.0, high=1.0):
    return _core.uniform(list(shape), dtype=dtype, min=low, max=high)


def gaussian(shape, dtype="float32"):
    return _core.gaussian(list(shape), mean=0.0, std=1.0, dtype=dtype)


class Distribution:
    """A random variable: batch_shape independent ones, of event_shape each."""

    def __init__(self, batch_shape=(), event_shape=()):
        self._batch_shape = tuple(batch_shape)
        self._event_shape = tuple(event_shape)

    @property
    def batch_shape(self):
        return self._batch_shape

    @property
    def event_shape(self):
        return self._event_shape

    @property
    def mean(self):
        raise NotImplementedError

    @property
    def variance(self):
        raise NotImplementedError

    def sample(self, shape=()):
        raise NotImplementedError

    def rsample(self, shape=()):
        raise NotImplementedError

    def entropy(self):
        raise NotImplementedError

    def kl_divergence(self, other):
        """KL(self ‖ other)."""
        raise NotImplementedError

    def prob(self, value):
        """The density, or probability, at value."""
        return self.log_prob(value).exp()

    def log_prob(self, value):
        raise NotImplementedError

    def probs(self, value):
        raise NotImplementedError

    def _extend_shape(self, sample_shape):
        return tuple(sample_shape) + self._batch_shape + self._event_shape

    def _like(self, parameter, value, strict=False):
        """value in the parameter's dtype, which is read first; numbers are taken as they are. strict: other tensors than floating
        ones are refused, else bools count as 0 and 1."""
        if not isinstance(value, (_core.Tensor, numbers.Real)):
            need_attribute(type(self).__name__, "dtype", value=value)
        taken = ("float32", "float64") if strict else ("float32", "float64", "bool")
        if is_tensor(value) and value.dtype != parameter.dtype and name_of(value.dtype) in taken:
            return value.astype(parameter.dtype)
        if strict and is_tensor(value) and value.dtype != parameter.dtype:
            raise of_kind(f"{type(self).__name__}: value must be {name_of(parameter.dtype)} or another of float32 and float64, got "
                          f"{name_of(value.dtype)}")
        return value


class ExponentialFamily(Distribution):
    """A distribution of the exponential family."""


class Independent(Distribution):
    """The last `reinterpreted_batch_rank` batch dims of a distribution as event dims."""

    def __init__(self, base, reinterpreted_batch_rank):
        if not isinstance(base, Distribution):
            raise TypeError(f"Independent: base must be a Distribution, got {type(base).__name__}")
        if not 0 < reinterpreted_batch_rank <= len(base.batch_shape):
            raise ValueError(f"Independent: reinterpreted_batch_rank must be in (0, {len(base.batch_shape)}], "
                             f"got {reinterpreted_batch_rank}")
        self._base, self._reinterpreted_batch_rank = base, reinterpreted_batch_rank
        shape = base.batch_shape + base.event_shape
        cut = len(base.batch_shape) - reinterpreted_batch_rank
        super().__init__(shape[:cut], shape[cut:])

    @property
    def mean(self):
        return self._base.mean

    @property
    def variance(self):
        return self._base.variance

    def sample(self, shape=()):
        return self._base.sample(shape)

    def log_prob(self, value):
        return self._summed(self._base.log_prob(value))

    def prob(self, value):
        return self.log_prob(value).exp()

    def entropy(self):
        return self._summed(self._base.entropy())

    def _summed(self, value):
        return value.sum(list(range(-self._reinterpreted_batch_rank, 0)))
