"""paddle.fft: discrete Fourier transforms. Arguments are checked and arrays cut or padded here; the transforms are the
ops fft_c2c, fft_r2c and fft_c2r."""
from . import _core
from ._asks import named as _named
from ._asks import need_kernel
from ._errors import compared, need_attribute, of_dtype, of_kind
from .framework.dims import known
from .tensor._tools import COMPLEX, FLOATING, INTEGER, Tensor, dtype_name

__all__ = ["fft", "fft2", "fftfreq", "fftn", "fftshift", "hfft", "hfft2", "hfftn", "ifft", "ifft2", "ifftn",
           "ifftshift", "ihfft", "ihfft2", "ihfftn", "irfft", "irfft2", "irfftn", "rfft", "rfft2", "rfftfreq",
           "rfftn"]


# ---- arguments -------------------------------------------------------------------------------


def _need_tensor(who, x):
    if not isinstance(x, Tensor):
        raise TypeError(f"{who}: x must be a Tensor, got {type(x).__name__}; make one with paddle.to_tensor")


def _check_norm(who, norm):
    if norm not in ("forward", "backward", "ortho"):
        compared(norm)
        raise ValueError(f"{who}: norm must be 'forward', 'backward' or 'ortho', got {norm!r}")


def _is_list(value):
    return isinstance(value, (list, tuple))


def _check_axes(who, axes, ndim):
    if not _is_list(axes):
        raise ValueError(f"{who}: axes must be a list or tuple of ints, got {axes!r}")
    if len(axes) > ndim:
        raise ValueError(f"{who}: axes has {len(axes)} entries, x has {ndim} dims")
    for axis in axes:
        if not isinstance(axis, int) or not -ndim <= axis < ndim:
            raise ValueError(f"{who}: axes must be ints in [{-ndim}, {ndim}), got {axis!r}")


def _check_sizes(who, s, ndim):
    if not _is_list(s):
        raise ValueError(f"{who}: s must be a list or tuple of ints, got {s!r}")
    if len(s) > ndim:
        raise ValueError(f"{who}: s has {len(s)} entries, x has {ndim} dims")
    for n in s:
        if not isinstance(n, int) or n <= 0:
            raise ValueError(f"{who}: sizes must be ints above 0, got {n!r}")


def _axes_and_sizes(who, x, s, axes, real):
    """Axes counted from the front in ascending order (of a real transform the last one stays last), and their sizes."""
    ndim = len(x.shape)
    if s is not None:
        _check_sizes(who, s, ndim)
    if axes is None:
        return list(range(0 if s is None else ndim - len(s), ndim)), s
    _check_axes(who, axes, ndim)
    if s is not None and len(s) != len(axes):
        raise ValueError(f"{who}: s has {len(s)} entries, axes {len(axes)}")
    axes = [a + ndim if a < 0 else a for a in axes]
    fixed = len(axes) - 1 if real else len(axes)
    order = sorted(range(fixed), key=axes.__getitem__) + list(range(fixed, len(axes)))
    return [axes[i] for i in order], None if s is None else [s[i] for i in order]


def _resized(x, sizes, axes):
    """x cut, or padded with zeros, to sizes along axes."""
    for axis, n in zip(axes, sizes):
        length = x.shape[axis]
        if not known(length) or length < n:  # one that only the run knows is padded by what it may lack, and cut
            more = x.shape
            more[axis] = n - length if known(length) else n
            x = _core.concat([x, _core.full(more, 0, x.dtype)], axis)
        if not known(length) or length > n:
            x = _core.slice(x, [axis], [0], [n])
    return x


def _complex(who, x, whole=True):
    """x as complex numbers; of Paddle's transforms those to real numbers take no whole ones."""
    name = dtype_name(x.dtype)
    if name in COMPLEX:
        return x
    if name == "bool" or name in INTEGER and not whole:
        raise of_dtype(f"{who}: x is {name}; expected a floating{' ' if whole else ' or complex '}dtype (convert with cast)")
    name = _core.get_default_dtype() if name in INTEGER else x.dtype
    return _core.cast(x, "complex128" if dtype_name(name) == "float64" else "complex64")


def _real(x):
    return _core.cast(x, _core.get_default_dtype()) if dtype_name(x.dtype) in INTEGER else x


# ---- the three kinds -------------------------------------------------------------------------


