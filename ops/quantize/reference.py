"""NumPy references of simulated quantization."""
import numpy as np


def _integers(x, scale, bit_length, round_type):
    n = 2 ** (bit_length - 1) - 1
    inverse = np.where(scale <= 1e-30, 1 / (scale + 1e-6), 1 / np.where(scale == 0, 1, scale))
    if round_type == 0:
        return np.clip(np.rint(x * (n * inverse)), -n - 1, n)
    v = np.clip(x, -scale, scale) * (n * inverse)
    return np.sign(v) * np.floor(np.abs(v) + 0.5)


def _range(bit_length):
    return 2 ** (bit_length - 1) - 1


def _along(scale, x, axis):
    return scale.reshape([-1 if d == axis else 1 for d in range(x.ndim)])


def _largest(x, axis=None):
    over = tuple(d for d in range(x.ndim) if d != axis) if axis is not None else None
    return np.abs(x).max(axis=over, initial=0).reshape(-1)


def fake_quantize_abs_max(x, bit_length=8, round_type=1):
    scale = _largest(x)
    return _integers(x, scale, bit_length, round_type).reshape(x.shape), scale


def fake_quantize_dequantize_abs_max(x, bit_length=8, round_type=1):
    q, scale = fake_quantize_abs_max(x, bit_length, round_type)
    return (q * scale / _range(bit_length)).reshape(x.shape), scale


def fake_channel_wise_quantize_abs_max(x, scale=None, bit_length=8, round_type=1, quant_axis=0, is_test=False):
    found = scale if is_test else _largest(x, quant_axis)
    return _integers(x, _along(found, x, quant_axis), bit_length, round_type), None if is_test else found


def fake_channel_wise_quantize_dequantize_abs_max(x, bit_length=8, round_type=1, quant_axis=0):
    q, scale = fake_channel_wise_quantize_abs_max(x, None, bit_length, round_type, quant_axis)
    return q * _along(scale, x, quant_axis) / _range(bit_length), scale


def fake_quantize_range_abs_max(x, in_scale, iter=None, scales=None, window_size=10000, bit_length=8, round_type=1,
                                is_test=False):
    if not is_test:
        now, at, scales = np.abs(x).max(), int(iter[0]), scales.copy()
        gone, scales[at % window_size] = scales[at % window_size], now
        if now > in_scale[0]:
            in_scale = np.array([now])
        elif abs(gone - in_scale[0]) < 1e-6:
            in_scale = scales[:min(at, window_size)].max(keepdims=True)
    return _integers(x, in_scale, bit_length, round_type), in_scale, scales


def _average(x, scale, accum, state, rate, is_test):
    if is_test:
        return scale, accum, state
    state, accum = rate * state + 1, rate * accum + np.abs(x).max()
    return accum / state, accum, state


def fake_quantize_moving_average_abs_max(x, in_scale, in_accum=None, in_state=None, moving_rate=0.9, bit_length=8,
                                         round_type=1, is_test=False):
    scale, accum, state = _average(x, in_scale, in_accum, in_state, moving_rate, is_test)
    return _integers(x, scale, bit_length, round_type), scale, state, accum


def fake_quantize_dequantize_moving_average_abs_max(x, in_scale, in_accum=None, in_state=None, moving_rate=0.9,
                                                    bit_length=8, round_type=1, is_test=False):
    q, scale, state, accum = fake_quantize_moving_average_abs_max(x, in_scale, in_accum, in_state, moving_rate, bit_length,
                                                                  round_type, is_test)
    return q * scale / _range(bit_length), scale, state, accum


def moving_average_abs_max_scale(x, scale=None, in_accum=None, in_state=None, moving_rate=0.9, is_test=False):
    scale, accum, state = _average(x, scale, in_accum, in_state, moving_rate, is_test)
    return x, scale, state, accum


def fake_dequantize_max_abs(x, scale, max_range=127.0):
    return x * scale / max_range


def fake_channel_wise_dequantize_max_abs(x, scales, quant_bits=(8,), quant_axis=0, x_num_col_dims=1):
    two = len(scales) == 2
    n = np.prod([_range(b) for b in quant_bits[:len(scales)]])
    scale = _along(scales[0], x, x_num_col_dims if two else quant_axis)
    return x * scale * (scales[1] if two else 1) / n


def quantize_linear(x, scale, zero_point=None, in_accum=None, in_state=None, quant_axis=0, bit_length=8, round_type=0,
                    is_test=True, only_observer=False, moving_rate=0.9):
    if not is_test and quant_axis >= 0:
        scale = _largest(x, quant_axis)
    elif not is_test:
        scale, in_accum, in_state = _average(x, scale, in_accum, in_state, moving_rate, is_test)
    s = _along(scale, x, quant_axis) if quant_axis >= 0 else scale
    return x if only_observer else _integers(x, s, bit_length, round_type), in_state, in_accum, scale


def dequantize_linear(x, scale, zero_point=None, quant_axis=0, bit_length=8, only_observer=False):
    s = _along(scale, x, quant_axis) if quant_axis >= 0 else scale
    return x if only_observer else x * s / _range(bit_length)
