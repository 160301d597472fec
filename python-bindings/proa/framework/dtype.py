"""paddle's dtype objects, the default dtype, finfo and iinfo. The objects themselves are the core's."""
from .. import _core
from .._core import (bfloat16, bool, complex64, complex128, dtype, float16, float32, float64, int8, int16,
                     int32, int64, uint8)

__all__ = ["bfloat16", "bool", "complex64", "complex128", "dtype", "finfo", "float16", "float32", "float64",
           "get_default_dtype", "iinfo", "int16", "int32", "int64", "int8", "set_default_dtype", "uint8"]

_ALL = {str(d).rpartition(".")[2]: d for d in (bfloat16, bool, complex64, complex128, float16, float32, float64,
                                               int8, int16, int32, int64, uint8)}
_NAMES = {d: name for name, d in _ALL.items()}

# NumPy's names of the types of C, which are dtypes to Paddle, too
_OF_C = {"double": float64, "single": float32, "half": float16, "long": int64, "longlong": int64, "int": int64, "intc": int32,
         "short": int16, "byte": int8, "ubyte": uint8, "csingle": complex64, "cdouble": complex128, "bool_": bool, "float": float64}


def dtype_name(d):
    """"float32" for paddle.float32, numpy.float32, numpy.dtype("float32") and "float32"; None stays None."""
    if type(d) is dtype:
        return _NAMES[d]
    if d is None:
        return None
    if isinstance(d, str):
        return d.rpartition(".")[2] if d.startswith("paddle.") else d
    return getattr(d, "name", None) or getattr(d, "__name__", None) or str(d)


def to_dtype(d, what="dtype"):
    """The dtype object that d names."""
    if isinstance(d, dtype):
        return d
    name = dtype_name(d)
    try:
        return _ALL.get(name) or _OF_C[name]
    except KeyError:
        raise (ValueError if isinstance(d, type) else TypeError)(f"{what} must name a data type such as 'float32', got {d!r}") from None


def set_default_dtype(d):
    """Sets the dtype that creation functions and new layers take when none is given: a floating one."""
    name = dtype_name(d)
    if name not in ("float16", "bfloat16", "float32", "float64"):
        raise TypeError(f"set_default_dtype: d must be float16, bfloat16, float32 or float64, got {d!r}")
    _core.set_default_dtype(_ALL[name])


def get_default_dtype():
    """The default dtype's name.

    >>> import proa as paddle
    >>> paddle.get_default_dtype()
    'float32'
    """
    return dtype_name(_core.get_default_dtype())


class _Info:
    def __repr__(self):
        parts = ", ".join(f"{k}={v:g}" if isinstance(v, float) else f"{k}={v}" for k, v in self._shown())
        return f"paddle.{type(self).__name__}({parts})"

    def _shown(self):
        return [(k, getattr(self, k)) for k in self.__slots__]


def _named(who, d, names, kind):
    """d's name if it is one of names: TypeError for what is no dtype, ValueError for another one."""
    known = isinstance(d, (str, dtype, type)) or hasattr(d, "itemsize")
    name = dtype_name(d) if known else None
    if name not in _ALL:
        raise TypeError(f"{who}: dtype must be a dtype such as 'float32', got {d!r}")
    if name not in names:
        raise ValueError(f"{who}: dtype must be {kind} type, got {d!r}")
    return name


class iinfo(_Info):
    """Limits of an integer dtype: min, max, bits, dtype.

    >>> import proa as paddle
    >>> paddle.iinfo("int8")
    paddle.iinfo(min=-128, max=127, bits=8, dtype=int8)
    """
    __slots__ = ("min", "max", "bits", "dtype")

    def __init__(self, dtype):
        name = _named("iinfo", dtype, ("uint8", "int8", "int16", "int32", "int64"), "an integer")
        self.bits, self.dtype = int(name.lstrip("uint")), name
        signed = 0 if name == "uint8" else 1
        self.min, self.max = -(2 ** (self.bits - 1)) * signed, 2 ** (self.bits - signed) - 1


class finfo(_Info):
    """Limits of a floating dtype: min, max, eps, resolution, smallest_normal, tiny, bits, dtype."""
    __slots__ = ("min", "max", "eps", "resolution", "smallest_normal", "tiny", "bits", "dtype")
    # bits, bits of the fraction, least exponent, decimal digits
    _FORMATS = {"float16": (16, 10, -14, 3), "bfloat16": (16, 7, -126, 2), "float32": (32, 23, -126, 6),
                "float64": (64, 52, -1022, 15), "complex64": (32, 23, -126, 6), "complex128": (64, 52, -1022, 15)}

    def __init__(self, dtype):
        name = _named("finfo", dtype, self._FORMATS, "a floating or complex")
        self.bits, fraction, least, digits = self._FORMATS[name]
        self.eps = 2.0 ** -fraction
        self.max = (2.0 - self.eps) * 2.0 ** (1 - least)
        self.min = -self.max
        self.resolution = float(f"1e-{digits}")
        self.smallest_normal = self.tiny = 2.0 ** least
        self.dtype = name
