"""paddle.audio.backends: readers and writers of sound files. There is one, for WAV files of 16 bits."""
from . import wave_backend

__all__ = ["get_current_backend", "list_available_backends", "set_backend"]

_NAME = "wave_backend"


def list_available_backends():
    """The names that set_backend takes."""
    return [_NAME]


def get_current_backend():
    """The name of the backend in use."""
    return _NAME


def set_backend(backend_name):
    """Chooses a backend; NotImplementedError for one that list_available_backends does not name."""
    if backend_name not in list_available_backends():
        raise NotImplementedError(f"set_backend: expected one of {list_available_backends()}, got {backend_name!r}")
