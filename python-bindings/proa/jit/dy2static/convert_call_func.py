"""paddle.jit.dy2static.convert_call_func: functions that converted code calls in place of the user's functions."""
from .runtime.calls import CONVERSION_OPTIONS, ConversionOptions, call

__all__ = ["convert_call"]

convert_call = call
_OPTIONS = CONVERSION_OPTIONS, ConversionOptions
