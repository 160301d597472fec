"""paddle.incubate.nn: layers and functions that Paddle fuses on GPUs, here composed of ops, which a program's passes
fuse."""
from . import functional
from .layer import (FusedBiasDropoutResidualLayerNorm, FusedDropout, FusedDropoutAdd, FusedEcMoe, FusedFeedForward, FusedLinear,
                    FusedMultiHeadAttention, FusedMultiTransformer, FusedTransformerEncoderLayer)

__all__ = ["FusedMultiHeadAttention", "FusedFeedForward", "FusedTransformerEncoderLayer", "FusedMultiTransformer",
           "FusedLinear", "FusedBiasDropoutResidualLayerNorm", "FusedEcMoe", "FusedDropoutAdd"]
