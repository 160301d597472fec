"""Normalization layers. Running statistics are named _mean and _variance, as in Paddle's state dicts."""
from operator import index

from ... import _core
from ..._asks import ask, asks
from ...autograd.guards import no_grad
from ...framework.dims import differ
from ...framework.dtype import get_default_dtype
from ...framework.mode import in_dynamic_mode
from ...framework.param_attr import ParamAttr
from .. import functional as F
from ..functional.norm import statistics_move
from ..initializer import Constant, Normal
from .layers import Layer

_matmul = _core.api("paddle")["matmul"]  # refuses operands of two floating dtypes


def _statistics(layer, size, names, dtype, average=True):
    """The running mean and variance: parameters that are not trained."""
    for attribute, name, value in (("_mean", names[0], 0.0), ("_variance", names[1], 1.0)):
        attr = ParamAttr(name=name, initializer=Constant(value), trainable=False, do_model_average=average)
        setattr(layer, attribute, layer.create_parameter([size], attr, dtype))
        getattr(layer, attribute).stop_gradient = True


def _scales(layer, size, weight_attr, bias_attr, dtype=None):
    """weight (ones) and bias (zeros) of a normalization; None where its attribute is False."""
    layer.weight = None if weight_attr is False else \
        layer.create_parameter([size], weight_attr, dtype, False, Constant(1.0))
    layer.bias = None if bias_attr is False else layer.create_parameter([size], bias_attr, dtype, True)


def _check_rank(layer, input):
    if input.ndim not in layer._ranks:
        raise ValueError(f"{type(layer).__name__}: expected {' or '.join(map(str, layer._ranks))} axes, got shape "
                         f"{input.shape}")


class _BatchNormBase(Layer):
    """Batch normalization; a subclass says which ranks and data formats it takes."""

    _ranks, _formats = (), {}

    def __init__(self, num_features, momentum=0.9, epsilon=1e-05, weight_attr=None, bias_attr=None,
                 data_format="NCHW", use_global_stats=None, name=None):
        super().__init__()
        self._num_features = num_features
        self._weight_attr = weight_attr
        self._bias_attr = bias_attr
        self._use_global_stats = use_global_stats
        dtype = str(get_default_dtype())
        self._dtype = "float32" if dtype == "float16" else dtype
        _scales(self, num_features, weight_attr, bias_attr, self._dtype)
        _statistics(self, num_features, (None, None) if name is None else (name + "_mean", name + "_variance"),
                    self._dtype)
        self._data_format = data_format
        self._in_place = False
        self._momentum = momentum
        self._epsilon = epsilon
        self._name = name

    def _check_data_format(self, input):
        """Raises for a data format that the class does not take; forward calls it with the one it has."""
        layout = self._formats.get(input)
        if layout is None:
            raise ValueError(f"{type(self).__name__}: data_format must be one of {', '.join(self._formats)}, got "
                             f"{input!r}")
        self._data_format = layout

    def _check_input_dim(self, input):
        """Raises for an input of another rank than the class takes."""
        _check_rank(self, input)

    def forward(self, input):
        self._check_data_format(self._data_format)
        self._check_input_dim(input)
        test, fixed = not self.training, self._use_global_stats
        if fixed is None:
            fixed, trainable = test, False
        else:
            trainable = not fixed
        if input.is_symbolic and not fixed:
            statistics_move(self._mean, self._variance)
        return _core.batch_norm(input, self._mean, self._variance, self.weight, self.bias, test, self._momentum,
                                self._epsilon, self._data_format, fixed, trainable)[0]

    def extra_repr(self):
        text = f"num_features={self._num_features}, momentum={self._momentum}, epsilon={self._epsilon}"
        if self._data_format != "NCHW":
            text += f", data_format={self._data_format}"
        return text if self._name is None else f"{text}, name={self._name}"


class BatchNorm1D(_BatchNormBase):
    """Batch normalization of [N, C] or [N, C, L]."""

    _ranks, _formats = (2, 3), {"NC": "NCHW", "NCL": "NCHW", "NCHW": "NCHW", "NLC": "NHWC", "NHWC": "NHWC"}

    def __init__(self, num_features, momentum=0.9, epsilon=1e-05, weight_attr=None, bias_attr=None,
                 data_format="NCL", use_global_stats=None, name=None):
        super().__init__(num_features, momentum, epsilon, weight_attr, bias_attr, data_format, use_global_stats, name)


