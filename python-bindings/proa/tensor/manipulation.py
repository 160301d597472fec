"""Reshaping, splitting, gathering and scattering that is more than one op: split, tile, moveaxis, scatter_nd, unique,
take_along_axis. Functions that are one op come from C."""
from .. import _core
from .._asks import asks, need_kernel
from ..framework.dims import Dim, alike, differ, known, most, reshaped, tensor_of
from .._errors import need_attribute, of_kind
from ._tools import (END, INTEGER, Tensor, bounds, dtype_name, is_number, like, need_tensor, need_variable, one_axis, plain_ints,
                     twin, whole_number)

__all__ = ["as_strided", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_shape", "broadcast_tensors",
           "cast_", "chunk", "crop", "diagonal_scatter", "fill_", "fill_diagonal_", "fill_diagonal_tensor",
           "fill_diagonal_tensor_", "flatten_", "index_fill", "index_fill_", "index_put", "index_put_",
           "masked_fill", "masked_fill_", "moveaxis", "put_along_axis", "put_along_axis_",
           "repeat_interleave", "reshape_", "reverse", "rot90", "scatter_nd", "select_scatter", "slice",
           "split", "squeeze_", "strided_slice", "take_along_axis", "tensor_array_to_tensor", "tolist",
           "transpose_", "unflatten", "unfold", "unique", "unique_consecutive", "unsqueeze_", "unstack",
           "view", "view_as", "vsplit", "zero_"]

FLIPPED = "b,i4,i8,f4,f8,c8,c16"  # dtypes of Paddle's kernel
reshape_ = twin(_core.reshape, "reshape_")
squeeze_ = twin(_core.squeeze, "squeeze_")
unsqueeze_ = twin(_core.unsqueeze, "unsqueeze_")
flatten_ = twin(_core.flatten, "flatten_")
transpose_ = twin(_core.transpose, "transpose_")
cast_ = twin(_core.cast, "cast_")


@asks("static:starts:list,tuple,Tensor!ValueError static:ends:list,tuple,Tensor!ValueError")
def slice(input, axes, starts, ends):
    """The part of input between starts and ends of the axes named."""
    if isinstance(starts, bool) or isinstance(ends, bool):
        text = "slice: starts and ends must be lists of ints or ints, got a bool"
        raise ValueError(text if _core.is_capturing() else "(InvalidArgument) " + text)
    if not isinstance(axes, (list, tuple)) or not axes:
        raise ValueError(f"slice: axes must be a list or tuple with at least one axis, got {axes!r}")
    last = len(input.shape) - 1
    axes = [max(0, a + last + 1) if a < 0 else min(last, a) for a in axes]
    return _core.slice(input, axes, bounds(starts), bounds(ends))


@asks("eager:x:Tensor!InvalidArgument x~b,f2,bf,f4,f8,i4,i8 static:axes:list,tuple static:starts:list,tuple,Tensor static:ends:list,tuple,Tensor "
      "static:strides:list,tuple,Tensor eager:axes:list,tuple!InvalidArgument "
      "eager:starts:list,tuple,Tensor,int!InvalidArgument eager:ends:list,tuple,Tensor,int!InvalidArgument "
      "eager:strides:list,tuple,Tensor,int!InvalidArgument starts[i] ends[i] strides[i] "
      "static:starts.dtype=i4,i8 static:ends.dtype=i4,i8 static:strides.dtype=i4,i8")
def strided_slice(x, axes, starts, ends, strides, name=None):
    """The elements of x from starts to ends of the axes named, strides apart."""
    return _core.strided_slice(x, axes, bounds(starts), bounds(ends), bounds(strides))


def _crop_ints(name, values):
    many = [t for t in (values if isinstance(values, (list, tuple)) else []) if isinstance(t, Tensor) and t.size != 1]
    if many or getattr(values, "ndim", 1) > 1:
        raise ValueError(f"(InvalidArgument) crop: {name} must be a list of ints, got entries of more than one element")
    return plain_ints(values)


@asks("static:shape:list,tuple,None,Tensor static:offsets:list,tuple,None,Tensor static:shape[]>=1,-1 static:offsets[]>=0 "
      "shape[i] offsets[i]")
