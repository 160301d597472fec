"""NumPy and SciPy references of the elementwise ops: arithmetic, comparison, mathematics, activations, conversion,
and fused_elementwise. One function per op, named as the op: tests/ops/test_ops.py calls it with the op's fields,
tensors as NumPy arrays, and compares Proa's outputs with the outputs that it returns, in the op table's order (None:
not compared)."""
import numpy as np
from scipy import special

_DTYPES = {"BOOL": np.bool_, "U8": np.uint8, "I8": np.int8, "I16": np.int16, "I32": np.int32, "I64": np.int64,
           "F16": np.float16, "BF16": np.float32, "F32": np.float32, "F64": np.float64, "C64": np.complex64,
           "C128": np.complex128}


def _floating(x):
    """x, or for integers x as float32, which is also the result's dtype."""
    return x.astype(np.float32) if x.dtype.kind in "iub" else x


def _unary(function):
    return lambda x: function(x)


def _binary(function):
    return lambda x, y: function(x, y)


def _integers(x, y):
    return np.result_type(x).kind in "iub"


# ---- binary ----

def add(x, y):
    return x + y


def subtract(x, y):
    return x - y


def multiply(x, y):
    return x * y


def divide(x, y):
    if not _integers(x, y):
        return x / y
    q = np.trunc(x.astype(np.float64) / np.where(y == 0, 1, y))
    return np.where(y == 0, 0, q).astype(x.dtype)


def floor_divide(x, y):
    if _integers(x, y):
        return np.where(y == 0, 0, np.floor_divide(x, np.where(y == 0, 1, y))).astype(x.dtype)
    return np.floor(x / y)


def remainder(x, y):
    if _integers(x, y):
        return np.where(y == 0, 0, np.remainder(x, np.where(y == 0, 1, y))).astype(x.dtype)
    return np.remainder(x, y)


def elementwise_pow(x, y):
    return np.power(x, y)


maximum = _binary(np.maximum)
minimum = _binary(np.minimum)
fmax = _binary(np.fmax)
fmin = _binary(np.fmin)


def heaviside(x, y):
    return np.where(x == 0, y, (x > 0).astype(np.result_type(x)))


def atan2(x, y):
    if _integers(x, y):
        return np.arctan2(x.astype(np.float64), y.astype(np.float64))
    return np.arctan2(x, y)


def lerp(x, y, weight):
    return x + weight * (y - x)


def where(condition, x, y):
    return np.where(condition, x, y)


def equal(x, y):
    return x == y


def not_equal(x, y):
    return x != y


def less_than(x, y):
    return x < y


def less_equal(x, y):
    return x <= y


def greater_than(x, y):
    return x > y


def greater_equal(x, y):
    return x >= y


logical_and = _binary(np.logical_and)
logical_or = _binary(np.logical_or)
logical_xor = _binary(np.logical_xor)
logical_not = _unary(np.logical_not)
bitwise_and = _binary(np.bitwise_and)
bitwise_or = _binary(np.bitwise_or)
bitwise_xor = _binary(np.bitwise_xor)
bitwise_not = _unary(np.bitwise_not)
isnan = _unary(np.isnan)
isinf = _unary(np.isinf)
isfinite = _unary(np.isfinite)

# ---- unary mathematics ----

abs = _unary(np.abs)
neg = _unary(lambda x: x if x.dtype == np.bool_ else -x)
square = _unary(np.square)
sign = _unary(np.sign)
conj = _unary(np.conj)
real = _unary(np.real)
imag = _unary(np.imag)
sqrt = _unary(np.sqrt)
reciprocal = _unary(np.reciprocal)
floor = _unary(np.floor)
ceil = _unary(np.ceil)
trunc = _unary(np.trunc)
sin = _unary(np.sin)
cos = _unary(np.cos)
tan = _unary(np.tan)
asin = _unary(np.arcsin)
acos = _unary(np.arccos)
atan = _unary(np.arctan)
sinh = _unary(np.sinh)
cosh = _unary(np.cosh)
tanh = _unary(np.tanh)
asinh = _unary(np.arcsinh)
acosh = _unary(np.arccosh)
atanh = _unary(np.arctanh)
erf = _unary(special.erf)
erfinv = _unary(special.erfinv)
lgamma = _unary(special.gammaln)
digamma = _unary(special.digamma)


