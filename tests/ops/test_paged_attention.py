"""block_multihead_attention: sequences that begin, go on and end over blocks, against float64 formulas a sequence and head."""
import numpy as np
import proa as paddle
import pytest
from proa.incubate.nn import functional as F
from serving import attention, causal, rotate

SIZE, D, BLOCKS = 4, 8, 5
CACHES = ("k", "v")


class Server:
    """A batch of sequences on Proa's blocks, and all that it has seen in float64."""

    def __init__(self, batch, heads=4, kv_heads=4, dtype="float32", quantized=None, before=0, rope=None, seed=0, program=False):
        self.draw = np.random.default_rng(seed)
        self.batch, self.heads, self.kv_heads, self.dtype, self.rope = batch, heads, kv_heads, dtype, rope
        kind = "uint8" if quantized else dtype
        self.caches = [paddle.zeros([batch * BLOCKS + 1, kv_heads, SIZE, D], kind) for _ in CACHES]
        order = self.draw.permutation(batch * BLOCKS).reshape(batch, BLOCKS) + 1
        self.tables = paddle.to_tensor(np.where(np.arange(BLOCKS) < BLOCKS - 1, order, -1).astype("int32"))
        self.seen = [[np.zeros((0, kv_heads, D)) for _ in CACHES] for _ in range(batch)]
        self.before = [self.draw.uniform(-1, 1, (batch, kv_heads, before, D)) for _ in CACHES] if before else None
        self.quantized, self.scales = quantized, {}
        if quantized:
            shape = [batch, kv_heads] if quantized == "dynamic" else [kv_heads]
            names = ("cache_k_quant_scales", "cache_v_quant_scales", "cache_k_dequant_scales", "cache_v_dequant_scales")
            self.scales = {n: paddle.full(shape, 1 / 127 if "dequant" in n else 127.0) for n in names}
        self.call = F.block_multihead_attention
        if program:
            self.call = paddle.jit.to_static(lambda *args, **more: F.block_multihead_attention(*args, **more), full_graph=True)

    def turned(self, x, first):
        """x [n, heads, D] at the positions from `first`."""
        if self.rope is None:
            return x
        angle = (first + np.arange(len(x)))[:, None] * 10000.0 ** (-np.arange(0, D, 2) / D)
        return rotate(x, angle[:, None], self.rope == "pairs")

    def rope_table(self):
        if self.rope is None:
            return {}
        angle = np.arange(40)[:, None] * 10000.0 ** (-np.arange(0, D, 2) / D)
        angle = np.concatenate([angle, angle], 1) if self.rope == "halves" else angle
        table = np.stack([np.cos(angle), np.sin(angle)]).astype("float32").reshape(2, 1, 40, 1, -1)
        return {"rope_emb": paddle.to_tensor(table), "use_neox_style": self.rope == "halves"}

    def step(self, now, masks=None, longest=8):
        """Feeds now[b] random tokens of each sequence; (Proa's results, the expected ones), [tokens, heads · D]."""
        first = [len(s[0]) for s in self.seen]
        begins = [n if not f else 0 for n, f in zip(now, first)]
        whole = self.draw.uniform(-1, 1, (sum(now), self.heads + 2 * self.kv_heads, D))
        ends = np.cumsum([0] + now)
        want = [self.expect(b, whole[ends[b]:ends[b + 1]], masks) for b in range(self.batch)]
        integers = (paddle.to_tensor(np.array(n, "int32").reshape(-1, 1)) for n in (begins, first, now))
        padding = np.repeat(np.arange(self.batch) * longest - ends[:-1], now).astype("int32")
        offsets = (paddle.to_tensor(n.astype("int32")) for n in (padding, np.arange(self.batch) * longest - ends[:-1], ends, ends))
        more = dict(self.scales)
        if self.before:
            for name, t in zip(("pre_key_cache", "pre_value_cache"), self.before):
                more[name] = paddle.to_tensor(t).astype(self.dtype)
        for name, t in (masks or {}).items():
            more[name] = paddle.to_tensor(t).astype(self.dtype)
        got = self.call(paddle.to_tensor(whole.reshape(sum(now), -1)).astype(self.dtype), *self.caches, *integers, *offsets, self.tables,
                        max_seq_len=longest, block_size=SIZE, use_dynamic_cachekv_quant=self.quantized == "dynamic",
                        **self.rope_table(), **more)
        return got[0].astype("float64").numpy(), np.concatenate(want)

    def expect(self, b, new, masks):
        """Attention of sequence b's new tokens [n, heads + 2 · kv_heads, D]."""
        first, out = len(self.seen[b][0]), np.zeros((len(new), self.heads, D))
        query, key = (self.turned(t, first) for t in (new[:, :self.heads], new[:, self.heads:-self.kv_heads]))
        for kept, t in zip(range(2), (key, new[:, -self.kv_heads:])):
            self.seen[b][kept] = np.concatenate([self.seen[b][kept], t])
        for h in range(self.heads if len(new) else 0):
            mine = h // (self.heads // self.kv_heads)
            k, v = (self.seen[b][i][:, mine] for i in range(2))
            if self.before:
                k, v = (np.concatenate([self.before[i][b, mine], t]) for i, t in enumerate((k, v)))
            bias = causal(len(new), len(k))
            if masks and "mask" in masks and not first:
                bias = masks["mask"][b, 0, :len(new), :len(k)]
            if masks and "tgt_mask" in masks and first:
                bias = bias + masks["tgt_mask"][b, h % masks["tgt_mask"].shape[1], :, :len(k)]
            out[:, h] = attention(query[:, h], k, v, bias)
        return out.reshape(len(new), self.heads * D)

    def check(self, *steps, tol=3e-6, **more):
        for now in steps:
            got, want = self.step(now, **more)
            np.testing.assert_allclose(got, want, rtol=tol, atol=tol)


