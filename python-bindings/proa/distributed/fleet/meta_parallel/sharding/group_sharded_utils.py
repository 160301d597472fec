"""Dtypes of trainable parameters."""
from enum import Enum

from ....._core import bfloat16, float16, float32


class Type(Enum):
    """Dtypes that a buffer of parameters may have."""

    fp16 = float16
    bf16 = bfloat16
    fp32 = float32