@asks("x~f4,f8,i4,i8")
def crop(x, shape=None, offsets=None, name=None):
    """The box of this shape that starts at offsets; -1 in shape means up to the end."""
    need_variable(x, "crop: x")
    full_shape = x.shape
    shape = full_shape if shape is None else _crop_ints("shape", shape)
    offsets = [0] * len(full_shape) if offsets is None else _crop_ints("offsets", offsets)
    if len(shape) != len(full_shape) or len(offsets) != len(full_shape):
        raise ValueError(f"(InvalidArgument) crop: shape and offsets must have {len(full_shape)} entries, got {shape} and {offsets}")
    if _core.is_capturing() and any(known(s) and s == 0 for s in shape):
        raise ValueError(f"crop: shape must have no 0 in a program, got {shape}")
    ends = [n if s == -1 else o + s for n, s, o in zip(full_shape, shape, offsets)]
    for n, o, e in zip(full_shape, offsets, ends):
        if not 0 <= o or known(e) and o > e or known(e, n) and e > n:
            raise ValueError(f"(InvalidArgument) crop: shape {shape} at offsets {offsets} reaches outside {full_shape}")
    box = _core.slice(x, list(range(len(full_shape))), offsets, [e if known(e) else END for e in ends])
    if not x.is_symbolic:
        return _core.assign(box)
    if known(*full_shape):
        return box
    return _core.reshape(box, [0 if not known(s) or s == -1 else s for s in shape])  # 0: as it is; others the run checks


@asks("static:x:Tensor x.shape axis:int,Tensor axis>=-x num_or_sections:int,list,tuple static:num_or_sections[][i]")
def split(x, num_or_sections, axis=0, name=None):
    """x cut along axis into that many equal parts, or into parts of these lengths (one may be -1).

    >>> [part.shape for part in paddle.split(paddle.ones([6, 2]), [1, 2, -1])]
    [[1, 2], [2, 2], [3, 2]]
    """
    if isinstance(num_or_sections, (list, tuple)):
        return list(_core.split(x, bounds(num_or_sections), 0, axis))
    need_kernel("split", "b,u1,i1,i4,i8,f4,f8", x=x)
    if isinstance(num_or_sections, bool) and not _core.is_capturing():
        raise of_kind("split: num_or_sections must be an int, list or tuple, got bool")
    return list(_core.split(x, [], whole_number("split", "num_or_sections", num_or_sections, "an int, list or tuple"), axis))


@asks("static:chunks:int static:x:Tensor x.shape axis:int eager:chunks:int,list,tuple eager:chunks:int!InvalidArgument static:axis@x!AssertionError")
def chunk(x, chunks, axis=0, name=None):
    """x cut along axis into chunks equal parts.

    >>> [part.tolist() for part in paddle.chunk(paddle.arange(4), 2)]
    [[0, 1], [2, 3]]
    """
    if isinstance(chunks, bool) and not _core.is_capturing():
        raise of_kind("chunk: chunks must be an int, got bool")
    return split(x, whole_number("chunk", "chunks", chunks), axis)


@asks("x.ndim x#>=2 x~b,f2,bf,f4,f8,i4,i8,u1,i1 num_or_sections:int,list,tuple")
def vsplit(x, num_or_sections, name=None):
    """split along the first axis."""
    if len(x.shape) < 2:
        raise ValueError(f"vsplit: x must have at least 2 axes, got {len(x.shape)}")
    return split(x, num_or_sections, 0)


def unstack(x, axis=0, num=None):
    """The list of x's slices along axis, without that axis.

    >>> [row.tolist() for row in paddle.unstack(paddle.eye(2))]
    [[1.0, 0.0], [0.0, 1.0]]
    """
    ndim = len(x.shape)
    if not -ndim <= axis < ndim:
        raise ValueError(f"unstack: axis must be in [-{ndim}, {ndim}), got {axis}")
    need_kernel("unstack", "i4,i8,f4,f8,c8,c16", x=x)
    size = x.shape[axis]
    if num is not None and known(size) and not 0 <= num <= size:
        raise ValueError(f"unstack: num must be in [0, {size}], got {num}")
    if _core.is_capturing() and num == 0 and known(size) and size:
        raise ValueError(f"(InvalidArgument) unstack: num must be the axis's length {size}, got 0")
    if _core.is_capturing() and num is None and known(size) and not size:
        raise ValueError(f"unstack: axis {axis} of a program's variable must not have length 0, got shape {x.shape}")
    num = size.__index__() if num is None else num
    return list(_core.unstack(x, axis, num)) if num else []


