"""Mathematics that is more than one op: add_n, lerp forms, gcd, diff, trapezoid, nan-aware sums, in-place twins."""
from .. import _core
from .._asks import ask, asks, need_kernel
from .._errors import need_attribute, of_dtype, of_kind
from ..framework.dims import alike, differ, known, reshaped, runs_number
from ._tools import (COMPARED, END, FLOATING, Tensor, dtype_name, is_number, late_program, like, need_elements, need_few_dims,
                     need_one_floating, need_variable, overwrite, public, twin, whole_number)
from .attribute import is_complex

__all__ = ["add_n", "clip_", "combinations", "count_nonzero", "cummax", "cummin", "cumsum", "cumulative_trapezoid",
           "deg2rad", "diff", "frac", "frexp", "gcd", "hypot", "increment", "inner", "lcm", "ldexp", "lerp",
           "logaddexp", "logcumsumexp", "multigammaln", "nan_to_num", "nanmean", "nansum", "outer", "polygamma",
           "pow", "pow_", "rad2deg", "renorm", "scale", "scale_", "sgn", "take", "trapezoid", "vander"]


@asks("eager:inputs:list,tuple,Tensor!InvalidArgument eager:inputs+!InvalidArgument static:inputs:list,tuple,Tensor "
      "static:inputs+!IndexError")
def add_n(inputs, name=None):
    """The sum of a list of tensors.

    >>> paddle.add_n([paddle.ones([2])] * 3).tolist()
    [3.0, 3.0]
    """
    for t in [inputs] if isinstance(inputs, Tensor) else inputs:
        if isinstance(t, Tensor) and dtype_name(t.dtype) in ("bool", "uint8", "int8", "int16"):
            raise of_dtype(f"add_n: inputs are {dtype_name(t.dtype)}; expected int32, int64, a floating or complex dtype (convert with cast)")
    if isinstance(inputs, Tensor):
        return _core.assign(inputs)
    if not inputs:
        raise ValueError("add_n: inputs must hold at least one Tensor")
    total = inputs[0]
    for t in inputs[1:]:
        total = _core.add(total, t)
    return _core.assign(total) if len(inputs) == 1 else total


def scale(x, scale=1.0, bias=0.0, bias_after_scale=True, act=None, name=None):
    """x·scale + bias, or (x + bias)·scale; act names an activation to put on top.

    >>> paddle.scale(paddle.to_tensor([1.0, 2.0]), 3.0, bias=1.0).tolist()
    [4.0, 7.0]
    """
    out = _core.scale(x, scale, float(bias), bias_after_scale)
    return out if act is None else getattr(_core, act)(out)


def scale_(x, scale=1.0, bias=0.0, bias_after_scale=True, act=None, name=None):
    """In-place form of scale; eagerly without act, as in Paddle."""
    _core.scale_(x, scale, float(bias), bias_after_scale)
    return overwrite(x, getattr(_core, act)(x), "scale_") if act is not None and _core.is_capturing() else x


@asks("eager:y.dtype static:y:number,Tensor static:x.dtype static:y.dtype=f2,bf,f4,f8,i4,i8,b x,y>>i4,i8,bf,f4,f8")
def pow(x, y, name=None):
    """x to the power y, a number or a Tensor."""
    if isinstance(y, Tensor):
        need_one_floating("pow", x, y)
        return _core.elementwise_pow(x, y)
    if not isinstance(y, (int, float)) and (isinstance(y, complex) or not is_number(y)):
        raise TypeError(f"pow: y must be a number or a Tensor, got {type(y).__name__}")
    return _core.pow(x, y)


@asks("x~f4,f8,i4,i8 static:value:number,bool eager:x.dtype=f4,f8,i4,i8!NotFound")
def increment(x, value=1.0, name=None):
    """Adds value to the one-element tensor x, in place."""
    if not isinstance(x, Tensor):
        raise of_kind(f"increment: x must be a Tensor, got {type(x).__name__}")
    if any(differ(n, 1) for n in x.shape):
        raise ValueError(f"(InvalidArgument) increment: x must have one element, got shape {x.shape}")
    if late_program(x):
        from ..fluid.layers import increment as written
        return written(x, value)
    return _core.scale_(x, 1.0, float(value))


