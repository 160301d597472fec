"""Reads pickles without running code: a small interpreter of pickle's opcodes, protocols 0 to 5, whose globals
are a fixed list of plain data constructors written here. Whatever else a file names is refused, before it is
looked up. NumPy is imported when the first array is met."""
import re
import struct
from collections import OrderedDict, defaultdict

DEPTH = 256             # deepest nesting of containers that is read
KEY_PARTS = 10_000      # a hashed value (key of a dict, member of a set) may hold that many parts
SAME_HASH = 64          # keys of one dict or set that may have the same hash
SMALL = 2 ** 61 - 1     # integers below it have hashes of their own
WORK = 10_000_000       # parts of keys and of arguments that any file may have handled; larger ones 8 a byte more
MEMO = 1 << 24          # highest memo index
LARGE = 1 << 20         # bytes that are read where they are wanted
FEW = 16                # small values in a row, behind which more are looked for at once
BATCH = 1 << 16         # bytes that are looked at then
VALUES = frozenset((b"N", b"\x88", b"\x89", b"K", b"M", b"J", b"G"))


class Refused(Exception):
    """The file asks for something that is not plain data."""


class Malformed(Exception):
    """The bytes are no pickle, or end early."""


# ---- what the allowed globals make ----

class _Type:
    """An allowed global: a name that may stand on the stack, and what calling it gives."""

    def __init__(self, name, make):
        self.name, self.make = name, make


class _DType:
    """A NumPy dtype while it is being built: a code such as 'f4', and a byte order."""
    CODE = re.compile(r"[<>=|]?(\?|b1|[iu][1248]|f[248]|c8|c16|[SU]\d{1,9})\Z")

    def __init__(self, code):
        if not isinstance(code, str) or not self.CODE.match(code):
            raise Refused(f"it holds a NumPy dtype {code!r}; only numbers, booleans and fixed-width text are read")
        self.code, self.order = code, None

    def build(self, state):
        if not (isinstance(state, tuple) and len(state) in (8, 9) and state[1] in ("<", ">", "|", "=")):
            raise Malformed("a NumPy dtype's state is not one")
        if state[2:5] != (None, None, None):
            raise Refused("it holds a structured NumPy dtype")
        self.order = state[1]

    def numpy(self):
        import numpy as np
        dtype = np.dtype(self.code)
        return dtype.newbyteorder(self.order) if self.order in ("<", ">") else dtype


class _Span:
    """Bytes that still lie in the file: an array's are read straight into its memory."""

    def __init__(self, file, count):
        self.file, self.at, self.count = file, file.tell(), count
        file.seek(count, 1)

    def __len__(self):
        return self.count

    def read(self):
        """The bytes in new memory of a tensor's kind, which a tensor may take over."""
        from .. import _core
        memory, here, done = memoryview(_core.memory(_core.empty_bytes(self.count))), self.file.tell(), 0
        self.file.seek(self.at)
        while done < self.count:
            if hasattr(self.file, "readinto"):
                got = self.file.readinto(memory[done:])
            else:
                piece = self.file.read(self.count - done)
                got = len(piece)
                memory[done:done + got] = piece
            if not got:
                raise Malformed("it ends early")
            done += got
        self.file.seek(here)
        return memory


def _to_bytes(value):
    if isinstance(value, _Span):
        return value.read().tobytes()
    if isinstance(value, str):              # Python 2's str, read as latin-1
        return value.encode("latin1")
    if not isinstance(value, (bytes, bytearray)):
        raise Malformed("a NumPy array's data is not bytes")
    return value


