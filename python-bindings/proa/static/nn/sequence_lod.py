"""Operators on LoD sequences: rows of several sequences, concatenated in one tensor. Their offsets are variables of
their own, one a level, fed with the tensor; the functions here read those of inputs and create those of results."""
from ... import _core
from ..._asks import asks
from ..._errors import need_attribute
from ...framework import mode, unique_name
from ...framework.parameter import make_parameter
from ...nn import functional as F

__all__ = ["sequence_concat", "sequence_conv", "sequence_enumerate", "sequence_expand", "sequence_expand_as",
           "sequence_first_step", "sequence_last_step", "sequence_pad", "sequence_pool", "sequence_reshape",
           "sequence_reverse", "sequence_scatter", "sequence_slice", "sequence_softmax", "sequence_unpad"]

_REAL = ("float32", "float64")
_ALL = (*_REAL, "int32", "int64")


def _variable(x, who, what, dtypes=_ALL):
    if not isinstance(x, _core.Tensor) or not x.is_symbolic:
        raise TypeError(f"{who}: {what} must be a Variable of a static program, got {type(x).__name__}"
                        f"{' (call paddle.enable_static)' if not mode.building() else ''}")
    name = str(x.dtype).rpartition(".")[2]
    if dtypes and name not in dtypes:
        raise TypeError(f"{who}: {what} must be {' or '.join(dtypes)}, got {name}")
    return x


def _levels(x, who, what="input"):
    levels = _core.variable_lod(x)
    if not levels:
        raise ValueError(f"(InvalidArgument) {who}: {what} carries no sequences: it must come, through operators that keep rows, from "
                         "static.data(..., lod_level=1) or from another sequence operator")
    return levels


def offsets_of(x, who, what="input", dtypes=_ALL):
    """The offsets of x's innermost sequences."""
    return _levels(_variable(x, who, what, dtypes), who, what)[-1]


def _with(out, *levels):
    _core.set_variable_lod(out, list(levels))
    return out


