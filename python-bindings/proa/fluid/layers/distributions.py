"""Probability distributions."""
from ...distribution import Categorical, Normal, Uniform

__all__ = ["Categorical", "Normal", "Uniform"]
