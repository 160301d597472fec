"""ObserveWrapper: runs an observer on a layer's input before the layer."""
from ..nn import Layer

__all__ = ["ObserveWrapper"]


class ObserveWrapper(Layer):
    """A layer whose input (or output) goes through an observer or quanter."""

    def __init__(self, observer, observed, observe_input=True):
        super().__init__()
        self._observer, self._observed = observer, observed
        self._observe_input = observe_input

    def forward(self, *inputs, **kwargs):
        if self._observe_input:
            return self._observed(self._observer(*inputs, **kwargs), **kwargs)
        return self._observer(self._observed(*inputs, **kwargs), **kwargs)