def tensor_array_to_tensor(input, axis=1, use_stack=False, name=None):
    """A list of tensors joined along axis, and the lengths that they had there."""
    out = _core.stack(input, axis) if use_stack else _core.concat(input, axis)
    return out, tensor_of([t.shape[axis] for t in input], "int64")


def broadcast_shape(x_shape, y_shape):
    """The shape that x_shape and y_shape broadcast to.

    >>> paddle.broadcast_shape([2, 1, 3], [4, 1])
    [2, 4, 3]
    """
    return broadcast_dims(_dims(x_shape), _dims(y_shape))


def _dims(shape):
    if isinstance(shape, (str, bytes, dict)) or not hasattr(shape, "__getitem__"):
        raise TypeError(f"broadcast_shape: a shape must be a sequence of ints, got {type(shape).__name__}")
    if isinstance(shape, Tensor):
        len(shape)  # one without axes has none
    try:
        return [n if isinstance(n, (int, Dim)) else n.__index__() if hasattr(n, "__index__") else _no_dim(n) for n in shape]
    except AssertionError as error:  # an entry is a tensor of several elements
        raise TypeError(f"broadcast_shape: {error}") from None


def _no_dim(n):
    raise TypeError(f"broadcast_shape: the entries of a shape must be ints, got {type(n).__name__}")


def broadcast_dims(x_shape, y_shape):
    a, b = list(x_shape), list(y_shape)
    n = max(len(a), len(b))
    a, b = [1] * (n - len(a)) + a, [1] * (n - len(b)) + b
    out = []
    for p, q in zip(a, b):
        if not known(p, q):  # one that is known and stretches nothing is the length
            out.append(q if alike(p, 1) else p if alike(q, 1) or alike(p, q) else p if known(p) else
                       q if known(q) else most(p, q))
            continue
        if p != q and 1 not in (p, q) and -1 not in (p, q):
            raise ValueError(f"broadcast_shape: {list(x_shape)} and {list(y_shape)} do not broadcast")
        out.append(-1 if -1 in (p, q) else (q if p == 1 else p))
    return out


def common_shape(who, x_shape, y_shape):
    """broadcast_shape of operands of an op, which refuses them with its category."""
    try:
        return broadcast_dims(x_shape, y_shape)
    except ValueError as error:
        raise of_kind(f"{who}: {error}") from None


@asks("eager:input.__len__!TypeError")
def broadcast_tensors(input, name=None):
    """The tensors of the list input, all expanded to their common shape."""
    if not isinstance(input, (list, tuple)):
        raise of_kind(f"broadcast_tensors: input must be a list or tuple of Tensors, got {type(input).__name__}")
    shape = []
    for t in input:
        need_variable(t, "broadcast_tensors: an entry of input")
        if _core.is_capturing() and t.dtype != input[0].dtype:
            raise TypeError(f"broadcast_tensors: all Tensors must have one dtype, got {input[0].dtype} and {t.dtype}")
        shape = common_shape("broadcast_tensors", shape, t.shape)
    if len(shape) > 6:
        raise ValueError(f"(InvalidArgument) broadcast_tensors: tensors must have at most 6 dims, got {len(shape)}")
    return [_core.expand(t, shape) for t in input]


@asks("x~f2,f4,f8,i4,i8,b")
def reverse(x, axis, name=None):
    """x with the order along axis (or axes) turned round; the older name of flip."""
    need_kernel("reverse", FLIPPED, x=x)
    return _core.flip(x, [axis] if isinstance(axis, int) else axis)


