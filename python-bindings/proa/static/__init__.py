"""paddle.static: InputSpec."""
from .input import InputSpec

__all__ = ["InputSpec"]
