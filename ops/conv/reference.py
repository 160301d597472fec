"""NumPy references of 1-D to 3-D convolutions, transposed, fused and pooled ones included, and of their gradients,
as loops over filter taps. One function per op, named as the op: tests/ops/test_ops.py calls it with the op's fields,
tensors as NumPy arrays, and compares Proa's outputs with the outputs that it returns, in the op table's order (None:
not compared)."""
import numpy as np

import matrix

LAST = ("NHWC", "NLC", "NDHWC")


def _paddings(sizes, kernel, stride, padding, dilation, algorithm):
    n = len(sizes)
    if algorithm == "VALID":
        return [(0, 0)] * n, dilation
    if algorithm == "SAME":
        total = [max((-(-s // t) - 1) * t + k - s, 0) for s, k, t in zip(sizes, kernel, stride)]
        return [(t // 2, t - t // 2) for t in total], [1] * n
    if len(padding) == n:
        return [(p, p) for p in padding], dilation
    return [(padding[2 * i], padding[2 * i + 1]) for i in range(n)], dilation


def _first(x, data_format):
    return np.moveaxis(x, -1, 1) if data_format in LAST else x


def _back(x, data_format):
    return np.moveaxis(x, 1, -1) if data_format in LAST else x


def _taps(kernel, out, stride, dilation):
    """For each filter tap: (its index, the slice of the padded input that it multiplies, one element per output)."""
    for tap in np.ndindex(*kernel):
        yield tap, tuple(slice(t * d, t * d + (o - 1) * s + 1, s)
                         for t, d, o, s in zip(tap, dilation, out, stride))


def _run(x, weight, d_out, kernel, stride, pads, dilation, groups, out, mode):
    """mode: forward (x, weight), input (weight, d_out; x gives the shape), filter (x, d_out; weight's shape)."""
    kind = np.result_type(x.dtype, np.float64)
    padded = np.zeros(x.shape[:2] + tuple(s + a + b for s, (a, b) in zip(x.shape[2:], pads)), kind)
    inner = (slice(None), slice(None)) + tuple(slice(a, a + s) for s, (a, _) in zip(x.shape[2:], pads))
    ic, oc = x.shape[1] // groups, weight.shape[0] // groups
    if mode != "input":
        padded[inner] = x
    y = np.zeros((x.shape[0], weight.shape[0]) + tuple(out), kind) if mode == "forward" else d_out.astype(kind)
    w = np.zeros(weight.shape, kind) if mode == "filter" else weight.astype(kind)
    for tap, where in _taps(kernel, out, stride, dilation):
        for g in range(groups):
            i, o = slice(g * ic, (g + 1) * ic), slice(g * oc, (g + 1) * oc)
            at, wt = (slice(None), i) + where, (o, slice(None)) + tap
            if mode == "forward":
                y[:, o] += np.einsum("nc...,oc->no...", padded[at], w[wt])
            elif mode == "input":
                padded[at] += np.einsum("no...,oc->nc...", y[:, o], w[wt])
            else:
                w[wt] += np.einsum("ncp,nop->oc", padded[at].reshape(x.shape[0], ic, -1),
                                   y[:, o].reshape(x.shape[0], oc, -1))
    return y if mode == "forward" else padded[inner] if mode == "input" else w


def _conv(x, weight, d_out, stride, padding, dilation, groups, data_format, padding_algorithm, mode):
    first, kernel = _first(x, data_format), weight.shape[2:]
    pads, dilation = _paddings(first.shape[2:], kernel, stride, padding, dilation, padding_algorithm)
    out = [(s + a + b - d * (k - 1) - 1) // t + 1
           for s, (a, b), k, d, t in zip(first.shape[2:], pads, kernel, dilation, stride)]
    d_out = None if d_out is None else _first(d_out, data_format)
    y = _run(first, weight, d_out, kernel, stride, pads, dilation, groups, out, mode)
    return (y if mode == "filter" else _back(y, data_format)).astype(x.dtype)


def _add_bias(y, bias, data_format):
    if bias is None:
        return y
    return y + (bias if data_format in LAST else bias.reshape((-1,) + (1,) * (y.ndim - 2)))


def conv2d(x, weight, bias, stride, padding, dilation, groups, data_format, padding_algorithm):
    y = _conv(x, weight, None, stride, padding, dilation, groups, data_format, padding_algorithm, "forward")
    return _add_bias(y, bias, data_format)


def conv2d_grad_input(x, weight, d_out, stride, padding, dilation, groups, data_format, padding_algorithm):
    return _conv(x, weight, d_out, stride, padding, dilation, groups, data_format, padding_algorithm, "input")


def conv2d_grad_filter(x, weight, d_out, stride, padding, dilation, groups, data_format, padding_algorithm):
    return _conv(x, weight, d_out, stride, padding, dilation, groups, data_format, padding_algorithm, "filter")


def conv2d_transpose(x, weight, bias, stride, padding, output_padding, groups, dilation, output_size, data_format,
                     padding_algorithm):
    d_out, kernel = _first(x, data_format), weight.shape[2:]
    pads, dilation = _paddings(d_out.shape[2:], kernel, stride, padding, dilation, padding_algorithm)
    size = [(s - 1) * t - a - b + d * (k - 1) + 1 + e
            for s, (a, b), k, d, t, e in zip(d_out.shape[2:], pads, kernel, dilation, stride,
                                             output_padding or [0] * len(kernel))]
    like = np.zeros((x.shape[0], weight.shape[1] * groups) + tuple(output_size or size), x.dtype)
    y = _run(like, weight, d_out, kernel, stride, pads, dilation, groups, d_out.shape[2:], "input")
    return _add_bias(_back(y, data_format).astype(x.dtype), bias, data_format)


conv1d = conv3d = conv2d
conv3d_grad_input = conv2d_grad_input
conv3d_grad_filter = conv2d_grad_filter
conv1d_transpose = conv3d_transpose = conv2d_transpose


def conv2d_fused(x, weight, bias=None, residual=None, stride=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1,
                 data_format="NCHW", padding_algorithm="EXPLICIT", activation="none", alpha=0.0, beta=0.0,
                 constant_weight=False):
    out = conv2d(x, weight, bias, stride, padding, dilation, groups, data_format, padding_algorithm)
    return matrix.epilogue(out, residual, activation, alpha, beta)


def _windows(y, kernel_size):
    """Non-overlapping pooling windows: [batch, channel, row, column, index in the window]."""
    (kh, kw), (h, w) = kernel_size, (y.shape[2] // kernel_size[0], y.shape[3] // kernel_size[1])
    y = y[:, :, :h * kh, :w * kw].reshape(y.shape[:2] + (h, kh, w, kw))
    return y.transpose(0, 1, 2, 4, 3, 5).reshape(y.shape[:2] + (h, w, kh * kw))


def conv2d_pooled(x, weight, bias=None, padding=(0, 0), kernel_size=(2, 2)):
    y = conv2d(x, weight, bias, (1, 1), padding, (1, 1), 1, "NCHW", "EXPLICIT")
    windows = _windows(y, kernel_size)
    places = _windows(np.broadcast_to(np.arange(y.shape[2] * y.shape[3]).reshape(y.shape[2:]), y.shape), kernel_size)
    at = windows.argmax(-1)[..., None]
    return (np.maximum(np.take_along_axis(windows, at, -1)[..., 0], 0),
            np.take_along_axis(places, at, -1)[..., 0].astype(np.int32))


def _spread(x, weight, out, place, d_out, padding):
    """The gradient of the convolution's result: d_out at each window's argmax where out > 0, else zero."""
    empty = conv2d(x, weight, None, (1, 1), padding, (1, 1), 1, "NCHW", "EXPLICIT")
    d_y = np.zeros(empty.shape[:2] + (empty.shape[2] * empty.shape[3],), np.float64)
    for n, c in np.ndindex(*out.shape[:2]):
        np.add.at(d_y[n, c], place[n, c].reshape(-1), np.where(out[n, c] > 0, d_out[n, c], 0).reshape(-1))
    return d_y.reshape(empty.shape)


def conv2d_pooled_grad_input(x, weight, out, place, d_out, padding=(0, 0), kernel_size=(2, 2)):
    d_y = _spread(x, weight, out, place, d_out, padding)
    return conv2d_grad_input(x, weight, d_y, (1, 1), padding, (1, 1), 1, "NCHW", "EXPLICIT").astype(x.dtype)


def conv2d_pooled_grad_filter(x, weight, out, place, d_out, padding=(0, 0), kernel_size=(2, 2)):
    d_y = _spread(x, weight, out, place, d_out, padding)
    d_weight = conv2d_grad_filter(x, weight, d_y, (1, 1), padding, (1, 1), 1, "NCHW", "EXPLICIT")
    return d_weight.astype(x.dtype), d_y.sum((0, 2, 3)).astype(x.dtype)


def inverted_residual(x, expand, expand_bias, depthwise, depthwise_bias, project, project_bias, residual, stride=(1, 1),
                      padding=(0, 0), expand_activation="none", activation="none", constant_weight=False):
    nhwc = {"data_format": "NHWC"}
    if expand is not None:
        x = conv2d_fused(x, expand, expand_bias, **nhwc, activation=expand_activation)
    x = conv2d_fused(x, depthwise, depthwise_bias, None, stride, padding, groups=len(depthwise), **nhwc,
                     activation=activation)
    return conv2d_fused(x, project, project_bias, residual, **nhwc)
