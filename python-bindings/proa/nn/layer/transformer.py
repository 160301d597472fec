"""Transformer layers: multi-head attention with caches, encoder, decoder, and both together."""
import collections
import copy

from ... import _core
from ...framework.dtype import dtype_name, get_default_dtype
from ...framework.param_attr import ParamAttr
from .. import functional as F
from .common import Dropout, Linear
from .container import LayerList
from .layers import Layer
from .norm import LayerNorm

__all__ = ["MultiHeadAttention", "Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder",
           "TransformerEncoderLayer"]

LONGEST_FUSED_HEAD = 128  # elements; longer heads are not for tensor cores


def _positive(owner, **sizes):
    for name, value in sizes.items():
        if value <= 0:
            raise AssertionError(f"{owner}: {name} must be greater than 0, got {value}")


def _convert_param_attr_to_list(attr, n, what="param_attr"):
    """A parameter attribute for each of n parts: a list as it is, one attribute copied with names numbered."""
    if isinstance(attr, (list, tuple)):
        if len(attr) != n:
            raise ValueError(f"{what} must have {n} entries when it is a list, got {len(attr)}")
        return [ParamAttr._to_attr(None if a is True else a) for a in attr]
    attr = ParamAttr._to_attr(None if attr is True else attr)
    copies = [copy.deepcopy(attr) for _ in range(n)]
    if attr is not False and attr.name:
        for i, one in enumerate(copies):
            one.name = f"{attr.name}_{i}"
    return copies


def _convert_attention_mask(mask, dtype):
    """An additive mask: where a bool or integer mask is 0, scores fall by 1e9."""
    if mask is None or mask.dtype == dtype:
        return mask
    name = dtype_name(mask.dtype)
    mask = _core.cast(mask, dtype)
    if name == "bool" or "int" in name:
        mask = _core.scale(mask, 1e9, bias=-1.0, bias_after_scale=False)
    return mask


