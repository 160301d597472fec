"""The schema of an op table's entry: classes Op and Field, which check an entry while they read it, and the C expressions of
fields' defaults.

docs/add-an-op.md documents it. Used by the other gen_*.py.
"""
import re

DTYPES = ["BOOL", "U8", "I8", "I16", "I32", "I64", "F16", "BF16", "F32", "F64", "C64", "C128"]
# type in `call:` -> (field kind, C type in args, wire attribute type)
TYPES = {
    "Tensor": ("TENSOR", "proa_tensor *", None),
    "Tensor[]": ("TENSORS", "proa_tensors ", None),
    "bool": ("BOOL", "bool ", "BOOLEAN"),
    "int": ("INT", "int64_t ", "INT"),
    "float": ("FLOAT", "double ", "FLOAT"),
    "dtype": ("DTYPE", "proa_dtype ", "INT"),
    "ints": ("INTS", "proa_ints ", "INTS"),
    "floats": ("FLOATS", "proa_floats ", "FLOATS"),
    "string": ("STRING", "const char *", "STRING"),
    "scalar": ("SCALAR", "proa_scalar ", "FLOAT"),
    "steps": ("STEPS", "proa_steps ", None),
    "block": ("BLOCK", "struct proa_block *", "BLOCK"),
}
WIRE_TYPES = ["INT", "FLOAT", "STRING", "INTS", "FLOATS", "STRINGS", "BOOLEAN", "BOOLEANS", "BLOCK", "LONG",
              "BLOCKS", "LONGS", "FLOAT64S", "VAR", "VARS", "FLOAT64", "SCALAR", "SCALARS"]
KEYS = {"op", "ranks", "call", "infer", "vjp", "saves", "saves_meta", "dtypes", "amp", "layout", "view", "view_first", "plan_view", "shape",
        "inplace", "over", "mutates", "rows", "promote", "no_grad", "lazy_grads", "broadcasts", "random", "lod", "kernels",
        "communicates",
        "formula", "lanes", "grain", "flops", "elementwise", "paddle", "samples", "doc", "tolerance", "reference", "python", "python_promotes", "checks", "asks", "skip", "refuses", "oracle",
        "optimizer"}
COUNTS = {"numel", "size", "taps", "matrices", "given"}  # terms of `flops:`: proa__count_* in core/call_cost.h
AMP = {"any": "ANY", "low_precision": "LOW", "float32": "F32", "widest": "WIDEST"}


class SchemaError(Exception):
    pass


class Field:
    def __init__(self, text, role, enums, op):
        m = re.fullmatch(r"\s*([A-Za-z_]+(?:\[\])?)(\?)?\s+(\w+)\s*(?:=\s*(.*?))?\s*", text)
        if not m:
            raise SchemaError(f"{op}: cannot read field {text!r}")
        base, optional, self.name, self.default = m.groups()
        self.role, self.enum = role, None
        if base in enums:
            self.kind, self.ctype, self.wire_type = "ENUM", f"proa_{base} ", "STRING"
            self.enum, self.choices = base, enums[base]
        elif base in TYPES:
            self.kind, self.ctype, self.wire_type = TYPES[base]
        else:
            raise SchemaError(f"{op}: field {self.name}: unknown type {base!r}")
        self.is_tensor = self.kind in ("TENSOR", "TENSORS")
        if not self.is_tensor and role == "ATTR":
            self.from_tensor = bool(optional)
        else:
            self.from_tensor = False
        self.flags = set()
        if optional and self.is_tensor:
            self.flags.add("OPTIONAL")
        if self.from_tensor:
            self.flags.add("FROM_TENSOR")
        self.alias = self.saved_for = None
        if self.kind == "STEPS" and self.default is not None:
            raise SchemaError(f"{op}: field {self.name}: steps have no default")


def split_args(text):
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += c in "[("
        depth -= c in "])"
        if c == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    parts.append(text[start:])
    return [p for p in parts if p.strip()]