def _array(dtype, shape, data, fortran):
    import numpy as np
    if not isinstance(dtype, _DType):
        raise Malformed("a NumPy array's dtype is not one")
    if isinstance(shape, int):
        shape = (shape,)
    if not (isinstance(shape, tuple) and len(shape) <= 32 and all(type(n) is int and n >= 0 for n in shape)):
        raise Malformed("a NumPy array's shape is not one")
    dtype, count = dtype.numpy(), 1
    data = data if isinstance(data, _Span) else _to_bytes(data)
    for n in shape:
        count *= n
    if count * dtype.itemsize != len(data):
        raise Malformed(f"a NumPy array of shape {list(shape)} and dtype {dtype} has {len(data)} bytes")
    if count == 0 or dtype.itemsize == 0:
        return np.zeros(shape, dtype)
    flat = np.frombuffer(data.read() if isinstance(data, _Span) else data, dtype)
    if dtype.kind == "b" and flat.view(np.uint8).max() > 1:
        flat = flat.view(np.uint8) != 0
    return flat.reshape(shape, order="F" if fortran else "C")


class _Array:
    """A NumPy array while it is being built."""
    value = None

    def build(self, state):
        if not (isinstance(state, tuple) and len(state) == 5):
            raise Malformed("a NumPy array's state is not one")
        _, shape, dtype, fortran, data = state
        if isinstance(data, list):
            raise Refused("it holds a NumPy array of Python objects")
        self.value = _array(dtype, shape, data, fortran)


class _Namespace:
    """An argparse.Namespace while it is being built."""

    def __init__(self):
        import argparse
        self.value = argparse.Namespace()

    def build(self, state):
        if not (isinstance(state, dict) and all(isinstance(k, str) for k in state)):
            raise Malformed("a Namespace's state is not a dict")
        self.value.__dict__.update(state)


def _need(ok, what):
    if not ok:
        raise Refused(f"it calls {what} with unexpected arguments")


def _reconstruct(*args):
    _need(args and isinstance(args[0], _Type) and args[0].name == "numpy.ndarray", "numpy's _reconstruct")
    return _Array()


def _scalar(*args):
    _need(len(args) == 2 and isinstance(args[0], _DType), "numpy's scalar")
    return _array(args[0], (), args[1], False)[()]


def _frombuffer(*args):
    _need(len(args) == 4, "numpy's _frombuffer")
    return _array(args[1], args[2], args[0], args[3] == "F")


def _dtype(*args):
    _need(1 <= len(args) <= 3, "numpy.dtype")
    return _DType(args[0])


def _encode(*args):
    _need(len(args) == 2 and isinstance(args[0], str) and args[1] in ("latin1", "latin-1"), "_codecs.encode")
    try:
        return args[0].encode("latin1")
    except UnicodeEncodeError:
        raise Malformed("text that stands for bytes has characters above 255") from None


def _evaluate(*args):
    """Paddle's static tensors pickle as eval('data', {'data': array}); nothing is evaluated."""
    _need(len(args) == 2 and args[0] == "data" and isinstance(args[1], dict) and set(args[1]) == {"data"}, "eval")
    return args[1]["data"]


def _sequence(kind):
    def make(work, *args):
        _need(len(args) <= 1 and all(isinstance(a, (list, tuple, set, frozenset)) for a in args), kind.__name__)
        work.begin()
        return kind(work.key(a) if kind in (set, frozenset) else a for a in (args[0] if args else ()))
    make.works = True
    return make


def _mapping(kind):
    def make(work, *args):
        _need(len(args) <= 1, kind.__name__)
        result, pairs = kind(), args[0] if args else ()
        work.begin()
        if isinstance(pairs, dict):
            pairs = pairs.items()
        _need(isinstance(pairs, (list, tuple, type({}.items()))), kind.__name__)
        for pair in pairs:
            _need(isinstance(pair, (list, tuple)) and len(pair) == 2, kind.__name__)
            result[work.key(pair[0])] = pair[1]
        return result
    make.works = True
    return make


def _default(*args):
    kinds = {"builtins.int": int, "builtins.float": float, "builtins.list": list, "builtins.dict": dict,
             "builtins.set": set, "builtins.tuple": tuple}
    _need(len(args) == 1 and (args[0] is None or isinstance(args[0], _Type) and args[0].name in kinds),
          "collections.defaultdict")
    return defaultdict(kinds[args[0].name] if args[0] else None)


def _number(kind, allowed):
    def make(*args):
        _need(len(args) <= 2 and all(type(a) in allowed for a in args), kind.__name__)
        return kind(*args)
    return make