class MultiHeadAttention(Layer):
    """Attention of num_heads heads, each on its own projection of query, key and value.

    forward(query, key=None, value=None, attn_mask=None, cache=None): [batch, length, embed_dim] each; with
    need_weights the weights follow the output, and with a cache the cache for the next step does.

    >>> import proa as paddle
    >>> paddle.nn.MultiHeadAttention(8, 2)(paddle.rand([2, 4, 8])).shape
    [2, 4, 8]
    """

    Cache = collections.namedtuple("Cache", ["k", "v"])
    StaticCache = collections.namedtuple("StaticCache", ["k", "v"])

    def __init__(self, embed_dim, num_heads, dropout=0.0, kdim=None, vdim=None, need_weights=False, weight_attr=None,
                 bias_attr=None):
        super().__init__()
        _positive("MultiHeadAttention", embed_dim=embed_dim, num_heads=num_heads)
        if embed_dim % num_heads:
            raise AssertionError(f"MultiHeadAttention: embed_dim {embed_dim} must be divisible by num_heads {num_heads}")
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self.dropout, self.need_weights = dropout, need_weights
        self.q_proj = Linear(embed_dim, embed_dim, weight_attr, bias_attr=bias_attr)
        self.k_proj = Linear(self.kdim, embed_dim, weight_attr, bias_attr=bias_attr)
        self.v_proj = Linear(self.vdim, embed_dim, weight_attr, bias_attr=bias_attr)
        self.out_proj = Linear(embed_dim, embed_dim, weight_attr, bias_attr=bias_attr)

    def _split(self, x):
        return _core.reshape(x, [0, 0, self.num_heads, self.head_dim])

    def _heads(self, x):
        return _core.transpose(self._split(x), [0, 2, 1, 3])

    def compute_kv(self, key, value):
        """key and value projected and split into heads: [batch, heads, length, head_dim]."""
        return self._heads(self.k_proj(key)), self._heads(self.v_proj(value))

    def gen_cache(self, key, value=None, type=Cache):
        """A cache: StaticCache of projected key and value, or a Cache that grows (empty, or begun with key, value)."""
        if type == MultiHeadAttention.StaticCache:
            return self.StaticCache(*self.compute_kv(key, value))
        if value is not None:
            return self.Cache(key, value)
        shape = [key.shape[0], self.num_heads, 0, self.head_dim]
        return self.Cache(_core.full(shape, 0.0, key.dtype), _core.full(shape, 0.0, key.dtype))

    def _prepare_qkv(self, query, key, value, cache=None):
        """Projected heads: (q, k, v), and the new cache if one was given. For subclasses to change, as for rotary
        positions."""
        q = self._heads(self.q_proj(query))
        if isinstance(cache, self.StaticCache):
            k, v = cache
        else:
            k, v = self.compute_kv(key, value)
        if isinstance(cache, self.Cache):
            k, v = _core.concat([cache.k, k], axis=2), _core.concat([cache.v, v], axis=2)
            cache = self.Cache(k, v)
        return (q, k, v) if cache is None else (q, k, v, cache)

    def _fits_one_kernel(self, mask, cache):
        """Whether nothing needs the weights or the heads, and the device has a kernel of attention as a whole that pays."""
        whose = type(self)
        return (_core.get_device() != "cpu" and not self.need_weights and cache is None
                and self.head_dim <= LONGEST_FUSED_HEAD and (mask is None or mask.stop_gradient)
                and whose.compute_kv is MultiHeadAttention.compute_kv
                and whose._prepare_qkv is MultiHeadAttention._prepare_qkv)

    def _fused(self, q, key, value, mask):
        """The heads' joint output, of q [batch, length, heads, head_dim]; no weights are stored."""
        k, v = self._split(self.k_proj(key)), self._split(self.v_proj(value))
        out = _core.scaled_dot_product_attention(q, k, v, _convert_attention_mask(mask, q.dtype), self.dropout, False,
                                                 self.training)[0]
        return _core.reshape(out, [0, 0, self.embed_dim])

    def forward(self, query, key=None, value=None, attn_mask=None, cache=None):
        key = query if key is None else key
        value = query if value is None else value
        if self._fits_one_kernel(attn_mask, cache):
            q = self._split(self.q_proj(query))
            if dtype_name(q.dtype) in ("float16", "bfloat16") or _core.get_flag("allow_tf32") == "1":
                return self.out_proj(self._fused(q, key, value, attn_mask))
            prepared = (_core.transpose(q, [0, 2, 1, 3]), *self.compute_kv(key, value))
        else:
            prepared = self._prepare_qkv(query, key, value, cache)
        q, k, v, cache = (*prepared, None) if cache is None else prepared
        scores = _core.matmul(_core.scale(q, self.head_dim ** -0.5), k, transpose_y=True)
        if attn_mask is not None:
            scores = _core.add(scores, _convert_attention_mask(attn_mask, scores.dtype))
        weights = _core.softmax(scores)
        if self.dropout:
            weights = F.dropout(weights, self.dropout, training=self.training, mode="upscale_in_train")
        out = _core.transpose(_core.matmul(weights, v), [0, 2, 1, 3])
        own = type(self)._prepare_qkv is not MultiHeadAttention._prepare_qkv  # whose heads may be others
        out = self.out_proj(_core.reshape(out, [0, 0, -1 if own else self.embed_dim]))
        if not self.need_weights and cache is None:
            return out
        return (out, *([weights] if self.need_weights else []), *([] if cache is None else [cache]))