def of_rank(value, rank):
    """A value of an entry with `ranks:`: <N> is the rank, `[v] * N` a list of that length, and a mapping from ranks
    has the rank's own value."""
    if isinstance(value, dict):
        if value and all(isinstance(k, int) for k in value):
            return of_rank(value.get(rank), rank)
        return {of_rank(k, rank): of_rank(v, rank) for k, v in value.items()}
    if isinstance(value, list):
        return [of_rank(v, rank) for v in value]
    if isinstance(value, str):
        value = value.replace("<N>", str(rank))
        return re.sub(r"\[(\d+)\] \* N", lambda m: "[" + ", ".join([m[1]] * rank) + "]", value)
    return value


def ops_of(entry, path, table):
    """The ops that an entry stands for: one, or one for each of `ranks:`, which share their structs and functions."""
    ops = []
    for rank in entry.get("ranks", [None]):
        one = entry if rank is None else of_rank({k: v for k, v in entry.items() if k != "ranks"}, rank)
        ops.append(Op({k: v for k, v in one.items() if v is not None}, path, table, rank, ops[0] if ops else None))
    return ops


class Op:
    def __init__(self, entry, path, table, rank=None, like=None):
        self.path, self.rank, self.like = path, rank, like
        # the generated function passes the rank on to those that the entry names
        self.given, self.takes = (f"{rank}, ", "int rank, ") if rank else ("", "")
        self.name = entry.get("op", "?")
        unknown = set(entry) - KEYS
        if unknown:
            raise SchemaError(f"{path}: op {self.name}: unknown keys {sorted(unknown)}")
        self.entry, n = entry, self.name
        m = re.fullmatch(r"\s*\((.*)\)\s*->\s*\((.*)\)\s*", entry["call"], re.S)
        if not m:
            raise SchemaError(f"{path}: op {n}: call must be '(inputs and attributes) -> (outputs)'")
        ordered = []
        for text in split_args(m.group(1)):
            probe = Field(text, "ATTR", table["enums"], n)
            ordered.append(Field(text, "IN", table["enums"], n) if probe.is_tensor else probe)
        self.ordered = ordered
        self.ins = [f for f in ordered if f.role == "IN"]
        self.attrs = [f for f in ordered if f.role == "ATTR"]
        self.outs = [Field(t, "OUT", table["enums"], n) for t in split_args(m.group(2))]
        self.fields = self.ins + self.attrs + self.outs
        self.by_name = {f.name: f for f in self.fields}
        if len(self.by_name) != len(self.fields):
            raise SchemaError(f"{path}: op {n}: two fields share a name")
        if "doc" not in entry:
            raise SchemaError(f"{path}: op {n}: needs doc")
        if "samples" not in entry and "skip" not in entry:
            raise SchemaError(f"{path}: op {n}: needs samples (or skip: reason)")
        self.doc = " ".join(str(entry["doc"]).split())
        self.vjp = entry.get("vjp")  # a rule's name; none: nothing flows back; refused: backward is an error
        self.has_rule = self.vjp not in (None, "none", "refused")
        self.flags = set()
        if self.vjp == "none":
            self.flags.add("NO_GRAD")
        for key, flag in (("lazy_grads", "LAZY_GRADS"), ("random", "RANDOM"), ("promote", "PROMOTES"),
                          ("inplace", "INPLACE"), ("mutates", "MUTATES"), ("view", "VIEW"), ("view_first", "VIEW_FIRST")):
            if entry.get(key):
                self.flags.add(flag)
        if entry.get("elementwise") or (entry.get("formula") or "").split(" ")[0] in (
                "unary", "binary", "ternary", "flagged", "flagged2"):
            self.flags.add("ELEMENTWISE")
        if entry.get("broadcasts"):
            self.flags.add({"all": "BROADCASTS", "batch": "BATCHES"}[entry["broadcasts"]])
        if entry.get("layout", "contiguous") == "strided":
            self.flags.add("STRIDED")
        if entry.get("shape") == "data":
            self.flags.add("DATA_SHAPE")
        if entry.get("lod") == "share":
            self.flags.add("LOD_SHARE")
        if {f.kind for f in self.fields} <= {"TENSOR", "BOOL", "INT", "FLOAT", "DTYPE", "ENUM"}:
            self.flags.add("FLAT")
        for key, flag in (("saves", "SAVED"), ("saves_meta", "SAVED_META"), ("promote", "PROMOTE"),
                          ("no_grad", "NO_GRAD")):
            for text in entry.get(key) or []:
                name, _, wanted_by = text.partition(" for ")  # "x for y": by value only if y wants a gradient
                self.field(name, key).flags.add(flag)
                if wanted_by:
                    self.by_name[name].saved_for = self.field(wanted_by, key)
        for key, flag in (("inplace", None), ("over", None), ("mutates", "MUTATED")):
            for out, src in (entry.get(key) or {}).items():
                self.field(out, key).alias = self.field(src, key)
                if flag:
                    self.by_name[out].flags.add(flag)
        rows = entry.get("rows") or []  # inputs that may be of kind rows; {x: out}: and then out is, too
        for name in rows:
            self.field(name, "rows").flags.add("ROWS")
        if isinstance(rows, dict):
            if set(rows.values()) != {self.outs[0].name}:
                self.bad("rows: only the first output can be of kind rows")
            self.flags.add("ROWS")
        if entry.get("view"):
            self.outs[0].alias = self.ins[0]
            self.outs[0].flags.add("VIEW")
            if self.outs[0].kind == "TENSORS":
                self.flags.discard("VIEW")
        for before, twin in zip(self.fields, self.fields[1:]):  # `k_tensor` supplies k, or else the int before it
            of = self.by_name.get(twin.name.removesuffix("_tensor"), before)
            if twin.kind == "INTS" and twin.name.endswith("_tensor") and of.kind == "INT":
                of.alias = twin
        self.communicates = bool(entry.get("communicates"))
        self.view = entry.get("view") or entry.get("plan_view")
        lists = table["dtype_lists"]
        self.dtypes = []
        for d in entry.get("dtypes", ["any"]):
            self.dtypes += lists.get(d) or ([d] if d in DTYPES else self.bad(f"unknown dtype list {d!r}"))
        if self.has_rule and sum(f.kind == "TENSORS" for f in self.outs) > 1:
            self.bad("a differentiable op has at most one list output")
        self.kernels = entry.get("kernels", [f"{n}_cpu"])
        self.amp = AMP.get(entry.get("amp", "any")) or self.bad(f"amp: {entry['amp']!r}")
        self.wires = entry.get("paddle", [])
        self.wires = [] if self.wires in ("none", None) else self.wires
        # positional parameters of the C function, and options
        self.required = [f for f in ordered if f.role == "IN" or f.default is None]
        self.options = [f for f in ordered if f.role == "ATTR" and f.default is not None]

    def bad(self, what):
        raise SchemaError(f"{self.path}: op {self.name}: {what}")

    def field(self, name, key):
        if name not in self.by_name:
            self.bad(f"{key} names {name!r}, which is no field")
        return self.by_name[name]

    @property
    def result_outs(self):
        return [f for f in self.outs if "MUTATED" not in f.flags]

    def flops(self):
        """C expression of `flops:` over the args struct `a`; None if the entry has none."""
        def word(m):
            if m[0] in COUNTS:
                return f"proa__count_{m[0]}"
            return f"a->{self.field(m[0], 'flops').name}"
        text = self.entry.get("flops")
        return None if text is None else re.sub(r"[a-z_]\w*", word, str(text))

    def signature(self):
        return f"{self.name}({', '.join(f'{f.role}:{f.kind}:{f.name}' for f in self.fields)})"


