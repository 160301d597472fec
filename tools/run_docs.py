#!/usr/bin/env python3
"""Runs the code blocks of documentation pages, so that what the pages say is true.

    run_docs.py [page.md …]        default: README.md and every page of docs/ that has blocks to run
    run_docs.py --python page.md   prints the page's Python program instead

A block is taken when its first fence line says so:
    ```yaml file=ops/softclip/softclip.yaml   the block becomes that file of a copy of the project
    ```sh edit                                the block is run, in the copy's root, and changes files there
    ```sh run                                 the block is run there once all pages' files are written and edited, so that
                                              the first page's build is every page's; it changes what `make lock` writes alone
    ```c run                                  the block is a program: compiled without a warning against the build,
                                              and run in an empty folder that holds digits.csv
    ```python run                             a page's blocks are one program, run on the build's package in such a
                                              folder
docs/add-an-op.md must stay in one folder of ops/: "adding an op touches one folder". A page with the comment
`<!-- at most 4 files -->` may touch that many, those that `make lock` writes not counted. The copy is made in
build/docs-test and removed afterwards, which undoes everything.
"""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

from tree import ROOT, files

COPY = ROOT / "build/docs-test"
BUILD = pathlib.Path(os.environ.get("PROA_BUILD", ROOT / "build")).resolve()


def blocks(page):
    """(info string, text) of every fenced block."""
    return re.findall(r"^```([^\n]*)\n(.*?)^```\s*$", page.read_text(), re.M | re.S)


def project_names():
    """The project's files, by their paths in it."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                            capture_output=True, text=True)
    names = listed.stdout.splitlines() if listed.returncode == 0 else \
        [str(p) for p in files(*{p.suffix for p in ROOT.rglob("*")})]
    return [name for name in names if (ROOT / name).is_file()]


def own_files(folder):
    """Paths below the copy that are neither built nor linked to."""
    for path in folder.iterdir():
        if path.is_symlink() or path.name in ("build-doc", "build", "trial", "__pycache__", ".pytest_cache"):
            continue
        if path.is_dir():
            yield from own_files(path)
        elif path.suffix != ".pyc":
            yield path


def state():
    """The copy's files and what is in them."""
    return {str(path.relative_to(COPY)): path.read_bytes() for path in own_files(COPY)}


def copy_project():
    """Makes the copy."""
    shutil.rmtree(COPY, ignore_errors=True)
    for name in project_names():
        (COPY / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, COPY / name)
    for venv in (".venv", ".venv-oracle"):
        if (ROOT / venv).exists():
            (COPY / venv).symlink_to(ROOT / venv)


def touched(before):
    """Files of the copy that the page added or changed, but for those that `make lock` writes."""
    def is_lock(name):
        return name in ("ops/ops.lock", "include/proa/ops.h") or name.startswith("include/proa/ops/")
    return sorted(name for name, text in state().items() if not is_lock(name) and before.get(name) != text)


def python_program(page):
    """The page's Python blocks, one after the other."""
    return "\n".join(text for info, text in blocks(page) if re.match(r"python\b.*\brun\b", info))


def run_program(page, name, program, *commands):
    """Runs the commands on a file with this program, beside digits.csv; returns the number of its lines."""
    env = dict(os.environ, PYTHONPATH=str(BUILD / "python"))
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy2(ROOT / "examples/data/digits_train.csv", pathlib.Path(folder, "digits.csv"))
        pathlib.Path(folder, name).write_text(program)  # a file: to_static reads sources
        for command in commands:
            done = subprocess.run(command, cwd=folder, env=env, text=True, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT)
            if done.returncode:
                print(done.stdout[-4000:])
                sys.exit(f"docs: {page.name}: its program {name} fails with {done.returncode}")
    return program.count("\n")


