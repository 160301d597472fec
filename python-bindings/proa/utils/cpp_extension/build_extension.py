"""setuptools' command that builds operators; a module of its own, as setuptools takes a second to import."""
import os
import sys

# `import pip` makes setuptools' finder of its own distutils find nothing, and the import of setuptools behind it fails; real Paddle
# has imported setuptools before its users' modules.
if "_distutils_hack" in sys.modules and "setuptools" not in sys.modules:
    sys.modules["_distutils_hack"].DISTUTILS_FINDER.__dict__.pop("spec_for_distutils", None)
import setuptools
from setuptools.command.build_ext import build_ext

from . import compiler

# The module that is installed beside the library.
MODULE = '''"""Custom operators for Proa: written by paddle.utils.cpp_extension.setup."""
import os

from proa.utils.cpp_extension.extension_utils import functions_of

_functions = functions_of(__name__, os.path.join(os.path.dirname(os.path.abspath(__file__)), {library!r}))
globals().update({{name: value for name, value in vars(_functions).items() if not name.startswith("_")}})
'''


class BuildExtension(build_ext):
    """setuptools' command build_ext for operators: makes <name>_pd_.so and <name>.py, which loads it. setup derives a command of it."""

    module_name, operators = None, None  # of setup()
    options = {}

    @classmethod
    def with_options(cls, **options):
        """The command with options: output_dir, the folder of the library (the build's own by default)."""
        return type(cls.__name__, (cls,), {"options": {**cls.options, **options}})

    def paths(self):
        """(library, module)"""
        folder = self.options.get("output_dir") or (os.getcwd() if self.inplace else self.build_lib)
        return os.path.join(folder, self.module_name + "_pd_.so"), os.path.join(folder, self.module_name + ".py")

    def run(self):
        """Builds the library, and writes the module."""
        if self.operators is None:
            self.module_name, self.operators = self.distribution.get_name(), self.extensions[0]
        of, (library, module) = self.operators, self.paths()
        flags = of.extra_compile_args
        compiler.compile_library(compiler.sources_for_cpu(of.sources), os.path.abspath(library), verbose=True,
                                 includes=of.include_dirs or (), libraries=of.library_dirs or (),
                                 cflags=(flags.get("cxx", []) if isinstance(flags, dict) else flags) or (),
                                 ldflags=[*(f"-l{name}" for name in of.libraries or ()), *(of.extra_link_args or ())])
        with open(module, "w") as file:
            file.write(MODULE.format(library=os.path.basename(library)))

    def get_outputs(self):
        """The files that are installed."""
        return list(self.paths())

    def get_source_files(self):
        """The files of a source archive."""
        return list(self.operators.sources) if self.operators else []
