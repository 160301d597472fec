"""The Python half of the op table: writes `python:` and `checks:` entries as tables of names, parameters and checks
(py_api.inc), from which python-bindings/src/ops.c makes callables.

A `python:` entry is "paddle.sum Tensor (x, axis=None, keepdim=False) -> out": public names that share a signature
(Tensor: the method of the same name); parameters, if they differ from those of the op's `call:` (`mat2: y` fills
field y; `out: -` must be None); the output that is returned, if not all are. Fields after a semicolon have a fixed
value and are no parameters: "paddle.zeros (shape, dtype=None; fill_value=0)". An op with `inplace:` has each name with a
trailing _, too, whose callable works in place. `axis=9|None`: a number's default, which None stands for, too.

`checks: {celu: "alpha != 0 or ZeroDivisionError"}` is a condition on a number (`!=`, `>` or `>=`; a list for several)
of the op's public function celu, and the exception that it raises otherwise. Of a tensor, also in place: `x >> f4,i8`
(on CPUs of one of the dtypes of Paddle's kernel, or a half type; `y|x >> …`: if y's is not x's), `x#<=6` (so many dims; so many ints), `x+` (elements), `x+2` (elements in the last two dims); beside a list
`axis` that is given, the result of an empty batch is an empty one, and not refused. `asks: {bmm: "x.shape y.shape"}` are rules
of proa/_asks.py, which choose the exception when a call of bmm has failed; bmm_ without rules has those of bmm. Used by
gen_ops.py alone.
"""
import re


