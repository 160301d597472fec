"""paddle.incubate.nn: layers and functions that Paddle fuses on GPUs, here composed of ops, which a program's passes
fuse."""
from . import functional
from .layers import (FusedBiasDropoutResidualLayerNorm, FusedDropoutAdd, FusedEcMoe, FusedFeedForward,
                     FusedLinear, FusedMultiHeadAttention, FusedTransformerEncoderLayer)

__all__ = ["FusedMultiHeadAttention", "FusedFeedForward", "FusedTransformerEncoderLayer", "FusedLinear",
           "FusedBiasDropoutResidualLayerNorm", "FusedEcMoe", "FusedDropoutAdd"]
