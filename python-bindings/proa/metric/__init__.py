"""paddle.metric: Accuracy, Precision, Recall, Auc, and accuracy of one batch."""
from .metrics import Accuracy, Auc, Metric, Precision, Recall, accuracy

__all__ = ["Metric", "Accuracy", "Precision", "Recall", "Auc", "accuracy"]
