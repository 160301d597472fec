"""The library that reads images: 'pil', 'cv2', or 'tensor' (read by cv2, given as a tensor)."""

__all__ = ["set_image_backend", "get_image_backend", "image_load"]

_BACKENDS = ("pil", "cv2", "tensor")
_current = ["pil"]


def _checked(backend, who):
    if backend not in _BACKENDS:
        raise ValueError(f"{who}: backend must be one of {list(_BACKENDS)}, got {backend!r}")
    return backend


def set_image_backend(backend):
    """image_load and the data sets read images by this library from now on."""
    _current[0] = _checked(backend, "set_image_backend")


def get_image_backend():
    """The library that reads images."""
    return _current[0]


def image_load(path, backend=None):
    """The image in a file: a PIL image, or cv2's array (BGR, height first)."""
    backend = get_image_backend() if backend is None else _checked(backend, "image_load")
    from ..utils.lazy_import import try_import
    if backend == "pil":
        return try_import("PIL.Image", "image_load: pillow is needed to read images; pip install pillow").open(path)
    array = try_import("cv2", "image_load: cv2 is needed for this backend; pip install opencv-python").imread(path)
    if backend == "cv2":
        return array
    from .. import _core
    return _core.to_tensor(array)