class _Block(Layer):
    """Base of encoder and decoder layers: the feed-forward part, and the addition of a part to its input."""

    def _build(self, d_model, nhead, dim_feedforward, dropout, activation, attn_dropout, act_dropout,
               normalize_before, weight_attr, bias_attr, attentions):
        who = type(self).__name__
        _positive(who, d_model=d_model, nhead=nhead, dim_feedforward=dim_feedforward)
        attn_dropout = dropout if attn_dropout is None else attn_dropout
        act_dropout = dropout if act_dropout is None else act_dropout
        self.normalize_before = normalize_before
        n = len(attentions)
        weights = _convert_param_attr_to_list(weight_attr, n + 1, f"{who}: weight_attr")
        biases = _convert_param_attr_to_list(bias_attr, n + 1, f"{who}: bias_attr")
        for i, name in enumerate(attentions):
            setattr(self, name, MultiHeadAttention(d_model, nhead, dropout=attn_dropout, weight_attr=weights[i],
                                                   bias_attr=biases[i]))
        self.linear1 = Linear(d_model, dim_feedforward, weights[n], bias_attr=biases[n])
        self.dropout = Dropout(act_dropout, mode="upscale_in_train")
        self.linear2 = Linear(dim_feedforward, d_model, weights[n], bias_attr=biases[n])
        for i in range(1, n + 2):
            setattr(self, f"norm{i}", LayerNorm(d_model))
        for i in range(1, n + 2):
            setattr(self, f"dropout{i}", Dropout(dropout, mode="upscale_in_train"))
        self.activation = getattr(F, activation)

    def _added(self, x, part, norm, dropout):
        """x + dropout(part(x)), normalized before the part or after the sum; and what else the part returned."""
        y = part(norm(x) if self.normalize_before else x)
        y, rest = y if isinstance(y, tuple) else (y, None)
        x = _core.add(x, dropout(y))
        return (x if self.normalize_before else norm(x)), rest

    def _feed_forward(self, x):
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Block):
    """Self-attention and a feed-forward part, each added to its input and normalized."""

    def __init__(self, d_model, nhead, dim_feedforward, dropout=0.1, activation="relu", attn_dropout=None,
                 act_dropout=None, normalize_before=False, weight_attr=None, bias_attr=None):
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        super().__init__()
        self._config = config
        self._build(**config, attentions=["self_attn"])

    def forward(self, src, src_mask=None, cache=None):
        mask = _convert_attention_mask(src_mask, src.dtype)
        src, new = self._added(src, lambda x: self.self_attn(x, x, x, mask, cache), self.norm1, self.dropout1)
        src, _ = self._added(src, self._feed_forward, self.norm2, self.dropout2)
        return src if cache is None else (src, new)

    def gen_cache(self, src):
        """An empty cache for a batch like src."""
        return self.self_attn.gen_cache(src, type=self.self_attn.Cache)


def _stack(layer, n):
    """n layers: the one given and others made with its arguments."""
    return LayerList([layer if i == 0 else type(layer)(**layer._config) for i in range(n)])


class TransformerEncoder(Layer):
    """num_layers encoder layers one after the other, then norm, if given."""

    def __init__(self, encoder_layer, num_layers, norm=None):
        super().__init__()
        self.layers = _stack(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(self, src, src_mask=None, cache=None):
        mask, caches = _convert_attention_mask(src_mask, src.dtype), []
        for i, layer in enumerate(self.layers):
            if cache is None:
                src = layer(src, src_mask=mask)
            else:
                src, new = layer(src, src_mask=mask, cache=cache[i])
                caches.append(new)
        if self.norm is not None:
            src = self.norm(src)
        return src if cache is None else (src, caches)

    def gen_cache(self, src):
        """Each layer's empty cache."""
        return [layer.gen_cache(src) for layer in self.layers]


class TransformerDecoderLayer(_Block):
    """Self-attention, attention to the encoder's memory and a feed-forward part, each added and normalized."""

    def __init__(self, d_model, nhead, dim_feedforward, dropout=0.1, activation="relu", attn_dropout=None,
                 act_dropout=None, normalize_before=False, weight_attr=None, bias_attr=None):
        config = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        super().__init__()
        self._config = config
        self._build(**config, attentions=["self_attn", "cross_attn"])

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, cache=None):
        own, static = (None, None) if cache is None else cache
        tgt_mask = _convert_attention_mask(tgt_mask, tgt.dtype)
        memory_mask = _convert_attention_mask(memory_mask, memory.dtype)
        tgt, own = self._added(tgt, lambda x: self.self_attn(x, x, x, tgt_mask, own), self.norm1, self.dropout1)
        tgt, static = self._added(tgt, lambda x: self.cross_attn(x, memory, memory, memory_mask, static), self.norm2,
                                  self.dropout2)
        tgt, _ = self._added(tgt, self._feed_forward, self.norm3, self.dropout3)
        return tgt if cache is None else (tgt, (own, static))

    def gen_cache(self, memory):
        """An empty cache for self-attention and the memory's projections."""
        return (self.self_attn.gen_cache(memory, type=self.self_attn.Cache),
                self.cross_attn.gen_cache(memory, memory, type=self.cross_attn.StaticCache))


