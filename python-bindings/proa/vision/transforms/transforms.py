"""Image transforms as objects: Compose puts them in a row, Random* draw anew for every image."""
import math
import numbers
import random
from collections.abc import Iterable, Sequence

from . import functional as F
from ..._asks import asks

__all__ = ["BaseTransform", "Compose", "Resize", "RandomResizedCrop", "CenterCrop", "RandomHorizontalFlip",
           "RandomVerticalFlip", "Transpose", "Normalize", "BrightnessTransform", "SaturationTransform",
           "ContrastTransform", "HueTransform", "ColorJitter", "RandomCrop", "Pad", "RandomRotation",
           "Grayscale", "ToTensor"]


def _pair(size):
    return (int(size), int(size)) if isinstance(size, numbers.Number) else size


def _probability(value, who):
    if not 0 <= value <= 1:
        raise AssertionError(f"{who}: prob must lie in [0, 1], got {value}")
    return value


def _span(value, name, center=1, bound=(0, float("inf")), clip=True):
    """The range that a factor is drawn from; None: nothing changes."""
    if isinstance(value, numbers.Number):
        if value < 0:
            raise ValueError(f"{name}: a single number must not be negative, got {value}")
        low = center - value
        value = [max(low, 0) if clip else low, center + value]
    elif not isinstance(value, (tuple, list)) or len(value) != 2:
        raise TypeError(f"{name}: value must be a number or a pair, got {value!r}")
    elif not bound[0] <= value[0] <= value[1] <= bound[1]:
        raise ValueError(f"{name}: values must lie in {bound}, got {value!r}")
    return None if value[0] == value[1] == center else value


class Compose:
    """One transform after the other."""

    def __init__(self, transforms):
        self.transforms = transforms

    def __call__(self, data):
        for transform in self.transforms:
            data = transform(data)
        return data

    def __repr__(self):
        return "\n".join([f"{type(self).__name__}(", *(f"    {t}" for t in self.transforms), ")"])


class BaseTransform:
    """Applies _apply_<key> to each input named by keys, with parameters drawn once by _get_params."""

    def __init__(self, keys=None):
        if keys is None:
            keys = ("image",)
        elif not isinstance(keys, Sequence):
            raise ValueError(f"{type(self).__name__}: keys must be a sequence, got {keys!r}")
        for key in keys:
            if self._get_apply(key) is None:
                raise NotImplementedError(f"{type(self).__name__}: there is no _apply_{key}")
        self.keys = keys
        self.params = None

    def _get_params(self, inputs):
        return None

    def _get_apply(self, key):
        return getattr(self, f"_apply_{key}", None)

    def __call__(self, inputs):
        if not isinstance(inputs, tuple):
            inputs = (inputs,)
        self.params = self._get_params(inputs)
        outputs = [self._get_apply(key)(value) for key, value in zip(self.keys, inputs)]
        outputs.extend(inputs[len(self.keys):])
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _apply_image(self, image):
        raise NotImplementedError(f"{type(self).__name__}: _apply_image is not written")

    def _apply_boxes(self, boxes):
        raise NotImplementedError(f"{type(self).__name__}: _apply_boxes is not written")

    def _apply_mask(self, mask):
        raise NotImplementedError(f"{type(self).__name__}: _apply_mask is not written")


class ToTensor(BaseTransform):
    """functional.to_tensor."""

    def __init__(self, data_format="CHW", keys=None):
        super().__init__(keys)
        self.data_format = data_format

    def _apply_image(self, img):
        return F.to_tensor(img, self.data_format)


class Resize(BaseTransform):
    """functional.resize."""

    def __init__(self, size, interpolation="bilinear", keys=None):
        super().__init__(keys)
        if not isinstance(size, int) and not (isinstance(size, Iterable) and len(size) == 2):
            raise AssertionError(f"Resize: size must be an int or a pair, got {size!r}")
        self.size = size
        self.interpolation = interpolation

    def _apply_image(self, img):
        return F.resize(img, self.size, self.interpolation)


