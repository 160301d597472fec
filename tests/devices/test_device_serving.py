"""Attention with caches on gpu:0, emulated or not, without the fallback: results and caches are the CPU's."""
import numpy as np
import pytest

import proa as paddle
from proa import _core
from proa.incubate import nn
from proa.incubate.nn import functional as F
from test_devices import on, plugin_of

PLUGIN = plugin_of("gpu:0")
pytestmark = pytest.mark.skipif(PLUGIN is None, reason="gpu:0: its plug-in is not built here")
B, HEADS, D = 2, 4, 8
WIDTH = HEADS * D


@pytest.fixture(autouse=True)
def plugin():
    _core.load_devices(str(PLUGIN))
    with paddle.no_grad():
        yield


def numbers(seed, *shape):
    return paddle.to_tensor(np.random.RandomState(seed).uniform(-1, 1, shape).astype("float32"))


def ints(values):
    return paddle.to_tensor(values, "int32")


def same(run):
    """run() answers tensors; they are compared between the devices."""
    found = {}
    for name in ("cpu", "gpu:0"):
        with on(name):
            found[name] = [t.numpy() for t in run()]
    for got, want in zip(found["gpu:0"], found["cpu"]):
        np.testing.assert_allclose(got.astype("float32"), want.astype("float32"), rtol=1e-4, atol=1e-4 if want.dtype.kind == "f" else 1)


def test_multi_transformer():
    def run():
        model = nn.FusedMultiTransformer(WIDTH, HEADS, 2 * WIDTH, num_layers=2)
        for i, kind in enumerate(("qkv_weights", "linear_weights", "ffn1_weights", "ffn2_weights")):
            for p in getattr(model, kind):
                p.set_value(numbers(i, *p.shape) * 0.3)
        model.eval()
        x, caches = numbers(9, B, 6, WIDTH), [paddle.zeros([2, B, HEADS, 8, D]) for _ in range(2)]
        mask = paddle.triu(paddle.full([1, 1, 4, 4], -1e4), diagonal=1)
        parts = [model(x[:, :4], attn_mask=mask, caches=caches, seq_lens=ints([4, 3]))[0]]
        for t in range(4, 6):
            parts.append(model(x[:, t:t + 1], caches=caches, time_step=ints([t]), seq_lens=ints([t, t - 1]))[0])
        return parts + caches
    same(run)


@pytest.mark.parametrize("more", [{}, {"rotary_emb_dims": 1}, {"rotary_emb_dims": 1, "use_neox_rotary_style": True}, {"out_scale": 0.5}])
def test_one_token(more):
    def run():
        cache = numbers(1, 2, B, HEADS, 8, D)
        table = {"rotary_tensor": numbers(2, 2, B, 1, 1, D)} if more.get("rotary_emb_dims") else {}
        beams = {"beam_cache_offset": ints([[[0] * 8, [1, 0] * 4]])} if more else {}
        return F.masked_multihead_attention(numbers(3, B, 3 * WIDTH), cache, sequence_lengths=ints([3, 5]), **table, **beams, **more)[:2]
    same(run)


@pytest.mark.parametrize("quantized", [False, True])
def test_blocks(quantized):
    def run():
        caches = [paddle.zeros([4, HEADS, 4, D], "uint8" if quantized else "float32") for _ in range(2)]
        scales = {f"cache_{part}_{way}_scales": paddle.ones([B, HEADS]) for part in "kv" for way in ("quant", "dequant")}
        more = {"use_dynamic_cachekv_quant": True, **scales} if quantized else {}
        results, tables = [], ints([[0, 1], [3, 2]])
        for begun, cached, now in (([3, 2], [0, 0], [3, 2]), ([0, 0], [3, 2], [1, 1]), ([0, 0], [4, 3], [1, 0])):
            starts = ints(np.cumsum([0, *now]))
            results.append(F.block_multihead_attention(
                numbers(5, sum(now), 3 * WIDTH), *caches, ints(begun), ints(cached), ints(now), ints([0] * sum(now)), ints([0, 0]), starts,
                starts, tables, max_seq_len=3, block_size=4, rope_emb=numbers(6, 2, 1, 8, 1, D // 2), **more)[0])
        return results + caches
    same(run)
