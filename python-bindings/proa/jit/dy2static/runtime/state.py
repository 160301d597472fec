"""State that a block can change: the variables that it shares with the function around it, and the contents of the
lists, dicts and objects in them. It is read before a block, put back after it, and compared."""
import types

from .... import _core
from ..errors import refuse
from . import opaque
from .values import Tensor

UNDEFINED = object()
_ATOMS = (str, bytes, int, float, complex, type(None), type, types.ModuleType, types.BuiltinFunctionType)
_CODE = (types.FunctionType, types.MethodType)
_MOST = 2000  # containers looked at


def _cells(functions):
    """name -> cell of all that the functions, and functions in their variables, share."""
    found, others, todo, seen = {}, [], list(functions), set()
    while todo:
        function = todo.pop(0)
        if id(function) in seen:
            continue
        seen.add(id(function))
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            if id(cell) in seen:
                continue
            seen.add(id(cell))
            if function in functions and name not in found:
                found[name] = cell
            else:
                others.append((name, cell))
            content = _get(cell)
            if isinstance(content, types.MethodType):
                content = content.__func__
            if isinstance(content, types.FunctionType) and _is_ours(content):
                todo.append(content)
    return found, others


def _is_ours(function):
    from ..transform import is_converted
    return is_converted(function)


def _get(cell):
    try:
        return cell.cell_contents
    except ValueError:
        return UNDEFINED


class _Globals:
    """A global variable, used as a cell is."""

    def __init__(self, space, name):
        self.space, self.name = space, name

    def get(self):
        return self.space.get(self.name, UNDEFINED)

    def set(self, value):
        if value is UNDEFINED:
            self.space.pop(self.name, None)
        else:
            self.space[self.name] = value


class _Cell:
    def __init__(self, cell):
        self.cell = cell

    def get(self):
        return _get(self.cell)

    def set(self, value):
        if value is UNDEFINED:
            try:
                del self.cell.cell_contents
            except ValueError:
                pass
        else:
            self.cell.cell_contents = value


loops = []  # those that are being built, innermost last


class Grows(Exception):
    """A branch makes a list longer that was there before a loop round it: the loop makes it a tensor array."""

    def __init__(self, container, dtype):
        super().__init__("a list grows in a branch")
        self.container, self.dtype = container, dtype


class State:
    """functions: the blocks; names: what they bind."""

    def __init__(self, functions, names):
        cells, others = _cells(functions)
        space = functions[0].__globals__
        self.slots = {name: _Cell(cells[name]) if name in cells else _Globals(space, name) for name in names}
        more = [(name, cell) for name, cell in cells.items() if name not in names] + others
        self.others = {}
        for name, cell in more:
            self.others[name if name not in self.others else f"{name}'{len(self.others)}"] = _Cell(cell)
        self.before = {name: slot.get() for name, slot in self._all()}
        self.containers = {}  # id -> (container, its contents)
        self.tensors = {}     # id -> tensor object
        self.opaque = {}      # id -> what opaque.look saw
        self.iterators = {}   # id -> iterator
        for value in list(self.before.values()):
            self._follow(value, 0)

    def _all(self):
        yield from self.slots.items()
        yield from self.others.items()

    def rebind(self, name, value):
        """As if name had been value before the block."""
        self.containers.pop(id(self.before[name]), None)
        self.before[name] = value
        self.slot(name).set(value)
        self._follow(value, 0)

    def slot(self, name):
        return self.slots.get(name) or self.others[name]

    def _follow(self, value, depth):
        """Notes the contents of the containers, and the tensors, that can be reached from value."""
        if isinstance(value, Tensor):
            self.tensors[id(value)] = value
            return
        if isinstance(value, _ATOMS) and not isinstance(value, type) or value is UNDEFINED or \
                len(self.containers) > _MOST:
            return
        if isinstance(value, tuple):
            for one in value:
                self._follow(one, depth + 1)
            return
        if id(value) in self.containers or id(value) in self.opaque:
            return
        if isinstance(value, types.FunctionType):
            self._follow(value.__defaults__ or (), depth + 1)
            self._follow(value.__kwdefaults__ or (), depth + 1)
            value = value.__dict__
        seen = opaque.look(value)
        parts = []
        if isinstance(value, (list, set)):
            self.containers[id(value)] = value, type(value)(value) if type(value) in (list, set) else list(value)
            parts = list(value)
        elif isinstance(value, dict):
            self.containers[id(value)] = value, dict(value)
            parts = list(value.values())
        elif isinstance(value, _core.LayerBase):
            if depth > 1:
                return
            for part in (vars(value), value._buffers, value._parameters):
                if part is not None:
                    self.containers[id(part)] = part, dict(part)
            parts = [one for key, one in vars(value).items() if isinstance(one, (list, dict)) and key[:1] != "_"]
            parts += list(value._buffers.values()) if value._buffers else []
            for inner in value.sublayers(include_self=True):  # running statistics are parameters that are not trained
                self.tensors.update((id(one), one) for kind in (inner._buffers, inner._parameters) if kind
                                    for one in kind.values() if one is not None and one.stop_gradient)
        elif opaque.is_iterator(value):
            self.iterators[id(value)] = value
        elif hasattr(value, "__dict__") and not isinstance(value, (*_CODE, type)):
            self.containers[id(value.__dict__)] = value.__dict__, dict(value.__dict__)
            parts = list(value.__dict__.values())
        if seen:
            self.opaque[id(value)] = seen
            parts = parts + opaque.parts(seen)
        if depth < 6:
            for one in parts:
                self._follow(one, depth + 1)

    def name_of(self, key):
        """The user's name of a container."""
        container = self.containers[key][0] if key in self.containers else None
        for name, value in self.before.items():
            if value is container:
                return name
            if container is not None and getattr(value, "__dict__", None) is container:
                return f"an attribute of {name}"
        return "the contents of a list, dict or object"

    def restore(self):
        """Everything is again as it was."""
        for name, slot in self._all():
            if slot.get() is not self.before[name]:
                slot.set(self.before[name])
        for container, contents in self.containers.values():
            refill(container, contents)
        for value, content, same, put_back in self.opaque.values():
            if not same(value, content):
                put_back(value, content)

    def changed(self, place):
        """name -> value of the other variables that differ, id -> contents of the containers that do. place: the user's
        line, for what cannot be carried along."""
        for value, content, same, _ in self.opaque.values():
            if not same(value, content):
                what = f"class {value.__name__}" if isinstance(value, type) else type(value).__name__
                raise refuse(f"a {what} is changed in a branch or loop that only the run knows: a program carries "
                             "lists, dicts, attributes and tensors, and not this", place)
        names = {name: slot.get() for name, slot in self.others.items() if slot.get() is not self.before[name]}
        found = {}
        for key, (container, contents) in self.containers.items():
            if not _same(container, contents):
                found[key] = list(container) if isinstance(container, list) else type(contents)(container)
        return names, found


def _same(container, contents):
    if len(container) != len(contents):
        return False
    if isinstance(container, dict):
        return all(key in contents and contents[key] is value for key, value in container.items())
    if isinstance(container, set):
        return container == contents
    return all(one is other for one, other in zip(container, contents))


def refill(container, contents):
    """Gives a list, dict or set these contents, in place."""
    if _same(container, contents):
        return
    if isinstance(container, list):
        container[:] = contents
    else:
        container.clear()
        container.update(contents)
