#!/usr/bin/env python3
"""Files stay readable: a warning above 800 lines, an error above 1500; C lines end by column 110, and every
C file opens with a comment that says what it is."""
import sys

from tree import ROOT, files, report

WARN, FAIL, COLUMNS = 800, 1500, 110


def main():
    problems, count = [], 0
    for path in files(".c", ".h", ".cc", ".cu", ".inc", ".py", ".yaml", ".cmake"):
        if path.parts[:3] == ("include", "proa", "ops"):  # tables in C, written by gen_ops.py
            continue
        lines = (ROOT / path).read_text().splitlines()
        count += 1
        if len(lines) > FAIL:
            problems.append(f"{path}: {len(lines)} lines, more than {FAIL}: split it")
        elif len(lines) > WARN:
            print(f"sizes: warning: {path}: {len(lines)} lines, more than {WARN}")
        if path.suffix in (".c", ".h", ".cc", ".cu", ".inc"):
            problems += [f"{path}:{n}: {len(line)} columns, more than {COLUMNS}"
                         for n, line in enumerate(lines, 1) if len(line) > COLUMNS]
            if lines and not lines[0].startswith(("/*", "//")):
                problems.append(f"{path}:1: does not open with a comment that says what the file is")
    return report("sizes", problems, f", {count} files")


if __name__ == "__main__":
    sys.exit(main())
