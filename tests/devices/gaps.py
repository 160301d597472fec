"""Gaps of the GPU: prints the table of ops and dtypes that have no kernel by device, and compares it with gaps.txt.

    tests/devices/gaps.py [--write]

Runs every sample of the op table on gpu:0 (emulated, unless PROA_GPU says that there is one). A gap that gaps.txt does
not have is an error, as is one of its lines that is none any more; --write takes what was found, and only ever removes
lines unless the file is empty: the list may only shrink. A new op comes with a kernel, or with its lines.
"""
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests"))
import conftest  # noqa: F401 - finds the package
import matrix
import runner
import test_devices
from proa import _core

FILE = ROOT / "tests/devices/gaps.txt"
HEAD = """# Ops and dtypes that gpu:0 has no kernel for: a typed error there. May only shrink (tests/devices/gaps.py --write).
# op dtype
"""


def find():
    """{(op, dtype): has a kernel} of everything that has a sample."""
    found = {}
    for op in test_devices.RUNNABLE:
        for case in map(runner.resolve, matrix.cases(op)):
            _, is_gap = test_devices.attempt(case, lambda: test_devices.compare(case, test_devices.forward, "gpu:0"))
            key = op["name"], case.dtype or "-"
            found[key] = found.get(key, True) and not is_gap
    return found


def main():
    path = test_devices.plugin_of("gpu:0")
    if path is None:
        print("gpu:0: neither the plug-in nor its emulation is built; nothing to compare")
        return 0
    _core.load_devices(str(path))
    found = find()
    gaps = {key for key, there in found.items() if not there}
    ops = {name for name, _ in found}
    whole = sum(all(there for key, there in found.items() if key[0] == name) for name in ops)
    print(f"{_core.device_describe('gpu:0')}: {len(found) - len(gaps)} of {len(found)} (op, dtype) pairs, {whole} of "
          f"{len(ops)} ops whole; the CPU has all")
    for dtype in sorted({d for _, d in found}):
        of = [there for (_, d), there in found.items() if d == dtype]
        print(f"  {dtype:5} {sum(of):4} of {len(of)}")
    known = test_devices.read_gaps()
    if "--write" in sys.argv[1:]:
        kept = gaps & known if known else gaps
        FILE.write_text(HEAD + "".join(f"{name} {dtype}\n" for name, dtype in sorted(kept)))
        known = kept
    for what, keys in (("has no kernel, and is not in gaps.txt", gaps - known), ("is in gaps.txt, but runs", known - gaps)):
        for name, dtype in sorted(keys):
            print(f"{name} {dtype}: {what}")
    return 1 if gaps != known else 0


if __name__ == "__main__":
    sys.exit(main())
