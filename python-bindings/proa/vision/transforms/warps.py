"""RandomAffine, RandomPerspective, RandomErasing: transforms with parameters drawn anew for every image."""
import math
import numbers
import random
from collections.abc import Sequence

from ... import _core
from .functional import _kind, _size, erase
from .transforms import BaseTransform
from .warp import affine, perspective

__all__ = ["RandomAffine", "RandomErasing", "RandomPerspective"]


def _angles(value, name, sizes=(2,)):
    if isinstance(value, numbers.Number):
        if value < 0:
            raise ValueError(f"RandomAffine: a single number for {name} must not be negative, got {value}")
        return [-float(value), float(value)]
    return [float(v) for v in _sequence(value, name, sizes)]


def _sequence(value, name, sizes=(2,)):
    if not isinstance(value, Sequence):
        raise TypeError(f"RandomAffine: {name} must be a sequence, got {type(value).__name__}")
    if len(value) not in sizes:
        raise ValueError(f"RandomAffine: {name} must have {' or '.join(map(str, sizes))} numbers, got {value!r}")
    return value


class RandomAffine(BaseTransform):
    """affine by an angle of degrees, a move of at most these parts of the sides, a scale and one or two shears."""

    def __init__(self, degrees, translate=None, scale=None, shear=None, interpolation="nearest", fill=0, center=None,
                 keys=None):
        super().__init__(keys)
        self.degrees = _angles(degrees, "degrees")
        if interpolation not in ("nearest", "bilinear", "bicubic"):
            raise AssertionError(f"RandomAffine: interpolation must be nearest, bilinear or bicubic, "
                                 f"got {interpolation!r}")
        if translate is not None and not all(0.0 <= t <= 1.0 for t in _sequence(translate, "translate")):
            raise ValueError(f"RandomAffine: translate must lie between 0 and 1, got {translate!r}")
        if scale is not None and not all(s > 0 for s in _sequence(scale, "scale")):
            raise ValueError(f"RandomAffine: scale must be positive, got {scale!r}")
        if center is not None:
            _sequence(center, "center")
        if fill is not None and not isinstance(fill, (numbers.Number, list, tuple, str)):
            raise TypeError(f"RandomAffine: fill must be a number or a sequence, got {type(fill).__name__}")
        self.interpolation, self.translate, self.scale = interpolation, translate, scale
        self.shear = None if shear is None else _angles(shear, "shear", (2, 4))
        self.fill, self.center = 0 if fill is None else fill, center

    def _get_param(self, img_size, degrees, translate=None, scale_ranges=None, shears=None):
        angle = random.uniform(*degrees)
        moved = (0, 0)
        if translate is not None:
            moved = tuple(int(random.uniform(-t * n, t * n)) for t, n in zip(translate, img_size))
        scale = 1.0 if scale_ranges is None else random.uniform(*scale_ranges)
        shear = [0.0, 0.0]
        if shears is not None:
            shear[0] = random.uniform(shears[0], shears[1])
            if len(shears) == 4:
                shear[1] = random.uniform(shears[2], shears[3])
        return angle, moved, scale, tuple(shear)

    def _apply_image(self, img):
        drawn = self._get_param(_size(img, "RandomAffine"), self.degrees, self.translate, self.scale, self.shear)
        return affine(img, *drawn, interpolation=self.interpolation, fill=self.fill, center=self.center)


