"""Every op says which kernel ran: a line of FLAGS_verbose=1 for each new shape, and the kernel column of the profiler."""
import re
import threading

import numpy as np
import pytest

import matrix
import proa as paddle
import runner
from conftest import BUILD, ROOT
from proa import _core

TABLE = [op for op in matrix.load_table(BUILD) if not isinstance(op["skip"], str)]


def observe(call):
    """Rows of the profiler for one call on a thread of its own, which has chosen no kernel yet."""
    rows, failures = [], []

    def work():
        _core.set_flag("verbose", "1")
        _core.profile_start()
        try:
            call()
        except Exception as e:
            failures.append(e)
        _core.profile_stop()
        _core.set_flag("verbose", "0")
        rows.extend(_core.profile_rows())
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert not failures, failures
    return rows


def stories(text, name):
    """The answers of the kernels that were asked, for each choice of the op's."""
    lines = [line for line in text.splitlines() if line.startswith(f"proa: {name}(")]
    return [[part.split(": ", 1) for part in line[line.index("): ") + 3:].split("; ")] for line in lines]


@pytest.mark.parametrize("op", TABLE, ids=lambda op: op["name"])
def test_which_kernel_ran_and_why_not_the_others(op, capfd):
    case = next(map(runner.resolve, matrix.cases(op)))
    rows = observe(lambda: runner.call(case))
    ran = {row[9] for row in rows if row[1] and row[0] == op["name"]}
    told = stories(capfd.readouterr().err, op["name"])
    assert ran, "no row of the profiler"
    if ran == {None}:
        assert "VIEW" in str(op), "only views run no kernel"
        return
    assert ran <= set(op["kernels"]), ran
    for story in told:
        assert [kernel for kernel, _ in story] == op["kernels"], "kernels are asked in the table's order"
        which = [why for _, why in story].index("runs")
        assert story[which][0] in ran and all(why == "not needed" for _, why in story[which + 1:]), story
        for kernel, why in story[:which]:
            assert why not in ("declines", "not needed"), f"{kernel} does not say why it declines"
    assert {kernel for story in told for kernel, why in story if why == "runs"} == ran, told


def algorithms():
    """Rows of the list of convolution algorithms: kernel -> direction, algorithm, instruction set, layout; in its order."""
    text = re.sub(r"\\\n\s*", "", (ROOT / "ops/conv/algorithms.h").read_text())
    rows = re.findall(r'\bX\((\w+), ([A-Z_]+),\s*"([^"]*)",\s*"([^"]*)",\s*"([^"]*)",', text)
    return {row[0]: row[1:] for row in rows}


def test_the_list_of_convolution_algorithms_is_the_op_tables():
    listed, asked = list(algorithms()), [op for op in TABLE if op["family"] == "conv"]
    assert asked and set(listed) == {kernel for op in asked for kernel in op["kernels"]}
    for op in asked:
        assert op["kernels"] == sorted(op["kernels"], key=listed.index), op["name"]
        for kernel in op["kernels"]:
            direction = algorithms()[kernel][0]
            expected = ("BACKWARD_WEIGHTS" if "grad_filter" in op["name"] else
                        "BACKWARD_DATA" if "grad_input" in op["name"] or "transpose" in op["name"] else "FORWARD")
            assert direction == expected, kernel


def test_the_list_of_convolution_algorithms_is_the_documented_one():
    page = [line.split(" | ") for line in (ROOT / "docs/architecture.md").read_text().splitlines() if line.startswith("| `")]
    documented = {name: cells for cells in page for name in re.findall(r"`(\w+)`", cells[0])}
    for kernel, (_, algorithm, isa, layout) in algorithms().items():
        assert kernel in documented, f"docs/architecture.md does not list {kernel}"
        assert documented[kernel][1].split(";")[0] == algorithm, kernel
        assert documented[kernel][2] == f"{isa}, {layout}", kernel


@pytest.mark.parametrize("length, taps, stride, padding", [(1000, 7, 1, [3]), (33, 3, 2, [1]), (17, 11, 1, [0]), (64, 4, 3, [2, 1])])
def test_depthwise_signals(length, taps, stride, padding):
    """Their kernel is that of images of one row."""
    random = np.random.RandomState(0)
    x, weight, bias = (paddle.to_tensor(random.randn(*shape)) for shape in ([3, 5, length], [5, 1, taps], [5]))
    want = paddle.nn.functional.conv1d(x, weight, bias, stride, padding, groups=5)
    narrow = [t.astype("float32") for t in (x, weight, bias)]
    got = []
    rows = observe(lambda: got.append(paddle.nn.functional.conv1d(*narrow, stride, padding, groups=5)))
    assert "conv_depthwise_nchw_cpu" in {row[9] for row in rows}
    np.testing.assert_allclose(got[0].numpy(), want.numpy(), rtol=1e-4, atol=1e-5)
