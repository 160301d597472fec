"""fluid.layers.metric_op: accuracy and auc as operators, re-exported from paddle.static."""
from ...static.metric import accuracy, auc

__all__ = ["accuracy", "auc"]