def _buffer(kind):
    def make(*args):
        if len(args) == 2:
            args = (_encode(*args),)
        _need(len(args) <= 1 and all(isinstance(a, (bytes, bytearray)) for a in args), kind.__name__)
        return kind(*args)
    return make


def _slice(*args):
    _need(1 <= len(args) <= 3 and all(a is None or type(a) is int for a in args), "slice")
    return slice(*args)


def _range(*args):
    _need(1 <= len(args) <= 3 and all(type(a) is int for a in args) and args[2:] != (0,), "range")
    return range(*args)


def _only_named(name):
    def make(*args):
        raise Refused(f"it calls {name}")
    return make


ALLOWED = {
    "builtins.tuple": _sequence(tuple), "builtins.list": _sequence(list), "builtins.set": _sequence(set),
    "builtins.frozenset": _sequence(frozenset), "builtins.dict": _mapping(dict),
    "builtins.complex": _number(complex, (int, float)), "builtins.int": _number(int, (int, float, bool)),
    "builtins.float": _number(float, (int, float)), "builtins.bytes": _buffer(bytes),
    "builtins.bytearray": _buffer(bytearray), "builtins.slice": _slice, "builtins.range": _range,
    "builtins.eval": _evaluate, "_codecs.encode": _encode,
    "collections.OrderedDict": _mapping(OrderedDict), "collections.defaultdict": _default,
    "argparse.Namespace": _Namespace,
    "numpy.ndarray": _only_named("numpy.ndarray"), "numpy.dtype": _dtype,
    "numpy.core.multiarray._reconstruct": _reconstruct, "numpy.core.multiarray.scalar": _scalar,
    "numpy.core.numeric._frombuffer": _frombuffer,
}


def canonical(module, name):
    """The name that ALLOWED knows a global by."""
    module = {"__builtin__": "builtins", "exceptions": "builtins"}.get(module, module)
    name = {"builtins.xrange": "range", "builtins.long": "int"}.get(f"{module}.{name}", name)
    if module == "numpy._core" or module.startswith("numpy._core."):
        module = "numpy.core" + module[len("numpy._core"):]
    return f"{module}.{name}"


class _Work:
    """Work budget of a file: keys whose hashes collide make dicts slow, and a short file may ask for long copies."""

    def __init__(self, size):
        self.left, self.counts, self.calls = WORK + 8 * size, {}, 0
        self.owner, self.target, self.alive = None, None, {}    # alive: no id is another's later

    def spend(self, amount):
        self.left -= amount
        if self.left < 0:
            raise Refused("it asks for more work than a file of its size needs")

    def begin(self, owner=None):
        """The keys that follow are those of one dict or set: one that is there, or a new one."""
        self.calls += owner is None
        self.owner, self.target = self.calls if owner is None else -id(owner), owner

    def key(self, key):
        """The key, if hashing it takes bounded time and runs no code."""
        kind = type(key)
        if kind is str or kind is int and -SMALL < key < SMALL:
            return key
        parts, left = [key], KEY_PARTS
        while parts:
            part, left = parts.pop(), left - 1
            if type(part) in (tuple, frozenset):
                parts.extend(part)
            elif type(part) is int:
                left -= part.bit_length() >> 6
            elif part is not None and type(part) not in (str, bytes, float, bool, complex) and \
                    not type(part).__module__ == "numpy":
                raise Refused(f"a dict's key or a set's member is a {type(part).__name__.strip('_')}")
            if left < 0 or len(parts) > KEY_PARTS:
                raise Refused("a dict's key or a set's member is too large")
        self.spend(KEY_PARTS - left)
        self.alive[self.owner] = self.target
        at = self.owner, hash(key)
        self.counts[at] = count = self.counts.get(at, 0) + 1
        if count > SAME_HASH:
            raise Refused("too many keys of a dict or members of a set have the same hash")
        return key


# ---- the interpreter ----

class _Stop(Exception):
    pass


