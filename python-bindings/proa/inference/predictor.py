"""Predictor: a loaded model with handles for its inputs and outputs. Clones share the optimised program and its
weights; each has an executor, with an arena, of its own."""
import contextlib
import math
import os

from .. import _core
from ..framework import mode
from .config import Config
from .kinds import DataType, kind_of

__all__ = ["Predictor", "PredictorPool", "Tensor", "create_predictor"]

_WHOLE = ("paddle.int32", "paddle.int64")
_TAKEN = "?Bbhilqefd"  # as NumPy's letters: to ask for a dtype's name takes a microsecond


class _Slot:
    """What a handle stands for: elements (None: none yet), the shape that reshape gave them, and their lod."""

    def __init__(self, name, is_input):
        self.name, self.is_input = name, is_input
        self.data, self.shape, self.lod = None, None, []

    def put(self, tensor):
        self.data, self.shape = tensor, None

    def clear(self):
        self.data, self.shape, self.lod = None, None, []

    def tensor(self):
        """A Tensor of the data in the shape that is wanted."""
        if self.data is None:
            what = "copy data to it first" if self.is_input else "run the predictor first"
            raise RuntimeError(f"inference.Tensor: {self.name!r} holds no memory: {what}")
        if self.shape is None:
            return self.data
        wanted, there = math.prod(self.shape), self.data.size
        if min(self.shape, default=0) < 0 or wanted > there:
            raise RuntimeError(f"inference.Tensor: {self.name!r} was reshaped to {self.shape}, but holds {there} "
                               "elements: copy the data of that shape to it")
        with mode.eager():
            return _core.reshape(_core.reshape(self.data, [there])[:wanted], self.shape)


class Tensor:
    """An input's or output's handle; Predictor.get_input_handle and get_output_handle make them."""

    def __init__(self, *args):
        raise TypeError("inference.Tensor: get_input_handle and get_output_handle of a Predictor make these")

    @classmethod
    def _of(cls, slot):
        self = object.__new__(cls)
        self._slot = slot
        return self

    def _writable(self, what):
        if not self._slot.is_input:
            raise RuntimeError(f"{what}: {self._slot.name!r} is an output: it can only be read")

    def reshape(self, shape):
        """Sets an input's shape. Elements that are there stay; copy_from_cpu sets the shape of what it copies, too."""
        if isinstance(shape, int):
            raise ValueError(f"reshape: a number is the size of a tensor of strings; {self._slot.name!r} is none")
        if not isinstance(shape, (list, tuple)) or not all(isinstance(d, int) for d in shape):
            raise TypeError(f"reshape: expected a list of ints, got {shape!r}")
        self._writable("reshape")
        self._slot.shape = list(shape)

    def copy_from_cpu(self, data):
        """Copies a NumPy array to an input, which takes its shape and dtype."""
        import numpy as np
        if isinstance(data, list) and data and isinstance(data[0], str):
            raise ValueError(f"copy_from_cpu: {self._slot.name!r} is no tensor of strings")
        if not isinstance(data, np.ndarray):
            raise TypeError(f"copy_from_cpu: expected a NumPy array, got {type(data).__name__}")
        self._writable("copy_from_cpu")
        if data.dtype.char not in _TAKEN:
            raise TypeError(f"copy_from_cpu: inputs cannot be {data.dtype}")
        if not data.flags.c_contiguous:
            data = np.ascontiguousarray(data)
        with mode.eager():
            self._slot.put(_core.to_tensor(data))

    def share_external_data(self, data):
        """Makes a paddle.Tensor the input, without a copy."""
        if not isinstance(data, _core.Tensor) or data.is_symbolic:
            raise TypeError(f"share_external_data: expected a Tensor that holds data, got {type(data).__name__}")
        self._writable("share_external_data")
        self._slot.put(data.detach())

    def copy_to_cpu(self):
        """A NumPy array of the data."""
        return self._slot.tensor().numpy()

    def shape(self):
        """The shape as a list; [0]: no data yet."""
        if self._slot.shape is not None:
            return list(self._slot.shape)
        return [0] if self._slot.data is None else list(self._slot.data.shape)

    def type(self):
        """The DataType; FLOAT32 as long as there is no data."""
        return DataType.FLOAT32 if self._slot.data is None else kind_of(self._slot.data.dtype)

    def set_lod(self, lod):
        """Says where the sequences that the rows form begin, a list a level, and where the last ends."""
        self._slot.lod = [[int(at) for at in level] for level in lod]

    def lod(self):
        """The offsets that set_lod gave."""
        return [list(level) for level in self._slot.lod]


