"""Elementwise arithmetic, comparison, mathematics, activations and conversion in real Paddle. One function per op,
named as the op: tests/ops/run_matrix.py calls it with the op's fields, tensors as Paddle tensors, and saves the
outputs that it returns, in the op table's order (None: not compared), for tests/ops/test_ops.py."""
import paddle
import paddle.nn.functional as F

_DTYPES = {"BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64",
           "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64", "C64": "complex64",
           "C128": "complex128"}

for _name in """add subtract multiply divide floor_divide remainder maximum minimum fmax fmin heaviside lerp
        equal not_equal less_than less_equal greater_than greater_equal logical_and logical_or logical_xor
        logical_not bitwise_and bitwise_or bitwise_xor bitwise_not isnan isinf isfinite abs neg exp expm1 log log2
        log10 log1p sqrt rsqrt square reciprocal sign floor ceil round sin cos tan asin acos atan sinh cosh
        tanh asinh acosh atanh erf erfinv lgamma digamma stanh angle real imag conj scale clip pow
        assign""".split():
    globals()[_name] = getattr(paddle, _name)
for _name in """relu relu6 sigmoid leaky_relu elu selu celu gelu silu swish softplus softsign
        hardswish hardtanh hardshrink softshrink tanhshrink thresholded_relu hardsigmoid""".split():
    globals()[_name] = getattr(F, _name)


def elementwise_pow(x, y):
    return paddle.pow(x, y)


def trunc(x):
    return paddle.trunc(x)


def atan2(x, y):
    shape = paddle.broadcast_shape(x.shape, y.shape)
    return paddle.atan2(paddle.expand(x, shape), paddle.expand(y, shape))


def where(condition, x, y):
    shape = paddle.broadcast_shape(paddle.broadcast_shape(condition.shape, x.shape), y.shape)
    return paddle.where(*(paddle.expand(t, shape) for t in (condition, x, y)))


def logsigmoid(x):
    return F.log_sigmoid(x)


def mish(x, threshold=20.0):
    return paddle._C_ops.mish(x, threshold)


def prelu(x, alpha, data_format="NCHW", mode="all"):
    return paddle._C_ops.prelu(x, alpha, data_format, mode)


def cast(x, dtype):
    return paddle.cast(x, _DTYPES[dtype])


def polygamma(x, order):
    return paddle.polygamma(x, order)


for _name in "i0 i0e i1 i1e nextafter complex as_complex as_real isclose allclose equal_all".split():
    globals()[_name] = getattr(paddle, _name)


def logit(x, eps=0.0):
    return paddle.logit(x, eps or None)
