"""jit.load: a saved program as a layer that predicts, and can be trained further."""
import os
import types

from .. import _core
from .._asks import asks
from ..framework import unique_name
from ..framework.parameter import Parameter
from ..nn.layer.layers import Layer
from ..static.input import InputSpec

_MODEL, _PARAMS, _INFO = ".pdmodel", ".pdiparams", ".pdiparams.info"


class _Method:
    """One program of a translated layer: for prediction, and for training once that is asked for."""

    def __init__(self, program):
        self.program = program
        self.inputs, self.outputs = list(program.inputs), list(program.outputs)
        self._predict = self._train = self._training_program = self._static = None

    def call(self, tensors, training):
        if len(tensors) != len(self.inputs):
            raise ValueError(f"this program takes {len(self.inputs)} inputs ({', '.join(self.inputs)}), got "
                             f"{len(tensors)}")
        tensors = [one if isinstance(one, _core.Tensor) else _core.to_tensor(one) for one in tensors]
        try:
            results = self._run(tensors, training)
        except ValueError:
            if not self._widened(tensors):
                raise
            results = self._run(tensors, training)
        return results[0] if len(results) == 1 else results

    def _run(self, tensors, training):
        if training:
            if self._train is None:
                self._training_program = self.program.clone(to_train=True)
                self._train = _core.compile_program(self._training_program, True)
            return self._train.call(tensors)
        if self._predict is None:
            self._predict = _core.compile_program(self.program, False)
        was = _core.set_recording(False)
        try:
            return self._predict.call(tensors)
        finally:
            _core.set_recording(was)

    def _widened(self, tensors):
        """Whether inputs had lengths that these tensors do not have; the program takes any there from now on."""
        changed = False
        for name, one in zip(self.inputs, tensors):
            var = self.program.find(name)
            declared, shape = var.declared_shape, one.shape
            wide = [n if n == m else -1 for n, m in zip(declared, shape)]
            if len(declared) == len(shape) and wide != list(declared):
                self.program.reshape_inputs([(var, wide, None)])
                changed = True
        if changed:
            self._predict = self._train = self._training_program = self._static = None
        return changed

    def static(self):
        if self._static is None:
            from ..static.program import Program
            self._static = Program(self.program)._adopt_parameters()
        return self._static


class TranslatedLayer(Layer):
    """A loaded program. eval() predicts (that is how it starts), train() trains its parameters.

    >>> import os, tempfile
    >>> import proa as paddle
    >>> path = os.path.join(tempfile.mkdtemp(), "net")
    >>> paddle.jit.save(paddle.nn.Linear(2, 1), path, [paddle.static.InputSpec([None, 2])])
    >>> net = paddle.jit.load(path)
    >>> len(net.parameters()), net.training
    (2, False)
    """

    def __init__(self, programs, persistable_vars):
        super().__init__()
        if not isinstance(programs, dict) or not programs:
            raise TypeError("TranslatedLayer: programs must be a dict of programs; use paddle.jit.load")
        if not isinstance(persistable_vars, dict):
            raise TypeError("TranslatedLayer: persistable_vars must be a dict of tensors; use paddle.jit.load")
        self.__dict__["_methods"] = {name: _Method(program) for name, program in programs.items()}
        counts = {"param": 0, "buffer": 0}
        for tensor in persistable_vars.values():
            kind = "param" if isinstance(tensor, Parameter) else "buffer"
            key = f"{kind}_{counts[kind]}"
            counts[kind] += 1
            if kind == "param":
                self.add_parameter(key, tensor)
            else:
                self.register_buffer(key, tensor)
        for name in self._methods:
            if name != "forward":
                self.__dict__[name] = types.MethodType(_caller(name), self)
        self.__dict__["_by_name"] = dict(persistable_vars)
        self.eval()

    def _move(self, device):
        """The programs know the moved tensors; what was compiled for the old ones is compiled again."""
        super()._move(device)
        for name, method in self._methods.items():
            for key, tensor in self._by_name.items():
                if method.program.value(key) is not None:
                    method.program.bind(key, tensor)
                    if isinstance(tensor, Parameter):
                        _core.mark_parameter(method.program, key, True)
            self._methods[name] = _Method(method.program)

    def forward(self, *inputs):
        """The loaded forward."""
        return self._method("forward").call(list(inputs), self.training)

    def _method(self, name):
        found = self._methods.get(name)
        if found is None:
            raise ValueError(f"TranslatedLayer: there is no method {name}; there are {', '.join(self._methods)}")
        return found

    def program(self, method_name="forward"):
        """The program of a method, as a paddle.static.Program."""
        return self._method(method_name).static()

    def _specs_of(self, method, names):
        program = self._method(method).program
        found = [program.find(name) for name in names]
        return [InputSpec(var.declared_shape, var.dtype, var.name) for var in found]

    def _input_spec(self, method_name="forward"):
        return self._specs_of(method_name, self._method(method_name).inputs)

    def _output_spec(self, method_name="forward"):
        return self._specs_of(method_name, self._method(method_name).outputs)