@asks("x:Tensor static:axes:list,tuple x~f2,f4,f8,i4,i8,b")
def rot90(x, k=1, axes=[0, 1], name=None):
    """x turned k times by 90 degrees in the plane of two axes."""
    need_variable(x, "rot90: x")
    ndim = len(x.shape)
    if len(axes) != 2 or ndim < 2:
        raise ValueError(f"rot90: needs two axes of a tensor with at least two, got axes={axes}, {ndim} axes")
    a, b = (one_axis(axis, ndim, "rot90") for axis in axes)
    if a == b:
        raise ValueError(f"rot90: the two axes must differ, got {axes}")
    k %= 4
    if k == 0:
        return x
    need_kernel("rot90", FLIPPED, x=x)
    if k == 2:
        return _core.flip(x, [a, b])
    perm = list(range(ndim))
    perm[a], perm[b] = b, a
    if k == 1:
        return _core.transpose(_core.flip(x, [b]), perm)
    return _core.flip(_core.transpose(x, perm), [b])


def moveaxis(x, source, destination, name=None):
    """x with the axes source moved to the places destination, the others in their order.

    >>> paddle.moveaxis(paddle.ones([2, 3, 4]), 0, -1).shape
    [3, 4, 2]
    """
    for axes, what in ((source, "source"), (destination, "destination")):
        if isinstance(axes, Tensor) and axes.is_symbolic:
            raise TypeError(f"moveaxis: {what} must be ints, got a variable of the program, of which the run alone knows the values")
    src = [source] if isinstance(source, int) else list(source)
    dst = [destination] if isinstance(destination, int) else list(destination)
    ndim = len(x.shape)
    if len(src) != len(dst):
        raise AssertionError(f"moveaxis: source and destination must have one length, got {source}, {destination}")
    src = [one_axis(a, ndim, "moveaxis") for a in src]
    dst = [one_axis(a, ndim, "moveaxis") for a in dst]
    if len(set(src)) != len(src) or len(set(dst)) != len(dst):
        raise ValueError(f"moveaxis: an axis is named twice in {source} or {destination}")
    rest = iter([a for a in range(ndim) if a not in src])
    placed = dict(zip(dst, src))
    return _core.transpose(x, [placed[i] if i in placed else next(rest) for i in range(ndim)])


@asks("eager")
def tolist(x):
    """x's values as nested lists."""
    return x.tolist()


@asks("x.shape axis:int axis@x!AssertionError shape:list,tuple,Tensor")
def unflatten(x, axis, shape, name=None):
    """x with one axis spread over several of this shape."""
    axis = one_axis(axis, len(x.shape), "unflatten")
    if not isinstance(shape, (list, tuple, Tensor)):
        raise TypeError(f"unflatten: shape must be a list, tuple or Tensor, got {type(shape).__name__}")
    if isinstance(shape, Tensor):
        if not shape.ndim:
            raise ValueError("(InvalidArgument) unflatten: shape must have one axis, got a 0-D Tensor")
        shape = _core.cast(shape, "int32")
    shape = plain_ints(shape)
    if -1 in shape:
        known = 1
        for n in shape:
            known *= n if n != -1 else 1
        shape[shape.index(-1)] = x.shape[axis] // max(known, 1)
    return reshaped(x, x.shape[:axis] + shape + x.shape[axis + 1:])


def _atleast(inputs, widen):
    out = [widen(t if isinstance(t, Tensor) else _core.to_tensor(t)) for t in inputs]
    return out[0] if len(out) == 1 else out


def atleast_1d(*inputs, name=None):
    """Each input as a tensor with at least one axis."""
    return _atleast(inputs, lambda t: t if t.ndim else _core.reshape(t, [1]))


def atleast_2d(*inputs, name=None):
    """Each input as a tensor with at least two axes; new ones come first."""
    return _atleast(inputs, lambda t: t if len(t.shape) > 1 else _core.reshape(t, [1, -1]))


def atleast_3d(*inputs, name=None):
    """Each input as a tensor with at least three axes."""
    def widen(t):
        s = t.shape
        return t if len(s) > 2 else reshaped(t, [[1, 1, 1], [1] + s + [1], s + [1]][len(s)])
    return _atleast(inputs, widen)


@asks("eager")
def view(x, shape_or_dtype, name=None):
    """x's memory under another shape, or read as another dtype."""
    if isinstance(shape_or_dtype, (list, tuple)):
        return _core.reshape(x, shape_or_dtype)
    if not isinstance(x, Tensor):
        _core.as_dtype(shape_or_dtype)  # which Paddle reads first
    return _core.view_dtype(x, shape_or_dtype)


