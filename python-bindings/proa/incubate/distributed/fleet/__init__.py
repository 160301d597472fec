"""paddle.incubate.distributed.fleet: recompute of sequences of layers, and with activations that ranks share."""
from ....distributed.fleet.utils.recompute import recompute_hybrid, recompute_sequential

__all__ = ["recompute_hybrid", "recompute_sequential"]
