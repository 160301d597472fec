#!/usr/bin/env python3
"""Checks the order of folders core <- kernels <- ops <- profile <- ... <- cli: no file includes a header of a folder to its right, and
kernels are in kernels/ and in folders of an op table, in those of over 1500 lines in cpu/ and cuda/. A file's header that says "May use …"
names every folder that the file includes."""
import re
import sys

from tree import FOLDERS, ROOT, files, report

# Folders of public and generated headers (the op table's structs and enums stand below all its families); include/proa/<folder>.h belongs to that folder.
HEADERS = {"core.h": "core", "op.h": "core", "wire.h": "core", "ops.h": "ops", "create.h": "ops",
           "functional.h": "ops", "program.h": "jit", "data.h": "io", "cipher.h": "inference",
           "plan.h": "dist", "ps.h": "dist", "proa.h": "inference"}
GENERATED = {"ops_impl.h": "kernels", "kernels.h": "core", "formulas.inc": "ops", "build_info.h": "core",
             "framework.pb-c.h": "io"}
# Definitions of kernels; and the two that compute nothing: a device's fallback to the CPU, and calls of Python's functions.
KERNEL = re.compile(r"^(?:PROA|CUDA)_KERNEL\w*\(|^(?:static )?const proa_kernel \w+ =", re.M)
NO_FAMILY = {"core/device_run.c", "python-bindings/src/host.c"}
LARGE_FAMILY = 1500  # lines from which a family's kernels have folders of their own
# Outside every folder of the line: they may use all of it.
FREE = {"examples", "tests", "benchmarks", "devices", "tools"}


def folder_of(path):
    """The folder whose rights a file has; None for files that may include anything."""
    if path.parts[:3] == ("include", "proa", "ops"):
        return "ops"
    if path.parts[0] == "include":
        return HEADERS.get(path.name, path.stem if path.stem in FOLDERS else "inference")
    return path.parts[0] if path.parts[0] in FOLDERS else None


def target_of(path, name):
    """The folder that an #include reaches; None for headers from outside."""
    parts = name.split("/")
    if parts[0] == "impl" or parts[:2] == ["proa", "ops"]:
        return "kernels"
    if name == "proa.h" or parts[0] == "proa":
        return HEADERS.get(parts[-1], parts[-1][:-2] if parts[-1][:-2] in FOLDERS else None)
    if name in GENERATED:
        return GENERATED[name]
    if (ROOT / path.parent / name).exists():
        return folder_of(path)
    return parts[0] if len(parts) > 1 and parts[0] in FOLDERS else None


def misplaced_kernels(paths):
    """Kernels outside families, and beside the other files of a large one."""
    tables = {p.parent for p in files(".yaml") if p.parts[0] in ("ops", "jit") and len(p.parts) == 3}
    sizes = {table: sum(len((ROOT / p).read_text().splitlines()) for p in paths if table in p.parents) for table in tables}
    for path in paths:
        if path.parts[0] in FREE or not KERNEL.search((ROOT / path).read_text()) or str(path) in NO_FAMILY:
            continue
        family = next((table for table in tables if table in path.parents), None)
        if family is None:
            if path.parts[0] != "kernels":
                yield f"{path}: defines a kernel, but is in no folder of an op table"
        elif path.parent == family and path.name.startswith(("cpu", "cuda")) and sizes[family] > LARGE_FAMILY:
            yield f"{path}: belongs into {family}/cpu or cuda: the family has {sizes[family]} lines"


def unsaid(path, text):
    """Folders of the line that a file includes and its header's "May use …" does not name."""
    header = re.match(r"/\*(.*?)\*/", text, re.S)
    words = " ".join(line.strip().lstrip("*").strip() for line in header[1].splitlines()) if header else ""
    said = re.search(r"May use ([^.]*)\.", words)
    if said and path.parts[0] in FOLDERS:
        used = {name.split("/")[0] for name in re.findall(r'#include "([^"]+/[^"]+)"', text)} - {path.parts[0]}
        for folder in sorted(used & set(FOLDERS)):
            if folder not in said[1]:
                yield f"{path}: its header says that it may use {said[1]}; it includes {folder}/"


def main():
    problems, count = list(misplaced_kernels(files(".c", ".cc", ".cu", ".h", ".inc"))), 0
    for path in files(".c", ".h", ".cc", ".cu", ".inc"):
        here = folder_of(path)
        if here is None:
            if path.parts[0] not in FREE:
                problems.append(f"{path}: stands in no folder of the line")
            continue
        text = (ROOT / path).read_text()
        problems += unsaid(path, text)
        for number, line in enumerate(text.splitlines(), 1):
            m = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
            there = target_of(path, m.group(1)) if m else None
            count += bool(there)
            if there and FOLDERS.index(there) > FOLDERS.index(here):
                problems.append(f"{path}:{number}: {here} includes {m.group(1)}, which belongs to {there}")
    return report("layers", problems, f", {count} includes")


if __name__ == "__main__":
    sys.exit(main())
