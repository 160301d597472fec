"""Everyday layers: linear maps, embedding, dropout, padding, resampling, windows, shapes."""
from ... import _core
from ..._asks import need_kernel
from ...framework.dtype import get_default_dtype
from .. import functional as F
from .layers import Layer
from .stored import stored

_linear = _core.api("paddle.nn.functional")["linear"]  # refuses operands of two floating dtypes


def _stored(name, function, *settings, **options):
    globals()[name] = stored(__name__, name, function, *settings, **{"prefix": "", **options})


def _named(text, name):
    return f"{text}, name={name}" if name else text


class Identity(Layer):
    """Its input; any arguments are ignored."""

    def __init__(self, *args, **kwargs):
        super().__init__()

    def forward(self, input):
        return input


class Linear(Layer):
    """x · weight + bias, weight [in_features, out_features]."""

    def __init__(self, in_features, out_features, weight_attr=None, bias_attr=None, name=None):
        super().__init__()
        self._dtype = get_default_dtype()
        self._weight_attr = weight_attr
        self._bias_attr = bias_attr
        self.weight = self.create_parameter([in_features, out_features], weight_attr, self._dtype)
        self.bias = self.create_parameter([out_features], bias_attr, self._dtype, True)
        self.name = name

    def forward(self, input):
        return _linear(input, self.weight, self.bias)

    def extra_repr(self):
        rows, columns = self.weight.shape
        return _named(f"in_features={rows}, out_features={columns}, dtype={self._dtype}", self.name)


class Bilinear(Layer):
    """x1 · weight[k] · x2 + bias for every k of out_features."""

    def __init__(self, in1_features, in2_features, out_features, weight_attr=None, bias_attr=None, name=None):
        super().__init__()
        self._in1_features = in1_features
        self._in2_features = in2_features
        self._out_features = out_features
        self._weight_attr = weight_attr
        self._bias_attr = bias_attr
        self._name = name
        self._dtype = get_default_dtype()
        self.weight = self.create_parameter([out_features, in1_features, in2_features], weight_attr, self._dtype)
        self.bias = self.create_parameter([1, out_features], bias_attr, self._dtype, True)

    def forward(self, x1, x2):
        return F.bilinear(x1, x2, self.weight, self.bias)

    def extra_repr(self):
        return _named(f"in1_features={self._in1_features}, in2_features={self._in2_features}, "
                      f"out_features={self._out_features}, dtype={self._dtype}", self._name)


class Embedding(Layer):
    """A table of num_embeddings learnt rows; row padding_idx stays zero."""

    def __init__(self, num_embeddings, embedding_dim, padding_idx=None, sparse=False, weight_attr=None, name=None):
        super().__init__()
        if num_embeddings <= 0 or embedding_dim <= 0:
            raise ValueError(f"Embedding: num_embeddings and embedding_dim must be above 0, got {num_embeddings} and "
                             f"{embedding_dim}")
        if padding_idx is not None and not -num_embeddings <= padding_idx < num_embeddings:
            raise ValueError(f"Embedding: padding_idx must be in [{-num_embeddings}, {num_embeddings}), got "
                             f"{padding_idx}")
        self._num_embeddings = num_embeddings
        self._embedding_dim = embedding_dim
        self._size = [num_embeddings, embedding_dim]
        self._sparse = sparse
        self._is_distributed = False
        self._padding_idx = padding_idx
        self._row = -1 if padding_idx is None else padding_idx % num_embeddings
        self._weight_attr = weight_attr
        self._name = name
        self._dtype = get_default_dtype()
        self.weight = self.create_parameter(self._size, weight_attr, self._dtype)
        if padding_idx is not None:
            was = _core.set_recording(False)
            try:
                self.weight[self._row] = 0.0
            finally:
                _core.set_recording(was)

    def forward(self, x):
        return F.embedding(x, self.weight, self._padding_idx, self._sparse)

    def extra_repr(self):
        text = f"{self._num_embeddings}, {self._embedding_dim}"
        if self._padding_idx is not None:
            text += f", padding_idx={self._padding_idx}"
        return _named(f"{text}, sparse={self._sparse}", self._name)


# ---- dropout -----------------------------------------------------------------------------------------------------

_stored("Dropout", F.dropout, "p", "axis", "mode", inputs=("input",))
_stored("Dropout2D", F.dropout2d, "p", "data_format", inputs=("input",))
_stored("Dropout3D", F.dropout3d, "p", "data_format", inputs=("input",))
_stored("AlphaDropout", F.alpha_dropout, "p", inputs=("input",))


# ---- padding -----------------------------------------------------------------------------------------------------

class _Pad(Layer):
    def __init__(self, n, padding, mode, value, data_format, name):
        super().__init__()
        self._pad = padding if isinstance(padding, (list, tuple, _core.Tensor)) else [padding] * (2 * n)
        self._mode = mode
        self._value = value
        self._data_format = data_format
        self._name = name

    def forward(self, x):
        need_kernel(type(self).__name__, "i4,i8,f4,f8,c8,c16", x=x)
        return F.pad(x, self._pad, self._mode, self._value, self._data_format)

    def extra_repr(self):
        return _named(f"padding={self._pad}, mode={self._mode}, value={self._value}, data_format={self._data_format}",
                      self._name)


