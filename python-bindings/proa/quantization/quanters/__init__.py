"""Quanters (fake quantizers) of quantization-aware training."""
from .abs_max import FakeQuanterWithAbsMaxObserver

__all__ = ["FakeQuanterWithAbsMaxObserver"]