def exp(x):
    return np.exp(_floating(x))


def expm1(x):
    return np.expm1(_floating(x))


def log(x):
    return np.log(_floating(x))


def log2(x):
    return np.log2(_floating(x))


def log10(x):
    return np.log10(_floating(x))


def log1p(x):
    return np.log1p(_floating(x))


def rsqrt(x):
    return 1 / np.sqrt(x)


def round(x):
    return np.copysign(np.floor(np.abs(x) + 0.5), x)


def angle(x):
    return np.angle(x)


def digamma_grad(x, d_out):
    return d_out * special.polygamma(1, x)


def stanh(x, scale_a=0.67, scale_b=1.7159):
    return scale_b * np.tanh(scale_a * x)


def scale(x, scale=1.0, bias=0.0, bias_after_scale=True):
    if x.dtype.kind in "iub":
        s, b, wide = int(scale), int(bias), x.astype(np.int64)
        return ((wide * s + b) if bias_after_scale else (wide + b) * s).astype(x.dtype)
    return x * scale + bias if bias_after_scale else (x + bias) * scale


def clip(x, min=None, max=None):
    if x.dtype.kind in "iu":
        min, max = min if min is None else int(min), max if max is None else int(max)
    return np.clip(x, min, max).astype(x.dtype)


def pow(x, y):
    return np.power(x, x.dtype.type(y))


# ---- activations ----

def relu(x):
    return np.maximum(x, 0)


def relu6(x):
    return np.clip(x, 0, 6)


def sigmoid(x):
    return 1 / (1 + np.exp(-x)) if np.iscomplexobj(x) else special.expit(x)


def logsigmoid(x):
    if np.iscomplexobj(x):
        return np.where(x.real < 0, x - np.log(1 + np.exp(x)), -np.log(1 + np.exp(-x)))
    return special.log_expit(x)


def leaky_relu(x, negative_slope=0.01):
    return np.where(x > 0, x, negative_slope * x)


def elu(x, alpha=1.0):
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def selu(x, scale=1.0507009873554804934193349852946, alpha=1.6732632423543772848170429916717):
    return scale * elu(x, alpha)


def celu(x, alpha=1.0):
    return np.maximum(x, 0) + np.minimum(alpha * np.expm1(np.minimum(x, 0) / alpha), 0)


def gelu(x, approximate=False):
    if approximate:
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))
    return x * special.ndtr(x)


def silu(x):
    return x * sigmoid(x)


swish = silu


def softplus(x, beta=1.0, threshold=20.0):
    if np.iscomplexobj(x):
        return np.where(beta * x.real > threshold, x, np.log(1 + np.exp(beta * x)) / beta)
    return np.where(beta * x > threshold, x, np.logaddexp(0, beta * x) / beta)


def mish(x, threshold=20.0):
    return x * np.tanh(softplus(x, 1.0, threshold))


def softsign(x):
    return x / (1 + np.abs(x))


def hardsigmoid(x, slope=0.1666667, offset=0.5):
    return np.clip(x * slope + offset, 0, 1)


def hardswish(x):
    if np.iscomplexobj(x):
        return x * np.where(x.real < -3, 0, np.where(x.real > 3, 6, x + 3)) / 6
    return x * np.clip(x + 3, 0, 6) / 6


def hardtanh(x, min=-1.0, max=1.0):
    return np.clip(x, min, max)


def hardshrink(x, threshold=0.5):
    return np.where(np.abs(x) <= threshold, 0, x)


def softshrink(x, threshold=0.5):
    return np.sign(x) * np.maximum(np.abs(x) - threshold, 0)


def tanhshrink(x):
    return x - np.tanh(x)


def thresholded_relu(x, threshold=1.0):
    return np.where(x > threshold, x, 0)


def prelu(x, alpha, data_format="NCHW", mode="all"):
    shape = [1] * x.ndim
    if mode == "channel":
        shape[1 if data_format.startswith("NC") else -1] = -1
    elif mode == "element":
        shape = (1,) + x.shape[1:]
    return np.where(x > 0, x, alpha.reshape(shape) * x)


def relu_grad(out, d_out):
    return np.where(out > 0, d_out, 0)


