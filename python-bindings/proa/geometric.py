"""paddle.geometric: messages along a graph's edges, segments, and neighbourhoods drawn from graphs in CSC form.

Messages and segments are ops; drawing and renumbering nodes is the host's work, and works on tensors with data."""
from ._asks import asks, named as _named
from . import _core
from ._errors import of_dtype, of_kind
from .framework.dims import differ
from .tensor._tools import Tensor

__all__ = ["reindex_graph", "reindex_heter_graph", "sample_neighbors", "segment_max", "segment_mean", "segment_min",
           "segment_sum", "send_u_recv", "send_ue_recv", "send_uv", "weighted_sample_neighbors"]

_MESSAGES, _REDUCTIONS = ("add", "sub", "mul", "div"), ("sum", "mean", "max", "min")


def _check(who, name, value, choices):
    if value not in choices:
        raise ValueError(f"{who}: {name} must be one of {', '.join(choices)}, got {value!r}")


def _out_size(size):
    if size is None:
        return [0]
    if isinstance(size, Tensor):
        return _core.reshape(size, [1]) if size.is_symbolic else [int(size)]
    return [int(size)]


def _messages(x, y, op):
    """y and the op, add or mul, that stand for op."""
    if op == "sub":
        return _core.neg(y), "ADD"
    if op == "div":
        return _core.divide(_core.full([], 1.0, y.dtype), _core.scale(y, 1.0, 1e-12)), "MUL"
    return y, op.upper()


def _aligned(x, y):
    """Both with as many dims, ones behind the first where they lack some; vectors are columns."""
    ndim = max(len(x.shape), len(y.shape), 2)

    def lift(t):
        shape = list(t.shape)
        if len(shape) == ndim:
            return t
        return _core.reshape(t, [shape[0], *[1] * (ndim - len(shape)), *shape[1:]])
    return lift(x), lift(y)


def send_u_recv(x, src_index, dst_index, reduce_op="sum", out_size=None, name=None):
    """Of every edge the row x[src_index], reduced to the rows that dst_index names.

    >>> x = paddle.to_tensor([[1.0], [2.0], [3.0]])
    >>> paddle.geometric.send_u_recv(x, paddle.to_tensor([0, 1]), paddle.to_tensor([2, 2])).tolist()
    [[0.0], [0.0], [3.0]]
    """
    _check("send_u_recv", "reduce_op", reduce_op, _REDUCTIONS)
    return _core.graph_send_recv(x, src_index, dst_index, reduce_op.upper(), _out_size(out_size))[0]


def send_ue_recv(x, y, src_index, dst_index, message_op="add", reduce_op="sum", out_size=None, name=None):
    """send_u_recv of x[src_index] combined with y, which has a row an edge."""
    _check("send_ue_recv", "message_op", message_op, _MESSAGES)
    _check("send_ue_recv", "reduce_op", reduce_op, _REDUCTIONS)
    x, y = _aligned(x, y)
    y, message = _messages(x, y, message_op)
    return _core.graph_send_ue_recv(x, y, src_index, dst_index, message, reduce_op.upper(), _out_size(out_size))[0]


def send_uv(x, y, src_index, dst_index, message_op="add", name=None):
    """Of every edge x[src_index] combined with y[dst_index]."""
    _check("send_uv", "message_op", message_op, _MESSAGES)
    x, y = _aligned(x, y)
    y, message = _messages(x, y, message_op)
    combine = _core.add if message == "ADD" else _core.multiply
    return combine(_core.gather(x, src_index), _core.gather(y, dst_index))


def _pooled(data, segment_ids, kind):
    """segment_pool; the ids may be a column."""
    if isinstance(segment_ids, Tensor) and len(segment_ids.shape) == 2 and not differ(segment_ids.shape[1], 1):
        segment_ids = _core.squeeze(segment_ids, [1])
    return _core.segment_pool(data, segment_ids, kind)[0]


def segment_sum(data, segment_ids, name=None):
    """Sums of the rows of data with the same entry in segment_ids, which ascends.

    >>> paddle.geometric.segment_sum(paddle.to_tensor([1.0, 2.0, 4.0]), paddle.to_tensor([0, 0, 1])).tolist()
    [3.0, 4.0]
    """
    return _pooled(data, segment_ids, "SUM")