# ---- loading -------------------------------------------------------------------------------------------------------

def _read(path, what):
    if not os.path.isfile(path):
        raise RuntimeError(f"create_predictor: cannot open the {what} {path!r}")
    with open(path, "rb") as f:
        return f.read()


def _load(config):
    """The program that a Config names. Files that stand side by side are mapped: parameters are never copied whole."""
    model, params = config.prog_file(), config.params_file()
    pair = bool(model) and model.endswith(".pdmodel") and params == model[:-len("model")] + "iparams"
    if config._buffers is None and not config.model_dir() and pair and os.path.isfile(model) and os.path.isfile(params):
        return _core.load_program(model)
    return _core.decode(*_contents(config))


def _contents(config):
    """(model, parameters) as bytes."""
    if config._buffers is not None:
        return config._buffers
    if config.model_dir():
        from ..static.io import _combined_folder
        model = _read(os.path.join(config.model_dir(), "__model__"), "model file")
        _core.decode(model)  # says what is wrong with it
        try:
            return model, _combined_folder(model, config.model_dir())
        except OSError as error:
            raise RuntimeError(f"create_predictor: cannot open the parameter file {error.filename!r}") from None
    if not config.prog_file():
        raise ValueError("create_predictor: the Config names no model: call set_model or set_model_buffer")
    model, params = _read(config.prog_file(), "model file"), config.params_file()
    if not os.path.isfile(params) and not any(persistable for _, _, persistable, *_ in _core.decode(model).vars(0)):
        return model, b""  # no file is written where there is nothing to write
    return model, _read(params, "parameter file")


@contextlib.contextmanager
def _on_cpu():
    """Passes compute with the weights, which are still there, whatever device the thread has chosen."""
    was = _core.get_device()
    _core.set_device("cpu")
    try:
        yield
    finally:
        _core.set_device(was)


class _Model:
    """What a predictor and its clones share: the optimised program, the names of its ends, and the settings."""

    def __init__(self, config):
        if not isinstance(config, Config):
            raise TypeError(f"create_predictor: expected a Config, got {type(config).__name__}")
        if config._used:
            raise ValueError("create_predictor: each Config can only be used for one predictor: copy it, "
                             "Config(config), or clone the predictor")
        self.device = f"gpu:{config.gpu_device_id()}" if config.use_gpu() else "cpu"
        with mode.eager(), _on_cpu():
            self.program = _load(config)
            self.ends, self.outputs = list(self.program.inputs), list(self.program.outputs)
            # offsets of sequences, which belong to the handle of the tensor whose rows they part
            self.inputs = [name for name in self.ends if "@LOD_" not in name]
            self.dtypes = {name: self.program.find(name).dtype for name in self.inputs}
            self.optimise(config)
            if config.use_gpu():
                self.place()
        self.threads = config.cpu_math_library_num_threads()
        config._used = True

    def optimise(self, config):
        passes = config._pass_list()
        if passes == "":
            return
        if not config._dumps():
            self.program.optimise(passes, True)
            return
        from ..utils.flags import get_flags, set_flags
        was = get_flags("FLAGS_dump_passes")
        set_flags({"FLAGS_dump_passes": True})
        try:
            self.program.optimise(passes, True)
        finally:
            set_flags(was)

    def place(self):
        """Brings the weights to the GPU, once."""
        for name, _, persistable, *_ in self.program.vars(0):
            value = self.program.value(name) if persistable else None
            if value is not None:
                self.program.bind(name, _core.to_device(value, self.device))

    def executor(self):
        return _core.Executor(self.program, frozen=True, passes="")

    def run(self, executor, tensors):
        if self.threads < 1:
            return executor.run(tensors)
        was = _core.get_threads()
        _core.set_threads(self.threads)
        try:
            return executor.run(tensors)
        finally:
            _core.set_threads(was)


