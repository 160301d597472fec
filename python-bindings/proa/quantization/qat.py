"""QAT: quantization-aware training: replaces a model's layers by layers with fake quantizers."""
import copy

from .quantize import Quantization

__all__ = ["QAT"]


class QAT(Quantization):
    """Puts quanters into a model that is trained with them.

    >>> import proa as paddle
    >>> from proa.quantization import QAT, QuantConfig
    >>> from proa.quantization.quanters import FakeQuanterWithAbsMaxObserver
    >>> quanter = FakeQuanterWithAbsMaxObserver(moving_rate=0.9)
    >>> qat = QAT(QuantConfig(activation=quanter, weight=quanter))
    >>> net = qat.quantize(paddle.nn.Sequential(paddle.nn.Linear(4, 3)))
    >>> type(net[0]).__name__, net(paddle.ones([2, 4])).shape
    ('QuantedLinear', [2, 3])
    """

    def quantize(self, model, inplace=False):
        """The model with quanters: itself, or a copy. It must be in training mode."""
        if not model.training:
            raise AssertionError("QAT.quantize: the model must be in training mode: call model.train()")
        return self._prepare(model if inplace else copy.deepcopy(model))
