"""paddle.incubate.distributed: recompute of sequences, and saving over several processes."""
from . import fleet, utils

__all__ = ["fleet", "utils"]
