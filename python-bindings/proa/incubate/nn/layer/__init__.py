"""Layers over paddle.incubate.nn.functional; parameters and their names are Paddle's."""
from ....framework.dtype import dtype_name
from ....nn import Layer
from ....nn import functional as N
from ....nn.initializer import Constant
from ....nn.layer.transformer import _convert_attention_mask, _convert_param_attr_to_list
from .. import functional as F
from ..multi_transformer import WEIGHTS

__all__ = ["FusedMultiHeadAttention", "FusedFeedForward", "FusedTransformerEncoderLayer", "FusedMultiTransformer",
           "FusedLinear", "FusedBiasDropoutResidualLayerNorm", "FusedEcMoe", "FusedDropoutAdd"]


def _check_positive(who, **sizes):
    for name, size in sizes.items():
        if size <= 0:
            raise AssertionError(f"{who}: {name}: expected more than 0, got {size}")


def _own_share(who, nranks, ring_id, **sizes):
    """A rank's part of each size; a group is needed if there are several ranks."""
    if nranks > 1 and ring_id == -1:
        raise AssertionError(f"{who}: ring_id: expected the group of the {nranks} ranks, got -1")
    for name, size in sizes.items():
        if size % nranks:
            raise AssertionError(f"{who}: {name}: expected a multiple of the {nranks} ranks, got {size}")
    return [size // nranks for size in sizes.values()]


def _named(name):
    return f", name={name}" if name else ""


def _of_layer(kind, attrs, layer, count):
    """One layer's attribute, of a list with one for each or of one for all."""
    if not isinstance(attrs, (list, tuple)):
        return attrs
    if len(attrs) != count:
        raise AssertionError(f"FusedMultiTransformer: {kind}: expected attributes of {count} layers, got {len(attrs)}")
    return attrs[layer]


def _divide(nranks, ring_id, *parameters):
    """Marks the parameters of which each rank of the group has its own part: norms are summed over them."""
    for parameter in parameters:
        if nranks > 1 and parameter is not None:
            parameter.is_distributed, parameter.split_group = True, ring_id


class _Fused(Layer):
    def _norm(self, width, weight_attr=None, bias_attr=None):
        """(scale, bias) of a layer norm."""
        return (self.create_parameter([width], attr=weight_attr, default_initializer=Constant(1.0)),
                self.create_parameter([width], attr=bias_attr, is_bias=True))


class FusedLinear(Layer):
    """x · weight + bias, weight [in, out], or [out, in] with transpose_weight."""

    def __init__(self, in_features, out_features, weight_attr=None, bias_attr=None, transpose_weight=False, name=None):
        super().__init__()
        shape = [out_features, in_features] if transpose_weight else [in_features, out_features]
        self.weight = self.create_parameter(shape, attr=weight_attr)
        self.bias = self.create_parameter([out_features], attr=bias_attr, is_bias=True)
        self.transpose_weight, self.name = transpose_weight, name

    def forward(self, input):
        return F.fused_linear(input, self.weight, self.bias, self.transpose_weight)


class FusedDropoutAdd(Layer):
    """dropout(x) + y."""

    def __init__(self, p=0.5, mode="upscale_in_train", name=None):
        super().__init__()
        self.p, self.mode, self.name = p, mode, name

    def forward(self, x, y):
        return F.fused_dropout_add(x, y, self.p, self.training, self.mode)

    def extra_repr(self):
        return f"p={self.p}, mode={self.mode}" + _named(self.name)


class FusedDropout(Layer):
    """nn.Dropout, of which a kernel of Paddle's takes any axis."""

    def __init__(self, p=0.5, axis=None, mode="upscale_in_train", name=None):
        super().__init__()
        if not isinstance(p, (int, float)):
            raise TypeError(f"FusedDropout: p: expected a number, got {type(p).__name__}")
        if not 0 <= p <= 1:
            raise ValueError(f"FusedDropout: p: expected 0 to 1, got {p}")
        if mode not in ("upscale_in_train", "downscale_in_infer"):
            raise ValueError(f"FusedDropout: mode: expected 'upscale_in_train' or 'downscale_in_infer', got {mode!r}")
        self.p, self.mode, self.name = p, mode, name
        self.axis = [axis] if isinstance(axis, int) else None if axis is None else list(axis)

    def forward(self, input):
        return input if self.p == 0 else N.dropout(input, self.p, self.axis, self.training, self.mode)

    def extra_repr(self):
        return f"p={self.p}, axis={self.axis}, mode={self.mode}" + _named(self.name)


class FusedBiasDropoutResidualLayerNorm(_Fused):
    """layer_norm(residual + dropout(x + bias))."""

    def __init__(self, embed_dim, dropout_rate=0.5, weight_attr=None, bias_attr=None, epsilon=1e-5, name=None):
        super().__init__()
        _check_positive("FusedBiasDropoutResidualLayerNorm", embed_dim=embed_dim)
        self.linear_bias = self.create_parameter([embed_dim], attr=bias_attr, is_bias=True)
        self.ln_scale, self.ln_bias = self._norm(embed_dim, weight_attr, bias_attr)
        self.embed_dim, self.dropout_rate, self._epsilon, self.name = embed_dim, dropout_rate, epsilon, name

    def forward(self, x, residual):
        return F.fused_bias_dropout_residual_layer_norm(x, residual, self.linear_bias, self.ln_scale, self.ln_bias,
                                                        self.dropout_rate, self._epsilon, self.training)


class FusedMultiHeadAttention(_Fused):
    """Self attention with residual and layer norm; qkv_weight is [3, heads, D, embed]."""

    def __init__(self, embed_dim, num_heads, dropout_rate=0.5, attn_dropout_rate=0.5, kdim=None, vdim=None,
                 normalize_before=False, need_weights=False, qkv_weight_attr=None, qkv_bias_attr=None,
                 linear_weight_attr=None, linear_bias_attr=None, pre_ln_scale_attr=None, pre_ln_bias_attr=None,
                 ln_scale_attr=None, ln_bias_attr=None, epsilon=1e-5, nranks=1, ring_id=-1, transpose_qkv_wb=False,
                 name=None):
        super().__init__()
        _check_positive("FusedMultiHeadAttention", embed_dim=embed_dim, num_heads=num_heads)
        if embed_dim % num_heads or need_weights:
            raise AssertionError("FusedMultiHeadAttention: expected embed_dim to be a multiple of num_heads and need_weights=False"
                                 f", got {embed_dim} and {num_heads}, {need_weights}")
        depth = embed_dim // num_heads
        num_heads, = _own_share("FusedMultiHeadAttention", nranks, ring_id, num_heads=num_heads)
        own = num_heads * depth
        self.qkv_weight = self.create_parameter(
            [embed_dim, 3 * own] if transpose_qkv_wb else [3, num_heads, depth, embed_dim], attr=qkv_weight_attr)
        self.qkv_bias = self.create_parameter([3 * own] if transpose_qkv_wb else [3, num_heads, depth],
                                              attr=qkv_bias_attr, is_bias=True)
        self.linear_weight = self.create_parameter([own, embed_dim], attr=linear_weight_attr)
        _divide(nranks, ring_id, self.qkv_weight, self.qkv_bias, self.linear_weight)
        self.linear_bias = self.create_parameter([embed_dim], attr=linear_bias_attr, is_bias=True)
        self.pre_ln_scale = self.pre_ln_bias = self.ln_scale = self.ln_bias = None
        if normalize_before:
            self.pre_ln_scale, self.pre_ln_bias = self._norm(embed_dim, pre_ln_scale_attr, pre_ln_bias_attr)
        else:
            self.ln_scale, self.ln_bias = self._norm(embed_dim, ln_scale_attr, ln_bias_attr)
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, depth
        self.dropout_rate, self.attn_dropout_rate, self._epsilon = dropout_rate, attn_dropout_rate, epsilon
        self.normalize_before, self.transpose_qkv_wb, self._ring_id, self.name = (normalize_before, transpose_qkv_wb,
                                                                                  ring_id, name)
        self.kdim, self.vdim, self.need_weights = kdim, vdim, need_weights

    def forward(self, query, key=None, value=None, attn_mask=None, cache=None):
        return F.fused_multi_head_attention(
            query, self.qkv_weight, self.linear_weight, self.normalize_before, self.pre_ln_scale, self.pre_ln_bias,
            self.ln_scale, self.ln_bias, self._epsilon, self.qkv_bias, self.linear_bias, cache,
            _convert_attention_mask(attn_mask, query.dtype),
            self.dropout_rate, self.attn_dropout_rate, self._epsilon, self.training, ring_id=self._ring_id,
            num_heads=self.num_heads, transpose_qkv_wb=self.transpose_qkv_wb)

    def extra_repr(self):
        return (f"embed_dim={self.embed_dim}, num_heads={self.num_heads}, dropout_rate={self.dropout_rate}, "
                f"attn_dropout_rate={self.attn_dropout_rate}, epsilon={self._epsilon}, kdim={self.kdim}, vdim={self.vdim}, "
                f"normalize_before={self.normalize_before}, need_weights={self.need_weights}, dtype={dtype_name(self._dtype)}"
                + _named(self.name))


class FusedFeedForward(_Fused):
    """Two linear maps with residual and layer norm."""

    def __init__(self, d_model, dim_feedforward, dropout_rate=0.1, epsilon=1e-5, activation="relu",
                 act_dropout_rate=None, normalize_before=False, linear1_weight_attr=None, linear1_bias_attr=None,
                 linear2_weight_attr=None, linear2_bias_attr=None, ln1_scale_attr=None, ln1_bias_attr=None,
                 ln2_scale_attr=None, ln2_bias_attr=None, nranks=1, ring_id=-1, name=None):
        super().__init__()
        _check_positive("FusedFeedForward", d_model=d_model, dim_feedforward=dim_feedforward)
        dim_feedforward, = _own_share("FusedFeedForward", nranks, ring_id, dim_feedforward=dim_feedforward)
        self._linear1_weight = self.create_parameter([d_model, dim_feedforward], attr=linear1_weight_attr)
        self._linear1_bias = self.create_parameter([dim_feedforward], attr=linear1_bias_attr, is_bias=True)
        self._linear2_weight = self.create_parameter([dim_feedforward, d_model], attr=linear2_weight_attr)
        self._linear2_bias = self.create_parameter([d_model], attr=linear2_bias_attr, is_bias=True)
        _divide(nranks, ring_id, self._linear1_weight, self._linear1_bias, self._linear2_weight)
        self._ln1_scale = self._ln1_bias = self._ln2_scale = self._ln2_bias = None
        if normalize_before:
            self._ln1_scale, self._ln1_bias = self._norm(d_model, ln1_scale_attr, ln1_bias_attr)
        else:
            self._ln2_scale, self._ln2_bias = self._norm(d_model, ln2_scale_attr, ln2_bias_attr)
        self._d_model, self._dim_feedforward, self._dropout_rate = d_model, dim_feedforward, dropout_rate
        self._act_dropout_rate = dropout_rate if act_dropout_rate is None else act_dropout_rate
        self._act_method, self._normalize_before, self._epsilon = activation, normalize_before, epsilon
        self._ring_id, self.name = ring_id, name

    def forward(self, src, cache=None):
        return F.fused_feedforward(
            src, self._linear1_weight, self._linear2_weight, self._linear1_bias, self._linear2_bias, self._ln1_scale,
            self._ln1_bias, self._ln2_scale, self._ln2_bias, self._act_dropout_rate, self._dropout_rate,
            self._act_method, self._epsilon, self._epsilon, self._normalize_before, self.training,
            ring_id=self._ring_id)

    def extra_repr(self):
        return (f"d_model={self._d_model}, dim_feedforward={self._dim_feedforward}, dropout_rate={self._dropout_rate}, "
                f"epsilon={self._epsilon}, activation={self._act_method}, act_dropout_rate={self._act_dropout_rate}, "
                f"normalize_before={self._normalize_before}, dtype={dtype_name(self._dtype)}" + _named(self.name))


class FusedTransformerEncoderLayer(Layer):
    """FusedMultiHeadAttention, then FusedFeedForward."""

    def __init__(self, d_model, nhead, dim_feedforward, dropout_rate=0.1, activation="relu", attn_dropout_rate=None,
                 act_dropout_rate=None, normalize_before=False, weight_attr=None, bias_attr=None):
        super().__init__()
        _check_positive("FusedTransformerEncoderLayer", d_model=d_model, nhead=nhead, dim_feedforward=dim_feedforward)
        self.normalize_before = normalize_before
        weight, bias = (_convert_param_attr_to_list(attr, 2) for attr in (weight_attr, bias_attr))
        self.fused_attn = FusedMultiHeadAttention(
            d_model, nhead, dropout_rate, dropout_rate if attn_dropout_rate is None else attn_dropout_rate,
            normalize_before=normalize_before, qkv_weight_attr=weight[0], qkv_bias_attr=bias[0],
            linear_weight_attr=weight[0], linear_bias_attr=bias[0], pre_ln_scale_attr=weight[0],
            pre_ln_bias_attr=bias[0], ln_scale_attr=weight[0], ln_bias_attr=bias[0])
        self.ffn = FusedFeedForward(
            d_model, dim_feedforward, dropout_rate, activation=activation, act_dropout_rate=act_dropout_rate,
            normalize_before=normalize_before, linear1_weight_attr=weight[1], linear1_bias_attr=bias[1],
            linear2_weight_attr=weight[1], linear2_bias_attr=bias[1])

    def forward(self, src, src_mask=None, cache=None):
        out = self.fused_attn(src, attn_mask=src_mask, cache=cache)
        if cache is None:
            return self.ffn(out)
        return self.ffn(out[0]), out[1]


class FusedMultiTransformer(_Fused):
    """num_layers transformer layers for generation, whose caches are written in place: fused_multi_transformer. Attributes may
    be lists, one a layer. As in Paddle, parameters are in lists, which parameters() and state_dict() do not look into.

    >>> model = paddle.incubate.nn.FusedMultiTransformer(8, 2, 16, num_layers=1)
    >>> caches = [paddle.zeros([2, 1, 2, 6, 4])]
    >>> model(paddle.rand([1, 3, 8]), caches=caches)[0].shape
    [1, 3, 8]
    >>> model(paddle.rand([1, 1, 8]), caches=caches, time_step=paddle.to_tensor([3], "int32"))[0].shape
    [1, 1, 8]
    """

    def __init__(self, embed_dim, num_heads, dim_feedforward, dropout_rate=0.0, activation="gelu", normalize_before=True,
                 ln_scale_attrs=None, ln_bias_attrs=None, qkv_weight_attrs=None, qkv_bias_attrs=None,
                 linear_weight_attrs=None, linear_bias_attrs=None, ffn_ln_scale_attrs=None, ffn_ln_bias_attrs=None,
                 ffn1_weight_attrs=None, ffn1_bias_attrs=None, ffn2_weight_attrs=None, ffn2_bias_attrs=None, epsilon=1e-5,
                 num_layers=-1, nranks=1, trans_qkvw=True, ring_id=-1, name=None):
        super().__init__()
        _check_positive("FusedMultiTransformer", embed_dim=embed_dim, num_heads=num_heads, dim_feedforward=dim_feedforward)
        if embed_dim % num_heads:
            raise AssertionError(f"FusedMultiTransformer: embed_dim {embed_dim} must be divisible by num_heads {num_heads}")
        self.embed_dim, self.num_heads, self.head_dim = embed_dim, num_heads, embed_dim // num_heads
        heads, inner = _own_share("FusedMultiTransformer", nranks, ring_id, num_heads=num_heads, dim_feedforward=dim_feedforward)
        count = len(qkv_weight_attrs) if isinstance(qkv_weight_attrs, (list, tuple)) else num_layers
        _check_positive("FusedMultiTransformer", num_layers=count)
        self.normalize_before, self._epsilon, self._trans_qkvw, self._ring_id = normalize_before, epsilon, trans_qkvw, ring_id
        self._dim_feedforward, self.dropout_rate, self.activation, self.name = inner, dropout_rate, activation, name
        qkv = [3, heads, self.head_dim, embed_dim] if trans_qkvw else [embed_dim, 3, heads, self.head_dim]
        one = Constant(1.0)
        kinds = {"ln_scales": ([embed_dim], ln_scale_attrs, one), "ln_biases": ([embed_dim], ln_bias_attrs, None),
                 "qkv_weights": (qkv, qkv_weight_attrs, None), "qkv_biases": ([3, heads, self.head_dim], qkv_bias_attrs, None),
                 "linear_weights": ([heads * self.head_dim, embed_dim], linear_weight_attrs, None),
                 "linear_biases": ([embed_dim], linear_bias_attrs, None),
                 "ffn_ln_scales": ([embed_dim], ffn_ln_scale_attrs, one), "ffn_ln_biases": ([embed_dim], ffn_ln_bias_attrs, None),
                 "ffn1_weights": ([embed_dim, inner], ffn1_weight_attrs, None), "ffn1_biases": ([inner], ffn1_bias_attrs, None),
                 "ffn2_weights": ([inner, embed_dim], ffn2_weight_attrs, None), "ffn2_biases": ([embed_dim], ffn2_bias_attrs, None)}
        for kind in kinds:
            setattr(self, kind, [])
        for layer in range(count):
            for kind, (shape, attrs, initial) in kinds.items():
                attr = _of_layer(kind, attrs, layer, count)
                getattr(self, kind).append(self.create_parameter(shape, attr=attr, is_bias=kind.endswith("biases"),
                                                                 default_initializer=initial))
        divided = ("qkv_weights", "qkv_biases", "ffn1_weights", "ffn1_biases", "linear_weights", "ffn2_weights")
        _divide(nranks, ring_id, *(parameter for kind in divided for parameter in getattr(self, kind)))

    def forward(self, src, attn_mask=None, caches=None, pre_caches=None, rotary_embs=None, rotary_emb_dims=0, seq_lens=None,
                time_step=None):
        return F.fused_multi_transformer(
            src, **{kind: getattr(self, kind) for kind in WEIGHTS}, pre_layer_norm=self.normalize_before, epsilon=self._epsilon,
            cache_kvs=caches, pre_caches=pre_caches, seq_lens=seq_lens, rotary_embs=rotary_embs, time_step=time_step,
            attn_mask=attn_mask, dropout_rate=self.dropout_rate, rotary_emb_dims=rotary_emb_dims, activation=self.activation,
            training=self.training, trans_qkvw=self._trans_qkvw, ring_id=self._ring_id)


class FusedEcMoe(Layer):
    """A mixture of experts of which each token takes all: fused_ec_moe."""

    def __init__(self, hidden_size, inter_size, num_experts, act_type, weight_attr=None, bias_attr=None):
        super().__init__()
        if act_type not in ("gelu", "relu"):
            raise NotImplementedError(f"FusedEcMoe: act_type: expected 'gelu' or 'relu', got {act_type!r}")
        self.bmm_weight0 = self.create_parameter([num_experts, hidden_size, inter_size], attr=weight_attr)
        self.bmm_bias0 = self.create_parameter([num_experts, 1, inter_size], attr=bias_attr, is_bias=True)
        self.bmm_weight1 = self.create_parameter([num_experts, inter_size, hidden_size], attr=weight_attr)
        self.bmm_bias1 = self.create_parameter([num_experts, 1, hidden_size], attr=bias_attr, is_bias=True)
        self.act_type = act_type

    def forward(self, x, gate):
        return F.fused_ec_moe(x, gate, self.bmm_weight0, self.bmm_bias0, self.bmm_weight1, self.bmm_bias1, self.act_type)
