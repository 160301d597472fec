"""Steps over caches, exported: real Paddle, which has no kernels of these functions on CPUs, runs the ops that they are made of."""
import numpy as np
import oracle
import proa as paddle
from conftest import NEEDS_PADDLE
from proa.incubate import nn
from proa.incubate.nn import functional as F

pytestmark = NEEDS_PADDLE
B, HEADS, D, SLOTS = 2, 4, 8, 12
WIDTH = HEADS * D

RUN = """
import sys, numpy as np, paddle
stored = np.load(sys.argv[1] + ".npz")
given = [paddle.to_tensor(stored["x%d" % i]) for i in range(sum(k[0] == "x" for k in stored))]
for i, got in enumerate(paddle.jit.load(sys.argv[1])(*given)):
    np.testing.assert_allclose(got.numpy(), stored["y%d" % i], rtol=1e-4, atol=1e-5)
print("same")
"""


def agrees(layer, given, folder):
    """Exports the layer for inputs of these shapes and has real Paddle compare its results, caches included."""
    layer.eval()
    specs = [paddle.static.InputSpec(list(x.shape), str(x.dtype), f"x{i}") for i, x in enumerate(given)]
    paddle.jit.save(layer, str(folder / "step"), input_spec=specs)
    with paddle.no_grad():
        results = layer(*[paddle.to_tensor(x) for x in given])
    np.savez(folder / "step.npz", **{f"x{i}": x for i, x in enumerate(given)}, **{f"y{i}": y.numpy() for i, y in enumerate(results)})
    assert "same" in oracle.ask("-c", RUN, str(folder / "step"))


def floats(*shape):
    return np.random.default_rng(len(shape)).uniform(-1, 1, shape).astype("float32")


def ints(values):
    return np.array(values, "int32")


class Layers(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.body = nn.FusedMultiTransformer(WIDTH, HEADS, 2 * WIDTH, num_layers=2)

    def forward(self, x, at, lengths, first, second):
        out, caches = self.body(x, caches=[first, second], time_step=at, seq_lens=lengths)
        return out, *caches


class OneToken(paddle.nn.Layer):
    def forward(self, x, cache, lengths, table, origin):
        return F.masked_multihead_attention(x, cache, sequence_lengths=lengths, rotary_tensor=table, rotary_emb_dims=1,
                                            beam_cache_offset=origin)[:2]


class Blocks(paddle.nn.Layer):
    def forward(self, qkv, keys, values, begun, cached, now, starts, tables, rope):
        none = paddle.zeros([B], "int32")
        out = F.block_multihead_attention(qkv, keys, values, begun, cached, now, none, none, starts, starts, tables, max_seq_len=3,
                                          block_size=4, rope_emb=rope)
        return out[0], *out[2:]


def test_multi_transformer(tmp_path):
    cache = floats(2, B, HEADS, SLOTS, D)
    agrees(Layers(), [floats(B, 1, WIDTH), ints([5]), ints([5, 3]), cache, -cache], tmp_path)


def test_masked_attention(tmp_path):
    agrees(OneToken(), [floats(B, 3 * WIDTH), floats(2, B, HEADS, SLOTS, D), ints([[4], [0]]), floats(2, B, 1, 1, D),
                        np.random.default_rng(0).integers(0, B, (1, B, SLOTS)).astype("int32")], tmp_path)


def test_blocks(tmp_path):
    keys = floats(6, HEADS, 4, D)
    agrees(Blocks(), [floats(4, 3 * WIDTH), keys, -keys, ints([3, 0]), ints([0, 5]), ints([3, 1]), ints([0, 3, 4]),
                      ints([[0, 1, -1], [5, 4, 3]]), floats(2, 1, 12, 1, D // 2)], tmp_path)
