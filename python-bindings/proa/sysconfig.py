"""paddle.sysconfig: include and library folders for compiling C code against Proa."""
import os

__all__ = ["get_include", "get_lib"]


def get_include():
    """The folder of proa.h, for a C compiler's -I."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "include")


def get_lib():
    """The folder of libproa.so.0, for -L and -Wl,-rpath."""
    return os.path.join(os.path.dirname(os.path.abspath(__file__)), "libs")
