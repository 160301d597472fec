"""The same functions differentiated: converted code gives the gradients that plain Python gives, in branches, loops and
lists that grow too."""
import numpy as np
import pytest

import all_cases
import proa as paddle
from harness import arguments, outcome
from test_symbolic import open_spec

SAME = [case for case in all_cases.CASES if case.symbolic and not case.error]


def floating(value):
    return hasattr(value, "numpy") and str(value.dtype).rpartition(".")[2] in ("float32", "float64")


def differentiable(expected, got):
    """The tensors of got at whose places expected has tensors with a gradient, and those themselves."""
    if floating(expected):
        return [] if expected.stop_gradient else [(expected, got)]
    if isinstance(expected, dict):
        expected, got = list(expected.values()), list(got.values())
    if isinstance(expected, (list, tuple)):
        return [pair for one, other in zip(expected, got) for pair in differentiable(one, other)]
    return []


def leaves(value):
    if floating(value):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [leaf for part in parts for leaf in leaves(part)]


def backward(results):
    total = sum((value * paddle.tanh(value)).sum().astype("float32") for value in results)
    if results and not total.stop_gradient:
        total.backward()


@pytest.mark.parametrize("case", SAME, ids=[case.name for case in SAME])
def test_gradients(case):
    spec = [open_spec(value) for value in case.calls[0]] if case.open_dims else None
    for call in case.calls:
        plain, mine = arguments(paddle, call), arguments(paddle, call)
        for leaf in leaves(plain) + leaves(mine):
            leaf.stop_gradient = False
        expected = outcome(case.function, plain)
        if expected[0] == "error":  # writes a leaf in place, for one
            continue
        got = outcome(paddle.jit.to_static(case.function, input_spec=spec), mine)
        assert got[0] == "value", f"{case.name}{call}: {got}"
        pairs = differentiable(expected[1], got[1])
        backward([one for one, _ in pairs])
        backward([other for _, other in pairs])
        for one, other in zip(leaves(plain), leaves(mine)):
            a, b = (np.zeros(leaf.shape) if leaf.grad is None else leaf.grad.numpy() for leaf in (one, other))
            np.testing.assert_allclose(b, a, rtol=0, atol=1e-5 * max(1, np.abs(a).max(initial=0)))