def _c2c(who, x, s, axes, norm, forward):
    x = _complex(who, x)
    _check_norm(who, norm)
    axes, s = _axes_and_sizes(who, x, s, axes, False)
    return _core.fft_c2c(x if s is None else _resized(x, s, axes), axes, norm, forward)


def _r2c(who, x, s, axes, norm, forward, onesided=True):
    x = _real(x)
    _check_norm(who, norm)
    axes, s = _axes_and_sizes(who, x, s, axes, True)
    return _core.fft_r2c(x if s is None else _resized(x, s, axes), axes, norm, forward, onesided)


def _c2r(who, x, s, axes, norm, forward):
    _need_tensor(who, x)
    x = _complex(who, x, whole=False)
    _check_norm(who, norm)
    axes, s = _axes_and_sizes(who, x, s, axes, True)
    if s is None:
        return _core.fft_c2r(x, axes, norm, forward, 0)
    return _core.fft_c2r(_resized(x, [*s[:-1], s[-1] // 2 + 1], axes), axes, norm, forward, s[-1])


def _one(who, x, n, axis):
    """n and axis of a one-dimensional transform as the s and axes of the others."""
    _need_tensor(who, x)
    ndim, axis = len(x.shape), -1 if axis is None else axis
    if not isinstance(axis, int) or not -ndim <= axis < ndim:
        raise ValueError(f"{who}: axis must be an int in [{-ndim}, {ndim}), got {axis!r}")
    if n is not None and (not isinstance(n, int) or n <= 0):
        raise ValueError(f"{who}: n must be an int above 0, got {n!r}")
    return None if n is None else [n], [axis]


def _two(who, x, s, axes):
    need_attribute(who, "ndim", x=x)
    for name, value in (("s", s), ("axes", axes)):
        if value is not None and (not _is_list(value) or len(value) != 2):
            raise ValueError(f"{who}: {name} must have two entries, got {value!r}")
    return s, axes


def _needs_real(who, x):
    _need_tensor(who, x)
    if dtype_name(x.dtype) in COMPLEX:
        raise of_dtype(f"{who}: x must be real, got {dtype_name(x.dtype)}")
    return x


def _full(x):
    return dtype_name(x.dtype) in FLOATING + INTEGER


def _any(who, x, s, axes, norm, forward):
    """A transform of complex or real x, all of it."""
    _need_tensor(who, x)
    if _full(x):
        return _r2c(who, x, s, axes, norm, forward, False)
    return _c2c(who, x, s, axes, norm, forward)


def fft(x, n=None, axis=-1, norm="backward", name=None):
    """The discrete Fourier transform along one axis, of n elements (x cut, or padded with zeros).

    >>> paddle.fft.fft(paddle.to_tensor([1.0, 0.0, 0.0, 0.0])).real().tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return _any("fft", x, *_one("fft", x, n, axis), norm, True)


def ifft(x, n=None, axis=-1, norm="backward", name=None):
    """The inverse of fft."""
    return _any("ifft", x, *_one("ifft", x, n, axis), norm, False)


def rfft(x, n=None, axis=-1, norm="backward", name=None):
    """The first n / 2 + 1 elements of the transform of a real x; the others are their conjugates.

    >>> paddle.fft.rfft(paddle.ones([4])).real().tolist()
    [4.0, 0.0, 0.0]
    """
    return _r2c("rfft", _needs_real("rfft", x), *_one("rfft", x, n, axis), norm, True)


def irfft(x, n=None, axis=-1, norm="backward", name=None):
    """The inverse of rfft, real; n says how long it is, 2·(length − 1) by default."""
    return _c2r("irfft", x, *_one("irfft", x, n, axis), norm, False)


def hfft(x, n=None, axis=-1, norm="backward", name=None):
    """The transform, real, of a signal whose second half is the conjugate of the first, which x is."""
    return _c2r("hfft", x, *_one("hfft", x, n, axis), norm, True)


def ihfft(x, n=None, axis=-1, norm="backward", name=None):
    """The inverse of hfft."""
    return _r2c("ihfft", _needs_real("ihfft", x), *_one("ihfft", x, n, axis), norm, False)


def fftn(x, s=None, axes=None, norm="backward", name=None):
    """fft along several axes, all by default; s holds their sizes."""
    return _any("fftn", x, s, axes, norm, True)


def ifftn(x, s=None, axes=None, norm="backward", name=None):
    """The inverse of fftn."""
    return _any("ifftn", x, s, axes, norm, False)


def rfftn(x, s=None, axes=None, norm="backward", name=None):
    """rfft along the last of axes, fft along the others."""
    return _r2c("rfftn", _needs_real("rfftn", x), s, axes, norm, True)


def irfftn(x, s=None, axes=None, norm="backward", name=None):
    """The inverse of rfftn."""
    return _c2r("irfftn", x, s, axes, norm, False)


def hfftn(x, s=None, axes=None, norm="backward", name=None):
    """hfft along the last of axes, fft along the others."""
    return _c2r("hfftn", x, s, axes, norm, True)


def ihfftn(x, s=None, axes=None, norm="backward", name=None):
    """The inverse of hfftn."""
    return _r2c("ihfftn", _needs_real("ihfftn", x), s, axes, norm, False)


def fft2(x, s=None, axes=(-2, -1), norm="backward", name=None):
    """fftn along two axes."""
    return fftn(x, *_two("fft2", x, s, axes), norm)


def ifft2(x, s=None, axes=(-2, -1), norm="backward", name=None):
    """ifftn along two axes."""
    return ifftn(x, *_two("ifft2", x, s, axes), norm)


def rfft2(x, s=None, axes=(-2, -1), norm="backward", name=None):
    """rfftn along two axes."""
    return rfftn(x, *_two("rfft2", x, s, axes), norm)


def irfft2(x, s=None, axes=(-2, -1), norm="backward", name=None):
    """irfftn along two axes."""
    return irfftn(x, *_two("irfft2", x, s, axes), norm)


def hfft2(x, s=None, axes=(-2, -1), norm="backward", name=None):
    """hfftn along two axes."""
    return hfftn(x, *_two("hfft2", x, s, axes), norm)


def ihfft2(x, s=None, axes=(-2, -1), norm="backward", name=None):
    """ihfftn along two axes."""
    return ihfftn(x, *_two("ihfft2", x, s, axes), norm)


# ---- frequencies -----------------------------------------------------------------------------


def _frequencies(who, first, last, n, d):
    if n * d == 0:
        raise ValueError(f"{who}: n and d must not be 0")
    dtype = _core.get_default_dtype()
    return _core.scale(_core.arange(first, last, 1, dtype), 1.0 / (n * d))


def fftfreq(n, d=1.0, dtype=None, name=None):
    """The frequencies of fft's elements, for samples d apart.

    >>> paddle.fft.fftfreq(4).tolist()
    [0.0, 0.25, -0.5, -0.25]
    """
    return _core.roll(_frequencies("fftfreq", -(n // 2), (n + 1) // 2, n, d), [-(n // 2)], [])


def rfftfreq(n, d=1.0, dtype=None, name=None):
    """The frequencies of rfft's elements, for samples d apart."""
    return _frequencies("rfftfreq", 0, n // 2 + 1, n, d)


def _shifted(who, x, axes, up):
    if not isinstance(x, Tensor):
        raise of_kind(f"{who}: x must be a Tensor, got {type(x).__name__}")
    rank = len(x.shape)
    if not isinstance(axes, (int, type(None), Tensor)) and not all(-rank <= a < rank for a in axes):
        raise of_kind(f"{who}: axes must be in [{-rank}, {rank}), got {axes!r}")
    if isinstance(axes, Tensor) and len(axes.shape) > 1 and not _core.is_capturing():
        raise of_kind(f"{who}: axes must be ints or a Tensor of one dim, got shape {axes.shape}")
    axes = list(range(rank)) if axes is None else [axes] if isinstance(axes, int) else list(axes)
    need_kernel(who, "i4,i8,f4,f8,c8,c16", x=x)
    return _core.roll(x, [(x.shape[a] + up) // 2 for a in axes], axes)


def fftshift(x, axes=None, name=None):
    """x with frequency zero in the middle of axes.

    >>> paddle.fft.fftshift(paddle.to_tensor([0, 1, -2, -1])).tolist()
    [-2, -1, 0, 1]
    """
    return _shifted("fftshift", x, axes, 0)


def ifftshift(x, axes=None, name=None):
    """The inverse of fftshift."""
    return _shifted("ifftshift", x, axes, 1)

_named(globals())
