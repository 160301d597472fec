"""Bad calls end as in real Paddle 2.6.2 by rules that hold for all arguments: the kernel that its CPU lacks, the mode of a function."""
import collections
import json
import pathlib

import pytest

import oracle
import ours
from conftest import NEEDS_PADDLE

pytestmark = NEEDS_PADDLE
PROGRAM = pathlib.Path(__file__).with_name("refusals.py")


@pytest.fixture(scope="module")
def outcomes():
    done = ours.run(PROGRAM, "proa", timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(oracle.ask(PROGRAM, "paddle", timeout=600)), json.loads(done.stdout)


def test_calls_that_both_refuse_end_alike(outcomes):
    theirs, own = outcomes
    assert theirs.keys() == own.keys()
    refused = {call for call in theirs if theirs[call] != "ok" and own[call] != "ok"}
    assert len(refused) > 7000
    differ = {call: (theirs[call], own[call]) for call in refused if theirs[call] != own[call]}
    assert not differ, list(differ.items())[:20]


def test_arguments_that_paddle_does_not_look_at(outcomes):
    surplus = [call for call in outcomes[0] if call.startswith("surplus ")]
    assert len(surplus) == 22
    assert {call: outcomes[1][call] for call in surplus} == {call: outcomes[0][call] for call in surplus} == dict.fromkeys(surplus, "ok")


def test_what_looks_wrong_and_is_taken(outcomes):
    taken = [call for call in outcomes[0] if call.startswith("taken: ")]
    assert len(taken) == 27
    assert {call: outcomes[1][call] for call in taken} == {call: outcomes[0][call] for call in taken} == dict.fromkeys(taken, "ok")


def test_every_kind_of_refusal_is_there(outcomes):
    kinds = collections.Counter(outcomes[0].values())
    for kind in ("RuntimeError|NotFound", "ValueError|InvalidArgument", "NotImplementedError|Unimplemented", "OSError|", "AssertionError|"):
        assert kinds[kind] > 5, kinds


def test_what_looks_right_and_is_refused(outcomes):
    refused = [call for call in outcomes[0] if call.startswith("refused: ")]
    assert len(refused) == 42
    assert {call: outcomes[1][call] for call in refused} == {call: outcomes[0][call] for call in refused}
    assert "ok" not in {outcomes[0][call] for call in refused}


def test_dtypes_without_a_kernel_in_paddle(outcomes):
    """Functions that move elements, choose among them or compute: refused in the dtypes for which Paddle's CPU has no kernel."""
    kernels = [call for call in outcomes[0] if call.startswith("kernel ")]
    assert len(kernels) == 200
    assert {call: outcomes[1][call] for call in kernels} == {call: outcomes[0][call] for call in kernels}