@asks("eager:weight:Tensor,float!InvalidArgument static:weight:Tensor,float x~bf,f2,f4,f8 y~bf,f2,f4,f8 "
      "static:weight.dtype=bf,f2,f4,f8 x,weight>>f4,f8 x>>f4,f8>>y")
def lerp(x, y, weight, name=None):
    """x + weight·(y - x); weight is a float or a Tensor."""
    if not isinstance(weight, (float, Tensor)) and not runs_number(weight):
        raise of_kind(f"lerp: weight must be a float or a Tensor, got {type(weight).__name__}")
    need_one_floating("lerp", x, y, weight)
    return _core.lerp(x, y, like(weight, x))


@asks("x.shape y.shape x~f2,f4,f8 y~f2,f4,f8 static:x[-1]=y[-1] x,y>>i4,i8,f4,f8,c8,c16")
def inner(x, y, name=None):
    """Products summed over both last axes; elementwise if one of the two has one element (unknown dims: more)."""
    if any(all(alike(n, 1) for n in t.shape) for t in (x, y)):
        return _core.multiply(x, y)
    a, b = _core.reshape(x, [-1, x.shape[-1]]), _core.reshape(y, [-1, y.shape[-1]])
    return reshaped(public.matmul(a, b, False, True), x.shape[:-1] + y.shape[:-1])


def outer(x, y, name=None):
    """The matrix of all products of x's elements with y's.

    >>> paddle.outer(paddle.to_tensor([1, 2]), paddle.to_tensor([3, 4])).tolist()
    [[3, 4], [6, 8]]
    """
    need_elements("outer", x, y)
    try:
        return public.matmul(_core.reshape(x, [-1, 1]), _core.reshape(y, [1, -1]))
    except Exception as error:
        need_attribute("outer", "reshape", x=x, y=y)
        ask("x,y>>i4,i8,f4,f8,c8,c16", "outer", error, x=x, y=y)
        raise


@asks("static:x.dtype=i4,i8,f2,bf,f4,f8,c8,c16 static:y.dtype=b,i4,i8,f2,bf,f4,f8,c8,c16 static:x,y>>i2,i4,i8,bf,f4,f8,c8,c16")
def logaddexp(x, y, name=None):
    """log(exp(x) + exp(y))."""
    near = _core.exp(_core.neg(_core.abs(x - y)))
    return _core.add(_core.log1p(near), public.maximum(x, y))


@asks("static:axis:-Tensor!InvalidArgument x~f2,bf,f4,f8,i4,i8 eager:axis:int,None!InvalidArgument eager:axis[]@x!OutOfRange")
def cumsum(x, axis=None, dtype=None, name=None):
    """Running sums along axis, of flattened x without axis.

    >>> paddle.cumsum(paddle.to_tensor([1, 2, 3])).tolist()
    [1, 3, 6]
    """
    if dtype is not None:
        x = _core.cast(x, dtype)
    if isinstance(axis, (list, tuple)) and len(axis) == 1 and isinstance(axis[0], Tensor):  # as programs of Paddle take it
        axis, = axis
    need_kernel("cumsum", "i2,i4,i8,f4,f8", x=x)
    return _core.cumsum(x, -1 if axis is None else axis, None, axis is None)


@asks("x~f2,f4,f8,bf")
def logcumsumexp(x, axis=None, dtype=None, name=None):
    """Running log-sum-exp along axis, of flattened x without axis."""
    if dtype is not None:
        x = _core.cast(x, dtype)
    if axis is None:
        x, axis = _core.flatten(x), 0
    return _core.logcumsumexp(x, axis)


def _running(op, x, axis, dtype):
    if axis is None:
        need_attribute(op, "flatten", x=x)
        if not isinstance(x, Tensor):
            raise TypeError(f"{op}: x must be a Tensor, got {type(x).__name__}")
        x, axis = _core.flatten(x), 0
    if dtype_name(dtype) not in ("int32", "int64"):
        raise TypeError(f"{op}: dtype must be int32 or int64, got {dtype_name(dtype)}")
    return tuple(getattr(_core, op)(x, axis, dtype))


