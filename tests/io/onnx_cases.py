"""Cases for test_onnx.py: one function a case, which is exported and compared with ONNX Runtime. CASES is a table of
Case(name, function, arrays): the function takes one tensor an array. least: the least opset that the case can be
lowered to; below it the export must refuse and say so. ops: those of the op table that the case is to cover."""
import dataclasses

import numpy as np
import proa as paddle
from proa.nn import functional as F

R = np.random.RandomState(3)


def real(*shape, low=-2.0, high=2.0):
    return (R.rand(*shape) * (high - low) + low).astype("float32")


def whole(*shape, low=0, high=5, dtype="int64"):
    return R.randint(low, high, shape).astype(dtype)


def truth(*shape):
    return R.rand(*shape) > 0.5


@dataclasses.dataclass
class Case:
    name: str
    function: object
    arrays: tuple
    least: int = 7
    rtol: float = 1e-5
    atol: float = 1e-5
    open: int = 0  # least opset with an open first dim of the first input; 0: least, None: it cannot be open


CASES = []


def case(name, function, *arrays, **options):
    CASES.append(Case(name, function, arrays, **options))


X = real(3, 4)
POSITIVE = real(3, 4, low=0.1, high=3)
UNIT = real(3, 4, low=-0.9, high=0.9)
SPECIAL = np.array([[1.5, -2.5, 0.5, np.nan], [np.inf, -np.inf, 0.0, -0.5], [2.5, 1e-3, -1e-3, 3.49999]], "float32")
IMAGE = real(2, 4, 6, 6)

# ---- unary math ----
for name in "abs neg exp sin cos tan atan tanh expm1 square floor ceil sign".split():
    case(name, getattr(paddle, name), X)
for name in "sinh cosh asinh erf".split():
    case(name, getattr(paddle, name), X, least=9)
for name in "log log2 log10 log1p sqrt rsqrt reciprocal".split():
    case(name, getattr(paddle, name), POSITIVE)
for name in "asin acos".split():
    case(name, getattr(paddle, name), UNIT)
case("atanh", paddle.atanh, UNIT, least=9)
case("acosh", paddle.acosh, POSITIVE + 1, least=9)
for name in "round trunc isnan isinf isfinite".split():
    case(f"{name}_special", getattr(paddle, name), SPECIAL)
case("abs_int", paddle.abs, whole(3, 4, low=-5))
case("neg_int32", paddle.neg, whole(3, 4, dtype="int32"))
case("exp_int", paddle.exp, whole(3, 4, dtype="int32"))
case("logit", lambda x: paddle.logit(x, 0.05), real(3, 4, low=0, high=1))
case("stanh", paddle.stanh, X)
case("scale", lambda x: paddle.scale(x, 2.5, 0.5), X)
case("scale_before", lambda x: paddle.scale(x, 2.5, 0.5, bias_after_scale=False), X)
case("scale_int", lambda x: x * 3 + 1, whole(3, 4))
case("scale_tensor", lambda x, s: paddle.scale(x, s, 1.0), X, real(1))
case("clip", lambda x: paddle.clip(x, -1.0, 0.5), X)
case("clip_low", lambda x: paddle.clip(x, min=-0.5), X)
case("clip_int", lambda x: paddle.clip(x, 1, 3), whole(3, 4), least=8)
case("pow", lambda x: paddle.pow(x, 1.7), POSITIVE)
case("pow_2", lambda x: x ** 2, X)
case("pow_half", lambda x: x ** 0.5, POSITIVE)
case("pow_int_cut", lambda x: paddle.pow(x, 2.5), whole(3, 4))
case("pow_int", lambda x: paddle.pow(x, 3), whole(3, 4))

# ---- activations ----
for name in "relu relu6 sigmoid log_sigmoid leaky_relu elu selu celu silu swish mish softplus softsign hardsigmoid hardswish \
hardtanh softshrink tanhshrink hardshrink thresholded_relu".split():
    case(f"f_{name}", getattr(F, name), real(3, 4, low=-5, high=5))
