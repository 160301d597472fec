"""load and setup: operators in C++ built at run time, or as a package that is installed."""
import os

from . import compiler
from .extension_utils import _import_module_from_library, get_build_directory

CUDA_HOME = None  # no nvcc is looked for


def load(name, sources, extra_cxx_cflags=None, extra_cuda_cflags=None, extra_ldflags=None, extra_include_paths=None,
         extra_library_paths=None, build_directory=None, verbose=False):
    """Builds operators in C++ and gives a module with one function for each. They are built again only if a source, a flag or Proa's
    headers have changed.

    Parameters:
        name (str): of the library and the module.
        sources (list of str): files in C++; CUDA sources are left out with a warning.
        extra_cxx_cflags, extra_ldflags (list of str, optional): of the compiler, and behind the sources.
        extra_cuda_cflags (list of str, optional): not used.
        extra_include_paths, extra_library_paths (list of str, optional): folders of headers and libraries.
        build_directory (str, optional): get_build_directory() if it is None; the library is <build_directory>/<name>/<name>.so.
        verbose (bool, optional): prints the command.

    Returns:
        module: its functions take the operator's inputs, then its attributes.
    """
    folder = os.path.join(os.path.abspath(build_directory or get_build_directory(verbose)), name)
    compiler.compile_if_changed(compiler.sources_for_cpu(sources), os.path.join(folder, name + ".so"), verbose,
                                includes=extra_include_paths or (), cflags=extra_cxx_cflags or (),
                                ldflags=extra_ldflags or (), libraries=extra_library_paths or ())
    return _import_module_from_library(name, folder, verbose)


def CppExtension(sources, *args, **kwargs):
    """The operators of a package, for setup: their sources, and setuptools.Extension's arguments (include_dirs, library_dirs,
    extra_compile_args, extra_link_args).

    Returns:
        setuptools.Extension
    """
    from .build_extension import setuptools
    return setuptools.Extension(kwargs.pop("name", "custom_ops"), [str(s) for s in sources], *args, **kwargs)


def CUDAExtension(sources, *args, **kwargs):
    """CppExtension: CUDA sources are left out with a warning when the package is built."""
    return CppExtension(sources, *args, **kwargs)


def setup(**attr):
    """setuptools.setup for a package of operators: after `pip install .` or `python setup.py install`, `import <name>` gives a module
    with one function for each operator.

    Parameters:
        name (str): of the package and the module.
        ext_modules (CppExtension, or a list of one): the operators.
        **attr: what setuptools.setup takes.
    """
    from .build_extension import BuildExtension, setuptools
    if not attr.get("name"):
        raise ValueError("(InvalidArgument) setup: the package needs a name, by which it is imported")
    extensions = attr.pop("ext_modules", None)
    extensions = list(extensions) if isinstance(extensions, (list, tuple)) else [extensions]
    if len(extensions) != 1 or not isinstance(extensions[0], setuptools.Extension):
        raise ValueError("(InvalidArgument) setup: ext_modules must be one CppExtension, with all sources")
    commands = dict(attr.pop("cmdclass", None) or {})
    commands["build_ext"] = type("BuildOperators", (commands.get("build_ext", BuildExtension),),
                                 {"module_name": attr["name"], "operators": extensions[0]})

    class Distribution(attr.pop("distclass", setuptools.Distribution)):
        """A package that runs on one kind of machine, without modules for Python's own loader."""

        def has_ext_modules(self):
            """True: the wheel is not a pure one."""
            return True

    attr.setdefault("version", "0.0.0")
    attr.setdefault("zip_safe", False)
    attr.setdefault("py_modules", [])  # nothing of the folder is taken by itself
    return setuptools.setup(ext_modules=[], cmdclass=commands, distclass=Distribution, **attr)


def __getattr__(name):
    if name != "BuildExtension":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from .build_extension import BuildExtension
    return BuildExtension