@asks("eager")
def view_as(x, other, name=None):
    """x's memory under other's shape."""
    return reshaped(x, other.shape)


@asks("eager")
def as_strided(x, shape, stride, offset=0, name=None):
    """x's memory under this shape and these strides (counted in elements)."""
    return _core.as_strided(x, shape, stride, offset)


@asks("eager eager:x:Tensor!InvalidArgument eager:axis:int!InvalidArgument eager:size:int!InvalidArgument "
      "eager:step:int!InvalidArgument eager:step>0!InvalidArgument")
def unfold(x, axis, size, step, name=None):
    """All windows of this size, step apart, along axis; the window becomes the last axis."""
    axis = one_axis(axis, len(x.shape), "unfold")
    length = x.shape[axis]
    if known(length) and size > length or size < 0 or step <= 0:
        raise ValueError(f"(InvalidArgument) unfold: size must be in [0, {length}] and step above 0, got {size} and {step}")
    count = (length - size) // step + 1
    if not x.is_symbolic and x.is_contiguous():
        strides = x.strides
        return _core.as_strided(x, x.shape[:axis] + [count] + x.shape[axis + 1:] + [size],
                                strides[:axis] + [strides[axis] * step] + strides[axis + 1:] + [strides[axis]])
    starts = _core.arange(0, count * step, step, "int64")
    index = _core.add(_core.unsqueeze(starts, [1]), _core.arange(0, size, 1, "int64"))
    taken = _core.index_select(x, _core.reshape(index, [-1]), axis)
    taken = reshaped(taken, x.shape[:axis] + [count, size] + x.shape[axis + 1:])
    return moveaxis(taken, axis + 1, -1)


@asks("eager:x:Tensor!ValueError static:x:Tensor!ValueError eager:repeats:int,Tensor!InvalidArgument x~f4,f8,i4,i8")
def repeat_interleave(x, repeats, axis=None, name=None):
    """x with each entry along axis (of flattened x without axis) repeated.

    >>> paddle.repeat_interleave(paddle.to_tensor([1, 2]), 2).tolist()
    [1, 1, 2, 2]
    """
    if repeats is None and not _core.is_capturing():
        raise of_kind("repeat_interleave: repeats must be an int or a Tensor, got NoneType")
    if axis is None:
        x, axis = _core.flatten(x), 0
    if isinstance(repeats, Tensor):
        return _core.repeat_interleave(x, repeats, 1, axis)
    return _core.repeat_interleave(x, None, repeats, axis)


@asks("static:shape?")
def scatter_nd(index, updates, shape, name=None):
    """Zeros of this shape with updates added at index.

    >>> paddle.scatter_nd(paddle.to_tensor([[1], [1]]), paddle.to_tensor([2.0, 3.0]), [3]).tolist()
    [0.0, 5.0, 0.0]
    """
    return _core.scatter_nd_add(_core.full(shape, 0, updates.dtype), index, updates)


def select_scatter(x, values, axis, index, name=None):
    """x with values in the place of its slice number index along axis."""
    need_attribute("select_scatter", "shape", values=values)
    ndim = len(x.shape)
    index = int(index) if isinstance(index, Tensor) and not _core.is_capturing() else index
    axis = one_axis(axis, ndim, "select_scatter")
    index = index + x.shape[axis] if index < 0 and known(x.shape[axis]) else index
    wanted = x.shape[:axis] + x.shape[axis + 1:]
    if differ(values.shape, wanted):
        raise RuntimeError(f"select_scatter: values must have the slice's shape {wanted}, got {values.shape}")
    return _core.set_value(x, _core.cast(values, x.dtype), axes=[axis], starts=[index], ends=[index + 1 or END],
                           decrease_axes=[axis])


def _filled(x, mask, value):
    if not is_number(value):
        need_attribute("masked_fill", "shape", value=value)
        need_tensor(value, "masked_fill: value")
    return _core.where(mask, _core.cast(like(value, x), x.dtype), x)


