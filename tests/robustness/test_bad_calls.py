"""Random bad calls of every function of the op table and many of the package: Python exceptions, never a crash, never
SystemError; nothing leaked, resident memory within 1 %. Each batch runs in a process of its own, so that a crash is a
failed test."""
import subprocess
import sys

import pytest

CALLS = 2500  # a batch

PROGRAM = r"""
import gc, random, sys
import proa as paddle
from proa import _core
import proa.nn.functional as F

seed, calls = int(sys.argv[1]), int(sys.argv[2])
rng = random.Random(seed)
functions = {f"_core.{n}": f for n, f in _core.api("_core").items() if n not in ("barrier",)}
functions.update({f"paddle.{n}": f for n, f in vars(paddle).items()
                  if callable(f) and not isinstance(f, type) and not n.startswith("_")})
functions.update({f"F.{n}": f for n, f in vars(F).items()
                  if callable(f) and not isinstance(f, type) and not n.startswith("_")})
del functions["paddle.enable_static"]  # the calls behind it would only build a program, which stays by design
names = sorted(functions)

def value():
    return rng.choice([
        lambda: None, lambda: True, lambda: -1, lambda: 0, lambda: 1, lambda: 7, lambda: 2**31, lambda: 2**63 - 1,
        lambda: 10**30, lambda: -2**63, lambda: 1.5, lambda: float("nan"), lambda: float("inf"), lambda: 1j,
        lambda: "", lambda: "float32", lambda: "NHWC", lambda: "nonsense", lambda: [], lambda: [1], lambda: [1, -1],
        lambda: [2, 2**62, 2**62], lambda: [None], lambda: ["a"], lambda: (0, 1), lambda: {}, lambda: object(),
        lambda: paddle.to_tensor(1.0), lambda: paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]]),
        lambda: paddle.to_tensor([[1.0, 2.0, 3.0]], stop_gradient=False), lambda: paddle.to_tensor([3, -9]),
        lambda: paddle.to_tensor([], dtype="float64"), lambda: paddle.to_tensor([True, False]),
        lambda: _core.full([2, 0, 3], 1.0), lambda: _core.full([1, 2, 3, 4], 0.5, dtype="bfloat16"),
        lambda: [paddle.to_tensor([1.0]), paddle.to_tensor([2])], lambda: [paddle.to_tensor([1.0]), None],
        lambda: b"bytes", lambda: range(3), lambda: paddle.float64, lambda: paddle.to_tensor([1 + 2j]),
    ])()

def once(name):
    keywords = {rng.choice(["axis", "dtype", "x", "shape", "nonsense"]): value()} if rng.random() < 0.2 else {}
    arguments = [value() for _ in range(rng.randrange(6))]
    try:
        functions[name](*arguments, **keywords)
    except SystemError as e:
        print("SystemError from", name, arguments, keywords, e)
        sys.exit(3)
    except Exception as e:
        kind = type(e)
    return None

def resident():
    return int(open("/proc/self/statm").read().split()[1])

# A cap, so that what is merely large is refused and not made.
_core.set_memory_cap(1 << 28)
for again in range(3):  # the same calls again: the first time fills the bounded caches of prepared kernels
    gc.collect()
    before, pages = _core.live_bytes(), resident()
    rng.seed(seed)
    paddle.seed(0)
    for i in range(calls):
        name = rng.choice(names)
        sys.stderr.write(name + "\n")
        once(name)
gc.collect()
leaked, grown = _core.live_bytes() - before, resident() / pages - 1
print("calls", calls, "functions", len(names), "leaked", leaked, f"resident memory {grown:+.2%}")
sys.exit(0 if leaked == 0 and grown <= 0.01 else 4)
"""


@pytest.mark.parametrize("seed", range(4))
def test_bad_calls(seed):
    done = subprocess.run([sys.executable, "-c", PROGRAM, str(seed), str(CALLS)], capture_output=True, text=True,
                          timeout=300)
    last = done.stderr.strip().splitlines()[-1:] if done.returncode < 0 else done.stderr[-2000:]
    assert done.returncode == 0, f"ended with {done.returncode} in {last}\n{done.stdout[-2000:]}"