class Unpickler:
    """Unpickler(file).load() gives the value, of plain Python and NumPy types only.

    file has read and readline and can seek. Raises Refused or Malformed."""

    def __init__(self, file):
        self.file = file
        here = file.tell()
        self.end = file.seek(0, 2)
        file.seek(here)
        self.work = _Work(self.end - here)

    def load(self):
        self.stack, self.marks, self.memo = [], [], {}
        read, dispatch, row = self.file.read, DISPATCH, 0
        try:
            while True:
                code = read(1)
                row = row + 1 if code in VALUES else 0
                if row > FEW:
                    code, row = self.values(code), 0
                step = dispatch.get(code)
                if step is None:
                    raise Malformed("it ends early" if not code else f"{code!r} is no pickle instruction")
                step(self)
        except _Stop:
            value = self.pop()
        except (IndexError, KeyError, ValueError, struct.error, OverflowError, TypeError, AttributeError) as e:
            raise Malformed(f"it is no well-formed pickle ({type(e).__name__}: {e})") from None
        return Resolver().run(value)

    # stack and input

    def values(self, code):
        """Pushes the small values that follow from this code on; the code behind them."""
        from .. import _core
        while True:
            start = self.file.tell()
            data = code + self.file.read(BATCH)
            used = _core.pickle_values(data, self.stack)
            self.file.seek(start - 1 + used)
            code = self.file.read(1)
            if used == 0 or code not in VALUES:
                return code

    def pop(self):
        if not self.stack or (self.marks and len(self.stack) <= self.marks[-1]):
            raise Malformed("it takes a value from an empty stack")
        return self.stack.pop()

    def push(self, value):
        self.stack.append(value)

    def pop_mark(self):
        if not self.marks:
            raise Malformed("it looks for a mark that is not there")
        at = self.marks.pop()
        items, self.stack[at:] = self.stack[at:], []
        return items

    def take(self, count):
        if count < 0 or count > self.end - self.file.tell():
            raise Malformed("it ends early")
        return self.file.read(count)

    def take_bytes(self, count):
        if LARGE <= count <= self.end - self.file.tell():
            return _Span(self.file, count)
        return self.take(count)

    def unpack(self, form, size):
        return struct.unpack(form, self.take(size))[0]

    def line(self):
        text = self.file.readline()
        if text[-1:] != b"\n":
            raise Malformed("it ends early")
        return text[:-1]

    # what the instructions do

    def find(self, module, name):
        full = canonical(module, name) if isinstance(module, str) and isinstance(name, str) else None
        make = ALLOWED.get(full)
        if make is None:
            raise Refused(f"it names {module}.{name}, which is not among the plain data types that are read")
        return _Type(full, make)

    def call(self, func, args):
        if not isinstance(func, _Type):
            raise Refused(f"it calls a value of type {type(func).__name__}")
        if not isinstance(args, tuple):
            raise Malformed("a call's arguments are not a tuple")
        if func.make is not _frombuffer:
            args = tuple(_to_bytes(a) if isinstance(a, _Span) else a for a in args)
        self.work.spend(sum(len(a) for a in args if isinstance(a, (list, tuple, dict, set, frozenset, str, bytes))))
        return func.make(self.work, *args) if hasattr(func.make, "works") else func.make(*args)

    def build(self, state):
        target = self.stack[-1]
        if not isinstance(target, (_Array, _DType, _Namespace)):
            kind = target.name if isinstance(target, _Type) else type(target).__name__
            raise Refused(f"it sets the state of a {kind}")
        target.build(state)

    def add_items(self, items):
        target = self.stack[-1]
        if not isinstance(target, dict) or len(items) % 2:
            raise Malformed("it sets items of something that is no dict")
        self.work.begin(target)
        for i in range(0, len(items), 2):
            target[self.work.key(items[i])] = items[i + 1]

    def extend(self, items):
        target = self.stack[-1]
        if type(target) is not list:
            raise Malformed("it appends to something that is no list")
        target.extend(items)

    def add_members(self, items):
        target = self.stack[-1]
        if type(target) is not set:
            raise Malformed("it adds to something that is no set")
        self.work.begin(target)
        target.update(map(self.work.key, items))

    def new_keys(self, items):
        self.work.begin()
        return map(self.work.key, items)

    def put(self, index):
        if not 0 <= index <= MEMO:
            raise Malformed(f"memo index {index} is out of range")
        self.memo[index] = self.stack[-1]

    def get(self, index):
        self.push(self.memo[index])


