"""ImperativeQuantAware, where 2.0 and 2.1 have it."""
from ......quantization.imperative.qat import ImperativeQuantAware

__all__ = ["ImperativeQuantAware"]
