"""paddle.version: Proa's own version in parts, and what it was built with."""
from . import _core

full_version = _core.version()
major, minor, patch = full_version.split(".")[:3]
rc = "0"
istaged = False
commit = "Unknown"
with_mkl = "OFF"
cuda_version = "False"
cudnn_version = "False"

__all__ = ["cuda", "cudnn", "show", "xpu"]


def cuda():
    """CUDA's version as text; False: built without it."""
    return False


def cudnn():
    """cuDNN's version as text; False: built without it."""
    return False


def xpu():
    """The XPU runtime's version as text; False: built without it."""
    return False


def show():
    """Prints the version and what it was built with."""
    for name, value in (("full_version", full_version), ("major", major), ("minor", minor), ("patch", patch),
                        ("rc", rc), ("cuda", cuda()), ("cudnn", cudnn())):
        print(f"{name}: {value}")
    print(_core.build_info())
