"""paddle.distributed.split: a linear layer or embedding with its weight divided among all ranks of the job."""
from .. import _core
from .group import world


def _parameter(shape, attr, is_bias=False, shared=False):
    from ..tensor.creation import create_parameter
    made = create_parameter(shape, "float32", attr=attr, is_bias=is_bias)
    made.is_distributed = not shared
    if not shared and world().nranks > 1:
        made.split_group = 0
    return made


def _share(n, parts, what):
    if n % parts:
        raise ValueError(f"split: {what} is {n}; it must be divisible by the {parts} ranks")
    return n // parts


def split(x, size, operation, axis=0, num_partitions=1, gather_out=True, weight_attr=None, bias_attr=None, name=None):
    """x through a layer of this size whose weight is divided among num_partitions ranks, which must be all. operation
    "linear": axis 0 divides the weight's rows (x is whole, and is divided), axis 1 its columns (gather_out joins the
    results); "embedding": axis 0 divides the table's rows."""
    group = world()
    if operation not in ("linear", "embedding"):
        raise AssertionError(f"split: operation must be 'linear' or 'embedding', got {operation!r}")
    if not isinstance(size, (list, tuple)) or len(size) != 2:
        raise AssertionError(f"split: size must be two numbers, of rows and of columns, got {size!r}")
    if num_partitions != group.nranks:
        raise ValueError(f"split: num_partitions is {num_partitions}, there are {group.nranks} ranks; they must be equal")
    if operation == "embedding":
        if axis != 0:
            raise ValueError("split: an embedding is divided along axis 0")
        rows = _share(size[0], num_partitions, "the number of rows")
        table = _parameter([rows, size[1]], weight_attr)
        return _core.mp_all_reduce(_core.mp_embedding(table, x, start_index=group.rank * rows, vocab_size=size[0]))
    place = {"rank": group.rank, "nranks": group.nranks}
    bias = None if bias_attr is False else bias_attr
    if axis == 0:
        weight = _parameter([_share(size[0], num_partitions, "the number of rows"), size[1]], weight_attr)
        own = _core.mp_split(x, **place) if x.shape[-1] == size[0] else x
        out = _core.mp_all_reduce(own.matmul(weight))
        return out if bias_attr is False else out + _parameter([size[1]], bias, True, shared=True)
    if axis != 1:
        raise ValueError(f"split: axis of a linear layer must be 0 or 1, got {axis!r}")
    columns = _share(size[1], num_partitions, "the number of columns")
    out = _core.mp_identity(x).matmul(_parameter([size[0], columns], weight_attr))
    if bias_attr is not False:
        out = out + _parameter([columns], bias, True)
    return _core.mp_concat(out, **place) if gather_out else out
