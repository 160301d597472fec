"""paddle.incubate.nn.functional: the formulas that Paddle documents for its fused kernels. Uses nn.functional and _core."""
from ... import _core
from ...nn import functional as F
from .cached_attention import masked_multihead_attention
from .gate_attention import fused_gate_attention as fused_gate_attention
from .multi_transformer import fused_multi_transformer
from .paged_attention import block_multihead_attention
from .quantized import to_int8
from .rotary import turned
from .tensor_parallel import shared, summed

__all__ = ["fused_multi_head_attention", "fused_feedforward", "fused_multi_transformer", "fused_matmul_bias", "fused_linear",
           "fused_linear_activation", "fused_bias_dropout_residual_layer_norm", "fused_ec_moe", "fused_dropout_add",
           "fused_rotary_position_embedding", "variable_length_memory_efficient_attention", "fused_rms_norm",
           "fused_layer_norm", "masked_multihead_attention", "block_multihead_attention"]


def _plus(x, y):
    return x if y is None else x + y


def _last_norm(x, scale, bias, epsilon):
    return F.layer_norm(x, x.shape[-1:], scale, bias, epsilon)


def fused_matmul_bias(x, y, bias=None, transpose_x=False, transpose_y=False, name=None):
    """x · y + bias."""
    return _plus(_core.matmul(x, y, transpose_x, transpose_y), bias)


def fused_linear(x, weight, bias=None, transpose_weight=False, name=None):
    """x · weight + bias.

    >>> paddle.incubate.nn.functional.fused_linear(paddle.ones([1, 2]), paddle.ones([2, 1]), paddle.ones([1])).tolist()
    [[3.0]]
    """
    return fused_matmul_bias(x, weight, bias, False, transpose_weight)


def fused_linear_activation(x, y, bias, trans_x=False, trans_y=False, activation=None):
    """activation(x · y + bias): "gelu", "relu" or none."""
    if activation not in (None, "none", "gelu", "relu"):
        raise ValueError(f"fused_linear_activation: activation: expected 'gelu', 'relu' or 'none', got {activation!r}")
    out = fused_matmul_bias(x, y, bias, trans_x, trans_y)
    return out if activation in (None, "none") else getattr(F, activation)(out)


def fused_dropout_add(x, y, p=0.5, training=True, mode="upscale_in_train", name=None):
    """dropout(x) + y.

    >>> paddle.incubate.nn.functional.fused_dropout_add(paddle.ones([1]), paddle.ones([1]), 0.5, training=False).tolist()
    [2.0]
    """
    return F.dropout(x, p, training=training, mode=mode) + y


def fused_bias_dropout_residual_layer_norm(x, residual, bias=None, ln_scale=None, ln_bias=None, dropout_rate=0.5,
                                           ln_epsilon=1e-5, training=True, mode="upscale_in_train", name=None):
    """layer_norm(residual + dropout(x + bias)) over the last dim."""
    dropped = F.dropout(_plus(x, bias), dropout_rate, training=training, mode=mode)
    return _last_norm(residual + dropped, ln_scale, ln_bias, ln_epsilon)


def _check_attention(x, qkv_weight, num_heads, transpose_qkv_wb, ring_id, mode):
    who = "fused_multi_head_attention"
    if mode not in ("upscale_in_train", "downscale_in_infer"):
        raise ValueError(f"{who}: mode: expected 'upscale_in_train' or 'downscale_in_infer', got {mode!r}")
    if x.ndim != 3:
        raise ValueError(f"{who}: x: expected [batch, length, embed_dim], got {list(x.shape)}")
    if transpose_qkv_wb and num_heads <= 0:
        raise AssertionError(f"{who}: num_heads: expected more than 0 with transpose_qkv_wb, got {num_heads}")
    shape, width = list(qkv_weight.shape), x.shape[2]
    if transpose_qkv_wb:
        fits = len(shape) == 2 and shape[0] == width and (ring_id != -1 or shape[1] == 3 * width)
    else:
        fits = len(shape) == 4 and [shape[0], shape[3]] == [3, width] and (ring_id != -1 or shape[1] * shape[2] == width)
    if not fits:
        expected = f"[{width}, 3 · {width}]" if transpose_qkv_wb else f"[3, heads, D, {width}] with heads · D = {width}"
        raise AssertionError(f"{who}: qkv_weight: expected {expected}, got {shape}")


