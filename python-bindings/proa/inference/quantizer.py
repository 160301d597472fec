"""Samples and op types of Config.enable_quantizer: Paddle's MkldnnQuantizerConfig and PaddleTensor."""
import numpy as np

from .. import _core
from .kinds import DataType

__all__ = ["MkldnnQuantizerConfig", "PaddleTensor"]

_KINDS = {"float32": DataType.FLOAT32, "int64": DataType.INT64, "int32": DataType.INT32, "uint8": DataType.UINT8,
          "int8": DataType.INT8}


class PaddleTensor:
    """An array with a name and, for sequences, offsets."""

    def __init__(self, data=None, name="", lod=(), copy=True):
        data = np.zeros([0], "float32") if data is None else np.asarray(data)
        if str(data.dtype) not in _KINDS:
            raise TypeError(f"PaddleTensor: expected data of {', '.join(_KINDS)}, got {data.dtype}")
        self.data = data.copy() if copy else data
        self.name, self.lod = name, [list(level) for level in lod]

    @property
    def shape(self):
        """The dims."""
        return list(self.data.shape)

    @property
    def dtype(self):
        """The kind of its elements."""
        return _KINDS[str(self.data.dtype)]

    def as_ndarray(self):
        """The array."""
        return self.data


def _tensor(value):
    if isinstance(value, PaddleTensor):
        if value.lod:
            raise ValueError("set_quant_data: sequences (lod) cannot be samples: use padded data")
        made = _core.to_tensor(np.ascontiguousarray(value.data))
        if value.name:
            made.name = value.name
        return made
    return value if isinstance(value, _core.Tensor) else _core.to_tensor(np.ascontiguousarray(value))


class MkldnnQuantizerConfig:
    """The samples and the op types of a config's quantizer."""

    def __init__(self, core):
        self._core = core

    def set_quant_data(self, data):
        """Samples: PaddleTensors (arrays and Tensors, too), one for each input of the model. The predictor is calibrated by
        them once, when it is made."""
        self._core.set_samples([[_tensor(value) for value in data]])

    def set_quant_batch_size(self, batch_size):
        """Accepted: a batch has as many rows as its tensors."""
        self._core.set("QUANTIZER_BATCH", int(batch_size))

    def set_enabled_op_types(self, op_list):
        """The types of ops that are quantized; none: all that can."""
        self._core.set_names("QUANTIZER_OPS", sorted(op_list))