def cstr(s):
    return '"' + s.replace("\\", "\\\\").replace('"', '\\"') + '"'


# ---- values of defaults ----------------------------------------------------------------------

def default_expr(op, f):
    """C expression of an attribute's default value."""
    d = f.default
    if f.kind == "BOOL":
        return {"true": "true", "false": "false"}.get(d) or op.bad(f"default of {f.name}")
    if f.kind == "DTYPE":
        return "PROA_NODTYPE" if d == "none" else f"PROA_{d}"
    if f.kind == "ENUM":
        if d not in f.choices:
            op.bad(f"default of {f.name}: {d!r} not in {f.choices}")
        return enum_name(f.enum, d)
    if f.kind in ("INTS", "FLOATS"):
        values = [v.strip() for v in d.strip("[]").split(",") if v.strip()]
        if not values:
            return "{0}" if f.kind == "FLOATS" else "{0, NULL, NULL, NULL}"
        ctype = "int64_t" if f.kind == "INTS" else "double"
        tail = ", NULL, NULL" if f.kind == "INTS" else ""
        return f"{{{len(values)}, (const {ctype}[]){{{', '.join(values)}}}{tail}}}"
    if f.kind == "STRING":
        return cstr(d.strip('"'))
    if f.kind == "SCALAR":
        if d == "none":
            return "{0}"
        if "." in d or "e" in d or "inf" in d:
            return f"{{.kind = PROA_SCALAR_FLOAT, .f = {d}}}"
        return f"{{.kind = PROA_SCALAR_INT, .i = {d}, .f = {d}}}"
    if f.kind == "BLOCK":
        return "NULL"
    if f.kind == "FLOAT":
        return {"inf": "INFINITY", "-inf": "-INFINITY"}.get(d, d)
    return d


