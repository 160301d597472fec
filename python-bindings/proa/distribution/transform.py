"""Invertible transforms of random variables, with inverses and log-determinants of their Jacobians.

A transform's `_domain` and `_codomain` say how many of the last dims are one event. Uses _core and distribution.py."""
import enum
import math

from .. import _core
from .._asks import asks
from ..tensor import broadcast_shape
from .distribution import Distribution, is_tensor

__all__ = ["Transform", "AbsTransform", "AffineTransform", "ChainTransform", "ExpTransform", "IndependentTransform",
           "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform", "StackTransform",
           "StickBreakingTransform", "TanhTransform"]


class Type(enum.Enum):
    """Kinds of transforms, as functions."""
    BIJECTION = "bijection"
    INJECTION = "injection"
    SURJECTION = "surjection"
    OTHER = "other"


class Space:
    """A space of values: the number of last dims that are one event, and the bounds."""

    def __init__(self, event_rank=0, low=-math.inf, high=math.inf, is_discrete=False):
        self.event_rank, self.low, self.high, self.is_discrete = event_rank, low, high, is_discrete

    def with_rank(self, event_rank):
        return Space(event_rank, self.low, self.high, self.is_discrete)

    def constraint(self, value):
        """Whether every element of value lies there."""
        return _core.logical_and(value >= self.low, value <= self.high)


REAL, POSITIVE = Space(), Space(low=0.0)


def sum_last(value, n):
    """value summed over its last n dims."""
    return value.sum(list(range(-n, 0))) if n > 0 else value


def _sequence(value):
    return isinstance(value, (list, tuple))


class Transform:
    """A differentiable function of tensors. Called with a distribution it gives the distribution of results, with a
    transform their chain."""

    _type = Type.INJECTION
    _domain = _codomain = REAL

    @classmethod
    def _is_injective(cls):
        return cls._type in (Type.BIJECTION, Type.INJECTION)

    def __call__(self, input):
        if isinstance(input, Distribution):
            from .transformed_distribution import TransformedDistribution
            return TransformedDistribution(input, [self])
        return ChainTransform([self, input]) if isinstance(input, Transform) else self.forward(input)

    def _check(self, name, value, space):
        who = type(self).__name__
        if not is_tensor(value):
            raise TypeError(f"{who}: {name} must be a Tensor, got {type(value).__name__}")
        if value.dim() < space.event_rank:
            raise ValueError(f"{who}: {name} must have at least {space.event_rank} dims, got {value.dim()}")

    def forward(self, x):
        """The transform of x."""
        self._check("x", x, self._domain)
        return self._forward(x)

    def inverse(self, y):
        """The preimage of y."""
        self._check("y", y, self._codomain)
        return self._inverse(y)

    def forward_log_det_jacobian(self, x):
        """log |det of the Jacobian at x|."""
        self._check("x", x, self._domain)
        if not self._is_injective():
            raise NotImplementedError(f"{type(self).__name__}: forward_log_det_jacobian needs an injective transform")
        if hasattr(self, "_forward_log_det_jacobian"):
            return self._forward_log_det_jacobian(x)
        if hasattr(self, "_inverse_log_det_jacobian"):
            return -self._inverse_log_det_jacobian(self.forward(x))
        raise NotImplementedError(f"{type(self).__name__}: define _forward_log_det_jacobian or _inverse_log_det_jacobian")

    def inverse_log_det_jacobian(self, y):
        """log |det of the inverse's Jacobian at y|."""
        self._check("y", y, self._codomain)
        if hasattr(self, "_inverse_log_det_jacobian"):
            return self._inverse_log_det_jacobian(y)
        if hasattr(self, "_forward_log_det_jacobian"):
            return -self._forward_log_det_jacobian(self._inverse(y))
        raise NotImplementedError(f"{type(self).__name__}: define _forward_log_det_jacobian or _inverse_log_det_jacobian")

    def _check_shape(self, shape):
        if not _sequence(shape):
            raise TypeError(f"{type(self).__name__}: shape must be a list or tuple of ints, got {type(shape).__name__}")
        return shape

    def forward_shape(self, shape):
        """The shape of the transform of a tensor of that shape."""
        return self._forward_shape(self._check_shape(shape))

    def inverse_shape(self, shape):
        """The shape of what the transform makes a tensor of that shape of."""
        return self._inverse_shape(self._check_shape(shape))

    def _forward(self, x):
        raise NotImplementedError(f"{type(self).__name__}: forward is not defined")

    def _inverse(self, y):
        raise NotImplementedError(f"{type(self).__name__}: inverse is not defined")

    def _forward_shape(self, shape):
        return shape

    def _inverse_shape(self, shape):
        return shape


