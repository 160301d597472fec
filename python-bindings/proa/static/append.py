"""Block.append_op, prepend_op and _insert_op: operators given by their type, slots and attributes in Paddle's
format."""
import collections
import re

from .. import _core
from ..framework import unique_name
from ..framework.dtype import to_dtype
from .host_ops import LATE
from .late import core_name, late_of, needs_a_value
from .variable import true_name


def _items(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _names(program, op_type, slots):
    """slot → names of a dict of variables, names, and lists of either."""
    if slots is None:
        return {}
    if not isinstance(slots, dict):
        raise TypeError(f"append_op: {op_type}: inputs and outputs must be dicts, got {type(slots).__name__}")
    named = {}
    for slot, value in slots.items():
        try:
            names = [true_name(program, one) for one in _items(value) if one is not None]
        except TypeError as e:
            raise TypeError(f"append_op: {op_type}: slot {slot}: {e}") from None
        if value is not None:
            named[slot] = names
    return named


def attribute(op_type, name, value):
    """A value as the core takes it: numbers, strings, lists of one kind."""
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [attribute(op_type, name, one) for one in value]
    if hasattr(value, "tolist"):  # NumPy's numbers and arrays
        return attribute(op_type, name, value.tolist())
    try:
        return value.value if isinstance(value, _core.dtype) else to_dtype(value).value
    except TypeError:
        raise TypeError(f"append_op: {op_type}: attribute {name} must be a number, a string, a dtype or a list of "
                        f"such, got {type(value).__name__}") from None


def _attributes(program, op_type, attrs):
    """Values by name. Variables that supply one are (name,) or ([name, …],)."""
    values = {}
    for name, value in (attrs or {}).items():
        items = _items(value)
        if items and all(isinstance(one, _core.Tensor) and one.is_symbolic for one in items):
            names = [true_name(program, one) for one in items]
            values[name] = (names if isinstance(value, (list, tuple)) else names[0],)
        elif value is not None:
            values[name] = attribute(op_type, name, value)
    return values


def described(program, block):
    """For each of a block's ops, in the core's order, the operators that it is in Paddle's format. Where an op makes a
    variable that only goes to a persistable one, as in startup programs, that is one operator, as in Paddle."""
    wires = [list(wire) for wire in _core.describe(program, block)]
    reads = collections.Counter(name for wire in wires for _, inputs, *_ in wire for names in inputs.values()
                                for name in names)
    for before, wire in zip(wires, wires[1:]):
        if len(wire) != 1 or not before or wire[0][0] != "assign" or len(wire[0][1].get("X", ())) != 1:
            continue
        (source,), (target,) = wire[0][1]["X"], wire[0][2]["Out"]
        kind, inputs, outputs, *rest = before[-1]
        if kind in _DRAWN and outputs == {"Out": [source]} and reads[source] == 1 and source not in inputs:
            before[-1] = (kind, inputs, {"Out": [target]}, *rest)
            wire.clear()
    return wires


# Operators that initializers make.
_DRAWN = ("assign_value", "cast", "eye", "fill_constant", "gaussian_random", "truncated_gaussian_random", "uniform_random")


def _place(program, index):
    """The core's number of the operator that stands at an index of Block.ops."""
    begin = 0
    for i, wire in enumerate(described(program, 0)):
        if begin == index:
            return i
        begin += len(wire)
    if begin == index:
        return -1
    raise IndexError(f"_insert_op: there is no place {index} between operators: there are {begin}, and some belong "
                     "together")


def _feed_declared(block, names):
    """Declared variables that an operator reads and none makes are fed."""
    program = block.program._core
    for name in names:
        if _core.is_declared(program, name):
            declared = program.find(name)
            made = program.data(name, list(declared.shape), declared.dtype)
            if name in block.program._wanting:
                block.program._fed_wanting.add(name)
            levels = block.program._declared_lod.get(name)
            if levels:
                program.data_lod(made, levels)


_FED = re.compile(r"output \w+ names '(.+?)', which is fed")
_COMPARISONS = ("equal", "greater_equal", "greater_than", "less_equal", "less_than", "not_equal")
_COMPLEX = ("elementwise_add", "elementwise_div", "elementwise_mul", "elementwise_sub", "kron", "matmul_v2")


def _of_one_dtype(program, type, sources):
    """The names of an operator's inputs, with a cast in front where Paddle's run converts one of the two: a comparison's
    second to the dtype of the first, a real number beside a complex one."""
    if type not in _COMPARISONS and type not in _COMPLEX or any(len(sources.get(slot, ())) != 1 for slot in "XY"):
        return sources
    x, y = (program.find(sources[slot][0]) for slot in "XY")
    if x is None or y is None or x.dtype == y.dtype:
        return sources
    if type in _COMPARISONS:
        slot, dtype = "Y", x.dtype
    elif x.is_complex() != y.is_complex():
        slot, dtype = ("Y", x.dtype) if x.is_complex() else ("X", y.dtype)
    else:
        return sources
    name, source = unique_name.generate("cast"), program.find(sources[slot][0])
    _core.append(program, "cast", {"X": sources[slot]}, {"Out": [name]},
                 {"in_dtype": source.dtype.value, "out_dtype": dtype.value}, -1)
    return {**sources, slot: [name]}


def append(block, type, inputs, outputs, attrs, stop_gradient=False, index=None):
    """Appends an operator, or puts it in front of operator `index`; returns the Operator."""
    from .program import Operator
    if not isinstance(type, str):
        raise TypeError(f"append_op: type must be a string, got {type.__class__.__name__}")
    program = block.program._core
    sources, results = _names(program, type, inputs), _names(program, type, outputs)
    late = late_of(block.program) if type in LATE else block.program._late
    for names in sources.values():
        _feed_declared(block, names)
    if index is None:
        sources = _of_one_dtype(program, type, sources)
    values = _attributes(program, type, attrs)
    role, device = values.pop("op_role", None), values.pop("op_device", None)
    operator = Operator(block, (type, sources, results, values, role or 0))
    if type in LATE:
        late.append(type, sources, results, values)
        for slot, names in results.items():
            for one, name in zip([v for v in _items(outputs[slot]) if v is not None], names):
                _renew(program, one, name, stop_gradient)
        return operator
    written = [(program.find(name), name) for names in results.values() for name in names] if late is not None else ()
    before = program.set_role(role) if isinstance(role, int) else None
    was = _core.set_op_device(device) if device else None
    try:
        _append_fed(block.program, type, sources, results, values, -1 if index is None else _place(program, index))
    except (NotImplementedError, RuntimeError) as error:
        if index is not None or not needs_a_value(error):
            raise
        late_of(block.program).append(type, sources, results, values)
        return operator
    finally:
        if before is not None:
            program.set_role(before)
        if was is not None:
            _core.set_op_device(was)
    for slot, names in results.items():
        for one, name in zip([v for v in _items(outputs[slot]) if v is not None], names):
            _renew(program, one, name, stop_gradient)
    for old, name in written:
        if old is not None and core_name(program, old) != name:
            late.rewritten(old, name)
    return operator


def _append_fed(owner, type, sources, results, values, place):
    """Appends to the core. What is fed keeps its name: the variable that an operator makes of it has another one, by which
    the program finds it from now on."""
    program = owner._core
    now = owner._rewritten
    sources = {slot: [now.get(name, name) for name in names] for slot, names in sources.items()} if now else sources
    while True:
        try:
            return _core.append(program, type, sources, results, values, place)
        except NotImplementedError as error:
            fed = _FED.search(str(error))
            if fed is None:
                raise
            fresh = unique_name.generate(fed[1] + ".now")
            for names in results.values():
                names[:] = [fresh if name == fed[1] else name for name in names]
            now[fed[1]] = fresh


def _renew(program, one, name, stop_gradient):
    """A variable that the caller holds goes on as what the operator has made of it."""
    if not isinstance(one, _core.Tensor) or _core.is_declared(program, name):
        return
    try:
        _core.follow(program, one, name)
    except ValueError:  # no variable of that name is in this block or around it
        return
    if stop_gradient:
        one.stop_gradient = True
