"""Pooling over 1, 2 and 3 spatial axes, adaptive pooling and unpooling: argument forms, then one op."""
from ... import _core
from ..._asks import asks
from ..._errors import need_rank
from ...framework.dims import known
from ...tensor._tools import END
from ._args import channel_last, ints
from ._args import padding as padding_of

_FORMAT = (None, "NCL", "NCHW", "NCDHW")


def windows(who, n, kernel_size, stride, padding, ceil_mode, data_format, negative=False):
    """(kernel, stride, padding, algorithm) as the pooling ops take them; negative: padding may be, for _cropped."""
    kernel = ints(kernel_size, n, who, "kernel_size")
    stride = kernel if stride is None else ints(stride, n, who, "stride")
    if min(kernel) < 1 or min(stride) < 1:
        lead = "" if who.startswith("avg_pool") else "(InvalidArgument) "  # Paddle's Python looks at averages alone
        raise ValueError(f"{lead}{who}: kernel_size and stride must be at least 1, got {kernel_size} and {stride}")
    pads, algorithm = padding_of(padding, n, channel_last(data_format, n, who), who, "(InvalidArgument) ", negative)
    if algorithm == "VALID" and ceil_mode:
        raise ValueError(f"{who}: ceil_mode must be False with padding 'VALID'")
    return kernel, stride, pads, algorithm


def _cropped(x, n, pads, data_format):
    """x without the borders that negative paddings leave out, and the paddings without these."""
    if min(pads) >= 0:
        return x, pads
    each, first = len(pads) // n, 1 if data_format[-1] == "C" else 2
    borders = [(first + i, -min(pads[i * each], 0), min(pads[i * each + each - 1], 0)) for i in range(n)]
    axes = [axis for axis, before, after in borders if before or after]
    starts = [before for _, before, after in borders if before or after]
    ends = [after or END for _, before, after in borders if before or after]
    return _core.slice(x, axes, starts, ends), [max(p, 0) for p in pads]


def _avg(op, who, n, x, kernel_size, stride, padding, ceil_mode, exclusive, divisor, data_format):
    kernel, stride, pads, algorithm = windows(who, n, kernel_size, stride, padding, ceil_mode, data_format, True)
    x, pads = _cropped(x, n, pads, data_format)
    out = op(x, kernel, stride, pads, ceil_mode, exclusive, data_format, algorithm)
    if divisor is None:
        return out
    if not isinstance(divisor, (int, float)):
        raise ValueError(f"{who}: divisor_override must be a number, got {divisor!r}")
    volume = 1
    for k in kernel:
        volume *= k
    return out * volume / divisor


@asks("static:x:Tensor")
def avg_pool1d(x, kernel_size, stride=None, padding=0, exclusive=True, ceil_mode=False, name=None):
    """The mean of each window of [N, C, L]."""
    try:
        return _avg(_core.avg_pool1d, "avg_pool1d", 1, x, kernel_size, stride, padding, ceil_mode, exclusive, None,
                    "NCL")
    except Exception:
        need_rank("avg_pool1d", 3, x=x)
        raise


def avg_pool2d(x, kernel_size, stride=None, padding=0, ceil_mode=False, exclusive=True, divisor_override=None,
               data_format="NCHW", name=None):
    """The mean of each window of images; exclusive leaves the padding out of the count."""
    return _avg(_core.avg_pool2d, "avg_pool2d", 2, x, kernel_size, stride, padding, ceil_mode, exclusive,
                divisor_override, data_format)


def avg_pool3d(x, kernel_size, stride=None, padding=0, ceil_mode=False, exclusive=True, divisor_override=None,
               data_format="NCDHW", name=None):
    """The mean of each window of volumes."""
    return _avg(_core.avg_pool3d, "avg_pool3d", 3, x, kernel_size, stride, padding, ceil_mode, exclusive,
                divisor_override, data_format)


