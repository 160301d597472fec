"""fused_gate_attention: attention over residues with a gate, as AlphaFold has it. Uses _core."""
from ... import _core
from ...nn import functional as F


def fused_gate_attention(query, key=None, query_weight=None, key_weight=None, value_weight=None, qkv_weight=None,
                         gate_linear_weight=None, gate_linear_bias=None, out_linear_weight=None, out_linear_bias=None,
                         nonbatched_bias=None, attn_mask=None, has_gating=True, merge_qkv=True, use_flash_attn=False):
    """Attention of query [batch, rows, residues, width] over key, or over itself with merge_qkv, times sigmoid(query · gate).

    qkv_weight [3, heads, D, width], else query_weight, key_weight and value_weight [width, heads, D]; gate_linear_weight
    [width, heads, D] and out_linear_weight [heads, D, width]. attn_mask [batch, rows, 1, 1, keys] and nonbatched_bias
    [batch, 1, heads, residues, keys] are added to scores.
    """
    needed = {"qkv_weight": qkv_weight} if merge_qkv else {"query_weight": query_weight, "key_weight": key_weight,
                                                           "value_weight": value_weight}
    if has_gating:
        needed.update(gate_linear_weight=gate_linear_weight, gate_linear_bias=gate_linear_bias)
    for name, weight in {**needed, "out_linear_weight": out_linear_weight, "out_linear_bias": out_linear_bias}.items():
        if weight is None:
            raise ValueError(f"(InvalidArgument) fused_gate_attention: {name}: expected a Tensor with merge_qkv={merge_qkv} and"
                             f" has_gating={has_gating}, got None")
    if merge_qkv:
        _, heads, depth, width = qkv_weight.shape
        weights = _core.unbind(_core.transpose(_core.reshape(qkv_weight, [3, heads * depth, width]), [0, 2, 1]), 0)
        key = query
    else:
        _, heads, depth = query_weight.shape
        weights = [_core.reshape(w, [w.shape[0], heads * depth]) for w in (query_weight, key_weight, value_weight)]
        key = query if key is None else key

    def split(x, weight):
        return _core.transpose(_core.reshape(_core.matmul(x, weight), [*x.shape[:3], heads, depth]), [0, 1, 3, 2, 4])

    q, k, v = (split(x, w) for x, w in zip((query, key, key), weights))
    scores = _core.matmul(q * depth ** -0.5, k, False, True)
    for bias in (attn_mask, nonbatched_bias):
        if bias is not None:
            scores = scores + bias
    out = _core.transpose(_core.matmul(F.softmax(scores, -1), v), [0, 1, 3, 2, 4])
    out = _core.reshape(out, [*query.shape[:3], heads * depth])
    if has_gating:
        gate = _core.matmul(query, _core.reshape(gate_linear_weight, [-1, heads * depth])) + _core.reshape(gate_linear_bias, [-1])
        out = out * F.sigmoid(gate)
    return _core.matmul(out, _core.reshape(out_linear_weight, [heads * depth, -1])) + out_linear_bias
