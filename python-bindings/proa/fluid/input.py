"""fluid.input: embedding and one_hot for ids whose last dim need not be 1."""
from ..nn import functional as F
from ..static.nn import embedding as _embedding

__all__ = ["embedding", "one_hot"]


def embedding(input, size, is_sparse=False, is_distributed=False, padding_idx=None, param_attr=None, dtype="float32"):
    """Rows of a new table of `size` [rows, width] at the indices in input."""
    return _embedding(input, size, is_sparse, is_distributed, padding_idx, param_attr, dtype)


def one_hot(input, depth, allow_out_of_range=False):
    """A vector of depth with a one at the index, for each index."""
    return F.one_hot(input, depth)
