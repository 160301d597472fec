"""fluid.io: readers, and saving and loading of a program's variables (save_params, save_inference_model, …)."""
import os

import numpy

from .. import batch
from ..framework.parameter import Parameter
from .reader import DataLoader, PyReader
from ..static.io import (load, load_program_state, save, set_program_state)
from ..static.program import Program, default_main_program
from ..static.scope import global_scope
from ..framework.io import load as _load, save as _save

__all__ = ["DataLoader", "PyReader", "batch", "get_program_parameter", "get_program_persistable_vars", "load", "load_inference_model",
           "load_params", "load_persistables", "load_program_state", "load_vars", "save", "save_inference_model", "save_params",
           "save_persistables", "save_vars", "set_program_state", "shuffle"]


def is_parameter(var):
    """Whether a variable is a parameter."""
    return isinstance(var, Parameter)


def is_persistable(var):
    """Whether a variable outlives a run."""
    return bool(var.persistable)


def get_program_parameter(program):
    """The parameters of a program."""
    return program.all_parameters()


def get_program_persistable_vars(program):
    """The persistable variables of a program."""
    return [var for var in program.list_vars() if is_persistable(var)]


def shuffle(reader, buf_size):
    """A reader whose items come in random order, within buffers."""
    from ..reader import shuffle as shuffled
    return shuffled(reader, buf_size)


def _chosen(main_program, vars, predicate):
    program = main_program or default_main_program()
    if not isinstance(program, Program):
        program = getattr(program, "_program", program)
    if not isinstance(program, Program):
        raise TypeError("The type of input main_program is invalid, expected type is fluid.Program or None")
    if vars is not None:
        return [program.global_block().var(v) if isinstance(v, str) else v for v in vars]
    return [var for var in program.list_vars() if predicate is None or predicate(var)]


def save_vars(executor, dirname, main_program=None, vars=None, predicate=None, filename=None):
    """Writes the values of variables: a file each in a folder, or one for all."""
    chosen = sorted(_chosen(main_program, vars, predicate), key=lambda var: var.name)
    values = {}
    for var in chosen:
        found = global_scope().find_var(var.name)
        if found is None or found.value is None:
            raise RuntimeError(f"save_vars: the scope has no value of {var.name!r}: run the startup program first")
        values[var.name] = found.value
    os.makedirs(dirname or ".", exist_ok=True)
    if filename is not None:
        _save({name: numpy.array(value) for name, value in values.items()}, os.path.join(dirname or "", filename))
        return
    for name, value in values.items():
        _save(value, os.path.join(dirname, name), use_binary_format=True)


def load_vars(executor, dirname, main_program=None, vars=None, predicate=None, filename=None):
    """Reads what save_vars wrote into the scope."""
    chosen = _chosen(main_program, vars, predicate)
    together = None if filename is None else _load(os.path.join(dirname or "", filename), return_numpy=True)
    for var in chosen:
        value = _load(os.path.join(dirname, var.name)) if together is None else together.get(var.name)
        if value is None:
            raise ValueError(f"load_vars: {filename} holds no {var.name!r}")
        value = numpy.asarray(getattr(value, "numpy", lambda: value)())
        if list(value.shape) != list(var.shape):
            raise RuntimeError(f"Variable's shape does not match, the Program requires a parameter with the shape of "
                               f"({tuple(var.shape)}), while the loaded parameter (namely [ {var.name} ]) has a shape of "
                               f"({value.shape}).")
        global_scope().var(var.name).get_tensor().set(value)


def save_params(executor, dirname, main_program=None, filename=None):
    """save_vars of the parameters."""
    save_vars(executor, dirname, main_program, predicate=is_parameter, filename=filename)


def load_params(executor, dirname, main_program=None, filename=None):
    """load_vars of the parameters."""
    load_vars(executor, dirname, main_program, predicate=is_parameter, filename=filename)


def save_persistables(executor, dirname, main_program=None, filename=None):
    """save_vars of all persistable variables."""
    save_vars(executor, dirname, main_program, predicate=is_persistable, filename=filename)


def load_persistables(executor, dirname, main_program=None, filename=None):
    """load_vars of all persistable variables."""
    load_vars(executor, dirname, main_program, predicate=is_persistable, filename=filename)


def save_inference_model(dirname, feeded_var_names, target_vars, executor, main_program=None, model_filename=None,
                         params_filename=None, export_for_deployment=True, program_only=False):
    """Writes the part of a program that target_vars need; returns their names."""
    from ..static.io import normalize_program, save_to_file, serialize_persistables, serialize_program
    program = main_program or default_main_program()
    feeds = [program.global_block().var(name) for name in
             ([feeded_var_names] if isinstance(feeded_var_names, str) else feeded_var_names)]
    targets = list(target_vars) if isinstance(target_vars, (list, tuple)) else [target_vars]
    os.makedirs(dirname, exist_ok=True)
    whole = normalize_program(program, feeds, targets)
    save_to_file(os.path.join(dirname, model_filename or "__model__"), serialize_program(feeds, targets, program=whole))
    if not program_only:
        save_to_file(os.path.join(dirname, params_filename or "__params__"),
                     serialize_persistables(feeds, targets, executor, program=whole))
    return [var.name for var in targets]


def load_inference_model(dirname, executor, model_filename=None, params_filename=None, pserver_endpoints=None):
    """[program, names of the variables to feed, variables to fetch]."""
    from ..static.io import load_inference_model as _read
    model = model_filename or "__model__"
    params = params_filename or ("__params__" if os.path.exists(os.path.join(dirname, "__params__")) else None)
    return _read(dirname, executor, model_filename=model, params_filename=params)
