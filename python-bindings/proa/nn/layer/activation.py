"""Layers of activations: each holds its settings and calls one function."""
from ... import _core
from ...framework.dtype import get_default_dtype
from .. import functional as F
from ..initializer import Constant
from .layers import Layer


def _named(layer, *shown):
    """What extra_repr shows: "alpha=1.0, name=…"."""
    parts = [f"{what}={getattr(layer, '_' + what)}" for what in shown]
    return ", ".join(parts + [f"name={layer._name}"] if layer._name else parts)


class _Plain(Layer):
    """An activation without settings."""

    def __init__(self, name=None):
        super().__init__()
        self._name = name

    def extra_repr(self):
        return _named(self)


class Hardswish(_Plain):
    """x * min(max(x + 3, 0), 6) / 6."""

    def forward(self, x):
        return _core.hardswish(x)


class Tanh(_Plain):
    """The hyperbolic tangent."""

    def forward(self, x):
        return _core.tanh(x)


class ReLU(_Plain):
    """max(x, 0)."""

    def forward(self, x):
        return _core.relu(x)


class ReLU6(_Plain):
    """x limited to [0, 6]."""

    def forward(self, x):
        return _core.relu6(x)


class Sigmoid(_Plain):
    """1 / (1 + exp(-x))."""

    def forward(self, x):
        return _core.sigmoid(x)


class Hardsigmoid(_Plain):
    """x / 6 + 0.5, limited to [0, 1]."""

    def forward(self, x):
        return _core.hardsigmoid(x)


class Softsign(_Plain):
    """x / (1 + |x|)."""

    def forward(self, x):
        return _core.softsign(x)


class Swish(_Plain):
    """x * sigmoid(x)."""

    def forward(self, x):
        return _core.swish(x)


class Mish(_Plain):
    """x * tanh(softplus(x))."""

    def forward(self, x):
        return _core.mish(x)


class Tanhshrink(_Plain):
    """x - tanh(x)."""

    def forward(self, x):
        return _core.tanhshrink(x)


class Silu(_Plain):
    """x * sigmoid(x)."""

    def forward(self, x):
        return _core.silu(x)


class LogSigmoid(_Plain):
    """log(sigmoid(x))."""

    def forward(self, x):
        return _core.logsigmoid(x)


class CELU(Layer):
    """max(x, 0) + min(alpha * (exp(x / alpha) - 1), 0)."""

    def __init__(self, alpha=1.0, name=None):
        super().__init__()
        self._alpha = alpha
        self._name = name

    def forward(self, x):
        return F.celu(x, self._alpha)

    def extra_repr(self):
        return _named(self, "alpha")


class ELU(Layer):
    """x where positive, else alpha * (exp(x) - 1)."""

    def __init__(self, alpha=1.0, name=None):
        super().__init__()
        self._alpha = alpha
        self._name = name

    def forward(self, x):
        return _core.elu(x, self._alpha)

    def extra_repr(self):
        return _named(self, "alpha")


class GLU(Layer):
    """The first half of x along an axis times the sigmoid of the second."""

    def __init__(self, axis=-1, name=None):
        super().__init__()
        self._axis = axis
        self._name = name

    def forward(self, x):
        return F.glu(x, self._axis)

    def extra_repr(self):
        return _named(self, "axis")


class GELU(Layer):
    """x times the normal distribution function of x."""

    def __init__(self, approximate=False, name=None):
        super().__init__()
        self._approximate = approximate
        self._name = name

    def forward(self, x):
        return _core.gelu(x, self._approximate)

    def extra_repr(self):
        return _named(self, "approximate")


class Hardshrink(Layer):
    """0 where |x| <= threshold, else x."""

    def __init__(self, threshold=0.5, name=None):
        super().__init__()
        self._threshold = threshold
        self._name = name

    def forward(self, x):
        return _core.hardshrink(x, self._threshold)

    def extra_repr(self):
        return _named(self, "threshold")


class Hardtanh(Layer):
    """x limited to [min, max]."""

    def __init__(self, min=-1.0, max=1.0, name=None):
        super().__init__()
        self._min = min
        self._max = max
        self._name = name

    def forward(self, x):
        return _core.hardtanh(x, self._min, self._max)

    def extra_repr(self):
        return _named(self, "min", "max")


