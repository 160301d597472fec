"""fluid.layers: pooling, resizing and resampling of images, with the signatures of Paddle 1.x."""
from ... import _core
from ..layer_helper import one_op

__all__ = ["adaptive_pool2d", "adaptive_pool3d", "affine_grid", "grid_sampler", "image_resize", "image_resize_short",
           "pixel_shuffle", "pool2d", "pool3d", "resize_bilinear", "resize_linear", "resize_nearest", "resize_trilinear"]


def _numbers(value, n):
    return [value] * n if isinstance(value, int) else list(value)


def _padding(value, n, who):
    """(numbers, algorithm) of a padding: a number, numbers, pairs, or SAME or VALID."""
    if isinstance(value, str):
        if value.upper() not in ("SAME", "VALID"):
            raise ValueError(f"{who}: Unknown Attr(pool_padding): '{value}'. It can only be 'SAME' or 'VALID'.")
        return [0] * n, value.upper()
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], (list, tuple)):
        spatial = [list(pair) for pair in value]
        spatial = spatial[2:] if spatial[0] == [0, 0] and spatial[1] == [0, 0] else spatial[1:-1]
        return [side for pair in spatial for side in pair], "EXPLICIT"
    return _numbers(value, n), "EXPLICIT"


def _pool(n, input, pool_size, pool_type, pool_stride, pool_padding, global_pooling, ceil_mode, exclusive, data_format,
          name):
    who = f"pool{n}d"
    if pool_type not in ("max", "avg"):
        raise ValueError(f"Unknown Attr(pool_type): '{pool_type}'. It can only be 'max' or 'avg'.")
    if not global_pooling and pool_size == -1:
        raise ValueError("Attr(pool_size) must be set when global_pooling is False")
    paddings, algorithm = _padding(pool_padding, n, who)
    return one_op(who, {"X": input}, {
        "pooling_type": pool_type, "ksize": _numbers(pool_size, n), "global_pooling": global_pooling,
        "strides": _numbers(pool_stride, n), "paddings": paddings, "padding_algorithm": algorithm, "ceil_mode": ceil_mode,
        "exclusive": exclusive, "data_format": data_format}, "Out", name=name)


def pool2d(input, pool_size=-1, pool_type="max", pool_stride=1, pool_padding=0, global_pooling=False, use_cudnn=True,
           ceil_mode=False, name=None, exclusive=True, data_format="NCHW"):
    """The largest or the mean of each window of images."""
    return _pool(2, input, pool_size, pool_type, pool_stride, pool_padding, global_pooling, ceil_mode, exclusive,
                 data_format, name)


def pool3d(input, pool_size=-1, pool_type="max", pool_stride=1, pool_padding=0, global_pooling=False, use_cudnn=True,
           ceil_mode=False, name=None, exclusive=True, data_format="NCDHW"):
    """The largest or the mean of each window of volumes."""
    return _pool(3, input, pool_size, pool_type, pool_stride, pool_padding, global_pooling, ceil_mode, exclusive,
                 data_format, name)


def _adaptive(n, input, pool_size, pool_type, require_index):
    from ...nn import functional as F
    if pool_type not in ("max", "avg"):
        raise ValueError(f"Unknown pool_type: '{pool_type}'. It can only be 'max' or 'avg'.")
    if pool_type == "avg" and require_index:
        raise ValueError("invalid setting 'require_index' true when 'pool_type' is 'avg'.")
    pool = getattr(F, f"adaptive_{pool_type}_pool{n}d")
    return pool(input, pool_size, require_index) if pool_type == "max" else pool(input, pool_size)


def adaptive_pool2d(input, pool_size, pool_type="max", require_index=False, name=None):
    """Images pooled to a size."""
    return _adaptive(2, input, pool_size, pool_type, require_index)


def adaptive_pool3d(input, pool_size, pool_type="max", require_index=False, name=None):
    """Volumes pooled to a size."""
    return _adaptive(3, input, pool_size, pool_type, require_index)


_RESIZE = {"LINEAR": ("linear", 3), "BILINEAR": ("bilinear", 4), "TRILINEAR": ("trilinear", 5), "NEAREST": ("nearest", 4),
           "BICUBIC": ("bicubic", 4)}


