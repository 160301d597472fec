"""FusedMultiTransformer: stacked plain layers give the same, whole or token by token with caches, and so do float64 formulas."""
import math

import numpy as np
import proa as paddle
import pytest
from proa import _core
from proa.incubate import nn
from serving import causal, rotate

B, WIDTH, HEADS, INNER, LAYERS, SLOTS = 2, 16, 4, 24, 3, 12
DEPTH = WIDTH // HEADS


@pytest.fixture(autouse=True)
def evaluating():
    paddle.seed(5)
    with paddle.no_grad():
        yield


def make(before=True, **more):
    """(a FusedMultiTransformer, the plain layers of the same weights)."""
    model = nn.FusedMultiTransformer(WIDTH, HEADS, INNER, normalize_before=before, num_layers=LAYERS, **more)
    model.eval()
    plain = [paddle.nn.TransformerEncoderLayer(WIDTH, HEADS, INNER, 0.0, "gelu", normalize_before=before) for _ in range(LAYERS)]
    for i, layer in enumerate(plain):
        for bias in (model.qkv_biases, model.linear_biases, model.ffn1_biases, model.ffn2_biases, model.ln_biases, model.ffn_ln_biases):
            bias[i].set_value(paddle.rand(bias[i].shape) - 0.5)
        qkv = model.qkv_weights[i].reshape([3, WIDTH, WIDTH]) if model._trans_qkvw else model.qkv_weights[i].reshape([WIDTH, 3, WIDTH])
        for j, proj in enumerate((layer.self_attn.q_proj, layer.self_attn.k_proj, layer.self_attn.v_proj)):
            proj.weight.set_value(qkv[j].t() if model._trans_qkvw else qkv[:, j])
            proj.bias.set_value(model.qkv_biases[i][j].reshape([-1]))
        for ours, own in ((layer.self_attn.out_proj, "linear"), (layer.linear1, "ffn1"), (layer.linear2, "ffn2")):
            ours.weight.set_value(getattr(model, own + "_weights")[i])
            ours.bias.set_value(getattr(model, own + "_biases")[i])
        for norm, own in ((layer.norm1, "ln"), (layer.norm2, "ffn_ln")):
            norm.weight.set_value(getattr(model, own + "_scales")[i])
            norm.bias.set_value(getattr(model, own + "_biases")[i])
        layer.eval()
    return model, plain


def mask_of(length, before=0):
    return paddle.to_tensor(np.broadcast_to(np.maximum(causal(length, length + before), -1e4), (B, 1, length, length + before))
                            .astype("float32"))


def whole(plain, x):
    """The plain layers on x at once, causally."""
    for layer in plain:
        x = layer(x, mask_of(x.shape[1]))
    return x


def caches(slots=SLOTS):
    return [paddle.zeros([2, B, HEADS, slots, DEPTH]) for _ in range(LAYERS)]


def number(t):
    return paddle.to_tensor([t], "int32")


def close(got, want, tol=5e-6):
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=tol, atol=tol)


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("trans", [True, False])
def test_prompt_and_tokens_are_the_whole(before, trans):
    model, plain = make(before, trans_qkvw=trans)
    x = paddle.rand([B, 9, WIDTH]) - 0.5
    want, kept = whole(plain, x), caches()
    close(model(x, attn_mask=mask_of(9)), want)
    out, same = model(x[:, :5], attn_mask=mask_of(5), caches=kept)
    assert same is kept
    steps = [out, *(model(x[:, t:t + 1], caches=kept, time_step=number(t))[0] for t in range(5, 9))]
    close(paddle.concat(steps, 1), want)


def test_caches_hold_what_layers_with_growing_caches_hold():
    model, plain = make()
    x, kept = paddle.rand([B, 6, WIDTH]), caches()
    grown = [layer.gen_cache(x) for layer in plain]
    for t in range(6):
        y = x[:, t:t + 1]
        got = model(y, caches=kept, time_step=number(t))[0] if t else model(y, caches=kept)[0]
        for i, layer in enumerate(plain):
            y, grown[i] = layer(y, None, grown[i])
        close(got, y)
    for cache, grew in zip(kept, grown):
        close(cache[0, :, :, :6], grew.k)
        close(cache[1, :, :, :6], grew.v)
        assert not cache[:, :, :, 6:].any()


def test_masks_hide_slots():
    model, plain = make()
    x, kept = paddle.rand([B, 4, WIDTH]), caches()
    hidden = mask_of(4).numpy().copy()
    hidden[:, :, 1:, 0] = -1e4
    y = x
    for layer in plain:
        y = layer(y, paddle.to_tensor(hidden))
    model(x[:, :3], attn_mask=paddle.to_tensor(hidden[:, :, :3, :3]), caches=kept)
    close(model(x[:, 3:], attn_mask=paddle.to_tensor(hidden[:, :, 3:]), caches=kept, time_step=number(3))[0], y[:, 3:])
    seen = paddle.to_tensor(hidden == 0)
    close(model(x, attn_mask=seen), y)


