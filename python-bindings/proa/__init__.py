"""Proa for Python. At this stage the package is the thin extension proa._core: every op of the table,
tensors that share memory with NumPy, gradients, and programs."""
from . import _core  # noqa: F401
