"""NumPy references of the discrete Fourier transforms (complex, real to complex, complex to real) and of frame and
overlap_add. One function per op, named as the op: tests/ops/test_ops.py calls it with the op's fields, tensors as
NumPy arrays, and compares Proa's outputs with the outputs that it returns, in the op table's order (None: not
compared)."""
import numpy as np


def _like(out, x):
    """out, which NumPy computes in double, rounded to x's precision."""
    wide = x.dtype in (np.float64, np.complex128)
    kind = "c" if np.iscomplexobj(out) else "f"
    return out.astype({("c", True): "complex128", ("c", False): "complex64", ("f", True): "float64",
                       ("f", False): "float32"}[kind, wide])


def _swapped(norm):
    return {"backward": "forward", "forward": "backward"}.get(norm, norm)


def fft_c2c(x, axes, norm="backward", forward=True):
    transform = np.fft.fftn if forward else np.fft.ifftn
    return _like(transform(x, axes=list(axes), norm=norm), x)


def fft_r2c(x, axes, norm="backward", forward=True, onesided=True):
    axes = list(axes)
    transform = (np.fft.rfftn if onesided else np.fft.fftn)(x, axes=axes, norm=norm if forward else _swapped(norm))
    return _like(transform if forward else transform.conj(), x)


def fft_c2r(x, axes, norm="backward", forward=False, last_dim_size=0):
    axes = list(axes)
    n = last_dim_size or 2 * (x.shape[axes[-1]] - 1)
    sizes = [x.shape[a] for a in axes[:-1]] + [n]
    if forward:
        return _like(np.fft.irfftn(x.conj(), s=sizes, axes=axes, norm=_swapped(norm)), x)
    return _like(np.fft.irfftn(x, s=sizes, axes=axes, norm=norm), x)


def frame(x, frame_length, hop_length, axis=-1):
    count = (x.shape[axis] - frame_length) // hop_length + 1
    parts = [np.take(x, range(k * hop_length, k * hop_length + frame_length), axis) for k in range(count)]
    return np.stack(parts, axis)


def overlap_add(x, hop_length, axis=-1):
    windows = np.moveaxis(x, -1, 0) if axis else x
    windows = np.moveaxis(windows, -1, 1) if axis else windows
    out = np.zeros(((len(windows) - 1) * hop_length + windows.shape[1], *windows.shape[2:]), x.dtype)
    for k, w in enumerate(windows):
        out[k * hop_length:k * hop_length + len(w)] += w
    return np.moveaxis(out, 0, -1) if axis else out