class RandomResizedCrop(BaseTransform):
    """A part of random area (scale) and shape (ratio), resized to size."""

    def __init__(self, size, scale=(0.08, 1.0), ratio=(3.0 / 4, 4.0 / 3), interpolation="bilinear", keys=None):
        super().__init__(keys)
        if scale[0] > scale[1] or ratio[0] > ratio[1]:
            raise AssertionError(f"RandomResizedCrop: scale and ratio must be (least, most), got {scale}, {ratio}")
        self.size = _pair(size)
        self.scale = scale
        self.ratio = ratio
        self.interpolation = interpolation

    def _dynamic_get_param(self, image, attempts=10):
        """(top, left, height, width) of the part to take."""
        import numpy as np
        width, height = F._size(image)
        for _ in range(attempts):
            area = np.random.uniform(*self.scale) * width * height
            aspect = math.exp(np.random.uniform(*(math.log(r) for r in self.ratio)))
            w, h = int(round(math.sqrt(area * aspect))), int(round(math.sqrt(area / aspect)))
            if 0 < w <= width and 0 < h <= height:
                return random.randint(0, height - h), random.randint(0, width - w), h, w
        least, most = min(self.ratio), max(self.ratio)
        w, h = width, height
        if width / height < least:
            h = int(round(w / least))
        elif width / height > most:
            w = int(round(h * most))
        return (height - h) // 2, (width - w) // 2, h, w

    def _apply_image(self, img):
        return F.resize(F.crop(img, *self._dynamic_get_param(img)), self.size, self.interpolation)


class CenterCrop(BaseTransform):
    """functional.center_crop."""

    def __init__(self, size, keys=None):
        super().__init__(keys)
        self.size = _pair(size)

    def _apply_image(self, img):
        return F.center_crop(img, self.size)


class RandomHorizontalFlip(BaseTransform):
    """Left and right swapped, with probability prob."""

    def __init__(self, prob=0.5, keys=None):
        super().__init__(keys)
        self.prob = _probability(prob, "RandomHorizontalFlip")

    def _apply_image(self, img):
        return self._dynamic_apply_image(img)

    def _dynamic_apply_image(self, img):
        return F.hflip(img) if random.random() < self.prob else img


class RandomVerticalFlip(BaseTransform):
    """Upside down, with probability prob."""

    def __init__(self, prob=0.5, keys=None):
        super().__init__(keys)
        self.prob = _probability(prob, "RandomVerticalFlip")

    def _apply_image(self, img):
        return self._dynamic_apply_image(img)

    def _dynamic_apply_image(self, img):
        return F.vflip(img) if random.random() < self.prob else img


class Normalize(BaseTransform):
    """functional.normalize; a number stands for three channels."""

    def __init__(self, mean=0.0, std=1.0, data_format="CHW", to_rgb=False, keys=None):
        super().__init__(keys)
        self.mean = [mean] * 3 if isinstance(mean, numbers.Number) else mean
        self.std = [std] * 3 if isinstance(std, numbers.Number) else std
        self.data_format = data_format
        self.to_rgb = to_rgb

    def _apply_image(self, img):
        return F.normalize(img, self.mean, self.std, self.data_format, self.to_rgb)


class Transpose(BaseTransform):
    """The image's axes in another order; PIL images become arrays."""

    def __init__(self, order=(2, 0, 1), keys=None):
        super().__init__(keys)
        self.order = order

    def _apply_image(self, img):
        if F._kind(img, "Transpose") == "tensor":
            return img.transpose(list(self.order))
        import numpy as np
        img = np.asarray(img)
        return (img[..., None] if img.ndim == 2 else img).transpose(self.order)


class _Factor(BaseTransform):
    """A function of the image and a factor drawn from a range."""

    def __init__(self, value, keys=None):
        super().__init__(keys)
        self.value = self._range(value)

    def _range(self, value):
        return _span(value, type(self).__name__)

    def _apply_image(self, img):
        return img if self.value is None else self._adjust(img, random.uniform(*self.value))


class BrightnessTransform(_Factor):
    """Random brightness."""
    _adjust = staticmethod(F.adjust_brightness)


class ContrastTransform(_Factor):
    """Random contrast."""
    _adjust = staticmethod(F.adjust_contrast)
    __init__ = asks("value<?")(_Factor.__init__)


class SaturationTransform(_Factor):
    """Random saturation."""
    _adjust = staticmethod(F.adjust_saturation)


class HueTransform(_Factor):
    """Random hue."""
    _adjust = staticmethod(F.adjust_hue)

    def _range(self, value):
        return _span(value, "HueTransform", center=0, bound=(-0.5, 0.5), clip=False)


