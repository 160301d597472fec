"""paddle.jit.dy2static.error: data attached to an error that leaves a converted function (source lines, traceback)."""
from .errors import (DEFAULT_DISABLE_NEW_ERROR, DEFAULT_SIMPLIFY_NEW_ERROR, DISABLE_ERROR_ENV_NAME,  # noqa: F401
                     ERROR_DATA, ErrorData, SIMPLIFY_ERROR_ENV_NAME)

__all__ = []
