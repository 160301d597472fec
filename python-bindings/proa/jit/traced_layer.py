"""TracedLayer: a layer's forward as it ran once, kept as a program (Paddle 2.0 and 2.1)."""
import os

from .. import _core
from .dy2static.runtime import trees
from .dy2static.runtime.values import Tensor


class TracedLayer:
    """Made by TracedLayer.trace(layer, inputs).

    >>> import proa as paddle
    >>> net = paddle.nn.Linear(2, 3)
    >>> outs, traced = paddle.jit.TracedLayer.trace(net, [paddle.ones([4, 2])])
    >>> [out.shape for out in traced([paddle.ones([4, 2])])]
    [(4, 3)]
    """

    def __init__(self, program, parameters, feed_names, fetch_names):
        self._program, self._params = program, parameters
        self._feed_names, self._fetch_names = feed_names, fetch_names
        self._compiled = self._static = None

    @staticmethod
    def trace(layer, inputs):
        """(the layer's outputs for these inputs, the TracedLayer)"""
        from ..nn import Layer
        if not isinstance(layer, Layer):
            raise TypeError(f"TracedLayer.trace: layer must be a Layer, got {type(layer).__name__}")
        inputs = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        for i, one in enumerate(inputs):
            if not isinstance(one, Tensor):
                raise TypeError(f"TracedLayer.trace: inputs[{i}] must be a Tensor, got {type(one).__name__}")
        outs = layer(*inputs)
        specs = [(f"feed_{i}", one.declared_shape, one.dtype) for i, one in enumerate(inputs)]

        def run(*variables):
            leaves = []
            trees.flatten(layer(*variables), leaves)
            return [leaf for leaf in leaves if isinstance(leaf, Tensor)]

        was = _core.set_recording(False)
        try:
            program = _core.capture(run, specs)
        finally:
            _core.set_recording(was)
        return outs, TracedLayer(program, layer.parameters(), list(program.inputs), list(program.outputs))

    @property
    def program(self):
        """The program, as a paddle.static.Program."""
        if self._static is None:
            from ..static.program import Program
            self._static = Program(self._program)._adopt_parameters()
        return self._static

    def set_strategy(self, build_strategy=None, exec_strategy=None):
        """Accepted before the first run: what the strategies ask for, the executor does by itself."""
        if self._compiled is not None:
            raise RuntimeError("TracedLayer.set_strategy: the program has run already")

    def __call__(self, inputs):
        inputs = list(inputs) if isinstance(inputs, (list, tuple)) else [inputs]
        if len(inputs) != len(self._feed_names):
            raise ValueError(f"TracedLayer takes {len(self._feed_names)} inputs, got {len(inputs)}")
        if self._compiled is None:
            self._compiled = _core.compile_program(self._program, False)
        was = _core.set_recording(False)
        try:
            return [out.numpy() for out in self._compiled.call(inputs)]
        finally:
            _core.set_recording(was)

    def save_inference_model(self, path, feed=None, fetch=None, **kwargs):
        """Saves path.pdmodel and path.pdiparams. feed, fetch: indices of the inputs and outputs to keep."""
        if not os.path.basename(path):
            raise ValueError(f"save_inference_model: path must end in a file prefix, got {path!r}")
        for what, chosen, names in (("feed", feed, self._feed_names), ("fetch", fetch, self._fetch_names)):
            if chosen is not None and not all(isinstance(i, int) and 0 <= i < len(names) for i in chosen):
                raise ValueError(f"save_inference_model: {what} must be indices below {len(names)}, got {chosen!r}")
        if os.path.dirname(path):
            os.makedirs(os.path.dirname(path), exist_ok=True)
        program = self._program.clone(True)
        if fetch is not None:
            program.set_outputs([program.find(self._fetch_names[i]) for i in fetch])
        if feed is not None:
            program.set_inputs([program.find(self._feed_names[i]) for i in feed])
        program.prune()
        program.save(path)
