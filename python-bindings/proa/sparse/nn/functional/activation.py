"""Activations of stored values, and the softmax over the stored values of each row."""
from ...._asks import asks
from .... import _core
from ...tensor import SparseCsrTensor, coo, need_sparse


def relu(x, name=None):
    """max(x, 0) of the stored values.

    >>> t = paddle.sparse.sparse_coo_tensor([[0, 1]], [-1.0, 2.0], [2])
    >>> paddle.sparse.nn.functional.relu(t).values().tolist()
    [0.0, 2.0]
    """
    return need_sparse("relu", "x", x).with_values(_core.relu(x.values()))


def relu6(x, name=None):
    """min(max(x, 0), 6) of the stored values."""
    return need_sparse("relu6", "x", x).with_values(_core.relu6(x.values()))


@asks("eager:negative_slope:number,bool!InvalidArgument")
def leaky_relu(x, negative_slope=0.01, name=None):
    """x, or negative_slope·x where it is below 0, of the stored values."""
    return need_sparse("leaky_relu", "x", x).with_values(_core.leaky_relu(x.values(), negative_slope))


def grouped_softmax(values, groups):
    """exp(v) / Σ exp over the entries of one group; groups (int64, on the host) ascends."""
    import numpy as np
    if not len(groups):
        return values
    _, group = np.unique(groups, return_inverse=True)
    group = _core.to_tensor(group.reshape(-1))
    most = _core.segment_pool(values.detach(), group, "MAX")[0]
    parts = _core.exp(_core.subtract(values, _core.gather(most, group)))
    return _core.divide(parts, _core.gather(_core.segment_pool(parts, group, "SUM")[0], group))


@asks("eager:axis:int!InvalidArgument")
def softmax(x, axis=-1, name=None):
    """The softmax over the stored values of each row; axis must be the last one.

    >>> t = paddle.sparse.sparse_csr_tensor([0, 2], [0, 2], [1.0, 1.0], [1, 3])
    >>> paddle.sparse.nn.functional.softmax(t).values().tolist()
    [0.5, 0.5]
    """
    need_sparse("softmax", "x", x)
    if axis not in (-1, len(x.shape) - 1):
        raise ValueError(f"softmax: axis must be -1, the last one, got {axis}")
    t = coo(x) if isinstance(x, SparseCsrTensor) else x.coalesce()
    made = grouped_softmax(t.values(), t.flat() // x.shape[-1])
    return x.with_values(made) if isinstance(x, SparseCsrTensor) else t.with_values(made)
