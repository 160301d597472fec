"""paddle.incubate.nn against the unfused layers and formulas: real Paddle has its kernels on GPUs alone."""
import json

import numpy as np
import oracle
import proa as paddle
import pytest
from conftest import NEEDS_PADDLE
from proa.incubate import nn
from proa.incubate.nn import functional as F
from serving import eight_bits


def close(got, want, tol=1e-6):
    np.testing.assert_allclose(got.numpy(), want if isinstance(want, np.ndarray) else want.numpy(), rtol=tol, atol=tol)


@pytest.fixture(autouse=True)
def seed():
    paddle.seed(3)


@pytest.mark.parametrize("before", [False, True])
def test_encoder_layer_is_transformer_encoder_layer(before):
    fused = nn.FusedTransformerEncoderLayer(8, 2, 16, 0.0, normalize_before=before)
    plain = paddle.nn.TransformerEncoderLayer(8, 2, 16, 0.0, normalize_before=before)
    attention, ffn = fused.fused_attn, fused.ffn
    for i, layer in enumerate((plain.self_attn.q_proj, plain.self_attn.k_proj, plain.self_attn.v_proj)):
        layer.weight.set_value(attention.qkv_weight[i].reshape([8, 8]).t())
        layer.bias.set_value(attention.qkv_bias[i].reshape([8]) + i)
    attention.qkv_bias.set_value(attention.qkv_bias + paddle.to_tensor([[[0.0]], [[1.0]], [[2.0]]]))
    plain.self_attn.out_proj.weight.set_value(attention.linear_weight)
    plain.linear1.weight.set_value(ffn._linear1_weight)
    plain.linear2.weight.set_value(ffn._linear2_weight)
    x, mask = paddle.rand([2, 4, 8]), paddle.rand([2, 1, 4, 4])
    close(fused(x, mask), plain(x, mask), 1e-5)
    close(fused(x, mask > 0.3), plain(x, mask > 0.3), 1e-5)


DESCRIBE = """
def describe(nn):
    layers = [nn.FusedMultiHeadAttention(8, 2, name="n"), nn.FusedFeedForward(8, 16, normalize_before=True, name="q"),
              nn.FusedMultiHeadAttention(8, 2, normalize_before=True, transpose_qkv_wb=True), nn.FusedLinear(4, 5, transpose_weight=True),
              nn.FusedTransformerEncoderLayer(8, 2, 16, bias_attr=False), nn.FusedEcMoe(4, 8, 2, "gelu"), nn.FusedDropoutAdd(0.3),
              nn.FusedDropout(0.2, axis=[1]), nn.FusedMultiTransformer(8, 2, 16, num_layers=2, ln_bias_attrs=False)]
    told = [[repr(l), {k: list(v.shape) for k, v in l.state_dict().items()}, [p.name.split(".")[1] for p in l.parameters()],
             sorted(k for k in vars(l) if not k.startswith("_"))] for l in layers]
    last = layers[-1]
    return told + [[[k, [None if p is None else [p.name.split(".")[1], list(p.shape)] for p in v]] for k, v in sorted(vars(last).items())
                    if isinstance(v, list)]]
"""


@NEEDS_PADDLE
def test_layers_are_made_as_paddles():
    space = {}
    exec(DESCRIBE, space)  # the same lines run in real Paddle
    told = oracle.ask("-c", DESCRIBE + "\nimport json\nfrom paddle.incubate import nn\nprint(json.dumps(describe(nn)))")
    assert json.loads(told.strip().splitlines()[-1]) == json.loads(json.dumps(space["describe"](nn)))


def test_cache_grows():
    layer = nn.FusedMultiHeadAttention(8, 2, 0.0, 0.0)
    x = paddle.rand([1, 3, 8])
    out, cache = layer(x[:, 2:], cache=layer(x[:, :2], cache=paddle.zeros([2, 1, 2, 0, 4]))[1])
    assert cache.shape == [2, 1, 2, 3, 4]
    close(out, layer(x)[:, 2:], 1e-5)


def test_linear_dropout_norm():
    x, y = paddle.rand([2, 3]), paddle.rand([2, 3])
    linear = nn.FusedLinear(3, 4, transpose_weight=True)
    close(linear(x), paddle.matmul(x, linear.weight, transpose_y=True) + linear.bias)
    close(F.fused_linear_activation(x, y, None, trans_y=True, activation="gelu"), paddle.nn.functional.gelu(x @ y.t()))
    close(nn.FusedDropoutAdd(0.0)(x, y), x + y)
    norm = nn.FusedBiasDropoutResidualLayerNorm(3, 0.0)
    close(norm(x, y), paddle.nn.functional.layer_norm(x + y, [3]))


