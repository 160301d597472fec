#!/usr/bin/env python3
"""Checks that every public header compiles by itself, without a warning, as pedantic C11 and as C++17 (proa/ops/*.h with one
compiler; Paddle's C interface as C99 and C++11, its C++ interface as C++11), and that functions in include/proa/*.h have a comment.
"""
import re
import shutil
import subprocess
import sys

from tree import ROOT, report

C = ["-std=c11", "-pedantic-errors", "-Wall", "-Wextra", "-Wshadow", "-Wstrict-prototypes", "-Wconversion"]
# Options are designated initializers: what they leave out is zero on purpose.
CXX = ["-std=c++17", "-Wall", "-Wextra", "-Wshadow", "-Wno-missing-field-initializers"]


def undocumented(path):
    """Functions without a comment: one above them in their paragraph, or one behind them on the line. Names that end
    in _ are what macros expand to."""
    said, problems = False, []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip():
            said = False
        elif re.match(r"/\*(?! -{2,})", line):
            said = True
        name = re.match(r"PROA_API .*?\b(proa_\w+)\(", line)
        if name and not said and "/*" not in line and not name[1].endswith("_"):
            problems.append(f"{path.relative_to(ROOT)}:{number}: {name[1]} has no comment")
    return problems


def main():
    names = ["proa.h"] + sorted(f"proa/{p.name}" for p in (ROOT / "include/proa").glob("*.h"))
    compilers = [(c, C, "c") for c in ("gcc", "clang") if shutil.which(c)]
    compilers += [(c, CXX, "c++") for c in ("g++", "clang++") if shutil.which(c)]
    problems = [p for path in sorted((ROOT / "include/proa").glob("*.h")) for p in undocumented(path)]
    paddle = sorted(str(p.relative_to(ROOT / "include")) for p in (ROOT / "include/paddle").rglob("*.h"))
    older = [(c, [flag if not flag.startswith("-std") else {"c": "-std=c99", "c++": "-std=c++11"}[language]
                  for flag in flags], language) for c, flags, language in compilers]
    wanted = [(name, compiler) for name in names for compiler in compilers]
    wanted += [(f"proa/ops/{p.name}", compilers[0]) for p in sorted((ROOT / "include/proa/ops").glob("*.h"))]
    wanted += [(name, one) for name in paddle for one in older if one[2] == "c++" or "capi" in name]
    for name, (compiler, flags, language) in wanted:
        run = subprocess.run([compiler, *flags, "-Werror", "-fsyntax-only", f"-I{ROOT / 'include'}",
                              "-x", language, "-"], input=f"#include <{name}>\n",
                             capture_output=True, text=True)
        if run.returncode:
            problems.append(f"{name} with {compiler} {flags[0]}:\n{run.stderr.strip()[:2000]}")
    return report("headers", problems, f", {len(names) + len(paddle)} headers with {', '.join(c for c, _, _ in compilers)}")


if __name__ == "__main__":
    sys.exit(main())