PLANS = {"even": ([5, 5, 5], [1, 1, 1], [1, 1, 1]), "ragged": ([3, 7, 1], [1, 1, 1], [1, 0, 1], [0, 1, 0]),
         "mixed": ([3, 0, 5], [1, 4, 1], [1, 1, 0]), "chunks": ([3, 2, 6], [2, 3, 1], [1, 1, 1])}


@pytest.mark.parametrize("plan", PLANS)
@pytest.mark.parametrize("kv_heads", [4, 2])
@pytest.mark.parametrize("rope", [None, "pairs", "halves"])
def test_prompts_and_steps(plan, kv_heads, rope):
    Server(3, 4, kv_heads, rope=rope).check(*PLANS[plan], tol=1e-5 if rope else 3e-6)


@pytest.mark.parametrize("plan", PLANS)
def test_programs(plan):
    Server(3, 4, 2, rope="pairs", program=True).check(*PLANS[plan], tol=1e-5)


def test_values_before_the_prompt():
    Server(3, before=3).check(*PLANS["mixed"])
    with pytest.raises(NotImplementedError, match="pre_key_cache needs lengths"):
        Server(3, before=3, program=True).check([1, 1, 1])


@pytest.mark.parametrize("before", [0, 2])
def test_masks(before):
    server, draw = Server(2, before=before), np.random.default_rng(1)
    begin = draw.uniform(-2, 2, (2, 1, 8, 8 + before))
    for heads in (1, 4):
        server.check([4, 6] if heads == 1 else [1, 1], [1, 1], masks={"mask": begin, "tgt_mask": draw.uniform(-2, 2, (2, heads, 1, 12))})


@pytest.mark.parametrize("dtype,tol", [("float16", 6e-3), ("bfloat16", 5e-2), ("float64", 1e-12)])
def test_other_dtypes(dtype, tol):
    Server(3, 4, 2, dtype=dtype).check(*PLANS["mixed"], tol=tol)


@pytest.mark.parametrize("program", [False, True])
@pytest.mark.parametrize("quantized", ["static", "dynamic"])
def test_caches_of_eight_bits(quantized, program):
    server = Server(2, quantized=quantized, program=program)
    server.check([4, 6], [1, 1], [0, 1], tol=1.2e-2)
    for name, i in (("k", 0), ("v", 1)):
        scale = server.scales[f"cache_{name}_dequant_scales"].numpy().reshape(-1, server.kv_heads)
        stored = server.caches[i].numpy()[server.tables.numpy()[1, :2]].transpose(0, 2, 1, 3).reshape(-1, server.kv_heads, D)
        seen = server.seen[1][i]
        np.testing.assert_allclose((stored[:len(seen)] - 128.0) * scale[-1][:, None], seen, atol=0.02 if quantized == "static" else 0.1)
        if quantized == "dynamic":
            np.testing.assert_allclose(scale[1], np.abs(seen[:6]).max((0, 2)) / 127, rtol=1e-5)


def test_integers_come_and_go():
    server = Server(1)
    ints = np.random.default_rng(3).integers(-90, 90, (3, 12 * D)).astype("int32")
    scale, bias, shift, smooth = (np.random.default_rng(4 + i).uniform(0, 0.02, n) for i, n in enumerate([12 * D, 12 * D, 32, 32]))
    lengths = [paddle.to_tensor(n, "int32") for n in ([3], [0], [3], [0, 0, 0], [0], [0, 3], [0, 3])]
    tensors = {"qkv_out_scale": scale, "qkv_bias": bias, "out_shift": shift, "out_smooth": smooth}
    tensors = {k: paddle.to_tensor(v.astype("float32")) for k, v in tensors.items()}
    got = F.block_multihead_attention(paddle.to_tensor(ints), *server.caches, *lengths, server.tables, block_size=SIZE, max_seq_len=3,
                                      out_scale=40.0, compute_dtype="fp32", **tensors)[0]
    exact = 127 * 40.0 * (server.expect(0, (ints * scale + bias).reshape(3, 12, D), None) + shift) * smooth
    assert got.dtype == paddle.int8
    assert np.abs(got.numpy() - np.clip(exact, -127, 127)).max() <= 0.51


def test_errors_name_what_came():
    server = Server(2)
    with pytest.raises(ValueError, match="block_multihead_attention: block_tables have 20 slots a sequence, expected 21"):
        server.check([21, 1], longest=32)
    arguments = [paddle.rand([2, 12 * D]), *server.caches, *(paddle.to_tensor(n, "int32") for n in ([1, 1], [0, 0], [1, 1], [0, 0],
                 [0, 0], [0, 1, 2], [0, 1, 2])), server.tables]
    for at, bad, text in ((0, paddle.rand([2, 12 * D + 1]), "qkv has 97 columns"), (0, paddle.rand([3, 12 * D]), "adds up to 2 tokens"),
                          (1, paddle.rand([4, 4, 5, D]), "block_size 4"), (3, paddle.ones([3], "int32"), "has 2 sequences"),
                          (10, paddle.ones([2], "int32"), "block_tables")):
        with pytest.raises(ValueError, match="block_multihead_attention: .*" + text):
            F.block_multihead_attention(*arguments[:at], bad, *arguments[at + 1:], block_size=SIZE)
    with pytest.raises(ValueError, match="caches of uint8: expected all"):
        F.block_multihead_attention(arguments[0], *Server(2, quantized="static").caches, *arguments[3:], block_size=SIZE)
    with pytest.raises(ValueError, match="rope_emb is"):
        F.block_multihead_attention(*arguments, block_size=SIZE, rope_emb=paddle.ones([2, 1, 3, 1, 3]))
