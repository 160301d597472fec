"""embedding and one_hot."""
from ..._asks import asks
from ... import _core
from ...framework.dims import known
from ...tensor._tools import dtype_name


@asks("weight.shape weight+ eager:sparse:bool!InvalidArgument static:x.dtype=u1,i1,i2,i4,i8 static:weight>>f4,f8,bf eager:weight.dtype=f4,f8,bf!NotFound eager:weight#2!InvalidArgument eager:x.dtype=i4,i8!Unimplemented")
def embedding(x, weight, padding_idx=None, sparse=False, name=None):
    """Row weight[x] for every entry of x; rows at padding_idx are zeros without a gradient.

    sparse: the gradient of weight holds the rows that x names (SelectedRows) instead of the whole table.

    >>> paddle.nn.functional.embedding(paddle.to_tensor([2, 0]), paddle.eye(3)).tolist()
    [[0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]
    """
    if isinstance(x, _core.Tensor) and not _core.is_capturing() and dtype_name(x.dtype) in ("uint8", "int8", "int16"):
        raise NotImplementedError(f"(Unimplemented) embedding: x is {dtype_name(x.dtype)}; expected int32 or int64 (convert with cast)")
    rows = weight.shape[0]
    if type(rows) is int and not rows:
        raise ValueError(f"embedding: weight must have rows, got shape {weight.shape}")
    if padding_idx is None:
        return _core.embedding(x, weight, -1, sparse)
    if known(rows) and not -rows <= padding_idx < rows:
        raise ValueError(f"embedding: padding_idx must be in [{-rows}, {rows}), got {padding_idx}")
    return _core.embedding(x, weight, padding_idx if padding_idx >= 0 else padding_idx + rows.__index__(), sparse)


@asks("eager:num_classes:number,bool,Tensor!InvalidArgument num_classes&int")
def one_hot(x, num_classes, name=None):
    """A last axis of num_classes zeros with a one at the place that x names."""
    return _core.one_hot(x, num_classes if isinstance(num_classes, _core.Tensor) else int(num_classes))
