"""PTQ: post-training quantization: puts observers into a model and converts it after calibration."""
import copy

from .quantize import Quantization

__all__ = ["PTQ"]


class PTQ(Quantization):
    """Puts observers into a model, which find scales while it runs on samples.

    >>> import proa as paddle
    >>> from proa.quantization import PTQ, QuantConfig
    >>> from proa.quantization.observers import AbsmaxObserver
    >>> observer = AbsmaxObserver()
    >>> ptq = PTQ(QuantConfig(activation=observer, weight=observer))
    >>> net = paddle.nn.Sequential(paddle.nn.Linear(4, 3))
    >>> net.eval()
    >>> observed = ptq.quantize(net)
    >>> out = observed(paddle.ones([2, 4]))
    >>> ptq.convert(observed)(paddle.ones([2, 4])).shape
    [2, 3]
    """

    def quantize(self, model, inplace=False):
        """The model with observers: itself, or a copy. It must be in evaluation mode."""
        if model.training:
            raise AssertionError("PTQ.quantize: the model must be in evaluation mode: call model.eval()")
        if not inplace:
            model = copy.deepcopy(model)
            model.eval()
        return self._prepare(model)
