"""Metadata of a checkpoint: its pieces and their files. The classes are Paddle's by name, so that pickles of either are read by both."""
from dataclasses import dataclass


@dataclass
class LocalTensorMetadata:
    """Offset and shape of a piece in its tensor."""

    global_offset: tuple[int]
    local_shape: tuple[int]


@dataclass(frozen=True)
class LocalTensorIndex:
    """A piece's name: its tensor's, and where it begins."""

    tensor_key: str
    global_offset: tuple[int]


@dataclass
class Metadata:
    """All pieces of each tensor, and the file that has each of them."""

    state_dict_metadata: dict[str, list[LocalTensorMetadata]] = None
    storage_metadata: dict[LocalTensorIndex, str] = None
