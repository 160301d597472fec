"""Metrics as operators."""
from ...static.metric import accuracy, auc  # noqa: F401

__all__ = ["accuracy", "auc"]
