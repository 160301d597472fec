"""paddle.utils.cpp_extension: programs import it; building or loading an operator in C++ is refused (docs/limits.md)."""
import os
import sys

from .cpp_extension import (BuildExtension, CppExtension, CUDAExtension, load, load_op_meta_info_and_register_op, parse_op_info,
                            setup)
from .extension_utils import get_build_directory

__all__ = ["CUDAExtension", "CppExtension", "get_build_directory", "load", "setup"]

# Programs import setuptools after this module. Paddle has imported it by then; once pip is imported first, setuptools (before 66)
# fails unless it takes the standard library's distutils.
if "pip" in sys.modules and "setuptools" not in sys.modules and sys.version_info < (3, 12):
    os.environ.setdefault("SETUPTOOLS_USE_DISTUTILS", "stdlib")
