"""Bad calls of a few public callables, drawn by a seed, on real Paddle and on Proa: tests/referee/bad_calls.py, small."""
import pathlib
import subprocess
import sys

import pytest

import proa as paddle

ROOT = pathlib.Path(__file__).resolve().parents[2]
ORACLE = ROOT / ".venv-oracle/bin/python"


@pytest.mark.skipif(not ORACLE.exists(), reason="needs real Paddle")
def test_type_and_category_agree(tmp_path):
    done = subprocess.run([sys.executable, str(ROOT / "tests/referee/bad_calls.py"), "--sample", "30", "--seed", "1",
                           "--jobs", "2", "--least", "70", "--out", str(tmp_path)], text=True, capture_output=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " calls of " in done.stdout


def refusal(call):
    with pytest.raises(Exception) as caught:
        call()
    return type(caught.value), str(caught.value)


X = paddle.ones([2, 3])


@pytest.mark.parametrize("call, kind, lead", [
    (lambda: paddle.add(X, 5), ValueError, "(InvalidArgument) add: "),
    (lambda: paddle.add(X, y=paddle.ones([4, 5])), ValueError, "(InvalidArgument) add: "),
    (lambda: paddle.subtract(X, paddle.ones([2, 3], "bool")), RuntimeError, "(NotFound) subtract: y is bool"),
    (lambda: bool(X), AssertionError, "bool: only a tensor of one element"),
    (lambda: int(X), AssertionError, "int: only a tensor of one element"),
    (lambda: float(X), AssertionError, "float: only a tensor of one element"),
    (lambda: range(X.astype("int64")), AssertionError, "index: only a tensor of one element"),
    (lambda: paddle.abs(paddle.ones([2], "bool")), RuntimeError, "(NotFound) abs: "),
    (lambda: paddle.sum(X, axis=7), ValueError, "(InvalidArgument) sum: "),
    (lambda: paddle.nn.functional.softmax(X, axis="k"), ValueError, "(InvalidArgument) softmax: "),
    (lambda: paddle.nn.functional.softmax(X, axis=True), ValueError, "(InvalidArgument) softmax: "),
    (lambda: paddle.nn.functional.softmax(X, axis=1j), ValueError, "(InvalidArgument) softmax: "),
    (lambda: paddle.argmax(X, keepdim="yes"), ValueError, "(InvalidArgument) argmax: "),
    (lambda: paddle.gather(X, paddle.to_tensor([9])), IndexError, "(OutOfRange) gather: "),
    (lambda: paddle.zeros([10 ** 13]), MemoryError, "(ResourceExhausted) "),
    (lambda: paddle.sparse.nn.functional.relu(X), NotImplementedError, "(Unimplemented) relu: "),
    (lambda: paddle.sparse.nn.functional.relu(5), ValueError, "(InvalidArgument) relu: "),
    (lambda: paddle.abs_(5), ValueError, "(InvalidArgument) abs: "),
    (lambda: paddle.tril_(), TypeError, ""),
    (lambda: paddle.is_empty(5), ValueError, "(InvalidArgument) is_empty: "),
    (lambda: X.multiply_(5), AttributeError, "'int' object has no attribute 'shape'"),
    (lambda: paddle.abs(), TypeError, "abs: argument x is missing"),
    (lambda: paddle.add(5), TypeError, "add: argument y is missing"),
    (lambda: paddle.add(5, X, no_such=1), TypeError, "add: "),
    (lambda: paddle.heaviside(5, X, no_such=1), TypeError, "heaviside: "),  # the first call of it with a keyword
])
def test_what_is_raised(call, kind, lead):
    got, text = refusal(call)
    assert got is kind and text.startswith(lead), (got, text)


def test_programs_check_types_in_python():
    paddle.enable_static()
    try:
        with paddle.static.program_guard(paddle.static.Program()):
            x = paddle.static.data("x", [2, 3], "bool")
            assert refusal(lambda: paddle.abs(x))[0] is TypeError
            assert refusal(lambda: paddle.add(x, 5))[0] is TypeError
    finally:
        paddle.disable_static()