@asks("eager:dtype^")
def cummax(x, axis=None, dtype="int64", name=None):
    """Running maxima along axis (of flattened x without axis), and where they are."""
    return _running("cummax", x, axis, dtype)


@asks("eager:dtype^")
def cummin(x, axis=None, dtype="int64", name=None):
    """Running minima along axis (of flattened x without axis), and where they are."""
    return _running("cummin", x, axis, dtype)


def clip_(x, min=None, max=None, name=None):
    """In-place form of clip."""
    low = -3.4028234663852886e38 if min is None else min
    high = 3.4028234663852886e38 if max is None else max
    return _core.clip_(x, low, high)


def _as_floating(x):
    need_variable(x, "x")
    return x if dtype_name(x.dtype) in FLOATING else _core.cast(x, "float32")


@asks("x~i4,i8,f4,f8")
def rad2deg(x, name=None):
    """Radians to degrees."""
    return _core.scale(_as_floating(x), 57.29577951308232)


@asks("x~i4,i8,f4,f8")
def deg2rad(x, name=None):
    """Degrees to radians."""
    return _core.scale(_as_floating(x), 0.017453292519943295)


@asks("x.shape y.shape static:x&&y!InvalidArgument x~b,bf,f2,f4,f8,i4,i8 y~b,bf,f2,f4,f8,i4,i8 x~i4,i8 y~i4,i8 "
      "eager:x>>i4,i8,f4,f8,c8,c16 eager:y>>i4,i8,f4,f8,c8,c16 eager:x,y>>i4,i8,f4,f8,c8,c16")
def gcd(x, y, name=None):
    """The greatest common divisor, element by element."""
    need_attribute("gcd", "shape", x=x, y=y)
    need_one_floating("gcd", x, y)
    x, y = _core.add(x, _core.full_like(y, 0)), _core.add(y, _core.full_like(x, 0))
    x, y = _core.abs(x), _core.abs(y)

    def some_left(x, y):
        return _core.any(_core.not_equal(y, like(0, y)))

    def step(x, y):
        more = _core.not_equal(y, like(0, y))
        rest = _core.remainder(x, _core.where(more, y, _core.full_like(y, 1)))
        return _core.where(more, y, x), _core.where(more, rest, y)
    if x.is_symbolic or y.is_symbolic:
        return _core.while_loop(some_left, step, [x, y])[0]
    while bool(some_left(x, y)):
        x, y = step(x, y)
    return x


@asks("x.shape y.shape static:x&&y!InvalidArgument x~b,bf,f2,f4,f8,i4,i8 y~b,bf,f2,f4,f8,i4,i8 x~i4,i8 y~i4,i8 "
      "eager:x>>i4,i8,f4,f8,c8,c16 eager:y>>i4,i8,f4,f8,c8,c16 eager:x,y>>i4,i8,f4,f8,c8,c16")
def lcm(x, y, name=None):
    """The least common multiple, element by element."""
    need_attribute("lcm", "shape", x=x, y=y)
    d = gcd(x, y)
    none = _core.equal(d, like(0, d))
    safe = _core.where(none, _core.full_like(d, 1), d)
    return _core.floor_divide(_core.abs(_core.multiply(x, y)), safe)


@asks("static:x.shape static:n:-Tensor!ValueError x~f2,f4,f8,b,i4,i8")
def diff(x, n=1, axis=-1, prepend=None, append=None, name=None):
    """Differences of neighbors along axis, n times over.

    >>> paddle.diff(paddle.to_tensor([1, 4, 9])).tolist()
    [3, 5]
    """
    if n < 1:
        raise ValueError(f"diff: n must be at least 1, got {n}")
    axis = axis + len(x.shape) if axis < 0 else axis
    for _ in range(n):
        parts = [t for t in (prepend, x, append) if t is not None]
        whole = _core.concat(parts, axis) if len(parts) > 1 else x
        front, back = _core.slice(whole, [axis], [0], [-1]), _core.slice(whole, [axis], [1], [END])
        x = _core.logical_xor(back, front) if dtype_name(x.dtype) == "bool" else _core.subtract(back, front)
        if alike(x.shape[axis], 0) and prepend is append is None:
            break       # and so are all further differences
    return x


