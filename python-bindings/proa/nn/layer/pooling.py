"""Pooling layers: each holds its settings and calls one function."""
from .. import functional as F
from .stored import stored

_WINDOW = ("kernel_size", "stride", "padding")


def _pool(name, function, *settings, **options):
    globals()[name] = stored(__name__, name, function, *settings, **{"prefix": "", **options})


def _windows(name, function, *settings, **options):
    _pool(name, function, *_WINDOW, *settings, attributes={"kernel_size": "ksize", "divisor_override": "divisor"}, **options)


_pool("AvgPool1D", F.avg_pool1d, *_WINDOW, "exclusive", "ceil_mode", shows=_WINDOW)
_windows("AvgPool2D", F.avg_pool2d, "ceil_mode", "exclusive", "divisor_override", "data_format", shows=_WINDOW)
_windows("AvgPool3D", F.avg_pool3d, "ceil_mode", "exclusive", "divisor_override", "data_format", shows=_WINDOW)
_pool("MaxPool1D", F.max_pool1d, *_WINDOW, "return_mask", "ceil_mode", shows=_WINDOW)
_windows("MaxPool2D", F.max_pool2d, "return_mask", "ceil_mode", "data_format", shows=_WINDOW)
_windows("MaxPool3D", F.max_pool3d, "return_mask", "ceil_mode", "data_format", shows=_WINDOW)
_windows("MaxUnPool1D", F.max_unpool1d, "data_format", "output_size", shows=("output_size",))
_windows("MaxUnPool2D", F.max_unpool2d, "data_format", "output_size", shows=("output_size",))
_windows("MaxUnPool3D", F.max_unpool3d, "data_format", "output_size", shows=("output_size",))
_pool("AdaptiveAvgPool1D", F.adaptive_avg_pool1d, "output_size", shows=("output_size",))
_pool("AdaptiveAvgPool2D", F.adaptive_avg_pool2d, "output_size", "data_format", prefix="_", shows=("output_size",))
_pool("AdaptiveAvgPool3D", F.adaptive_avg_pool3d, "output_size", "data_format", prefix="_", shows=("output_size",))
_pool("AdaptiveMaxPool1D", F.adaptive_max_pool1d, "output_size", "return_mask", shows=("output_size", "return_mask"))
_pool("AdaptiveMaxPool2D", F.adaptive_max_pool2d, "output_size", "return_mask", prefix="_", shows=("output_size", "return_mask"))
_pool("AdaptiveMaxPool3D", F.adaptive_max_pool3d, "output_size", "return_mask", prefix="_", shows=("output_size", "return_mask"))