case("gelu", F.gelu, X, least=9)
case("gelu_tanh", lambda x: F.gelu(x, approximate=True), X)
case("celu_2", lambda x: F.celu(x, 2.0), X)
case("softplus_beta", lambda x: F.softplus(x, 2.0, 3.0), X, least=9)
case("prelu_all", lambda x, w: F.prelu(x, w), IMAGE, real(1))
case("prelu_channel", lambda x, w: F.prelu(x, w), IMAGE, real(4))
case("prelu_channel_last", lambda x, w: F.prelu(x, w, data_format="NHWC"), real(2, 3, 3, 4), real(4))
case("maxout", lambda x: F.maxout(x, 2), IMAGE)
case("glu", F.glu, X)
case("softmax", F.softmax, X)
case("softmax_axis", lambda x: F.softmax(x, 1), real(2, 3, 4))
case("log_softmax", lambda x: F.log_softmax(x, 0), X)
case("dropout", lambda x: F.dropout(x, 0.3, training=False), X)
case("dropout_downscale", lambda x: F.dropout(x, 0.3, training=False, mode="downscale_in_infer"), X)

# ---- binary ----
Y = real(3, 4)
for name in "add subtract multiply divide".split():
    case(name, getattr(paddle, name), X, Y)
    case(f"{name}_broadcast", getattr(paddle, name), real(2, 3, 4), real(4))
case("divide_int", lambda x, y: paddle.floor_divide(x, y), whole(3, 4, low=0, high=20), whole(3, 4, low=1))
case("floor_divide", paddle.floor_divide, X, Y + np.sign(Y))
case("floor_divide_signs", paddle.floor_divide, whole(3, 4, low=-20, high=20), whole(3, 4, low=1) * np.array([1, -1, 1, -1]))
case("remainder", paddle.remainder, real(3, 4, low=-9, high=9), Y + np.sign(Y))
case("remainder_int", paddle.remainder, whole(3, 4, low=-20, high=20), whole(3, 4, low=1) * np.array([1, -1, 1, -1]))
case("elementwise_pow", paddle.pow, POSITIVE, Y)
case("maximum", paddle.maximum, X, Y, least=8)
case("minimum", paddle.minimum, X, Y, least=8)
case("maximum_int", paddle.maximum, whole(3, 4), whole(3, 4), least=8)
case("fmax", paddle.fmax, X, SPECIAL, least=9)
case("fmin", paddle.fmin, SPECIAL, X, least=9)
case("heaviside", paddle.heaviside, np.array([[-1.0, 0, 2, 0]] * 3, "float32"), Y, least=9)
case("atan2", paddle.atan2, np.array([1, -1, 1, -1, 0, 0, 2], "float32"), np.array([1, 1, -1, -1, 1, -1, 0], "float32"), least=9)
case("lerp", lambda x, y: paddle.lerp(x, y, 0.3), X, Y)
for name in "equal not_equal less_than less_equal greater_than greater_equal".split():
    case(name, getattr(paddle, name), np.round(X), np.round(Y))
    case(f"{name}_int", getattr(paddle, name), whole(3, 4), whole(3, 4))
case("equal_special", paddle.equal, SPECIAL, SPECIAL)
case("isclose", paddle.isclose, SPECIAL, SPECIAL + 1e-9)
case("isclose_nan", lambda x, y: paddle.isclose(x, y, equal_nan=True), SPECIAL, SPECIAL)
case("allclose", paddle.allclose, X, X)
case("equal_all_shapes", paddle.equal_all, X, real(3, 5))
case("equal_all", paddle.equal_all, X, X)
for name in "and or xor".split():
    case(f"logical_{name}", getattr(paddle, f"logical_{name}"), truth(3, 4), truth(3, 4))
    case(f"bitwise_{name}", getattr(paddle, f"bitwise_{name}"), truth(3, 4), truth(3, 4))
    case(f"bitwise_{name}_int", getattr(paddle, f"bitwise_{name}"), whole(3, 4), whole(3, 4), least=18)
case("logical_not", paddle.logical_not, truth(3, 4))
case("bitwise_not", paddle.bitwise_not, truth(3, 4))
case("bitwise_not_int", paddle.bitwise_not, whole(3, 4), least=18)
case("where", paddle.where, truth(3, 4), X, Y, least=9)
case("where_int", paddle.where, truth(3, 4), whole(3, 4), whole(3, 4), least=9)
case("cast", lambda x: paddle.cast(x, "int32"), X)
case("cast_bool", lambda x: paddle.cast(x, "bool"), X)
case("assign", lambda x: paddle.assign(x) + x.detach(), X)

