#!/usr/bin/env python3
"""ops/ops.lock (ops and their wire names) and include/proa/ops.h with ops/ must be what the op tables say now (`make lock`)."""
import difflib
import pathlib
import subprocess
import sys
import tempfile

from tree import ROOT, report


def main():
    tables = [str(p) for p in sorted([*ROOT.glob("ops/*/*.yaml"), *ROOT.glob("jit/*/*.yaml")])]
    lock = ROOT / "ops/ops.lock"
    with tempfile.TemporaryDirectory() as folder:
        fresh = pathlib.Path(folder) / "ops.lock"
        done = subprocess.run([sys.executable, str(ROOT / "tools/gen_ops.py"), "--table", str(ROOT / "ops/table.yaml"),
                               "--out", folder, "--lock", str(fresh), *tables], capture_output=True, text=True)
        if done.returncode:
            return report("lock", [done.stderr.strip()])
        new = fresh.read_text().splitlines()
    old = lock.read_text().splitlines() if lock.exists() else []
    diff = list(difflib.unified_diff(old, new, "ops/ops.lock", "the op tables", lineterm="", n=0))
    if diff:
        diff.append("run `make lock`, and read what it changes: wire names are a promise to saved models")
    return report("lock", diff, f", {len(new) - 2} ops")


if __name__ == "__main__":
    sys.exit(main())