def test_norms():
    x, residual, bias = (np.random.default_rng(i).uniform(-1, 1, s).astype("float32") for i, s in
                         enumerate([(2, 3, 4), (2, 3, 4), (4,)]))
    t = [paddle.to_tensor(v) for v in (x, residual, bias)]
    whole = x + residual + bias
    out, kept = F.fused_rms_norm(t[0], paddle.ones([4]), None, 1e-6, 2, t[2], t[1])
    close(kept, whole)
    close(out, whole / np.sqrt((whole ** 2).mean(-1, keepdims=True) + 1e-6), 1e-5)
    out, kept = F.fused_layer_norm(t[0], paddle.ones([12]), paddle.zeros([12]), 1e-5, 0.5, 1, t[2], t[1])
    whole = (x + residual * 0.5 + bias).reshape(2, 12)
    close(out.reshape([2, 12]), (whole - whole.mean(1, keepdims=True)) / np.sqrt(whole.var(1, keepdims=True) + 1e-5), 1e-4)


@pytest.mark.parametrize("round_type", [0, 1])
def test_norms_of_eight_bits(round_type):
    x = np.random.default_rng(7).uniform(-1, 1, (4, 16)).astype("float32")
    bounds = {"quant_scale": 0.3, "quant_round_type": round_type, "quant_max_bound": 100.0, "quant_min_bound": -40.0}
    for norm in (F.fused_rms_norm, F.fused_layer_norm):
        settings = (paddle.to_tensor(x), paddle.ones([16]), paddle.zeros([16]), 1e-5)
        whole = {"begin_norm_axis": 1, "residual": paddle.to_tensor(x)}
        plain, got = norm(*settings, **whole)[0].numpy(), norm(*settings, **whole, **bounds)[0]
        assert got.dtype == paddle.int8 and norm(*settings, **whole, **bounds)[1].dtype == paddle.float32
        np.testing.assert_array_equal(got.numpy(), eight_bits(np.float32(100 * 0.3) * plain, round_type, 100, -40))


def test_rotary_positions_are_rotations():
    q = paddle.rand([1, 5, 2, 8])
    for neighbors in (True, False):
        out, none, same = F.fused_rotary_position_embedding(q, None, q, use_neox_rotary_style=neighbors)
        assert none is None
        close(out, same)
        close(out[:, :1], q[:, :1])
        close(out.norm(axis=-1), q.norm(axis=-1), 1e-5)
        moved = F.fused_rotary_position_embedding(q, position_ids=paddle.to_tensor([[4, 3, 2, 1, 0]]),
                                                  use_neox_rotary_style=neighbors)[0]
        close(moved[:, 2], out[:, 2])
    pair = np.array([[[[1.0, 0.0]]] * 2], "float32").reshape(1, 2, 1, 2)
    out = F.fused_rotary_position_embedding(paddle.to_tensor(pair))[0]
    close(out[0, 1, 0], np.array([np.cos(1.0), np.sin(1.0)], "float32"))


def test_attention_of_lengths():
    q, k, v = (paddle.rand([2, 2, 3, 4]) for _ in range(3))
    out = F.variable_length_memory_efficient_attention(q, k, v, paddle.to_tensor([[3], [1]]), paddle.to_tensor([[3], [2]]))
    weights = paddle.nn.functional.softmax(q[1, :, :1] @ k[1, :, :2].transpose([0, 2, 1]) * 0.5, -1)
    close(out[1, :, :1], weights @ v[1, :, :2])
    assert not out[1, :, 1:].any()
    causal = F.variable_length_memory_efficient_attention(q, k, v, paddle.to_tensor([[3], [3]]),
                                                          paddle.to_tensor([[3], [3]]), causal=True)
    close(causal[:, :, 0], v[:, :, 0])


def test_experts_and_feedforward():
    x, gate = paddle.rand([2, 3, 4]), paddle.rand([2, 3, 2])
    moe = nn.FusedEcMoe(4, 8, 2, "relu")
    each = [paddle.nn.functional.relu(x @ moe.bmm_weight0[e] + moe.bmm_bias0[e]) @ moe.bmm_weight1[e] + moe.bmm_bias1[e]
            for e in range(2)]
    share = paddle.nn.functional.softmax(gate, -1)
    close(moe(x, gate), each[0] * share[..., :1] + each[1] * share[..., 1:], 1e-5)
    with pytest.raises(NotImplementedError, match="act_type"):
        nn.FusedEcMoe(4, 8, 2, "tanh")


def test_attention_checks_its_arguments():
    x, weight = paddle.rand([1, 3, 8]), paddle.rand([3, 2, 4, 8])
    for error, text, arguments, more in (
            (ValueError, "x: expected .batch, length, embed_dim., got .3, 8.", (x[0], weight), {}),
            (ValueError, "mode: expected", (x, weight), {"mode": "other"}),
            (AssertionError, "qkv_weight: expected .3, heads, D, 8. with heads · D = 8, got .3, 2, 3, 8.", (x, weight[:, :, :3]), {}),
            (AssertionError, "qkv_weight: expected .8, 3 · 8.", (x, weight), {"transpose_qkv_wb": True, "num_heads": 2}),
            (AssertionError, "num_heads: expected more than 0", (x, weight), {"transpose_qkv_wb": True})):
        with pytest.raises(error, match="fused_multi_head_attention: " + text):
            F.fused_multi_head_attention(*arguments, paddle.rand([8, 8]), **more)