# ---- products ----
case("matmul", paddle.matmul, real(2, 3, 4), real(2, 4, 5))
case("matmul_turned", lambda x, y: paddle.matmul(x, y, True, True), real(2, 4, 3), real(2, 5, 4))
case("matmul_int", paddle.matmul, whole(3, 4), whole(4, 2))
case("bmm", paddle.bmm, real(2, 3, 4), real(2, 4, 5))
case("mv", paddle.mv, X, real(4))
case("dot", paddle.dot, X, Y)
case("addmm", lambda i, x, y: paddle.addmm(i, x, y, beta=0.5, alpha=2.0), real(3, 5), X, real(4, 5))
case("linear", F.linear, X, real(4, 5), real(5))
case("linear_3d", F.linear, real(2, 3, 4), real(4, 5), real(5))
case("linear_plain", F.linear, X, real(4, 5))
case("kron", paddle.kron, real(2, 3), real(3, 2), open=None)
case("cross", lambda x, y: paddle.cross(x, y, axis=1), real(4, 3), real(4, 3))
case("einsum", lambda x, y: paddle.einsum("bij,bjk->bik", x, y), real(2, 3, 4), real(2, 4, 5))
case("embedding", F.embedding, whole(3, 4), real(5, 6))
case("embedding_padding", lambda i, w: F.embedding(i, w, padding_idx=2), whole(3, 4), real(5, 6))
case("attention", lambda q, k, v: F.scaled_dot_product_attention(q, k, v), real(2, 5, 3, 4), real(2, 6, 3, 4), real(2, 6, 3, 4))
case("attention_mask", lambda q, k, v, m: F.scaled_dot_product_attention(q, k, v, m), real(2, 5, 3, 4), real(2, 6, 3, 4),
     real(2, 6, 3, 4), real(2, 1, 5, 6))
case("attention_causal", lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), real(2, 5, 3, 4),
     real(2, 5, 3, 4), real(2, 5, 3, 4))

# ---- convolutions, pooling ----
case("conv1d", lambda x, w: F.conv1d(x, w, stride=2, padding=1), real(2, 4, 9), real(6, 4, 3))
case("conv2d", lambda x, w, b: F.conv2d(x, w, b, stride=2, padding=1), IMAGE, real(6, 4, 3, 3), real(6))
case("conv2d_uneven", lambda x, w: F.conv2d(x, w, padding=[1, 0, 2, 1], dilation=2), IMAGE, real(6, 4, 2, 2))
case("conv2d_same", lambda x, w: F.conv2d(x, w, stride=2, padding="SAME"), IMAGE, real(6, 4, 3, 3))
case("conv2d_valid", lambda x, w: F.conv2d(x, w, padding="VALID"), IMAGE, real(6, 4, 3, 3))
case("conv2d_groups", lambda x, w: F.conv2d(x, w, groups=2), IMAGE, real(6, 2, 3, 3))
case("conv2d_last", lambda x, w, b: F.conv2d(x, w, b, padding=1, data_format="NHWC"), real(2, 5, 6, 4), real(6, 4, 3, 3), real(6))
case("conv3d", lambda x, w: F.conv3d(x, w, padding=1), real(1, 2, 4, 4, 4), real(3, 2, 3, 3, 3))
case("conv1d_transpose", lambda x, w: F.conv1d_transpose(x, w, stride=2, padding=1), real(2, 4, 5), real(4, 3, 3))
case("conv2d_transpose", lambda x, w, b: F.conv2d_transpose(x, w, b, stride=2, padding=1, output_padding=1), IMAGE,
     real(4, 3, 3, 3), real(3))
