"""Metrics as operators."""
from ...static.metric import accuracy, auc

__all__ = ["accuracy", "auc"]
