"""Paddle's program files as objects that can be edited: blocks of variables and operators. What is not edited is written
back byte for byte."""
import struct
from collections import OrderedDict

from .tensor_file import BadFile, CODES, DTYPES, fields

__all__ = ["BlockDesc", "OpDesc", "ProgramDesc", "VarDesc"]

# AttrType → (field of the message, how its value is coded, whether it is a list)
_KINDS = {"INT": (0, 3, "int", False), "FLOAT": (1, 4, "float", False), "STRING": (2, 5, "text", False),
          "INTS": (3, 6, "int", True), "FLOATS": (4, 7, "float", True), "STRINGS": (5, 8, "text", True),
          "BOOLEAN": (6, 10, "int", False), "BOOLEANS": (7, 11, "int", True), "BLOCK": (8, 12, "int", False),
          "LONG": (9, 13, "int", False), "BLOCKS": (10, 14, "int", True), "LONGS": (11, 15, "int", True),
          "FLOAT64S": (12, 16, "double", True), "FLOAT64": (15, 19, "double", False)}
_BY_CODE = {code: (name, field, coded, many) for name, (code, field, coded, many) in _KINDS.items()}
_PACKED = {"int": None, "float": "<f", "double": "<d"}


# ---- protobuf ----------------------------------------------------------------------------------------------------------

def _varint(value):
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number, value):
    """One field: an integer, or bytes with their length."""
    if isinstance(value, int):
        return _varint(number << 3) + _varint(value)
    return _varint(number << 3 | 2) + _varint(len(value)) + bytes(value)


def _signed(value):
    return value - (1 << 64) if value >= 1 << 63 else value


def _text(value):
    return bytes(value).decode("utf-8", "surrogateescape")


def _bytes(text):
    return text.encode("utf-8", "surrogateescape")


def _number(coded, value):
    if coded == "text":
        return _text(value)
    if coded == "int":
        return _signed(value)
    return struct.unpack(_PACKED[coded], value)[0]


def _encoded(field, coded, value):
    if coded == "text":
        return _field(field, _bytes(value))
    if coded == "int":
        return _field(field, int(value))
    return _varint(field << 3 | (5 if coded == "float" else 1)) + struct.pack(_PACKED[coded], value)


# ---- messages ----------------------------------------------------------------------------------------------------------

def _attribute(data):
    """(name, raw message)."""
    for number, value in fields(data):
        if number == 1:
            return _text(value), bytes(data)
    raise BadFile("an attribute has no name")


def _value(data):
    parts = list(fields(data))
    code = next((v for n, v in parts if n == 2), None)
    if code not in _BY_CODE:
        raise BadFile(f"an attribute has the unknown type {code}")
    name, field, coded, many = _BY_CODE[code]
    values = [_number(coded, v) for n, v in parts if n == field]
    if name.startswith("BOOLEAN"):
        values = [bool(v) for v in values]
    return values if many else values[0] if values else None


def _kind_of(value):
    one = value[0] if isinstance(value, (list, tuple)) and value else value
    kind = "BOOLEAN" if isinstance(one, bool) else "INT" if isinstance(one, int) else \
        "FLOAT" if isinstance(one, float) else "STRING"
    return kind + ("S" if isinstance(value, (list, tuple)) else "")


class OpDesc:
    """An operator: type, slots of names, attributes."""

    def __init__(self, type, inputs=None, outputs=None, attrs=None):
        self.type = type
        self.inputs = OrderedDict((k, list(v)) for k, v in (inputs or {}).items())
        self.outputs = OrderedDict((k, list(v)) for k, v in (outputs or {}).items())
        self._attrs, self._rest = OrderedDict(), b""
        for name, value in (attrs or {}).items():
            self.set_attr(name, value)

    @classmethod
    def parse(cls, data):
        op = cls("")
        for number, value in fields(data):
            if number in (1, 2):
                slot, names = "", []
                for n, v in fields(value):
                    if n == 1:
                        slot = _text(v)
                    elif n == 2:
                        names.append(_text(v))
                (op.inputs if number == 1 else op.outputs)[slot] = names
            elif number == 3:
                op.type = _text(value)
            elif number == 4:
                name, raw = _attribute(value)
                op._attrs[name] = raw
            else:
                op._rest += _field(number, value)
        return op

    def serialize(self):
        out = b""
        for number, slots in ((1, self.inputs), (2, self.outputs)):
            for slot, names in slots.items():
                out += _field(number, _field(1, _bytes(slot)) + b"".join(_field(2, _bytes(n)) for n in names))
        out += _field(3, _bytes(self.type))
        return out + b"".join(_field(4, raw) for raw in self._attrs.values()) + self._rest

    def input(self, slot):
        """Names in an input slot."""
        return self.inputs.get(slot, [])

    def output(self, slot):
        """Names in an output slot."""
        return self.outputs.get(slot, [])

    @property
    def input_names(self):
        """Every name that is read."""
        return [n for names in self.inputs.values() for n in names]

    @property
    def output_names(self):
        """Every name that is written."""
        return [n for names in self.outputs.values() for n in names]

    def has_attr(self, name):
        return name in self._attrs

    def attr(self, name, missing=None):
        """An attribute's value."""
        return _value(self._attrs[name]) if name in self._attrs else missing

    def set_attr(self, name, value, kind=None):
        """Sets an attribute; its AttrType follows from the value unless it is given."""
        code, field, coded, many = _KINDS[kind or _kind_of(value)]
        values = list(value) if many else [value]
        self._attrs[name] = _field(1, _bytes(name)) + _field(2, code) + b"".join(_encoded(field, coded, v) for v in values)

    def remove_attr(self, name):
        self._attrs.pop(name, None)

    def rename_input(self, old, new):
        """Reads `new` where it read `old`."""
        for names in self.inputs.values():
            names[:] = [new if n == old else n for n in names]

    def rename_output(self, old, new):
        """Writes `new` where it wrote `old`."""
        for names in self.outputs.values():
            names[:] = [new if n == old else n for n in names]


