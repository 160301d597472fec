"""Image functions: each takes a PIL image, an array (height, width[, channels]) or a tensor (channels, height,
width) and gives the same kind back. Arrays need no cv2, but to resize, rotate and change hue or saturation."""
import math
import numbers

from ... import _core
from ..._elsewhere import elsewhere
from ...nn import functional as F
from ...tensor import stack, where
from ...utils.lazy_import import try_import

__getattr__ = elsewhere(__name__)

_PIL_FILTERS = {"nearest": 0, "lanczos": 1, "bilinear": 2, "bicubic": 3, "box": 4, "hamming": 5}
_GREY = (0.2989, 0.587, 0.114)


def _kind(img, who):
    """'tensor', 'array' or 'pil'; TypeError for anything else."""
    if _is_tensor_image(img):
        return "tensor"
    if _is_numpy_image(img):
        return "array"
    if _is_pil_image(img):
        return "pil"
    raise TypeError(f"{who}: img must be a PIL image, a tensor or an array of rank 2 or 3, got {type(img).__name__}")


def _kind_of_image(img, who):
    """_kind, of an image whose height and width are read; RuntimeError for a tensor of another rank than 3 or 4."""
    kind = _kind(img, who)
    if kind == "tensor" and img.ndim not in (3, 4):
        raise RuntimeError(f"{who}: an image as a tensor must be [channels, height, width], got shape {img.shape}")
    return kind


def _is_tensor_image(img):
    return isinstance(img, _core.Tensor)


def _is_numpy_image(img):
    import numpy as np
    return isinstance(img, np.ndarray) and img.ndim in (2, 3)


def _is_pil_image(img):
    return hasattr(img, "getbands") and hasattr(img, "resize")


def _size(img, who="image"):
    """(width, height)"""
    kind = _kind(img, who)
    if kind == "pil":
        return img.size
    return (img.shape[-1], img.shape[-2]) if kind == "tensor" else img.shape[1::-1]


def to_tensor(pic, data_format="CHW"):
    """A tensor of the image: uint8 becomes float32 in [0, 1], other dtypes stay."""
    kind = _kind(pic, "to_tensor")
    if kind == "tensor":
        return pic if data_format.lower() == "chw" else pic.transpose([1, 2, 0])
    if data_format not in ("CHW", "HWC"):
        raise ValueError(f"to_tensor: data_format must be 'CHW' or 'HWC', got {data_format!r}")
    import numpy as np
    if kind == "pil":
        dtype = {"I": np.int32, "I;16": np.int16, "F": np.float32}.get(pic.mode, np.uint8)
        values = np.array(pic, dtype)
        if pic.mode == "1":
            values = 255 * values
    else:
        values = pic
    if values.ndim == 2:
        values = values[:, :, None]
    if data_format == "CHW":
        values = values.transpose(2, 0, 1)
    tensor = _core.to_tensor(np.ascontiguousarray(values))
    if values.dtype == np.uint8:
        return tensor.astype("float32") / 255.0
    return tensor.astype("float32") if kind == "pil" else tensor


def _target(img, size, who):
    """(height, width) that `size` means for this image; None: as it is."""
    if isinstance(size, int):
        w, h = _size(img)
        if min(w, h) == size:
            return None
        return (int(size * h / w), size) if w < h else (size, int(size * w / h))
    if not isinstance(size, (list, tuple)) or len(size) != 2:
        raise TypeError(f"{who}: size must be an int or a pair (height, width), got {size!r}")
    return tuple(size)


def resize(img, size, interpolation="bilinear"):
    """The image at size (height, width); an int is the length of the shorter side."""
    kind, target = _kind_of_image(img, "resize"), _target(img, size, "resize")
    if target is None:
        return img
    if kind == "pil":
        return img.resize(target[::-1], _PIL_FILTERS[interpolation])
    if kind == "tensor":
        return F.interpolate(img.unsqueeze(0), size=list(target), mode=interpolation.lower()).squeeze(0)
    cv2 = try_import("cv2", "resize: cv2 is needed to resize arrays; pip install opencv-python")
    modes = {"nearest": cv2.INTER_NEAREST, "bilinear": cv2.INTER_LINEAR, "area": cv2.INTER_AREA,
             "bicubic": cv2.INTER_CUBIC, "lanczos": cv2.INTER_LANCZOS4}
    out = cv2.resize(img, dsize=target[::-1], interpolation=modes[interpolation])
    return out[:, :, None] if img.ndim == 3 and img.shape[2] == 1 else out


