"""paddle.vision: image models, transforms, data sets of local files, and image loading."""
from . import datasets, image, models, ops, transforms  # noqa: F401
from .datasets import *  # noqa: F401,F403
from .image import get_image_backend, image_load, set_image_backend
from .models import *  # noqa: F401,F403
from .transforms import *  # noqa: F401,F403

__all__ = ["set_image_backend", "get_image_backend", "image_load"]