class Predictor:
    """A model that is ready to run. One thread at a time uses it; clone() gives others their own."""

    def __init__(self, config):
        self._start(_Model(config))

    def _start(self, model):
        self._model, self._executor = model, model.executor()
        self._inputs = {name: _Slot(name, True) for name in model.inputs}
        self._outputs = {name: _Slot(name, False) for name in model.outputs}
        return self

    def get_input_names(self):
        """The inputs' names, in order."""
        return list(self._model.inputs)

    def get_output_names(self):
        """The outputs' names, in order."""
        return list(self._model.outputs)

    def _handle(self, slots, name, what):
        if not isinstance(name, str):
            raise TypeError(f"get_{what}_handle: expected a name, got {type(name).__name__}")
        if name not in slots:
            raise RuntimeError(f"get_{what}_handle: the model has no {what} {name!r}; it has: {', '.join(slots)}")
        return Tensor._of(slots[name])

    def get_input_handle(self, name):
        """The handle of an input."""
        return self._handle(self._inputs, name, "input")

    def get_output_handle(self, name):
        """The handle of an output; it follows every run."""
        return self._handle(self._outputs, name, "output")

    def _feed(self, inputs):
        if not isinstance(inputs, (list, tuple)):
            raise ValueError(f"run: expected a list of Tensors, got {type(inputs).__name__}")
        for t in inputs:
            if not isinstance(t, _core.Tensor) or t.is_symbolic:
                raise ValueError(f"run: expected a list of Tensors, got {type(t).__name__} among them")
        names = self._model.inputs
        if len(inputs) != len(names):
            raise ValueError(f"run: the model has {len(names)} inputs ({', '.join(names)}), got {len(inputs)}")
        if len({t.name for t in inputs} & set(names)) == len(names):
            names = [t.name for t in inputs]
        for name, t in zip(names, inputs):
            self._inputs[name].put(t.detach())

    def _fed(self, name):
        slot, wanted, device = self._inputs[name], self._model.dtypes[name], self._model.device
        if slot.data is None and slot.shape is None:
            raise ValueError(f"run: input {name!r} has no data: copy_from_cpu of its handle gives it some")
        tensor = slot.tensor()
        if tensor.dtype != wanted and str(tensor.dtype) in _WHOLE and str(wanted) in _WHOLE:
            with mode.eager():
                tensor = _core.cast(tensor, wanted)
        return _core.to_device(tensor, device)

    def _offsets(self, name):
        """Those of one level of sequences, an input of the program."""
        of, _, level = name.rpartition("@LOD_")
        lod = self._inputs[of].lod
        if int(level) >= len(lod):
            raise ValueError(f"run: the rows of input {of!r} form sequences: set_lod of its handle says which")
        with mode.eager():
            return _core.to_tensor(lod[int(level)], dtype="int64")

    def run(self, inputs=None):
        """Runs the model on what the handles hold; or on a list of Tensors, and returns the list of outputs.

        The list is in the order of get_input_names, or in any if the Tensors have those names.
        """
        if inputs is not None:
            self._feed(inputs)
        fed = [self._offsets(name) if "@LOD_" in name else self._fed(name) for name in self._model.ends]
        try:
            results = self._model.run(self._executor, fed)
        except TypeError as error:
            raise ValueError(f"run: {error}") from None
        for name, tensor in zip(self._model.outputs, results):
            self._outputs[name].put(tensor)
        return None if inputs is None else results

    def clone(self):
        """A predictor of the same program and weights, with memory of its own: for another thread."""
        return object.__new__(Predictor)._start(self._model)

    def clear_intermediate_tensor(self):
        """Lets go of the inputs' and outputs' data."""
        for slot in [*self._inputs.values(), *self._outputs.values()]:
            slot.clear()

    def try_shrink_memory(self):
        """Frees the arena and the plans, which the next run makes again; returns the arena's bytes."""
        freed = self._executor.stats()["arena_bytes"]
        self._executor = self._model.executor()
        return freed


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