def _max(op, who, n, x, kernel_size, stride, padding, return_mask, ceil_mode, data_format):
    kernel, stride, pads, algorithm = windows(who, n, kernel_size, stride, padding, ceil_mode, data_format, not return_mask)
    if not return_mask:
        x, pads = _cropped(x, n, pads, data_format)
        return op(x, kernel, stride, pads, ceil_mode, data_format, algorithm)
    if data_format != _FORMAT[n]:
        raise ValueError(f"{who}: return_mask needs data_format '{_FORMAT[n]}', got {data_format!r}")
    return _with_index(n, x, kernel, stride, pads, False)


def _with_index(n, x, kernel, stride, pads, adaptive):
    if n == 3:
        return _core.max_pool3d_with_index(x, kernel, stride, pads, adaptive)
    if n == 2:
        return _core.max_pool2d_with_index(x, kernel, stride, pads, adaptive)
    out, mask = _core.max_pool2d_with_index(_core.unsqueeze(x, 2), [1] + kernel, [1] + stride, [0] + pads, adaptive)
    return _core.squeeze(out, 2), _core.squeeze(mask, 2)


def max_pool1d(x, kernel_size, stride=None, padding=0, return_mask=False, ceil_mode=False, name=None):
    """The largest value of each window of [N, C, L]; return_mask: and where it was."""
    try:
        return _max(_core.max_pool1d, "max_pool1d", 1, x, kernel_size, stride, padding, return_mask, ceil_mode, "NCL")
    except Exception:
        need_rank("max_pool1d", 3, x=x)
        raise


def max_pool2d(x, kernel_size, stride=None, padding=0, return_mask=False, ceil_mode=False, data_format="NCHW",
               name=None):
    """The largest value of each window of images; return_mask: and its place in the plane."""
    return _max(_core.max_pool2d, "max_pool2d", 2, x, kernel_size, stride, padding, return_mask, ceil_mode,
                data_format)


def max_pool3d(x, kernel_size, stride=None, padding=0, return_mask=False, ceil_mode=False, data_format="NCDHW",
               name=None):
    """The largest value of each window of volumes; return_mask: and its place in the volume."""
    return _max(_core.max_pool3d, "max_pool3d", 3, x, kernel_size, stride, padding, return_mask, ceil_mode,
                data_format)


def adaptive_size(size, n, x, last, who):
    """The n sizes to come out: an int for all, or a sequence in which None keeps the input's size."""
    if type(size) is int:
        return [size] * n
    if isinstance(size, _core.Tensor):
        size = size.tolist()
        size = size if isinstance(size, list) else [size] * n
    sizes = list(size)
    if len(sizes) != n:
        raise ValueError(f"{who}: output_size must be an int or {n} ints, got {size!r}")
    if None in sizes:
        own = x.shape[1:-1] if last else x.shape[2:]
        sizes = [o if s is None else s for s, o in zip(sizes, own)]
    return ints(sizes, n, who, "output_size") if known(*sizes) else sizes


def adaptive_avg_pool1d(x, output_size, name=None):
    """The mean of windows of [N, C, L] placed so that output_size values come out."""
    need_rank("adaptive_avg_pool1d", 3, x=x)
    return _core.adaptive_avg_pool1d(x, ints(output_size, 1, "adaptive_avg_pool1d", "output_size"), "NCL")


def adaptive_avg_pool2d(x, output_size, data_format="NCHW", name=None):
    """The mean of windows of images placed so that output_size values come out."""
    last = channel_last(data_format, 2, "adaptive_avg_pool2d")
    try:
        return _core.adaptive_avg_pool2d(x, adaptive_size(output_size, 2, x, last, "adaptive_avg_pool2d"), data_format)
    except Exception:
        need_rank("adaptive_avg_pool2d", 4, least=True, x=x)
        raise


def adaptive_avg_pool3d(x, output_size, data_format="NCDHW", name=None):
    """The mean of windows of volumes placed so that output_size values come out."""
    last = channel_last(data_format, 3, "adaptive_avg_pool3d")
    try:
        return _core.adaptive_avg_pool3d(x, adaptive_size(output_size, 3, x, last, "adaptive_avg_pool3d"), data_format)
    except Exception:
        need_rank("adaptive_avg_pool3d", 5, least=True, x=x)
        raise