@asks("filter_size:-Tensor!ValueError filter_size<? num_filters<? padding_start&int,None filter_stride>0!OutOfRange")
def sequence_conv(input, num_filters, filter_size=3, filter_stride=1, padding=True, padding_start=None, bias_attr=None,
                  param_attr=None, act=None, name=None):
    """A convolution over the steps of each sequence: every step with those round it (zero beyond the ends)."""
    offsets = offsets_of(input, "sequence_conv", dtypes=_REAL)
    if filter_stride != 1:
        raise ValueError(f"sequence_conv: filter_stride must be 1, got {filter_stride}")
    owner = name if name is not None else unique_name.generate("sequence_conv")
    weight = make_parameter(owner, param_attr, [filter_size * input.shape[1], num_filters], input.dtype)
    bias = make_parameter(owner, bias_attr, [num_filters], input.dtype, is_bias=True)
    start = -int(filter_size // 2) if padding_start is None else padding_start
    out = _core.sequence_conv(input, weight, offsets, filter_size, start)
    if bias is not None:
        out = _core.add(out, bias)
    return out if act is None else getattr(F, act)(out)


@asks("use_cudnn&bool")
def sequence_softmax(input, use_cudnn=False, name=None):
    """The softmax of each sequence of numbers."""
    return _core.sequence_softmax(input, offsets_of(input, "sequence_softmax", dtypes=_REAL))


def sequence_pool(input, pool_type, is_test=False, pad_value=0.0):
    """One row a sequence: its average, sum, sqrt (sum over the root of the length), max, last or first row."""
    _variable(input, "sequence_pool", "input", _REAL)
    need_attribute("sequence_pool", "upper", "a string", pool_type=pool_type)
    levels, kind = _levels(input, "sequence_pool"), pool_type.upper()
    if kind not in ("AVERAGE", "SUM", "SQRT", "MAX", "LAST", "FIRST"):
        raise ValueError("sequence_pool: pool_type must be 'average', 'sum', 'sqrt', 'max', 'last' or 'first', got "
                         f"{pool_type!r}")
    out, _ = _core.sequence_pool(input, levels[-1], kind, is_test, pad_value)
    return _with(out, *levels[:-1])


def sequence_concat(input, name=None):
    """Sequence i: the sequences i of all inputs, one after the other."""
    if not isinstance(input, list):
        raise TypeError(f"sequence_concat: input must be a list, got {type(input).__name__}")
    for i, x in enumerate(input):
        _variable(x, "sequence_concat", f"input[{i}]", (*_REAL, "int64"))
    offsets = [offsets_of(x, "sequence_concat", f"input[{i}]") for i, x in enumerate(input)]
    return _with(*_core.sequence_concat(input, offsets))


def sequence_first_step(input):
    """The first row of each sequence."""
    return sequence_pool(input, "first")


def sequence_last_step(input):
    """The last row of each sequence."""
    return sequence_pool(input, "last")


def sequence_slice(input, offset, length, name=None):
    """Of each sequence the length[i] rows from row offset[i] of it on."""
    _variable(input, "sequence_slice", "input")
    for what, x in (("offset", offset), ("length", length)):
        _variable(x, "sequence_slice", what, ("int32", "int64"))
    offsets = offsets_of(input, "sequence_slice")
    return _with(*_core.sequence_slice(input, offset, length, offsets))


@asks("ref_level&int")
def sequence_expand(x, y, ref_level=-1, name=None):
    """Sequence i of x (or row i, if x has no sequences) as often as sequence i of level ref_level of y has parts."""
    _variable(x, "sequence_expand", "x")
    levels = _levels(_variable(y, "sequence_expand", "y", None), "sequence_expand", "y")
    if not -1 <= ref_level < len(levels):
        raise ValueError(f"sequence_expand: ref_level must be from -1 to {len(levels) - 1}, got {ref_level}")
    own = _core.variable_lod(x)
    out, offsets = _core.sequence_expand(x, y, own[-1] if own else None, levels[ref_level], ref_level)
    return _with(out, offsets) if own else out


def sequence_expand_as(x, y, name=None):
    """Row i of x as often as sequence i of y has rows."""
    _variable(x, "sequence_expand_as", "x")
    offsets = offsets_of(y, "sequence_expand_as", "y")
    return _with(_core.sequence_expand_as(x, y, offsets), offsets)


@asks("maxlen&int,None")
def sequence_pad(x, pad_value, maxlen=None, name=None):
    """(padded, lengths): the sequences as rows of one tensor, pad_value behind their ends up to the longest or maxlen."""
    _variable(x, "sequence_pad", "x")
    _variable(pad_value, "sequence_pad", "pad_value")
    offsets = offsets_of(x, "sequence_pad", "x")
    return tuple(_core.sequence_pad(x, pad_value, offsets, -1 if maxlen is None else maxlen))


def sequence_unpad(x, length, name=None):
    """The first length[i] rows of each x[i], as sequences."""
    _variable(x, "sequence_unpad", "x")
    return _with(*_core.sequence_unpad(x, _variable(length, "sequence_unpad", "length", ("int64",))))


def sequence_reshape(input, new_dim):
    """Each sequence as rows of new_dim elements."""
    return _with(*_core.sequence_reshape(input, offsets_of(input, "sequence_reshape"), new_dim))


def sequence_scatter(input, index, updates, name=None):
    """input, with each update added to the row of its sequence, at the column that index names."""
    _variable(input, "sequence_scatter", "input")
    _variable(updates, "sequence_scatter", "updates")
    offsets = offsets_of(index, "sequence_scatter", "index", ("int32", "int64"))
    return _core.sequence_scatter(input, index, updates, offsets)


@asks("win_size&int pad_value&int")
def sequence_enumerate(input, win_size, pad_value=0, name=None):
    """Each element with those behind it in its sequence, win_size in all; pad_value beyond the end."""
    offsets = offsets_of(input, "sequence_enumerate", dtypes=("int32", "int64"))
    return _core.sequence_enumerate(input, offsets, win_size, pad_value)


def sequence_reverse(x, name=None):
    """Each sequence backwards."""
    if not _core.variable_lod(_variable(x, "sequence_reverse", "x")):
        raise RuntimeError("(NotFound) sequence_reverse: x carries no sequences: it must come, through operators that keep rows, from "
                           "static.data(..., lod_level=1) or from another sequence operator")
    return _core.sequence_reverse(x, offsets_of(x, "sequence_reverse", "x"))
