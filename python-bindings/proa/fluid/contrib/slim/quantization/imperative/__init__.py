"""The layers of quantization-aware training by their modules of 2.0 and 2.1."""
from . import qat, quant_nn
from .qat import ImperativeQuantAware

__all__ = ["ImperativeQuantAware"]
