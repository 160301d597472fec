"""fluid.DataFeedDesc: the description of a data feed (which slots a line has) in protobuf's text format. Uses nothing else."""
import re

__all__ = ["DataFeedDesc", "text_of"]

_SLOT = {"name": str, "type": str, "is_dense": bool, "is_used": bool, "shape": [int]}
_FEED = {"name": str, "batch_size": int, "multi_slot_desc": {"slots": [_SLOT]}, "pipe_command": str, "thread_num": int,
         "rank_offset": str, "pv_batch_size": int, "input_type": int}
_WORD = re.compile(r'\s*(?:#[^\n]*\n\s*)*("(?:[^"\\]|\\.)*"|[\w.+-]+|[:{}])')


def _words(text):
    text, at = text.rstrip(), 0
    while at < len(text):
        found = _WORD.match(text, at)
        if found is None:
            raise ValueError(f"DataFeedDesc: expected a field, a value or a brace at {text[at:at + 20].strip()!r}")
        yield found[1]
        at = found.end()


def _value(kind, word, field):
    if kind is bool and word in ("true", "false"):
        return word == "true"
    if kind is str and word[:1] == '"':
        return re.sub(r"\\(.)", r"\1", word[1:-1])
    if kind is int and re.fullmatch(r"-?\d+", word):
        return int(word)
    raise ValueError(f"DataFeedDesc: {field} must be of type {kind.__name__}, got {word}")


def _message(fields, words, inner=False):
    """{field: value} up to the closing brace, or the end."""
    found = {}
    for field in words:
        if field == "}" and inner:
            return found
        if field not in fields:
            raise ValueError(f"DataFeedDesc: there is no field {field!r} here; there are {', '.join(fields)}")
        kind = fields[field]
        kind, many = (kind[0], True) if isinstance(kind, list) else (kind, False)
        word = next(words, "")
        if word == ":":
            word = next(words, "")
        if isinstance(kind, dict) and word != "{":
            raise ValueError(f"DataFeedDesc: {field} must be followed by {{, got {word!r}")
        value = _message(kind, words, True) if isinstance(kind, dict) else _value(kind, word, field)
        if many:
            found.setdefault(field, []).append(value)
        else:
            found[field] = value
    if inner:
        raise ValueError("DataFeedDesc: the text ends before a closing brace")
    return found


def _escaped(value):
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def text_of(message, fields=None, indent=""):
    """The text of a message, fields in the order of Paddle's schema."""
    text = ""
    for field, kind in (fields or _FEED).items():
        kind = kind[0] if isinstance(kind, list) else kind
        values = message.get(field, [])
        for value in values if isinstance(values, list) else [values]:
            if isinstance(kind, dict):
                text += f"{indent}{field} {{\n{text_of(value, kind, indent + '  ')}{indent}}}\n"
            else:
                shown = _escaped(value) if kind is str else str(value).lower()
                text += f"{indent}{field}: {shown}\n"
    return text


class DataFeedDesc:
    """The description that a text file holds; of a MultiSlotDataFeed, slots can be made dense and used by name."""

    def __init__(self, proto_file):
        with open(proto_file) as file:
            self.proto_desc = _message(_FEED, _words(file.read()))
        self.proto_desc["pipe_command"] = "cat"

    def _slots(self, who, names):
        if self.proto_desc.get("name") != "MultiSlotDataFeed":
            raise ValueError(f"DataFeedDesc.{who}: only a MultiSlotDataFeed has slots, and this is a "
                             f"{self.proto_desc.get('name', 'feed without a name')!r}")
        slots = {slot["name"]: slot for slot in self.proto_desc.get("multi_slot_desc", {}).get("slots", [])}
        for name in names:
            if name not in slots:
                raise ValueError(f"DataFeedDesc.{who}: there is no slot {name!r}; there are {', '.join(slots)}")
        return [slots[name] for name in names]

    def set_batch_size(self, batch_size):
        """The number of samples of a batch."""
        self.proto_desc["batch_size"] = int(batch_size)

    def set_dense_slots(self, dense_slots_name):
        """Slots of these names hold as many values in every sample."""
        for slot in self._slots("set_dense_slots", dense_slots_name):
            slot["is_dense"] = True

    def set_use_slots(self, use_slots_name):
        """Slots of these names are read."""
        for slot in self._slots("set_use_slots", use_slots_name):
            slot["is_used"] = True

    def desc(self):
        """The text."""
        return text_of(self.proto_desc)
