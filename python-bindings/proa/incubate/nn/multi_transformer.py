"""Transformer layers for generation: fused_multi_transformer, whose caches are written in place."""
from ... import _core
from ...autograd import no_grad
from ...nn import functional as F
from ...nn.layer.transformer import _convert_attention_mask
from .cached_attention import FAR, FLOATS, Step, check_sizes, invalid
from .quantized import of_dtype
from .rotary import turned_sections
from .tensor_parallel import shared, summed

WHO = "fused_multi_transformer"
WEIGHTS = ("ln_scales", "ln_biases", "qkv_weights", "qkv_biases", "linear_weights", "linear_biases", "ffn_ln_scales",
           "ffn_ln_biases", "ffn1_weights", "ffn1_biases", "ffn2_weights", "ffn2_biases")


def fused_multi_transformer(x, ln_scales, ln_biases, qkv_weights, qkv_biases, linear_weights, linear_biases, ffn_ln_scales,
                            ffn_ln_biases, ffn1_weights, ffn1_biases, ffn2_weights, ffn2_biases, pre_layer_norm=True,
                            epsilon=1e-5, cache_kvs=None, pre_caches=None, seq_lens=None, rotary_embs=None, time_step=None,
                            attn_mask=None, dropout_rate=0.0, rotary_emb_dims=0, activation="gelu", training=False,
                            mode="upscale_in_train", trans_qkvw=True, ring_id=-1, name=None):
    """x [B, S, width] through one transformer layer for each entry of the lists of weights; with caches (x, cache_kvs).

    Without time_step, cache_kvs [2, B, heads, slots, D] take the keys and values of x, behind those of pre_caches, and attention is
    over x (and pre_caches) under attn_mask [B, 1, S, pre + S]. With time_step, a number in a tensor [1], S is 1: the token's slot in
    the caches is time_step, or seq_lens [B] where sequences differ, and it sees the slots up to its own under attn_mask
    [B, 1, 1, length]. Without time_step, seq_lens says where sequences end: results behind are 0. rotary_embs [2, B, 1, S, D] are
    cosines and sines of x's positions, by halves of rotary_emb_dims sections. qkv_weights are [3, heads, D, width], or
    [width, 3, heads, D] with trans_qkvw=False; each rank of the group ring_id has its heads and its part of the inner width.
    """
    lists = (ln_scales, ln_biases, qkv_weights, qkv_biases, linear_weights, linear_biases, ffn_ln_scales, ffn_ln_biases,
             ffn1_weights, ffn1_biases, ffn2_weights, ffn2_biases)
    count = len(qkv_weights)
    for what, given in (*zip(WEIGHTS, lists), ("cache_kvs", cache_kvs), ("pre_caches", pre_caches)):
        if given and len(given) != count:
            raise invalid(WHO, f"{what} has {len(given)} entries, expected {count}, one a layer")
    if activation not in ("gelu", "relu"):
        raise ValueError(f"(Unimplemented) {WHO}: activation: expected 'gelu' or 'relu', got {activation!r}")
    if mode not in ("upscale_in_train", "downscale_in_infer"):
        raise ValueError(f"{WHO}: mode: expected 'upscale_in_train' or 'downscale_in_infer', got {mode!r}")
    attention = _attention(x, qkv_weights[0], trans_qkvw, cache_kvs, pre_caches, seq_lens, time_step, attn_mask)
    if rotary_emb_dims > 0:
        attention.turn_by(rotary_embs, rotary_emb_dims)
    settings = (pre_layer_norm, epsilon, lambda y: F.dropout(y, dropout_rate, training=training, mode=mode), activation, ring_id)
    for layer in range(count):
        own = [given[layer] if given else None for given in lists]
        x = _layer(x, own, settings, trans_qkvw, lambda qkv, i=layer: attention(qkv, i))
    if attention.ends is not None:
        x = _core.where(_core.unsqueeze(attention.ends, [2]), x, _core.full([], 0.0, x.dtype))
    return x if not cache_kvs else (x, cache_kvs)


