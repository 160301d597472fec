"""Objects whose state a block cannot carry into a program: arrays, queues, generators of random numbers, slots,
attributes of classes, iterators.
They are looked at before a block and after it: one that it changed is refused, instead of being changed once, while
the program is built."""
import array
import collections
import random
import types

_PLAIN = (*(kind for kind in vars(types).values() if isinstance(kind, type)), type(None), bool, int, float, complex,
          str, bytes, tuple, range, slice)
_CLASS_OWN = frozenset(("__dict__", "__weakref__", "__doc__", "__module__", "__abstractmethods__", "_abc_impl"))


def _bytes(value):
    return bytes(memoryview(value).cast("B")) if isinstance(value, array.array) else bytes(value)


def _of_bytes(value, content):
    value[:] = content if isinstance(value, bytearray) else type(value)(value.typecode, content)


def _of_queue(value, content):
    value.clear()
    value.extend(content)


def _is_numpy(value):
    return type(value).__module__ == "numpy" and type(value).__name__ == "ndarray" and not value.dtype.hasobject


def _of_numpy(value, content):
    value[...] = content


def _attributes(value):
    return {name: one for name, one in vars(value).items() if name not in _CLASS_OWN}


def _slots(value):
    names = []
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        names += [slots] if isinstance(slots, str) else slots
    return {name: getattr(value, name) for name in names if not name.startswith("__") and hasattr(value, name)}


def _of_attributes(value, content):
    now = _slots(value) if not isinstance(value, type) else _attributes(value)
    for name in now.keys() - content.keys():
        delattr(value, name)
    for name, one in content.items():
        if now.get(name, now) is not one:
            setattr(value, name, one)


def _same_bytes(value, content):
    return _bytes(value) == content


def _same_queue(value, content):
    return len(value) == len(content) and all(one is other for one, other in zip(value, content))


def _same_numpy(value, content):
    return value.shape == content.shape and value.tobytes() == content.tobytes()


def _same_attributes(value, content):
    now = _slots(value) if not isinstance(value, type) else _attributes(value)
    return now.keys() == content.keys() and all(now[name] is one for name, one in content.items())


def _same_draws(value, content):
    return value.getstate() == content


def look(value):
    """(value, its content, whether it is still that, how to put it back); None for what has no state of these kinds."""
    if isinstance(value, _PLAIN):
        return None
    if isinstance(value, (bytearray, array.array)):
        return value, _bytes(value), _same_bytes, _of_bytes
    if isinstance(value, collections.deque):
        return value, list(value), _same_queue, _of_queue
    if isinstance(value, random.Random):
        return value, value.getstate(), _same_draws, random.Random.setstate
    if isinstance(value, type):
        own = value.__flags__ & 1 << 9 and "<locals>" in value.__qualname__  # made by a class statement in a function
        return (value, _attributes(value), _same_attributes, _of_attributes) if own else None
    if _is_numpy(value):
        return value, value.copy(), _same_numpy, _of_numpy
    if any("__slots__" in kind.__dict__ for kind in type(value).__mro__ if kind.__flags__ & 1 << 9):
        return value, _slots(value), _same_attributes, _of_attributes
    return None


def parts(seen):
    """The objects inside of one that was looked at."""
    content = seen[1]
    if isinstance(content, dict):
        return list(content.values())
    return content if isinstance(content, list) else []


def is_iterator(value):
    return hasattr(type(value), "__next__")
