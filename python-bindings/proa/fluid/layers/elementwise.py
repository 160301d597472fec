"""fluid.layers: elementwise functions and activations, with the signatures of Paddle 1.x."""
from ... import _core
from ...framework import mode
from ...static.variable import Variable
from ..data_feeder import check_type, check_variable_and_dtype
from ..layer_helper import LayerHelper, one_op

_UNARY = """abs acos asin atan ceil cos cosh erf exp floor log log1p logsigmoid reciprocal relu round rsqrt sigmoid sign sin
sinh softsign sqrt square tanh tanh_shrink""".split()
_BINARY = "elementwise_add elementwise_div elementwise_floordiv elementwise_max elementwise_min elementwise_mod elementwise_mul \
elementwise_pow elementwise_sub".split()
_COMPARISONS = "equal greater_equal greater_than less_equal less_than not_equal".split()
_REDUCTIONS = "reduce_all reduce_any reduce_max reduce_mean reduce_min reduce_prod reduce_sum".split()
_LOGICAL = "logical_and logical_or logical_xor".split()

__all__ = [*_UNARY, *_BINARY, *_COMPARISONS, *_REDUCTIONS, *_LOGICAL, "brelu", "clip", "clip_by_norm", "cumsum", "elu",
           "gelu", "hard_shrink", "hard_sigmoid", "hard_swish", "increment", "leaky_relu", "logical_not", "maxout", "mean",
           "mish", "pow", "prelu", "relu6", "scale", "selu", "soft_relu", "softplus", "softmax", "softshrink", "stanh", "sum",
           "sums", "swish", "thresholded_relu"]


_FLOATING = ("float16", "bfloat16", "float32", "float64")
_NUMBERS = (*_FLOATING, "int32", "int64")


def _check(op_type, dtypes, **inputs):
    """TypeError for what 2.0 refuses while a program is built: no variable, or of another dtype."""
    if mode.by_name():
        for name, value in inputs.items():
            check_variable_and_dtype(value, name, dtypes, op_type)


def _unary(op_type):
    dtypes = (*_NUMBERS, "complex64", "complex128") if op_type in ("abs", "exp", "sign", "square") else _FLOATING

    def op(x, name=None):
        _check(op_type, dtypes, x=x)
        return one_op(op_type, {"X": x}, {}, "Out", name=name)
    return op


def _binary(op_type):
    def op(x, y, axis=-1, act=None, name=None):
        _check(op_type, (*_NUMBERS, "bool", "complex64", "complex128"), x=x, y=y)
        return one_op(op_type, {"X": x, "Y": y}, {"axis": axis}, "Out", act=act, name=name)
    return op


def _into(op_type, inputs, dtype, out, attrs=None):
    """One operator whose result a given variable takes."""
    helper = LayerHelper(op_type)
    out = helper.create_variable_for_type_inference(dtype, stop_gradient=True) if out is None else out
    helper.append_op(op_type, {k: [v] for k, v in inputs.items()}, {"Out": [out]}, attrs or {})
    return out


def _comparison(op_type):
    def op(x, y, cond=None, name=None, force_cpu=None):
        _check(op_type, (*_NUMBERS, "bool"), x=x, y=y)
        if cond is not None:
            check_type(cond, "cond", Variable, op_type)
        if force_cpu is not None:
            check_type(force_cpu, "force_cpu", bool, op_type)
        return _into(op_type, {"X": x, "Y": y}, "bool", cond)
    return op


def _reduction(op_type):
    def op(input, dim=None, keep_dim=False, name=None):
        dims = [] if dim is None else list(dim) if isinstance(dim, (list, tuple)) else [dim]
        _check(op_type, ("bool",) if op_type in ("reduce_all", "reduce_any") else _NUMBERS, input=input)
        everything = not dims or len(dims) == len(input.shape)
        return one_op(op_type, {"X": input}, {"dim": dims or [0], "keep_dim": keep_dim, "reduce_all": everything}, "Out",
                      name=name)
    return op


def _logical(op_type):
    def op(x, y, out=None, name=None):
        _check(op_type, (*_NUMBERS, "bool", "int8", "int16"), x=x, y=y)
        if out is not None:
            check_type(out, "out", Variable, op_type)
        return _into(op_type, {"X": x, "Y": y}, "bool", out)
    return op


for _names, _make in ((_UNARY, _unary), (_BINARY, _binary), (_COMPARISONS, _comparison), (_REDUCTIONS, _reduction),
                      (_LOGICAL, _logical)):
    for _name in _names:
        _op = globals()[_name] = _make(_name)
        _op.__name__ = _op.__qualname__ = _name
        _op.__doc__ = f"The operator {_name}."


def logical_not(x, out=None, name=None):
    """Whether x is false."""
    return _into("logical_not", {"X": x}, "bool", out)


def _with_attrs(op_type, x, name=None, **attrs):
    return one_op(op_type, {"X": x}, attrs, "Out", name=name)


def brelu(x, t_min=0.0, t_max=24.0, name=None):
    """x within [t_min, t_max]."""
    return _with_attrs("brelu", x, name, t_min=t_min, t_max=t_max)


def clip(x, min, max, name=None):
    """x within [min, max]."""
    return _with_attrs("clip", x, name, min=float(min), max=float(max))


def clip_by_norm(x, max_norm, name=None):
    """x, scaled down to the L2 norm max_norm if it is longer."""
    return _with_attrs("clip_by_norm", x, name, max_norm=float(max_norm))


