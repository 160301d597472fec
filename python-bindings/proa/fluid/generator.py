"""fluid.generator: the random generator."""
from ..framework.random import Generator

__all__ = ["Generator"]
