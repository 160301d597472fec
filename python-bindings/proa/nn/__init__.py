"""paddle.nn: layers, and below it functional, initializer and utils."""
from . import functional, initializer, utils
from .clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue
from .decode import BeamSearchDecoder, dynamic_decode
from .layer import *
from .layer import loss
