"""Layers of activations. Most are a line: the op's settings, their defaults and its description come from the op table."""
from ... import _core
from ...framework.dtype import get_default_dtype
from .. import functional as F
from ..initializer import Constant
from .layers import Layer
from .stored import stored


def _activation(name, function, *settings, **defaults):
    globals()[name] = stored(__name__, name, function, *settings, **defaults)


_activation("Hardswish", _core.hardswish)
_activation("Tanh", _core.tanh)
_activation("ReLU", _core.relu)
_activation("ReLU6", _core.relu6)
_activation("Sigmoid", _core.sigmoid)
_activation("Hardsigmoid", _core.hardsigmoid)
_activation("Softsign", _core.softsign)
_activation("Swish", _core.swish)
_activation("Mish", _core.mish)
_activation("Tanhshrink", _core.tanhshrink)
_activation("Silu", _core.silu)
_activation("LogSigmoid", _core.logsigmoid)
_activation("CELU", F.celu, "alpha")
_activation("ELU", _core.elu, "alpha")
_activation("GLU", F.glu, "axis")
_activation("GELU", _core.gelu, "approximate")
_activation("Hardshrink", _core.hardshrink, "threshold")
_activation("Hardtanh", _core.hardtanh, "min", "max")
_activation("LeakyReLU", _core.leaky_relu, "negative_slope")
_activation("Softplus", _core.softplus, "beta", "threshold", beta=1, threshold=20)
_activation("Softshrink", F.softshrink, "threshold")
_activation("ThresholdedReLU", _core.thresholded_relu, "threshold")
_activation("Softmax", _core.softmax, "axis")
_activation("LogSoftmax", _core.log_softmax, "axis")
_activation("Maxout", F.maxout, "groups", "axis")


class SELU(stored(__name__, "SELU", F.selu, "scale", "alpha")):
    """scale * elu(x, alpha), self-normalizing."""

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
        text = f"num_parameters={self._num_parameters}, data_format={self._data_format}, init={self._init}, dtype={self._dtype}"
        return text + (f", name={self._name}" if self._name else "")


class RReLU(stored(__name__, "RReLU", F.rrelu, "lower", "upper")):
    """x where positive, else x times a slope drawn from [lower, upper) (their mean outside training)."""

    def extra_repr(self):
        text = f"lower={self._lower}, upper={self._upper}, training={self.training}, dtype={self._dtype}"
        return text + (f", name={self._name}" if self._name else "")


class Softmax2D(stored(__name__, "Softmax2D", _core.softmax)):
    """softmax over the channels of images [N, C, H, W] or [C, H, W]."""

    def forward(self, x):
        if x.ndim not in (3, 4):
            raise AssertionError(f"Softmax2D: x must have 3 or 4 axes, got shape {x.shape}")
        return _core.softmax(x, -3)