class BatchNorm2D(_BatchNormBase):
    """Batch normalization of images."""

    _ranks, _formats = (4,), {"NCHW": "NCHW", "NHWC": "NHWC"}


class BatchNorm3D(_BatchNormBase):
    """Batch normalization of volumes."""

    _ranks, _formats = (5,), {"NCDHW": "NCHW", "NCHW": "NCHW", "NDHWC": "NHWC", "NHWC": "NHWC"}

    def __init__(self, num_features, momentum=0.9, epsilon=1e-05, weight_attr=None, bias_attr=None,
                 data_format="NCDHW", use_global_stats=None, name=None):
        super().__init__(num_features, momentum, epsilon, weight_attr, bias_attr, data_format, use_global_stats, name)


def _over_ranks(layer, x):
    """Batch normalization over the ranks' batches, made of ops: gradients of sums over ranks are sums over ranks. A rank's
    sum of squares is about the mean of all."""
    last = layer._data_format == "NHWC"
    axes = [i for i in range(x.ndim) if i != (x.ndim - 1 if last else min(1, x.ndim - 1))]
    wide = x if x.dtype == _core.float64 else x.astype("float32")
    sizes = [1 if i in axes else layer._num_features for i in range(x.ndim)]
    if in_dynamic_mode():
        here = _core.full([1], x.size // layer._num_features, dtype=wide.dtype)
    else:  # the run tells how many there are
        here = _core.size(x).astype(wide.dtype).reshape([1]) / layer._num_features
    total = _core.all_reduce(_core.concat([wide.sum(axes), here]))
    mean, count = total[:-1] / total[-1].detach(), total[-1].detach()
    centred = wide - mean.reshape(sizes)
    variance = _core.all_reduce((centred * centred).sum(axes)) / count
    out = centred * (variance + layer._epsilon).rsqrt().reshape(sizes)
    if layer.weight is not None:
        out = out * layer.weight.reshape(sizes)
    if layer.bias is not None:
        out = out + layer.bias.reshape(sizes)
    if x.is_symbolic:
        statistics_move(layer._mean, layer._variance)
    with no_grad():
        for kept, now in ((layer._mean, mean), (layer._variance, variance)):
            kept.scale_(layer._momentum).add_(now.detach() * (1 - layer._momentum))
    return out.astype(x.dtype)


class SyncBatchNorm(_BatchNormBase):
    """Batch normalization whose statistics are those of all processes; in one process, BatchNorm."""

    _formats = {"NC": "NCHW", "NCL": "NCHW", "NCHW": "NCHW", "NCDHW": "NCHW", "NLC": "NHWC", "NHWC": "NHWC",
                "NDHWC": "NHWC"}

    def _check_input_dim(self, input):
        """Any rank."""

    def __init__(self, num_features, momentum=0.9, epsilon=1e-05, weight_attr=None, bias_attr=None,
                 data_format="NCHW", name=None):
        super().__init__(num_features, momentum, epsilon, weight_attr, bias_attr, data_format, None, name)

    @asks("eager:x:Tensor!InvalidArgument static:x:Tensor")
    def forward(self, x):
        from ...distributed.group import world
        if not self.training or world().nranks < 2:
            return super().forward(x)
        self._check_data_format(self._data_format)
        return _over_ranks(self, x)

    @classmethod
    def convert_sync_batchnorm(cls, layer):
        """layer with every batch norm inside replaced by a SyncBatchNorm of the same parameters."""
        made = layer
        if isinstance(layer, _BatchNormBase) and not isinstance(layer, SyncBatchNorm):
            made = cls(layer._num_features, layer._momentum, layer._epsilon, layer._weight_attr, layer._bias_attr,
                       layer._data_format, layer._name)
            made.weight, made.bias = layer.weight, layer.bias
            made._mean, made._variance = layer._mean, layer._variance
            made.training = layer.training
        for name, child in list(layer.named_children()):
            made.add_sublayer(name, cls.convert_sync_batchnorm(child))
        return made


# Operators that are functions of nn.functional with the same attributes.
_PLAIN = frozenset("relu relu6 sigmoid tanh swish softmax gelu mish silu".split())


def activated(x, act):
    """What Paddle's operator of that name makes of x, with the operator's own attributes: slope 0.2 for hard_sigmoid."""
    if act in _PLAIN:
        return getattr(F, act)(x)
    from ... import _legacy_C_ops
    return _legacy_C_ops.call(act, x)


class BatchNorm(Layer):
    """Batch normalization of any rank, with an activation: the form of Paddle 1."""

    def __init__(self, num_channels, act=None, is_test=False, momentum=0.9, epsilon=1e-05, param_attr=None,
                 bias_attr=None, dtype="float32", data_layout="NCHW", in_place=False, moving_mean_name=None,
                 moving_variance_name=None, do_model_average_for_mean_and_var=True, use_global_stats=False,
                 trainable_statistics=False):
        super().__init__()
        self._param_attr = param_attr
        self._bias_attr = bias_attr
        self._act = act
        self._dtype = "float32" if dtype == "float16" else dtype
        _scales(self, num_channels, param_attr, bias_attr, self._dtype)
        _statistics(self, num_channels, (moving_mean_name, moving_variance_name), self._dtype,
                    do_model_average_for_mean_and_var)
        self._in_place = in_place
        self._data_layout = data_layout
        self._momentum = momentum
        self._epsilon = epsilon
        self._is_test = is_test
        self._use_global_stats = use_global_stats
        self._trainable_statistics = trainable_statistics

    @asks("eager:input:Tensor!InvalidArgument static:input:Tensor")
    def forward(self, input):
        if input.is_symbolic and self.training:
            statistics_move(self._mean, self._variance)
        out = _core.batch_norm(input, self._mean, self._variance, self.weight, self.bias, not self.training,
                               self._momentum, self._epsilon, self._data_layout, self._use_global_stats,
                               self._trainable_statistics)[0]
        return out if self._act is None else activated(out, self._act)


class _InstanceNormBase(Layer):
    _ranks = ()

    def __init__(self, num_features, epsilon=1e-05, momentum=0.9, weight_attr=None, bias_attr=None,
                 data_format="NCHW", name=None):
        super().__init__()
        if (weight_attr is False) != (bias_attr is False):
            raise AssertionError(f"{type(self).__name__}: weight_attr and bias_attr must be False together")
        self._momentum = momentum
        self._epsilon = epsilon
        self._weight_attr = weight_attr
        self._bias_attr = bias_attr
        self._num_features = num_features
        self._data_format = data_format
        self.scale = None if weight_attr is False else \
            self.create_parameter([num_features], weight_attr, None, False, Constant(1.0))
        self.bias = None if bias_attr is False else \
            self.create_parameter([num_features], bias_attr, None, True, Constant(0.0))

    def _check_input_dim(self, input):
        """Raises for an input of another rank than the class takes."""
        _check_rank(self, input)

    def forward(self, input):
        self._check_input_dim(input)
        try:
            return _core.instance_norm(input, self.scale, self.bias, self._epsilon)[0]
        except Exception as error:
            ask("input>>f4,f8>>weight", type(self).__name__, error, input=input, weight=self.scale)
            raise

    def extra_repr(self):
        return f"num_features={self._num_features}, epsilon={self._epsilon}"


class InstanceNorm1D(_InstanceNormBase):
    """Each channel of each signal with statistics of its own."""

    _ranks = (2, 3)

    def __init__(self, num_features, epsilon=1e-05, momentum=0.9, weight_attr=None, bias_attr=None,
                 data_format="NCL", name=None):
        super().__init__(num_features, epsilon, momentum, weight_attr, bias_attr, data_format, name)


class InstanceNorm2D(_InstanceNormBase):
    """Each channel of each image with statistics of its own."""

    _ranks = (4,)


class InstanceNorm3D(_InstanceNormBase):
    """Each channel of each volume with statistics of its own."""

    _ranks = (5,)

    def __init__(self, num_features, epsilon=1e-05, momentum=0.9, weight_attr=None, bias_attr=None,
                 data_format="NCDHW", name=None):
        super().__init__(num_features, epsilon, momentum, weight_attr, bias_attr, data_format, name)


class GroupNorm(Layer):
    """Each example's channels in num_groups groups with statistics of their own."""

    def __init__(self, num_groups, num_channels, epsilon=1e-05, weight_attr=None, bias_attr=None, data_format="NCHW",
                 name=None):
        super().__init__()
        if data_format not in ("NCHW", "NHWC"):
            raise ValueError(f"GroupNorm: data_format must be 'NCHW' or 'NHWC', got {data_format!r}")
        self._weight_attr = weight_attr
        self._bias_attr = bias_attr
        self._epsilon = epsilon
        self._num_channels = num_channels
        self._num_groups = num_groups
        self._data_format = data_format
        # an attribute of False, or a learning rate of 0, makes the parameter a constant
        self.weight = self.create_parameter([num_channels], weight_attr or None, None, False, Constant(1.0))
        self.weight.stop_gradient = weight_attr is False or getattr(weight_attr, "learning_rate", 1.0) == 0.0
        self.bias = self.create_parameter([num_channels], bias_attr or None, None, True)
        self.bias.stop_gradient = bias_attr is False or getattr(bias_attr, "learning_rate", 1.0) == 0.0

    def forward(self, input):
        try:
            return _core.group_norm(input, self._num_groups, self.weight, self.bias, self._epsilon, self._data_format)[0]
        except Exception as error:
            ask("input,weight>>f4,f8", type(self).__name__, error, input=input, weight=self.weight)
            raise

    def extra_repr(self):
        return f"num_groups={self._num_groups}, num_channels={self._num_channels}, epsilon={self._epsilon}"


class LayerNorm(Layer):
    """Normalization over the last axes, whose sizes are normalized_shape."""

    def __init__(self, normalized_shape, epsilon=1e-05, weight_attr=None, bias_attr=None, name=None):
        super().__init__()
        try:
            self._normalized_shape = [index(normalized_shape)]
        except TypeError:
            self._normalized_shape = list(normalized_shape)
        self._epsilon = epsilon
        self._weight_attr = weight_attr
        self._bias_attr = bias_attr
        size = 1
        for s in self._normalized_shape:
            size *= s
        _scales(self, size, weight_attr, bias_attr)

    def forward(self, input):
        return F.layer_norm(input, self._normalized_shape, self.weight, self.bias, self._epsilon)

    def extra_repr(self):
        return f"normalized_shape={self._normalized_shape}, epsilon={self._epsilon}"


class LocalResponseNorm(Layer):
    """x divided by a power of the squares of neighboring channels."""

    def __init__(self, size, alpha=0.0001, beta=0.75, k=1.0, data_format="NCHW", name=None):
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k
        self.data_format = data_format
        self.name = name

    def forward(self, input):
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k, self.data_format)

    def extra_repr(self):
        text = f"size={self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
        if self.data_format != "NCHW":
            text += f", data_format={self.data_format}"
        return text if self.name is None else f"{text}, name={self.name}"