class LeakyReLU(Layer):
    """x where positive, else negative_slope * x."""

    def __init__(self, negative_slope=0.01, name=None):
        super().__init__()
        self._negative_slope = negative_slope
        self._name = name

    def forward(self, x):
        return _core.leaky_relu(x, self._negative_slope)

    def extra_repr(self):
        return _named(self, "negative_slope")


class Softplus(Layer):
    """log(1 + exp(beta * x)) / beta; x itself where beta * x is above threshold."""

    def __init__(self, beta=1, threshold=20, name=None):
        super().__init__()
        self._beta = beta
        self._threshold = threshold
        self._name = name

    def forward(self, x):
        return _core.softplus(x, self._beta, self._threshold)

    def extra_repr(self):
        return _named(self, "beta", "threshold")


class Softshrink(Layer):
    """x moved towards 0 by threshold, 0 where |x| <= threshold."""

    def __init__(self, threshold=0.5, name=None):
        super().__init__()
        self._threshold = threshold
        self._name = name

    def forward(self, x):
        return F.softshrink(x, self._threshold)

    def extra_repr(self):
        return _named(self, "threshold")


class ThresholdedReLU(Layer):
    """x where above threshold, else 0."""

    def __init__(self, threshold=1.0, name=None):
        super().__init__()
        self._threshold = threshold
        self._name = name

    def forward(self, x):
        return _core.thresholded_relu(x, self._threshold)

    def extra_repr(self):
        return _named(self, "threshold")


class Softmax(Layer):
    """exp(x) / sum(exp(x)) along an axis."""

    def __init__(self, axis=-1, name=None):
        super().__init__()
        self._axis = axis
        self._name = name

    def forward(self, x):
        return _core.softmax(x, self._axis)

    def extra_repr(self):
        return _named(self, "axis")


class LogSoftmax(Layer):
    """The logarithm of softmax along an axis."""

    def __init__(self, axis=-1, name=None):
        super().__init__()
        self._axis = axis
        self._name = name

    def forward(self, x):
        return _core.log_softmax(x, self._axis)

    def extra_repr(self):
        return _named(self, "axis")


class Maxout(Layer):
    """The largest of every `groups` neighboring channels."""

    def __init__(self, groups, axis=1, name=None):
        super().__init__()
        self._groups = groups
        self._axis = axis
        self._name = name

    def forward(self, x):
        return F.maxout(x, self._groups, self._axis)

    def extra_repr(self):
        return _named(self, "groups", "axis")


class SELU(Layer):
    """scale * elu(x, alpha), self-normalizing."""

    def __init__(self, scale=1.0507009873554804934193349852946, alpha=1.6732632423543772848170429916717, name=None):
        super().__init__()
        self._scale = scale
        self._alpha = alpha
        self._name = name

    def forward(self, x):
        return F.selu(x, self._scale, self._alpha)

    def extra_repr(self):
        return f"scale={self._scale:.16f}, alpha={self._alpha:.16f}" + (f", name={self._name}" if self._name else "")


class PReLU(Layer):
    """x where positive, else a learnt weight (one, or one a channel) times x."""

    def __init__(self, num_parameters=1, init=0.25, weight_attr=None, data_format="NCHW", name=None):
        super().__init__()
        self._num_parameters = num_parameters
        self._init = init
        self._weight_attr = weight_attr
        self._data_format = data_format
        self._name = name
        self._weight = self.create_parameter([num_parameters], weight_attr, get_default_dtype(), False,
                                             Constant(init))

    def forward(self, x):
        return F.prelu(x, self._weight, self._data_format)

    def extra_repr(self):
        return _named(self, "num_parameters", "data_format", "init", "dtype")


class RReLU(Layer):
    """x where positive, else x times a slope drawn from [lower, upper) (their mean outside training)."""

    def __init__(self, lower=1.0 / 8.0, upper=1.0 / 3.0, name=None):
        super().__init__()
        self._lower = lower
        self._upper = upper
        self._name = name

    def forward(self, x):
        return F.rrelu(x, self._lower, self._upper, self.training)

    def extra_repr(self):
        text = f"lower={self._lower}, upper={self._upper}, training={self.training}, dtype={self._dtype}"
        return text + (f", name={self._name}" if self._name else "")


class Softmax2D(_Plain):
    """softmax over the channels of images [N, C, H, W] or [C, H, W]."""

    def forward(self, x):
        if x.ndim not in (3, 4):
            raise AssertionError(f"Softmax2D: x must have 3 or 4 axes, got shape {x.shape}")
        return _core.softmax(x, -3)
