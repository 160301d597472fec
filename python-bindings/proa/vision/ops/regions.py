"""Regions of interest: RoIAlign (He et al., 2017) by bilinear samples, RoIPool (Girshick, 2015) by maxima, and PSRoIPool (Dai et
al., 2016), whose cells have channels of their own."""
from ... import _core
from ..._asks import asks
from ...framework.dims import known
from ...nn import Layer


def _size(who, output_size):
    size = [output_size, output_size] if isinstance(output_size, int) else output_size
    if not isinstance(size, (list, tuple)) or len(size) != 2:
        raise TypeError(f"{who}: output_size must be an int or two, got {output_size!r}")
    return list(size)


def _check(who, boxes_num):
    if boxes_num is None:
        raise AssertionError(f"{who}: boxes_num must be given: how many of the boxes belong to each image")


@asks("eager:boxes_num#1!InvalidArgument")
def roi_align(x, boxes, boxes_num, output_size, spatial_scale=1.0, sampling_ratio=-1, aligned=True, name=None):
    """[boxes, channels, *output_size]: each cell of a box is the mean of its samples, sampling_ratio² of them, or as many
    as pixels."""
    _check("roi_align", boxes_num)
    return _core.roi_align(x, boxes, boxes_num, None, *_size("roi_align", output_size), spatial_scale, sampling_ratio,
                           aligned)


def roi_pool(x, boxes, boxes_num, output_size, spatial_scale=1.0, name=None):
    """[boxes, channels, *output_size]: each cell of a box, rounded to pixels, is its maximum; 0 where it is empty."""
    _check("roi_pool", boxes_num)
    return _core.roi_pool(x, boxes, boxes_num, None, *_size("roi_pool", output_size), spatial_scale)[0]


def psroi_pool(x, boxes, boxes_num, output_size, spatial_scale=1.0, name=None):
    """[boxes, channels / cells, *output_size]: each cell of a box is the mean of a channel of its own."""
    _check("psroi_pool", boxes_num)
    if hasattr(output_size, "__len__") and len(output_size) != 2:
        raise ValueError(f"psroi_pool: output_size must be an int or two, got {output_size!r}")
    rows, columns = _size("psroi_pool", output_size)
    if rows * columns == 0:
        raise AssertionError("psroi_pool: output_size must not contain 0")
    if len(x.shape) != 4:
        raise AssertionError(f"psroi_pool: x must be [n, c, h, w], got {list(x.shape)}")
    channels = x.shape[1]
    if not known(channels):
        raise ValueError("psroi_pool: the channels of x must be known when a program is built")
    return _core.psroi_pool(x, boxes, boxes_num, None, rows, columns, channels // (rows * columns), spatial_scale)


class RoIAlign(Layer):
    """roi_align with this size and scale."""

    def __init__(self, output_size, spatial_scale=1.0):
        super().__init__()
        self._output_size, self._spatial_scale = output_size, spatial_scale

    def forward(self, x, boxes, boxes_num, aligned=True):
        return roi_align(x, boxes, boxes_num, self._output_size, self._spatial_scale, aligned=aligned)


class RoIPool(Layer):
    """roi_pool with this size and scale."""

    def __init__(self, output_size, spatial_scale=1.0):
        super().__init__()
        self._output_size, self._spatial_scale = output_size, spatial_scale

    def forward(self, x, boxes, boxes_num):
        return roi_pool(x, boxes, boxes_num, self._output_size, self._spatial_scale)


class PSRoIPool(Layer):
    """psroi_pool with this size and scale."""

    def __init__(self, output_size, spatial_scale=1.0):
        super().__init__()
        self._output_size, self._spatial_scale = output_size, spatial_scale

    def forward(self, x, boxes, boxes_num):
        return psroi_pool(x, boxes, boxes_num, self._output_size, self._spatial_scale)
