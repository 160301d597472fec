"""Collation: stacks samples to a batch of arrays, and converts the arrays to tensors. NumPy is imported at first
use."""
import numbers
from collections.abc import Mapping, Sequence

from .. import _core


def default_collate_fn(batch):
    """Stacks the samples' arrays, tensors and numbers field by field; lists and dicts are kept."""
    import numpy as np
    first = batch[0]
    if isinstance(first, np.ndarray):
        return np.stack(batch, axis=0)
    if isinstance(first, _core.Tensor):
        return _core.stack(list(batch), axis=0)
    if isinstance(first, numbers.Number):
        return np.array(batch)
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return {key: default_collate_fn([sample[key] for sample in batch]) for key in first}
    if isinstance(first, Sequence):
        if any(len(sample) != len(first) for sample in batch):
            raise RuntimeError("DataLoader: the samples of a batch have different numbers of fields")
        return [default_collate_fn(fields) for fields in zip(*batch)]
    raise TypeError("DataLoader: samples hold Tensors, arrays, numbers, strings, and dicts and lists of them; "
                    f"got {type(first).__name__}. Give a collate_fn for other types")


def default_convert_fn(batch):
    """The sample as it is, tuples as lists."""
    if isinstance(batch, (str, bytes, _core.Tensor)) or hasattr(batch, "__array_interface__"):
        return batch
    if isinstance(batch, Mapping):
        return {key: default_convert_fn(value) for key, value in batch.items()}
    if isinstance(batch, Sequence):
        return [default_convert_fn(value) for value in batch]
    return batch


def map_arrays(batch, convert):
    """The batch with convert(a) in the place of each array and Tensor; sequences become lists."""
    import numpy as np
    if isinstance(batch, (np.ndarray, _core.Tensor)):
        return convert(batch)
    if isinstance(batch, (str, bytes)):
        return batch
    if isinstance(batch, Mapping):
        return {key: map_arrays(value, convert) for key, value in batch.items()}
    if isinstance(batch, Sequence):
        return [map_arrays(value, convert) for value in batch]
    return batch


def to_tensors(batch, place=None):
    """The batch with its arrays as Tensors, at a place (None: the current device)."""
    return map_arrays(batch, lambda a: a if isinstance(a, _core.Tensor) else _core.to_tensor(a, place=place))
