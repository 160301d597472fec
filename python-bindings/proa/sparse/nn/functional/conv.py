"""Convolution and pooling of points: a COO tensor [batch, space…, channels] whose values are rows of channels.

The pairs of input and output points that each offset of the kernel connects are found on the host; the sums are a
product of matrices an offset."""
import itertools
import math

from .... import _core
from ...._errors import need_attribute, need_rank
from ...tensor import SparseCooTensor, need_coo


def _tuple(who, name, value, n):
    value = [value] * n if isinstance(value, int) else list(value)
    if len(value) != n:
        raise ValueError(f"{who}: {name} must be an int or {n} ints, got {value}")
    return [int(v) for v in value]


def _check(who, x, data_format, n):
    need_coo(who, x)
    wanted = "NDHWC" if n == 3 else "NHWC"
    if data_format != wanted:
        raise ValueError(f"{who}: data_format must be {wanted!r}, got {data_format!r}")
    if x.sparse_dim != n + 1 or len(x.shape) != n + 2:
        raise ValueError(f"{who}: x must have {n + 1} sparse dims and one of channels, got shape {x.shape} "
                         f"with {x.sparse_dim} sparse dims")


def _pairs(x, sizes, kernel, stride, padding, dilation):
    """Of every offset of the kernel: which entries of x reach which positions of an output of `sizes`."""
    import numpy as np
    batch, at = x._indices[0], x._indices[1:]
    for offset in itertools.product(*(range(k) for k in kernel)):
        reach = [a + p - o * d for a, p, o, d in zip(at, padding, offset, dilation)]
        fits = np.ones(len(batch), bool)
        for r, s, size in zip(reach, stride, sizes):
            fits &= (r >= 0) & (r % s == 0) & (r // s < size)
        which = np.flatnonzero(fits)
        to = [batch[which]] + [r[which] // s for r, s in zip(reach, stride)]
        yield which, np.ravel_multi_index(tuple(to), (x.shape[0], *sizes)) if len(which) else which


def _sizes(x, kernel, stride, padding, dilation):
    return [(n + 2 * p - d * (k - 1) - 1) // s + 1
            for n, k, s, p, d in zip(x.shape[1:-1], kernel, stride, padding, dilation)]


def _points(flat, shape):
    import numpy as np
    return np.stack(np.unravel_index(flat, shape))


def _conv(who, x, weight, bias, stride, padding, dilation, groups, subm, data_format, n):
    import numpy as np
    if groups != 1:
        raise AssertionError(f"{who}: groups must be 1, got {groups}")
    need_rank(who, n + 2, x=x)
    _check(who, x, data_format, n)
    stride, dilation = _tuple(who, "stride", stride, n), _tuple(who, "dilation", dilation, n)
    kernel = list(weight.shape[:n])
    if padding == "VALID":
        padding = 0
    elif isinstance(padding, str) and padding != "SAME":
        raise ValueError(f"{who}: padding must be ints, 'SAME' or 'VALID', got {padding!r}")
    padding = [d * (k - 1) // 2 for d, k in zip(dilation, kernel)] if subm or padding == "SAME" else _tuple(
        who, "padding", padding, n)
    x = x.coalesce()
    sizes = list(x.shape[1:-1]) if subm else _sizes(x, kernel, stride, padding, dilation)
    if subm and any(s != 1 for s in stride):
        raise ValueError(f"{who}: stride must be 1, got {stride}")
    space = (x.shape[0], *sizes)
    pairs = list(_pairs(x, sizes, kernel, stride, padding, dilation))
    out = x.flat() if subm else np.unique(np.concatenate([to for _, to in pairs])) if pairs else np.zeros(0, np.int64)
    channels, filters = weight.shape[n], _core.reshape(weight, [math.prod(kernel), weight.shape[n], weight.shape[n + 1]])
    if x.shape[-1] != channels:
        raise ValueError(f"{who}: weight must have {x.shape[-1]} input channels, got {channels}")
    values = _core.full([len(out), weight.shape[n + 1]], 0, x.dtype)
    for k, (which, to) in enumerate(pairs):
        place = np.searchsorted(out, to)
        if subm:  # only where there is a point already
            there = (place < len(out)) & (out[np.minimum(place, len(out) - 1)] == to) if len(out) else place < 0
            which, place = which[there], place[there]
        if len(which):
            rows = _core.matmul(_core.gather(x.values(), _core.to_tensor(which)), filters[k])
            values = _core.index_add(values, _core.to_tensor(place), 0, rows)
    values = values if bias is None else _core.add(values, bias)
    return SparseCooTensor(_points(out, space), values, [*space, weight.shape[n + 1]], True)


def conv3d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, data_format="NDHWC", name=None):
    """The convolution of points in space with weight [depth, height, width, in, out]; a point wherever one is reached.

    >>> x = paddle.sparse.sparse_coo_tensor([[0], [0], [1], [1]], [[2.0]], [1, 1, 3, 3, 1])
    >>> paddle.sparse.nn.functional.conv3d(x, paddle.ones([1, 2, 2, 1, 1])).nnz()
    4
    """
    return _conv("conv3d", x, weight, bias, stride, padding, dilation, groups, False, data_format, 3)


def subm_conv3d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, data_format="NDHWC", key=None,
                name=None):
    """conv3d whose results are kept at x's points only (Graham and van der Maaten, 2017)."""
    return _conv("subm_conv3d", x, weight, bias, stride, padding, dilation, groups, True, data_format, 3)


def conv2d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, data_format="NHWC", name=None):
    """The convolution of points in a plane with weight [height, width, in, out]; a point wherever one is reached."""
    return _conv("conv2d", x, weight, bias, stride, padding, dilation, groups, False, data_format, 2)


def subm_conv2d(x, weight, bias=None, stride=1, padding=0, dilation=1, groups=1, data_format="NHWC", key=None, name=None):
    """conv2d whose results are kept at x's points only."""
    return _conv("subm_conv2d", x, weight, bias, stride, padding, dilation, groups, True, data_format, 2)


def max_pool3d(x, kernel_size, stride=None, padding=0, ceil_mode=False, data_format="NDHWC", name=None):
    """The maxima of the points within each window; a point wherever a window holds one."""
    import numpy as np
    who = "max_pool3d"
    need_attribute(who, "is_sparse_coo", x=x)
    if not isinstance(x, SparseCooTensor):
        raise AssertionError(f"{who}: x must be a COO Tensor, got {type(x).__name__}; x.to_sparse_coo(4) makes one")
    _check(who, x, data_format, 3)
    if ceil_mode:
        raise ValueError(f"{who}: ceil_mode must be False")
    kernel = _tuple(who, "kernel_size", kernel_size, 3)
    stride = kernel if stride is None else _tuple(who, "stride", stride, 3)
    padding, x = _tuple(who, "padding", padding, 3), x.coalesce()
    sizes = _sizes(x, kernel, stride, padding, [1, 1, 1])
    pairs = list(_pairs(x, sizes, kernel, stride, padding, [1, 1, 1]))
    which, to = (np.concatenate(part) for part in zip(*pairs))
    order = np.argsort(to, kind="stable")
    out, group = np.unique(to[order], return_inverse=True)
    rows = _core.gather(x.values(), _core.to_tensor(which[order]))
    values = _core.segment_pool(rows, _core.to_tensor(group.reshape(-1)), "MAX")[0]
    space = (x.shape[0], *sizes)
    return SparseCooTensor(_points(out, space), values, [*space, x.shape[-1]], True)
