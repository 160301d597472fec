"""The decorator `deprecated`: says in docstring and warning which name replaces the decorated one."""
import functools
import warnings


def deprecated(update_to="", since="", reason="", level=0):
    """Marks a function as deprecated. level 0: only its docstring says so; 1: a call warns (DeprecationWarning);
    2: a call is a RuntimeError."""
    def mark(func):
        text = f"{func.__module__}.{func.__name__} is deprecated"
        if since:
            text += f" since {since}"
        if update_to:
            text += f", use {update_to} instead"
        if reason:
            text += f"; {reason}"
        func.__doc__ = f"Warning: {text}.\n\n{func.__doc__ or ''}"
        if level == 0:
            return func

        @functools.wraps(func)
        def wrapper(*args, **kwargs):
            if level == 2:
                raise RuntimeError(text)
            warnings.warn(text, DeprecationWarning, stacklevel=2)
            return func(*args, **kwargs)
        return wrapper
    return mark
