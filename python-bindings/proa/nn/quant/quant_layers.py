"""Layers of ImperativeQuantAware: fake quantizers, observers of outputs, and the layers whose operands they quantize."""
from ... import _core
from ...framework import ParamAttr, unique_name
from .. import functional as F
from ..initializer import Constant
from ..layer.layers import Layer
from .lsq import FakeQuantActLSQPlus, FakeQuantWeightLSQPlus
from .qat.conv import convolution_of, convolve

__all__ = ["FakeQuantAbsMax", "FakeQuantMovingAverageAbsMax", "FakeQuantChannelWiseAbsMax", "QuantizedConv2D",
           "QuantizedConv2DTranspose", "QuantizedLinear", "MovingAverageAbsMaxScale", "MAOutputScaleLayer",
           "FakeQuantMAOutputScaleLayer", "QuantStub", "QuantizedRowParallelLinear", "QuantizedColumnParallelLinear",
           "QuantizedMatmul"]


class _Scaled(Layer):
    """A layer with numbers that training moves without gradients, named after what they belong to."""

    def _number(self, name, what, value, dtype="float32", count=1, otherwise="quant_dequant"):
        attr = ParamAttr(name=unique_name.generate(f"{name or otherwise}.{what}"), initializer=Constant(value),
                         trainable=False)
        made = self.create_parameter([count], attr, dtype)
        made.stop_gradient = True
        return made

    def _keep_scale(self, scale):
        """Notes what eager calls have found; programs find it anew."""
        if self._scale is not None and not scale.is_symbolic:
            self._scale.set_value(scale.detach())


class FakeQuantAbsMax(_Scaled):
    """x rounded to the integers of its largest magnitude, and back."""

    def __init__(self, name=None, quant_bits=8, dtype="float32", quant_on_weight=False, reduce_type=None):
        super().__init__()
        self._quant_bits = quant_bits
        self._scale = self._number(name, "scale", 0.001, dtype) if quant_on_weight else None

    def forward(self, input):
        out, scale = _core.fake_quantize_dequantize_abs_max(input, bit_length=self._quant_bits)
        self._keep_scale(scale)
        return out


class FakeQuantChannelWiseAbsMax(_Scaled):
    """A weight rounded to the integers of each channel's largest magnitude, and back."""

    def __init__(self, name=None, channel_num=None, quant_bits=8, quant_axis=0, dtype="float32", quant_on_weight=False,
                 reduce_type=None):
        if not quant_on_weight:
            raise AssertionError("FakeQuantChannelWiseAbsMax: channels are quantized in weights only (quant_on_weight=True)")
        super().__init__()
        self._quant_bits, self._quant_axis = quant_bits, quant_axis
        self._scale = self._number(name, "scale", 0.0, dtype, channel_num)

    def forward(self, input):
        out, scale = _core.fake_channel_wise_quantize_dequantize_abs_max(input, bit_length=self._quant_bits,
                                                                         quant_axis=self._quant_axis)
        self._keep_scale(scale)
        return out


class FakeQuantMovingAverageAbsMax(_Scaled):
    """x rounded to the integers of a moving average of largest magnitudes, and back. The average moves in training."""

    def __init__(self, name=None, moving_rate=0.9, quant_bits=8, dtype="float32", reduce_type=None):
        super().__init__()
        self._moving_rate, self._quant_bits = moving_rate, quant_bits
        self._scale = self._number(name, "scale", 0.001, dtype)
        self._state, self._accum = self._number(name, "state", 1.0, dtype), self._number(name, "accum", 1.0, dtype)

    def forward(self, input):
        accum, state = (self._accum, self._state) if self.training else (None, None)
        return _core.fake_quantize_dequantize_moving_average_abs_max(
            input, self._scale, accum, state, moving_rate=self._moving_rate, bit_length=self._quant_bits,
            is_test=not self.training)


class MovingAverageAbsMaxScale(_Scaled):
    """x itself; training keeps a moving average of its largest magnitudes."""

    def __init__(self, name=None, moving_rate=0.9, dtype="float32", reduce_type=None):
        super().__init__()
        self._moving_rate = moving_rate
        self._scale, self._state, self._accum = (self._number(name, what, 0.0, dtype, otherwise="outscale")
                                                 for what in ("scale", "state", "accum"))

    def forward(self, input):
        accum, state = (self._accum, self._state) if self.training else (None, None)
        return _core.moving_average_abs_max_scale(input, self._scale, accum, state, moving_rate=self._moving_rate,
                                                  is_test=not self.training)


