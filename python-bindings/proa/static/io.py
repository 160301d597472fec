"""Saving and loading programs: for training (save, load), for inference, and as bytes."""
import os

from .. import _core
from ..framework import mode
from .params import (array_of, combined, load_program_state, load_vars, plain_pickle, put, save_vars,
                     set_program_state, split, stem, value_of)
from .program import Program, default_main_program
from .scope import global_scope
from .variable import program_of, true_name

__all__ = ["deserialize_persistables", "deserialize_program", "load", "load_from_file", "load_inference_model",
           "load_program_state", "load_vars", "normalize_program", "save", "save_inference_model", "save_to_file",
           "save_vars", "serialize_persistables", "serialize_program", "set_program_state"]


# ---- for training --------------------------------------------------------------------------------------------------

def save(program, model_path, protocol=4, **configs):
    """Writes <model_path>.pdparams, .pdopt and .pdmodel: parameters, the optimizer's state and the program."""
    from ..framework.io import save as save_pickle
    if not os.path.basename(model_path):
        raise ValueError(f"static.save: model_path must be folder/name, got {model_path!r}")
    protocol = configs.pop("pickle_protocol", protocol)
    if configs:
        raise ValueError(f"static.save: unknown options {sorted(configs)}")
    if not isinstance(protocol, int) or not 2 <= protocol <= 4:
        raise ValueError(f"static.save: protocol must be 2, 3 or 4, got {protocol!r}")
    params = {name: array_of(program, name) for name in program._parameters}
    others = {name: array_of(program, name) for name in program._persistables() if name not in params}
    os.makedirs(os.path.dirname(model_path) or ".", exist_ok=True)
    save_pickle(params, model_path + ".pdparams", protocol)
    save_pickle(others, model_path + ".pdopt", protocol)
    with _core.FileWriter(model_path + ".pdmodel") as f:
        f.write(_core.encode(program._planned("static.save"), True))


def load(program, model_path, executor=None, var_list=None):
    """Sets a program's variables from what save wrote, or (var_list) from files of save_vars."""
    from .executor import Executor
    if executor is not None and not isinstance(executor, Executor):
        raise AssertionError(f"static.load: executor must be an Executor or None, got {type(executor).__name__}")
    prefix = stem(model_path)
    if not os.path.exists(prefix + ".pdparams"):
        if os.path.isfile(model_path) and var_list is None:
            raise ValueError("static.load: var_list must be given for a file that holds all variables")
        state = load_program_state(model_path, var_list)
        wanted = program._persistables()
        put(program, {n: v for n, v in state.items() if n in wanted}, "static.load")
        return
    state, wanted = plain_pickle(prefix + ".pdparams"), program._persistables()
    others = [name for name in wanted if name not in program._parameters]
    if others:
        if not os.path.exists(prefix + ".pdopt"):
            raise RuntimeError("static.load: the program has the state of an optimizer, but there is no "
                               f"{prefix}.pdopt")
        state.update(plain_pickle(prefix + ".pdopt"))
    missing = [name for name in wanted if name not in state]
    if missing:
        raise RuntimeError(f"static.load: {prefix} has no value of {', '.join(map(repr, missing[:5]))}")
    put(program, {name: state[name] for name in wanted}, "static.load")


# ---- for inference -------------------------------------------------------------------------------------------------

def _checked(feed_vars, fetch_vars, who):
    lists = []
    for what, items in (("feed_vars", feed_vars), ("fetch_vars", fetch_vars)):
        items = list(items) if isinstance(items, (list, tuple)) else [items]
        if not all(isinstance(v, _core.Tensor) and v.is_symbolic for v in items):
            raise ValueError(f"{who}: {what} must be a Variable or a list of Variables")
        lists.append(items)
    return lists


def keep_only_needed(program):
    """Drops what the program's outputs do not need."""
    _core.trim(program._core)
    program._parameters = {n: p for n, p in program._parameters.items() if program._core.find(n) is not None}


def normalize_program(program, feed_vars, fetch_vars, **kwargs):
    """A copy for prediction: only what computes fetch_vars from feed_vars."""
    if not isinstance(program, Program):
        raise TypeError(f"normalize_program: program must be a Program, got {type(program).__name__}")
    program._planned("normalize_program")
    feeds, fetches = _checked(feed_vars, fetch_vars, "normalize_program")
    copy = program.clone(for_test=True)
    found = []
    for items in (feeds, fetches):
        names = [true_name(program._core, v) for v in items]
        found.append([copy._core.find(name) for name in names])
        for name, var in zip(names, found[-1]):
            if var is None:
                raise ValueError(f"normalize_program: the program has no variable {name!r}")
    copy._core.set_inputs(found[0])
    copy._core.set_outputs(found[1])
    copy.lr_scheduler = copy.lr_var_name = None
    keep_only_needed(copy)
    needed = {name for op in copy.global_block().ops for name in op.input_arg_names + op.supplied()}.union(copy._core.outputs)
    unused = [name for name in copy._core.inputs if name not in needed]
    if unused:
        raise ValueError(f"normalize_program: fetch_vars do not depend on {', '.join(unused)}: leave it out of feed_vars")
    return copy


def _source(kwargs, fetch_vars):
    from .compiler import CompiledProgram
    program = kwargs.get("program")
    if isinstance(program, CompiledProgram):
        program = program._program
    if program is None:
        first = fetch_vars[0] if isinstance(fetch_vars, (list, tuple)) else fetch_vars
        program = program_of(first) if isinstance(first, _core.Tensor) and first.is_symbolic else \
            default_main_program()
    if not isinstance(program, Program):
        raise TypeError(f"program must be a Program, got {type(program).__name__}")
    return program