def test_sequences_of_several_lengths():
    model, plain = make()
    x, kept, lengths = paddle.rand([B, 9, WIDTH]), caches(), [5, 3]
    want = whole(plain, x)
    out = model(x[:, :5], attn_mask=mask_of(5), caches=kept, seq_lens=paddle.to_tensor(lengths, "int32"))[0]
    close(out[0], want[0, :5])
    close(out[1, :3], want[1, :3])
    assert not out[1, 3:].any() and not kept[0][:, 1, :, 3:].any()
    for step in range(4):
        at = [n + step for n in lengths]
        token = paddle.stack([x[b, t] for b, t in enumerate(at)]).unsqueeze(1)
        out = model(token, caches=kept, time_step=number(5 + step), seq_lens=paddle.to_tensor(at, "int32"))[0]
        close(out[:, 0], paddle.stack([want[b, t] for b, t in enumerate(at)]))
    before = [c.numpy() for c in kept]
    model(token, caches=kept, time_step=number(9), seq_lens=paddle.to_tensor([9, 0], "int32"))
    for cache, was in zip(kept, before):
        np.testing.assert_array_equal(cache.numpy()[:, 1], was[:, 1])


def test_lengths_without_a_mask_hide_what_is_behind():
    model, plain = make()
    x = paddle.rand([B, 5, WIDTH])
    out = model(x, seq_lens=paddle.to_tensor([5, 2]))
    y = x[1:, :2]
    for layer in plain:
        y = layer(y)
    close(out[1:, :2], y)


def test_values_before_the_prompt():
    model, _ = make()
    x = paddle.rand([B, 7, WIDTH])
    kept, prefix = caches(), caches()
    whole = model(x, attn_mask=mask_of(7), caches=kept)[0]
    model(x[:, :2], attn_mask=mask_of(2), caches=prefix)
    prefix, rest = [c[:, :, :, :2] for c in prefix], caches()
    out = model(x[:, 2:6], attn_mask=mask_of(4, 2), caches=rest, pre_caches=prefix)[0]
    close(out, whole[:, 2:6])
    close(model(x[:, 6:], caches=rest, time_step=number(6))[0], whole[:, 6:])
    for a, b in zip(kept, rest):
        close(a, b)


@pytest.mark.parametrize("sections", [1, 2])
def test_rotary_positions(sections):
    model, _ = make(ln_bias_attrs=[None] * LAYERS)
    x = paddle.rand([B, 6, WIDTH])
    half = DEPTH // 2 // sections
    angle = np.random.default_rng(0).uniform(-3, 3, (B, 6, sections, half))
    wide = np.concatenate([angle, angle], -1).reshape(B, 1, 6, DEPTH)
    table = paddle.to_tensor(np.stack([np.cos(wide), np.sin(wide)]).astype("float32"))
    want = np.asarray(x, "float64")
    for i in range(LAYERS):
        want = reference(model, i, want, lambda t: rotate(t.reshape(B, HEADS, 6, sections, -1), angle[:, None], False).reshape(t.shape))
    close(model(x, attn_mask=mask_of(6), rotary_embs=table, rotary_emb_dims=sections), want, 1e-5)
    kept = caches()
    more = {"caches": kept, "rotary_emb_dims": sections}
    out = [model(x[:, :4], attn_mask=mask_of(4), rotary_embs=table[:, :, :, :4], **more)[0]]
    out += [model(x[:, t:t + 1], time_step=number(t), rotary_embs=table[:, :, :, t:t + 1], **more)[0] for t in (4, 5)]
    close(paddle.concat(out, 1), want, 1e-5)


def reference(model, i, x, turn):
    """Layer i of a model with norms before, in float64."""
    part = {name: np.asarray(getattr(model, name)[i], "float64") for name in (
        "ln_scales", "ln_biases", "qkv_weights", "qkv_biases", "linear_weights", "linear_biases", "ffn_ln_scales", "ffn_ln_biases",
        "ffn1_weights", "ffn1_biases", "ffn2_weights", "ffn2_biases")}

    def norm(y, scale, shift):
        return (y - y.mean(-1, keepdims=True)) / np.sqrt(y.var(-1, keepdims=True) + 1e-5) * scale + shift

    qkv = np.einsum("bse,khde->kbhsd", norm(x, part["ln_scales"], part["ln_biases"]), part["qkv_weights"])
    q, k, v = qkv + part["qkv_biases"][:, None, :, None]
    scores = np.einsum("bhsd,bhtd->bhst", turn(q), turn(k)) / np.sqrt(DEPTH) + causal(x.shape[1], x.shape[1])
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    x = x + np.einsum("bhst,bhtd->bshd", weights, v).reshape(x.shape) @ part["linear_weights"] + part["linear_biases"]
    inner = norm(x, part["ffn_ln_scales"], part["ffn_ln_biases"]) @ part["ffn1_weights"] + part["ffn1_biases"]
    inner = inner * 0.5 * (1 + np.vectorize(math.erf)(inner / np.sqrt(2)))
    return x + inner @ part["ffn2_weights"] + part["ffn2_biases"]