@asks("static:x.dtype x~i4,i8,f4,f8")
def frac(x, name=None):
    """x without its whole part."""
    if dtype_name(x.dtype) not in ("int32", "int64", "float32", "float64") or not isinstance(x, Tensor):
        raise TypeError(f"frac: x must be int32, int64, float32 or float64, got {dtype_name(x.dtype)}")
    return _core.subtract(x, _core.trunc(x))


def sgn(x, name=None):
    """x's sign; of a complex x, x divided by its absolute value."""
    if dtype_name(x.dtype) not in ("float16", "float32", "float64", "complex64", "complex128"):
        raise TypeError(f"sgn: x must be floating or complex, got {dtype_name(x.dtype)}")
    if not is_complex(x):
        return _core.sign(x)
    size = _core.abs(x)
    size = _core.where(_core.equal(size, like(0, size)), _core.full_like(size, 1), size)
    return _core.complex(_core.divide(_core.real(x), size), _core.divide(_core.imag(x), size))


@asks("x~bf,f2,f4,f8 static:y>>bf,f2,f4,f8,i4,i8 eager:x>>f4,f8 eager:y>>f4,f8 x,y>>f4,f8")
def hypot(x, y, name=None):
    """sqrt(x² + y²)."""
    for t, what in ((x, "x"), (y, "y")):
        if not isinstance(t, Tensor):
            raise TypeError(f"hypot: {what} must be a Tensor, got {type(t).__name__}")
    return _core.sqrt(_core.pow(x, 2) + _core.pow(y, 2))


@asks("x~b,f2,f4,f8,i2,i4,i8,u1,bf y~b,f2,f4,f8,i2,i4,i8,u1,bf")
def ldexp(x, y, name=None):
    """x·2^y."""
    for t, what in ((x, "x"), (y, "y")):
        if not isinstance(t, Tensor):
            raise TypeError(f"ldexp: {what} must be a Tensor, got {type(t).__name__}")
    wide = "float64" if "float64" in (dtype_name(x.dtype), dtype_name(y.dtype)) else _core.get_default_dtype()
    return _core.multiply(_core.cast(x, wide), _core.elementwise_pow(_core.full([], 2, wide), _core.cast(y, wide)))


def frexp(x, name=None):
    """Mantissa in [0.5, 1) and exponent with x = mantissa·2^exponent."""
    if dtype_name(x.dtype) not in ("float32", "float64") or not isinstance(x, Tensor):
        raise TypeError(f"frexp: x must be float32 or float64, got {dtype_name(x.dtype)}")
    size = _core.abs(x)
    exponent = _core.floor(_core.log2(size))
    exponent = _core.where(_core.isinf(exponent), _core.full_like(exponent, 0), exponent)
    two = like(2, x)
    mantissa = _core.divide(size, _core.elementwise_pow(two, exponent))
    high = _core.greater_equal(mantissa, like(1, x))
    exponent = _core.where(high, _core.scale(exponent, 1, 1.0), exponent)
    mantissa = _core.where(high, _core.scale(mantissa, 0.5), mantissa)
    return _core.where(_core.less_than(x, like(0, x)), _core.neg(mantissa), mantissa), exponent


def multigammaln(x, p, name=None):
    """The logarithm of the multivariate gamma function of dimension p."""
    need_few_dims("multigammaln", x=x)
    if isinstance(p, Tensor):
        return _multigammaln_of_tensor(x, p)
    if not p >= 1:
        raise AssertionError(f"multigammaln: p must be at least 1, got {p}")
    shifts = _core.scale(_core.arange(1 - p, 1, 1, x.dtype), 0.5)
    terms = _core.lgamma(_core.add(_core.unsqueeze(x, [-1]), shifts))
    return _core.scale(_core.sum(terms, [-1]), 1, 0.25 * p * (p - 1) * 1.1447298858494002)