class Pad1D(_Pad):
    """Signals padded on both ends."""

    def __init__(self, padding, mode="constant", value=0.0, data_format="NCL", name=None):
        super().__init__(1, padding, mode, value, data_format, name)


class Pad2D(_Pad):
    """Images padded: left, right, top, bottom."""

    def __init__(self, padding, mode="constant", value=0.0, data_format="NCHW", name=None):
        super().__init__(2, padding, mode, value, data_format, name)


class Pad3D(_Pad):
    """Volumes padded: left, right, top, bottom, front, back."""

    def __init__(self, padding, mode="constant", value=0.0, data_format="NCDHW", name=None):
        super().__init__(3, padding, mode, value, data_format, name)


class ZeroPad2D(_Pad):
    """Images with zeros round them."""

    def __init__(self, padding, data_format="NCHW", name=None):
        super().__init__(2, padding, "constant", 0.0, data_format, name)

    def extra_repr(self):
        return _named(f"padding={self._pad}, data_format={self._data_format}", self._name)


# ---- resampling --------------------------------------------------------------------------------------------------

class Upsample(Layer):
    """x resampled to `size`, or to its size times scale_factor."""

    def __init__(self, size=None, scale_factor=None, mode="nearest", align_corners=False, align_mode=0,
                 data_format="NCHW", name=None):
        super().__init__()
        self.size = size
        self.scale_factor = scale_factor
        self.mode = mode.lower()
        self.align_corners = align_corners
        self.align_mode = align_mode
        self.data_format = data_format
        self.name = name

    def forward(self, x):
        return F.interpolate(x, self.size, self.scale_factor, self.mode, self.align_corners, self.align_mode,
                             self.data_format)

    def _target(self):
        return f"size={self.size}" if self.scale_factor is None else f"scale_factor={self.scale_factor}"

    def extra_repr(self):
        return _named(f"{self._target()}, mode={self.mode}, align_corners={self.align_corners}, "
                      f"align_mode={self.align_mode}, data_format={self.data_format}", self.name)


class UpsamplingNearest2D(Upsample):
    """Images resampled from their nearest pixels."""

    def __init__(self, size=None, scale_factor=None, data_format="NCHW", name=None):
        super().__init__([size, size] if isinstance(size, int) else size, scale_factor, "nearest", False, 0,
                         data_format, name)

    def extra_repr(self):
        return _named(f"{self._target()}, data_format={self.data_format}", self.name)


class UpsamplingBilinear2D(Upsample):
    """Images resampled bilinearly, corners on corners."""

    def __init__(self, size=None, scale_factor=None, data_format="NCHW", name=None):
        super().__init__([size, size] if isinstance(size, int) else size, scale_factor, "bilinear", True, 0,
                         data_format, name)

    def extra_repr(self):
        return _named(f"{self._target()}, data_format={self.data_format}", self.name)


# ---- windows, shapes, similarity ---------------------------------------------------------------------------------

class Unfold(Layer):
    """The windows of images as columns."""

    def __init__(self, kernel_sizes, dilations=1, paddings=0, strides=1, name=None):
        super().__init__()
        self.kernel_sizes = kernel_sizes
        self.dilations = dilations
        self.paddings = paddings
        self.strides = strides
        self.name = name

    def forward(self, input):
        return F.unfold(input, self.kernel_sizes, self.strides, self.paddings, self.dilations)

    def extra_repr(self):
        return _named(f"kernel_size={self.kernel_sizes}, dilation={self.dilations}, padding={self.paddings}, "
                      f"stride={self.strides}", self.name)


class Fold(Unfold):
    """Columns added up into images: the transpose of Unfold."""

    def __init__(self, output_sizes, kernel_sizes, dilations=1, paddings=0, strides=1, name=None):
        super().__init__(kernel_sizes, dilations, paddings, strides, name)
        self.output_sizes = output_sizes

    def forward(self, input):
        return F.fold(input, self.output_sizes, self.kernel_sizes, self.strides, self.paddings, self.dilations)


_stored("Flatten", _core.api("paddle")["flatten"], "start_axis", "stop_axis", inputs=("input",), shows=(), named=False, start_axis=1)


class Unflatten(Layer):
    """One axis as several."""

    def __init__(self, axis, shape, name=None):
        super().__init__()
        self.axis = axis
        self.shape = shape
        self.name = name

    def forward(self, input):
        axis, own = self.axis % input.ndim, input.shape
        shape = self.shape.tolist() if isinstance(self.shape, _core.Tensor) else list(self.shape)
        return _core.reshape(input, own[:axis] + shape + own[axis + 1:])

    def extra_repr(self):
        return _named(f"axis={self.axis}, shape={self.shape}", self.name)


_stored("CosineSimilarity", F.cosine_similarity, "axis", "eps", prefix="_", named=False)