class AbsTransform(Transform):
    """|x|; its inverse is the two numbers −y and y."""

    _type, _codomain = Type.SURJECTION, POSITIVE

    def _forward(self, x):
        return x.abs()

    def _inverse(self, y):
        return -y, y

    def _inverse_log_det_jacobian(self, y):
        zero = _core.full([], 0, y.dtype)
        return zero, zero


class _Broadcasting(Transform):
    """A transform whose parameters broadcast against its argument."""

    _type = Type.BIJECTION

    def _forward_shape(self, shape):
        for parameter in self._parameters():
            shape = broadcast_shape(shape, parameter.shape)
        return tuple(shape)

    _inverse_shape = _forward_shape


class AffineTransform(_Broadcasting):
    """loc + scale·x.

    >>> one, two = paddle.to_tensor(1.0), paddle.to_tensor(2.0)
    >>> paddle.distribution.AffineTransform(one, two).forward(paddle.to_tensor([3.0])).tolist()
    [7.0]
    """

    def __init__(self, loc, scale):
        for name, value in (("loc", loc), ("scale", scale)):
            if not is_tensor(value):
                raise TypeError(f"AffineTransform: {name} must be a Tensor, got {type(value).__name__}")
        self._loc, self._scale = loc, scale

    @property
    def loc(self):
        return self._loc

    @property
    def scale(self):
        return self._scale

    def _parameters(self):
        return self._loc, self._scale

    def _forward(self, x):
        return self._loc + self._scale * x

    def _inverse(self, y):
        return (y - self._loc) / self._scale

    def _forward_log_det_jacobian(self, x):
        return self._scale.abs().log()


class PowerTransform(_Broadcasting):
    """x to a power."""

    _codomain = POSITIVE

    def __init__(self, power):
        if not is_tensor(power):
            raise TypeError(f"PowerTransform: power must be a Tensor, got {type(power).__name__}")
        self._power = power

    @property
    def power(self):
        return self._power

    def _parameters(self):
        return (self._power,)

    def _forward(self, x):
        return x.pow(self._power)

    def _inverse(self, y):
        return y.pow(1 / self._power)

    def _forward_log_det_jacobian(self, x):
        return (self._power * x.pow(self._power - 1)).abs().log()


class ExpTransform(Transform):
    """exp(x)."""

    _type, _codomain = Type.BIJECTION, POSITIVE

    def _forward(self, x):
        return x.exp()

    def _inverse(self, y):
        return y.log()

    def _forward_log_det_jacobian(self, x):
        return x


class SigmoidTransform(Transform):
    """1 / (1 + exp(−x))."""

    _codomain = Space(0, 0.0, 1.0)

    def _forward(self, x):
        return _core.sigmoid(x)

    def _inverse(self, y):
        return y.log() - (-y).log1p()

    def _forward_log_det_jacobian(self, x):
        return -_core.softplus(-x) - _core.softplus(x)


class TanhTransform(Transform):
    """tanh(x)."""

    _type, _codomain = Type.BIJECTION, Space(0, -1.0, 1.0)

    def _forward(self, x):
        return x.tanh()

    def _inverse(self, y):
        return y.atanh()

    def _forward_log_det_jacobian(self, x):
        return 2.0 * (math.log(2.0) - x - _core.softplus(-2.0 * x))


class SoftmaxTransform(Transform):
    """The softmax of the last dim, which has many inverses: log is taken."""

    _type, _domain, _codomain = Type.OTHER, Space(1), Space(1, 0.0, 1.0)

    def _forward(self, x):
        x = (x - x.max(-1, keepdim=True)[0]).exp()
        return x / x.sum(-1, keepdim=True)

    def _inverse(self, y):
        return y.log()

    def _forward_shape(self, shape):
        if len(shape) < 1:
            raise ValueError("SoftmaxTransform: shape must have one dim or more")
        return shape

    _inverse_shape = _forward_shape