def _multigammaln_of_tensor(x, p):
    if not p.is_symbolic and not p.item() >= 1:
        raise AssertionError(f"multigammaln: p must be at least 1, got {p.item()}")
    p = _core.reshape(p, [])
    shifts = _core.scale(_core.arange(_core.cast(like(1, p) - p, x.dtype), 1, 1, x.dtype), 0.5)
    terms = _core.lgamma(_core.add(_core.unsqueeze(x, [-1]), shifts))
    p = _core.cast(p, x.dtype)
    return _core.add(_core.sum(terms, [-1]), _core.scale(p * (p - 1.0), 0.25 * 1.1447298858494002))


@asks("n:int")
def polygamma(x, n, name=None):
    """The n-th derivative of digamma."""
    n = whole_number("polygamma", "n", n)
    if n < 0:
        raise ValueError(f"polygamma: n must not be negative, got {n}")
    return _core.digamma(x) if n == 0 else _core.polygamma(x, n)


@asks("static:x.dtype=b,f2,bf,f4,f8,i2,i4,i8")
def nan_to_num(x, nan=0.0, posinf=None, neginf=None, name=None):
    """x with NaN and the infinities replaced by numbers (the dtype's greatest and least by default).

    >>> paddle.nan_to_num(paddle.to_tensor([float('nan'), 2.0])).tolist()
    [0.0, 2.0]
    """
    kind = dtype_name(x.dtype)
    if kind not in ("float32", "float64"):
        raise AssertionError(f"nan_to_num: x must be float32 or float64, got {kind}")
    top = 3.4028234663852886e38 if kind == "float32" else 1.7976931348623157e308
    high, low = top if posinf is None else posinf, -top if neginf is None else neginf
    plain = posinf is None and neginf is None and isinstance(nan, (int, float)) and abs(nan) <= top
    if plain and x.stop_gradient and not _core.is_capturing():  # clip would stop the gradient at ±top
        return _core.where(_core.isnan(x), like(nan, x), _core.clip(x, -top, top))
    x = _core.where(_core.isnan(x), _core.full_like(x, nan), x)
    for bad, good in ((float("inf"), high), (float("-inf"), low)):
        x = _core.where(_core.equal(x, like(bad, x)), _core.full_like(x, good), x)
    return x


@asks("eager:x.dtype eager:x.place axis[i] x~f2,f4,f8,i4,i8")
def nansum(x, axis=None, dtype=None, keepdim=False, name=None):
    """sum, with NaN counted as zero."""
    if axis is None:
        need_elements("nansum", x)
    if dtype_name(x.dtype) in FLOATING:
        x = _core.where(_core.isnan(x), _core.full_like(x, 0), x)
    return _core.sum(x, [] if axis is None else axis, dtype, keepdim)


@asks("eager:x.dtype axis[i] x~bf,f2,f4,f8")
def nanmean(x, axis=None, keepdim=False, name=None):
    """The mean of what is not NaN."""
    if not _core.is_capturing() and dtype_name(x.dtype) == "int32":
        raise of_kind("nanmean: x is int32; expected a floating dtype (convert with cast)")
    axis = [] if axis is None else axis
    count = _core.sum(_core.cast(_core.logical_not(_core.isnan(x)), x.dtype), axis, None, keepdim)
    return _core.divide(nansum(x, axis, None, keepdim), count)


@asks("axis[i]")
def count_nonzero(x, axis=None, keepdim=False, name=None):
    """The number of elements that are not zero.

    >>> paddle.count_nonzero(paddle.to_tensor([0, 3, 4])).item()
    2
    """
    return _core.sum(_core.cast(_core.cast(x, "bool"), "int64"), [] if axis is None else axis, None, keepdim)


@asks("x.shape static:axis<? eager:axis:int,float,bool eager:axis:-float!InvalidArgument axis@x eager:p:number,bool!InvalidArgument "
      "eager:max_norm:number,bool!InvalidArgument static:p:number,bool static:max_norm:-Tensor!InvalidArgument x~f4,f8")
