"""paddle.incubate: LookAhead and ModelAverage."""
from . import optimizer
from .optimizer import LookAhead, ModelAverage

__all__ = ["LookAhead", "ModelAverage", "optimizer"]
