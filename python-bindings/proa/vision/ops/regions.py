"""Regions of interest: RoIAlign (He et al., 2017) by bilinear samples, RoIPool (Girshick, 2015) by maxima."""
import math

from ... import _core
from ...nn import Layer
from ...tensor import arange
from .deform import sampled


def _size(output_size):
    return (output_size, output_size) if isinstance(output_size, int) else tuple(output_size)


def _owners(boxes_num):
    """The image of each box."""
    return [i for i, n in enumerate(boxes_num.tolist()) for _ in range(n)]


def roi_align(x, boxes, boxes_num, output_size, spatial_scale=1.0, sampling_ratio=-1, aligned=True, name=None):
    """[boxes, channels, *output_size]: each cell of a box is the mean of its samples, sampling_ratio² of them, or as many
    as pixels."""
    rows, columns = _size(output_size)
    shift = 0.5 if aligned else 0.0
    height, width = x.shape[2:]
    out = []
    for owner, (x1, y1, x2, y2) in zip(_owners(boxes_num), boxes.tolist()):
        x1, y1, x2, y2 = (v * spatial_scale - shift for v in (x1, y1, x2, y2))
        w, h = x2 - x1, y2 - y1
        if not aligned:
            w, h = max(w, 1.0), max(h, 1.0)
        ny = sampling_ratio if sampling_ratio > 0 else max(math.ceil(h / rows), 0)
        nx = sampling_ratio if sampling_ratio > 0 else max(math.ceil(w / columns), 0)
        if ny * nx == 0:
            out.append(x[owner].mean([1, 2], keepdim=True).expand([x.shape[1], rows, columns]) * 0)
            continue
        y = (arange(rows * ny, dtype=x.dtype) + 0.5) * (h / rows / ny) + y1
        xs = (arange(columns * nx, dtype=x.dtype) + 0.5) * (w / columns / nx) + x1
        # up to a pixel outside takes the border's value
        on_y = ((y >= -1) & (y <= height)).astype(x.dtype).reshape([-1, 1])
        on_x = ((xs >= -1) & (xs <= width)).astype(x.dtype).reshape([1, -1])
        y, xs = y.clip(0, height - 1).reshape([-1, 1]), xs.clip(0, width - 1).reshape([1, -1])
        grid = [rows * ny, columns * nx]
        values = sampled(x[owner:owner + 1].unsqueeze(1), y.expand(grid).reshape([1, 1, -1]),
                         xs.expand(grid).reshape([1, 1, -1])).reshape([x.shape[1], *grid])
        values = (values * on_y * on_x).reshape([x.shape[1], rows, ny, columns, nx])
        out.append(values.mean([2, 4]))
    return _core.stack(out, 0)


def roi_pool(x, boxes, boxes_num, output_size, spatial_scale=1.0, name=None):
    """[boxes, channels, *output_size]: each cell of a box, rounded to pixels, is its maximum; 0 where it is empty."""
    rows, columns = _size(output_size)
    height, width = x.shape[2:]

    def edges(low, high, cells, limit):
        low, high = (math.floor(v * spatial_scale + 0.5) for v in (low, high))
        step = max(high - low + 1, 1) / cells
        return [(min(max(math.floor(k * step) + low, 0), limit), min(max(math.ceil((k + 1) * step) + low, 0), limit))
                for k in range(cells)]

    out = []
    for owner, (x1, y1, x2, y2) in zip(_owners(boxes_num), boxes.tolist()):
        image = x[owner]
        for a, b in edges(y1, y2, rows, height):
            for c, d in edges(x1, x2, columns, width):
                out.append(image[:, a:b, c:d].max([1, 2]) if b > a and d > c else image[:, 0, 0] * 0)
    return _core.stack(out, 0).reshape([-1, rows, columns, x.shape[1]]).transpose([0, 3, 1, 2])


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