QuantStub = MovingAverageAbsMaxScale


def _fake_quantizer(kind, name=None, moving_rate=0.9, quant_bits=8, dtype="float32", quant_on_weight=False,
                    channel_num=None, quant_axis=0, quant_linear=False):
    """A quantizer by Paddle's name of its kind."""
    if kind == "abs_max":
        return FakeQuantAbsMax(name, quant_bits, dtype, quant_on_weight)
    if kind == "channel_wise_abs_max":
        return FakeQuantChannelWiseAbsMax(name, channel_num, quant_bits, quant_axis, dtype, quant_on_weight)
    if kind == "moving_average_abs_max":
        return FakeQuantMovingAverageAbsMax(name, moving_rate, quant_bits, dtype)
    if kind in ("lsq_weight", "channel_wise_lsq_weight"):
        channels = kind == "channel_wise_lsq_weight"
        return FakeQuantWeightLSQPlus(quant_bits, per_channel=channels, channel_num=channel_num if channels else 1,
                                      quant_linear=quant_linear, dtype=dtype, name=name)
    if kind == "lsq_act":
        return FakeQuantActLSQPlus(quant_bits, symmetric=True, dtype=dtype, name=name)
    raise ValueError("a quantizer must be 'abs_max', 'channel_wise_abs_max', 'moving_average_abs_max', 'lsq_weight', "
                     f"'channel_wise_lsq_weight' or 'lsq_act', got {kind!r}")


def _made(layer):
    return None if layer is None else layer()


class _Quantized(Layer):
    """A layer with a weight and one input, both of which are quantized."""

    _quant_axis = 0

    def __init__(self, layer, weight_bits=8, activation_bits=8, moving_rate=0.9, weight_quantize_type="abs_max",
                 activation_quantize_type="abs_max", weight_pre_layer=None, act_pre_layer=None, weight_quant_layer=None,
                 act_quant_layer=None):
        super().__init__()
        self.weight, self.bias = layer.weight, layer.bias
        self._fake_quant_weight = _made(weight_quant_layer) or _fake_quantizer(
            weight_quantize_type, self.weight.name, moving_rate, weight_bits, self._dtype, True,
            self.weight.shape[self._quant_axis], self._quant_axis, isinstance(self, QuantizedLinear))
        self._fake_quant_input = _made(act_quant_layer) or _fake_quantizer(
            activation_quantize_type, layer.full_name(), moving_rate, activation_bits, self._dtype)
        self._act_preprocess, self._weight_preprocess = _made(act_pre_layer), _made(weight_pre_layer)

    def _operands(self, x):
        """The input and the weight, quantized."""
        weight = self.weight
        if self._act_preprocess is not None:
            x = self._act_preprocess(x)
        if self._weight_preprocess is not None:
            weight = self._weight_preprocess(weight)
        return self._fake_quant_input(x), self._fake_quant_weight(weight)


class QuantizedConv2D(_Quantized):
    """Conv2D of quantized operands."""

    def __init__(self, layer, *args, **kwargs):
        super().__init__(layer, *args, **kwargs)
        self.__dict__.update(convolution_of(layer))

    def forward(self, input):
        return convolve(self, *self._operands(input))


class QuantizedConv2DTranspose(_Quantized):
    """Conv2DTranspose of quantized operands."""

    _quant_axis = 1

    def __init__(self, layer, *args, **kwargs):
        super().__init__(layer, *args, **kwargs)
        self.__dict__.update(convolution_of(layer))

    def forward(self, input, output_size=None):
        x, weight = self._operands(input)
        extra = self.output_padding if output_size is None else 0
        return F.conv2d_transpose(x, weight, self.bias, self._stride, self._padding, extra, self._dilation, self._groups,
                                  output_size, self._data_format)


class QuantizedLinear(_Quantized):
    """Linear of quantized operands."""

    _quant_axis = 1

    def __init__(self, layer, *args, **kwargs):
        super().__init__(layer, *args, **kwargs)
        self.name = layer.name

    def forward(self, input):
        x, weight = self._operands(input)
        return F.linear(x, weight, self.bias)