def enum_name(enum, value):
    return f"PROA_{enum.upper()}_{value.upper()}"


def option_name(f):
    return f"no_{f.name}" if f.kind == "BOOL" and f.default == "true" else f.name


def option_value(op, f):
    """C statement(s) that move option `f` into args `a`, resolving its default."""
    o, d = f"opts.{option_name(f)}", default_expr(op, f)
    if f.kind == "BOOL":
        return f"    a.{f.name} = {'!' if f.default == 'true' else ''}{o};"
    if f.kind in ("INTS", "FLOATS"):
        given = f"{o}.count || {o}.tensor || {o}.tensors" if f.kind == "INTS" else f"{o}.count"
        if d.startswith("{0"):
            return f"    a.{f.name} = {o};"
        ct = "proa_ints" if f.kind == "INTS" else "proa_floats"
        return f"    a.{f.name} = ({given}) ? {o} : ({ct}){d};"
    if f.kind == "SCALAR":
        return f"    a.{f.name} = {o}.kind ? {o} : (proa_scalar){d};"
    if f.kind in ("STRING", "BLOCK"):
        return f"    a.{f.name} = {o} ? {o} : {d};"
    if f.kind in ("ENUM", "DTYPE"):
        # enums are stored one up in options, so that zero means "default"
        return (f"    a.{f.name} = {o} ? {o} : {d};" if f.kind == "DTYPE" else f"    a.{f.name} = {o};"
                if f.default == f.choices[0] else op.bad(f"enum default of {f.name} must be the first choice"))
    if f.kind == "FLOAT" and d in ("0", "0.0"):
        return f"    a.{f.name} = {o} == (double)PROA_ZERO ? 0 : {o};"
    if f.kind == "INT" and d == "0":
        return f"    a.{f.name} = {o} == PROA_ZERO ? 0 : {o};"
    zero = "(double)PROA_ZERO" if f.kind == "FLOAT" else "PROA_ZERO"
    if f.kind == "FLOAT":
        return f"    a.{f.name} = proa__option_float({o}, {d});"
    return f"    a.{f.name} = {o} == 0 ? {d} : {o} == {zero} ? 0 : {o};"
