"""static_pylayer against real Paddle: results and gradients of programs whose functions have backwards of their own."""
import json
import subprocess
import sys

import numpy as np
import pytest

import oracle
import proa as paddle

PROGRAM = r"""
import json, sys
import numpy as np
import {package} as paddle

paddle.enable_static()
F = np.linspace(0.5, 2.0, 6).astype("float32").reshape(2, 3)
nn = paddle.static.nn

def ran(build, shape=(2, 3)):
    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, startup):
        x = paddle.static.data("x", list(shape), "float32")
        y = paddle.static.data("y", list(shape), "float32")
        x.stop_gradient = y.stop_gradient = False
        fetched = build(x, y)
    exe = paddle.static.Executor()
    exe.run(startup)
    return [np.asarray(v).tolist() for v in exe.run(main, feed={{"x": F, "y": F + 1}}, fetch_list=fetched)]

def exponential(x, y):
    z = nn.static_pylayer(paddle.exp, [x], lambda dz: 2 * paddle.exp(dz))
    return [z, *paddle.static.gradients([z], x)]

def two_of_each(x, y):
    a, b = nn.static_pylayer(lambda x, y: (x * y, x + y), [x, y], lambda da, db: (da * 3 + db, db * 5))
    loss = paddle.sum(a * 2) + paddle.sum(b)
    return [a, b, *paddle.static.gradients([loss], [x, y])]

def reads_outside(x, y):
    w = y * 0.1
    z = nn.static_pylayer(lambda x: x + w, [x], lambda dz: dz * w)
    loss = paddle.mean(paddle.tanh(z))
    return [z, *paddle.static.gradients([loss], x)]

def in_the_middle(x, y):
    h = paddle.tanh(x)
    z = nn.static_pylayer(lambda h: h * h, [h], lambda dz: paddle.clip(dz, -0.1, 0.1))
    loss = paddle.sum(z * z)
    return [loss, *paddle.static.gradients([loss], x)]

cases = {{"exponential": exponential, "two_of_each": two_of_each, "in_the_middle": in_the_middle}}
if paddle.__name__ == "proa":  # real Paddle frees w before pylayer runs
    cases["reads_outside"] = reads_outside
print(json.dumps({{name: ran(build) for name, build in cases.items()}}))
"""


@pytest.fixture(scope="module")
def both():
    ours = subprocess.run([sys.executable, "-c", PROGRAM.format(package="proa")], text=True, capture_output=True, timeout=120)
    theirs = oracle.run("-c", PROGRAM.format(package="paddle"))
    assert ours.returncode == 0, ours.stderr
    assert theirs.returncode == 0, theirs.stderr
    return json.loads(ours.stdout.splitlines()[-1]), json.loads(theirs.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", ["exponential", "two_of_each", "in_the_middle"])
def test_results_and_gradients_are_paddles(both, name):
    ours, theirs = both
    assert len(ours[name]) == len(theirs[name])
    for got, wanted in zip(ours[name], theirs[name]):
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def test_functions_read_variables_around_them(both):
    x = np.linspace(0.5, 2.0, 6).reshape(2, 3)
    w = (x + 1) * 0.1
    z, dx = both[0]["reads_outside"]
    np.testing.assert_allclose(z, x + w, rtol=1e-6)
    np.testing.assert_allclose(dx, (1 - np.tanh(x + w) ** 2) / 6 * w, rtol=1e-5, atol=1e-6)


def test_what_it_refuses():
    layer = paddle.static.nn.static_pylayer
    with pytest.raises(AssertionError):
        layer(paddle.exp, [paddle.ones([2])])
    paddle.enable_static()
    try:
        with paddle.static.program_guard(paddle.static.Program()):
            x = paddle.static.data("x", [2])
            with pytest.raises(AssertionError, match="must be a list"):
                layer(paddle.exp, x)
            with pytest.raises(AssertionError, match="one gradient for each of the 1 inputs, got 2"):
                layer(paddle.exp, [x], lambda d: (d, d))
            x.stop_gradient = False
            with pytest.raises(ValueError, match="x wants a gradient"):
                layer(paddle.exp, [x])
    finally:
        paddle.disable_static()
