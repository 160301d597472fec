#!/usr/bin/env python3
"""Every public header compiles by itself, without a warning, as pedantic C11 and as C++17.

    check_headers.py build/gen     (the folder that holds the generated proa/ops.h)
"""
import shutil
import subprocess
import sys

from tree import ROOT, report

C = ["-std=c11", "-pedantic-errors", "-Wall", "-Wextra", "-Wshadow", "-Wstrict-prototypes", "-Wconversion"]
# Options are designated initialisers: what they leave out is zero on purpose.
CXX = ["-std=c++17", "-Wall", "-Wextra", "-Wshadow", "-Wno-missing-field-initializers"]


def main():
    gen = sys.argv[1] if len(sys.argv) > 1 else str(ROOT / "build/gen")
    names = ["proa.h", "proa/ops.h"] + sorted(f"proa/{p.name}" for p in (ROOT / "include/proa").glob("*.h"))
    compilers = [(c, C, "c") for c in ("gcc", "clang") if shutil.which(c)]
    compilers += [(c, CXX, "c++") for c in ("g++", "clang++") if shutil.which(c)]
    problems = []
    for name in names:
        for compiler, flags, language in compilers:
            run = subprocess.run([compiler, *flags, "-Werror", "-fsyntax-only", f"-I{ROOT / 'include'}",
                                  f"-I{gen}", "-x", language, "-"], input=f"#include <{name}>\n",
                                 capture_output=True, text=True)
            if run.returncode:
                problems.append(f"{name} with {compiler} {flags[0]}:\n{run.stderr.strip()[:2000]}")
    return report("headers", problems, f", {len(names)} headers with {', '.join(c for c, _, _ in compilers)}")


if __name__ == "__main__":
    sys.exit(main())
