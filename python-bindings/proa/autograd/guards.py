"""no_grad, enable_grad, set_grad_enabled: context managers that switch recording on the tape, also usable as decorators
of functions and generators."""
import functools

from .. import _core


def is_grad_enabled():
    """True if operations are recorded for backward."""
    return _core.is_recording()


def _is_generator(func):
    """inspect.isgeneratorfunction, without the 8 ms that importing inspect takes."""
    while isinstance(func, functools.partial):
        func = func.func
    return bool(getattr(getattr(func, "__code__", None), "co_flags", 0) & 0x20)  # CO_GENERATOR


class _Switch:
    """A context that may be entered again while it is open; calling it with a function decorates that."""

    _on = False

    def __init__(self):
        self._before = []

    def __enter__(self):
        self._before.append(_core.set_recording(self._on))

    def __exit__(self, *exception):
        _core.set_recording(self._before.pop())

    def clone(self):
        return type(self)()

    def __call__(self, func):
        if _is_generator(func):
            return self._decorate_generator(func)

        @functools.wraps(func)
        def wrapper(*args, **kwargs):
            before = _core.set_recording(self._on)
            try:
                return func(*args, **kwargs)
            finally:
                _core.set_recording(before)
        return wrapper

    def _decorate_generator(self, func):
        @functools.wraps(func)
        def wrapper(*args, **kwargs):
            with self.clone():  # as in Paddle, whoever iterates runs under the switch, too, until the end
                return (yield from func(*args, **kwargs))
        return wrapper


class _NoGrad(_Switch):
    """Nothing is recorded inside: `with paddle.no_grad():`, @paddle.no_grad() or @paddle.no_grad."""

    def __new__(cls, func=None):
        self = super().__new__(cls)
        if func is None:
            return self
        self.__init__()
        return self(func)

    def __init__(self, func=None):
        super().__init__()


no_grad = _NoGrad
no_grad.__name__ = no_grad.__qualname__ = "no_grad"


class enable_grad(_Switch):
    """Operations are recorded inside, whatever was switched off outside."""

    _on = True


class set_grad_enabled(_Switch):
    """Switches recording at once; as a context, until it ends."""

    def __init__(self, mode):
        super().__init__()
        if not (mode is None or hasattr(type(mode), "__bool__")):
            raise TypeError(f"set_grad_enabled: mode must be a bool, got {type(mode).__name__}")
        try:
            self.mode = self._on = bool(mode)
        except Exception as error:
            raise TypeError(f"set_grad_enabled: mode: {error}") from None
        self._outside = _core.set_recording(self._on)

    def __enter__(self):
        _core.set_recording(self._on)
        self._before.append(self._outside)

    def clone(self):
        new = type(self).__new__(type(self))
        _Switch.__init__(new)
        new.mode = new._on = self._on
        new._outside = _core.is_recording()
        return new

    def __call__(self, func):
        _core.set_recording(self._outside)  # used as a decorator: only the function runs under it
        return super().__call__(func)
