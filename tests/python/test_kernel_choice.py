"""Every op says which kernel ran: a line of FLAGS_verbose=1 for each new shape, and the kernel column of the profiler."""
import re
import threading

import pytest

import matrix
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
    """What each kernel that was asked said, for each choice of the op's."""
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
    assert {story[-1][0] for story in told} == ran and all(story[-1][1] == "runs" for story in told), told
    for story in told:
        assert [kernel for kernel, _ in story] == op["kernels"][:len(story)], "kernels are asked in the table's order"
        for kernel, why in story[:-1]:
            assert why not in ("declines", "runs"), f"{kernel} does not say why it declines"


def test_the_list_of_convolution_algorithms_is_complete():
    page = (ROOT / "docs/architecture.md").read_text()
    listed = {name for line in page.splitlines() if line.startswith("| `") for name in re.findall(r"`(\w+)`", line.split("|")[1])}
    kernels = {kernel for op in TABLE if op["family"] == "conv" for kernel in op["kernels"]}
    assert kernels and kernels <= listed, sorted(kernels - listed)
