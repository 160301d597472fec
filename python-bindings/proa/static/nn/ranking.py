"""Layers of ranking models: data_norm, which normalizes features by statistics of the whole training, and sparse
embeddings."""
from ... import _core
from ...framework import unique_name
from ...framework.dims import differ
from ...framework.param_attr import ParamAttr
from ...framework.parameter import make_parameter
from ...nn import functional as F
from ...nn.initializer import Constant
from .common import mark_table

__all__ = ["data_norm", "sparse_embedding"]


def data_norm(input, act=None, epsilon=1e-05, param_attr=None, data_layout="NCHW", in_place=False, name=None,
              moving_mean_name=None, moving_variance_name=None, do_model_average_for_mean_and_var=True, slot_dim=-1,
              sync_stats=False, summary_decay_rate=0.9999999, enable_scale_and_shift=False):
    """Normalizes each feature by three parameters, which gather how many rows there were (batch_size, 1e4 at first), their
    sum (0) and their sum of squares (1e4): param_attr may be a dict of these first values. Their gradients are what a batch
    adds to them."""
    if not isinstance(summary_decay_rate, (int, float)):
        raise TypeError(f"data_norm: summary_decay_rate must be a number, got {type(summary_decay_rate).__name__}")
    owner = "dn" if name is None else name
    if len(input.shape) != 2:
        raise ValueError(f"data_norm: input must be [N, features], got shape {input.shape}")
    if input.dtype not in (_core.float32, _core.float64):
        raise ValueError(f"(InvalidArgument) data_norm: input must be float32 or float64, got {input.dtype}")
    first = {"batch_size": 1e4, "batch_sum": 0.0, "batch_square": 1e4, "scale_w": 1.0, "bias": 0.0}
    if isinstance(param_attr, dict):
        first |= {key: value for key, value in param_attr.items() if key in first}

    def made(key, suffix):
        return make_parameter(owner, ParamAttr(name=f"{owner}.{suffix}", initializer=Constant(float(first[key]))),
                              [input.shape[1]], input.dtype)
    size, total, squares = made("batch_size", "batch_size"), made("batch_sum", "batch_sum"), \
        made("batch_square", "batch_square_sum")
    affine = (made("scale_w", "scale_w"), made("bias", "bias")) if enable_scale_and_shift else (None, None)
    out, _, _ = _core.data_norm(input, size, total, squares, *affine, epsilon, slot_dim, enable_scale_and_shift)
    return out if act is None else getattr(F, act)(out)


def sparse_embedding(input, size, padding_idx=None, is_test=False, entry=None, table_class="MemorySparseTable",
                     param_attr=None, dtype="float32", slot=None):
    """Rows of a table at the indices in input, [..., 1]. In a job with parameter servers (docs/distributed.md) they keep the table,
    and a row comes into being when it is first read for training and `entry` (CountFilterEntry, ProbabilityEntry) says so; until
    then it reads as zeros. is_test: reads count for nothing. Without servers it is a parameter of `size` [rows, width]."""
    if not isinstance(input, _core.Tensor) or input.dtype != _core.int64:
        raise TypeError(f"sparse_embedding: input must be an int64 Variable, got {getattr(input, 'dtype', type(input).__name__)}")
    if table_class not in ("CommonSparseTable", "SSDSparseTable", "MemorySparseTable"):
        raise ValueError("table_class must be in [CommonSparseTable, SSDSparseTable, MemorySparseTable]")
    if not input.ndim or differ(input.shape[-1], 1):
        raise ValueError(f"sparse_embedding: the last dim of input must be 1, got shape {input.shape}")
    if entry is not None and not hasattr(entry, "_to_attr"):
        raise ValueError(f"sparse_embedding: entry must be a CountFilterEntry or a ProbabilityEntry, got {type(entry).__name__}")
    weight = make_parameter(unique_name.generate("sparse_embedding"), param_attr, size, dtype)
    mark_table(weight, True, True, entry, is_test)
    return F.embedding(_core.squeeze(input, [-1]), weight, padding_idx)