def run_programs(page):
    """Runs the page's C programs and its Python program; returns how many lines of each."""
    compiler = ["cc", "-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{ROOT / 'include'}", "page.c", "-o", "page",
                f"-L{BUILD}", f"-Wl,-rpath,{BUILD}", "-lproa"]
    c = sum(run_program(page, "page.c", text, compiler, ["./page"])
            for info, text in blocks(page) if re.match(r"c\b.*\brun\b", info))
    program = python_program(page)
    python = [str(ROOT / ".venv/bin/python"), "-W", "error", "page.py"]
    return c, run_program(page, "page.py", program, python) if program else 0


def in_copy(info):
    """Whether the block belongs into the copy."""
    return "file=" in info or re.match(r"sh\b.*\b(edit|run)\b", info)


def run_pages(pages):
    """Programs beside what runs in the copy."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        copied = pool.submit(run_copied, [p for p in pages if any(in_copy(info) for info, _ in blocks(p))])
        programs = pool.submit(lambda: {page: run_programs(page) for page in pages})
        lines, found = programs.result(), copied.result()
    for page in pages:
        (c, python), (changed, ran) = lines[page], found.get(page, ([], 0))
        print(f"docs: {page.name}: ok, {len(changed)} files touched, {ran} blocks, {c} lines of C and {python} of Python run")


def run_copied(pages):
    """Writes and edits all pages' files in the copy, then runs each page's blocks: {page: (files it touched, blocks run)}."""
    if not pages:
        return {}
    copy_project()
    changed = {page: edit(page) for page in pages}
    edited = state()
    ran = {page: sum(run_block(page, text) for info, text in blocks(page) if re.match(r"sh\b.*\brun\b", info)) for page in pages}
    if strays := touched(edited):
        sys.exit(f"docs: blocks that say `run`, not `edit`, change files: {strays}")
    return {page: (changed[page], ran[page]) for page in pages}


def edit(page):
    """Does the page's changes of files; returns those it touched."""
    before = state()
    for info, text in blocks(page):
        if file := re.search(r"\bfile=(\S+)", info):
            path = COPY / file[1]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        elif re.match(r"sh\b.*\bedit\b", info):
            run_block(page, text)
    changed = touched(before)
    folders = sorted({pathlib.Path(name).parent.as_posix() for name in changed})
    if page.name == "add-an-op.md" and [f for f in folders if f != "tests/ops"] != ["ops/softclip"]:
        sys.exit(f"docs: {page.name}: adding an op touches more than one folder: {folders}")
    limit = re.search(r"<!-- at most (\d+) files -->", page.read_text())
    if limit and len(changed) > int(limit[1]):
        sys.exit(f"docs: {page.name}: touches more than {limit[1]} files: {changed}")
    return changed


def run_block(page, text):
    """Runs a block of shell commands in the copy; returns 1, for a count."""
    made = COPY / "build-doc"  # the pages' own build knows what they add; before it there is the project's
    env = dict(os.environ, PROA_BUILD=str(made if made.exists() else BUILD), CCACHE_BASEDIR=str(COPY), JOBS=str(os.cpu_count()))
    done = subprocess.run(["bash", "-euo", "pipefail", "-c", text], cwd=COPY, env=env, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT)
    if done.returncode:
        print(done.stdout[-4000:])
        sys.exit(f"docs: {page.name}: a block fails with {done.returncode}:\n{text}")
    print("\n".join(done.stdout.rstrip().splitlines()[-2:]))
    return 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", action="store_true")
    parser.add_argument("pages", nargs="*", type=pathlib.Path)
    options = parser.parse_args()
    pages = options.pages or [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    if options.python:
        print(*(python_program(page) for page in pages), sep="\n", end="")
        return
    live = [p for p in pages if any(in_copy(info) or re.search(r"\brun\b", info) for info, _ in blocks(p))]
    run_pages(live)
    shutil.rmtree(COPY, ignore_errors=True)
    if not live:
        sys.exit("docs: no page has blocks to run (docs/add-an-op.md should)")


if __name__ == "__main__":
    main()