def cumsum(x, axis=None, exclusive=None, reverse=None):
    """Sums of all up to each element."""
    return _with_attrs("cumsum", x, axis=axis, exclusive=exclusive, reverse=reverse)


def elu(x, alpha=1.0, name=None):
    """x, or alpha · (exp(x) − 1) below zero."""
    return _with_attrs("elu", x, name, alpha=float(alpha))


def gelu(x, approximate=False):
    """x times the normal distribution's cumulative function."""
    return _with_attrs("gelu", x, approximate=approximate)


def hard_shrink(x, threshold=None):
    """x, or 0 within the threshold (0.5)."""
    return _with_attrs("hard_shrink", x, threshold=threshold)


def hard_sigmoid(x, slope=0.2, offset=0.5, name=None):
    """slope · x + offset within [0, 1]."""
    return _with_attrs("hard_sigmoid", x, name, slope=float(slope), offset=float(offset))


def hard_swish(x, threshold=6.0, scale=6.0, offset=3.0, name=None):
    """x · min(max(0, x + offset), threshold) / scale."""
    return _with_attrs("hard_swish", x, name, threshold=float(threshold), scale=float(scale), offset=float(offset))


def leaky_relu(x, alpha=0.02, name=None):
    """x, or alpha · x below zero."""
    return _with_attrs("leaky_relu", x, name, alpha=float(alpha))


def mish(x, threshold=20, name=None):
    """x · tanh(softplus(x))."""
    return _with_attrs("mish", x, name, threshold=float(threshold))


def pow(x, factor=1.0, name=None):
    """x to the power of factor, a number or a tensor of one."""
    if isinstance(factor, _core.Tensor):
        return one_op("pow", {"X": x, "FactorTensor": factor}, {}, "Out", name=name)
    return _with_attrs("pow", x, name, factor=float(factor))


def prelu(x, mode, param_attr=None, name=None):
    """x, or a learnt slope times x below zero: one slope in all, one a channel, or one an element."""
    from ...static.nn import prelu as layer
    return layer(x, mode, param_attr, name=name)


def relu6(x, threshold=6.0, name=None):
    """x within [0, threshold]."""
    return _with_attrs("relu6", x, name, threshold=float(threshold))


def scale(x, scale=1.0, bias=0.0, bias_after_scale=True, act=None, name=None):
    """scale · x + bias, or scale · (x + bias)."""
    inputs, attrs = {"X": x}, {"bias": float(bias), "bias_after_scale": bias_after_scale}
    if isinstance(scale, _core.Tensor):
        inputs["ScaleTensor"] = scale
    else:
        attrs["scale"] = float(scale)
    return one_op("scale", inputs, attrs, "Out", act=act, name=name)


def selu(x, scale=None, alpha=None, name=None):
    """scale · elu(x, alpha)."""
    return _with_attrs("selu", x, name, scale=scale, alpha=alpha)


def soft_relu(x, threshold=40.0, name=None):
    """log(1 + exp(x)), where x is cut to [-threshold, threshold]."""
    return _with_attrs("soft_relu", x, name, threshold=float(threshold))


def softplus(x, name=None):
    """log(1 + exp(x))."""
    return one_op("softplus", {"X": x}, {}, "Out", name=name)


def softmax(input, use_cudnn=True, name=None, axis=-1):
    """exp(x) over its sum along an axis."""
    return one_op("softmax", {"X": input}, {"axis": axis}, "Out", name=name)


def softshrink(x, alpha=None):
    """x brought nearer to zero by alpha (0.5)."""
    return _with_attrs("softshrink", x, **{"lambda": 0.5 if alpha is None else float(alpha)})


def stanh(x, scale_a=0.67, scale_b=1.7159, name=None):
    """scale_b · tanh(scale_a · x)."""
    return _with_attrs("stanh", x, name, scale_a=float(scale_a), scale_b=float(scale_b))


def swish(x, beta=1.0, name=None):
    """x · sigmoid(beta · x)."""
    return _with_attrs("swish", x, name, beta=float(beta))


def thresholded_relu(x, threshold=None):
    """x above the threshold (1.0), else 0."""
    return _with_attrs("thresholded_relu", x, threshold=threshold)


def maxout(x, groups, name=None, axis=1):
    """The largest of each group of channels."""
    return _with_attrs("maxout", x, name, groups=groups, axis=axis)


def mean(x, name=None):
    """The mean of all elements, of shape [1]."""
    return one_op("mean", {"X": x}, {}, "Out", name=name)


def sum(x):
    """The sum of tensors of one shape."""
    return one_op("sum", {"X": x}, {}, "Out")


def sums(input, out=None):
    """The sum of a list of tensors, which `out` takes if it is given."""
    helper = LayerHelper("sum")
    inputs = list(input) if isinstance(input, (list, tuple)) else [input]
    out = helper.create_variable_for_type_inference(inputs[0].dtype) if out is None else out
    helper.append_op("sum", {"X": inputs}, {"Out": [out]})
    return out


def increment(x, value=1.0, in_place=True):
    """x + value, which x itself takes."""
    helper = LayerHelper("increment")
    out = x if in_place else helper.create_variable_for_type_inference(x.dtype)
    helper.append_op("increment", {"X": [x]}, {"Out": [out]}, {"step": float(value)})
    return out
