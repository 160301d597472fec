"""paddle.vision: image models, transforms, data sets of local files, and image loading."""
from . import datasets, image, models, ops, transforms
from .datasets import *
from .image import get_image_backend, image_load, set_image_backend
from .models import *
from .transforms import *

__all__ = ["set_image_backend", "get_image_backend", "image_load"]
