"""Simulated quantization in real Paddle: its operators, which have no Python functions of their own."""
import paddle
from paddle import _legacy_C_ops as operators


def _output():
    return paddle.zeros([1])


def fake_quantize_abs_max(x, bit_length, round_type):
    return operators.fake_quantize_abs_max(x, "bit_length", bit_length, "round_type", round_type)


def fake_quantize_dequantize_abs_max(x, bit_length, round_type):
    return operators.fake_quantize_dequantize_abs_max(x, _output(), _output(), "bit_length", bit_length, "round_type", round_type)


def fake_channel_wise_quantize_dequantize_abs_max(x, bit_length, round_type, quant_axis):
    return operators.fake_channel_wise_quantize_dequantize_abs_max(
        x, _output(), _output(), "bit_length", bit_length, "round_type", round_type, "quant_axis", quant_axis)


def fake_quantize_dequantize_moving_average_abs_max(x, in_scale, in_accum, in_state, moving_rate, bit_length, round_type,
                                                    is_test):
    copies = [None if t is None else t.clone() for t in (in_scale, in_accum, in_state)]
    scale, accum, state = copies
    out = operators.fake_quantize_dequantize_moving_average_abs_max(
        x, scale, accum, state, _output(), scale, state, accum, "moving_rate", moving_rate, "bit_length", bit_length,
        "round_type", round_type, "is_test", is_test)[0]
    return out, scale, state, accum


def fake_dequantize_max_abs(x, scale, max_range):
    return operators.fake_dequantize_max_abs(x, scale, "max_range", max_range)


def fake_channel_wise_dequantize_max_abs(x, scales, quant_bits, quant_axis, x_num_col_dims):
    return operators.fake_channel_wise_dequantize_max_abs(
        x, scales, "quant_bits", quant_bits, "quant_axis", quant_axis, "x_num_col_dims", x_num_col_dims)
