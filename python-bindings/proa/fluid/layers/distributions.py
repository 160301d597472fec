"""Probability distributions."""
from ...distribution import Categorical, Normal, Uniform  # noqa: F401

__all__ = ["Categorical", "Normal", "Uniform"]
