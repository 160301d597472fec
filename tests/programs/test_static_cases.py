"""The parity cases as static programs: the same bits as eagerly, values and gradients (replay_cases.py)."""
import collections
import pathlib

import pytest

import ours

HERE = pathlib.Path(__file__).resolve().parent
CASES = HERE.parent / "parity/cases"
MODULES = ["nn_functional_activation", "nn_functional_common", "nn_functional_conv", "nn_functional_loss",
           "nn_layers_norm", "nn_rnn", "nn_transformer", "tensor_creation", "tensor_indexing", "tensor_linalg",
           "tensor_manipulation", "tensor_math", "tensor_operators"]
# cases that look at values while they run, or whose text shows them; a program cannot. Paddle's programs take no complex kron, nor
# numbers as a condition of where.
REFUSED = {
    "nn_functional_activation": {"elu_in_place", "gumbel_softmax_shape"},
    "nn_functional_common": {"dropout_kept_values", "pad", "sequence_mask"},
    "nn_functional_loss": {"bce_of_no_probabilities", *(f"{a}_{b}" for a in ("embedding", "likelihood") for b in ("mean", "sum", "none"))},
    "tensor_creation": {"members", "state", "printing", "shapes_of_arrays"},
    "tensor_indexing": {"get_masks", "set_masks"},
    "tensor_linalg": {"contractions", "products_of_real_and_complex"},
    "tensor_manipulation": {"gathers", "fills", "where_of_numbers"},
    "tensor_math": {"inplace_binary", "integers"},
    "tensor_operators": {"numbers", "with_arrays"},
}


@pytest.mark.parametrize("name", MODULES)
def test_module(name, tmp_path):
    out = tmp_path / "out.txt"
    done = ours.run(HERE / "replay_cases.py", out, CASES / f"{name}.py")
    assert done.returncode == 0, done.stderr[-3000:]
    lines = [line.split(" ", 2) for line in out.read_text().splitlines()]
    wrong = [" ".join(line) for line in lines
             if line[1] != "same" and line[0].rpartition(":")[2] not in REFUSED.get(name, ())]
    assert not wrong, "\n".join(wrong)
    assert collections.Counter(line[1] for line in lines)["same"] >= 2
