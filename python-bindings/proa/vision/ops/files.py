"""read_file and decode_jpeg: a file's bytes as a uint8 tensor, and a JPEG's bytes as an image (by PIL)."""
import os

from ..._asks import asks
from ... import _core
from ..._errors import of_kind


def read_file(filename, name=None):
    """The file's bytes, uint8 [n]."""
    import numpy as np
    if not isinstance(filename, (str, os.PathLike)):
        raise of_kind(f"read_file: filename must be a string, got {type(filename).__name__}")
    with open(filename, "rb") as f:
        return _core.to_tensor(np.frombuffer(f.read(), "uint8").copy())


@asks("eager:x:Tensor!InvalidArgument eager:mode:str!InvalidArgument eager:x.dtype=u1!NotFound")
def decode_jpeg(x, mode="unchanged", name=None):
    """uint8 [channels, height, width] of the JPEG in the bytes x; mode 'unchanged', 'gray' or 'rgb'."""
    import io

    import numpy as np
    from ...utils.lazy_import import try_import
    kinds = {"unchanged": None, "gray": "L", "rgb": "RGB"}
    if mode not in kinds:
        raise ValueError(f"decode_jpeg: mode must be 'unchanged', 'gray' or 'rgb', got {mode!r}")
    if str(x.dtype) != "paddle.uint8" or len(x.shape) != 1:
        raise ValueError(f"decode_jpeg: x must be uint8 of one dim, got {x.dtype} {x.shape}")
    pil = try_import("PIL.Image", "decode_jpeg: pillow is needed to decode images; pip install pillow")
    image = pil.open(io.BytesIO(x.numpy().tobytes()))
    values = np.asarray(image if kinds[mode] is None else image.convert(kinds[mode]))
    values = values[None] if values.ndim == 2 else values.transpose(2, 0, 1)
    return _core.to_tensor(np.ascontiguousarray(values))
