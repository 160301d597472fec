"""Predictor: a loaded model with handles for its inputs and outputs; over proa/inference.h."""
from .. import _core
from ..framework import mode
from .config import Config
from .kinds import DataType, kind_of

__all__ = ["Predictor", "PredictorPool", "Tensor", "create_predictor"]

_TAKEN = "?Bbhilqefd"  # as NumPy's letters: to ask for a dtype's name takes a microsecond


class Tensor:
    """An input's or output's handle; Predictor.get_input_handle and get_output_handle make them."""

    def __init__(self, *args):
        raise TypeError("inference.Tensor: get_input_handle and get_output_handle of a Predictor make these")

    @classmethod
    def _of(cls, core, name):
        self = object.__new__(cls)
        self._core, self._name = core, name
        return self

    def name(self):
        """The variable's name."""
        return self._name

    def reshape(self, shape):
        """Sets an input's shape. Elements that are there stay; copy_from_cpu sets the shape of what it copies, too."""
        if isinstance(shape, int):
            raise ValueError(f"reshape: a number is the size of a tensor of strings; {self._name!r} is none")
        if not isinstance(shape, (list, tuple)) or not all(isinstance(d, int) for d in shape):
            raise TypeError(f"reshape: expected a list of ints, got {shape!r}")
        self._core.reshape(list(shape))

    def copy_from_cpu(self, data):
        """Copies a NumPy array to an input, which takes its shape and dtype."""
        import numpy as np
        if isinstance(data, list) and data and isinstance(data[0], str):
            raise ValueError(f"copy_from_cpu: {self._name!r} is no tensor of strings")
        if not isinstance(data, np.ndarray):
            raise TypeError(f"copy_from_cpu: expected a NumPy array, got {type(data).__name__}")
        if data.dtype.char not in _TAKEN:
            raise TypeError(f"copy_from_cpu: inputs cannot be {data.dtype}")
        if not data.flags.c_contiguous:
            data = np.ascontiguousarray(data)
        with mode.eager():
            self._core.set_tensor(_core.to_tensor(data))

    def share_external_data(self, data):
        """Makes a paddle.Tensor the input, without a copy."""
        if not isinstance(data, _core.Tensor) or data.is_symbolic:
            raise TypeError(f"share_external_data: expected a Tensor that holds data, got {type(data).__name__}")
        self._core.set_tensor(data)

    def copy_to_cpu(self):
        """A NumPy array of the data."""
        return self._core.tensor().numpy()

    def shape(self):
        """The shape as a list; [0]: no data yet."""
        shape = self._core.shape()
        return [0] if shape is None else shape

    def type(self):
        """The DataType; FLOAT32 as long as there is no data."""
        dtype = self._core.dtype()
        return DataType.FLOAT32 if dtype is None else kind_of(dtype)

    def set_lod(self, lod):
        """Says where the sequences that the rows form begin, a list a level, and where the last ends."""
        self._core.set_lod([[int(at) for at in level] for level in lod])

    def lod(self):
        """The offsets of the sequences."""
        return self._core.lod()


class Predictor:
    """A model that is ready to run. One thread at a time uses it; clone() gives others their own."""

    def __init__(self, config):
        if not isinstance(config, Config):
            raise TypeError(f"create_predictor: expected a Config, got {type(config).__name__}")
        self._start(_core.InferencePredictor(config._core))

    def _start(self, core):
        self._core, self._inputs, self._outputs = core, core.inputs(), core.outputs()
        return self

    def get_input_names(self):
        """The inputs' names, in order."""
        return list(self._inputs)

    def get_output_names(self):
        """The outputs' names, in order."""
        return list(self._outputs)

    def _handle(self, find, name, what):
        if not isinstance(name, str):
            raise TypeError(f"get_{what}_handle: expected a name, got {type(name).__name__}")
        return Tensor._of(find(name), name)

    def get_input_handle(self, name):
        """The handle of an input."""
        return self._handle(self._core.input, name, "input")

    def get_output_handle(self, name):
        """The handle of an output; it follows every run."""
        return self._handle(self._core.output, name, "output")

    def _feed(self, inputs):
        if not isinstance(inputs, (list, tuple)):
            raise ValueError(f"run: expected a list of Tensors, got {type(inputs).__name__}")
        for t in inputs:
            if not isinstance(t, _core.Tensor) or t.is_symbolic:
                raise ValueError(f"run: expected a list of Tensors, got {type(t).__name__} among them")
        names = self._inputs
        if len(inputs) != len(names):
            raise ValueError(f"run: the model has {len(names)} inputs ({', '.join(names)}), got {len(inputs)}")
        if len({t.name for t in inputs} & set(names)) == len(names):
            names = [t.name for t in inputs]
        for name, t in zip(names, inputs):
            self._core.input(name).set_tensor(t)

    def run(self, inputs=None):
        """Runs the model on what the handles hold; or on a list of Tensors, and returns the list of outputs.

        The list is in the order of get_input_names, or in any if the Tensors have those names.
        """
        if inputs is not None:
            self._feed(inputs)
        self._core.run()
        if inputs is not None:
            return [self._core.output(name).tensor() for name in self._outputs]
        return None

    def clone(self):
        """A predictor of the same program and weights, with memory of its own: for another thread."""
        return object.__new__(Predictor)._start(self._core.clone())

    def register_output_hook(self, hook):
        """Calls hook(op type, variable's name, Tensor) after every op with each of its outputs; None: no more."""
        if hook is not None and not callable(hook):
            raise TypeError(f"register_output_hook: expected a callable, got {type(hook).__name__}")
        self._core.set_hook(hook)

    def clear_intermediate_tensor(self):
        """Lets go of the inputs' and outputs' data."""
        self._core.clear()

    def try_shrink_memory(self):
        """Frees the arena and the plans, which the next run makes again; returns the arena's bytes."""
        return self._core.shrink()


class PredictorPool:
    """As many predictors of one model, for as many threads."""

    def __init__(self, config, size):
        if not isinstance(size, int) or not isinstance(config, Config):
            raise TypeError("PredictorPool: expected a Config and a number")
        if size < 1:
            raise ValueError(f"PredictorPool: expected at least one predictor, got {size}")
        first = Predictor(config)
        self._all = [first, *(first.clone() for _ in range(size - 1))]

    def retrive(self, index):
        """The predictor of that index."""
        if not isinstance(index, int) or index < 0:
            raise TypeError(f"PredictorPool.retrive: expected an index, got {index!r}")
        if index >= len(self._all):
            raise ValueError(f"PredictorPool.retrive: there are {len(self._all)} predictors, got index {index}")
        return self._all[index]


def create_predictor(config):
    """A Predictor of the model that a Config names."""
    return Predictor(config)
