"""What `import proa` takes, the interpreter's own start included, beside that start alone, real Paddle's import and
PyTorch's (where installed): processes in turn, medians, in milliseconds; and what the package takes on disk.

    .venv/bin/python benchmarks/python_import.py              (rounds: ROUNDS, default 11)
"""
import os
import pathlib
import statistics
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("PROA_BUILD", ROOT / "build")).resolve()


def commands():
    """name -> command line. -I: no user site, no current folder; the same for all."""
    proa = f"import sys; sys.path.insert(0, {str(BUILD / 'python')!r}); import proa"
    found = {"interpreter": [sys.executable, "-I", "-c", "pass"], "proa": [sys.executable, "-I", "-c", proa]}
    for name, folder in (("paddle", ".venv-oracle"), ("torch", ".venv-torch")):
        python = ROOT / folder / "bin/python"
        if python.exists():
            found[name] = [str(python), "-I", "-c", f"import {name}"]
    return found


def main():
    runs = {name: [] for name in commands()}
    for round_number in range(int(os.environ.get("ROUNDS", "11")) + 1):
        for name, command in commands().items():
            start = time.perf_counter()
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if round_number:  # the first round fills the page cache
                runs[name].append((time.perf_counter() - start) * 1e3)
    medians = {name: statistics.median(times) for name, times in runs.items()}
    print(f"{'':14}{'ms':>8}{'least':>8}{'/ proa':>9}")
    for name, ms in medians.items():
        print(f"{name:14}{ms:8.1f}{min(runs[name]):8.1f}{ms / medians['proa']:9.1f}")


main()
