"""paddle.utils.dlpack: tensors handed to other libraries without a copy, and taken from them with one."""
from .. import _core

__all__ = ["from_dlpack", "to_dlpack"]


def to_dlpack(x):
    """A DLPack capsule on x's memory."""
    if not isinstance(x, _core.Tensor):
        raise TypeError(f"to_dlpack: x must be a Tensor, got {type(x).__name__}")
    return _core.to_dlpack(x)


def from_dlpack(dlpack):
    """A tensor with a copy of the elements of a DLPack capsule, or of an object that has __dlpack__."""
    if type(dlpack).__name__ != "PyCapsule" and not hasattr(dlpack, "__dlpack__"):
        raise TypeError(f"from_dlpack: dlpack must be a DLPack capsule, got {type(dlpack).__name__}")
    return _core.from_dlpack(dlpack).clone()