def _layer(x, weights, settings, trans_qkvw, attend):
    """One layer: attention and feed-forward with their residuals and norms."""
    (scale, shift, qkv_weight, qkv_bias, weight, bias, ffn_scale, ffn_shift, ffn1_weight, ffn1_bias, ffn2_weight,
     ffn2_bias) = weights
    before, epsilon, dropped, activation, ring_id = settings
    width = x.shape[2]

    def norm(y, scale, shift):
        return F.layer_norm(y, [width], scale, shift, epsilon)

    def linear_of_rows(y, weight, bias):
        y = summed(_core.matmul(y, weight), ring_id)
        return y if bias is None else y + bias

    inner = shared(norm(x, scale, shift) if before else x, ring_id)
    if trans_qkvw:
        qkv = _core.matmul(inner, _core.reshape(qkv_weight, [-1, width]), False, True)
    else:
        qkv = _core.matmul(inner, _core.reshape(qkv_weight, [width, -1]))
    if qkv_bias is not None:
        qkv = qkv + of_dtype(_core.reshape(qkv_bias, [-1]), qkv.dtype)  # autocast may have made the product a half type
    x = x + dropped(linear_of_rows(attend(qkv), weight, bias))
    if not before:
        x = norm(x, scale, shift)
    inner = shared(norm(x, ffn_scale, ffn_shift) if before else x, ring_id)
    inner = _core.matmul(inner, ffn1_weight) if ffn1_bias is None else _core.linear(inner, ffn1_weight, ffn1_bias)
    x = x + dropped(linear_of_rows(dropped(getattr(F, activation)(inner)), ffn2_weight, ffn2_bias))
    return x if before else norm(x, ffn_scale, ffn_shift)


def _attention(x, weight, trans_qkvw, caches, pre_caches, seq_lens, time_step, mask):
    """The attention of this call's stage."""
    if x.ndim != 3 or x.size == 0 or x.dtype not in FLOATS:
        raise invalid(WHO, f"x: expected floats [batch, length, width], got {x.dtype} {list(x.shape)}")
    width = weight.shape[-1 if trans_qkvw else 0]
    if weight.ndim != 4 or weight.shape[0 if trans_qkvw else 1] != 3 or width != x.shape[2]:
        expected = f"[3, heads, D, {x.shape[2]}]" if trans_qkvw else f"[{x.shape[2]}, 3, heads, D]"
        raise invalid(WHO, f"qkv_weights: expected {expected} for x of width {x.shape[2]}, got {list(weight.shape)}")
    heads, depth = weight.shape[1:3] if trans_qkvw else weight.shape[2:]
    for name, given in (("cache_kvs", caches), ("pre_caches", pre_caches)):
        for cache in given or ():
            dims = list(cache.shape)
            if len(dims) != 5 or [dims[0], dims[2], dims[4]] != [2, heads, depth] or dims[1] < x.shape[0] or cache.dtype not in FLOATS:
                raise invalid(WHO, f"{name}: expected floats [2, {x.shape[0]}, {heads}, slots, {depth}], got {cache.dtype} {dims}")
    check_sizes(WHO, x.shape[0], seq_lens=seq_lens)
    check_sizes(WHO, 1, time_step=time_step)
    if time_step is None:
        return _Whole(x.shape[0], x.shape[1], heads, depth, caches, pre_caches, seq_lens, mask, x.dtype)
    if not caches or x.shape[1] != 1:
        raise invalid(WHO, f"time_step: expected cache_kvs and x of one token a sequence, got"
                           f" {'caches' if caches else 'no caches'} and {x.shape[1]} tokens")
    return _OneToken(x.shape[0], heads, depth, caches, seq_lens, time_step, mask)