@asks("static:x.shape x~bf,f2,f4,f8,i4,i8 value~bf,f2,f4,f8,i4,i8")
def masked_fill(x, mask, value, name=None):
    """x with value (a number or 0-D Tensor) where mask is True.

    >>> x = paddle.to_tensor([1.0, -2.0])
    >>> paddle.masked_fill(x, x < 0, 0.0).tolist()
    [1.0, 0.0]
    """
    need_kernel("masked_fill", "i4,i8,f4,f8", x=x, value=value)
    if isinstance(mask, Tensor) and mask.dtype != _core.bool:
        mask = _core.cast(mask, _core.bool)
    if is_number(value) and alike(x.shape, broadcast_dims(x.shape, mask.shape)):
        return _core.masked_fill(x, mask, value)
    return _filled(x, mask, value)


masked_fill_ = twin(masked_fill, "masked_fill_")


@asks("index:Tensor!ValueError axis@x x~b,f2,bf,f4,f8,i4,i8,c8,c16")
def index_fill(x, index, axis, value, name=None):
    """x with value (a number or 0-D Tensor) in the slices that index names along axis."""
    if not isinstance(index, Tensor):
        raise ValueError(f"index_fill: index must be a Tensor, got {type(index).__name__}")
    if isinstance(value, Tensor) and value.ndim:
        raise ValueError(f"index_fill: value must be a number or a 0-D Tensor, got shape {value.shape}")
    if _core.is_capturing() and dtype_name(index.dtype) not in ("bool", "int32", "int64"):
        raise ValueError(f"(InvalidArgument) index_fill: index must be int32, int64 or bool, got {dtype_name(index.dtype)}")
    if not isinstance(value, Tensor):
        return _core.index_fill(x, index, axis, value if is_number(value) else _one_number(value, x))
    axis = one_axis(axis, len(x.shape), "index_fill")
    hit = _core.index_fill(_core.full([x.shape[axis]], False, "bool"), index, 0, True)
    return _filled(x, _core.reshape(hit, [-1] + [1] * (len(x.shape) - axis - 1)), value)


index_fill_ = twin(index_fill, "index_fill_")


def _one_number(value, x):
    """The number in a list or array of one."""
    value = _core.cast(_core.to_tensor(value), x.dtype)
    if value.size != 1:
        raise ValueError(f"(InvalidArgument) index_fill: value must be one number, got shape {value.shape}")
    return _core.reshape(value, [])


def _points(x, indices):
    """The points [common shape…, axes] of x that indices name, one integer tensor (or bool mask) an axis (or several)."""
    parts = []
    for t in indices:
        if dtype_name(t.dtype) == "bool":
            parts += [_core.squeeze(c, [1]) for c in _core.split(_core.nonzero(t), [], len(t.shape), 1)]
        elif dtype_name(t.dtype) not in INTEGER:
            raise ValueError(f"(InvalidArgument) index_put: indices must be integer tensors or bool masks, got {dtype_name(t.dtype)}")
        else:
            parts.append(_core.cast(t, "int64"))
    for axis, part in enumerate(parts):
        from_front = _core.add(part, like(x.shape[axis], part))
        parts[axis] = _core.where(_core.less_than(part, like(0, part)), from_front, part)
    return _core.stack(broadcast_tensors(parts), -1)


@asks("eager:x:Tensor!InvalidArgument eager:indices:list,tuple!InvalidArgument static:accumulate:bool x~f2,f4,f8,i4,i8,b value~f2,f4,f8,i4,i8,b")
def index_put(x, indices, value, accumulate=False, name=None):
    """x with value at indices, a tuple of integer tensors (or bool masks), one an axis; accumulate adds."""
    if isinstance(indices, Tensor):  # a program's: an operator's list of variables may be one variable
        indices = [indices]
    mask = len(indices) == 1 and dtype_name(indices[0].dtype) == "bool"
    return _core.index_put(x, indices[0] if mask else _points(x, indices), value, accumulate)


index_put_ = twin(index_put, "index_put_")


def _shown(t, shape):
    """t expanded to shape; eagerly nothing is copied where it has that shape."""
    return t if not t.is_symbolic and t.shape == shape else _core.expand(t, shape)