def image_resize(input, out_shape=None, scale=None, name=None, resample="BILINEAR", actual_shape=None, align_corners=True,
                 align_mode=1, data_format="NCHW"):
    """Images resized to a shape, or by a factor."""
    if resample not in _RESIZE:
        raise ValueError("The 'resample' of image_resize can only be 'LINEAR', 'BILINEAR', 'TRILINEAR', 'BICUBIC' or "
                         "'NEAREST' currently.")
    kind, rank = _RESIZE[resample]
    if len(input.shape) != rank:
        raise ValueError(f"'{resample}' only support {rank}-D tensor.")
    if out_shape is None and scale is None:
        raise ValueError("One of out_shape and scale must not be None.")
    names = ("out_d", "out_h", "out_w")[3 - (rank - 2):]
    inputs = {"X": input, "OutSize": actual_shape}
    attrs = {"interp_method": kind, "align_corners": align_corners, "align_mode": align_mode, "scale": 0.0,
             "data_layout": "NCHW" if data_format[1] == "C" else "NHWC", **dict.fromkeys(names, -1)}
    if isinstance(out_shape, _core.Tensor):
        inputs["OutSize"] = out_shape
    elif out_shape is not None:
        if len(out_shape) != rank - 2:
            raise ValueError(f"out_shape length should be {rank - 2} for input {rank}-D tensor.")
        if any(isinstance(n, _core.Tensor) for n in out_shape):
            inputs["SizeTensor"] = [n if isinstance(n, _core.Tensor) else _core.full([1], n, _core.int32)
                                    for n in out_shape]
        attrs.update({name: -1 if isinstance(n, _core.Tensor) else int(n) for name, n in zip(names, out_shape)})
    elif isinstance(scale, _core.Tensor):
        inputs["Scale"] = scale
    else:
        if scale <= 0:
            raise ValueError("Attr(scale) should be greater than zero.")
        attrs["scale"] = float(scale)
    return one_op(f"{kind}_interp", inputs, attrs, "Out", name=name)


def resize_linear(input, out_shape=None, scale=None, name=None, actual_shape=None, align_corners=True, align_mode=1,
                  data_format="NCW"):
    """Rows resized linearly."""
    return image_resize(input, out_shape, scale, name, "LINEAR", actual_shape, align_corners, align_mode, data_format)


def resize_bilinear(input, out_shape=None, scale=None, name=None, actual_shape=None, align_corners=True, align_mode=1,
                    data_format="NCHW"):
    """Images resized bilinearly."""
    return image_resize(input, out_shape, scale, name, "BILINEAR", actual_shape, align_corners, align_mode, data_format)


def resize_trilinear(input, out_shape=None, scale=None, name=None, actual_shape=None, align_corners=True, align_mode=1,
                     data_format="NCDHW"):
    """Volumes resized trilinearly."""
    return image_resize(input, out_shape, scale, name, "TRILINEAR", actual_shape, align_corners, align_mode, data_format)


def resize_nearest(input, out_shape=None, scale=None, name=None, actual_shape=None, align_corners=True,
                   data_format="NCHW"):
    """Images resized to the nearest pixels."""
    return image_resize(input, out_shape, scale, name, "NEAREST", actual_shape, align_corners, 1, data_format)


def image_resize_short(input, out_short_len, resample="BILINEAR"):
    """Images resized so that the shorter side has a length."""
    sides = list(input.shape[2:4])
    short = min(sides)
    return image_resize(input, [int(float(side) * out_short_len / short + 0.5) for side in sides], resample=resample)


def affine_grid(theta, out_shape, name=None):
    """The points at which grid_sampler reads."""
    inputs, attrs = {"Theta": theta}, {"align_corners": True}
    if isinstance(out_shape, _core.Tensor):
        inputs["OutputShape"] = out_shape
    else:
        attrs["output_shape"] = list(out_shape)
    return one_op("affine_grid", inputs, attrs, "Output", name=name)


def grid_sampler(x, grid, name=None):
    """Images read at points."""
    return one_op("grid_sampler", {"X": x, "Grid": grid}, {}, "Output", name=name)


def pixel_shuffle(x, upscale_factor):
    """Channels become pixels."""
    return one_op("pixel_shuffle", {"X": x}, {"upscale_factor": upscale_factor}, "Out")