class SpectralNorm(Layer):
    """A weight divided by its largest singular value, which power_iters steps estimate at each call."""

    def __init__(self, weight_shape, dim=0, power_iters=1, eps=1e-12, dtype="float32"):
        super().__init__()
        self._power_iters = power_iters
        self._eps = eps
        self._dim = dim
        self._dtype = dtype
        self._weight_shape = list(weight_shape)
        if min(self._weight_shape) <= 0:
            raise AssertionError(f"SpectralNorm: weight_shape must have no 0, got {weight_shape}")
        if dim >= len(self._weight_shape):
            raise AssertionError(f"SpectralNorm: dim must be below {len(self._weight_shape)}, got {dim}")
        height, width = self._weight_shape[dim], 1
        for s in self._weight_shape:
            width *= s
        for name, size in (("weight_u", height), ("weight_v", width // height)):
            setattr(self, name, self.create_parameter([size], ParamAttr(), dtype, False, Normal(0.0, 1.0)))
            getattr(self, name).stop_gradient = True

    @asks("eager:x:Tensor!InvalidArgument eager:x.dtype=f4,f8!NotFound")
    def forward(self, x):
        if differ(x.shape[self._dim], self._weight_shape[self._dim]):
            raise ValueError(f"(InvalidArgument) SpectralNorm: x must have length {self._weight_shape[self._dim]} along axis "
                             f"{self._dim}, got shape {x.shape}")
        order = [self._dim] + [a for a in range(x.ndim) if a != self._dim]
        matrix = _core.reshape(_core.transpose(x, order), [self._weight_shape[self._dim], -1])
        u, v = self._vectors(matrix)
        return x / _core.sum(u * _core.mv(matrix, v))

    def _vectors(self, matrix):
        was = _core.set_recording(False)
        try:
            u, v, eps = self.weight_u, self.weight_v, self._eps
            if self._power_iters > 0:
                for _ in range(self._power_iters):
                    v = _matmul(matrix, u, True)
                    v = v / (_core.p_norm(v) + eps)
                    u = _core.mv(matrix, v)
                    u = u / (_core.p_norm(u) + eps)
            return u.detach(), v.detach()
        finally:
            _core.set_recording(was)