def _text(raw):
    return raw.decode("utf-8", "surrogatepass")


def _integer(text):
    if text in (b"00", b"01"):
        return text == b"01"
    return int(text[:-1] if text[-1:] == b"L" else text)


def _quoted(text):
    if len(text) < 2 or text[:1] != text[-1:] or text[:1] not in (b"'", b'"'):
        raise Malformed("a string is not quoted")
    import codecs
    return codecs.escape_decode(text[1:-1])[0].decode("latin1")


def _stop(u):
    raise _Stop


def _proto(u):
    version = u.take(1)[0]
    if version > 5:
        raise Malformed(f"pickle protocol {version} is unknown")


def _refuse(what):
    def step(u):
        raise Refused(f"it uses {what}")
    return step


def _inst(u):
    module, name = u.line().decode("ascii"), u.line().decode("utf-8")
    found = u.find(module, name)
    u.push(u.call(found, tuple(u.pop_mark())))


def _obj(u):
    items = u.pop_mark()
    u.push(u.call(items[0], tuple(items[1:])))


def _global(u):
    module = u.line().decode("utf-8")
    u.push(u.find(module, u.line().decode("utf-8")))


def _stack_global(u):
    name, module = u.pop(), u.pop()
    u.push(u.find(module, name))


def _reduce(u):
    args, func = u.pop(), u.pop()
    u.push(u.call(func, args))


def _newobj_ex(u):
    kwargs, args, func = u.pop(), u.pop(), u.pop()
    if kwargs:
        raise Refused("it makes an object with keyword arguments")
    u.push(u.call(func, args))


def _tuple(count):
    def step(u):
        items = [u.pop() for _ in range(count)]
        u.push(tuple(reversed(items)))
    return step


def _pop(u):
    if u.marks and len(u.stack) == u.marks[-1]:
        u.marks.pop()
    else:
        u.pop()


def _dict_of(u):
    items = u.pop_mark()
    u.push({})
    u.add_items(items)


def _pair(u):
    value, key = u.pop(), u.pop()
    u.add_items([key, value])


def _then(method, *readers):
    """An instruction that pops one value (or a mark's items) and hands it to a method."""
    return lambda u: getattr(u, method)(readers[0](u))


def _const(value):
    return lambda u: u.push(value)


def _value(read):
    return lambda u: u.push(read(u))


