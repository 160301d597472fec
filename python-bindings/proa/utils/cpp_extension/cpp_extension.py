"""Building and loading of operators in C++: refused, since they are made for the headers of Paddle's own library."""
CUDA_HOME = None  # no nvcc is looked for


def refuse(who):
    """NotImplementedError that says what to do instead."""
    raise NotImplementedError(f"(Unimplemented) {who}: Proa builds no operators that are written in C++ for Paddle's headers; compose "
                              "existing ones (PyLayer gives a gradient), or write the operator in C: docs/add-an-op.md")


def setup(**attr):
    """Builds and installs a package of operators: refused."""
    refuse("setup")


def load(name, sources, extra_cxx_cflags=None, extra_cuda_cflags=None, extra_ldflags=None, extra_include_paths=None,
         build_directory=None, verbose=False):
    """Builds operators and gives a module of functions: refused.

    >>> import proa as paddle
    >>> paddle.utils.cpp_extension.load("custom_ops", ["relu.cc"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    NotImplementedError: (Unimplemented) load: Proa builds no operators that are written in C++ for Paddle's headers; ...
    """
    refuse("load")


def load_op_meta_info_and_register_op(lib_filename):
    """Loads a library of operators: refused."""
    refuse("load_op_meta_info_and_register_op")


def parse_op_info(op_name):
    """Names of inputs, outputs and attributes of a loaded operator: refused."""
    refuse("parse_op_info")


def CppExtension(sources, *args, **kwargs):
    """A package's operators in C++, for setup: refused."""
    refuse("CppExtension")


def CUDAExtension(sources, *args, **kwargs):
    """A package's operators in CUDA C++, for setup: refused."""
    refuse("CUDAExtension")


class BuildExtension:
    """setuptools' command that builds operators: refused."""

    def __init__(self, *args, **kwargs):
        refuse("BuildExtension")

    @classmethod
    def with_options(cls, **options):
        """The command with options: refused."""
        refuse("BuildExtension.with_options")
