#!/usr/bin/env python3
"""Holds the line core <- kernels <- ops <- autograd <- ... <- cli: no file includes a header of a folder to its right."""
import re
import sys

from tree import FOLDERS, ROOT, files, report

# Where a public or generated header belongs (the op table's structs and enums stand below all its families); include/proa/<folder>.h belongs to that folder.
HEADERS = {"core.h": "core", "op.h": "core", "wire.h": "core", "ops.h": "ops", "create.h": "ops",
           "functional.h": "ops", "program.h": "jit", "data.h": "io", "cipher.h": "inference",
           "proa.h": "inference"}
GENERATED = {"ops_impl.h": "kernels", "kernels.h": "core", "formulas.inc": "ops", "build_info.h": "core",
             "framework.pb-c.h": "io"}
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


def main():
    problems, count = [], 0
    for path in files(".c", ".h", ".cc", ".cu", ".inc"):
        here = folder_of(path)
        if here is None:
            if path.parts[0] not in FREE:
                problems.append(f"{path}: stands in no folder of the line")
            continue
        for number, line in enumerate((ROOT / path).read_text().splitlines(), 1):
            m = re.match(r'\s*#\s*include\s*[<"]([^>"]+)[>"]', line)
            there = target_of(path, m.group(1)) if m else None
            count += bool(there)
            if there and FOLDERS.index(there) > FOLDERS.index(here):
                problems.append(f"{path}:{number}: {here} includes {m.group(1)}, which belongs to {there}")
    return report("layers", problems, f", {count} includes")


if __name__ == "__main__":
    sys.exit(main())