DISPATCH = {
    b"\x80": _proto, b"\x95": lambda u: u.take(8), b".": _stop,
    b"(": lambda u: u.marks.append(len(u.stack)), b"0": _pop, b"1": lambda u: u.pop_mark(),
    b"2": lambda u: u.push(u.stack[-1]),
    # constants and numbers
    b"N": _const(None), b"\x88": _const(True), b"\x89": _const(False),
    b"I": _value(lambda u: _integer(u.line())), b"L": _value(lambda u: _integer(u.line())),
    b"F": _value(lambda u: float(u.line())), b"G": _value(lambda u: u.unpack(">d", 8)),
    b"K": _value(lambda u: u.unpack("<B", 1)), b"M": _value(lambda u: u.unpack("<H", 2)),
    b"J": _value(lambda u: u.unpack("<i", 4)),
    b"\x8a": _value(lambda u: int.from_bytes(u.take(u.unpack("<B", 1)), "little", signed=True)),
    b"\x8b": _value(lambda u: int.from_bytes(u.take(u.unpack("<i", 4)), "little", signed=True)),
    # text and bytes
    b"S": _value(lambda u: _quoted(u.line())),
    b"T": _value(lambda u: u.take(u.unpack("<i", 4)).decode("latin1")),
    b"U": _value(lambda u: u.take(u.unpack("<B", 1)).decode("latin1")),
    b"V": _value(lambda u: u.line().decode("raw-unicode-escape")),
    b"X": _value(lambda u: _text(u.take(u.unpack("<I", 4)))),
    b"\x8c": _value(lambda u: _text(u.take(u.unpack("<B", 1)))),
    b"\x8d": _value(lambda u: _text(u.take(u.unpack("<Q", 8)))),
    b"B": _value(lambda u: u.take_bytes(u.unpack("<I", 4))), b"C": _value(lambda u: u.take(u.unpack("<B", 1))),
    b"\x8e": _value(lambda u: u.take_bytes(u.unpack("<Q", 8))),
    b"\x96": _value(lambda u: bytearray(u.take(u.unpack("<Q", 8)))),
    # containers
    b")": _const(()), b"t": lambda u: u.push(tuple(u.pop_mark())),
    b"\x85": _tuple(1), b"\x86": _tuple(2), b"\x87": _tuple(3),
    b"]": lambda u: u.push([]), b"l": lambda u: u.push(u.pop_mark()),
    b"a": lambda u: u.extend([u.pop()]), b"e": _then("extend", Unpickler.pop_mark),
    b"}": lambda u: u.push({}), b"d": _dict_of, b"s": _pair, b"u": _then("add_items", Unpickler.pop_mark),
    b"\x8f": lambda u: u.push(set()), b"\x90": _then("add_members", Unpickler.pop_mark),
    b"\x91": lambda u: u.push(frozenset(u.new_keys(u.pop_mark()))),
    # memo
    b"p": lambda u: u.put(int(u.line())), b"q": lambda u: u.put(u.unpack("<B", 1)),
    b"r": lambda u: u.put(u.unpack("<I", 4)), b"\x94": lambda u: u.put(len(u.memo)),
    b"g": lambda u: u.get(int(u.line())), b"h": lambda u: u.get(u.unpack("<B", 1)),
    b"j": lambda u: u.get(u.unpack("<I", 4)),
    # globals and objects
    b"c": _global, b"\x93": _stack_global, b"R": _reduce, b"\x81": _reduce, b"\x92": _newobj_ex,
    b"i": _inst, b"o": _obj, b"b": _then("build", Unpickler.pop),
    b"P": _refuse("a persistent id"), b"Q": _refuse("a persistent id"),
    b"\x82": _refuse("copyreg's extension codes"), b"\x83": _refuse("copyreg's extension codes"),
    b"\x84": _refuse("copyreg's extension codes"),
    b"\x97": _refuse("out-of-band buffers"), b"\x98": _refuse("out-of-band buffers"),
}


PLAIN = frozenset((str, bytes, int, float, bool, type(None), complex, bytearray, slice, range))


class Resolver:
    """Puts finished arrays in the place of those being built. Lists and dicts stay the same objects."""

    def __init__(self):
        self.seen = {}      # id → (the object, kept alive; its replacement)

    def run(self, value, depth=0):
        kind = type(value)
        if kind in PLAIN:
            return value
        if kind is _Span:
            return _to_bytes(value)
        if kind in (_Type, _DType):
            raise Refused(f"it holds {getattr(value, 'name', 'a NumPy dtype')} as a value")
        if kind is _Array:
            if value.value is None:
                raise Malformed("a NumPy array has no data")
            return value.value
        if id(value) in self.seen:
            return self.seen[id(value)][1]
        if depth > DEPTH:
            raise Refused(f"its containers nest deeper than {DEPTH}")
        if kind is tuple:
            parts = [self.run(v, depth + 1) for v in value]
            same = all(a is b for a, b in zip(parts, value))
            self.seen[id(value)] = (value, value if same else tuple(parts))
        elif kind is list:
            self.seen[id(value)] = (value, value)
            if not PLAIN.issuperset(map(type, value)):
                value[:] = [self.run(v, depth + 1) for v in value]
        elif kind in (dict, OrderedDict, defaultdict):
            self.seen[id(value)] = (value, value)
            for key in value:
                value[key] = self.run(value[key], depth + 1)
        elif kind is _Namespace:
            self.seen[id(value)] = (value, value.value)
            self.run(value.value.__dict__, depth + 1)
        else:               # sets hold keys only; NumPy's arrays and scalars are finished
            return value
        return self.seen[id(value)][1]
