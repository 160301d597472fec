"""Models of Paddle 1.x's recurrent operators on sequences, saved by real Paddle, in the predictor: what Paddle's executor
answers, and the same sequences."""
import pathlib

import numpy as np
import pytest

import conftest
import oracle
from proa import inference

HERE = pathlib.Path(__file__).resolve().parent
NAMES = ["lstm", "lstm_backwards", "lstm_states", "gru", "gru_backwards", "fusion_lstm", "fusion_gru", "fused_embedding_fc_lstm"]

pytestmark = conftest.NEEDS_PADDLE


@pytest.fixture(scope="session")
def theirs(tmp_path_factory):
    def save(folder):
        assert oracle.ask(HERE / "sequence_models.py", folder).split() == NAMES
    return conftest.once(tmp_path_factory, "sequence-models", save)


def predictor(folder):
    return inference.create_predictor(inference.Config(str(folder / "m.pdmodel"), str(folder / "m.pdiparams")))


def ran(one, x, offsets):
    handle = one.get_input_handle("x")
    handle.copy_from_cpu(x)
    handle.set_lod([offsets])
    one.run()
    return [one.get_output_handle(name) for name in one.get_output_names()]


@pytest.mark.parametrize("name", NAMES)
def test_predictor(theirs, name):
    kept = np.load(theirs / name / "m.npz")
    offsets, one = kept["offsets"].tolist(), predictor(theirs / name)
    for i, out in enumerate(ran(one, kept["x"], offsets)):
        np.testing.assert_allclose(out.copy_to_cpu(), kept[f"out{i}"], rtol=1e-5, atol=1e-6)
        assert out.lod() == [offsets]
    whole = ran(one, kept["x"][2:6], [0, 4]) if "states" not in name and name != "gru_backwards" else []
    for i, out in enumerate(whole):  # the second sequence alone
        np.testing.assert_allclose(out.copy_to_cpu(), kept[f"out{i}"][2:6], rtol=1e-5, atol=1e-6)


def test_rows_without_sequences_are_refused(theirs):
    one = predictor(theirs / "lstm")
    one.get_input_handle("x").copy_from_cpu(np.zeros((3, 12), "float32"))
    with pytest.raises(Exception, match="x"):
        one.run()
