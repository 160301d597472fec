"""paddle.version: the version of Paddle whose API this is, and the build options of Proa."""
from . import _core

full_version = "2.6.2"
proa_version = _core.version()
major, minor, patch = full_version.split(".")[:3]
rc = "0"
istaged = False
commit = "Unknown"
with_mkl = "OFF"
cuda_version = cudnn_version = xpu_version = xpu_xccl_version = cinn_version = "False"

__all__ = ["cinn", "cuda", "cudnn", "mkl", "show", "xpu", "xpu_xccl"]


def mkl():
    """Whether MKL is linked: no, Proa has oneDNN and OpenBLAS."""
    return with_mkl


def cuda():
    """CUDA's version as text; "False": built without it."""
    return cuda_version


def cudnn():
    """cuDNN's version as text; "False": built without it."""
    return cudnn_version


def xpu():
    """The XPU runtime's version as text; "False": built without it."""
    return xpu_version


def xpu_xccl():
    """XCCL's version as text; "False": built without it."""
    return xpu_xccl_version


def cinn():
    """CINN's version as text; "False": built without it."""
    return cinn_version


def show():
    """Prints the version and what it was built with."""
    for name, value in (("proa_version", proa_version), ("full_version", full_version), ("major", major), ("minor", minor), ("patch", patch),
                        ("rc", rc), ("cuda", cuda()), ("cudnn", cudnn()), ("xpu", xpu()),
                        ("xpu_xccl", xpu_xccl()), ("cinn", cinn())):
        print(f"{name}: {value}")
    print(_core.build_info())