class _Attention:
    """State of one call that its layers share. ends [batch, length] is where sequences of different lengths have tokens."""

    ends, table, sections = None, None, 0

    def turn_by(self, table, sections):
        expected = [2, self.batch, 1, self.length, self.depth]
        if table is None or table.size not in (2 * self.length * self.depth, 2 * self.batch * self.length * self.depth):
            raise invalid(WHO, f"rotary_embs: expected {expected}, got {None if table is None else list(table.shape)}")
        self.table, self.sections = _core.reshape(table, [2, -1, 1, 1, self.length, self.depth]), sections

    def split(self, qkv):
        """(queries, pair of keys and values) [batch, …, heads, length, D] of qkv [batch, length, 3 · heads · D], turned."""
        qkv = _core.transpose(_core.reshape(qkv, [self.batch, self.length, 3, self.heads, self.depth]), [0, 2, 3, 1, 4])
        if self.table is None:
            return qkv[:, 0], qkv[:, 1:]
        turned = turned_sections(qkv[:, :2], self.table[0], self.table[1], self.sections)
        return turned[:, 0], _core.concat([turned[:, 1:], qkv[:, 2:]], 1)


class _OneToken(_Attention):
    """A decoding step."""

    length = 1

    def __init__(self, batch, heads, depth, caches, seq_lens, time_step, mask):
        self.batch, self.heads, self.depth, self.caches = batch, heads, depth, caches
        at = time_step if seq_lens is None else seq_lens
        self.step = Step(WHO, at, batch, caches[0], mask, idle_at_zero=seq_lens is not None)

    @no_grad()
    def __call__(self, qkv, layer):
        query, pair = self.split(qkv)
        cache = self.caches[layer]
        self.step.write(cache, _core.transpose(pair[:, :, :, 0], [1, 0, 2, 3]))
        return _core.unsqueeze(self.step.attend(query[:, :, 0], cache), [1])


class _Whole(_Attention):
    """All tokens of the sequences at once, which fill the caches if there are some."""

    def __init__(self, batch, length, heads, depth, caches, pre_caches, seq_lens, mask, dtype):
        self.batch, self.length, self.heads, self.depth = batch, length, heads, depth
        self.caches, self.pre_caches = caches, pre_caches
        self.before = pre_caches[0].shape[3] if pre_caches else 0
        self.mask = _convert_attention_mask(mask, dtype)
        whole = [batch, heads, length, self.before + length]
        if mask is not None and (mask.ndim > 4 or any(n not in (1, m) for n, m in zip(mask.shape[::-1], whole[::-1]))):
            raise invalid(WHO, f"attn_mask: expected {[batch, 1, *whole[2:]]}, got {list(mask.shape)}")
        if caches and self.before + length > caches[0].shape[3]:
            raise invalid(WHO, f"cache_kvs have {caches[0].shape[3]} slots, expected at least {self.before + length}")
        if seq_lens is not None:
            lengths = _core.reshape(_core.cast(seq_lens, "int64"), [batch, 1])
            self.ends = _core.arange(0, length, 1, "int64") < lengths
            seen = _core.arange(0, self.before + length, 1, "int64") < lengths + self.before
            seen = _core.reshape(seen, [batch, 1, 1, self.before + length])
            nothing = _core.full([], 0.0, dtype) if self.mask is None else self.mask
            self.mask = _core.where(seen, nothing, _core.full([], FAR, dtype))

    def __call__(self, qkv, layer):
        query, pair = self.split(qkv)
        key, value = pair[:, 0], pair[:, 1]
        if self.pre_caches:
            key, value = (_core.concat([self.pre_caches[layer][i], t], 2) for i, t in enumerate((key, value)))
        if self.caches:
            self._fill(self.caches[layer], key, value)
        query, key, value = (_core.transpose(t, [0, 2, 1, 3]) for t in (query, key, value))
        mask = None if self.mask is None else of_dtype(self.mask, query.dtype)
        out = _core.scaled_dot_product_attention(query, key, value, mask, 0.0, False, False)[0]
        return _core.reshape(out, [self.batch, self.length, self.heads * self.depth])

    @no_grad()
    def _fill(self, cache, key, value):
        pair = _core.stack([key, value])
        if self.ends is not None:
            kept = _core.concat([_core.full([self.batch, self.before], True, "bool"), self.ends], 1)
            pair = _core.where(_core.reshape(kept, [1, self.batch, 1, -1, 1]), pair, _core.full([], 0.0, pair.dtype))
        cache[:, :self.batch, :, :pair.shape[3]] = of_dtype(pair, cache.dtype)
