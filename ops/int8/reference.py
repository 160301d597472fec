"""NumPy references of INT8 ops."""
import numpy as np

import matrix


def _finished(y, scale, bias, residual, activation, alpha, beta, outer, high, dtype):
    """Of products whose channels come last."""
    y = y * scale if bias is None else y * scale + bias
    y = outer * matrix.epilogue(y, residual, activation or "none", alpha, beta)
    if dtype == "F32":
        return y.astype(np.float32)
    return np.clip(np.rint(y), 0 if dtype == "U8" else -128, high).astype(matrix.NUMPY[dtype])


def quantize_int8(x, scale, low=-128, high=127, dtype="I8"):
    return np.clip(np.rint(x * np.float32(scale)), low, high).astype(matrix.NUMPY[dtype])


def conv2d_int8(x, weight, scale, bias=None, residual=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1,
                data_format="NCHW", padding_algorithm="EXPLICIT", activation="none", alpha=0.0, beta=0.0, outer=1.0,
                high=127, dtype="F32"):
    y = matrix.loaded("conv", "reference").conv2d(x.astype(np.float64), weight.astype(np.float64), None, stride, padding,
                                                  dilation, groups, data_format, padding_algorithm)
    last = data_format == "NHWC"
    y = y if last else np.moveaxis(y, 1, -1)
    residual = residual if residual is None or last else np.moveaxis(residual, 1, -1)
    y = _finished(y, scale, bias, residual, activation, alpha, beta, outer, high, dtype)
    return y if last else np.moveaxis(y, -1, 1)


def conv2d_transpose_int8(x, weight, scale, bias=None, stride=(1, 1), padding=(0, 0), output_padding=(), dilation=(1, 1),
                          output_size=(), data_format="NCHW", padding_algorithm="EXPLICIT", activation="none", outer=1.0, high=127,
                          dtype="F32"):
    y = matrix.loaded("conv", "reference").conv2d_transpose(
        x.astype(np.float64), weight.astype(np.float64), None, stride, padding, output_padding, 1, dilation, output_size, data_format,
        padding_algorithm)
    last = data_format == "NHWC"
    y = _finished(y if last else np.moveaxis(y, 1, -1), scale, bias, None, activation, 0.0, 0.0, outer, high, dtype)
    return y if last else np.moveaxis(y, -1, 1)


def linear_int8(x, weight, scale, bias, residual, activation, alpha, beta, outer, high, dtype):
    y = x.astype(np.float64) @ weight.astype(np.float64)
    return _finished(y, scale, bias, residual, activation, alpha, beta, outer, high, dtype)


def matmul_int8(x, y, transpose_x=False, transpose_y=False, scale=1.0, high=127, dtype="F32"):
    x, y = x.astype(np.float64), y.astype(np.float64)
    x, y = np.swapaxes(x, -1, -2) if transpose_x else x, np.swapaxes(y, -1, -2) if transpose_y else y
    return _finished(x @ y, scale, None, None, "none", 0.0, 0.0, 1.0, high, dtype)


def max_pool2d_int8(x, **options):
    return matrix.loaded("pool", "reference").max_pool2d(x.astype(np.float32), **options).astype(x.dtype)


def avg_pool2d_int8(x, kernel_size, stride=(), padding=(0, 0), ceil_mode=False, exclusive=True, adaptive=False, data_format="NCHW",
                    padding_algorithm="EXPLICIT", scale=1.0, high=127, dtype="F32"):
    pool = matrix.loaded("pool", "reference")
    x = x.astype(np.float64)
    y = (pool.adaptive_avg_pool2d(x, kernel_size, data_format) if adaptive else
         pool.avg_pool2d(x, kernel_size, stride, padding, ceil_mode, exclusive, data_format, padding_algorithm))
    return _finished(y, scale, None, None, "none", 0.0, 0.0, 1.0, high, dtype)


def affine_int8(x, scale, bias=None, residual=None, data_format="NCHW", activation="none", outer=1.0, high=127, dtype="F32"):
    last = data_format == "NHWC"
    front = lambda t: t if t is None or last else np.moveaxis(t, 1, -1)
    y = _finished(front(x.astype(np.float64)), scale, bias, front(residual), activation, 0.0, 0.0, outer, high, dtype)
    return y if last else np.moveaxis(y, -1, 1)


def embedding_int8(x, weight, scale, padding_idx=-1):
    table = weight.astype(np.float64) * scale.astype(np.float64)[:, None] / 127
    if padding_idx >= 0:
        table[padding_idx] = 0
    return table[x]


def add_int8(x, y, scale_x, scale_y, relu=False, high=127, dtype="F32"):
    y = x.astype(np.float64) * scale_x + y.astype(np.float64) * scale_y
    return _finished(y, 1.0, None, None, "relu" if relu else "none", 0.0, 0.0, 1.0, high, dtype)


def _rows(x, step=None):
    """Integers of rows, and their steps."""
    if step is not None:
        return x.astype(np.float64), np.full(x.shape[:-1] + (1,), step)
    largest = np.abs(x).max(-1, keepdims=True).astype(np.float32)
    by = np.divide(np.float32(127), largest, where=largest > 1e-30, out=np.zeros_like(largest))
    return np.clip(np.rint(x.astype(np.float32) * by), -127, 127).astype(np.float64), largest / np.float32(127)


def rnn_int8(input, pre_state, weight_list, scale_list, bias_list, sequence_length=None, step=1.0, mode="LSTM", num_layers=1,
             is_bidirec=False):
    gated, ways = matrix.loaded("rnn", "reference").gated, 2 if is_bidirec else 1
    steps, batch = input.shape[:2]
    length = np.full(batch, steps) if sequence_length is None else sequence_length
    x, finals, given = input, [[] for _ in pre_state], None if input.dtype == np.float32 else step
    for layer in range(num_layers):
        outs = []
        for way in range(ways):
            k = layer * ways + way
            w, s, b = (f[2 * k:2 * k + 2] for f in (weight_list, scale_list, bias_list))
            h = pre_state[0][k]
            c = pre_state[1][k] if mode == "LSTM" else h
            y = np.zeros((steps, batch, h.shape[-1]), np.float32)
            for t in (reversed(range(steps)) if way else range(steps)):
                (xq, xs), (hq, hs) = _rows(x[t], given), _rows(h)
                nh, nc = gated(mode, xq @ w[0].T.astype(np.float64) * s[0] * xs + b[0],
                               hq @ w[1].T.astype(np.float64) * s[1] * hs + b[1], h, c)
                on = (t < length)[:, None]
                h, c = np.where(on, nh, h), np.where(on, nc, c)
                y[t] = np.where(on, nh, 0)
            outs.append(y)
            for final, value in zip(finals, (h, c)):
                final.append(value)
        x, given = np.concatenate(outs, axis=-1), None
    return x, [np.stack(f).astype(np.float32) for f in finals]
