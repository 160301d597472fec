"""Messages in protobuf's text format, as Paddle's settings files are: fields that know whether they were set. A subclass of
Message has the table of its fields."""
import re

_KINDS = {"bool": bool, "int32": int, "int64": int, "float": float, "double": float, "string": str, "mode": int}
_MODES = {"COLLECTIVE": 1, "PS": 2, "PIPELINE": 3, "HETER": 4}


class Field:
    """A field's name, type ("bool", …, or a message's name), whether it repeats, its default."""

    __slots__ = ("name", "type", "repeated", "default")

    def __init__(self, row):
        words = row.split(None, 3)
        self.name, self.repeated = words[2], words[1].endswith("*")
        self.type = words[1].rstrip("*")
        kind, text = _KINDS.get(self.type), words[3] if len(words) > 3 else ""
        self.default = None if kind is None else text == "True" if kind is bool else kind(text or 0) if kind is not str else text

    @property
    def is_message(self):
        return self.type not in _KINDS


def messages_of(table):
    """{message: {field: Field}} of a table: a block for each message, its name and then lines of number, type (* repeated), name,
    and the default where there is one."""
    messages = {}
    for block in table.strip().split("\n\n"):
        name, *rows = block.splitlines()
        messages[name] = {f.name: f for f in map(Field, rows)}
    return messages


class Message:
    """Values of a message's fields; what was set is told from defaults."""

    messages = {}  # a subclass's: what messages_of gave

    def __init__(self, name):
        self.type, self.fields, self.values = name, self.messages[name], {}

    def get(self, name):
        """The value: a list for what repeats, a Message for a message."""
        field = self.fields[name]
        if name in self.values:
            return self.values[name]
        if field.repeated:
            return []
        if field.is_message:
            made = type(self)(field.type)
            self.values[name] = made  # an empty message is not written
            return made
        return field.default

    def set(self, name, value):
        """Sets a field; TypeError for a value of another type."""
        field = self.fields[name]
        kind = _KINDS.get(field.type)
        if field.repeated:
            self.values[name] = [self._checked(field, kind, v) for v in value]
        elif field.is_message:
            self.get(name).update(value, field.name)
        else:
            self.values[name] = self._checked(field, kind, value)

    def add(self, name, values):
        """Appends a message with these values to a repeated field."""
        made = type(self)(self.fields[name].type)
        made.update(values, name)
        self.values.setdefault(name, []).append(made)

    @staticmethod
    def _checked(field, kind, value):
        numbers = (int, float) if kind is float else (int,) if kind in (int, bool) else (kind,)
        if kind is None or not isinstance(value, numbers):
            raise TypeError(f"{field.name}: expected {field.type}, got {type(value).__name__} {value!r}")
        return kind(value)

    def update(self, values, who):
        """Sets the fields that a dict names."""
        for key, value in values.items():
            if key not in self.fields:
                raise AssertionError(f"key:{key} not in {who}")
            self.set(key, value)

    def as_dict(self):
        """All fields as plain values."""
        return {name: v.as_dict() if isinstance(v, Message) else v for name in self.fields for v in (self.get(name),)}

    def is_empty(self):
        return all(isinstance(v, Message) and v.is_empty() for v in self.values.values())

    # ---- text format ----

    def to_text(self, indent=""):
        """The fields that were set, in the order of their numbers."""
        lines = []
        for name in self.fields:
            if name not in self.values:
                continue
            value = self.values[name]
            for one in value if self.fields[name].repeated else [value]:
                if isinstance(one, Message):
                    if not one.is_empty():
                        lines += [f"{indent}{name} {{", *one.to_text(indent + "  ").splitlines(), f"{indent}}}"]
                else:
                    lines.append(f"{indent}{name}: {_text(self.fields[name], one)}")
        return "".join(line + "\n" for line in lines)

    def merge_text(self, text):
        """Adds what a text sets; ValueError for what is no such message."""
        tokens = [t for t in re.findall(r'#[^\n]*|"(?:[^"\\]|\\.)*"|[{}:]|[^\s{}:"]+', text) if not t.startswith("#")]
        rest = self._merge(tokens, 0, closed=False)
        if rest != len(tokens):
            raise ValueError(f"{self.type}: a '}}' too many")

    def _merge(self, tokens, at, closed):
        while at < len(tokens) and tokens[at] != "}":
            name = tokens[at]
            field = self.fields.get(name)
            if field is None:
                raise ValueError(f"{self.type}: there is no field {name!r}")
            at += 1
            if at < len(tokens) and tokens[at] == ":":
                at += 1
            if at >= len(tokens):
                raise ValueError(f"{self.type}: the text ends behind {name!r}")
            if field.is_message:
                if tokens[at] != "{":
                    raise ValueError(f"{self.type}: expected '{{' behind {name!r}, got {tokens[at]!r}")
                inner = type(self)(field.type) if field.repeated else self.get(name)
                at = inner._merge(tokens, at + 1, closed=True)
                if field.repeated:
                    self.values.setdefault(name, []).append(inner)
                continue
            value = _value(self.type, field, tokens[at])
            if field.repeated:
                self.values.setdefault(name, []).append(value)
            else:
                self.values[name] = value
            at += 1
        if closed and at >= len(tokens):
            raise ValueError(f"{self.type}: the text ends before '}}'")
        return at + closed


def _text(field, value):
    if field.type == "bool":
        return "true" if value else "false"
    if field.type == "string":
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
    if field.type == "mode":
        return next(name for name, number in _MODES.items() if number == value)
    if field.type in ("float", "double"):
        short = f"{value:.9g}" if field.type == "float" else repr(value)
        return next((s for s in (f"{value:.{n}g}" for n in range(1, 9)) if _single(float(s)) == _single(value)), short)
    return str(value)


def _single(value):
    import struct
    return struct.pack("f", value)


def _value(who, field, token):
    try:
        if field.type == "bool":
            return {"true": True, "false": False, "1": True, "0": False}[token]
        if field.type == "mode":
            return _MODES[token] if token in _MODES else int(token)
        if field.type == "string":
            if token[0] != '"':
                raise ValueError(token)
            return re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m[1], m[1]), token[1:-1])
        return _KINDS[field.type](token)
    except (KeyError, ValueError):
        raise ValueError(f"{who}.{field.name}: expected {field.type}, got {token}") from None
