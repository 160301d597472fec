"""Metrics over all processes: sums each process's counts, given as arrays, tensors, variables or names of
variables."""
import builtins

import numpy as np

from .... import _core


def _array(value, scope):
    if isinstance(value, str) or getattr(value, "is_symbolic", False):
        from ....static import global_scope
        found = (scope or global_scope()).find_var(value if isinstance(value, str) else value.name)
        if found is None:
            raise ValueError(f"fleet.metrics: the scope has no variable {value!r}")
        return np.array(found.get_tensor())
    return value.numpy() if isinstance(value, _core.Tensor) else np.asarray(value)


def _reduced(value, mode, scope, util):
    from .. import fleet
    array = _array(value, scope)
    return (util or fleet.util).all_reduce(np.ascontiguousarray(array, dtype="float64"), mode).reshape(array.shape)


def sum(input, scope=None, util=None):
    """The elementwise sum over processes."""
    return _reduced(input, "sum", scope, util)


def max(input, scope=None, util=None):
    """The elementwise largest over processes."""
    return _reduced(input, "max", scope, util)


def min(input, scope=None, util=None):
    """The elementwise smallest over processes."""
    return _reduced(input, "min", scope, util)


def auc(stat_pos, stat_neg, scope=None, util=None):
    """The area under the ROC curve of two histograms over thresholds, ascending; 0.5 where a class is empty."""
    positive = _reduced(stat_pos, "sum", scope, util).reshape(-1)[::-1]
    negative = _reduced(stat_neg, "sum", scope, util).reshape(-1)[::-1]
    right, wrong = np.cumsum(positive), np.cumsum(negative)
    if right[-1] * wrong[-1] == 0:
        return 0.5
    area = np.sum(negative * (np.concatenate([[0], right[:-1]]) + right) / 2)
    return float(area / (right[-1] * wrong[-1]))


def _ratio(up, down, scope, util):
    return float(_reduced(up, "sum", scope, util).sum() / _reduced(down, "sum", scope, util).sum())


def mae(abserr, total_ins_num, scope=None, util=None):
    """The mean absolute error: sums of errors over counts."""
    return _ratio(abserr, total_ins_num, scope, util)


def mse(sqrerr, total_ins_num, scope=None, util=None):
    """The mean squared error."""
    return _ratio(sqrerr, total_ins_num, scope, util)


def rmse(sqrerr, total_ins_num, scope=None, util=None):
    """The root of the mean squared error."""
    return builtins.float(np.sqrt(_ratio(sqrerr, total_ins_num, scope, util)))


def acc(correct, total, scope=None, util=None):
    """The share of right answers."""
    return _ratio(correct, total, scope, util)
