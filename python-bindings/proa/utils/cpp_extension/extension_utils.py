"""The folder of built operators, and the steps of a build, by the names that programs import."""
import os

from .cpp_extension import refuse


def get_build_directory(verbose=False):
    """The folder where operators would be built: PADDLE_EXTENSION_DIR, else ~/.cache/paddle_extensions. It is made."""
    folder = os.environ.get("PADDLE_EXTENSION_DIR") or os.path.expanduser("~/.cache/paddle_extensions")
    os.makedirs(folder, exist_ok=True)
    if verbose:
        print(f"operators are built in {folder}")
    return folder


def _jit_compile(file_path, verbose=False):
    refuse("_jit_compile")


def _import_module_from_library(module_name, build_directory, verbose=False):
    refuse("_import_module_from_library")
