"""Spatial transformers, and moves between channels and pixels."""
from ... import _core
from ._args import channel_last


def affine_grid(theta, out_shape, align_corners=True, name=None):
    """Sampling points for grid_sample: affine maps theta [N, 2, 3] (or [N, 3, 4]) of the output's positions."""
    if not isinstance(theta, _core.Tensor):
        raise ValueError(f"affine_grid: theta must be a Tensor, got {type(theta).__name__}")
    if isinstance(out_shape, _core.Tensor):
        out_shape = out_shape.tolist()
    return _core.affine_grid(theta, [int(s) for s in out_shape], align_corners)


def grid_sample(x, grid, mode="bilinear", padding_mode="zeros", align_corners=True, name=None):
    """x sampled at the points of grid, whose coordinates run from -1 to 1."""
    if mode not in ("bilinear", "nearest"):
        raise ValueError(f"grid_sample: mode must be 'bilinear' or 'nearest', got {mode!r}")
    if padding_mode not in ("zeros", "reflection", "border"):
        raise ValueError(f"grid_sample: padding_mode must be 'zeros', 'reflection' or 'border', got {padding_mode!r}")
    if not isinstance(align_corners, bool):
        raise ValueError(f"grid_sample: align_corners must be a bool, got {align_corners!r}")
    return _core.grid_sample(x, grid, mode, padding_mode, align_corners)


def _images(who, x, factor, what, data_format):
    if not isinstance(factor, int):
        raise TypeError(f"{who}: {what} must be an int, got {type(factor).__name__}")
    if x.ndim != 4:
        raise ValueError(f"{who}: x must have 4 axes, got shape {x.shape}")
    if factor <= 0:
        raise ValueError(f"{who}: {what} must be above 0, got {factor}")
    last = channel_last(data_format, 2, who)
    n, *rest = x.shape
    h, w, c = rest if last else (*rest[1:], rest[0])
    return last, n, c, h, w


def pixel_shuffle(x, upscale_factor, data_format="NCHW", name=None):
    """Channels moved to pixels: [N, C * r * r, H, W] to [N, C, H * r, W * r]."""
    last, n, c, h, w = _images("pixel_shuffle", x, upscale_factor, "upscale_factor", data_format)
    r = upscale_factor
    if c % (r * r):
        raise ValueError(f"pixel_shuffle: the {c} channels must be a multiple of {r * r} (upscale_factor squared)")
    c //= r * r
    if last:
        moved = _core.transpose(_core.reshape(x, [n, h, w, c, r, r]), [0, 1, 4, 2, 5, 3])
        return _core.reshape(moved, [n, h * r, w * r, c])
    moved = _core.transpose(_core.reshape(x, [n, c, r, r, h, w]), [0, 1, 4, 2, 5, 3])
    return _core.reshape(moved, [n, c, h * r, w * r])


def pixel_unshuffle(x, downscale_factor, data_format="NCHW", name=None):
    """Pixels moved to channels: [N, C, H * r, W * r] to [N, C * r * r, H, W]."""
    last, n, c, h, w = _images("pixel_unshuffle", x, downscale_factor, "downscale_factor", data_format)
    r = downscale_factor
    if h % r or w % r:
        raise ValueError(f"pixel_unshuffle: height and width must be multiples of {r}, got {h} and {w}")
    h, w = h // r, w // r
    if last:
        moved = _core.transpose(_core.reshape(x, [n, h, r, w, r, c]), [0, 1, 3, 5, 2, 4])
        return _core.reshape(moved, [n, h, w, c * r * r])
    moved = _core.transpose(_core.reshape(x, [n, c, h, r, w, r]), [0, 1, 3, 5, 2, 4])
    return _core.reshape(moved, [n, c * r * r, h, w])


def channel_shuffle(x, groups, data_format="NCHW", name=None):
    """The channels of `groups` groups interleaved."""
    last, n, c, h, w = _images("channel_shuffle", x, groups, "groups", data_format)
    if c % groups:
        raise ValueError(f"channel_shuffle: groups must divide the {c} channels, got {groups}")
    if last:
        moved = _core.transpose(_core.reshape(x, [n, h, w, groups, c // groups]), [0, 1, 2, 4, 3])
    else:
        moved = _core.transpose(_core.reshape(x, [n, groups, c // groups, h, w]), [0, 2, 1, 3, 4])
    return _core.reshape(moved, x.shape)