class TransformerDecoder(Layer):
    """num_layers decoder layers one after the other, then norm, if given."""

    def __init__(self, decoder_layer, num_layers, norm=None):
        super().__init__()
        self.layers = _stack(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(self, tgt, memory, tgt_mask=None, memory_mask=None, cache=None):
        masks = {"tgt_mask": _convert_attention_mask(tgt_mask, tgt.dtype),
                 "memory_mask": _convert_attention_mask(memory_mask, memory.dtype)}
        caches = []
        for i, layer in enumerate(self.layers):
            if cache is None:
                tgt = layer(tgt, memory, **masks, cache=None)
            else:
                tgt, new = layer(tgt, memory, **masks, cache=cache[i])
                caches.append(new)
        if self.norm is not None:
            tgt = self.norm(tgt)
        return tgt if cache is None else (tgt, caches)

    def gen_cache(self, memory, do_zip=False):
        """Each layer's caches; do_zip: all of the first kind, then all of the second."""
        caches = [layer.gen_cache(memory) for layer in self.layers]
        return list(zip(*caches)) if do_zip else caches


def _sides(attr, what):
    """A Transformer's attribute list as its encoder's (2 parts) and its decoder's (3 parts)."""
    if not isinstance(attr, (list, tuple)):
        return attr, attr
    if len(attr) not in (1, 2, 3):
        raise ValueError(f"Transformer: {what} must have 1, 2 or 3 entries when it is a list, got {len(attr)}")
    middle = attr[1] if len(attr) == 3 else attr[0]
    return [attr[0], attr[-1]], [attr[0], middle, attr[-1]]


class Transformer(Layer):
    """Encoder and decoder: forward(src, tgt, src_mask=None, tgt_mask=None, memory_mask=None).

    >>> import proa as paddle
    >>> net = paddle.nn.Transformer(8, 2, 1, 1, 16)
    >>> net(paddle.rand([2, 4, 8]), paddle.rand([2, 3, 8])).shape
    [2, 3, 8]
    """

    def __init__(self, d_model=512, nhead=8, num_encoder_layers=6, num_decoder_layers=6, dim_feedforward=2048,
                 dropout=0.1, activation="relu", attn_dropout=None, act_dropout=None, normalize_before=False,
                 weight_attr=None, bias_attr=None, custom_encoder=None, custom_decoder=None):
        super().__init__()
        _positive("Transformer", d_model=d_model, nhead=nhead, dim_feedforward=dim_feedforward)
        weights, biases = _sides(weight_attr, "weight_attr"), _sides(bias_attr, "bias_attr")
        common = (d_model, nhead, dim_feedforward, dropout, activation, attn_dropout, act_dropout, normalize_before)
        if custom_encoder is None:
            layer = TransformerEncoderLayer(*common, weights[0], biases[0])
            custom_encoder = TransformerEncoder(layer, num_encoder_layers, LayerNorm(d_model))
        self.encoder = custom_encoder
        if custom_decoder is None:
            layer = TransformerDecoderLayer(*common, weights[1], biases[1])
            custom_decoder = TransformerDecoder(layer, num_decoder_layers, LayerNorm(d_model))
        self.decoder = custom_decoder
        self.d_model, self.nhead = d_model, nhead

    def forward(self, src, tgt, src_mask=None, tgt_mask=None, memory_mask=None):
        memory = self.encoder(src, src_mask=_convert_attention_mask(src_mask, src.dtype))
        return self.decoder(tgt, memory, tgt_mask=_convert_attention_mask(tgt_mask, tgt.dtype),
                            memory_mask=_convert_attention_mask(memory_mask, memory.dtype))

    def generate_square_subsequent_mask(self, length):
        """[length, length]: -inf above the diagonal, 0 elsewhere."""
        return _core.triu(_core.full([length, length], float("-inf"), get_default_dtype()), 1)
