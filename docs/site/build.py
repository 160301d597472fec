#!/usr/bin/env python3
"""Builds the reference site: build.py [--build FOLDER] [--out FOLDER]   (`make docs`)

Sources are the pages of docs/, and pages written from the op table, the public headers and the built package. A warning of
Sphinx's, a broken link, or a C call on an op's page that does not compile ends it with status 1."""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def copy_pages(source):
    """The pages of docs/; a link to a file that is not a page becomes that file's path in the project."""
    pages = {p.name for p in (ROOT / "docs").glob("*.md")}
    for path in (ROOT / "docs").glob("*.md"):
        def target(m):
            name = m[2].partition("#")[0]
            if "://" in m[2] or m[2].startswith("#") or name in pages or m[2].endswith(".png"):
                return m[0]
            return m[1].strip("`").join("``") + f" (`{os.path.normpath('docs/' + name)}`)"
        text = re.sub(r"\[([^\]\n]+)\]\(([^)\s]+)\)", target, path.read_text())
        (source / path.name).write_text(text)
    for path in (ROOT / "docs").glob("*.png"):
        shutil.copy(path, source)
    for name in ("conf.py", "index.md"):
        shutil.copy(HERE / name, source)


def compile_calls(calls, out):
    """Every C call that a page shows, as a function of one program."""
    lines = ["#include <math.h>", "#include <proa.h>", ""]
    for name, call in calls.items():
        lines += [f"void call_{name}(void);", f"void call_{name}(void)", "{", *[f"    {line}" for line in call], "}"]
    program = out / "calls.c"
    program.write_text("\n".join(lines) + "\n")
    done = subprocess.run(["cc", "-std=c11", "-fsyntax-only", "-Wall", "-Wextra", "-Werror", "-Wno-unused-variable",
                           f"-I{ROOT / 'include'}", str(program)], text=True, capture_output=True)
    if done.returncode:
        sys.exit(f"C calls of the ops' pages:\n{done.stderr[:4000]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path(os.environ.get("PROA_BUILD", ROOT / "build")))
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/docs")
    a = parser.parse_args()
    sys.path[:0] = [str(a.build.resolve() / "python"), str(ROOT / "tests"), str(HERE)]
    import proa
    import c_pages
    import op_pages
    import python_pages
    source = a.out / "source"
    shutil.rmtree(source, ignore_errors=True)
    source.mkdir(parents=True)
    copy_pages(source)
    package = python_pages.modules(proa, ROOT / "tests/parity/paddle_api.tsv")
    calls = op_pages.write(source, a.build, package)
    compile_calls(calls, a.out)
    headers = c_pages.write(ROOT, source, op_pages.matrix.OPS)
    objects = python_pages.write(source, package)
    site = a.out / "html"
    shutil.rmtree(site, ignore_errors=True)
    done = subprocess.run([sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-j", str(min(4, os.cpu_count() or 1)),
                           "-d", str(a.out / "doctrees"), "-b", "html", str(source), str(site)])
    if done.returncode:
        sys.exit(done.returncode)
    print(f"docs: {len(op_pages.matrix.OPS)} ops ({len(calls)} C calls compiled), {headers} headers, {objects} Python objects: "
          f"{site}/index.html")


if __name__ == "__main__":
    main()