def pad(img, padding, fill=0, padding_mode="constant"):
    """The image with a border; padding is an int, (left/right, top/bottom) or (left, top, right, bottom);
    padding_mode 'constant' (of value fill), 'edge', 'reflect' or 'symmetric'."""
    kind = _kind_of_image(img, "pad")
    if not isinstance(padding, (numbers.Number, list, tuple)):
        raise TypeError(f"pad: padding must be an int or a sequence, got {type(padding).__name__}")
    sides = (padding,) * 4 if isinstance(padding, numbers.Number) else tuple(padding)
    if len(sides) not in (2, 4):
        raise ValueError(f"pad: padding must have 2 or 4 elements, got {len(sides)}")
    left, top, right, bottom = sides if len(sides) == 4 else sides * 2
    if padding_mode not in ("constant", "edge", "reflect", "symmetric"):
        raise ValueError(f"pad: padding_mode must be constant, edge, reflect or symmetric, got {padding_mode!r}")
    if kind == "tensor":
        if padding_mode == "symmetric":
            raise ValueError("pad: tensors have no padding_mode 'symmetric'")
        mode = "replicate" if padding_mode == "edge" else padding_mode
        return F.pad(img.unsqueeze(0), [left, right, top, bottom], mode=mode, value=float(fill)).squeeze(0)
    import numpy as np
    if kind == "pil" and padding_mode == "constant":
        from PIL import ImageOps
        # an int fills the first band only, as in Paddle
        return ImageOps.expand(img, border=(left, top, right, bottom), fill=fill)
    values = np.asarray(img)
    widths = ((top, bottom), (left, right)) + ((0, 0),) * (values.ndim - 2)
    if padding_mode == "constant":
        out = np.pad(values, widths)
        if np.any(fill):
            inside = np.zeros(out.shape[:2], bool)
            inside[top:top + values.shape[0], left:left + values.shape[1]] = True
            if values.ndim == 3 and values.shape[2] > 1 and isinstance(fill, numbers.Number):
                fill = [fill] + [0] * (values.shape[2] - 1)  # the first channel only, as in Paddle
            out[~inside] = fill
        return out
    out = np.pad(values, widths, mode=padding_mode)
    return _as_pil(out, img) if kind == "pil" else out


def _as_pil(values, like):
    from PIL import Image
    out = Image.fromarray(values)
    if like.mode == "P":
        out = out.convert("P")
        out.putpalette(like.getpalette())
    return out


def crop(img, top, left, height, width):
    """The part of the image that begins at (top, left)."""
    kind = _kind_of_image(img, "crop")
    if kind == "pil":
        return img.crop((left, top, left + width, top + height))
    if kind == "tensor":
        return img[..., top:top + height, left:left + width]
    return img[top:top + height, left:left + width]


def center_crop(img, output_size):
    """The middle of the image; output_size is an int or (height, width)."""
    if isinstance(output_size, numbers.Number):
        output_size = (int(output_size), int(output_size))
    w, h = _size(img, "center_crop")
    th, tw = output_size
    return crop(img, int(round((h - th) / 2.0)), int(round((w - tw) / 2.0)), th, tw)


def hflip(img):
    """The image with left and right swapped."""
    kind = _kind_of_image(img, "hflip")
    if kind == "pil":
        return img.transpose(0)
    return img.flip(axis=[-1]) if kind == "tensor" else img[:, ::-1].copy()


def vflip(img):
    """The image upside down."""
    kind = _kind_of_image(img, "vflip")
    if kind == "pil":
        return img.transpose(1)
    return img.flip(axis=[-2]) if kind == "tensor" else img[::-1].copy()


def _blend(img, other, ratio):
    """other + ratio (img − other), within the dtype's range."""
    floating = "float" in str(img.dtype)
    a, b = img.astype("float32"), other.astype("float32")
    return (b + (a - b) * float(ratio)).clip(0, 1.0 if floating else 255.0).astype(img.dtype)


def _enhanced(img, what, factor):
    from PIL import ImageEnhance
    return getattr(ImageEnhance, what)(img).enhance(factor)


def _through(img, values):
    """Every uint8 element of an array through a table of 256."""
    import numpy as np
    return np.asarray(values).clip(0, 255).astype("uint8")[img.astype("uint8")]


def _non_negative(factor, who):
    if factor < 0:
        raise ValueError(f"{who}: the factor must not be negative, got {factor}")


