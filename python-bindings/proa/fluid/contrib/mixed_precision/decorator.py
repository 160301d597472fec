"""fluid.contrib.mixed_precision.decorator: an optimizer made one of mixed precision."""
from ....static.amp import decorate

__all__ = ["decorate"]
