"""paddle.jit.dy2static.origin_info: the function behind decorators."""
import inspect  # noqa: F401

__all__ = ["unwrap"]


def unwrap(func):
    """The function that decorators and to_static were applied to."""
    while True:
        inner = getattr(func, "__wrapped__", None) or getattr(func, "_dygraph_function", None)
        if inner is None:
            return func
        func = inner