def adjust_brightness(img, brightness_factor):
    """Brighter (factor > 1) or darker; 0 is black."""
    kind = _kind_of_image(img, "adjust_brightness")
    if kind == "pil":
        return _enhanced(img, "Brightness", brightness_factor)
    if kind == "array":
        return _through(img, [i * brightness_factor for i in range(256)])
    _non_negative(brightness_factor, "adjust_brightness")
    return _blend(img, img * 0, brightness_factor)


def adjust_contrast(img, contrast_factor):
    """More contrast (factor > 1) or less; 0 is grey."""
    kind = _kind_of_image(img, "adjust_contrast")
    if kind == "pil":
        return _enhanced(img, "Contrast", contrast_factor)
    if kind == "array":
        return _through(img, [(i - 74) * contrast_factor + 74 for i in range(256)])
    _non_negative(contrast_factor, "adjust_contrast")
    grey = img if img.shape[-3] == 1 else to_grayscale(img)
    return _blend(img, grey.astype("float32").mean(axis=[-3, -2, -1], keepdim=True), contrast_factor)


def adjust_saturation(img, saturation_factor):
    """More color (factor > 1) or less; 0 is black and white. An array's factor is the range of a random one,
    as Paddle's cv2 backend has it."""
    kind = _kind_of_image(img, "adjust_saturation")
    if kind == "pil":
        return _enhanced(img, "Color", saturation_factor)
    if kind == "array":
        import numpy as np
        cv2 = try_import("cv2", "adjust_saturation: cv2 is needed for arrays; pip install opencv-python")
        alpha = np.random.uniform(max(0, 1 - saturation_factor), 1 + saturation_factor)
        values = img.astype(np.float32)
        grey = cv2.cvtColor(values, cv2.COLOR_BGR2GRAY)[..., None]
        return (values * alpha + grey * (1 - alpha)).clip(0, 255).astype(img.dtype)
    _non_negative(saturation_factor, "adjust_saturation")
    return img if img.shape[-3] == 1 else _blend(img, to_grayscale(img), saturation_factor)


def adjust_hue(img, hue_factor):
    """Colors turned by hue_factor of the circle, in [-0.5, 0.5]."""
    kind = _kind_of_image(img, "adjust_hue")
    if not -0.5 <= hue_factor <= 0.5:
        raise ValueError(f"adjust_hue: hue_factor must lie in [-0.5, 0.5], got {hue_factor}")
    import numpy as np
    if kind == "pil":
        if img.mode in ("L", "1", "I", "F"):
            return img
        from PIL import Image
        h, s, v = img.convert("HSV").split()
        turned = (np.array(h, np.int16) + int(hue_factor * 255)) % 256
        return Image.merge("HSV", (Image.fromarray(turned.astype(np.uint8)), s, v)).convert(img.mode)
    if kind == "array":
        cv2 = try_import("cv2", "adjust_hue: cv2 is needed for arrays; pip install opencv-python")
        h, s, v = cv2.split(cv2.cvtColor(img.astype(np.uint8), cv2.COLOR_BGR2HSV_FULL))
        h = ((h.astype(np.int32) + int(hue_factor * 255)) % 256).astype(np.uint8)
        return cv2.cvtColor(cv2.merge([h, s, v]), cv2.COLOR_HSV2BGR_FULL).astype(img.dtype)
    if img.shape[-3] == 1:
        return img
    whole = "float" not in str(img.dtype)
    h, s, v = _hsv(img.astype("float32") / 255.0 if whole else img)
    turned = h + hue_factor
    out = _rgb(turned - turned.floor(), s, v)
    return (out * 255.0).astype(img.dtype) if whole else out


def _hsv(img):
    """Hue, saturation and value, each in [0, 1] (Smith, 1978)."""
    high, low = img.max(axis=-3), img.min(axis=-3)
    delta, same = high - low, high == low
    one = high * 0 + 1
    r, g, b = img.unbind(axis=-3)
    step = where(same, one, delta)
    rc, gc, bc = (high - r) / step, (high - g) / step, (high - b) / step
    h = where(high == r, bc - gc, where(high == g, rc - bc + 2.0, gc - rc + 4.0)) / 6.0 + 1.0
    return h - h.floor(), delta / where(same, one, high), high


def _rgb(h, s, v):
    """The image of hue, saturation and value: each channel is v − v s max(0, min(k, 4 − k, 1))."""
    channels = []
    for offset in (5.0, 3.0, 1.0):
        k = h * 6.0 + offset
        k = k - (k / 6.0).floor() * 6.0
        channels.append(v - v * s * where(k < 4.0 - k, k, 4.0 - k).clip(0.0, 1.0))
    return stack(channels, axis=-3)