def _caller(name):
    def call(self, *inputs):
        return self._method(name).call(list(inputs), self.training)
    call.__name__ = name
    return call


# ---- loading ------------------------------------------------------------------------------


def _paths(path, configs):
    """method -> path to load, and the prefix of the info file."""
    model, params = configs.get("model_filename"), configs.get("params_filename")
    for key in configs:
        if key not in ("model_filename", "params_filename"):
            raise ValueError(f"jit.load: unknown configuration {key!r}; there are model_filename and params_filename")
    is_prefix, is_folder = os.path.exists(path + _MODEL), os.path.isdir(path)
    if is_prefix and is_folder:
        raise ValueError(f"jit.load: both {path}.pdmodel and the folder {path} exist: which one is meant?")
    if not is_prefix and not is_folder:
        raise ValueError(f"jit.load: there is neither {path}.pdmodel nor a folder {path}")
    if is_folder:
        return {"forward": (path, model, params)}, None
    folder, prefix = os.path.split(path)
    found = {"forward": (path, None, None)}
    for file in sorted(os.listdir(folder or ".")):
        if file.startswith(prefix + ".") and file.endswith(_MODEL) and file != prefix + _MODEL:
            found[file[len(prefix) + 1:-len(_MODEL)]] = os.path.join(folder, file[:-len(_MODEL)]), None, None
    return found, path


def _read(path, model, params):
    if model is None and params is None:
        return _core.load_program(path)
    with open(os.path.join(path, model or "__model__"), "rb") as file:
        data = file.read()
    values = None
    if params is not None:
        with open(os.path.join(path, params), "rb") as file:
            values = file.read()
    return _core.decode(data, values)


def _info(prefix):
    """The contents of the info file: names, no code."""
    if prefix is None or not os.path.exists(prefix + _INFO):
        return {}
    from ..framework.unpickle import Malformed, Refused, Unpickler
    with open(prefix + _INFO, "rb") as file:
        try:
            found = Unpickler(file).load()
        except (Malformed, Refused) as error:
            raise ValueError(f"jit.load: {prefix + _INFO} cannot be read: {error}") from None
    if not isinstance(found, dict) or not all(isinstance(entry, dict) for entry in found.values()):
        raise ValueError(f"jit.load: {prefix + _INFO} is no table of variables")
    return found


@asks("path:-Tensor!AssertionError path:str")
def load(path, **configs):
    """Loads what jit.save (or static.save_inference_model) saved, here or in real Paddle, as a TranslatedLayer, to the
    device that set_device chose."""
    path = str(path)
    if path.endswith(_MODEL):
        path = path[:-len(_MODEL)]
    found, prefix = _paths(path, configs)
    programs = {name: _read(*where) for name, where in found.items()}
    info = _info(prefix)
    layer = TranslatedLayer(programs, _persistables(programs, info))
    return layer if _core.get_device() == "cpu" else layer.to(_core.get_device())


def _persistables(programs, info):
    """name -> tensor; methods share those of equal names."""
    found = {}
    for program in programs.values():
        named = frozenset(_core.parameter_names(program))
        for name, var, persistable, *_ in program.vars(0):
            value = program.value(name) if persistable else None
            if value is None:
                continue
            known = found.get(name)
            if isinstance(known, Parameter):
                _core.mark_parameter(program, name, True)
            if known is not None and known.declared_shape == value.declared_shape and known.dtype == value.dtype:
                program.bind(name, known)
                continue
            found[name] = known = _dressed(name, value, info.get(name), name in named)
            if isinstance(known, Parameter):
                _core.mark_parameter(program, name, True)
    return dict(sorted(found.items()))


def _unused(name):
    """A name of this process for a persistable: models loaded side by side keep theirs apart in the states of optimizers."""
    stem, _, number = name.rpartition("_")
    return unique_name.generate(stem if stem and number.isdigit() else name)


def _dressed(name, value, entry, is_parameter):
    """A persistable as a Parameter, if it was one, or as a buffer."""
    if entry is not None:
        is_parameter = "trainable" in entry
    floating = "float" in str(value.dtype)
    if not is_parameter or not floating:
        value.name, value.persistable, value.stop_gradient = _unused(name), True, True
        return value
    param = Parameter._share(value)
    trainable = entry["trainable"] if entry is not None else not value.stop_gradient
    param._describe(name=_unused(name), trainable=bool(trainable))
    return param