def split(text):
    """The parameters of "(a, b=[1, 2], c)"."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += c in "[("
        depth -= c in "])"
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [p for p in parts + [text[start:].strip()] if p]


def python_text(f):
    """A field's default in Python's words; None if the field is required."""
    if f.default is None:
        return "None" if "OPTIONAL" in f.flags else None
    text = {"true": "True", "false": "False", "none": "None", "inf": "float('inf')",
            "-inf": "-float('inf')"}.get(f.default, f.default)
    if f.kind in ("INTS", "FLOATS") and text == "[]":
        return "None"
    if f.kind in ("ENUM", "DTYPE") and text != "None":
        return repr(text.lower() if f.kind == "DTYPE" else text)
    return text


def table_text(op, f, text):
    """A Python default in the table's words; None if it is the field's own default."""
    text = text.strip()
    if text == "None" or f is None:
        return None
    plain = text.strip("'\"")
    words = {"True": "true", "False": "false"}.get(plain, plain)
    own = (f.default or "").strip('"')
    try:
        same = float(words) == float(own)
    except ValueError:
        same = words == own or words.lower() == own.lower()
    if same:
        return None
    if f.kind == "DTYPE":
        return {"float32": "F32", "float64": "F64", "int32": "I32", "int64": "I64", "bool": "BOOL"}.get(
            words) or op.bad(f"python: default {text} of {f.name}")
    if re.fullmatch(r"\(.*\)", words):
        words = "[" + words[1:-1] + "]"
    return words


class Entry:
    """One callable: its names, parameters, fields of fixed value, returned output."""

    def __init__(self, op, names, params, fixed, result):
        self.op, self.names, self.result = op, names, result
        self.fixed = []  # (field, value in the table's words)
        for text in fixed:
            name, _, value = (s.strip() for s in text.partition("="))
            self.fixed.append((op.field(name, "python"), value))
        self.params = []  # (name, field or None, default in the table's words or None, required, takes None)
        texts = []
        for text in params:
            head, _, default = (s.strip() for s in text.partition("="))
            name, _, field = (s.strip() for s in head.partition(":"))
            f = None if field == "-" else op.field(field or name, "python")
            shown = default.partition("|")[0] or ("None" if f is None else python_text(f))
            default, _, also = default.partition("|")  # "9|None": None stands for 9, too
            plain = not also and f and f.kind in ("BOOL", "INT", "FLOAT") and names[0].split(".")[0] != "_core"
            self.params.append((name, f, table_text(op, f, default) if default else None,
                                shown is None, shown is not None and (shown == "None" or not plain)))
            texts.append(name if shown is None else f"{name}={shown}")
        if not any(n == "name" for n, *_ in self.params) and names[0].split(".")[0] != "_core":
            self.params.append(("name", None, None, False, True))
            texts.append("name=None")
        self.signature = "(" + ", ".join(texts) + ")"


def entries(op):
    """The entries of an op: the plain callable of proa._core, and the public ones."""
    found = [Entry(op, [f"_core.{op.name}"], [f.name for f in op.ordered], [], None)]
    wanted = op.entry.get("python") or []
    for text in [wanted] if isinstance(wanted, str) else wanted:
        m = re.fullmatch(r"\s*([\w. ]+?)\s*(?:\((.*)\))?\s*(?:->\s*(\w+))?\s*", text, re.S)
        if not m:
            op.bad(f"python: cannot read {text!r}")
        names = m.group(1).split()
        last = names[0].rpartition(".")[2]
        names = [f"Tensor.{last}" if n == "Tensor" else n for n in names]
        seen, _, fixed = (m.group(2) or "").partition(";")
        params = split(seen) if m.group(2) is not None else [f.name for f in op.ordered]
        if m.group(3):
            op.field(m.group(3), "python")
        found.append(Entry(op, names, params, split(fixed), m.group(3)))
    return found


CHECK = re.compile(r"(\w+) (!=|>=|>) (-?[\d.]+) or (\w+Error)")
OF_TENSOR = re.compile(r"(\w+)(\|x)?(?: >> ([\w,]+)|#<=(\d)|\+(\d?))")
MIXED = re.compile(r"\w+,(\w+)>>([\w,]+)")
DTYPES = {"b": "BOOL", "u1": "U8", "i1": "I8", "i2": "I16", "i4": "I32", "i8": "I64", "f2": "F16", "bf": "BF16", "f4": "F32",
          "f8": "F64", "c8": "C64", "c16": "C128"}


def check_of_number(op, text):
    m = CHECK.fullmatch(text) or op.bad(f"checks: cannot read {text!r}")
    f = op.field(m[1], "checks")
    if f.kind != "FLOAT":
        op.bad(f"checks: {m[1]} is no float")
    kind = {"!=": "PY_NOT", ">=": "PY_AT_LEAST", ">": "PY_ABOVE"}[m[2]]
    return f"{{{op.fields.index(f)}, {kind}, {float(m[3])}, &PyExc_{m[4]}, 0}}"


def check_of_tensor(op, m):
    f = op.field(m[1], "checks")
    if f.kind not in ("TENSOR", "TENSORS") and not (m[4] and f.kind == "INTS"):
        op.bad(f"checks: {m[1]} is no tensor")
    kind = "PY_OPERAND" if m[2] else "PY_KERNEL" if m[3] else "PY_RANK" if m[4] else "PY_FILLED"
    names = [DTYPES[d] for d in m[3].split(",")] + ["F16", "BF16"] if m[3] else []
    mask = " | ".join(f"1U << PROA_{n}" for n in dict.fromkeys(names)) or "0"
    reduces = kind == "PY_FILLED" and "axis" in op.by_name and op.by_name["axis"].kind == "INTS"
    return f"{{{op.fields.index(f)}, {kind}, {m[4] or m[5] or (-1 if reduces else 0)}, NULL, {mask}}}"


def check_of_operand(op, m):
    """Paddle's kernel of an in-place call is that of the other operand, if its dtype is another."""
    return f"{{{op.fields.index(op.field(m[1], 'asks'))}, PY_OPERAND, 1, NULL, {' | '.join(f'1U << PROA_{DTYPES[d]}' for d in m[2].split(','))}}}"


