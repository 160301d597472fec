"""paddle.nn: layers, and below it functional, initializer and utils."""
from . import functional, initializer, utils
from .clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue
from .decode import BeamSearchDecoder, dynamic_decode
from .layer import *
from .layer import loss
from .utils import spectral_norm


def __getattr__(name):
    if name != "quant":
        raise AttributeError(f"module 'paddle.nn' has no attribute {name!r}")
    import importlib
    return importlib.import_module(".quant", __name__)