def _self_attention(x, qkv_weight, qkv_bias, num_heads, transpose_qkv_wb, cache_kv, attn_mask, rate, training, mode):
    """(attention [B, S, heads · D], the new cache or None) of x [B, S, embed]."""
    if transpose_qkv_wb:
        heads, depth = num_heads, qkv_weight.shape[1] // 3 // num_heads
        weight = qkv_weight
    else:
        _, heads, depth, embed = qkv_weight.shape
        weight = _core.transpose(_core.reshape(qkv_weight, [3 * heads * depth, embed]), [1, 0])
    qkv = _core.matmul(x, weight)
    if qkv_bias is not None:
        qkv = qkv + _core.reshape(qkv_bias, [3 * heads * depth])
    qkv = _core.transpose(_core.reshape(qkv, [x.shape[0], x.shape[1], 3, heads, depth]), [2, 0, 3, 1, 4])
    query, key, value = qkv[0] * depth ** -0.5, qkv[1], qkv[2]
    if cache_kv is not None:
        key, value = _core.concat([cache_kv[0], key], 2), _core.concat([cache_kv[1], value], 2)
        cache_kv = _core.stack([key, value])
    weights = F.softmax(_plus(_core.matmul(query, key, False, True), attn_mask), -1)
    weights = F.dropout(weights, rate, training=training, mode=mode)
    out = _core.transpose(_core.matmul(weights, value), [0, 2, 1, 3])
    return _core.reshape(out, [x.shape[0], x.shape[1], heads * depth]), cache_kv


def fused_multi_head_attention(x, qkv_weight, linear_weight, pre_layer_norm=False, pre_ln_scale=None, pre_ln_bias=None,
                               ln_scale=None, ln_bias=None, pre_ln_epsilon=1e-5, qkv_bias=None, linear_bias=None,
                               cache_kv=None, attn_mask=None, dropout_rate=0.5, attn_dropout_rate=0.5, ln_epsilon=1e-5,
                               training=True, mode="upscale_in_train", ring_id=-1, add_residual=True, num_heads=-1,
                               transpose_qkv_wb=False, name=None):
    """Self attention of x [B, S, embed] with its projections, dropouts, residual and layer norm, before or behind.
    qkv_weight is [3, heads, D, embed], or [embed, 3 · embed] with transpose_qkv_wb; with cache_kv [2, B, heads, S, D] also
    the longer cache is returned."""
    _check_attention(x, qkv_weight, num_heads, transpose_qkv_wb, ring_id, mode)
    inner = _last_norm(x, pre_ln_scale, pre_ln_bias, pre_ln_epsilon) if pre_layer_norm else x
    out, cache = _self_attention(shared(inner, ring_id), qkv_weight, qkv_bias, num_heads, transpose_qkv_wb, cache_kv, attn_mask,
                                 attn_dropout_rate, training, mode)
    out = _plus(summed(_core.matmul(out, linear_weight), ring_id), linear_bias)
    out = F.dropout(out, dropout_rate, training=training, mode=mode)
    if add_residual:
        out = x + out
    if not pre_layer_norm:
        out = _last_norm(out, ln_scale, ln_bias, ln_epsilon)
    return out if cache_kv is None else (out, cache)


def fused_feedforward(x, linear1_weight, linear2_weight, linear1_bias=None, linear2_bias=None, ln1_scale=None,
                      ln1_bias=None, ln2_scale=None, ln2_bias=None, dropout1_rate=0.5, dropout2_rate=0.5,
                      activation="relu", ln1_epsilon=1e-5, ln2_epsilon=1e-5, pre_layer_norm=False, training=True,
                      mode="upscale_in_train", ring_id=-1, add_residual=True, name=None):
    """Two linear maps with an activation and dropouts, a residual, and layer norm before (ln1) or behind (ln2)."""
    inner = _last_norm(x, ln1_scale, ln1_bias, ln1_epsilon) if pre_layer_norm else x
    inner = getattr(F, activation)(fused_linear(shared(inner, ring_id), linear1_weight, linear1_bias))
    inner = F.dropout(inner, dropout1_rate, training=training, mode=mode)
    out = _plus(summed(_core.matmul(inner, linear2_weight), ring_id), linear2_bias)
    out = F.dropout(out, dropout2_rate, training=training, mode=mode)
    if add_residual:
        out = x + out
    return out if pre_layer_norm else _last_norm(out, ln2_scale, ln2_bias, ln2_epsilon)


def fused_ec_moe(x, gate, bmm0_weight, bmm0_bias, bmm1_weight, bmm1_bias, act_type):
    """A mixture of experts of which each token takes all, weighted by softmax(gate): x [B, S, D], gate [B, S, experts],
    weights [experts, D, inner] and [experts, inner, D], biases [experts, 1, …]."""
    if act_type not in ("gelu", "relu"):
        raise NotImplementedError(f"fused_ec_moe: act_type: expected 'gelu' or 'relu', got {act_type!r}")
    batch, length, width = x.shape
    flat = _core.unsqueeze(_core.reshape(x, [batch * length, width]), [0])
    inner = getattr(F, act_type)(_core.matmul(flat, bmm0_weight) + bmm0_bias)
    each = _core.matmul(inner, bmm1_weight) + bmm1_bias
    share = _core.transpose(_core.reshape(F.softmax(gate, -1), [batch * length, -1]), [1, 0])
    return _core.reshape(_core.sum(each * _core.unsqueeze(share, [2]), 0), [batch, length, width])


# ---- positions ------------------------------------------------------------------------------------------------------

