"""NumPy references of batch, layer, group and instance normalization and their gradients, computed in float64 for
every input dtype. One function per op, named as the op: tests/ops/test_ops.py calls it with the op's fields, tensors
as NumPy arrays, and compares Proa's outputs with the outputs that it returns, in the op table's order (None: not
compared)."""
import numpy as np

LAST = ("NHWC", "NLC", "NDHWC")


def _wide(*arrays):
    return [None if a is None else np.asarray(a).astype(np.float64) for a in arrays]


def _per_channel(v, ndim, last):
    return v if v is None or last else v.reshape((-1,) + (1,) * (ndim - 2))


def _scale(x_hat, weight, bias):
    out = x_hat if weight is None else x_hat * weight
    return out if bias is None else out + bias


def _passes(x, axes, fixed):
    """True if each channel has one value and would be normalized by it: Paddle then returns x unchanged."""
    return not fixed and x.size and all(x.shape[i] == 1 for i in axes)


def batch_norm(x, running_mean, running_var, weight, bias, is_test, momentum, epsilon, data_format, use_global_stats,
               trainable_statistics):
    dtype = x.dtype
    x, running_mean, running_var, weight, bias = _wide(x, running_mean, running_var, weight, bias)
    last = data_format in LAST
    axes = tuple(i for i in range(x.ndim) if i != (x.ndim - 1 if last else 1))
    if _passes(x, axes, (is_test and not trainable_statistics) or use_global_stats):
        return [a.astype(dtype) for a in (x, running_mean, running_var, 0 * running_mean, 0 * running_mean)]
    mean, var, new = running_mean, running_var, (running_mean, running_var)
    if x.size and not ((is_test and not trainable_statistics) or use_global_stats):  # an empty batch, which Paddle refuses, teaches nothing
        mean, var = x.mean(axes), x.var(axes)
        new = tuple(momentum * r + (1 - momentum) * b for r, b in ((running_mean, mean), (running_var, var)))
    inverse = 1 / np.sqrt(var + epsilon)
    shape = [_per_channel(v, x.ndim, last) for v in (mean, inverse, weight, bias)]
    out = _scale((x - shape[0]) * shape[1], shape[2], shape[3])
    return [a.astype(dtype) for a in (out, *new, mean, inverse)]


def _backward(x, weight, mean, inverse, d_out, axes, weight_axes, fixed=False):
    """(d_x, d_weight, d_bias); statistics and weight broadcast against x, and the last two keep summed dims as 1."""
    x_hat = (x - mean) * inverse
    g = d_out if weight is None else d_out * weight
    d_x = inverse * g if fixed else inverse * (
        g - g.mean(axes, keepdims=True) - x_hat * (g * x_hat).mean(axes, keepdims=True))
    return d_x, (d_out * x_hat).sum(weight_axes), d_out.sum(weight_axes)


def batch_norm_grad(x, weight, saved_mean, saved_variance, d_out, is_test, epsilon, data_format, use_global_stats,
                    trainable_statistics):
    dtype, last = x.dtype, data_format in LAST
    x, weight, saved_mean, saved_variance, d_out = _wide(x, weight, saved_mean, saved_variance, d_out)
    axes = tuple(i for i in range(x.ndim) if i != (x.ndim - 1 if last else 1))
    weight, mean, inverse = [_per_channel(v, x.ndim, last) for v in (weight, saved_mean, saved_variance)]
    fixed = (is_test and not trainable_statistics) or use_global_stats
    if _passes(x, axes, fixed):
        return [a.astype(dtype) for a in (d_out, 0 * saved_mean, 0 * saved_mean)]
    return [a.astype(dtype) for a in _backward(x, weight, mean, inverse, d_out, axes, axes, fixed)]


def layer_norm(x, weight, bias, epsilon, begin_norm_axis):
    dtype, shape, lead = x.dtype, x.shape, x.shape[:begin_norm_axis]
    x, weight, bias = _wide(x, weight, bias)
    flat = x.reshape(int(np.prod(lead)), -1)
    mean, var = flat.mean(1), flat.var(1)
    out = _scale((flat - mean[:, None]) / np.sqrt(var[:, None] + epsilon), weight, bias)
    return [a.astype(dtype) for a in (out.reshape(shape), mean.reshape(lead), var.reshape(lead))]


def layer_norm_grad(x, weight, mean, variance, d_out, epsilon, begin_norm_axis):
    dtype, shape = x.dtype, x.shape
    x, weight, mean, variance, d_out = _wide(x, weight, mean, variance, d_out)
    rows = int(np.prod(shape[:begin_norm_axis]))
    flat, d_flat = x.reshape(rows, -1), d_out.reshape(rows, -1)
    inverse = 1 / np.sqrt(variance.reshape(-1, 1) + epsilon)
    d_x, d_w, d_b = _backward(flat, weight, mean.reshape(-1, 1), inverse, d_flat, (1,), (0,))
    return [a.astype(dtype) for a in (d_x.reshape(shape), d_w, d_b)]


def _groups(x, groups, data_format):
    """x as [image, groups, channels of a group, pixels]."""
    x = np.moveaxis(x, -1, 1) if data_format in LAST else x
    return x.reshape(x.shape[0], groups, x.shape[1] // groups, -1), x.shape


def _ungroup(x, shape, data_format):
    x = x.reshape(shape)
    return np.moveaxis(x, 1, -1) if data_format in LAST else x


def group_norm(x, num_groups, weight, bias, epsilon, data_format):
    dtype = x.dtype
    x, weight, bias = _wide(x, weight, bias)
    g, shape = _groups(x, num_groups, data_format)
    mean, var = g.mean((2, 3)), g.var((2, 3))
    x_hat = (g - mean[:, :, None, None]) / np.sqrt(var[:, :, None, None] + epsilon)
    weight, bias = [None if v is None else v.reshape(1, num_groups, -1, 1) for v in (weight, bias)]
    out = _ungroup(_scale(x_hat, weight, bias), shape, data_format)
    return [a.astype(dtype) for a in (out, mean, var)]


def group_norm_grad(x, num_groups, weight, mean, variance, d_out, epsilon, data_format):
    dtype = x.dtype
    x, weight, mean, variance, d_out = _wide(x, weight, mean, variance, d_out)
    g, shape = _groups(x, num_groups, data_format)
    d, _ = _groups(d_out, num_groups, data_format)
    weight = None if weight is None else weight.reshape(1, num_groups, -1, 1)
    inverse = 1 / np.sqrt(variance[:, :, None, None] + epsilon)
    d_x, d_w, d_b = _backward(g, weight, mean[:, :, None, None], inverse, d, (2, 3), (0, 3))
    return [a.astype(dtype) for a in (_ungroup(d_x, shape, data_format), d_w.reshape(-1), d_b.reshape(-1))]


def instance_norm(x, weight, bias, epsilon):
    out, mean, var = group_norm(x, x.shape[1], weight, bias, epsilon, "NCHW")
    wide = x.astype(np.float64).reshape(x.shape[0] * x.shape[1], -1)
    return out, mean.reshape(-1), (1 / np.sqrt(wide.var(1) + epsilon)).astype(x.dtype)


def instance_norm_grad(x, weight, saved_mean, saved_variance, d_out, epsilon):
    shape = x.shape[:2]
    variance = 1 / np.square(saved_variance.astype(np.float64)).reshape(shape) - epsilon
    return group_norm_grad(x, shape[1], weight, saved_mean.reshape(shape), variance, d_out, epsilon, "NCHW")
