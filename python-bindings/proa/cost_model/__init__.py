"""paddle.cost_model: how long operators take."""
from .cost_model import CostModel

__all__ = ["CostModel"]