def segment_mean(data, segment_ids, name=None):
    """Means of the rows of data with the same entry in segment_ids, which ascends."""
    return _pooled(data, segment_ids, "MEAN")


def segment_min(data, segment_ids, name=None):
    """Minima of the rows of data with the same entry in segment_ids, which ascends."""
    return _pooled(data, segment_ids, "MIN")


def segment_max(data, segment_ids, name=None):
    """Maxima of the rows of data with the same entry in segment_ids, which ascends."""
    return _pooled(data, segment_ids, "MAX")


# ---- neighbourhoods --------------------------------------------------------------------------


def _flat(who, name, t, dtypes=("int32", "int64")):
    if not isinstance(t, Tensor) or t.is_symbolic:
        raise of_kind(f"{who}: {name} must be a Tensor with data, got {type(t).__name__}")
    if str(t.dtype).rpartition(".")[2] not in dtypes:
        raise of_dtype(f"{who}: {name} must be {' or '.join(dtypes)}, got {t.dtype}")
    return t.numpy().reshape(-1)


def _tensor(values, like):
    return _core.to_tensor(values.astype(str(like.dtype).rpartition(".")[2]))


def _renumber(nodes, neighbors):
    """Numbers of neighbors when nodes come first and every new one is appended; and all nodes in that order."""
    import numpy as np
    whole = np.concatenate([nodes, neighbors])
    values, first, inverse = np.unique(whole, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    number = np.empty_like(order)
    number[order] = np.arange(len(order))
    return number[inverse.reshape(-1)[len(nodes):]], values[order]


@asks("eager:x:Tensor!InvalidArgument eager:neighbors:Tensor!InvalidArgument eager:count:Tensor!InvalidArgument "
      "eager:value_buffer:Tensor,None!InvalidArgument eager:index_buffer:Tensor,None!InvalidArgument")
def reindex_graph(x, neighbors, count, value_buffer=None, index_buffer=None, name=None):
    """Edges renumbered: sources, destinations, and the nodes by their new number, those of x first.

    >>> t = paddle.to_tensor
    >>> out = paddle.geometric.reindex_graph(t([0, 5]), t([8, 0, 5]), t([2, 1], dtype="int32"))
    >>> [o.tolist() for o in out]
    [[2, 0, 1], [0, 0, 1], [0, 5, 8]]
    """
    import numpy as np
    who = "reindex_graph"
    nodes, ends, counts = _flat(who, "x", x), _flat(who, "neighbors", neighbors), _flat(who, "count", count)
    if len(counts) % max(len(nodes), 1):
        raise ValueError(f"{who}: count must have an entry a node, {len(nodes)}, got {len(counts)}")
    src, out = _renumber(nodes, ends)
    dst = np.repeat(np.arange(len(counts)) % max(len(nodes), 1), counts)
    return _tensor(src, x), _tensor(dst, x), _tensor(out, x)


def reindex_heter_graph(x, neighbors, count, value_buffer=None, index_buffer=None, name=None):
    """reindex_graph of the edges of several graphs over the same nodes, one after another."""
    joined = []
    for what, parts in (("neighbors", neighbors), ("count", count)):
        if isinstance(parts, Tensor):
            raise of_kind(f"reindex_heter_graph: {what} must be a list of Tensors, one a graph; got a Tensor")
        joined.append(_core.concat(list(parts), 0))
    return reindex_graph(x, *joined)


def _generator():
    """NumPy's, seeded by the framework's."""
    import numpy as np
    was = _core.set_recording(False)
    try:
        return np.random.default_rng(int(_core.randint(0, 2 ** 31 - 1, [1], "int64")))
    finally:
        _core.set_recording(was)


def _draw(who, row, colptr, input_nodes, size, eids, return_eids, weight=None):
    import numpy as np
    if return_eids and eids is None:
        raise ValueError(f"{who}: eids must be given where return_eids is True")
    rows, starts, nodes = (_flat(who, n, t) for n, t in (("row", row), ("colptr", colptr), ("input_nodes", input_nodes)))
    weights = None if weight is None else _flat(who, "edge_weight", weight, ("float32", "float64"))
    rng, chosen, counts = None, [], []
    for node in nodes:
        edges = np.arange(starts[node], starts[node + 1])
        if 0 <= size < len(edges):
            rng = _generator() if rng is None else rng
            if weights is None:
                edges = np.sort(rng.choice(edges, size, replace=False))
            else:  # the smallest exponential variables of these rates: Efraimidis and Spirakis (2006)
                with np.errstate(divide="ignore"):
                    keys = rng.exponential(size=len(edges)) / weights[edges]
                edges = edges[np.argsort(keys, kind="stable")[:size]]
        chosen.append(edges)
        counts.append(len(edges))
    at = np.concatenate(chosen) if chosen else np.zeros(0, np.int64)
    out = _tensor(rows[at], row), _core.to_tensor(np.asarray(counts, np.int32))
    return (*out, _tensor(_flat(who, "eids", eids)[at], eids)) if return_eids else out


@asks("eager:row:Tensor!InvalidArgument eager:colptr:Tensor!InvalidArgument eager:input_nodes:Tensor!InvalidArgument "
      "eager:sample_size:int!InvalidArgument")
def sample_neighbors(row, colptr, input_nodes, sample_size=-1, eids=None, return_eids=False, perm_buffer=None, name=None):
    """Up to sample_size neighbors (−1: all) of every input node, drawn without replacement, and how many each has.

    row holds the neighbors of all nodes, colptr where each node's begin; eids the numbers of the edges.

    >>> t = paddle.to_tensor
    >>> out = paddle.geometric.sample_neighbors(t([3, 7, 0, 9]), t([0, 2, 4]), t([1]))
    >>> [o.tolist() for o in out]
    [[0, 9], [2]]
    """
    return _draw("sample_neighbors", row, colptr, input_nodes, sample_size, eids, return_eids)


@asks("eager:row:Tensor!InvalidArgument eager:colptr:Tensor!InvalidArgument eager:edge_weight:Tensor!InvalidArgument "
      "eager:input_nodes:Tensor!InvalidArgument eager:eids:Tensor,None!InvalidArgument eager:sample_size:int!InvalidArgument")
def weighted_sample_neighbors(row, colptr, edge_weight, input_nodes, sample_size=-1, eids=None, return_eids=False,
                              name=None):
    """sample_neighbors with probabilities in proportion to the edges' weights."""
    return _draw("weighted_sample_neighbors", row, colptr, input_nodes, sample_size, eids, return_eids, edge_weight)


def khop_sampler(row, colptr, input_nodes, sample_sizes, sorted_eids=None, return_eids=False, name=None):
    """Neighbors of neighbors, a hop an entry of sample_sizes: the edges' renumbered sources and destinations, the
    nodes by their new number, the numbers of the input nodes, and with return_eids the edges' numbers.

    paddle.incubate.graph_khop_sampler.
    """
    import numpy as np
    who = "graph_khop_sampler"
    if return_eids and sorted_eids is None:
        raise ValueError(f"{who}: sorted_eids must be given where return_eids is True")
    inputs = _flat(who, "input_nodes", input_nodes)
    _, seen = _renumber(inputs[:0], inputs)
    known, layer, ends, heads, numbers = seen, seen, [], [], []
    for size in sample_sizes:
        made = _draw(who, row, colptr, _core.to_tensor(layer), size, sorted_eids, return_eids)
        ends.append(made[0].numpy())
        heads.append(np.repeat(layer, made[1].numpy()))
        numbers += [made[2].numpy()] if return_eids else []
        _, whole = _renumber(known, ends[-1])
        layer, known = whole[len(known):], whole
    src = _renumber(known, np.concatenate(ends))[0]
    dst = _renumber(known, np.concatenate(heads))[0]
    start = _renumber(known, inputs)[0]
    column = (_tensor(v, row).reshape([-1, 1]) for v in (src, dst))
    out = (*column, _tensor(known, row), _tensor(start, row))
    return (*out, _tensor(np.concatenate(numbers), sorted_eids)) if return_eids else out

_named(globals())