def save_inference_model(path_prefix, feed_vars, fetch_vars, executor, **kwargs):
    """Writes <path_prefix>.pdmodel and .pdiparams: what computes fetch_vars from feed_vars, with its parameters."""
    if not isinstance(path_prefix, str) or not os.path.basename(path_prefix):
        raise ValueError(f"save_inference_model: path_prefix must be folder/name, got {path_prefix!r}")
    for suffix in (".pdmodel", ".pdiparams"):
        if os.path.isdir(path_prefix + suffix):
            raise ValueError(f"save_inference_model: {path_prefix + suffix} is a folder")
    feeds, fetches = _checked(feed_vars, fetch_vars, "save_inference_model")
    program = normalize_program(_source(kwargs, fetches), feeds, fetches)
    for name in program._persistables():
        program._core.bind(name, value_of(program, name))
    os.makedirs(os.path.dirname(path_prefix) or ".", exist_ok=True)
    with mode.eager():
        program._core.save(path_prefix)


def _read(path):
    with open(path, "rb") as f:
        return f.read()


def _combined_folder(model, folder):
    """Bytes of a combined file for a program whose parameters are files of a folder."""
    from ..framework.tensor_file import persistable_names, read_tensor
    arrays = {}
    for name in persistable_names(model):
        with open(os.path.join(folder, name), "rb") as f:
            arrays[name] = read_tensor(f)
    return combined(arrays)


def _model_bytes(path_prefix, model_filename, params_filename):
    """(program, parameters or None) as bytes."""
    if path_prefix is None:
        if not isinstance(model_filename, bytes):
            raise ValueError("load_inference_model: without path_prefix, model_filename must be the model's bytes")
        return model_filename, params_filename or None
    folder = os.path.isdir(path_prefix) and (model_filename is not None or not os.path.isfile(path_prefix + ".pdmodel"))
    if not folder and model_filename is None:
        model = path_prefix + ".pdmodel"
        if not os.path.isfile(model):
            raise FileNotFoundError(f"load_inference_model: there is no {model}")
        params = path_prefix + ".pdiparams" if params_filename is None else \
            os.path.join(os.path.dirname(path_prefix), params_filename)
        return _read(model), _read(params) if os.path.isfile(params) else None
    root = path_prefix if folder else os.path.dirname(path_prefix)
    name = model_filename or "__model__"
    model = os.path.join(root, name)
    if not os.path.isfile(model) and os.path.isfile(model + ".pdmodel"):
        model += ".pdmodel"
    if not os.path.isfile(model):
        raise FileNotFoundError(f"load_inference_model: there is no {model}")
    data = _read(model)
    if params_filename is None:
        return data, _combined_folder(data, root)
    params = os.path.join(root, params_filename)
    if not os.path.isfile(params) and os.path.isfile(params + ".pdiparams"):
        params += ".pdiparams"
    return data, _read(params)


def load_inference_model(path_prefix, executor, **kwargs):
    """Reads an inference model, Paddle's or Proa's; returns [program, names of what is fed, variables to fetch].

    model_filename and params_filename name the files in a folder; with path_prefix None they are the contents.
    """
    unknown = set(kwargs) - {"model_filename", "params_filename", "pserver_endpoints"}
    if unknown:
        raise ValueError(f"load_inference_model: unknown options {sorted(unknown)}")
    if not isinstance(path_prefix, (str, os.PathLike, type(None))):
        raise ValueError(f"load_inference_model: path_prefix must be a string, got {type(path_prefix).__name__}")
    model, params = _model_bytes(path_prefix, kwargs.get("model_filename"), kwargs.get("params_filename"))
    with mode.eager():
        program = Program(_core.decode(model, params if params is not None else b""))._adopt_parameters()
        scope = global_scope()
        for name in program._persistables():
            value = program._core.value(name)
            if value is not None:
                scope.var(name).hold(value)
    fetches = [program._core.find(name) for name in program._core.outputs]
    program._any_shape.update(program._core.inputs)  # as far as the operators take it
    return [program, [name for name in program._core.inputs if "@LOD_" not in name], fetches]


# ---- as bytes ------------------------------------------------------------------------------------------------------

def serialize_program(feed_vars, fetch_vars, **kwargs):
    """The bytes of a .pdmodel: what computes fetch_vars from feed_vars."""
    feeds, fetches = _checked(feed_vars, fetch_vars, "serialize_program")
    program = normalize_program(_source(kwargs, fetches), feeds, fetches)
    return _core.encode(program._planned("serialize_program"), False)


def serialize_persistables(feed_vars, fetch_vars, executor, **kwargs):
    """The bytes of a .pdiparams: the values that serialize_program's program needs; None if it needs none."""
    feeds, fetches = _checked(feed_vars, fetch_vars, "serialize_persistables")
    program = normalize_program(_source(kwargs, fetches), feeds, fetches)
    names = program._persistables()
    return combined({name: array_of(program, name) for name in names}) if names else None


def deserialize_program(data):
    """The program that bytes hold; its variables have no values yet."""
    return Program.parse_from_string(data)


def deserialize_persistables(program, data, executor):
    """Sets a program's variables, in the global scope, from serialize_persistables' bytes."""
    if not isinstance(program, Program):
        raise TypeError(f"deserialize_persistables: program must be a Program, got {type(program).__name__}")
    if data is None:
        return
    put(program, split(data, program._persistables()), "deserialize_persistables")


def save_to_file(path, content):
    """Writes bytes."""
    if not isinstance(content, bytes):
        raise ValueError(f"save_to_file: content must be bytes, got {type(content).__name__}")
    with _core.FileWriter(path) as f:
        f.write(content)


def load_from_file(path):
    """A file's bytes."""
    return _read(path)
