"""The discrete Fourier transforms (complex, real to complex, complex to real), frame and overlap_add in real Paddle.
One function per op, named as the op: tests/ops/run_matrix.py calls it with the op's fields, tensors as Paddle
tensors, and saves the outputs that it returns, in the op table's order (None: not compared), for
tests/ops/test_ops.py."""
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