class StickBreakingTransform(Transform):
    """n numbers as n + 1 parts of one: each takes a share of what its predecessors left."""

    _type, _domain, _codomain = Type.BIJECTION, Space(1), Space(1, 0.0, 1.0)

    @staticmethod
    def _offset(n):
        return _core.log(_core.arange(n, 0, -1, "float32"))

    @staticmethod
    def _beside(x, first):
        """x with a one before its last dim's first element, or behind its last one."""
        one = _core.full([*x.shape[:-1], 1], 1, x.dtype)
        return _core.concat([one, x] if first else [x, one], -1)

    def _forward(self, x):
        z = _core.sigmoid(x - self._offset(x.shape[-1]))
        return self._beside(z, False) * self._beside((1 - z).cumprod(-1), True)

    def _inverse(self, y):
        parts = y[..., :-1]
        return parts.log() - (1 - parts.cumsum(-1)).log() + self._offset(parts.shape[-1])

    def _forward_log_det_jacobian(self, x):
        y = self.forward(x)
        x = x - self._offset(x.shape[-1])
        return (-x + _core.logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def _resized(self, shape, by):
        if not shape:
            raise ValueError("StickBreakingTransform: shape must have one dim or more")
        return (*shape[:-1], shape[-1] + by)

    def _forward_shape(self, shape):
        return self._resized(shape, 1)

    def _inverse_shape(self, shape):
        return self._resized(shape, -1)


class ReshapeTransform(Transform):
    """The last dims, of in_event_shape, reshaped to out_event_shape."""

    _type = Type.BIJECTION

    def __init__(self, in_event_shape, out_event_shape):
        if not _sequence(in_event_shape) or not _sequence(out_event_shape):
            raise TypeError("ReshapeTransform: the event shapes must be lists or tuples of ints, got "
                            f"{in_event_shape!r} and {out_event_shape!r}")
        if math.prod(in_event_shape) != math.prod(out_event_shape):
            raise ValueError("ReshapeTransform: the event shapes must have as many elements, got "
                             f"{in_event_shape} and {out_event_shape}")
        self._in_event_shape, self._out_event_shape = tuple(in_event_shape), tuple(out_event_shape)

    @property
    def in_event_shape(self):
        return self._in_event_shape

    @property
    def out_event_shape(self):
        return self._out_event_shape

    @property
    def _domain(self):
        return Space(len(self._in_event_shape))

    @property
    def _codomain(self):
        return Space(len(self._out_event_shape))

    @staticmethod
    def _replaced(shape, old, new):
        cut = len(shape) - len(old)
        if cut < 0 or tuple(shape[cut:]) != old:
            raise ValueError(f"ReshapeTransform: shape must end in {old}, got {tuple(shape)}")
        return tuple(shape[:cut]) + new

    def _forward(self, x):
        return x.reshape(list(x.shape[:x.dim() - len(self._in_event_shape)]) + list(self._out_event_shape))

    def _inverse(self, y):
        return y.reshape(list(y.shape[:y.dim() - len(self._out_event_shape)]) + list(self._in_event_shape))

    def _forward_log_det_jacobian(self, x):
        return _core.full(list(x.shape[:x.dim() - len(self._in_event_shape)]), 0, x.dtype)

    def _forward_shape(self, shape):
        return self._replaced(shape, self._in_event_shape, self._out_event_shape)

    def _inverse_shape(self, shape):
        return self._replaced(shape, self._out_event_shape, self._in_event_shape)


class IndependentTransform(Transform):
    """A transform whose last reinterpreted_batch_rank batch dims are event dims."""

    def __init__(self, base, reinterpreted_batch_rank):
        if not isinstance(base, Transform):
            raise TypeError(f"IndependentTransform: base must be a Transform, got {type(base).__name__}")
        if reinterpreted_batch_rank <= 0:
            raise ValueError("IndependentTransform: reinterpreted_batch_rank must be above 0, "
                             f"got {reinterpreted_batch_rank}")
        self._base, self._reinterpreted_batch_rank = base, reinterpreted_batch_rank

    def _is_injective(self):
        return self._base._is_injective()

    @property
    def _domain(self):
        return self._base._domain.with_rank(self._base._domain.event_rank + self._reinterpreted_batch_rank)

    @property
    def _codomain(self):
        return self._base._codomain.with_rank(self._base._codomain.event_rank + self._reinterpreted_batch_rank)

    def _forward(self, x):
        return self._base.forward(x)

    def _inverse(self, y):
        return self._base.inverse(y)

    def _forward_log_det_jacobian(self, x):
        return sum_last(self._base.forward_log_det_jacobian(x), self._reinterpreted_batch_rank)

    def _forward_shape(self, shape):
        return self._base.forward_shape(shape)

    def _inverse_shape(self, shape):
        return self._base.inverse_shape(shape)


def _check_transforms(who, transforms):
    if not _sequence(transforms):
        raise TypeError(f"{who}: transforms must be a list or tuple of Transforms, got {type(transforms).__name__}")
    for t in transforms:
        if not isinstance(t, Transform):
            raise TypeError(f"{who}: transforms must be Transforms, got {type(t).__name__}")


class ChainTransform(Transform):
    """One transform after another, the first one first."""

    def __init__(self, transforms):
        _check_transforms("ChainTransform", transforms)
        self.transforms = transforms

    def _is_injective(self):
        return all(t._is_injective() for t in self.transforms)

    @property
    def _domain(self):
        """An event must have as many dims as the transform that needs most, seen through those before it."""
        rank = self.transforms[-1]._codomain.event_rank
        for t in reversed(self.transforms):
            rank = max(rank - t._codomain.event_rank + t._domain.event_rank, t._domain.event_rank)
        return self.transforms[0]._domain.with_rank(rank)

    @property
    def _codomain(self):
        rank = self.transforms[0]._domain.event_rank
        for t in self.transforms:
            rank = max(rank - t._domain.event_rank + t._codomain.event_rank, t._codomain.event_rank)
        return self.transforms[-1]._codomain.with_rank(rank)

    def _forward(self, x):
        for t in self.transforms:
            x = t.forward(x)
        return x

    def _inverse(self, y):
        for t in reversed(self.transforms):
            y = t.inverse(y)
        return y

    def _forward_log_det_jacobian(self, x):
        total, rank = 0.0, self._domain.event_rank
        for t in self.transforms:
            total = total + sum_last(t.forward_log_det_jacobian(x), rank - t._domain.event_rank)
            x, rank = t.forward(x), rank + t._codomain.event_rank - t._domain.event_rank
        return total

    def _forward_shape(self, shape):
        for t in self.transforms:
            shape = t.forward_shape(shape)
        return shape

    def _inverse_shape(self, shape):
        for t in reversed(self.transforms):
            shape = t.inverse_shape(shape)
        return shape


class StackTransform(Transform):
    """A transform of its own for each slice along axis."""

    @asks("transforms?")
    def __init__(self, transforms, axis=0):
        _check_transforms("StackTransform", transforms)
        if not transforms:
            raise TypeError("StackTransform: transforms must not be empty")
        if not isinstance(axis, int):
            raise TypeError(f"StackTransform: axis must be an int, got {type(axis).__name__}")
        self._transforms, self._axis = transforms, axis

    def _is_injective(self):
        return all(t._is_injective() for t in self._transforms)

    @property
    def transforms(self):
        return self._transforms

    @property
    def axis(self):
        return self._axis

    @property
    def _domain(self):
        return Space(max(t._domain.event_rank for t in self._transforms))

    @property
    def _codomain(self):
        return Space(max(t._codomain.event_rank for t in self._transforms))

    def _each(self, value, method):
        axis, count = self._axis, len(self._transforms)
        if not -value.dim() <= axis < value.dim():
            raise ValueError(f"StackTransform: a tensor of {value.dim()} dims has no axis {axis}")
        if value.shape[axis] != count:
            raise ValueError(f"StackTransform: length along axis {axis} must be {count}, got {value.shape[axis]}")
        slices = _core.unbind(value, axis)
        return _core.stack([getattr(t, method)(v) for t, v in zip(self._transforms, slices)], axis)

    def _forward(self, x):
        return self._each(x, "forward")

    def _inverse(self, y):
        return self._each(y, "inverse")

    def _forward_log_det_jacobian(self, x):
        return self._each(x, "forward_log_det_jacobian")
