"""Stub: a placeholder layer at which quantization inserts a quantizer; and the layer that replaces it."""
from ..layer.layers import Layer

__all__ = ["QuanterStub", "Stub"]


class Stub(Layer):
    """Passes its input on; QAT and PTQ put a quantizer in its place: `observer`'s, or else the configured one.

    >>> import proa as paddle
    >>> stub = paddle.nn.quant.Stub()
    >>> stub(paddle.to_tensor([1.0, 2.0])).tolist()
    [1.0, 2.0]
    """

    def __init__(self, observer=None):
        super().__init__()
        self._observer = observer

    def forward(self, input):
        return input


class QuanterStub(Layer):
    """A stub with its quantizer."""

    def __init__(self, layer, q_config):
        super().__init__()
        factory = layer._observer if layer._observer is not None else q_config.activation
        self._observer = None if factory is None else factory._instance(layer)

    def forward(self, input):
        return input if self._observer is None else self._observer(input)
