"""paddle.signal: short-time Fourier transforms, made of frames, windows and paddle.fft."""
import operator

from . import _core
from ._asks import asks, named as _named
from .framework.dims import differ, known
from .tensor._tools import COMPLEX, dtype_name

__all__ = ["istft", "stft"]


def _check(who, holds, text):
    if not holds:
        raise AssertionError(f"{who}: {text}")


def _check_frames(who, axis, **lengths):
    if axis not in (0, -1):
        raise ValueError(f"{who}: axis must be 0 or -1, got {axis!r}")
    for name, value in lengths.items():
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"{who}: {name} must be an int above 0, got {value!r}")


def frame(x, frame_length, hop_length, axis=-1, name=None):
    """Windows of frame_length elements, hop_length apart, along the last axis or the first.

    >>> paddle.signal.frame(paddle.arange(5), 3, 2).tolist()
    [[0, 2], [1, 3], [2, 4]]
    """
    _check_frames("frame", axis, frame_length=frame_length, hop_length=hop_length)
    if known(x.shape[axis]) and x.shape[axis] < frame_length:
        raise ValueError(f"frame: frame_length must be at most x's length {x.shape[axis]}, got {frame_length}")
    return _core.frame(x, frame_length, hop_length, axis)


def overlap_add(x, hop_length, axis=-1, name=None):
    """The opposite of frame: windows hop_length apart, summed where they overlap."""
    _check_frames("overlap_add", axis, hop_length=hop_length)
    return _core.overlap_add(x, hop_length, axis)


def _padded_window(who, window, win_length, n_fft, dtype):
    """The window, of ones by default, in the middle of n_fft elements."""
    _check(who, 0 < win_length <= n_fft, f"win_length must be in (0, {n_fft}], got {win_length}")
    if window is None:
        window = _core.full([win_length], 1, dtype)
    else:
        _check(who, not differ(window.shape, [win_length]),
               f"window must have shape [{win_length}], got {list(window.shape)}")
    left = (n_fft - win_length) // 2
    return _core.pad(window, [left, n_fft - win_length - left]) if win_length < n_fft else window


def stft(x, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect", normalized=False,
         onesided=True, name=None):
    """Transforms of windows along x ([length] or [batch, length]): [.., frequencies, windows].

    >>> paddle.signal.stft(paddle.ones([1, 16]), n_fft=8).shape
    [1, 5, 9]
    """
    ndim, who = len(x.shape), "stft"
    _check(who, ndim in (1, 2), f"x must have one or two dims, got shape {list(x.shape)}")
    x = _core.unsqueeze(x, [0]) if ndim == 1 else x
    hop_length = n_fft // 4 if hop_length is None else hop_length
    _check(who, hop_length > 0, f"hop_length must be above 0, got {hop_length}")
    _check(who, 0 < n_fft and (not known(x.shape[-1]) or n_fft <= x.shape[-1]),
           f"n_fft must be in (0, {x.shape[-1]}], got {n_fft}")
    window = _padded_window(who, window, n_fft if win_length is None else win_length, n_fft, x.dtype)
    if center:
        from .nn.functional import pad
        _check(who, pad_mode in ("constant", "reflect"), f"pad_mode must be 'reflect' or 'constant', got {pad_mode!r}")
        x = pad(x.unsqueeze(-1), [n_fft // 2, n_fft // 2], mode=pad_mode, data_format="NLC").squeeze(-1)
    frames = _core.transpose(frame(x, n_fft, hop_length), [0, 2, 1]) * window
    wide, norm = dtype_name(frames.dtype) in COMPLEX, "ortho" if normalized else "backward"
    _check(who, not (wide and onesided), "onesided must be False where x or window is complex")
    out = _core.fft_c2c(frames, [2], norm, True) if wide else _core.fft_r2c(frames, [2], norm, True, onesided)
    out = _core.transpose(out, [0, 2, 1])
    return _core.squeeze(out, [0]) if ndim == 1 else out


@asks("x.shape n_fft<? hop_length<?")
def istft(x, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False, onesided=True,
          length=None, return_complex=False, name=None):
    """The signal whose stft x is: windows transformed back, summed, and divided by the sum of squared windows."""
    ndim, who = len(x.shape), "istft"
    n_fft = operator.index(n_fft)
    if dtype_name(x.dtype) not in COMPLEX:
        raise TypeError(f"istft: x must be complex64 or complex128, got {dtype_name(x.dtype)}")
    _check(who, ndim in (2, 3), f"x must have two or three dims, got shape {list(x.shape)}")
    x = _core.unsqueeze(x, [0]) if ndim == 2 else x
    hop_length = n_fft // 4 if hop_length is None else hop_length
    win_length = n_fft if win_length is None else win_length
    _check(who, 0 < hop_length <= win_length, f"hop_length must be in (0, {win_length}], got {hop_length}")
    rows = n_fft // 2 + 1 if onesided else n_fft
    _check(who, not differ(x.shape[1], rows), f"x must have {rows} frequencies, got shape {list(x.shape)}")
    _check(who, not (return_complex and onesided), "onesided must be False where the result is complex")
    real = "float32" if dtype_name(x.dtype) == "complex64" else "float64"
    window = _padded_window(who, window, win_length, n_fft, real)
    frames, norm = x.shape[2], "ortho" if normalized else "backward"
    x = _core.transpose(x, [0, 2, 1])
    if return_complex:
        out = _core.fft_c2c(x, [2], norm, False)
    else:
        _check(who, dtype_name(window.dtype) not in COMPLEX, "window must be real where the result is")
        out = _core.fft_c2r(x[:, :, :n_fft // 2 + 1], [2], norm, False, n_fft if n_fft % 2 else 0)
    out = overlap_add(_core.transpose(out * window, [0, 2, 1]), hop_length)
    squares = _core.expand(_core.unsqueeze(window * window, [1]), [n_fft, frames])
    envelope = overlap_add(squares, hop_length)
    first = n_fft // 2 if center else 0
    last = first + length if length is not None else out.shape[-1] - first
    out, envelope = out[:, first:last], envelope[first:last]
    if not x.is_symbolic and float(envelope.abs().min()) < 1e-11:
        raise ValueError("istft: the windows leave elements out (the nonzero overlap-add condition fails); "
                         "take a smaller hop_length or another window")
    out = out / envelope
    return _core.squeeze(out, [0]) if ndim == 2 else out

_named(globals())
