"""The folder of built operators, loading of a library, and the names of an operator's arguments."""
import os
import shlex
import subprocess
import sys
import types

from ... import _core

IS_WINDOWS = os.name == "nt"
OS_NAME = sys.platform


def get_build_directory(verbose=False):
    """The folder where operators are built: PADDLE_EXTENSION_DIR, else ~/.cache/paddle_extensions. It is made."""
    folder = os.environ.get("PADDLE_EXTENSION_DIR") or os.path.expanduser("~/.cache/paddle_extensions")
    os.makedirs(folder, exist_ok=True)
    if verbose:
        print(f"operators are built in {folder}")
    return folder


def load_op_meta_info_and_register_op(lib_filename):
    """Loads a library of operators, whose programs can then be run; returns the operators' names.

    Parameters:
        lib_filename (str): a library that was built against Proa's paddle/extension.h.

    Returns:
        list of str
    """
    return _core.load_extension(lib_filename)


def load_op_library(lib_filename):
    """Loads a library of operators, as load_op_meta_info_and_register_op. Paddle 2.0's function, whose libraries were written against
    the inside of Paddle: those are refused.

    Parameters:
        lib_filename (str): a library that was built against Proa's paddle/extension.h.
    """
    load_op_meta_info_and_register_op(lib_filename)


def parse_op_info(op_name):
    """Names of a loaded operator's arguments, as they are spelled in programs.

    Returns:
        (list of str, list of str, list of str): inputs, attributes, outputs
    """
    return _core.extension_slots(op_name)


def functions_of(module_name, library):
    """A module with a function for each operator of a library."""
    module = types.ModuleType(module_name, f"Custom operators of {library}.")
    module.__file__ = library
    for name in load_op_meta_info_and_register_op(library):
        setattr(module, name, _core.extension_function(name))
    return module


def _import_module_from_library(module_name, build_directory, verbose=False):
    """functions_of for <build_directory>/<module_name>.so."""
    library = os.path.join(build_directory, module_name + ".so")
    if not os.path.exists(library):
        raise FileNotFoundError(f"(NotFound) cpp_extension: there is no library {library}; load() builds it")
    if verbose:
        print(f"cpp_extension: loads {library}")
    return functions_of(module_name, library)


def _jit_compile(file_path, verbose=False):
    """Runs a script that calls setup: python <file> build, in the script's folder."""
    command = shlex.join([sys.executable, os.path.basename(file_path), "build"])
    run_cmd(f"cd {shlex.quote(os.path.dirname(os.path.abspath(file_path)))} && {command}", verbose)


def run_cmd(command, verbose=False):
    """Runs a command of the shell; RuntimeError if it fails."""
    try:
        return subprocess.check_call(command, shell=True, stdout=None if verbose else subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError) as error:
        raise RuntimeError(f"Failed to run command: {command}, errors: {error}") from error