def relu6_grad(out, d_out):
    return np.where((out > 0) & (out < 6), d_out, 0)


def hardswish_grad(x, d_out):
    return d_out * np.where(x <= -3, 0, np.where(x >= 3, 1, x / 3 + 0.5))


def leaky_relu_grad(x, d_out, negative_slope=0.01):
    return d_out * np.where(x >= 0, 1, negative_slope)


def hardsigmoid_grad(out, d_out, slope=0.1666667, offset=0.5):
    return np.where((out > 0) & (out < 1), d_out * slope, 0)


def softplus_grad(x, d_out, beta=1.0, threshold=20.0):
    return d_out * np.where(beta * x > threshold, 1, special.expit(beta * x))


def mish_grad(x, d_out, threshold=20.0):
    t = np.tanh(softplus(x, 1.0, threshold))
    return d_out * (t + x * (1 - t * t) * special.expit(x))


def sigmoid_grad(out, d_out):
    return d_out * out * (1 - out)


def tanh_grad(out, d_out):
    return d_out * (1 - out * out)


def silu_grad(x, d_out):
    s = special.expit(x)
    return d_out * s * (1 + x * (1 - s))


def gelu_grad(x, d_out, approximate=False):
    if approximate:
        k = np.sqrt(2 / np.pi)
        t = np.tanh(k * (x + 0.044715 * x ** 3))
        return d_out * 0.5 * (1 + t + x * (1 - t * t) * k * (1 + 3 * 0.044715 * x * x))
    return d_out * (special.ndtr(x) + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi))


# ---- conversion ----

def cast(x, dtype):
    return (x.real if np.iscomplexobj(x) and dtype not in ("C64", "C128", "BOOL") else x).astype(_DTYPES[dtype])


def assign(x):
    return x.copy()


def fused_elementwise(x, steps):
    made, outs = [], []
    for step in steps.split(";"):
        words = step.split()
        out, words = words[0] == "out", words[1 if words[0] == "out" else 2:]
        operands = [x[int(w[1:])] if w[0] == "x" else made[int(w[1:])] for w in words[1:] if "=" not in w]
        attrs = {k: v == "true" if v in ("true", "false") else float(v)
                 for k, v in (w.split("=") for w in words[1:] if "=" in w)}
        made.append(np.asarray(globals()[words[0]](*operands, **attrs)))
        outs += [made[-1]] if out else []
    return [outs]


# ---- special functions, complex pairs, closeness ----

i0, i0e, i1, i1e = (_unary(f) for f in (special.i0, special.i0e, special.i1, special.i1e))


def polygamma(x, order):
    n = order
    sign = -1.0 if n % 2 == 0 else 1.0
    wide = x.astype(np.float64)
    left = np.zeros_like(wide)  # SciPy's zeta takes no numbers left of 0: those terms are summed one by one
    for i in np.ndindex(*wide.shape):
        while wide[i] < 0:
            left[i] += wide[i] ** -(n + 1.0)
            wide[i] += 1
    return (sign * special.gamma(n + 1.0) * (special.zeta(n + 1.0, wide) + left)).astype(x.dtype)


def logit(x, eps=0.0):
    if eps:
        x = np.clip(x, x.dtype.type(eps), x.dtype.type(1 - eps))
    return special.logit(x)


def nextafter(x, y):
    return np.nextafter(x, y)


def complex(real, imag):
    return (real + 1j * imag).astype(np.complex128 if real.dtype == np.float64 else np.complex64)


def as_complex(x):
    return x[..., 0] + x.dtype.type(1) * 1j * x[..., 1] if x.dtype == np.float64 else \
        (x[..., 0] + 1j * x[..., 1]).astype(np.complex64)


def as_real(x):
    return np.stack([x.real, x.imag], -1)


def isclose(x, y, rtol=1e-5, atol=1e-8, equal_nan=False):
    return np.isclose(x, y, rtol, atol, equal_nan)


def allclose(x, y, rtol=1e-5, atol=1e-8, equal_nan=False):
    return np.asarray(np.allclose(x, y, rtol, atol, equal_nan))


def equal_all(x, y):
    return np.asarray(x.shape == y.shape and bool(np.all(x == y)))