def test_programs_step_with_numbers_of_the_run():
    model, plain = make()
    x, kept = paddle.rand([B, 8, WIDTH]), caches()
    want = whole(plain, x)
    model(x[:, :4], attn_mask=mask_of(4), caches=kept)
    step = paddle.jit.to_static(lambda y, at, *kept: model(y, caches=list(kept), time_step=at)[0], full_graph=True)
    for t in range(4, 8):
        close(step(x[:, t:t + 1], number(t), *kept), want[:, t:t + 1])


def test_memory_is_flat_from_step_to_step():
    model, _ = make()
    x, kept = paddle.rand([B, 1, WIDTH]), caches(64)
    used = []
    for _ in range(2):  # kernels of each length are prepared in the first round
        used.clear()
        model(x, caches=kept)
        for t in range(1, 60):
            model(x, caches=kept, time_step=number(t))
            used.append(_core.live_bytes())
    assert max(used) == min(used)


@pytest.mark.parametrize("dtype,tol", [("float16", 2e-2), ("bfloat16", 1.5e-1)])
def test_halves(dtype, tol):
    model, plain = make()
    x = paddle.rand([B, 6, WIDTH])
    want = whole(plain, x)
    for name in ("qkv", "linear", "ffn1", "ffn2"):
        for kind in ("_weights", "_biases"):
            setattr(model, name + kind, [p.astype(dtype) for p in getattr(model, name + kind)])
    kept, x = [c.astype(dtype) for c in caches()], x.astype(dtype)
    out = [model(x[:, :4], attn_mask=mask_of(4).astype(dtype), caches=kept)[0]]
    out += [model(x[:, t:t + 1], caches=kept, time_step=number(t))[0] for t in (4, 5)]
    assert out[0].dtype == out[1].dtype == x.dtype
    close(paddle.concat(out, 1).astype("float32"), want, tol)


@pytest.mark.parametrize("lengths", [None, [3, 2]])
def test_autocast_leaves_caches_as_they_are(lengths):
    model, _ = make()
    x, more = paddle.rand([B, 4, WIDTH]), {} if lengths is None else {"seq_lens": paddle.to_tensor(lengths)}
    found = []
    for enable in (False, True):
        with paddle.amp.auto_cast(enable, level="O1", dtype="bfloat16"):
            kept = caches()
            found += [model(x[:, :3], attn_mask=mask_of(3), caches=kept, **more)[0], model(x[:, 3:], caches=kept, time_step=number(3), **more)[0]]
        assert kept[0].dtype == paddle.float32
    for want, got in zip(found, found[2:]):
        close(got.astype("float32"), want, 0.1)


def test_gradients_without_caches():
    model, plain = make()
    x = paddle.rand([B, 4, WIDTH])
    x.stop_gradient = False
    with paddle.enable_grad():
        found = [paddle.grad(f(x).square().sum(), x)[0] for f in (lambda t: model(t, attn_mask=mask_of(4)), lambda t: whole(plain, t))]
    close(found[0], found[1], 1e-4)


def test_errors_name_what_came():
    model, _ = make()
    x = paddle.rand([B, 2, WIDTH])
    for text, settings in (("expected 3, one a layer", {"caches": caches()[:2]}), ("expected cache_kvs and x of one", {"time_step": number(1)}),
                           ("2 tokens", {"time_step": number(1), "caches": caches()}), ("at least 2", {"caches": caches(1)}),
                           ("cache_kvs: expected", {"caches": [paddle.zeros([2, B, 1, 3, DEPTH])] * 3}),
                           ("rotary_embs: expected", {"rotary_emb_dims": 1})):
        with pytest.raises(ValueError, match="fused_multi_transformer: .*" + text):
            model(x, **settings)
    with pytest.raises(ValueError, match="lengths from 0 to 11, got 12"):
        model(x[:, :1], caches=caches(), time_step=number(12))
    model.activation = "tanh"
    with pytest.raises(ValueError, match="activation: expected 'gelu' or 'relu', got 'tanh'"):
        model(x)
    for text, settings in (("divisible", {"num_heads": 3}), ("num_layers", {"num_layers": -1}), ("ring_id", {"nranks": 2}),
                           ("attributes of 3 layers, got 1", {"ln_bias_attrs": [None]})):
        with pytest.raises(AssertionError, match="FusedMultiTransformer: .*" + text):
            nn.FusedMultiTransformer(**{"embed_dim": WIDTH, "num_heads": HEADS, "dim_feedforward": INNER, "num_layers": 3, **settings})