def renorm(x, p, axis, max_norm):
    """x with every slice along axis scaled down to a p-norm of at most max_norm."""
    ndim = len(x.shape)
    if not -ndim <= axis < ndim:
        raise ValueError(f"renorm: axis must be in [-{ndim}, {ndim}), got {axis}")
    return _core.renorm(x, float(p), axis, float(max_norm))


@asks("x.flatten x~bf,f2,f4,f8,i4,i8,c8,c16")
def take(x, index, mode="raise", name=None):
    """Elements of flattened x; mode says what becomes of indices outside: raise, wrap or clip."""
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"take: mode must be 'raise', 'wrap' or 'clip', got {mode!r}")
    if not isinstance(index, Tensor):
        raise TypeError(f"take: index must be a Tensor, got {type(index).__name__}")
    if dtype_name(index.dtype) not in ("int32", "int64"):
        raise TypeError(f"take: index must be int32 or int64, got {dtype_name(index.dtype)}")
    need_kernel("take", "i4,i8,f4,f8,c8,c16", x=x)
    flat, spots = _core.flatten(x), _core.flatten(index)
    count = flat.shape[0]
    if mode == "wrap":
        spots = _core.remainder(spots, like(count, spots))
    elif mode == "clip":
        spots = _core.minimum(_core.maximum(spots, like(0, spots)), like(count - 1, spots))
    else:
        spots = _core.where(_core.less_than(spots, like(0, spots)), _core.add(spots, like(count, spots)), spots)
    return reshaped(_core.index_select(flat, spots, 0), index.shape)


def _trapezoids(y, x, dx, axis, what):
    if x is not None and dx is not None:
        raise ValueError(f"{what}: x and dx cannot both be given")
    need_few_dims(what, y=y, x=x)
    for t in (y, x):
        if t is not None and dtype_name(t.dtype) not in ("float16", "float32", "float64"):
            raise TypeError(f"{what}: needs float16, float32 or float64, got {dtype_name(t.dtype)}")
    try:
        y.shape[axis]
    except (IndexError, TypeError) as error:
        raise type(error)(f"{what}: axis must be an int in [{-len(y.shape)}, {len(y.shape)}), got {axis!r}") from None
    axis = axis + len(y.shape) if axis < 0 else axis
    if x is None:
        step = dx if isinstance(dx, Tensor) else _core.to_tensor(1.0 if dx is None else float(dx) if isinstance(dx, int) else dx)
        if len(step.shape) > 1:
            raise ValueError(f"{what}: dx must be a number, got shape {step.shape}")
    elif len(x.shape) == 1:
        step = diff(x)
        step = _core.reshape(step, [-1 if i == axis else 1 for i in range(len(y.shape))])
    else:
        step = diff(x, axis=axis)
    pairs = _core.add(_core.slice(y, [axis], [1], [END]), _core.slice(y, [axis], [0], [-1]))
    return _core.scale(_core.multiply(pairs, step), 0.5), axis


@asks("static:axis:-Tensor")
def trapezoid(y, x=None, dx=None, axis=-1, name=None):
    """The integral of y along axis by the trapezoid rule.

    >>> paddle.trapezoid(paddle.to_tensor([1.0, 2.0, 3.0])).item()
    4.0
    """
    parts, axis = _trapezoids(y, x, dx, axis, "trapezoid")
    return _core.sum(parts, [axis])


def cumulative_trapezoid(y, x=None, dx=None, axis=-1, name=None):
    """The running integral of y along axis by the trapezoid rule."""
    parts, axis = _trapezoids(y, x, dx, axis, "cumulative_trapezoid")
    return _core.cumsum(parts, axis)


@asks("x~c8,c16,f4,f8,i4,i8")
def vander(x, n=None, increasing=False, name=None):
    """The matrix of x's powers, one column each."""
    need_variable(x, "vander: x")
    if len(x.shape) != 1:
        raise ValueError(f"vander: x must have one axis, got {len(x.shape)}")
    if isinstance(n, bool) and not _core.is_capturing():
        raise of_kind("vander: n must be an int, got bool")
    n = x.shape[0] if n is None else n
    if known(n) and n < 0:
        raise ValueError(f"vander: n must not be negative, got {n}")
    first = _core.equal(_core.arange(0, n, 1, "int64"), _core.full([], 0, "int64"))
    steps = _core.where(first, _core.full([], 1, x.dtype), _core.unsqueeze(x, [1]))
    powers = steps if known(n) and n <= 2 else _core.cumprod(steps, 1)
    return powers if increasing else _core.flip(powers, [1])


