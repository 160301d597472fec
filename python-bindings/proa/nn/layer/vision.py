"""PixelShuffle, PixelUnshuffle, ChannelShuffle: layers that move values between channels and pixels."""
from ..._errors import compared
from .. import functional as F
from .layers import Layer


class _Moved(Layer):
    _factor = None  # the setting's name, which extra_repr shows

    def __init__(self, factor, data_format, name):
        super().__init__()
        who, what = type(self).__name__, self._factor
        if not isinstance(factor, int):
            raise TypeError(f"{who}: {what} must be an int, got {type(factor).__name__}")
        if factor <= 0:
            raise ValueError(f"{who}: {what} must be above 0, got {factor}")
        if data_format not in ("NCHW", "NHWC"):
            compared(data_format)
            raise ValueError(f"{who}: data_format must be 'NCHW' or 'NHWC', got {data_format!r}")
        setattr(self, "_" + what, factor)
        self._data_format = data_format
        self._name = name

    def extra_repr(self):
        text = f"{self._factor}={getattr(self, '_' + self._factor)}"
        if self._data_format != "NCHW":
            text += f", data_format={self._data_format}"
        return text if self._name is None else f"{text}, name={self._name}"


class PixelShuffle(_Moved):
    """Channels moved to pixels: [N, C * r * r, H, W] to [N, C, H * r, W * r]."""

    _factor = "upscale_factor"

    def __init__(self, upscale_factor, data_format="NCHW", name=None):
        super().__init__(upscale_factor, data_format, name)

    def forward(self, x):
        return F.pixel_shuffle(x, self._upscale_factor, self._data_format)


class PixelUnshuffle(_Moved):
    """Pixels moved to channels: [N, C, H * r, W * r] to [N, C * r * r, H, W]."""

    _factor = "downscale_factor"

    def __init__(self, downscale_factor, data_format="NCHW", name=None):
        super().__init__(downscale_factor, data_format, name)

    def forward(self, x):
        return F.pixel_unshuffle(x, self._downscale_factor, self._data_format)


class ChannelShuffle(_Moved):
    """The channels of `groups` groups interleaved."""

    _factor = "groups"

    def __init__(self, groups, data_format="NCHW", name=None):
        super().__init__(groups, data_format, name)

    def forward(self, x):
        return F.channel_shuffle(x, self._groups, self._data_format)