def to_grayscale(img, num_output_channels=1):
    """The image without colors, in 1 or 3 equal channels."""
    kind = _kind_of_image(img, "to_grayscale")
    if num_output_channels not in (1, 3):
        raise ValueError(f"to_grayscale: num_output_channels must be 1 or 3, got {num_output_channels}")
    import numpy as np
    if kind == "pil":
        grey = img.convert("L")
        if num_output_channels == 1:
            return grey
        return _as_pil(np.dstack([np.array(grey, np.uint8)] * 3), grey)
    if kind == "tensor":
        weights = _core.to_tensor(_GREY).astype(img.dtype).reshape([-1, 1, 1])
        grey = (img * weights).sum(axis=-3, keepdim=True)
        return grey.expand([*grey.shape[:-3], num_output_channels, *grey.shape[-2:]])
    cv2 = try_import("cv2", "to_grayscale: cv2 is needed for arrays; pip install opencv-python")
    grey = cv2.cvtColor(img, cv2.COLOR_RGB2GRAY)[:, :, None]
    return grey if num_output_channels == 1 else np.broadcast_to(grey, img.shape)


def rotate(img, angle, interpolation="nearest", expand=False, center=None, fill=0):
    """The image turned by angle degrees, counter-clockwise, round center; expand makes space for all of it."""
    kind = _kind(img, "rotate")
    if kind == "pil":
        bands = len(img.getbands())
        color = (fill,) * bands if isinstance(fill, int) and bands > 1 else fill
        return img.rotate(angle, _PIL_FILTERS[interpolation], expand, center, fillcolor=color)
    if kind == "tensor":
        from .warp import rotated_tensor
        return rotated_tensor(img, angle, interpolation, expand, center, fill)
    cv2 = try_import("cv2", "rotate: cv2 is needed for arrays; pip install opencv-python")
    h, w = img.shape[:2]
    cx, cy = center or (w / 2.0, h / 2.0)
    matrix = cv2.getRotationMatrix2D((cx, cy), angle, 1)
    if expand:
        c, s = round(math.cos(math.radians(angle)), 15), round(math.sin(math.radians(angle)), 15)
        corners = [(x - cx, y - cy) for x in (0, w) for y in (0, h)]
        xs, ys = [c * x - s * y + cx for x, y in corners], [s * x + c * y + cy for x, y in corners]
        nw, nh = math.ceil(max(xs)) - math.floor(min(xs)), math.ceil(max(ys)) - math.floor(min(ys))
        matrix[0, 2] += (nw - w) * 0.5
        matrix[1, 2] += (nh - h) * 0.5
        w, h = nw, nh
    modes = {"nearest": cv2.INTER_NEAREST, "bilinear": cv2.INTER_LINEAR, "bicubic": cv2.INTER_CUBIC,
             "area": cv2.INTER_AREA, "lanczos": cv2.INTER_LANCZOS4}
    out = cv2.warpAffine(img, matrix, (w, h), flags=modes[interpolation], borderValue=fill)
    return out[:, :, None] if img.ndim == 3 and img.shape[2] == 1 else out


def normalize(img, mean, std, data_format="CHW", to_rgb=False):
    """(img − mean) / std, by channel; PIL images become float32 arrays."""
    shape = [-1, 1, 1] if data_format.upper() == "CHW" else [1, 1, -1]
    if isinstance(img, _core.Tensor):
        return (img - _core.to_tensor(mean).reshape(shape)) / _core.to_tensor(std).reshape(shape)
    import numpy as np
    if not isinstance(img, np.ndarray):
        img = np.array(img).astype(np.float32)
    if to_rgb:
        img = img[..., ::-1]
    return (img - np.float32(np.reshape(mean, shape))) / np.float32(np.reshape(std, shape))


def erase(img, i, j, h, w, v, inplace=False):
    """The image with v in the rectangle of h × w that begins at (i, j)."""
    kind = _kind_of_image(img, "erase")
    if kind == "pil":
        import numpy as np
        values = np.array(img)
        values[i:i + h, j:j + w, ...] = v
        return _as_pil(values, img)
    out = img if inplace else img.clone() if kind == "tensor" else img.copy()
    if kind == "tensor":
        out[..., i:i + h, j:j + w] = v
    else:
        out[i:i + h, j:j + w, ...] = v
    return out
