"""paddle.incubate.distributed.utils: io."""
from . import io

__all__ = ["io"]
