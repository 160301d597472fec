"""paddle.jit.dy2static.error: what an error that left a converted function carries."""
from .errors import (DEFAULT_DISABLE_NEW_ERROR, DEFAULT_SIMPLIFY_NEW_ERROR, DISABLE_ERROR_ENV_NAME,  # noqa: F401
                     ERROR_DATA, ErrorData, SIMPLIFY_ERROR_ENV_NAME)

__all__ = []
