#!/usr/bin/env python3
"""Checks that commit subjects read `area: what it does`, within 60 columns, and that a blank line parts them from the body.

    check_commits.py [BASE]         the commits from BASE (default: since the rule holds) to HEAD
    check_commits.py --file PATH    one message, for the commit-msg hook
"""
import pathlib
import re
import subprocess
import sys

from tree import ROOT, report

COLUMNS = 60
HOLDS_SINCE = "8f21891"  # subjects before it are as they are
SUBJECT = re.compile(r"[a-z0-9_./+-]+(, [a-z0-9_./+-]+)*: \S")
GENERATED = re.compile(r"(Merge|Revert|fixup!|squash!) ")


def faults(message):
    """Faults of a message."""
    subject, _, rest = message.partition("\n")
    if GENERATED.match(subject):
        return []
    found = []
    if len(subject) > COLUMNS:
        found.append(f"{len(subject)} columns, more than {COLUMNS}")
    if not SUBJECT.match(subject):
        found.append("expected `area: what it does`, as in `io: read LoD tensors`")
    if rest and not rest.startswith("\n"):
        found.append("a blank line must follow the subject")
    return [f"{subject[:70]!r}: {fault}" for fault in found]


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)


def main():
    if sys.argv[1:2] == ["--file"]:
        return report("commits", faults(pathlib.Path(sys.argv[2]).read_text()))
    base = sys.argv[1] if len(sys.argv) > 1 else HOLDS_SINCE
    log = git("log", "--format=%B%x00", f"{base}..HEAD")
    if log.returncode:
        print(f"commits: not checked: {base} is not in this checkout")
        return 0
    messages = [m.strip("\n") for m in log.stdout.split("\0") if m.strip()]
    return report("commits", [f for m in messages for f in faults(m)], f", {len(messages)} messages")


if __name__ == "__main__":
    sys.exit(main())