case("conv2d_transpose_size", lambda x, w: F.conv2d_transpose(x, w, stride=2, padding=1, output_size=[12, 12]), IMAGE, real(4, 3, 3, 3))
case("conv2d_transpose_groups", lambda x, w: F.conv2d_transpose(x, w, stride=2, groups=2), IMAGE, real(4, 3, 2, 2))
case("conv2d_transpose_same", lambda x, w: F.conv2d_transpose(x, w, stride=2, padding="SAME"), IMAGE, real(4, 3, 3, 3), open=None)
case("conv2d_transpose_last", lambda x, w: F.conv2d_transpose(x, w, stride=2, data_format="NHWC"), real(2, 3, 4, 4), real(4, 3, 2, 2))
case("conv3d_transpose", lambda x, w: F.conv3d_transpose(x, w, stride=2), real(1, 2, 3, 3, 3), real(2, 3, 2, 2, 2))
case("max_pool1d", lambda x: F.max_pool1d(x, 3, 2, 1), real(2, 4, 9))
case("max_pool2d", lambda x: F.max_pool2d(x, 3, 2, 1), IMAGE)
case("max_pool2d_ceil", lambda x: F.max_pool2d(x, 2, 2, ceil_mode=True), real(2, 3, 5, 5))
case("max_pool2d_last", lambda x: F.max_pool2d(x, 2, 2, data_format="NHWC"), real(2, 4, 4, 3))
case("max_pool2d_same", lambda x: F.max_pool2d(x, 3, 2, padding="SAME"), real(2, 3, 5, 5))
case("max_pool2d_indices", lambda x: F.max_pool2d(x, 2, 2, return_mask=True), IMAGE, least=8)
case("max_pool3d", lambda x: F.max_pool3d(x, 2, 2), real(1, 2, 4, 4, 4))
case("avg_pool1d", lambda x: F.avg_pool1d(x, 3, 2, 1), real(2, 4, 9))
case("avg_pool2d", lambda x: F.avg_pool2d(x, 3, 2, 1), IMAGE)
case("avg_pool2d_counts", lambda x: F.avg_pool2d(x, 3, 2, 1, exclusive=False), IMAGE)
case("avg_pool2d_ceil", lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True), IMAGE)
case("avg_pool2d_ceil_counts", lambda x: F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, exclusive=False), IMAGE)
case("avg_pool3d", lambda x: F.avg_pool3d(x, 2, 2), real(1, 2, 4, 4, 4))
case("adaptive_avg_1", lambda x: F.adaptive_avg_pool2d(x, 1), IMAGE)
case("adaptive_avg_3", lambda x: F.adaptive_avg_pool2d(x, 3), IMAGE)
case("adaptive_avg_odd", lambda x: F.adaptive_avg_pool2d(x, [4, 5]), IMAGE)
case("adaptive_max_1d", lambda x: F.adaptive_max_pool1d(x, 4), real(2, 3, 9))
case("adaptive_max_odd", lambda x: F.adaptive_max_pool2d(x, 4), IMAGE)
case("max_pool1d_indices", lambda x: F.max_pool1d(x, 2, 2, return_mask=True), real(2, 4, 8), least=8)
case("max_pool3d_indices", lambda x: F.max_pool3d(x, 2, 2, return_mask=True), real(1, 2, 4, 4, 4), least=8)
case("adaptive_avg_1d", lambda x: F.adaptive_avg_pool1d(x, 4), real(2, 3, 9))
case("adaptive_max_3d", lambda x: F.adaptive_max_pool3d(x, 2), real(1, 2, 4, 4, 4))
case("adaptive_avg_3d", lambda x: F.adaptive_avg_pool3d(x, 2), real(1, 2, 4, 4, 4))

# ---- normalizations ----
case("layer_norm", lambda x, w, b: F.layer_norm(x, 4, w, b), real(2, 3, 4), real(4), real(4))
case("layer_norm_plain", lambda x: F.layer_norm(x, [3, 4]), real(2, 3, 4))
case("layer_norm_2", lambda x, w, b: F.layer_norm(x, [3, 4], w, b), real(2, 3, 4), real(12), real(12))
case("batch_norm", lambda x, m, v, w, b: F.batch_norm(x, m, v, w, b), IMAGE, real(4), real(4, low=0.5), real(4), real(4))
case("batch_norm_last", lambda x, m, v: F.batch_norm(x, m, v, data_format="NHWC"), real(2, 3, 3, 4), real(4), real(4, low=0.5))
case("batch_norm_2d", lambda x, m, v: F.batch_norm(x, m, v), X, real(4), real(4, low=0.5))
case("instance_norm", lambda x, w, b: F.instance_norm(x, weight=w, bias=b), IMAGE, real(4), real(4))
case("group_norm", lambda x: paddle.nn.GroupNorm(2, 4)(x), IMAGE)
case("group_norm_last", lambda x: paddle.nn.GroupNorm(2, 4, data_format="NHWC")(x), real(2, 3, 3, 4))
case("normalize", F.normalize, X)
for p in (1, 2, 3.0, 0, np.inf, -np.inf):
    case(f"norm_{p}", lambda x, p=p: paddle.norm(x, p, axis=1), X)