class VarDesc:
    """A variable: name, dense type, and whether it is kept."""

    def __init__(self, name, dtype="float32", shape=(), persistable=False, raw=None):
        self.name, self._raw = name, raw
        if raw is None:
            dims = b"".join(_field(2, int(d)) for d in shape)
            tensor = _field(1, CODES[dtype]) + dims
            kind = _field(1, 7) + _field(3, _field(1, tensor) + _field(2, 0))
            self._raw = _field(1, _bytes(name)) + _field(2, kind) + _field(3, int(persistable))

    @classmethod
    def parse(cls, data):
        raw = bytes(data)
        return cls(next(_text(v) for n, v in fields(raw) if n == 1), raw=raw)

    def serialize(self):
        return self._raw

    @property
    def persistable(self):
        return any(n == 3 and v for n, v in fields(self._raw))

    @property
    def is_dense(self):
        return any(n == 2 and any(m == 1 and w == 7 for m, w in fields(v)) for n, v in fields(self._raw))

    def _tensor(self):
        for number, value in fields(self._raw):
            if number != 2:
                continue
            for n, v in fields(value):
                if n != 3:
                    continue
                for m, w in fields(v):
                    if m == 1:
                        return list(fields(w))
        return []

    @property
    def shape(self):
        """Dims; −1 where they are unknown."""
        return [_signed(v) for n, v in self._tensor() if n == 2 and isinstance(v, int)]

    @property
    def dtype(self):
        """NumPy's name of the dtype, or None."""
        return next((DTYPES.get(v) for n, v in self._tensor() if n == 1), None)

    def retyped(self, dtype):
        """The same variable of another dtype."""
        return VarDesc(self.name, dtype, self.shape, self.persistable)


class BlockDesc:
    """A list of operators, and variables by name."""

    def __init__(self):
        self.ops, self.vars, self._head, self._rest = [], OrderedDict(), b"", b""

    @classmethod
    def parse(cls, data):
        block = cls()
        for number, value in fields(data):
            if number == 3:
                var = VarDesc.parse(value)
                block.vars[var.name] = var
            elif number == 4:
                block.ops.append(OpDesc.parse(value))
            elif number < 3:
                block._head += _field(number, value)
            else:
                block._rest += _field(number, value)
        return block

    def serialize(self):
        out = self._head + b"".join(_field(3, v.serialize()) for v in self.vars.values())
        return out + b"".join(_field(4, op.serialize()) for op in self.ops) + self._rest

    def add_var(self, var):
        self.vars[var.name] = var
        return var

    def like(self, name, of, **changes):
        """A variable of another's dtype and shape."""
        known = self.vars.get(of)
        given = {"dtype": known.dtype or "float32", "shape": known.shape} if known is not None else {}
        return self.add_var(VarDesc(name, **{**given, **changes}))

    def producer(self, name):
        """The first operator that writes a name, or None."""
        return next((op for op in self.ops if name in op.output_names), None)

    def readers(self, name):
        """The operators that read a name."""
        return [op for op in self.ops if name in op.input_names]


class ProgramDesc:
    """A program file."""

    def __init__(self):
        self.blocks, self._rest = [], b""

    @classmethod
    def parse(cls, data):
        """Reads the bytes of a .pdmodel; BadFile, a ValueError, if they are none."""
        program = cls()
        for number, value in fields(data):
            if number == 1:
                program.blocks.append(BlockDesc.parse(value))
            else:
                program._rest += _field(number, value)
        if not program.blocks:
            raise BadFile("the program has no blocks")
        return program

    def serialize(self):
        """The bytes of the file."""
        return b"".join(_field(1, block.serialize()) for block in self.blocks) + self._rest

    @property
    def main(self):
        """Block 0."""
        return self.blocks[0]

    def persistables(self):
        """Names of the variables that a parameter file holds."""
        return [v.name for b in self.blocks for v in b.vars.values() if v.persistable and v.is_dense]

    def feeds(self):
        """Names of what is fed, in order."""
        found = [(op.attr("col", 0), op.output("Out")[0]) for op in self.main.ops if op.type == "feed"]
        return [name for _, name in sorted(found)]

    def fetches(self):
        """Names of what is fetched, in order."""
        found = [(op.attr("col", 0), op.input("X")[0]) for op in self.main.ops if op.type == "fetch"]
        return [name for _, name in sorted(found)]