def _along(arr, indices, axis, what):
    if len(arr.shape) != len(indices.shape):
        raise ValueError(f"{what}: arr and indices must have equally many axes, got {arr.shape}, {indices.shape}")
    if not arr.shape:
        raise IndexError(f"{what}: arr has no axes, so none to index along (axis {axis})")
    axis = one_axis(axis, len(arr.shape), what)
    shape = list(arr.shape)
    shape[axis] = indices.shape[axis]
    fits = not any(known(a, i) and a < i for a, i in zip(arr.shape, indices.shape))
    return axis, shape if fits else None


def _check_inside(arr, indices, axis, what):
    for i, (a, n) in enumerate(zip(arr.shape, indices.shape)):
        if i != axis and known(a, n) and a < n:
            raise RuntimeError(f"{what}: indices must fit into arr beside axis {axis}: {indices.shape}, {arr.shape}")
    if _core.is_capturing() or not known(arr.shape[axis]):
        return
    if not bool(_core.all(_core.less_than(indices, like(arr.shape[axis], indices)))):
        raise RuntimeError(f"{what}: an index is out of bounds for axis {axis} of size {arr.shape[axis]}")


@asks("arr.shape indices.shape eager:indices:Tensor!InvalidArgument axis:int axis@arr!AssertionError arr~f2,f4,f8,i4,i8,u1,bf")
def take_along_axis(arr, indices, axis, broadcast=True):
    """The elements of arr that indices name along axis.

    >>> x = paddle.to_tensor([[3, 1], [2, 4]])
    >>> paddle.take_along_axis(x, x.argsort(1), 1).tolist()
    [[1, 3], [2, 4]]
    """
    if isinstance(indices, Tensor) and dtype_name(indices.dtype) in ("uint8", "int8", "int16") and not _core.is_capturing():
        indices = _core.cast(indices, "int64")
    axis, shape = _along(arr, indices, axis, "take_along_axis")
    if not broadcast:
        _check_inside(arr, indices, axis, "take_along_axis")
        return _core.take_along_axis(arr, indices, axis, False)
    shape = shape or list(indices.shape)
    indices = _shown(indices, shape)
    shape[axis] = arr.shape[axis]
    return _core.take_along_axis(_shown(arr, shape), indices, axis)


@asks("arr.shape indices.shape eager:indices:Tensor!InvalidArgument axis:int axis@arr!AssertionError eager:reduce:str!InvalidArgument "
      "eager:include_self:bool!InvalidArgument static:arr#=indices indices~i4,i8 arr>>u1,i4,i8,f4,f8>>values")
def put_along_axis(arr, indices, values, axis, reduce="assign", include_self=True, broadcast=True):
    """arr with values at the places that indices name along axis; reduce says how they meet what is there."""
    axis, shape = _along(arr, indices, axis, "put_along_axis")
    if not isinstance(values, Tensor):
        values = _core.cast(_core.to_tensor(values), arr.dtype)
    if broadcast:
        if shape:
            indices = _shown(indices, shape)
        values = _shown(values, indices.shape)
    else:
        _check_inside(arr, indices, axis, "put_along_axis")
        if all(alike(n, 1) for n in values.shape):
            values = _core.expand(values, indices.shape)
    if dtype_name(indices.dtype) not in ("int32", "int64"):
        raise TypeError(f"put_along_axis: indices must be int32 or int64, got {dtype_name(indices.dtype)}")
    reduce = "multiply" if reduce == "mul" else reduce
    axes = [] if broadcast else [i for i, n in enumerate(indices.shape) if i != axis and not alike(n, arr.shape[i])]
    if not axes:
        return _core.put_along_axis(arr, indices, values, axis, reduce, include_self)
    starts, ends = [0] * len(axes), [indices.shape[i] for i in axes]  # indices of a part of arr
    part = _core.put_along_axis(_core.slice(arr, axes, starts, ends), indices, values, axis, reduce, include_self)
    return _core.set_value(arr, part, axes=axes, starts=starts, ends=ends)


put_along_axis_ = twin(put_along_axis, "put_along_axis_")


def _optional(wanted, results):
    out = [results[0]] + [r for want, r in zip(wanted, results[1:]) if want]
    return out[0] if len(out) == 1 else tuple(out)


