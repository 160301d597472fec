"""fluid.wrapped_decorator: decorators that keep a function's name and signature."""
import functools

__all__ = ["signature_safe_contextmanager", "wrap_decorator"]


def wrap_decorator(decorator_func):
    """The decorator, made to keep what is known of the function."""
    def decorate(func):
        @functools.wraps(func)
        def inner(*args, **kwargs):
            return decorator_func(func)(*args, **kwargs)
        return inner
    return decorate


def signature_safe_contextmanager(func):
    """contextlib.contextmanager."""
    import contextlib
    return contextlib.contextmanager(func)
