"""The Fourier transforms and frames in real Paddle."""
from paddle import _C_ops


def fft_c2c(x, axes, norm="backward", forward=True):
    return _C_ops.fft_c2c(x, axes, norm, forward)


def fft_r2c(x, axes, norm="backward", forward=True, onesided=True):
    return _C_ops.fft_r2c(x, axes, norm, forward, onesided)


def fft_c2r(x, axes, norm="backward", forward=False, last_dim_size=0):
    return _C_ops.fft_c2r(x, axes, norm, forward, last_dim_size)


def frame(x, frame_length, hop_length, axis=-1):
    return _C_ops.frame(x, frame_length, hop_length, axis)


def overlap_add(x, hop_length, axis=-1):
    return _C_ops.overlap_add(x, hop_length, axis)