def checks(op, name):
    """Initializers of py_check for the public function `name`; tensors are checked in place, too."""
    wanted = op.entry.get("checks") or {}
    rows = []
    for key in dict.fromkeys([name, name.rstrip("_")]):
        texts = wanted.get(key) or []
        for text in [texts] if isinstance(texts, str) else texts:
            tensor = OF_TENSOR.fullmatch(text)
            if tensor:
                rows.append(check_of_tensor(op, tensor))
            elif key == name:
                rows.append(check_of_number(op, text))
    words = (asks(op, name, True, True) or "").split() if name.endswith("_") else []
    return rows + [check_of_operand(op, m) for m in map(MIXED.fullmatch, words) if m]


def asks(op, name, public, in_place):
    """The rules of the function `name`, None if it has none. Shapes of operands that meet in place are compared first."""
    rules = op.entry.get("asks") or {}
    texts = [rules.get(name) or rules.get(name.rstrip("_"))] if public or in_place else []
    if in_place and "ELEMENTWISE" in op.flags and len(op.ins) > 1:
        x, y = (f.name for f in op.ins[:2])
        texts.insert(0, f"eager:{x}.shape eager:{y}.shape eager:{x}<-{y}")
    return " ".join(filter(None, texts)) or None


def floats(op, public):
    """The py_floats of a callable."""
    if not public or "PROMOTES" not in op.flags:
        return "PY_FLOATS_MIX"
    return "PY_FLOATS_MIX_EAGERLY" if op.entry.get("python_promotes") else "PY_FLOATS_SAME"


def unknown_names(op):
    """Names of `checks:` and `asks:` that no callable of the op has."""
    known = {e.names[0].rpartition(".")[2] for e in entries(op)[1:]}
    return [n for key in ("checks", "asks") for n in op.entry.get(key) or {} if n.rstrip("_") not in known]


def emit(ops, cstr):
    """py_api.inc: rows of PY_ENTRY in python-bindings/src/ops.c."""
    out, rows = [], []
    for index, op in enumerate(ops):
        if unknown_names(op):
            op.bad(f"checks, asks: no callable {unknown_names(op)}")
        for k, e in enumerate(entries(op)):
            base = f"{op.name}_{k}"
            fixed = [("", f, value, False, False) for f, value in e.fixed]
            params = ", ".join(f"{{{cstr(n)}, {op.fields.index(f) if f else -1}, {cstr(d) if d else 'NULL'}, "
                               f"{'true' if required else 'false'}, {'true' if none else 'false'}}}"
                               for n, f, d, required, none in e.params + fixed)
            if params:
                out.append(f"static const py_param py_params_{base}[] = {{{params}}};")
            result = op.fields.index(op.by_name[e.result]) if e.result else -1
            for twin in ("", "_") if "INPLACE" in op.flags else ("",):
                names = ", ".join(cstr(n + twin) for n in e.names)
                label = base + ("_in_place" if twin else "")
                out.append(f"static const char *const py_names_{label}[] = {{{names}, NULL}};")
                name = e.names[0].rpartition(".")[2] + twin
                asked, rules = checks(op, name) if k or twin else [], asks(op, name, k > 0, twin)
                if asked:
                    out.append(f"static const py_check py_checks_{label}[] = {{{', '.join(asked)}}};")
                rows.append(f"    {{py_names_{label}, {f'py_params_{base}' if params else 'NULL'}, "
                            f"{cstr(e.signature)}, {index}, {len(e.params)}, {len(fixed)}, {result}, "
                            f"{'true' if twin else 'false'}, {floats(op, k > 0)}, {len(asked)}, {f'py_checks_{label}' if asked else 'NULL'}, "
                            f"{cstr(rules) if rules else 'NULL'}}},")
    return "\n".join(out) + "\nstatic const py_entry py_entries[] = {\n" + "\n".join(rows) + "\n};\n"
