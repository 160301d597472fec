"""Batch, layer, group and instance normalization in real Paddle: only the outputs that its Python functions return.
One function per op, named as the op: tests/ops/run_matrix.py calls it with the op's fields, tensors as Paddle
tensors, and saves the outputs that it returns, in the op table's order (None: not compared), for
tests/ops/test_ops.py."""
import paddle
from paddle.nn import functional as F


def batch_norm(x, running_mean, running_var, weight, bias, is_test, momentum, epsilon, data_format, use_global_stats,
               trainable_statistics):
    mean, variance = running_mean.clone(), running_var.clone()
    fixed = (is_test and not trainable_statistics) or use_global_stats
    out = F.batch_norm(x, mean, variance, weight, bias, training=not fixed, momentum=momentum, epsilon=epsilon,
                       data_format=data_format, use_global_stats=fixed)
    return out, mean, variance


def layer_norm(x, weight, bias, epsilon, begin_norm_axis):
    return F.layer_norm(x, x.shape[begin_norm_axis:], weight, bias, epsilon)


def group_norm(x, num_groups, weight, bias, epsilon, data_format):
    return paddle._C_ops.group_norm(x, weight, bias, epsilon, num_groups, data_format)


def instance_norm(x, weight, bias, epsilon):
    return F.instance_norm(x, weight=weight, bias=bias, eps=epsilon)
