"""paddle.utils.cpp_extension: operators in C++ (paddle/extension.h), built at run time or as a package."""
from . import cpp_extension as _implementation
from .cpp_extension import CppExtension, CUDAExtension, load, setup
from .extension_utils import get_build_directory, load_op_meta_info_and_register_op, parse_op_info

__all__ = ["CUDAExtension", "CppExtension", "get_build_directory", "load", "setup"]


def __getattr__(name):
    return getattr(_implementation, name)