case("norm_all", lambda x: paddle.norm(x, 2), X)
case("lrn", lambda x: F.local_response_norm(x, 3), IMAGE)

# ---- shapes ----
case("reshape", lambda x: paddle.reshape(x, [0, -1]), real(2, 3, 4))
case("reshape_shape", lambda x: paddle.reshape(x, [paddle.shape(x)[0], 2, -1]), real(2, 3, 4))
case("transpose", lambda x: paddle.transpose(x, [2, 0, 1]), real(2, 3, 4))
case("squeeze", lambda x: paddle.squeeze(x, [1, -1]), real(2, 1, 4, 1))
case("squeeze_all", lambda x: paddle.squeeze(x), real(2, 1, 4, 1), open=None)
case("unsqueeze", lambda x: paddle.unsqueeze(x, [0, 2]), X)
case("unsqueeze_back", lambda x: paddle.unsqueeze(x, -1), X)
case("flatten", lambda x: paddle.flatten(x, 1, 2), real(2, 3, 4, 5))
case("flatten_front", lambda x: paddle.flatten(x, 0, 1), real(2, 3, 4, 5))
case("flatten_all", paddle.flatten, real(2, 3, 4))
case("expand", lambda x: paddle.expand(x, [2, -1, 4]), real(3, 1), least=8, open=None)
case("broadcast_to", lambda x: paddle.broadcast_to(x, [3, 4]), real(1, 4), least=8, open=None)
case("expand_as", paddle.expand_as, real(1, 4), X, least=8, open=None)
case("expand_bool", lambda x: paddle.expand(x, [2, 3, 4]), truth(1, 4), least=8, open=None)
case("tile", lambda x: paddle.tile(x, [2, 1, 3]), X)
case("concat", lambda x, y: paddle.concat([x, y], axis=1), X, real(3, 2))
case("stack", lambda x, y: paddle.stack([x, y], axis=1), X, Y)
case("unstack", lambda x: paddle.unstack(x, axis=1), X)
case("unbind", lambda x: paddle.unbind(x, axis=1), X)
case("split", lambda x: paddle.split(x, 2, axis=1), X)
case("split_sections", lambda x: paddle.split(x, [1, -1], axis=1), X)
case("split_batch", lambda x: paddle.split(x, 2, axis=0), real(4, 3))
case("chunk", lambda x: paddle.chunk(x, 2, axis=-1), X)
case("shape", paddle.shape, X)
case("numel", paddle.numel, X)
case("meshgrid", lambda x, y: paddle.meshgrid(x, y), real(3), real(4), least=8)
case("slice", lambda x: x[:, 1:3], X)
case("slice_last", lambda x: x[:, -1], X)
case("slice_int", lambda x: x[1], X)
case("slice_steps", lambda x: x[:, ::2], real(3, 7), least=10)
case("slice_back", lambda x: x[:, ::-1], X, least=10)
case("slice_new", lambda x: x[:, None, 1:], X)
case("strided_slice", lambda x: paddle.strided_slice(x, [1], [6], [0], [-2]), real(3, 7), least=10)
case("slice_tensor", lambda x: x[:, :paddle.shape(x)[0]], real(3, 7), least=10)
case("strided_slice_beyond", lambda x: paddle.strided_slice(x, [0], [100], [-100], [-2]), real(5), least=10, open=None)
case("flip", lambda x: paddle.flip(x, [1]), X)
case("roll", lambda x: paddle.roll(x, 3, axis=1), X)
case("roll_flat", lambda x: paddle.roll(x, 2), X)
case("pad", lambda x: F.pad(x, [1, 2, 0, 1], value=0.5), IMAGE)
case("pad_flat", lambda x: F.pad(x, [0, 0, 1, 2], value=1.0), X)
for mode in "reflect replicate circular".split():
    case(f"pad_{mode}", lambda x, mode=mode: F.pad(x, [1, 2, 0, 1], mode=mode), IMAGE)
case("pad_last", lambda x: F.pad(x, [1, 2, 0, 1], data_format="NHWC"), real(2, 3, 3, 2))
case("tril", lambda x: paddle.tril(x, 1), real(3, 5), least=9, open=14)
case("triu", lambda x: paddle.triu(x), real(2, 4, 4), least=9)


