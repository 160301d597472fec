"""paddle.incubate: optimizers, functional automatic differentiation, old names of paddle.geometric, masked softmax and
identity_loss. The submodules (optimizer, asp, autograd, autotune, nn) are imported at first use."""
from .._asks import asks, need_kernel
from .._errors import of_kind
from .. import _core

__all__ = ["LookAhead", "ModelAverage", "graph_khop_sampler", "graph_reindex", "graph_sample_neighbors",
           "graph_send_recv", "identity_loss", "segment_max", "segment_mean", "segment_min", "segment_sum",
           "softmax_mask_fuse", "softmax_mask_fuse_upper_triangle"]

_LAZY = {"LookAhead": ".optimizer", "ModelAverage": ".optimizer", "optimizer": "", "asp": "", "autograd": "",
         "autotune": "", "nn": "", "distributed": "", "layers": ""}
_MODULES = {"layers": "..fluid.contrib.layers"}


def __getattr__(name):
    where = _LAZY.get(name)
    if where is None:
        raise AttributeError(f"module 'paddle.incubate' has no attribute {name!r}")
    import importlib
    module = importlib.import_module(where or _MODULES.get(name, "." + name), __name__)
    value = globals()[name] = getattr(module, name) if where else module
    return value


def __dir__():
    return sorted(set(globals()) | set(_LAZY))


@asks("eager:x:Tensor!InvalidArgument eager:mask:Tensor!InvalidArgument")
def softmax_mask_fuse(x, mask, name=None):
    """The softmax over the last dim of x + mask, a constant.

    >>> paddle.incubate.softmax_mask_fuse(paddle.zeros([1, 1, 1, 2]), paddle.zeros([1, 1, 1, 2])).tolist()
    [[[[0.5, 0.5]]]]
    """
    if not len(x.shape) == len(mask.shape) == 4:
        raise ValueError(f"(InvalidArgument) softmax_mask_fuse: x and mask must have 4 dims, got shapes {x.shape} and {mask.shape}")
    return _core.softmax(_core.add(x, mask.detach()), -1)


@asks("eager:x:Tensor!InvalidArgument eager:x.dtype=f2,f4,f8!NotFound")
def softmax_mask_fuse_upper_triangle(x):
    """The softmax over the last dim of x, [batch, heads, n, n], with what is above the diagonal left out."""
    n = x.shape[-1]
    above = _core.triu(_core.full([n, n], 1, "bool"), 1)
    return _core.softmax(_core.where(above, _core.full([], float("-inf"), x.dtype), x), -1)


def identity_loss(x, reduction="none"):
    """x as a loss: itself ('none', 2), its sum (0) or its mean (1)."""
    kinds = {"sum": 0, "mean": 1, "none": 2}
    kind = kinds.get(reduction.lower(), -1) if isinstance(reduction, str) else reduction
    if not isinstance(kind, int):
        raise of_kind(f"identity_loss: reduction must be an int or a name, got {type(reduction).__name__}")
    if kind not in (0, 1, 2):
        raise Exception(f"identity_loss: reduction must be 'sum' (0), 'mean' (1) or 'none' (2), got {reduction!r}")
    need_kernel("identity_loss", "f4,f8", x=x)
    return (_core.sum, _core.mean, _core.assign)[kind](x)


def graph_send_recv(x, src_index, dst_index, pool_type="sum", out_size=None, name=None):
    """paddle.geometric.send_u_recv."""
    from .. import geometric
    pool_type = pool_type.lower()
    if pool_type not in ("sum", "mean", "max", "min"):
        raise ValueError(f"graph_send_recv: pool_type must be sum, mean, max or min, got {pool_type!r}")
    return geometric.send_u_recv(x, src_index, dst_index, pool_type, out_size)


def graph_reindex(x, neighbors, count, value_buffer=None, index_buffer=None, flag_buffer_hashtable=False, name=None):
    """paddle.geometric.reindex_graph."""
    from .. import geometric
    if flag_buffer_hashtable and (value_buffer is None or index_buffer is None):
        raise ValueError("graph_reindex: value_buffer and index_buffer must be given where flag_buffer_hashtable is True")
    return geometric.reindex_graph(x, neighbors, count)


@asks("eager:sample_size:int!InvalidArgument")
def graph_sample_neighbors(row, colptr, input_nodes, eids=None, perm_buffer=None, sample_size=-1, return_eids=False,
                           flag_perm_buffer=False, name=None):
    """paddle.geometric.sample_neighbors."""
    from .. import geometric
    if flag_perm_buffer and perm_buffer is None:
        raise ValueError("graph_sample_neighbors: perm_buffer must be given where flag_perm_buffer is True")
    return geometric.sample_neighbors(row, colptr, input_nodes, sample_size, eids, return_eids)


@asks("eager:sample_sizes:list,tuple!InvalidArgument")
def graph_khop_sampler(row, colptr, input_nodes, sample_sizes, sorted_eids=None, return_eids=False, name=None):
    """Neighbors of neighbors, a hop an entry of sample_sizes (paddle.geometric.khop_sampler says what comes back)."""
    from .. import geometric
    return geometric.khop_sampler(row, colptr, input_nodes, sample_sizes, sorted_eids, return_eids)


def segment_sum(data, segment_ids, name=None):
    """paddle.geometric.segment_sum."""
    from .. import geometric
    return geometric.segment_sum(data, segment_ids)


def segment_mean(data, segment_ids, name=None):
    """paddle.geometric.segment_mean."""
    from .. import geometric
    return geometric.segment_mean(data, segment_ids)


def segment_max(data, segment_ids, name=None):
    """paddle.geometric.segment_max."""
    from .. import geometric
    return geometric.segment_max(data, segment_ids)


def segment_min(data, segment_ids, name=None):
    """paddle.geometric.segment_min."""
    from .. import geometric
    return geometric.segment_min(data, segment_ids)
