"""The build backend that pyproject.toml names: scikit-build-core builds the wheel, then auditwheel puts the
libraries that it needs from outside into it and names the oldest Linux it runs on. Their licenses go along."""
import importlib.metadata
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile

from scikit_build_core import build as _cmake
from scikit_build_core.build import (build_editable, build_sdist, get_requires_for_build_editable,  # noqa: F401
                                     get_requires_for_build_sdist, get_requires_for_build_wheel,
                                     prepare_metadata_for_build_wheel)

# Libraries that every Linux of a manylinux tag has, by PEP 600: the wheel does not carry them.
EVERYWHERE = re.compile(r"(ld-linux.*|libc|libm|libdl|librt|libpthread|libstdc\+\+|libgcc_s|linux-vdso)\.so")


def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    """Builds the wheel and repairs it; where auditwheel does not know the system, leaves it as it is."""
    with tempfile.TemporaryDirectory() as scratch:
        plain = pathlib.Path(scratch) / _cmake.build_wheel(scratch, config_settings, metadata_directory)
        out = pathlib.Path(scratch, "repaired")
        _prepare(plain, pathlib.Path(scratch, "unpacked"), pathlib.Path(scratch, "trimmed"))
        command = [sys.executable, "-m", "auditwheel", "repair", "--strip", "--wheel-dir", str(out), str(plain)]
        done = subprocess.run(command, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        found = list(out.glob("*.whl"))
        if done.returncode or len(found) != 1:
            print(done.stdout, "auditwheel could not repair the wheel: it works on this machine, and may not on others",
                  sep="\n", file=sys.stderr)
            shutil.copy2(plain, wheel_directory)
            return plain.name
        _shrink(found[0], pathlib.Path(wheel_directory, found[0].name))
        return found[0].name


def _shrink(wheel, to):
    """Copies a repaired wheel, its libraries from outside without the gaps that patchelf left in them."""
    from auditwheel.wheeltools import InWheel
    with InWheel(wheel, to) as folder:
        for library in pathlib.Path(folder).glob("*.libs/*.so*"):
            subprocess.run(["strip", "--strip-unneeded", str(library)], check=True)


def _prepare(wheel, folder, trimmed):
    """Prepares a wheel for auditwheel: licenses of all libraries in dist-info, libraries aligned to small pages, and in
    `trimmed` a smaller OpenBLAS."""
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder)
    licenses = next(folder.glob("*.dist-info")) / "licenses/bundled"
    licenses.mkdir(parents=True)
    for name, text in _licenses(folder).items():
        (licenses / f"{name}.txt").write_bytes(text)
    _trim_openblas(folder / "proa/libs", trimmed)
    for library in folder.rglob("*.so*"):
        library.write_bytes(_small_pages(library.read_bytes()))
    with zipfile.ZipFile(wheel, "w") as archive:  # auditwheel writes RECORD anew, and compresses
        for path in sorted(folder.rglob("*")):
            archive.write(path, path.relative_to(folder))


def _licenses(folder):
    """{name: text} for the libraries that the wheel carries or is about to."""
    texts = {}
    for file in importlib.metadata.files("onednn-cpu-gomp") or [] if list(folder.rglob("libdnnl.so*")) else []:
        if "share/doc/onednn" in str(file) and file.name != "README":
            texts[f"oneDNN-{file.name}"] = pathlib.Path(file.locate()).read_bytes()
    for library in _outside(folder):
        package = _debian_package(library)
        if package is None:
            print(f"wheel: no license found for {library}: add it by hand before you give the wheel away",
                  file=sys.stderr)
        else:
            where = pathlib.Path("/usr/share/doc", package).resolve()  # libgomp1's is gcc-12-base's
            texts[where.name] = (where / "copyright").read_bytes()
    return texts


def _trim_openblas(libs, to):
    """Links what libproa calls of OpenBLAS's archive as a library of the same name, and has libproa look there first:
    a quarter of the whole is LAPACK that nobody here calls. Without an archive the shared library stays."""
    libproa = libs / "libproa.so.0"
    library = next((path for path in _outside(libs) if path.name.startswith("libopenblas.so")), None)
    archive = next((path for path in sorted(library.resolve().parent.glob("libopenblas*.a"))), None) if library else None
    if archive is None:
        return
    called = _symbols("--undefined-only", libproa) & _symbols("--defined-only", library)
    to.mkdir()
    script = to / "exports.map"
    script.write_text("{ global: " + " ".join(f"{name};" for name in sorted(called)) + " local: *; };")
    runtime = [path for path in _outside(libs) if path.name.startswith(("libgfortran", "libgomp"))]
    command = ["cc", "-shared", "-o", str(to / library.name), f"-Wl,-soname,{library.name}", "-Wl,--gc-sections",
               f"-Wl,--version-script={script}", *(f"-Wl,-u,{name}" for name in sorted(called)), str(archive),
               *map(str, runtime), "-lm", "-lpthread"]
    subprocess.run(command, check=True)
    subprocess.run(["patchelf", "--set-rpath", f"$ORIGIN:{to}", str(libproa)], check=True)


def _symbols(which, library):
    """Names of a shared library's dynamic symbols."""
    listed = subprocess.run(["nm", "--dynamic", "--just-symbols", which, str(library)], text=True, check=True,
                            capture_output=True).stdout
    return {name.partition("@")[0] for name in listed.split()}


def _small_pages(elf):
    """A 64-bit ELF file whose segments ask for pages of 4 KiB, not 2 MiB: patchelf appends to it in whole pages."""
    if elf[:6] != b"\x7fELF\x02\x01":
        return elf
    data = bytearray(elf)
    table, = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    for at in range(table, table + size * count, size):
        kind, = struct.unpack_from("<I", data, at)
        align, = struct.unpack_from("<Q", data, at + 48)
        if kind == 1 and align == 0x200000:  # PT_LOAD
            struct.pack_into("<Q", data, at + 48, 0x1000)
    return bytes(data)


def _outside(folder):
    """Paths of the shared libraries that the wheel's own load from outside it and that not every Linux has."""
    paths = set()
    for binary in folder.rglob("*.so*"):
        listed = subprocess.run(["ldd", str(binary)], text=True, capture_output=True).stdout
        for name, path in re.findall(r"^\s*(\S+) => (/\S+)", listed, re.M):
            if not EVERYWHERE.match(name) and folder not in pathlib.Path(path).parents:
                paths.add(pathlib.Path(path))
    return sorted(paths)


def _debian_package(library):
    """The Debian package that a library belongs to; None on another system."""
    if shutil.which("dpkg-query") is None:
        return None
    real = library.resolve()
    for name in (real, pathlib.Path(str(real).removeprefix("/usr"))):
        done = subprocess.run(["dpkg-query", "-S", str(name)], text=True, capture_output=True)
        if done.returncode == 0:
            return done.stdout.partition(":")[0]
    return None
