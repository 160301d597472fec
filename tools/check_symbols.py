#!/usr/bin/env python3
"""Checks the folder order in the object files: no object may need a symbol of a folder to its right.

    check_symbols.py [build]

tools/check_layers.py checks includes only; a public header may declare a function of another folder, and only
the linker sees that. Functions reached through tables (kernels, doors, wire readers) need no symbol."""
import collections
import pathlib
import subprocess
import sys

from tree import FOLDERS, ROOT, report


def folder_of(path):
    """The folder of the source that an object was made of; None if it is in none of the line, or generated: the op
    table names what every folder defines, and whoever reads it links nothing of them."""
    inside = path.parts[path.parts.index("CMakeFiles") + 2:]
    return inside[0] if inside[0] in FOLDERS else None


def source_of(path):
    """The source that an object of a folder's target was made of: CMakeFiles/<target>.dir/<source>.o."""
    return ROOT.joinpath(*path.parts[path.parts.index("CMakeFiles") + 2:]).with_suffix("")


def symbols(objects):
    """(path, kind, name) of each external symbol of the objects."""
    names = subprocess.run(["nm", "-A", "-g", *map(str, objects)], capture_output=True, text=True, check=True).stdout
    for line in names.splitlines():
        path, _, rest = line.partition(":")
        *_, kind, name = rest.split()
        yield pathlib.Path(path), kind, name


def main():
    build = ROOT / (sys.argv[1] if len(sys.argv) > 1 else "build")
    objects = [p for p in sorted(build.glob("CMakeFiles/proa_*.dir/**/*.o")) if folder_of(p) and source_of(p).is_file()]  # no stale ones
    if not objects:
        print(f"symbols: {build} has no objects: run make build")
        return 1
    home, needs = {}, collections.defaultdict(set)
    for path, kind, name in symbols(objects):
        here = folder_of(path)
        if kind in "Uw":
            needs[here, name].add(path.stem)
        else:
            home[name] = here
    problems = [f"{here} ({', '.join(sorted(stems)[:3])}) needs {name}, which {home[name]} defines"
                for (here, name), stems in sorted(needs.items())
                if name in home and FOLDERS.index(home[name]) > FOLDERS.index(here)]
    return report("symbols", problems, f", {len(objects)} objects")


if __name__ == "__main__":
    sys.exit(main())