class ColorJitter(BaseTransform):
    """Random brightness, contrast, saturation and hue, in random order."""

    def __init__(self, brightness=0, contrast=0, saturation=0, hue=0, keys=None):
        super().__init__(keys)
        self.brightness = brightness
        self.contrast = contrast
        self.saturation = saturation
        self.hue = hue

    def _get_param(self, brightness, contrast, saturation, hue):
        """The transform to apply: the four in random order."""
        steps = [BrightnessTransform(brightness), ContrastTransform(contrast), SaturationTransform(saturation),
                 HueTransform(hue)]
        random.shuffle(steps)
        return Compose(steps)

    def _apply_image(self, img):
        return self._get_param(self.brightness, self.contrast, self.saturation, self.hue)(img)


class RandomCrop(BaseTransform):
    """A part of the given size at a random place, of the padded image."""

    def __init__(self, size, padding=None, pad_if_needed=False, fill=0, padding_mode="constant", keys=None):
        super().__init__(keys)
        self.size = _pair(size)
        self.padding = padding
        self.pad_if_needed = pad_if_needed
        self.fill = fill
        self.padding_mode = padding_mode

    def _apply_image(self, img):
        th, tw = self.size
        if self.padding is not None:
            img = F.pad(img, self.padding, self.fill, self.padding_mode)
        w, h = F._size(img)
        if self.pad_if_needed and w < tw:
            img = F.pad(img, (tw - w, 0), self.fill, self.padding_mode)
        if self.pad_if_needed and h < th:
            img = F.pad(img, (0, th - h), self.fill, self.padding_mode)
        return F.crop(img, *self._get_param(img, self.size))

    def _get_param(self, img, output_size):
        """(top, left, height, width) of the part to take."""
        (w, h), (th, tw) = F._size(img), output_size
        if (w, h) == (tw, th):
            return 0, 0, h, w
        if w < tw or h < th:
            raise ValueError(f"RandomCrop: the image is {h}×{w}, smaller than {th}×{tw}; use pad_if_needed")
        return random.randint(0, h - th), random.randint(0, w - tw), th, tw


class Pad(BaseTransform):
    """functional.pad."""

    def __init__(self, padding, fill=0, padding_mode="constant", keys=None):
        if not isinstance(padding, (numbers.Number, list, tuple)):
            raise AssertionError(f"Pad: padding must be an int, a list or a tuple, got {type(padding).__name__}")
        if not isinstance(fill, (numbers.Number, str, list, tuple)):
            raise AssertionError(f"Pad: fill must be a number, a name, a list or a tuple, got {type(fill).__name__}")
        if padding_mode not in ("constant", "edge", "reflect", "symmetric"):
            raise AssertionError(f"Pad: padding_mode must be constant, edge, reflect or symmetric, got {padding_mode!r}")
        super().__init__(keys)
        if isinstance(padding, (list, tuple)) and len(padding) not in (2, 4):
            raise ValueError(f"Pad: padding must have 2 or 4 elements, got {len(padding)}")
        self.padding = padding
        self.fill = fill
        self.padding_mode = padding_mode

    def _apply_image(self, img):
        return F.pad(img, self.padding, self.fill, self.padding_mode)


class RandomRotation(BaseTransform):
    """Turned by a random angle of the range (a number means from −degrees to degrees)."""

    def __init__(self, degrees, interpolation="nearest", expand=False, center=None, fill=0, keys=None):
        super().__init__(keys)
        if isinstance(degrees, numbers.Number):
            if degrees < 0:
                raise ValueError(f"RandomRotation: a single number must not be negative, got {degrees}")
            degrees = (-degrees, degrees)
        if len(degrees) != 2:
            raise ValueError(f"RandomRotation: degrees must be a number or a pair, got {degrees!r}")
        self.degrees = degrees
        self.interpolation = interpolation
        self.expand = expand
        self.center = center
        self.fill = fill

    def _get_param(self, degrees):
        """The angle to turn by."""
        return random.uniform(*degrees)

    def _apply_image(self, img):
        return F.rotate(img, self._get_param(self.degrees), self.interpolation, self.expand, self.center, self.fill)


class Grayscale(BaseTransform):
    """functional.to_grayscale."""

    def __init__(self, num_output_channels=1, keys=None):
        super().__init__(keys)
        self.num_output_channels = num_output_channels

    def _apply_image(self, img):
        return F.to_grayscale(img, self.num_output_channels)
