"""Models of single operators, saved by real Paddle, in the predictor: recurrent ones of Paddle 1.x on sequences and others
that are several ops here. What Paddle's executor answers, and the same sequences."""
import pathlib

import numpy as np
import pytest

import conftest
import oracle
from proa import inference

HERE = pathlib.Path(__file__).resolve().parent
SEQUENCES = ["lstm", "lstm_backwards", "lstm_states", "gru", "gru_backwards", "fusion_lstm", "fusion_gru", "fused_embedding_fc_lstm",
             "fused_embedding_seq_pool"]
PLAIN = ["im2sequence", "fused_elemwise_add_activation", "stft", "memcpy", "identity_loss", "broadcast_tensors", "logspace"]

pytestmark = conftest.NEEDS_PADDLE


@pytest.fixture(scope="session")
def theirs(tmp_path_factory):
    def save(folder):
        assert oracle.ask(HERE / "operator_models.py", folder).split() == SEQUENCES + PLAIN
    return conftest.once(tmp_path_factory, "operator-models", save)


def predictor(folder):
    return inference.create_predictor(inference.Config(str(folder / "m.pdmodel"), str(folder / "m.pdiparams")))


def ran(one, xs, offsets):
    for i, x in enumerate(xs):
        handle = one.get_input_handle(f"x{i}")
        handle.copy_from_cpu(x)
        if len(offsets):
            handle.set_lod([offsets])
    one.run()
    return [one.get_output_handle(name) for name in one.get_output_names()]


@pytest.mark.parametrize("name", SEQUENCES + PLAIN)
def test_predictor(theirs, name):
    kept = np.load(theirs / name / "m.npz")
    xs = [kept[f"x{i}"] for i in range(2) if f"x{i}" in kept]
    outs = ran(predictor(theirs / name), xs, kept["offsets"].tolist())
    for i, out in enumerate(outs):
        np.testing.assert_allclose(out.copy_to_cpu(), kept[f"out{i}"], rtol=1e-5, atol=1e-6)
    assert [level for out in outs for level in out.lod()] == kept["lod"].tolist()
    assert f"out{len(outs)}" not in kept


@pytest.mark.parametrize("name", [name for name in SEQUENCES if name not in ("lstm_states", "gru_backwards", "fused_embedding_seq_pool")])
def test_other_sequences(theirs, name):
    kept, one = np.load(theirs / name / "m.npz"), predictor(theirs / name)
    for times in (1, 3):  # the second sequence alone, and more often than there were sequences
        x = np.concatenate([kept["x0"][2:6]] * times)
        for i, out in enumerate(ran(one, [x], [4 * n for n in range(times + 1)])):
            np.testing.assert_allclose(out.copy_to_cpu(), np.concatenate([kept[f"out{i}"][2:6]] * times), rtol=1e-5, atol=1e-6)


def test_rows_without_sequences_are_refused(theirs):
    one = predictor(theirs / "lstm")
    one.get_input_handle("x0").copy_from_cpu(np.zeros((3, 12), "float32"))
    with pytest.raises(ValueError, match="rows of input .x0. form sequences: set_lod"):
        one.run()