def _adaptive_max(op, who, n, x, output_size, return_mask):
    need_rank(who, n + 2, x=x)
    if _core.is_capturing() and not isinstance(return_mask, bool):
        raise TypeError(f"{who}: return_mask must be a bool, got {type(return_mask).__name__}")
    size = adaptive_size(output_size, n, x, False, who)
    return _with_index(n, x, size, [1] * n, [0] * n, True) if return_mask else op(x, size, _FORMAT[n])


def adaptive_max_pool1d(x, output_size, return_mask=False, name=None):
    """The largest value of windows of [N, C, L] placed so that output_size values come out."""
    return _adaptive_max(_core.adaptive_max_pool1d, "adaptive_max_pool1d", 1, x, output_size, return_mask)


def adaptive_max_pool2d(x, output_size, return_mask=False, name=None):
    """The largest value of windows of images placed so that output_size values come out."""
    return _adaptive_max(_core.adaptive_max_pool2d, "adaptive_max_pool2d", 2, x, output_size, return_mask)


def adaptive_max_pool3d(x, output_size, return_mask=False, name=None):
    """The largest value of windows of volumes placed so that output_size values come out."""
    return _adaptive_max(_core.adaptive_max_pool3d, "adaptive_max_pool3d", 3, x, output_size, return_mask)


def _unpooled(who, n, x, indices, kernel_size, stride, padding, data_format, output_size):
    if n > 1 and x.ndim != n + 2:
        raise ValueError(f"{who}: x must have {n + 2} axes, got shape {x.shape}")
    if data_format != _FORMAT[n]:
        raise ValueError(f"{who}: data_format must be '{_FORMAT[n]}', got {data_format!r}")
    kernel, stride, pads, _ = windows(who, n, kernel_size, stride, padding, False, data_format)
    if x.ndim != n + 2 or indices.ndim != n + 2:
        raise ValueError(f"{'(InvalidArgument) ' if n == 1 else ''}{who}: x and indices must have {n + 2} axes, got shapes "
                         f"{x.shape} and {indices.shape}")
    shape = x.shape
    usual = [(s - 1) * t + k - 2 * p for s, t, k, p in zip(shape[2:], stride, kernel, pads)]
    sizes = usual
    if output_size is not None:
        sizes = output_size[-n:] if len(output_size) == n + 2 else output_size
        variable = any(isinstance(s, _core.Tensor) and s.is_symbolic for s in sizes)
        sizes = list(sizes) if variable else ints(sizes, n, who, "output_size")
        if len(sizes) != n:
            raise ValueError(f"{who}: output_size must be {n} or {n + 2} lengths, got {len(output_size)}")
        if not variable and any(known(u) and not u - t < s < u + t for s, u, t in zip(sizes, usual, stride)):
            raise ValueError(f"{who}: output_size must be less than a stride from {usual}, got {output_size!r}")
    flat = [0, 0, -1]  # 0: as it is
    blank = _core.reshape(_core.full([*shape[:2], *sizes], 0.0, x.dtype), flat)
    at = _core.cast(_core.reshape(indices, flat), "int64")
    out = _core.put_along_axis(blank, at, _core.reshape(x, flat), 2, broadcast=False)
    return _core.reshape(out, [0, 0, *sizes])


@asks("eager:x:Tensor!InvalidArgument eager:indices:Tensor!InvalidArgument eager:x.dtype=f4,f8!NotFound")
def max_unpool1d(x, indices, kernel_size, stride=None, padding=0, data_format="NCL", output_size=None, name=None):
    """x's values back at the places that max_pool1d's mask names; zeros elsewhere."""
    return _unpooled("max_unpool1d", 1, x, indices, kernel_size, stride, padding, data_format, output_size)


def max_unpool2d(x, indices, kernel_size, stride=None, padding=0, data_format="NCHW", output_size=None, name=None):
    """x's values back at the places that max_pool2d's mask names; zeros elsewhere."""
    return _unpooled("max_unpool2d", 2, x, indices, kernel_size, stride, padding, data_format, output_size)


def max_unpool3d(x, indices, kernel_size, stride=None, padding=0, data_format="NCDHW", output_size=None, name=None):
    """x's values back at the places that max_pool3d's mask names; zeros elsewhere."""
    return _unpooled("max_unpool3d", 3, x, indices, kernel_size, stride, padding, data_format, output_size)
