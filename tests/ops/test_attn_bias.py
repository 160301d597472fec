"""memory_efficient_attention and its masks: each form equals its materialized mask, which is real Paddle's, and fused_gate_attention
its formula."""
import json

import numpy as np
import oracle
import proa as paddle
import pytest
from conftest import NEEDS_PADDLE
from proa.incubate import nn
from proa.incubate.nn import attn_bias, functional
from proa.incubate.nn.memory_efficient_attention import memory_efficient_attention
from serving import softmax

MASKS = """
def masks(paddle, forms):
    tensors = [paddle.ones([1, 2, 1, 1]), paddle.ones([2, 3, 1, 1])]
    blocks, packed = forms.BlockDiagonalMask.from_tensor_list(tensors)
    two = forms.BlockDiagonalMask.from_tensor_lists_qkv(tensors, [t[:, 1:] for t in tensors])[0]
    padded = forms.BlockDiagonalCausalWithOffsetPaddedKeysMask.from_seqlens
    assert packed.shape == [1, 8, 1, 1] and [t.shape for t in blocks.split(packed)] == [t.shape for t in tensors]
    return {
        "triangle": (forms.LowerTriangularMask(), [6, 6]), "wide": (forms.LowerTriangularMask(), [3, 5]),
        "biased": (forms.LowerTriangularMask().add_bias(paddle.arange(20).reshape([4, 5]).astype("float32")), [4, 5]),
        "blocks": (blocks, [8, 8]), "causal": (blocks.make_causal(), [8, 8]), "two": (two, [8, 5]),
        "padded": (padded([1, 2], 4, [2, 3]), [3, 8]), "offset": (padded([1, 2], 4, [2, 3], paddle.to_tensor([1, 1])), [3, 8])}
"""
SPACE = {}
exec(MASKS, SPACE)  # the same lines run in real Paddle
FORMS = SPACE["masks"](paddle, attn_bias)


def materialized(name):
    mask, shape = FORMS[name]
    return np.nan_to_num(mask.materialize([1, 1, *shape]).numpy(), neginf=-1e30)[0, 0]


@NEEDS_PADDLE
def test_masks_are_paddles():
    told = oracle.ask("-c", MASKS + """
import json, paddle
from paddle.incubate.nn import attn_bias
print(json.dumps({k: m.materialize([1, 1, *s]).clip(-1e30).numpy()[0, 0].tolist() for k, (m, s) in masks(paddle, attn_bias).items()}))
""")
    want = json.loads(told.strip().splitlines()[-1])
    assert set(want) == set(FORMS)
    for name, mask in want.items():
        np.testing.assert_allclose(materialized(name), mask, rtol=1e-6, err_msg=name)


@pytest.mark.parametrize("scale", [None, 0.3])
@pytest.mark.parametrize("name", FORMS)
def test_attention_under_each_form(name, scale):
    (mask, (queries, keys)), draw = FORMS[name], np.random.default_rng(0)
    q, k, v = (draw.uniform(-1, 1, (1, n, 2, 8)) for n in (queries, keys, keys))
    got = memory_efficient_attention(*(paddle.to_tensor(t.astype("float32")) for t in (q, k, v)), mask, scale=scale)
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) * (scale or 8 ** -0.5) + materialized(name)
    np.testing.assert_allclose(got.numpy(), np.einsum("bhqk,bkhd->bqhd", softmax(scores), v), rtol=1e-5, atol=1e-5)


def test_tensors_and_errors():
    q = paddle.rand([2, 3, 2, 8])
    bias = paddle.rand([2, 2, 3, 3])
    want = paddle.nn.functional.scaled_dot_product_attention(q, q, q, bias)
    np.testing.assert_allclose(memory_efficient_attention(q, q, q, bias).numpy(), want.numpy(), rtol=1e-6)
    with pytest.raises(AssertionError, match="attn_bias: expected None, a Tensor or a mask of attn_bias, got str"):
        memory_efficient_attention(q, q, q, "causal")
    with pytest.raises(AssertionError, match="8 queries by 8 keys"):
        FORMS["blocks"][0].materialize([3, 3])
    with pytest.raises(AssertionError, match="at most the padding 2"):
        attn_bias.PaddedSeqLenInfo.from_seqlens_padded([3], 2)
    with pytest.raises(NotImplementedError, match="from_seqlens_padded"):
        attn_bias.PaddedSeqLenInfo.from_seqlens([3])


@pytest.mark.parametrize("merged", [True, False])
@pytest.mark.parametrize("gated", [True, False])
def test_gate_attention(merged, gated):
    draw = np.random.default_rng(1)
    B, M, R, K, W, H, D = 2, 3, 4, 4 if merged else 5, 6, 2, 3
    sizes = {"query": (B, M, R, W), "out_linear_weight": (H, D, W), "out_linear_bias": (W,), "nonbatched_bias": (B, 1, H, R, K),
             "attn_mask": (B, M, 1, 1, K)}
    sizes |= {"qkv_weight": (3, H, D, W)} if merged else {"key": (B, M, K, 7), "query_weight": (W, H, D), "key_weight": (7, H, D),
                                                          "value_weight": (7, H, D)}
    sizes |= {"gate_linear_weight": (W, H, D), "gate_linear_bias": (H, D)} if gated else {}
    a = {name: draw.uniform(-1, 1, shape) for name, shape in sizes.items()}
    got = functional.fused_gate_attention(**{k: paddle.to_tensor(v.astype("float32")) for k, v in a.items()}, has_gating=gated,
                                          merge_qkv=merged)
    if merged:
        q, k, v = (np.einsum("bmrw,hdw->bmhrd", a["query"], w) for w in a["qkv_weight"])
    else:
        q, k, v = (np.einsum("bmrw,whd->bmhrd", a[x], a[w]) for x, w in (("query", "query_weight"), ("key", "key_weight"),
                                                                         ("key", "value_weight")))
    weights = softmax(np.einsum("bmhrd,bmhkd->bmhrk", q, k) / np.sqrt(D) + a["attn_mask"] + a["nonbatched_bias"])
    out = np.einsum("bmhrk,bmhkd->bmrhd", weights, v)
    if gated:
        out /= 1 + np.exp(-np.einsum("bmrw,whd->bmrhd", a["query"], a["gate_linear_weight"]) - a["gate_linear_bias"])
    want = np.einsum("bmrhd,hdw->bmrw", out, a["out_linear_weight"]) + a["out_linear_bias"]
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="fused_gate_attention: out_linear_weight: expected a Tensor"):
        functional.fused_gate_attention(paddle.rand([1, 1, 2, W]), qkv_weight=paddle.rand([3, H, D, W]), has_gating=False)


def test_dropout_along_an_axis():
    layer = nn.FusedDropout(0.5, axis=0)
    assert repr(layer) == "FusedDropout(p=0.5, axis=[0], mode=upscale_in_train)"
    out = layer(paddle.ones([64, 3])).numpy()
    assert set(out.ravel()) == {0.0, 2.0} and (out == out[:, :1]).all()
    layer.eval()
    assert (layer(paddle.ones([4, 3])).numpy() == 1).all()
    for error, text, settings in ((TypeError, "expected a number", {"p": "1"}), (ValueError, "0 to 1", {"p": 2}),
                                  (ValueError, "mode", {"mode": "other"})):
        with pytest.raises(error, match="FusedDropout: .*" + text):
            nn.FusedDropout(**settings)