class RandomPerspective(BaseTransform):
    """perspective to corners that lie up to distortion_scale of the half sides further in; with probability prob."""

    def __init__(self, prob=0.5, distortion_scale=0.5, interpolation="nearest", fill=0, keys=None):
        super().__init__(keys)
        for name, value in (("prob", prob), ("distortion_scale", distortion_scale)):
            if not 0 <= value <= 1:
                raise AssertionError(f"RandomPerspective: {name} must lie in [0, 1], got {value}")
        if interpolation not in ("nearest", "bilinear", "bicubic"):
            raise AssertionError(f"RandomPerspective: interpolation must be nearest, bilinear or bicubic, "
                                 f"got {interpolation!r}")
        if not isinstance(fill, (numbers.Number, str, list, tuple)):
            raise AssertionError(f"RandomPerspective: fill must be a number, a name, a list or a tuple, got {type(fill).__name__}")
        self.prob, self.distortion_scale, self.interpolation, self.fill = prob, distortion_scale, interpolation, fill

    def get_params(self, width, height, distortion_scale):
        """(startpoints, endpoints): the corners, and where they go."""
        dx, dy = int(distortion_scale * (width // 2)), int(distortion_scale * (height // 2))
        left, right = (0, dx + 1), (width - dx - 1, width)
        top, bottom = (0, dy + 1), (height - dy - 1, height)
        ends = [[int(random.uniform(*x)), int(random.uniform(*y))]
                for x, y in ((left, top), (right, top), (right, bottom), (left, bottom))]
        return [[0, 0], [width - 1, 0], [width - 1, height - 1], [0, height - 1]], ends

    def _apply_image(self, img):
        width, height = _size(img, "RandomPerspective")
        if random.random() >= self.prob:
            return img
        start, end = self.get_params(width, height, self.distortion_scale)
        return perspective(img, start, end, self.interpolation, self.fill)


class RandomErasing(BaseTransform):
    """erase of a rectangle of scale parts of the area and sides in ratio, by value or 'random'; with probability prob."""

    def __init__(self, prob=0.5, scale=(0.02, 0.33), ratio=(0.3, 3.3), value=0, inplace=False, keys=None):
        super().__init__(keys)
        if not isinstance(scale, (list, tuple)) or not 0 <= scale[0] <= scale[1] <= 1:
            raise AssertionError(f"RandomErasing: scale must be (least, most) in [0, 1], got {scale!r}")
        if not isinstance(ratio, (list, tuple)) or not 0 <= ratio[0] <= ratio[1]:
            raise AssertionError(f"RandomErasing: ratio must be (least, most), got {ratio!r}")
        if not 0 <= prob <= 1:
            raise AssertionError(f"RandomErasing: prob must lie in [0, 1], got {prob}")
        if not isinstance(value, (numbers.Number, str, list, tuple)):
            raise AssertionError(f"RandomErasing: value must be a number, 'random' or a sequence, got {value!r}")
        if isinstance(value, str) and value != "random":
            raise ValueError(f"RandomErasing: a str value must be 'random', got {value!r}")
        if isinstance(value, (list, tuple)) and len(value) not in (1, 3):
            raise ValueError(f"RandomErasing: value must have one number, or one a channel, got {value!r}")
        self.prob, self.scale, self.ratio, self.value, self.inplace = prob, scale, ratio, value, inplace

    def _color(self, img, kind, channels, h, w):
        import numpy as np
        if self.value == "random":
            if kind == "tensor":
                return _core.gaussian([channels, h, w], mean=0.0, std=1.0, dtype=img.dtype)
            return np.random.normal(size=[h, w, channels]) * 255
        value = [self.value] if isinstance(self.value, numbers.Number) else list(self.value)
        if kind == "tensor":
            return _core.to_tensor(value).astype(img.dtype).reshape([-1, 1, 1])
        return np.array(value)[None, None, :]

    def _apply_image(self, img):
        if random.random() >= self.prob:
            return img
        import numpy as np
        kind = _kind(img, "RandomErasing")
        width, height = _size(img, "RandomErasing")
        channels = img.shape[0] if kind == "tensor" else 3 if kind == "pil" else img.shape[-1]
        for _ in range(10):
            area = np.random.uniform(*self.scale) * width * height
            aspect = math.exp(np.random.uniform(*np.log(self.ratio)))
            h, w = int(round(math.sqrt(area * aspect))), int(round(math.sqrt(area / aspect)))
            if h >= height or w >= width:
                continue
            value = self._color(img, kind, channels, h, w)
            top = np.random.randint(0, height - h + 1)
            left = np.random.randint(0, width - w + 1)
            return erase(img, top, left, h, w, value, self.inplace)
        return img
