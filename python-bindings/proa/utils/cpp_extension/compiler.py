"""Compiling the sources of operators to a shared library: flags, the digest of what went in, and an atomic replacement."""
import contextlib
import fcntl
import hashlib
import os
import shlex
import subprocess
import tempfile
import warnings

from ... import sysconfig

# C++17 is what Paddle 2.5 and later build with; sources for 2.1's C++14 compile, too.
FLAGS = ["-std=c++17", "-O3", "-fPIC", "-shared"]
CUDA = (".cu", ".cuh")


def compiler():
    """The command of the C++ compiler: CXX, else c++."""
    return shlex.split(os.environ.get("CXX", "c++"))


def sources_for_cpu(sources):
    """Absolute paths of the sources that are no CUDA; a warning for those that are."""
    left_out = [s for s in sources if str(s).endswith(CUDA)]
    if left_out:
        warnings.warn(f"cpp_extension: {', '.join(map(str, left_out))}: CUDA sources are left out, since custom operators of Proa run "
                      "on the CPU", stacklevel=3)
    kept = [os.path.abspath(s) for s in sources if not str(s).endswith(CUDA)]
    if not kept:
        raise ValueError(f"(InvalidArgument) cpp_extension: sources must name a file in C++, got {list(sources)}")
    for path in kept:
        if not os.path.isfile(path):
            raise FileNotFoundError(f"(NotFound) cpp_extension: there is no source {path}")
    return kept


def command(sources, to, includes=(), cflags=(), ldflags=(), libraries=()):
    """The compiler's command line that makes a library of the sources."""
    folders = [flag for folder in (*includes, sysconfig.get_include()) for flag in ("-I", str(folder))]
    return [*compiler(), *FLAGS, *map(str, cflags), *folders, *sources, "-o", to,
            *(f"-L{folder}" for folder in libraries), *map(str, ldflags)]


def digest_of(words, sources):
    """A digest of a command, of the sources' text and of the headers' text: the library is built again if it changes."""
    digest = hashlib.sha256("\0".join(words).encode())
    headers = [os.path.join(folder, name) for folder, _, names in os.walk(os.path.join(sysconfig.get_include(), "paddle"))
               for name in names]
    for path in (*sources, *sorted(headers), os.path.join(sysconfig.get_include(), "proa", "extension.h")):
        with open(path, "rb") as file:
            digest.update(file.read())
    return digest.hexdigest()


@contextlib.contextmanager
def locked(folder):
    """One process at a time in a folder."""
    with open(os.path.join(folder, ".lock"), "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def compile_library(sources, to, verbose=False, **flags):
    """Builds the library `to` of the sources, whole or not at all. RuntimeError with what the compiler says."""
    folder = os.path.dirname(to)
    os.makedirs(folder, exist_ok=True)
    handle, part = tempfile.mkstemp(suffix=".so", dir=folder)
    os.close(handle)
    try:
        words = command(sources, part, **flags)
        if verbose:
            print("cpp_extension:", shlex.join(words))
        try:
            done = subprocess.run(words, capture_output=True, text=True)
        except FileNotFoundError:
            raise RuntimeError(f"(External) cpp_extension: there is no compiler {words[0]}; install one, or name it in CXX") from None
        if done.returncode:
            raise RuntimeError(f"(External) cpp_extension: {os.path.basename(to)} does not compile:\n{done.stderr.strip()}")
        if verbose and done.stderr:
            print(done.stderr.strip())
        os.chmod(part, 0o755)
        os.replace(part, to)
    finally:
        if os.path.exists(part):
            os.remove(part)


def compile_if_changed(sources, to, verbose=False, **flags):
    """compile_library, unless `to` was built of the same sources by the same command and headers."""
    os.makedirs(os.path.dirname(to), exist_ok=True)
    digest, note = digest_of(command(sources, "", **flags), sources), to + ".digest"
    with locked(os.path.dirname(to)):
        if os.path.exists(to) and os.path.exists(note):
            with open(note) as file:
                if file.read() == digest:
                    return
        compile_library(sources, to, verbose, **flags)
        with open(note, "w") as file:
            file.write(digest)
