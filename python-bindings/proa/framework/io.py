"""paddle.save and paddle.load: pickles that real Paddle reads and writes too, read by an interpreter that runs
no code (unpickle.py). NumPy and pickle are imported at first use."""
import os
import sys
import warnings
from collections import OrderedDict, defaultdict

from .. import _core
from .parameter import Parameter as EagerParamBase  # noqa: F401 - programs take it from here
from .random import GeneratorState

NAMES = "StructuredToParameterName@@"
PIECES = "UnpackBigParamInfor@@"
_PIECE_BYTES = 2 ** 30 - 1      # protocols 2 and 3 cannot hold more than 4 GB in one object


# ---- saving ----

def _is_layer(value):
    layers = sys.modules.get(__package__.rpartition(".")[0] + ".nn.layer.layers")
    return layers is not None and isinstance(value, layers.Layer)


def _is_static(value, module, kind):
    """Whether value is of a class of paddle.static, which need not be loaded for that."""
    found = sys.modules.get(f"{__package__.rpartition('.')[0]}.static.{module}")
    return found is not None and isinstance(value, getattr(found, kind))


def _holds_paddle(value):
    if isinstance(value, _core.Tensor) or _is_layer(value):
        return True
    if type(value) in (dict, OrderedDict):
        value = value.values()
    elif type(value) not in (list, tuple):
        return False
    return any(_holds_paddle(v) for v in value)


def _is_state_dict(obj):
    """A dict of tensors, and of dicts without any, is stored as arrays with a table of names."""
    return isinstance(obj, dict) and all(
        isinstance(v, _core.Tensor) or isinstance(v, dict) and not any(_holds_paddle(x) for x in v.values())
        for v in obj.values())


def _to_array(tensor):
    import numpy as np
    if tensor.is_dist():
        raise TypeError("paddle.save: a tensor is on a mesh of processes, each of which has a part; use paddle.distributed.save_state_dict, "
                        "or save tensor.numpy(), which all processes call")
    return np.ascontiguousarray(np.asarray(_core.memory(tensor))).reshape(tensor.shape)