@asks("eager:axis:int,None!InvalidArgument eager:axis@x!InvalidArgument static:axis@x!InvalidArgument x~f2,bf,f4,f8,i4,i8")
def unique(x, return_index=False, return_inverse=False, return_counts=False, axis=None, dtype="int64", name=None):
    """x's different elements in rising order (slices along axis), and what else is asked for.

    >>> values, counts = paddle.unique(paddle.to_tensor([2, 1, 2]), return_counts=True)
    >>> values.tolist(), counts.tolist()
    ([1, 2], [1, 2])
    """
    wanted = (return_index, return_inverse, return_counts)
    if axis is not None:
        axis = one_axis(axis, len(x.shape), "unique")
    return _optional(wanted, _core.unique(x, *wanted, [] if axis is None else [axis], dtype))


@asks("x~f4,f8,i4,i8")
def unique_consecutive(x, return_inverse=False, return_counts=False, axis=None, dtype="int64", name=None):
    """x with runs of equal elements (slices along axis) shortened to one."""
    wanted = (return_inverse, return_counts)
    if _core.is_capturing() and not all(isinstance(one, bool) for one in wanted):
        raise TypeError(f"unique_consecutive: return_inverse and return_counts must be bools, got {wanted}")
    need_kernel("unique_consecutive", "i4,i8,f4,f8", x=x)
    return _optional(wanted, _core.unique_consecutive(x, *wanted, [] if axis is None else [axis], dtype))


def fill_(x, value):
    """Fills x with one number."""
    if not isinstance(value, (float, int)):
        raise TypeError(f"fill_: value must be an int or float, got {type(value).__name__}")
    return _core.fill_(x, value)


def zero_(x):
    """Fills x with zeros."""
    return _core.fill_(x, 0)


@asks("eager:value:number,bool!InvalidArgument")
def fill_diagonal_(x, value, offset=0, wrap=False, name=None):
    """Writes value on x's main diagonal (of a matrix: the one offset above it; wrap goes on below a tall one's end)."""
    shape = need_tensor(x, "fill_diagonal_: x").shape
    if len(shape) < 2:
        raise ValueError(f"fill_diagonal_: x must have at least 2 axes, got {len(shape)}")
    if len(shape) > 2 and any(differ(n, shape[0]) for n in shape):
        raise ValueError(f"fill_diagonal_: beyond two axes all lengths must be equal, got {shape}")
    return _core.fill_diagonal_(x, float(value), offset, wrap)


@asks("dim1:int dim2:int dim1@x!AssertionError dim2@x!AssertionError")
def fill_diagonal_tensor(x, y, offset=0, dim1=0, dim2=1, name=None):
    """x with y on the diagonal, offset above the main one, of the axes dim1 and dim2."""
    ndim = len(x.shape)
    if ndim < 2:
        raise AssertionError(f"fill_diagonal_tensor: x must have at least 2 axes, got {ndim}")
    a, b = one_axis(dim1, ndim, "fill_diagonal_tensor"), one_axis(dim2, ndim, "fill_diagonal_tensor")
    rows, columns = x.shape[a], x.shape[b]
    rest, length = [n for i, n in enumerate(x.shape) if i not in (a, b)], y.shape[-1] if y.ndim else 0
    if known(rows, columns):
        length = max(0, min(rows, rows + offset, columns, columns - offset))
    if differ(y.shape, rest + [length]):
        raise AssertionError(f"fill_diagonal_tensor: y must have shape {rest + [length]}, got {y.shape}")
    if y.dtype != x.dtype and not (_core.is_capturing() or "complex" in dtype_name(y.dtype)):
        y = _core.cast(y, x.dtype)
    return _core.fill_diagonal_tensor(x, y, offset, dim1, dim2)


fill_diagonal_tensor_ = twin(fill_diagonal_tensor, "fill_diagonal_tensor_")


@asks("axis1:int axis2:int offset:-float!AssertionError axis1@x!AssertionError axis2@x!AssertionError")
def diagonal_scatter(x, y, offset=0, axis1=0, axis2=1, name=None):
    """x with y on the diagonal of axis1 and axis2."""
    return fill_diagonal_tensor(x, y, offset, axis1, axis2)
