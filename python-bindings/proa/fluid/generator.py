"""fluid.generator: Generator, the random generator, re-exported from paddle.framework."""
from ..framework.random import Generator

__all__ = ["Generator"]
