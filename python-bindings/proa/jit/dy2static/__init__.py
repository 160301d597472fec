"""dy2static: Python functions become functions that build programs."""
from .errors import ConversionError, Dygraph2StaticException  # noqa: F401