def written(x, value):
    x = x.clone()
    x[:, 1:3] = value
    return x


def written_number(x):
    x = x.clone()
    x[:, 1] = 7.0
    return x


def assigned(x, index, value):
    x = x.clone()
    x[index] = value
    return x


def masked(x, mask):
    x = x.clone()
    x[mask] = 5.0
    return x


case("index_put", assigned, real(5, 3), np.array([1, 3]), real(2, 3), least=11)
case("index_put_mask", masked, real(5, 3), truth(5, 3), least=9)
case("index_fill", lambda x, i: paddle.index_fill(x, i, 1, 2.5), real(3, 5), np.array([1, 3]), least=11)
case("fill", lambda x: x.clone().fill_(2.5) + x, X, least=8)
case("set_value", written, real(3, 5), real(3, 2), least=9, open=None)
case("set_value_number", written_number, real(3, 5), least=9)

# ---- indices ----
case("gather", lambda x, i: paddle.gather(x, i, axis=1), X, whole(3, high=4))
case("gather_0", paddle.gather, X, whole(2, high=3, dtype="int32"))
case("index_select", lambda x, i: paddle.index_select(x, i, axis=1), X, whole(3, high=4))
case("gather_nd", paddle.gather_nd, real(3, 4, 2), whole(5, 2, high=3), least=11)
case("index_sample", paddle.index_sample, X, whole(3, 2, high=4), least=11)
case("take_along_axis", lambda x, i: paddle.take_along_axis(x, i, 1), X, whole(3, 2, high=4), least=11)
case("take_along_axis_broadcast", lambda x, i: paddle.take_along_axis(x, i, 0), X, whole(1, 4, high=3), least=11, open=None)
case("masked_select", paddle.masked_select, X, truth(3, 4), least=9)
case("nonzero", paddle.nonzero, np.round(X), least=9)
case("repeat_interleave", lambda x: paddle.repeat_interleave(x, 3, axis=1), X)
case("scatter", paddle.scatter, real(5, 3), np.array([1, 3]), real(2, 3), least=11)
case("scatter_one", paddle.scatter, real(5, 3), np.array(2), real(3), least=11, open=None)
case("scatter_add", lambda x, i, u: paddle.scatter(x, i, u, overwrite=False), real(5, 3), np.array([1, 3, 1]), real(3, 3), least=16)
case("scatter_nd_add", paddle.scatter_nd_add, real(5, 3), np.array([[1], [3], [1]]), real(3, 3), least=16)
case("index_add", lambda x, i, v: paddle.index_add(x, i, 1, v), real(3, 5), np.array([1, 3, 1]), real(3, 3), least=16)
case("put_along_axis", lambda x, i, v: paddle.put_along_axis(x, i, v, 1), real(3, 5), np.array([[1, 3], [0, 2], [4, 1]]), real(3, 2),
     least=11)
case("masked_fill", lambda x, m: paddle.masked_fill(x, m, -1.0) if hasattr(paddle, "masked_fill") else paddle.where(m, x * 0 - 1.0, x),
     X, truth(3, 4), least=9)
case("one_hot", lambda x: F.one_hot(x, 5), whole(3, 4), least=9)
case("unique", lambda x: paddle.unique(x), whole(12), least=11)
case("unique_all", lambda x: paddle.unique(x, return_index=True, return_inverse=True, return_counts=True), whole(12), least=11)

# ---- reductions, order ----
for name in "sum mean max min prod amax amin logsumexp".split():
    case(name, lambda x, f=getattr(paddle, name): f(x, axis=1), real(2, 3, 4))
    case(f"{name}_keep", lambda x, f=getattr(paddle, name): f(x, axis=[0, -1], keepdim=True), real(2, 3, 4))
    case(f"{name}_all", getattr(paddle, name), real(2, 3, 4))
