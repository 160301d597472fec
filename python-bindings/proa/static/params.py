"""Values of variables in files: one stream for each variable, or all of them back to back in the order of names."""
import io
import os

from .. import _core
from .._errors import lacks
from ..framework.io import _to_array
from ..framework.tensor_file import BadFile, read_tensor, write_tensor
from .scope import global_scope

__all__ = ["load_program_state", "load_vars", "save_vars", "set_program_state"]


def by_bytes(names):
    """Names in the order of a combined file."""
    return sorted(names, key=lambda name: name.encode())


def value_of(program, name, scope=None):
    """The value of a persistable variable: the scope's, or that of a constant, which the program brought with it."""
    value = (scope or global_scope())._find(name)
    if value is None:
        value = program._core.value(name)
    if value is None:
        raise ValueError(f"the scope has no value of {name!r}: run the startup program first")
    return value


def array_of(program, name):
    """value_of as an array."""
    return _to_array(value_of(program, name))


def combined(arrays):
    """name → array as the bytes of a combined file."""
    out = io.BytesIO()
    for name in by_bytes(arrays):
        write_tensor(arrays[name], out)
    return out.getvalue()


def split(data, names):
    """The arrays of a combined file that holds these names."""
    from ..framework.tensor_file import _Reader
    reader = _Reader(io.BytesIO(data))
    try:
        arrays = {name: reader.tensor() for name in by_bytes(names)}
    except BadFile as e:
        raise ValueError(f"the parameters do not fit the program: {e}") from None
    if reader.left():
        raise ValueError("the parameters do not fit the program: there are more of them")
    return arrays


def put(program, arrays, who, scope=None):
    """Sets persistable variables of a program; shapes must agree."""
    from .variable import set_in_scope
    wanted = program._persistables()
    for name, array in arrays.items():
        shape, _ = wanted[name]
        if list(array.shape) != list(shape):
            raise RuntimeError(f"{who}: {name!r} has shape {list(shape)} in the program, and {list(array.shape)} in "
                               "the file")
        set_in_scope(program._variable(name), array, scope)


def _chosen(program, names, predicate):
    """Names of the persistable variables that a call is about."""
    if names is not None:
        return [n if isinstance(n, str) else n.name for n in names]
    return [n for n in program._persistables() if predicate is None or predicate(program._variable(n))]


def _program(main_program, names=None):
    """The program of a call, which variables among the names tell if it is not given."""
    from .program import Program, default_main_program
    from .variable import program_of
    of = next((one for one in names or () if not isinstance(one, str)), None) if main_program is None else None
    program = program_of(of) if of is not None else default_main_program() if main_program is None else main_program
    if not isinstance(program, Program):
        raise TypeError(f"main_program must be a Program, got {type(program).__name__}")
    return program


def save_vars(executor, dirname, main_program=None, vars=None, predicate=None, filename=None):
    """Writes variables: a file each in dirname, or all into dirname/filename."""
    program = _program(main_program, vars)
    arrays = {name: array_of(program, name) for name in _chosen(program, vars, predicate)}
    if dirname is None and filename is None:
        return combined(arrays)
    os.makedirs(dirname or ".", exist_ok=True)
    if filename is not None:
        with _core.FileWriter(os.path.join(dirname or "", filename)) as f:
            f.write(combined(arrays))
        return None
    for name, array in arrays.items():
        path = os.path.join(dirname, name)
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with _core.FileWriter(path) as f:
            write_tensor(array, f)
    return None


def load_vars(executor, dirname, main_program=None, vars=None, predicate=None, filename=None):
    """Reads what save_vars wrote into the global scope."""
    program = _program(main_program, vars)
    names = _chosen(program, vars, predicate)
    if filename is not None:
        with open(os.path.join(dirname or "", filename), "rb") as f:
            arrays = split(f.read(), names)
    else:
        arrays = {}
        for name in names:
            with open(os.path.join(dirname, name), "rb") as f:
                arrays[name] = read_tensor(f)
    put(program, arrays, "load_vars")


def plain_pickle(path):
    """The dict of arrays in a .pdparams or .pdopt."""
    from ..framework.io import NAMES, load
    state = load(path, return_numpy=True)
    if not isinstance(state, dict):
        raise ValueError(f"{path} holds no dict of values")
    state.pop(NAMES, None)
    return state


def stem(model_path):
    """The prefix that a path of one of its files stands for."""
    for suffix in (".pdparams", ".pdopt", ".pdmodel"):
        if model_path.endswith(suffix):
            return model_path[:-len(suffix)]
    return model_path


def load_program_state(model_path, var_list=None):
    """name → array of what static.save or save_vars wrote."""
    if not isinstance(model_path, (str, os.PathLike)):
        raise AttributeError(lacks("load_program_state", "endswith", "model_path", model_path, "a path"))
    prefix = stem(os.fspath(model_path))
    if os.path.exists(prefix + ".pdparams"):
        state = plain_pickle(prefix + ".pdparams")
        if os.path.exists(prefix + ".pdopt"):
            state.update(plain_pickle(prefix + ".pdopt"))
        return state
    if var_list is not None and not all(isinstance(v, _core.Tensor) for v in var_list):
        raise TypeError("load_program_state: var_list must hold Variables")
    if os.path.isdir(model_path):
        from ..framework.tensor_file import read_folder
        names = None if var_list is None else {v.name for v in var_list}
        return {name: array for name, array in read_folder(model_path).items() if names is None or name in names}
    if os.path.isfile(model_path):
        if var_list is None:
            raise ValueError("load_program_state: var_list must be given for a file that holds all variables")
        with open(model_path, "rb") as f:
            return split(f.read(), [v.name for v in var_list])
    raise ValueError(f"load_program_state: there is no {prefix}.pdparams, and no file or folder {model_path}")


def set_program_state(program, state_dict):
    """Sets a program's variables from name → array; names that the program lacks are skipped with a warning."""
    import warnings
    wanted = program._persistables()
    unused = [name for name in state_dict if name not in wanted]
    if unused:
        warnings.warn(f"set_program_state: the program has no {', '.join(unused)}", stacklevel=2)
    arrays = {name: value for name, value in state_dict.items() if name in wanted}
    for name, value in arrays.items():
        if isinstance(value, _core.Tensor):
            arrays[name] = _to_array(value)
    put(program, arrays, "set_program_state")
