"""Quantized tables of embeddings: INT8 execution keeps their integers and answers with the bits of the simulation."""
import subprocess

import numpy as np
import pytest

import proa as paddle
from conftest import BUILD
from proa import inference, nn
from proa.static import InputSpec

TABLES = {"small": (50, 24), "pieces": (30000, 40), "rows_of_one": (70, 1)}  # rows, length; pieces: more than 4 MiB


class Tagger(nn.Layer):
    def __init__(self, rows, length):
        super().__init__()
        self.words, self.places = nn.Embedding(rows, length, padding_idx=3), nn.Embedding(12, length)
        self.out = nn.Linear(length, 5)

    def forward(self, x):
        both = self.words(x) + self.places(x % 12)
        return both, self.out(both)


@pytest.fixture(params=[1, 1 << 16])
def deferred_bytes(request):
    """Size from which weights are read when they are first used."""
    paddle.set_flags({"FLAGS_deferred_bytes": request.param})
    yield
    paddle.set_flags({"FLAGS_deferred_bytes": 1 << 16})


def quantized(folder, table, *options):
    """A net quantized by `proa quantize`, and an input."""
    paddle.seed(3)
    net = Tagger(*TABLES[table])
    net.eval()
    paddle.jit.save(net, str(folder / "net"), input_spec=[InputSpec([2, 12], "int64", "x")])
    x = np.random.RandomState(1).randint(0, TABLES[table][0], (2, 12))
    x[0, :2] = 3, TABLES[table][0] - 1
    np.savez(folder / "x.npz", x=x)
    subprocess.run([f"{BUILD}/bin/proa", "quantize", folder / "net", "--data", folder / "x.npz", "--output", folder / "q", *options],
                   check=True, capture_output=True)
    return str(folder / "q"), x


def predicted(prefix, x, types=None):
    """Outputs, and the ops that ran; types: the ops that may become INT8, None: a simulation without passes."""
    config = inference.Config(prefix + ".pdmodel", prefix + ".pdiparams")
    config.switch_ir_optim(types is not None)
    if types is not None:
        config.enable_mkldnn_int8(types)
    predictor = inference.create_predictor(config)
    predictor.get_input_handle("x").copy_from_cpu(x)
    predictor.run()
    return [predictor.get_output_handle(n).copy_to_cpu() for n in predictor.get_output_names()], predictor._core.ops()


@pytest.mark.parametrize("weights", ["channel", "tensor"])
@pytest.mark.parametrize("table", TABLES)
def test_bits_of_the_simulation(tmp_path, table, weights, deferred_bytes):
    prefix, x = quantized(tmp_path, table, "--embeddings", "--weights", weights)
    want, simulated = predicted(prefix, x)
    assert simulated.count("embedding") == 2 and any("quantize" in op for op in simulated)
    have, ops = predicted(prefix, x, {"lookup_table_v2"})
    assert ops.count("embedding_int8") == 2 and "embedding" not in ops and "linear_int8" not in ops, ops
    assert have[0].tobytes() == want[0].tobytes()
    _, ops = predicted(prefix, x, set())
    assert ops.count("embedding_int8") == 2 and ops.count("linear_int8") == 1, ops
    _, ops = predicted(prefix, x, {"fc"})
    assert "embedding_int8" not in ops and ops.count("linear_int8") == 1, ops


def test_tables_are_asked_for(tmp_path):
    prefix, x = quantized(tmp_path, "small")
    _, ops = predicted(prefix, x, set())
    assert "embedding_int8" not in ops and ops.count("embedding") == 2


def test_indices_are_checked(tmp_path):
    prefix, x = quantized(tmp_path, "small", "--embeddings")
    x[1, 4] = 50
    with pytest.raises(Exception, match="embedding_int8.*entry 16 is 50; expected 0 to 49"):
        predicted(prefix, x, set())
