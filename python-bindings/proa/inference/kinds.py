"""The enums of paddle.inference, with Paddle's names, numbers and representation, and version queries."""
import enum

from .. import _core

__all__ = ["DataType", "PlaceType", "PrecisionType", "get_num_bytes_of_data_type", "get_trt_compile_version",
           "get_trt_runtime_version", "get_version"]


class _Shown:
    """Looks as Paddle's do, whose classes have other names."""

    def __repr__(self):
        return f"<{self}: {int(self)}>"

    def __str__(self):
        return f"{_CALLED[type(self).__name__]}.{self.name}"

    def __int__(self):
        return self.value


_CALLED = {"DataType": "PaddleDType", "PlaceType": "PaddlePlace", "PrecisionType": "Precision"}


class DataType(_Shown, enum.IntEnum):
    """Dtypes of a handle's elements."""
    FLOAT64 = 7
    FLOAT32 = 0
    FLOAT16 = 5
    INT64 = 1
    INT32 = 2
    UINT8 = 3
    INT8 = 4
    BOOL = 6


class PlaceType(_Shown, enum.Enum):
    """Places of a tensor."""
    UNK = -1
    CPU = 0
    GPU = 1
    XPU = 2
    CUSTOM = 4


class PrecisionType(_Shown, enum.Enum):
    """Precisions of a model. Proa computes in what the model says."""
    Float32 = 0
    Int8 = 1
    Half = 2
    Bfloat16 = 3


_BYTES = {DataType.FLOAT64: 8, DataType.FLOAT32: 4, DataType.FLOAT16: 2, DataType.INT64: 8, DataType.INT32: 4,
          DataType.UINT8: 1, DataType.INT8: 1, DataType.BOOL: 1}
# a dtype that DataType has no name for is called as Paddle calls it
_OF_NAME = {"float64": DataType.FLOAT64, "float32": DataType.FLOAT32, "float16": DataType.FLOAT16,
            "int64": DataType.INT64, "int32": DataType.INT32, "int16": DataType.INT32, "uint8": DataType.UINT8,
            "int8": DataType.INT8, "bool": DataType.BOOL}


def kind_of(dtype):
    """The DataType of a tensor's dtype."""
    name = str(dtype).rpartition(".")[2]
    if name not in _OF_NAME:
        raise RuntimeError(f"inference.Tensor: DataType has no name for {name}")
    return _OF_NAME[name]


def get_num_bytes_of_data_type(dtype):
    """Bytes of one element."""
    if not isinstance(dtype, DataType):
        raise TypeError(f"get_num_bytes_of_data_type: expected a DataType, got {type(dtype).__name__}")
    return _BYTES[dtype]


def get_version():
    """Proa's version, as lines of text."""
    return f"version: {_core.version()}\n"


def get_trt_compile_version():
    """TensorRT's version that this was built with; (0, 0, 0): none."""
    return 0, 0, 0


def get_trt_runtime_version():
    """TensorRT's version that is loaded; (0, 0, 0): none."""
    return 0, 0, 0