case("sum_int", lambda x: paddle.sum(x, axis=0), whole(3, 4, dtype="int32"))
case("sum_bool", paddle.sum, truth(3, 4))
case("max_int", lambda x: paddle.max(x, axis=0), whole(3, 4))
case("any", lambda x: paddle.any(x, axis=1), truth(3, 4))
case("all", lambda x: paddle.all(x, axis=1), truth(3, 4))
case("var", lambda x: paddle.var(x, axis=1), real(2, 3, 4), least=8)
case("std", lambda x: paddle.std(x), real(2, 3, 4), least=8)
case("argmax", lambda x: paddle.argmax(x, axis=1), X)
case("argmin_keep", lambda x: paddle.argmin(x, axis=0, keepdim=True), X)
case("argmax_all", paddle.argmax, X)
case("argmax_int32", lambda x: paddle.argmax(x, axis=1, dtype="int32"), whole(3, 4, high=50))
case("cumsum", lambda x: paddle.cumsum(x, axis=1), X, least=11)
case("cumsum_all", paddle.cumsum, X, least=11)
case("topk", lambda x: paddle.topk(x, 2), X)
case("topk_smallest", lambda x: paddle.topk(x, 2, axis=0, largest=False), X)
case("sort", lambda x: paddle.sort(x, axis=1), X)
case("sort_down", lambda x: paddle.sort(x, axis=0, descending=True), X, open=10)
case("argsort", lambda x: paddle.argsort(x, axis=1), X)
case("kthvalue", lambda x: paddle.kthvalue(x, 2, axis=1), X)
case("searchsorted", paddle.searchsorted, np.array([1.0, 2, 3, 5], "float32"), real(3, 4, low=0, high=6))

# ---- vision ----
SMALL = real(1, 2, 4, 5)
case("nearest_2", lambda x: F.interpolate(x, scale_factor=2, mode="nearest"), SMALL)
case("nearest_size", lambda x: F.interpolate(x, size=[7, 3], mode="nearest"), SMALL)
case("bilinear", lambda x: F.interpolate(x, size=[7, 9], mode="bilinear"), SMALL)
case("bilinear_scale", lambda x: F.interpolate(x, scale_factor=1.5, mode="bilinear"), SMALL)
case("bilinear_corners", lambda x: F.interpolate(x, size=[7, 9], mode="bilinear", align_corners=True), SMALL)
case("bilinear_edge", lambda x: F.interpolate(x, size=[7, 9], mode="bilinear", align_mode=1), SMALL)
case("bilinear_one", lambda x: F.interpolate(x, size=[1, 9], mode="bilinear"), SMALL)
case("bilinear_last", lambda x: F.interpolate(x, size=[7, 9], mode="bilinear", data_format="NHWC"), real(1, 4, 5, 2))
case("bicubic", lambda x: F.interpolate(x, size=[7, 9], mode="bicubic"), SMALL, atol=5e-5)
case("bicubic_corners", lambda x: F.interpolate(x, size=[7, 9], mode="bicubic", align_corners=True), SMALL, atol=5e-5)
case("linear_1d", lambda x: F.interpolate(x, size=[9], mode="linear", data_format="NCW"), real(2, 3, 5))
case("trilinear", lambda x: F.interpolate(x, size=[5, 6, 7], mode="trilinear", data_format="NCDHW"), real(1, 2, 3, 4, 5))
case("upsample", lambda x: paddle.nn.Upsample(scale_factor=2, mode="bilinear")(x), SMALL)
case("grid_sample", F.grid_sample, SMALL, real(1, 3, 3, 2, low=-1.2, high=1.2), least=16)
case("grid_sample_border", lambda x, g: F.grid_sample(x, g, "bilinear", "border", align_corners=False), SMALL,
     real(1, 3, 3, 2, low=-1.2, high=1.2), least=16)
case("affine_grid", lambda t: F.affine_grid(t, [2, 3, 4, 5]), real(2, 2, 3))
case("affine_grid_edges", lambda t: F.affine_grid(t, [2, 3, 4, 5], align_corners=False), real(2, 2, 3))
case("roi_align", lambda x, b, n: paddle.vision.ops.roi_align(x, b, n, 2, sampling_ratio=2, aligned=False), IMAGE,
     np.array([[0, 0, 4, 4], [1, 1, 5, 5], [0, 2, 3, 5]], "float32"), np.array([2, 1], "int32"), least=11)
case("pixel_shuffle", lambda x: F.pixel_shuffle(x, 2), IMAGE)
case("pixel_unshuffle", lambda x: F.pixel_unshuffle(x, 2), IMAGE)
case("channel_shuffle", lambda x: F.channel_shuffle(x, 2), IMAGE)
case("temporal_shift", lambda x: F.temporal_shift(x, 2, 0.25), real(4, 4, 3, 3))
case("unfold", lambda x: F.unfold(x, [3, 2], strides=2, paddings=1), IMAGE)
case("fold", lambda x: F.fold(x, [4, 5], [2, 2]), real(1, 8, 12), least=18)

