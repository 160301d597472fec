"""paddle.incubate.nn: layers and functions that Paddle fuses on GPUs, composed of ops; programs fuse what they find."""
from . import functional
from .layers import (FusedBiasDropoutResidualLayerNorm, FusedDropoutAdd, FusedEcMoe, FusedFeedForward,
                     FusedLinear, FusedMultiHeadAttention, FusedTransformerEncoderLayer)

__all__ = ["FusedMultiHeadAttention", "FusedFeedForward", "FusedTransformerEncoderLayer", "FusedLinear",
           "FusedBiasDropoutResidualLayerNorm", "FusedEcMoe", "FusedDropoutAdd"]
