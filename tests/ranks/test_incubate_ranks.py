"""Layers of paddle.incubate.nn whose heads and inner widths are divided among ranks give what one process gives."""
from _job import passes

BODY = """
from proa.incubate import nn
WIDTH, HEADS, INNER = 16, 4, 24
group = dist.new_group(list(range(size)))
place = {"nranks": size, "ring_id": group.id}
heads, columns = slice(rank * HEADS // size, (rank + 1) * HEADS // size), slice(rank * INNER // size, (rank + 1) * INNER // size)
rows = slice(rank * WIDTH // size, (rank + 1) * WIDTH // size)
paddle.seed(4)
x = paddle.rand([2, 5, WIDTH]) - 0.5

def share(whole, own, *cut):
    assert own.is_distributed == bool(cut)
    own.set_value(whole[cut] if cut else whole)

def same(got, want, name):
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5, atol=1e-5, err_msg=name)

def gradients(layer, more):
    x.stop_gradient = False
    out = layer(x)
    found = paddle.grad(out.square().sum(), [x, *more])
    return [out, *found]

for wide in (False, True):
    whole = nn.FusedMultiHeadAttention(WIDTH, HEADS, 0.0, 0.0, normalize_before=True, transpose_qkv_wb=wide)
    own = nn.FusedMultiHeadAttention(WIDTH, HEADS, 0.0, 0.0, normalize_before=True, transpose_qkv_wb=wide, **place)
    whole.qkv_bias.set_value(paddle.rand(whole.qkv_bias.shape))
    if wide:
        three = lambda t: t.reshape([*t.shape[:-1], 3, HEADS, WIDTH // HEADS])[..., heads, :].reshape([*t.shape[:-1], -1])
        own.qkv_weight.set_value(three(whole.qkv_weight))
        own.qkv_bias.set_value(three(whole.qkv_bias))
    else:
        share(whole.qkv_weight, own.qkv_weight, slice(None), heads)
        share(whole.qkv_bias, own.qkv_bias, slice(None), heads)
    share(whole.linear_weight, own.linear_weight, rows)
    share(whole.linear_bias, own.linear_bias)
    share(whole.pre_ln_scale, own.pre_ln_scale)
    for got, want, name in zip(gradients(own, [own.pre_ln_scale, own.linear_bias]),
                               gradients(whole, [whole.pre_ln_scale, whole.linear_bias]), ("out", "x", "scale", "bias")):
        same(got, want, name)

whole = nn.FusedFeedForward(WIDTH, INNER, 0.0)
own = nn.FusedFeedForward(WIDTH, INNER, 0.0, **place)
share(whole._linear1_weight, own._linear1_weight, slice(None), columns)
share(whole._linear1_bias, own._linear1_bias, columns)
share(whole._linear2_weight, own._linear2_weight, columns)
clipped = [paddle.nn.ClipGradByGlobalNorm(0.01)([(p, g) for p, g in zip(net.parameters(), gradients(net, net.parameters())[2:])])
           for net in (own, whole)]
for (p, got), (_, want) in zip(*clipped):
    same(got, want[slice(None), columns] if p is own._linear1_weight else want[columns] if p.is_distributed else want, "clipped")
for got, want in zip(gradients(own, [own._ln2_scale]), gradients(whole, [whole._ln2_scale])):
    same(got, want, "feed-forward")

whole = nn.FusedMultiTransformer(WIDTH, HEADS, INNER, num_layers=2)
own = nn.FusedMultiTransformer(WIDTH, HEADS, INNER, num_layers=2, **place)
for i in range(2):
    for name, *cut in (("qkv_weights", slice(None), heads), ("qkv_biases", slice(None), heads), ("linear_weights", rows),
                       ("linear_biases",), ("ffn1_weights", slice(None), columns), ("ffn1_biases", columns), ("ffn2_weights", columns),
                       ("ffn2_biases",)):
        share(getattr(whole, name)[i], getattr(own, name)[i], *cut)
whole.eval(), own.eval()
with paddle.no_grad():
    caches = [[paddle.zeros([2, 2, n, 8, WIDTH // HEADS]) for _ in range(2)] for n in (HEADS, HEADS // size)]
    same(own(x[:, :4], caches=caches[1])[0], whole(x[:, :4], caches=caches[0])[0], "prompt")
    at = paddle.to_tensor([4], "int32")
    same(own(x[:, 4:], caches=caches[1], time_step=at)[0], whole(x[:, 4:], caches=caches[0], time_step=at)[0], "token")
    same(caches[1][1], caches[0][1][:, :, heads], "cache")
"""


def test_two_ranks_are_one_process(tmp_path):
    passes(tmp_path, 2, BODY)
