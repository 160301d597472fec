"""paddle.nn: layers, and below it functional, initializer and utils."""
from . import functional, initializer, utils  # noqa: F401
from .clip import ClipGradByGlobalNorm, ClipGradByNorm, ClipGradByValue  # noqa: F401
from .decode import BeamSearchDecoder, dynamic_decode  # noqa: F401
from .layer import *  # noqa: F401,F403
from .layer import loss  # noqa: F401
