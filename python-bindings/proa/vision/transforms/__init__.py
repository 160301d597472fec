"""paddle.vision.transforms: functions on images, and the transforms that apply them."""
from . import functional
from .functional import (adjust_brightness, adjust_contrast, adjust_hue, adjust_saturation, center_crop,
                         crop, erase, hflip, normalize, pad, resize, rotate, to_grayscale, to_tensor, vflip)
from .transforms import *
from .transforms import __all__ as _classes
from .warp import affine, perspective
from .warps import *
from .warps import __all__ as _more

__all__ = [*_classes, *_more, "affine", "perspective", "to_tensor", "hflip", "vflip", "resize", "pad", "rotate", "to_grayscale", "crop",
           "center_crop", "adjust_brightness", "adjust_contrast", "adjust_hue", "normalize", "erase"]
