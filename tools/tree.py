"""For the checks: the project's files (those that git tracks or would add; in a source archive all files), the order of its
folders, and the report of a check's problems."""
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
# A folder may include only folders to its left: docs/architecture.md.
FOLDERS = ["core", "kernels", "ops", "profile", "autograd", "nn", "optim", "amp", "jit", "io", "extension", "dist", "inference", "cli",
           "python-bindings"]


def files(*suffixes):
    """Paths, relative to the root, of the project's files that end so: committed, or new and not ignored."""
    git = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=ROOT,
                         capture_output=True, text=True)
    if git.returncode == 0:
        names = [pathlib.Path(n) for n in git.stdout.splitlines()]
    else:
        names = [p.relative_to(ROOT) for p in ROOT.rglob("*") if p.is_file()]
        names = [p for p in names if not p.parts[0].startswith((".", "build"))]
    return sorted(p for p in names if p.suffix in suffixes and (ROOT / p).is_file() and p.parts[0] != "gen")


def report(what, problems, note=""):
    """Prints a check's problems, or that it passed; returns the exit status."""
    for problem in problems:
        print(f"{what}: {problem}")
    if not problems:
        print(f"{what}: ok{note}")
    return 1 if problems else 0