# ---- boxes of detectors ----
def boxes_of(*shape):
    low = R.rand(*shape, 2) * 5
    return np.concatenate([low, low + 1 + R.rand(*shape, 2) * 4], -1).astype("float32")


ops = paddle.vision.ops
YOLO = real(2, 2 * 7, 4, 5)
SIZES = np.array([[64, 80], [60, 70]], "int32")
case("yolo_box", lambda x, s: ops.yolo_box(x, s, [10, 13, 16, 30], 2, 0.3, 16), YOLO, SIZES, least=9, atol=1e-4)
case("yolo_box_iou", lambda x, s: ops.yolo_box(x, s, [10, 13, 16, 30], 2, 0.3, 16, clip_bbox=False, scale_x_y=1.2, iou_aware=True,
                                               iou_aware_factor=0.4), real(2, 2 * 8, 4, 5), SIZES, least=9, atol=1e-4)
case("box_decode", lambda p, v, t: ops.box_coder(p, v, t, "decode_center_size"), boxes_of(6), real(6, 4, low=0.1), real(3, 6, 4), open=None)
case("box_decode_list", lambda p, t: ops.box_coder(p, [0.1, 0.1, 0.2, 0.2], t, "decode_center_size", box_normalized=False, axis=1),
     boxes_of(3), real(3, 6, 4), open=None)
case("box_encode", lambda p, v, t: ops.box_coder(p, v, t, "encode_center_size"), boxes_of(6), real(6, 4, low=0.1), boxes_of(3), open=None)
case("prior_box", lambda x, i: ops.prior_box(x, i, [10.0], [20.0], [2.0], flip=True, clip=True), real(1, 2, 3, 4), real(1, 3, 30, 40),
     open=None)
case("anchor_generator", lambda x: paddle.fluid.layers.anchor_generator(x, [32.0], [0.5, 1.0], [0.1, 0.1, 0.2, 0.2], [16.0, 16.0]),
     real(1, 2, 3, 4), open=None)
case("nms", lambda b: ops.nms(b, 0.3), boxes_of(12), least=10, open=None)
case("multiclass_nms", lambda b, s: paddle.fluid.layers.multiclass_nms(b, s, 0.2, 8, 5, 0.3, background_label=0), boxes_of(1, 20),
     real(1, 3, 20, low=0, high=1), least=11, open=None)
case("multiclass_nms_all", lambda b, s: paddle.fluid.layers.multiclass_nms(b, s, 0.2, -1, -1, 0.3, background_label=-1), boxes_of(1, 20),
     real(1, 3, 20, low=0, high=1), least=11, open=None)
case("deform_conv2d", lambda x, o, w, m: ops.deform_conv2d(x, o, w, padding=1, mask=m), IMAGE, real(2, 18, 6, 6, low=-1, high=1),
     real(6, 4, 3, 3), real(2, 9, 6, 6, low=0, high=1), least=19, atol=1e-4)

# ---- made in the graph ----
case("zeros_like", lambda x: paddle.zeros_like(x) + x, X, least=8)
case("full_batch", lambda x: paddle.full([paddle.shape(x)[0], 3], 2.5), X, least=8)
case("arange_batch", lambda x: paddle.arange(paddle.shape(x)[0]), X, least=11)
case("arange", lambda x: x + paddle.arange(4, dtype="float32"), X)
case("sequence_mask", lambda x: F.sequence_mask(x, maxlen=6), whole(4), least=11)


# ---- control flow ----
def branched(x):
    if paddle.mean(x) > 0:
        y = x * 2
    else:
        y = x - 1
    return y + x


def looped(x):
    i = paddle.zeros([1], "int64")
    while i < 3:
        x = x * 1.5 + i.astype("float32")
        i = i + 1
    return x


class Doubled(paddle.autograd.PyLayer):
    @staticmethod
    def forward(context, x):
        return x * 2

    @staticmethod
    def backward(context, d):
        return d * 2


case("pylayer", lambda x: Doubled.apply(x) + 1, X)
case("branch_true", branched, POSITIVE)
case("branch_false", branched, -POSITIVE)
case("loop", looped, X)