class _QuantizedParallel(_Quantized):
    """A tensor-parallel linear layer of quantized operands: each rank quantizes its part of the weight."""

    _quant_axis = 1
    _kept = ()  # attributes of the layer that a subclass takes over

    def __init__(self, layer, weight_bits=8, activation_bits=8, moving_rate=0.9, weight_quantize_type="abs_max",
                 activation_quantize_type="abs_max", weight_pre_layer=None, act_pre_layer=None, weight_quant_layer=None,
                 act_quant_layer=None):
        kind = type(self).__name__.removeprefix("Quantized")
        for what, given in (("weight_quant_layer", weight_quant_layer), ("act_quant_layer", act_quant_layer)):
            if given is not None:
                raise AssertionError(f"Quantized{kind}: {what} must be None where a {kind} is quantized")
        super().__init__(layer, weight_bits, activation_bits, moving_rate, weight_quantize_type, activation_quantize_type,
                         weight_pre_layer, act_pre_layer)
        self.is_mp, self.model_parallel_group, self._place = layer.is_mp, layer._group, layer._place
        self.name = layer.full_name()
        for name in self._kept:
            setattr(self, name, getattr(layer, name))


class QuantizedColumnParallelLinear(_QuantizedParallel):
    """ColumnParallelLinear of quantized operands."""

    _kept = ("gather_output",)

    def forward(self, input):
        if self.is_mp:
            input = _core.mp_identity(input, group=self.model_parallel_group.id)
        x, weight = self._operands(input)
        out = F.linear(x, weight, self.bias)
        return _core.mp_concat(out, **self._place) if self.gather_output and self.is_mp else out


class QuantizedRowParallelLinear(_QuantizedParallel):
    """RowParallelLinear of quantized operands."""

    _kept = ("input_is_parallel",)

    def forward(self, input):
        if self.is_mp and not self.input_is_parallel:
            input = _core.mp_split(input, **self._place)
        out = F.linear(*self._operands(input))
        if self.is_mp:
            out = _core.mp_all_reduce(out, group=self.model_parallel_group.id)
        return out if self.bias is None else out + self.bias


class QuantizedMatmul(Layer):
    """matmul of quantized operands."""

    def __init__(self, layer=None, weight_bits=8, activation_bits=8, moving_rate=0.9, weight_quantize_type="abs_max",
                 activation_quantize_type="abs_max", weight_pre_layer=None, act_pre_layer=None, weight_quant_layer=None,
                 act_quant_layer=None):
        super().__init__()
        make = act_quant_layer or (lambda: _fake_quantizer(activation_quantize_type, None, moving_rate, activation_bits))
        self._fake_quant_x, self._fake_quant_y = make(), make()
        self._act_preprocess_x, self._act_preprocess_y = _made(act_pre_layer), _made(act_pre_layer)

    def forward(self, x, y, transpose_x=False, transpose_y=False, name=None):
        from ... import matmul
        x = x if self._act_preprocess_x is None else self._act_preprocess_x(x)
        y = y if self._act_preprocess_y is None else self._act_preprocess_y(y)
        return matmul(self._fake_quant_x(x), self._fake_quant_y(y), transpose_x, transpose_y)


class _Followed(Layer):
    """A layer, and what its one output goes through."""

    def _through(self, out):
        raise NotImplementedError

    def forward(self, *inputs, **kwargs):
        out = self._layer(*inputs, **kwargs)
        return out if isinstance(out, (list, tuple, dict)) else self._through(out)


class MAOutputScaleLayer(_Followed):
    """A layer whose output's largest magnitudes are averaged."""

    def __init__(self, layer=None, moving_rate=0.9, name=None, dtype="float32", reduce_type=None):
        super().__init__()
        self._layer = layer
        self._ma_output_scale = MovingAverageAbsMaxScale(name or layer.full_name(), moving_rate, dtype)

    def _through(self, out):
        return self._ma_output_scale(out)


class FakeQuantMAOutputScaleLayer(_Followed):
    """A layer whose output is quantized."""

    def __init__(self, layer, weight_bits=8, activation_bits=8, moving_rate=0.9, name=None, reduce_type=None, *args, **kwargs):
        super().__init__()
        self._layer = layer
        self._fake_quant_output = FakeQuantMovingAverageAbsMax(name or layer.full_name(), moving_rate, activation_bits)

    def _through(self, out):
        return self._fake_quant_output(out)
