"""The base of observers: quanters that pass tensors on and find scales."""
import abc

from .base_quanter import BaseQuanter

__all__ = ["BaseObserver"]


class BaseObserver(BaseQuanter, metaclass=abc.ABCMeta):
    """A quanter that only looks; a subclass defines cal_thresholds, too."""

    @abc.abstractmethod
    def cal_thresholds(self):
        """Finds the scales from what was seen."""