def _state_arrays(state, protocol):
    """The arrays of a state dict, its table of names, and for old protocols the pieces of huge arrays."""
    arrays = {k: _to_array(v) if isinstance(v, _core.Tensor) else v for k, v in state.items()}
    arrays[NAMES] = {k: v.name for k, v in state.items() if isinstance(v, _core.Tensor)}
    if protocol >= 4:
        return arrays
    import numpy as np
    table, pieces = {}, {}
    for key, value in list(arrays.items()):
        if not isinstance(value, np.ndarray) or value.size <= _PIECE_BYTES // value.dtype.itemsize:
            continue
        step, flat = _PIECE_BYTES // value.dtype.itemsize, value.reshape(-1)
        table[key] = {"OriginShape": value.shape, "slices": []}
        for i in range(-(-flat.size // step)):
            table[key]["slices"].append(f"{key}@@.{i}")
            pieces[f"{key}@@.{i}"] = flat[i * step:(i + 1) * step]
        del arrays[key]
    if table:
        arrays.update(pieces)
        arrays[PIECES] = table
    return arrays


class _Raw:
    """The bytes of a large array, which are written from where they lie."""

    def __init__(self, array):
        self.view = memoryview(array.reshape(-1)).cast("B")


def _reduce_large(array, protocol):
    """The result of array.__reduce__, without the copy of its bytes; NotImplemented: its own will do."""
    import numpy as np
    fits = 1 << 16 <= array.nbytes <= 0xffffffff or array.nbytes > 0xffffffff and protocol >= 4
    plain = type(array) is np.ndarray and array.flags.c_contiguous and array.dtype.kind in "biufc"
    if protocol < 3 or not fits or not plain:
        return NotImplemented
    make, args, state = np.empty(0, array.dtype).__reduce__()
    return make, args, (state[0], array.shape, array.dtype, False, _Raw(array))


def _pickler(file, protocol, others):
    """A pickler of tensors, arrays and plain data; of other objects by their class, which `others` tells. Arrays are written under
    the names that NumPy 1 and 2 and real Paddle all know."""
    import argparse
    import pickle

    import numpy as np
    new_numpy = np._core if hasattr(np, "_core") and int(np.__version__.split(".")[0]) >= 2 else None
    basic = {type(None), bool, int, float, str, bytes, list, tuple, dict}
    plain = (np.ndarray, np.generic, np.dtype, OrderedDict, defaultdict, set, frozenset, complex, bytearray, slice,
             range, argparse.Namespace)

    def reduce(self, obj):
        if type(obj) in basic:
            return NotImplemented
        if isinstance(obj, _core.Tensor):
            return tuple, ((obj.name, _to_array(obj)),)
        if type(obj) is GeneratorState:
            return tuple, (tuple(obj),)
        if _is_layer(obj):
            raise ValueError("paddle.save: a paddle.nn.Layer cannot be saved; save its state_dict()")
        if isinstance(obj, np.ndarray) and obj.dtype.hasobject:
            raise TypeError("paddle.save: an array of Python objects cannot be saved; make it a list")
        if isinstance(obj, (type, np.ufunc)) or callable(obj) or type(obj) in plain or isinstance(obj, plain[:3]):
            if not isinstance(obj, plain[:3]) and callable(obj) and not _allowed(obj):
                others.append(f"{obj!r}")
            return NotImplemented
        others.append(f"a {type(obj).__module__}.{type(obj).__qualname__}")
        return NotImplemented

    def reduce_large(self, obj):
        if type(obj) is _Raw:
            return NotImplemented
        found = reduce(self, obj)
        return _reduce_large(obj, protocol) if found is NotImplemented and isinstance(obj, np.ndarray) else found

    def save_raw(self, raw):
        import struct
        n = raw.view.nbytes
        head = pickle.BINBYTES + struct.pack("<I", n) if n <= 0xffffffff else pickle.BINBYTES8 + struct.pack("<Q", n)
        self._write_large_bytes(head, raw.view)
        self.memoize(raw)

    if new_numpy is None:
        return type("Pickler", (pickle.Pickler,), {"reducer_override": reduce})(file, protocol)

    def save_global(self, obj, name=None):      # numpy._core is NumPy 2's name of numpy.core
        module = getattr(obj, "__module__", None) or ""
        if not module.startswith("numpy._core"):
            return pickle._Pickler.save_global(self, obj, name)
        module, name = module.replace("numpy._core", "numpy.core"), obj.__qualname__
        if self.proto >= 4:
            self.save(module)
            self.save(name)
            self.write(pickle.STACK_GLOBAL)
        else:
            self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
        self.memoize(obj)

    return type("Pickler", (pickle._Pickler,), {
        "reducer_override": reduce_large, "save_global": save_global,
        "dispatch": {**pickle._Pickler.dispatch, type(_core.set_recording): save_global, _Raw: save_raw},
    })(file, protocol)


def _allowed(function):
    from .unpickle import ALLOWED, canonical
    name = getattr(function, "__qualname__", "")
    return canonical(getattr(function, "__module__", ""), name) in ALLOWED or name in ("__newobj__", "__newobj_ex__")


class _FileObject:
    """A caller's file object as a save's target."""

    def __init__(self, file):
        self.file = file

    def __enter__(self):
        return self.file

    def __exit__(self, kind, value, trace):
        if kind is None and hasattr(self.file, "flush"):
            self.file.flush()


def _target(path):
    """Target of a save: a file object, or a path whose file is replaced when all is written."""
    if hasattr(path, "write"):
        return _FileObject(path)
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(f"paddle.save: path must be a str, a path or a file object, got {type(path).__name__}")
    path = os.fspath(path)
    folder, base = os.path.split(path)
    if not base:
        raise ValueError(f"paddle.save: path must be folder/name, but {path!r} has no file name")
    if folder:
        os.makedirs(folder, exist_ok=True)
    return _core.FileWriter(path)


def save(obj, path, protocol=4, **configs):
    """Saves tensors, state dicts and nested containers of them to a path or file object; a static program as its .pdmodel.

    The file appears whole or not at all. Real Paddle reads it. protocol: 2, 3 or 4.
    use_binary_format=True writes one tensor as Paddle's binary stream.
    """
    for key in configs:
        if key not in ("use_binary_format", "pickle_protocol"):
            raise ValueError(f"paddle.save: the option {key!r} is unknown")
    binary = configs.get("use_binary_format", False)
    if not isinstance(binary, bool):
        raise TypeError(f"paddle.save: use_binary_format must be a bool, got {type(binary).__name__}")
    if configs.get("pickle_protocol") is not None:
        warnings.warn("paddle.save: pickle_protocol is deprecated, use protocol", DeprecationWarning, stacklevel=2)
        protocol = configs["pickle_protocol"]
    if binary:
        if not isinstance(obj, _core.Tensor):
            raise NotImplementedError(
                f"paddle.save: use_binary_format saves one Tensor, got {type(obj).__name__}")
        from .tensor_file import write_tensor
        with _target(path) as f:
            write_tensor(_to_array(obj), f)
        return
    if not isinstance(protocol, int):
        raise ValueError(f"paddle.save: protocol must be an int, got {type(protocol).__name__}")
    if not 2 <= protocol <= 4:
        raise ValueError(f"paddle.save: protocol must be 2, 3 or 4, got {protocol}")
    if _is_static(obj, "program", "Program"):
        with _target(path) as f:
            f.write(obj.desc.serialize_to_string())
        return
    if isinstance(obj, (bytes, bytearray, range, frozenset)):
        raise NotImplementedError(f"paddle.save: of sequences it saves lists, tuples, dicts, sets and str, got {type(obj).__name__}")
    if isinstance(obj, dict):  # a program's state dict: the scope's tensors
        obj = type(obj)((k, v._value() if _is_static(v, "scope", "ScopeTensor") else v) for k, v in obj.items()) \
            if type(obj) in (dict, OrderedDict) else obj
    elif _is_static(obj, "scope", "ScopeTensor"):
        obj = obj._value()
    if _is_state_dict(obj):
        if not obj:
            warnings.warn("paddle.save: the state dict is empty", stacklevel=2)
        obj = _state_arrays(obj, protocol)
    others = []
    with _target(path) as f:
        _pickler(f, protocol, others).dump(obj)
    if others:
        warnings.warn(f"paddle.save: {others[0]} is neither a tensor, an array nor plain Python data: paddle.load refuses the file, "
                      "since loading runs no code; pickle.load reads it", stacklevel=2)


# ---- loading ----

class _Source:
    """An open, seekable file for a path or file object. A file object is put back where it was on an error."""

    def __init__(self, path):
        self.path, self.owned = path, not hasattr(path, "read")
        if self.owned:
            self.file = open(path, "rb")
        else:
            import io
            self.file = path if path.seekable() else io.BytesIO(path.read())
        self.start = self.file.tell()

    def __enter__(self):
        return self.file

    def __exit__(self, kind, value, trace):
        if self.owned:
            self.file.close()
        elif kind is not None:
            self.file.seek(self.start)


def _join_pieces(state):
    import numpy as np
    table = state.pop(PIECES)
    try:
        for key, entry in table.items():
            state[key] = np.concatenate([state[name] for name in entry["slices"]]).reshape(entry["OriginShape"])
        for entry in table.values():
            for name in entry["slices"]:
                del state[name]
    except (AttributeError, KeyError, TypeError, ValueError) as e:
        raise ValueError(f"paddle.load: the file's pieces of a large array do not fit together: {e}") from None


def _is_saved_tensor(value):
    import numpy as np
    return type(value) is tuple and len(value) == 2 and type(value[0]) is str and isinstance(value[1], np.ndarray)


def _parts(value):
    """Members of a list, tuple or dict; none if they are numbers and text alone, as in long lists."""
    from .unpickle import PLAIN
    parts = value.values() if isinstance(value, dict) else value
    return () if PLAIN.issuperset(map(type, parts)) else parts


class _Converter:
    """Makes Tensors of what stands for them: (name, array) pairs, or every array if there is no such pair."""

    def __init__(self, return_numpy):
        self.return_numpy, self.seen = return_numpy, {}
        self.taken = {}     # id → an array whose memory has become a tensor's

    def holds_pair(self, value, seen):
        if _is_saved_tensor(value):
            return True
        if type(value) not in (dict, OrderedDict, list, tuple) or id(value) in seen:
            return False
        seen.add(id(value))
        return any(self.holds_pair(v, seen) for v in _parts(value))

    def run(self, value):
        self.pairs = self.holds_pair(value, set())
        return self.convert(value)

    def convert(self, value):
        import numpy as np
        if self.pairs and _is_saved_tensor(value):
            return self.tensor(value[1], value[0])
        if not self.pairs and isinstance(value, np.ndarray):
            return self.tensor(value)
        if type(value) not in (dict, OrderedDict, defaultdict, list, tuple) or not _parts(value):
            return value
        if id(value) in self.seen:
            return self.seen[id(value)][1]
        if type(value) is tuple:
            result = tuple(self.convert(v) for v in value)
            self.seen[id(value)] = (value, result)
            return result
        self.seen[id(value)] = (value, value)
        for key in (range(len(value)) if type(value) is list else list(value)):
            value[key] = self.convert(value[key])
        return value

    def may_take(self, array):
        """Whether a tensor may have the array's memory: it was read for this array alone (small ones are read-only,
        on bytes that others may share), no tensor has it yet, and it is laid out as a tensor on the CPU."""
        if not (array.flags.writeable and array.flags.c_contiguous and array.dtype.kind in "fi" and
                _core.get_device() == "cpu"):
            return False
        count = len(self.taken)
        self.taken[id(array)] = array
        return len(self.taken) > count

    def tensor(self, array, name=None):
        if self.return_numpy:
            return array
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        tensor = _core.from_numpy(array) if self.may_take(array) else _core.to_tensor(array)
        if name:
            tensor.name = name
        return tensor


def _named_state(state, options):
    import numpy as np
    convert, table = _Converter(options["return_numpy"]), state[NAMES]
    if not isinstance(table, dict):
        raise ValueError(f"paddle.load: the file's {NAMES} is not a table")
    for key, name in table.items():
        if isinstance(state.get(key), np.ndarray):
            state[key] = convert.tensor(state[key], name if isinstance(name, str) else None)
    if not options["keep_name_table"]:
        del state[NAMES]
    return state


def _load_pickle(file, where):
    """The plain value of a pickle; None and the reason if the bytes are none."""
    import pickle

    from .unpickle import Malformed, Refused, Unpickler
    start = file.tell()
    try:
        return (Unpickler(file).load(),), None
    except Refused as e:
        raise pickle.UnpicklingError(f"paddle.load: {where} is refused: {e}. Loading runs no code.") from None
    except Malformed as e:
        file.seek(start)
        return None, str(e)


def _load_program(file, why):
    """The static program that the bytes hold; ValueError if they hold none."""
    from ..static.program import Program
    try:
        return Program.parse_from_string(file.read())
    except (RuntimeError, ValueError):
        raise ValueError(why) from None


def _load_file(path, options):
    where = path if isinstance(path, (str, os.PathLike)) else "the file object"
    with _Source(path) as file:
        found, reason = _load_pickle(file, where)
        if found is None:
            from .tensor_file import BadFile, read_tensor
            start = file.tell()
            try:
                found = (read_tensor(file),)
            except BadFile:
                file.seek(start)
                return _load_program(file, f"paddle.load: cannot read {where}: {reason}")
        value = found[0]
        if isinstance(value, dict):
            if PIECES in value:
                _join_pieces(value)
            if NAMES in value:
                return _named_state(value, options)
        return _Converter(options["return_numpy"]).run(value)


def _load_model(path, options):
    """name → array of what jit.save, save_inference_model or Paddle 1's save_params wrote."""
    from .tensor_file import read_folder, read_inference_params
    path = os.fspath(path)
    prefix, folder = os.path.exists(path + ".pdmodel"), os.path.isdir(path)
    if prefix and folder:
        raise ValueError(f"paddle.load: both {path}.pdmodel and the folder {path} exist; name the one to load")
    if not (prefix or folder):
        hint = "; give the full file name, as in paddle.load('model.pdparams')" \
            if os.path.exists(path + ".pdparams") or os.path.exists(path + ".pdopt") else ""
        raise ValueError(f"paddle.load: {path} does not exist{hint}")
    if prefix:
        program, params = path + ".pdmodel", path + ".pdiparams"
        if options["model_filename"] or options["params_filename"]:
            warnings.warn("paddle.load: model_filename and params_filename have no effect with a file prefix",
                          stacklevel=3)
    else:
        program = os.path.join(path, options["model_filename"] or "__model__")
        params = options["params_filename"] and os.path.join(path, options["params_filename"])
        if not os.path.exists(program):
            return read_folder(path)
    arrays = read_inference_params(program, params, path)
    info = f"{params}.info"
    if not params or not os.path.exists(info):
        return arrays
    with open(info, "rb") as f:
        found, reason = _load_pickle(f, info)
    table = found[0] if found else None
    if not isinstance(table, dict) or not all(isinstance(table.get(n), dict) and
                                              isinstance(table[n].get("structured_name"), str) for n in arrays):
        raise ValueError(f"paddle.load: {info} does not name every variable" + (f": {reason}" if reason else ""))
    return {table[name]["structured_name"]: array for name, array in arrays.items()}


def load(path, **configs):
    """Loads what paddle.save wrote, here or in real Paddle, without running code from the file.

    path: a file, a file object, or (for the parameters of a saved inference model) its prefix or folder.
    return_numpy=True gives arrays in place of Tensors; keep_name_table=True keeps a state dict's table of
    parameter names. A file that asks for anything but plain data raises pickle.UnpicklingError.
    """
    options = {"model_filename": None, "params_filename": None, "keep_name_table": None, "return_numpy": False}
    for key in configs:
        if key not in options:
            raise ValueError(f"paddle.load: the option {key!r} is unknown")
    options.update(configs)
    if isinstance(path, _core.Tensor) and path.is_symbolic:
        raise TypeError("paddle.load: path must be a str, a path or a file object, got Tensor")
    if hasattr(path, "read") or os.path.isfile(path):
        return _load_file(path, options)
    return _load_model(path, options)