@asks("static:x.shape x~b,f2,f4,f8,i4,i8,c8,c16")
def combinations(x, r=2, with_replacement=False, name=None):
    """All choices of r elements of x, one a row."""
    if len(x.shape) != 1:
        raise TypeError(f"combinations: x must have one axis, got shape {x.shape}")
    if not isinstance(r, int) or r < 0:
        raise ValueError(f"combinations: r must be a non-negative int, got {r!r}")
    if r == 0:
        return _core.full([0], 0, x.dtype)
    r, n = int(r), x.shape[0]
    if known(n) and r > n and not with_replacement:
        return _core.full([0, r], 0, x.dtype)
    places = _core.arange(0, x.shape[0], 1, "int64")
    each = [_core.reshape(places, [-1 if i == axis else 1 for i in range(r)]) for axis in range(r)]
    chosen, rises = _core.full_like(each[0], True, "bool"), _core.less_equal if with_replacement else _core.less_than
    for one, following in zip(each, each[1:]):
        chosen = _core.logical_and(chosen, rises(one, following))
    spots = _core.reshape(_core.nonzero(chosen), [-1])
    return _core.reshape(_core.index_select(x, spots, 0), [-1, r])


_write_pow = twin(pow, "pow_", "eager:y:number static:y:number,Tensor static:x.dtype")


def pow_(x, y, name=None):
    """In-place form of pow: x to the power y, a number."""
    if isinstance(y, Tensor) and not _core.is_capturing():
        raise TypeError("pow_: y must be a number, got Tensor; use pow")
    return _write_pow(x, y)


_OF_TENSORS = "eager:x:Tensor eager:x<-y"
_ASKED = {gcd: "x.shape y.shape static:x&&y!InvalidArgument eager!ValueError " + COMPARED, lcm: COMPARED, lerp: COMPARED, hypot: _OF_TENSORS, ldexp: _OF_TENSORS,
          cumsum: "eager:axis:int,Tensor,None!InvalidArgument eager:axis@x!OutOfRange"}
for _fn in (cumsum, frac, gcd, lcm, hypot, ldexp, lerp, multigammaln, nan_to_num, polygamma, renorm):
    _name = _fn.__name__ + "_"
    globals()[_name] = twin(_fn, _name, _ASKED.get(_fn))
    __all__.append(_name)
_OF_TWO = ("equal", "not_equal", "greater_", "less_", "logical_")
for _name in ("abs_ acos_ acosh_ addmm_ asin_ asinh_ atan_ atanh_ cos_ cosh_ cumprod_ digamma_ equal_ erf_ expm1_ "
              "floor_mod_ greater_equal_ greater_than_ i0_ less_equal_ less_than_ lgamma_ log10_ log1p_ log2_ log_ "
              "logical_and_ logical_not_ logical_or_ logical_xor_ mod_ neg_ not_equal_ remainder_ sigmoid_ sin_ sinh_ "
              "square_ tan_ tril_ triu_ trunc_").split():
    _op = {"floor_mod": "remainder", "mod": "remainder"}.get(_name[:-1], _name[:-1])
    if hasattr(_core, _op + "_"):
        globals()[_name] = getattr(_core, _op + "_")
    elif hasattr(_core, _op):
        globals()[_name] = twin(getattr(_core, _op), _name,
                                *((COMPARED,) if _op.startswith(_OF_TWO) and _op != "logical_not" else
                                  ({"neg": "eager:x.scale_", "square": "eager:x.square_"}.get(_op), True)))
    else:
        continue
    __all__.append(_name)
del _fn, _name, _op, _ASKED, _OF_TENSORS, _OF_TWO