def _angles(length, depth, by_pairs, dtype):
    """(sin, cos) [1, length, 1, depth] of positions at the base 10000."""
    import numpy as np
    angle = np.arange(length)[:, None] * 10000.0 ** (-np.arange(0, depth, 2) / depth)[None]
    angle = np.repeat(angle, 2, 1) if by_pairs else np.concatenate([angle, angle], 1)
    return [_core.to_tensor(f(angle).astype("float32")[None, :, None]).astype(dtype) for f in (np.sin, np.cos)]


def fused_rotary_position_embedding(q, k=None, v=None, sin=None, cos=None, position_ids=None,
                                    use_neox_rotary_style=True):
    """(q, k, v) [B, S, heads, D] turned by their positions: x · cos + rotated(x) · sin, of neighbors, or with
    use_neox_rotary_style=False of halves. sin and cos [S, D] or [1, S, 1, D]; position_ids [B, S] picks their rows."""
    length, depth = q.shape[1], q.shape[-1]
    if sin is None or cos is None:
        sin, cos = _angles(length, depth, use_neox_rotary_style, q.dtype)
    sin, cos = (_core.reshape(t, [-1, depth]) for t in (sin, cos))
    if position_ids is not None:
        sin, cos = (_core.unsqueeze(F.embedding(position_ids, t), [2]) for t in (sin, cos))
    else:
        sin, cos = (_core.reshape(t[:length], [1, length, 1, depth]) for t in (sin, cos))
    return tuple(None if x is None else turned(x, cos, sin, use_neox_rotary_style) for x in (q, k, v))


def variable_length_memory_efficient_attention(query, key, value, seq_lens, kv_seq_lens, mask=None, scale=None,
                                               causal=False, pre_cache_length=0):
    """softmax(query · key · scale + mask) · value, [B, heads, S, D], of sequences that end at seq_lens and kv_seq_lens [B]:
    what is behind a query's end is 0."""
    rows, columns = query.shape[2], key.shape[2]
    scores = _core.matmul(query, key, False, True) * (query.shape[3] ** -0.5 if scale is None else scale)
    scores = _plus(scores, mask)
    far = _core.full([], float("-inf"), scores.dtype)
    known = _core.arange(0, columns, 1, "int64") < _core.reshape(kv_seq_lens.astype("int64"), [-1, 1, 1, 1]) + pre_cache_length
    scores = _core.where(known, scores, far)
    if causal:
        seen = _core.tril(_core.full([rows, columns], 1, "bool"), columns - rows)
        scores = _core.where(seen, scores, far)
    out = _core.matmul(F.softmax(scores, -1), value)
    given = _core.arange(0, rows, 1, "int64") < _core.reshape(seq_lens.astype("int64"), [-1, 1, 1])
    return _core.where(_core.unsqueeze(given, [3]), out, _core.full([], 0.0, out.dtype))


# ---- norms ----------------------------------------------------------------------------------------------------------

def fused_rms_norm(x, norm_weight, norm_bias, epsilon, begin_norm_axis, bias=None, residual=None, quant_scale=-1,
                   quant_round_type=0, quant_max_bound=0, quant_min_bound=0):
    """(x' / sqrt(mean(x'²) + epsilon) · norm_weight + norm_bias, x') of x' = x + bias + residual, over the dims from
    begin_norm_axis. With quant_scale > 0 the first is int8: quant_max_bound · quant_scale times it, rounded (quant_round_type
    0: ties to even, 1: away from zero), cut to the bounds."""
    whole = _plus(_plus(x, bias), residual)
    axes = list(range(begin_norm_axis % whole.ndim, whole.ndim))
    out = whole * _core.rsqrt(_core.mean(whole * whole, axes, True) + epsilon)
    shape = whole.shape[axes[0]:]
    out = _plus(out * _core.reshape(norm_weight, shape), None if norm_bias is None else _core.reshape(norm_bias, shape))
    if quant_scale > 0:
        out = to_int8(out, quant_scale, quant_round_type, quant_max_bound, quant_min_bound)
    return out, whole


def fused_layer_norm(x, norm_weight, norm_bias, epsilon, residual_alpha=1.0, begin_norm_axis=1, bias=None, residual=None,
                     quant_scale=-1, quant_round_type=0, quant_max_bound=0, quant_min_bound=0):
    """Layer norm of x + bias + residual_alpha · residual over the dims from begin_norm_axis; with a residual also that
    sum. With quant_scale > 0 the norm is int8, as fused_rms_norm's."""
    whole = _plus(_plus(x, bias), None if residual is None else residual * residual_alpha)
    shape = whole.shape[begin_norm_axis % whole.ndim:]
    weight, shift = (None if t is None else _core.reshape(t, shape) for t in (norm_weight, norm_bias))
    out = whole if weight is None and shift is None else F.layer_norm(whole, shape, weight, shift, epsilon)
    if quant_scale > 0:
        out = to_int8(out, quant_scale, quant_round_type, quant_max_bound, quant_min_bound)
    return out if residual is None else (out, whole)
