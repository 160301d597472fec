"""Attention and the Transformer family: values, masks, caches, gradients."""
import paddle
from paddle import nn

from parity import case, fill, rand

M, TOL = "paddle.nn.MultiHeadAttention", 1e-4  # rounding grows with layers


@case(M, tol=TOL)
def attention():
    net = fill(nn.MultiHeadAttention(8, 2))
    x, y = rand(2, 4, 8), rand(2, 5, 8)
    return net(x), net(x, y, y), net(x, attn_mask=paddle.tril(paddle.ones([4, 4], dtype="bool"))), repr(net)


@case(M, tol=TOL)
def attention_dims():
    net = fill(nn.MultiHeadAttention(8, 2, kdim=6, vdim=5, need_weights=True))
    return net(rand(2, 4, 8), rand(2, 3, 6), rand(2, 3, 5), attn_mask=rand(4, 3))


@case(M, M + ".gen_cache", M + ".Cache", M + ".StaticCache", M + ".compute_kv", tol=TOL)
def attention_cache():
    net = fill(nn.MultiHeadAttention(8, 2))
    x, y = rand(2, 1, 8), rand(2, 5, 8)
    a, cache = net(x, x, x, cache=net.gen_cache(x))
    b, cache = net(x * 2, x, x, cache=cache)
    static = net.gen_cache(y, y, type=nn.MultiHeadAttention.StaticCache)
    return a, b, cache.k, cache.v, net(x, y, y, cache=static)[0], net.compute_kv(y, y)


@case("paddle.nn.TransformerEncoderLayer", "paddle.nn.TransformerEncoder", "paddle.nn.TransformerEncoder.gen_cache",
      "paddle.nn.TransformerEncoderLayer.gen_cache", tol=TOL)
def encoder():
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.1, activation="gelu", normalize_before=True)
    net = fill(nn.TransformerEncoder(layer, 2, nn.LayerNorm(8)))
    net.eval()
    x = rand(2, 4, 8)
    out, cache = net(x, cache=net.gen_cache(x))
    return net(x), net(x, paddle.tril(paddle.ones([4, 4], dtype="int64"))), out, cache[1].k, list(net.state_dict())


@case("paddle.nn.TransformerDecoderLayer", "paddle.nn.TransformerDecoder", "paddle.nn.TransformerDecoder.gen_cache",
      "paddle.nn.TransformerDecoderLayer.gen_cache", tol=TOL)
def decoder():
    net = fill(nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, 0.0), 2))
    x, memory = rand(2, 3, 8), rand(2, 4, 8)
    out, cache = net(x, memory, cache=net.gen_cache(memory))
    return net(x, memory), net(x, memory, rand(3, 3), rand(3, 4)), out, cache[0][0].k, \
        len(net.gen_cache(memory, do_zip=True)), repr(net)


@case("paddle.nn.Transformer", "paddle.nn.Transformer.generate_square_subsequent_mask", tol=TOL)
def transformer():
    net = fill(nn.Transformer(8, 2, 2, 1, 16, dropout=0.0))
    mask = net.generate_square_subsequent_mask(3)
    return net(rand(2, 4, 8), rand(2, 3, 8), tgt_mask=mask), mask, [n for n, _ in net.named_parameters()]


@case(M, grad=False)
def what_model_code_takes_from_the_module():
    from paddle.nn.layer.transformer import _convert_attention_mask, _convert_param_attr_to_list
    mask = paddle.to_tensor([[True, False]])
    many = [_convert_param_attr_to_list(one, 2) for one in (None, False, [True, False], paddle.ParamAttr(name="w"))]
    return [_convert_attention_mask(mask, paddle.float32), _convert_attention_mask(None, "float32"),
            [[one if one is False else one.name for one in attrs] for attrs in many]]
