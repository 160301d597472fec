#!/usr/bin/env python3
"""The op table's generator: ops/*/*.yaml -> C declarations, descriptors, public functions, ops.json.

    gen_ops.py --table ops/table.yaml --out build/gen [--lock ops/ops.lock] ops/*/*.yaml
    gen_ops.py --table ops/table.yaml --out DIR --plugin NAME my_ops.yaml      (ops outside the library)

The schema of an entry is documented in docs/add-an-op.md. Facts come from YAML, code from C: this file
only writes declarations, tables and argument passing. Needs PyYAML; source archives ship its output.
"""
import argparse
import hashlib
import json
import pathlib
import re
import sys

import yaml

import gen_python

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
    "block": ("BLOCK", "struct proa_block *", "BLOCK"),
}
WIRE_TYPES = ["INT", "FLOAT", "STRING", "INTS", "FLOATS", "STRINGS", "BOOLEAN", "BOOLEANS", "BLOCK", "LONG",
              "BLOCKS", "LONGS", "FLOAT64S", "VAR", "VARS", "FLOAT64", "SCALAR", "SCALARS"]
KEYS = {"op", "call", "infer", "vjp", "saves", "saves_meta", "dtypes", "amp", "layout", "view", "shape",
        "inplace", "mutates", "rows", "promote", "no_grad", "lazy_grads", "broadcasts", "random", "lod", "kernels",
        "formula", "lanes", "elementwise", "paddle", "samples", "doc", "tolerance", "reference", "python", "skip", "refuses", "oracle"}
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
        if role == "ATTR" and self.default is None and self.kind == "STRING":
            pass


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


class Op:
    def __init__(self, entry, path, table):
        self.path = path
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
                          ("inplace", "INPLACE"), ("mutates", "MUTATES"), ("view", "VIEW")):
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
        for key, flag in (("inplace", None), ("mutates", "MUTATED")):
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


# ---- products --------------------------------------------------------------------------------

def banner(what):
    return f"/* {what}\n * Generated by tools/gen_ops.py from the op tables: change those. */\n"


def emit_enums(table):
    out = []
    for name, values in table["enums"].items():
        rows = ", ".join(enum_name(name, v) for v in values)
        out.append(f"typedef enum proa_{name} {{ {rows} }} proa_{name};")
    return "\n".join(out)


def emit_args(op):
    rows = "\n".join(f"    {f.ctype}{f.name};" for f in op.fields)
    return f"typedef struct proa_{op.name}_args {{\n{rows}\n}} proa_{op.name}_args;"


def result_type(op):
    outs = op.result_outs
    if not outs:
        return "proa_status "
    if len(outs) == 1:
        return outs[0].ctype
    return f"proa_{op.name}_result "


def params(op):
    ps = [f"{f.ctype}{f.name}" for f in op.required]
    if op.options:
        ps.append(f"proa_{op.name}_opts opts")
    return ", ".join(ps) or "void"


def c_name(op, suffix):
    """The function behind the macro proa_<op> (suffix "") or its in-place twin proa_<op>_ (suffix "_")."""
    return f"proa_{op.name}{'_in_place' if suffix else '_opt'}"


def emit_public(op):
    out = [f"/* {op.doc}\n * {op.entry['call']} */"]
    if op.options:
        rows = "\n".join(f"    {f.ctype}{option_name(f)}; /* default {f.default} */" for f in op.options)
        out.append(f"typedef struct proa_{op.name}_opts {{\n    char _;\n{rows}\n}} proa_{op.name}_opts;")
    if len(op.result_outs) > 1:
        rows = "\n".join(f"    {f.ctype}{f.name};" for f in op.result_outs)
        out.append(f"typedef struct proa_{op.name}_result {{\n{rows}\n}} proa_{op.name}_result;")
    for suffix in ("", "_") if "INPLACE" in op.flags else ("",):
        fn = f"proa_{op.name}{suffix}"
        names = [f.name for f in op.required]
        wrapped = [f"PROA_SCALAR({n})" if op.by_name[n].kind == "SCALAR" else f"({n})" for n in names]
        out.append(f"PROA_API {result_type(op)}{c_name(op, suffix)}({params(op)});")
        if op.options:
            lead = "".join(n + ", " for n in names)
            args = "".join(w + ", " for w in wrapped)
            out.append(f"#define {fn}(...) PROA_X_{op.name}{suffix}_(__VA_ARGS__{', ' if names else ''})")
            init = f"PROA_LITERAL(proa_{op.name}_opts){{._ = 0, __VA_ARGS__}}"
            out.append(f"#define PROA_X_{op.name}{suffix}_({lead}...) \\\n"
                       f"    {c_name(op, suffix)}({args}{init})")
        else:
            out.append(f"#define {fn}({', '.join(names)}) {c_name(op, suffix)}({', '.join(wrapped)})")
    return "\n".join(out)


def emit_ops_h(ops, table, digest=None):
    body = "\n\n".join(emit_public(op) for op in ops)
    args = "\n\n".join(emit_args(op) for op in ops)
    tail = "#include <proa/create.h>\n" if {"full", "full_like"} <= {op.name for op in ops} else ""
    hash_line = (f'/* What a custom op is built against: see proa_register_op. */\n'
                 f'#define PROA_TABLE_HASH "{digest}"\n') if digest else ""
    return f"""{banner("Every op as a C function, with its args struct.")}#ifndef PROA_OPS_H
#define PROA_OPS_H

#include <proa/core.h>

#ifdef __cplusplus
extern "C" {{
#endif

{emit_enums(table)}

struct proa_block;
{hash_line}
/* ---- args structs: the one form of an op call ---- */

{args}

/* ---- functions: required arguments by position, options as `.name = value` ---- */

{body}

#ifdef __cplusplus
}}
#endif
{tail}#endif
"""


def emit_lists(table):
    out = []
    for name, dtypes in table["dtype_lists"].items():
        rows = " ".join(f"X({d})" for d in dtypes)
        out.append(f"#define PROA_LIST_{name.upper()}(X) {rows}")
    return "\n".join(out)


def grads_struct(op):
    rows = [f"    {f.ctype}d_{f.name}; /* given */" for f in op.outs]
    rows += [f"    {f.ctype}d_{f.name}; /* to make if want_{f.name} */" for f in grad_ins(op)]
    rows += [f"    bool want_{f.name};" for f in grad_ins(op)]
    return f"typedef struct proa_{op.name}_grads {{\n" + "\n".join(rows) + f"\n}} proa_{op.name}_grads;"


def grad_ins(op):
    return [f for f in op.ins if "NO_GRAD" not in f.flags]


def shared_infer(name, parts):
    """Prototype of `infer: "@name"`: one function for many ops, which sees the op and reads fields by descriptor."""
    text = f"proa_status {name[1:]}(const proa_op *op, const void *args, void *metas);"
    return "" if text in parts else text


def emit_impl_h(ops, table, plugin):
    guard = f"PROA_{(plugin or 'ops').upper()}_IMPL_H"
    public = f"{plugin}_ops.h" if plugin else "proa/ops.h"
    parts = []
    for op in ops:
        n = op.name
        metas = "\n".join(f"    proa_meta{'s' if f.kind == 'TENSORS' else ''} {f.name};" for f in op.outs)
        parts.append(f"typedef struct proa_{n}_metas {{\n{metas or '    char _;'}\n}} proa_{n}_metas;")
        if op.entry.get("infer"):
            parts.append(shared_infer(op.entry["infer"], parts) if op.entry["infer"].startswith("@") else
                         f"proa_status {op.entry['infer']}(const proa_{n}_args *a, proa_{n}_metas *m);")
        if op.has_rule:
            parts.append(grads_struct(op))
            parts.append(f"proa_status {op.vjp}(const proa_{n}_args *a, proa_{n}_grads *g);")
        if op.entry.get("view"):
            parts.append(f"proa_status {op.entry['view']}(proa_{n}_args *a, const proa_meta *m);")
    lists = "" if plugin else emit_lists(table)
    return f"""{banner("For the authors of ops: metas and gradient structs, prototypes of rules.")}#ifndef {guard}
#define {guard}

#include <proa/op.h>
#include <{public}>

{lists}

""" + "\n".join(p for p in parts if p) + "\n\n#endif\n"


def emit_calls(ops, include, table_prefix):
    out = [banner("The public function of every op."), f"#include <{include}>\n#include <proa/op.h>\n",
           "static inline double proa__option_float(double given, double fallback)\n{\n"
           "    return given == 0 ? fallback : given == (double)PROA_ZERO ? 0 : given;\n}\n"
           "double proa__option_float_used(double a);\n"
           "double proa__option_float_used(double a) { return proa__option_float(a, 0); }\n"
           if not table_prefix.startswith("plugin") else
           "static inline __attribute__((unused)) double proa__option_float(double given, double fallback)\n{\n"
           "    return given == 0 ? fallback : given == (double)PROA_ZERO ? 0 : given;\n}\n"]
    for op in ops:
        for suffix in ("", "_") if "INPLACE" in op.flags else ("",):
            fn = c_name(op, suffix)
            lines = [f"{result_type(op)}{fn}({params(op)})", "{",
                     f"    proa_{op.name}_args a = {{0}};"]
            for f in op.required:
                lines.append(f"    a.{f.name} = {f.name};")
            for f in op.options:
                lines.append(option_value(op, f))
            if suffix:
                for f in op.outs:
                    if f.alias:
                        lines.append(f"    a.{f.name} = a.{f.alias.name};")
            call = f"proa_call_op({table_prefix}{op.name}, &a)"
            outs = op.result_outs
            if not outs:
                lines.append(f"    return {call};")
            elif len(outs) == 1 and outs[0].kind == "TENSOR":
                lines.append(f"    return {call} == PROA_OK ? a.{outs[0].name} : NULL;")
            elif len(outs) == 1:
                lines += [f"    if ({call} != PROA_OK) return (proa_tensors){{0, NULL}};",
                          f"    return a.{outs[0].name};"]
            else:
                lines += [f"    proa_{op.name}_result r = {{0}};", f"    if ({call} != PROA_OK) return r;"]
                lines += [f"    r.{f.name} = a.{f.name};" for f in outs]
                lines.append("    return r;")
            lines.append("}")
            out.append("\n".join(lines) + "\n")
    return "\n".join(out)


def emit_wires(op, index):
    decls, rows = [], []
    for i, w in enumerate(op.wires):
        if "type" not in w:
            op.bad(f"paddle form {i} needs type")
        slots, attrs = [], []
        for key, value in w.items():
            if key in ("type", "read", "write", "omit"):
                continue
            spec = value if isinstance(value, dict) else {"field": value}
            f = op.by_name.get(spec.get("field")) if "field" in spec else None
            if "field" in spec and f is None:
                op.bad(f"paddle form {w['type']}: {key}: no field {spec['field']!r}")
            if f is not None and f.is_tensor:
                slots.append(f"{{{cstr(key)}, {op.fields.index(f)}}}")
                continue
            wtype = spec.get("as") or (f.wire_type if f else None)
            if wtype not in WIRE_TYPES:
                op.bad(f"paddle form {w['type']}: {key}: needs as: one of {WIRE_TYPES}")
            const = spec.get("value")
            text = "NULL" if const is None else cstr(wire_text(const))
            missing = "NULL" if "missing" not in spec else cstr(wire_text(spec["missing"]))
            extra = [cstr(spec[k]) if k in spec else "NULL" for k in ("tensor", "tensors")]
            attrs.append(f"{{{cstr(key)}, {op.fields.index(f) if f else -1}, {WIRE_TYPES.index(wtype)}, "
                         f"{text}, {missing}, {extra[0]}, {extra[1]}}}")
        base = f"wire_{op.name}_{i}"
        if slots:
            decls.append(f"static const proa_wire_slot {base}_slots[] = {{{', '.join(slots)}}};")
        if attrs:
            decls.append(f"static const proa_wire_attr {base}_attrs[] = {{{', '.join(attrs)}}};")
        for key, proto in (("read", "(proa_wire_reader *)"), ("write", "(const void *, proa_wire_writer *)")):
            if w.get(key):
                decls.append(f"proa_status {w[key]}{proto};")
        rows.append(f"    {{{cstr(w['type'])}, {base + '_slots' if slots else 'NULL'}, "
                    f"{base + '_attrs' if attrs else 'NULL'}, {len(slots)}, {len(attrs)}, "
                    f"{w.get('read', 'NULL')}, {w.get('write', 'NULL')}}},")
    if rows:
        decls.append(f"static const proa_wire wires_{op.name}[] = {{\n" + "\n".join(rows) + "\n};")
    return "\n".join(decls)


def wire_text(v):
    if isinstance(v, bool):
        return "true" if v else "false"
    if isinstance(v, list):
        return ",".join(str(x) for x in v)
    return str(v)


def field_row(op, f):
    kinds = "".join(f" | PROA_FIELD_{x}" for x in sorted(f.flags))
    choices = f"choices_{f.enum}" if f.enum else "NULL"
    n, has_rule = op.name, op.has_rule
    grad = want = "0xffff"
    if has_rule and f.role == "OUT":
        grad = f"offsetof(proa_{n}_grads, d_{f.name})"
    if has_rule and f in grad_ins(op):
        grad = f"offsetof(proa_{n}_grads, d_{f.name})"
        want = f"offsetof(proa_{n}_grads, want_{f.name})"
    fallback = "NULL" if f.default is None else cstr(f.default)
    alias = op.fields.index(f.alias) if f.alias else -1
    return (f"    {{{cstr(f.name)}, {cstr(f.enum) if f.enum else 'NULL'}, {choices}, {fallback}, "
            f"offsetof(proa_{n}_args, {f.name}), {grad}, {want}, PROA_FIELD_{f.kind}, PROA_{f.role}, "
            f"0{kinds}, {alias}, {op.fields.index(f.saved_for) if f.saved_for else -1}}},")


def emit_table(ops, table, plugin, digest):
    include = f"{plugin}_ops_impl.h" if plugin else "ops_impl.h"
    out = [banner("Descriptors of every op."), f"#include \"{include}\"", "#include <proa/wire.h>\n"]
    if not plugin:
        out.append('#include "kernels.h"\n')
    used = {f.enum for op in ops for f in op.fields if f.enum}
    for enum in [e for e in table["enums"] if e in used]:
        rows = ", ".join(cstr(v) for v in table["enums"][enum])
        out.append(f"static const char *const choices_{enum}[] = {{{rows}, NULL}};")
    for i, op in enumerate(ops):
        n = op.name
        out.append(f"\n/* {n} */")
        out.append(f"static const proa_field fields_{n}[] = {{\n" +
                   "\n".join(field_row(op, f) for f in op.fields) + "\n};")
        infer = op.entry.get("infer")
        if infer:
            call = f"{infer[1:]}(&{'op_' if plugin else 'proa__op_'}{n}, a, m)" if infer[0] == "@" else f"{infer}(a, m)"
            if infer[0] == "@":
                out.append(f"{'static' if plugin else 'extern'} const proa_op {'op_' if plugin else 'proa__op_'}{n};")
            out.append(f"static proa_status infer_{n}(const void *a, void *m) {{ return {call}; }}")
        if op.has_rule:
            out.append(f"static proa_status vjp_{n}(const void *a, void *g) {{ return {op.vjp}(a, g); }}")
        if op.entry.get("view"):
            out.append(f"static proa_status view_{n}(void *a, const proa_meta *m) "
                       f"{{ return {op.entry['view']}(a, m); }}")
        if plugin:
            for k in op.kernels:
                out.append(f"extern const proa_kernel {k};")
            refs = ", ".join("&" + k for k in op.kernels)
            out.append(f"static const proa_kernel *const kernels_{n}[] = {{{refs}{', ' if refs else ''}NULL}};")
        wires = emit_wires(op, i)
        if wires:
            out.append(wires)
        flags = "".join(f" | PROA_OP_{x}" for x in sorted(op.flags))
        mask = " | ".join(f"1u << PROA_{d}" for d in op.dtypes)
        kernels = f"kernels_{n}" if plugin else f"proa__kernels[{i}]"
        storage = "const proa_op proa__op_" if not plugin else "static const proa_op op_"
        out.append(f"""{storage}{n} = {{
    .name = "{n}", .fields = fields_{n}, .n_fields = {len(op.fields)}, .n_in = {len(op.ins)}, .n_attr = {len(op.attrs)}, .n_out = {len(op.outs)},
    .args_size = sizeof(proa_{n}_args), .metas_size = sizeof(proa_{n}_metas), .grads_size = {f'sizeof(proa_{n}_grads)' if op.has_rule else '0'},
    .flags = 0{flags}, .amp = PROA_AMP_{op.amp}, .id = {i if not plugin else '0xffffffffu'}, .dtypes = {mask},
    .infer = {f'infer_{n}' if infer else 'NULL'}, .view = {f'view_{n}' if op.entry.get('view') else 'NULL'}, .vjp = {f'vjp_{n}' if op.has_rule else 'NULL'},
    .kernels = {kernels}, .wires = {f'wires_{n}' if op.wires else 'NULL'}, .n_wires = {len(op.wires)},
    .doc = {cstr(op.doc)},
}};""")
    if plugin:
        out.append(f'\nproa_status {plugin}_register(void);\nproa_status {plugin}_register(void)\n{{')
        for op in ops:
            out.append(f'    PROA_TRY(proa_register_op(&op_{op.name}, PROA_TABLE_HASH));')
        out.append("    return PROA_OK;\n}\n")
    else:
        rows = "\n".join(f"    &proa__op_{op.name}," for op in ops)
        out.append(f"\n/* Written once, while the library loads (ops/registry.c). */\n"
                   f"proa_kernel_row proa__kernels[{len(ops)}];")
        out.append(f"\nconst proa_op *const proa_op_table[] = {{\n{rows}\n}};")
        out.append(f"const uint32_t proa_op_count = {len(ops)};")
        out.append(f'const char proa_table_hash[] = "{digest}";')
    return "\n".join(out) + "\n"


def emit_kernels(ops):
    """kernels.h: the pointer table; kernels_level.c: compiled once per CPU level, fills it."""
    longest = max(len(op.kernels) for op in ops) + 1
    header = f"""{banner("The kernels of every op, best first: filled at load with those of this CPU's level.")}#ifndef PROA_KERNELS_H
#define PROA_KERNELS_H

#include <proa/op.h>

#define PROA_KERNELS_MAX {longest}
typedef const proa_kernel *proa_kernel_row[PROA_KERNELS_MAX];
extern proa_kernel_row proa__kernels[{len(ops)}];
void proa__kernels_fill_base(proa_kernel_row *rows);
void proa__kernels_fill_v3(proa_kernel_row *rows);
void proa__kernels_fill_v4(proa_kernel_row *rows);

#endif
"""
    source = [banner("Which kernels an op has at one CPU level (PROA_LEVEL is _base, _v3, _v4)."),
              '#include "kernels.h"\n']
    guards = {"onednn": "PROA_HAVE_ONEDNN", "openblas": "PROA_HAVE_OPENBLAS"}
    seen = set()
    for op in ops:
        for k in op.kernels:
            if k in seen:
                continue
            seen.add(k)
            family = k.rsplit("_", 1)[1]
            if family == "cpu":
                source.append(f"extern const proa_kernel PROA_LEVELLED({k});")
            elif family == "any":  # compiled once, and always there
                source.append(f"extern const proa_kernel {k};")
            else:
                source.append(f"#if {guards[family]}\nextern const proa_kernel {k};\n#endif")
    source.append("\nvoid PROA_LEVELLED(proa__kernels_fill)(proa_kernel_row *rows)\n{\n    const proa_kernel **row;")
    for i, op in enumerate(ops):
        source.append(f"    row = rows[{i}]; /* {op.name} */")
        for k in op.kernels:
            family = k.rsplit("_", 1)[1]
            if family == "cpu":
                source.append(f"    *row++ = &PROA_LEVELLED({k});")
            elif family == "any":
                source.append(f"    *row++ = &{k};")
            else:
                source.append(f"#if {guards[family]}\n    *row++ = &{k};\n#endif")
        source.append("    *row = NULL;")
    source.append("}\n")
    return header, "\n".join(source)


def emit_formulas(ops):
    """`formula: unary math F32 F64` makes, for the file that defines PROA_FORMULAS_MATH, one row a dtype
    (attributes follow by name), their table, and the kernel. `lanes: true`: that of float32 is ops/lanes.h's."""
    out, names = [], []
    for op in ops:
        if not op.entry.get("formula"):
            continue
        shape, group, *dtypes = str(op.entry["formula"]).split()
        bad = [d for d in dtypes if d not in DTYPES]
        if bad or not dtypes:
            op.bad(f"formula: 'shape group dtypes…', not {op.entry['formula']!r}")
        n, shape, attrs = op.name, shape.upper(), "".join(f", {f.name}" for f in op.attrs)
        out.append(f"#ifdef PROA_FORMULAS_{group.upper()}")
        lanes = op.entry.get("lanes")
        out += [f"PROA_LANES_{shape}_{len(op.attrs)}({n}{attrs})" if lanes and d == "F32" else
                f"PROA_ROW_{shape}_{len(op.attrs)}({n}, {d}{attrs})" for d in dtypes]
        entries = ", ".join(f"[PROA_{d}] = {n}_row_{d}" for d in dtypes)
        fields = ", ".join(f.name for f in op.outs + op.ins)
        out += [f"const proa_rows PROA_LEVELLED({n}_rows) = {{{{{entries}}}, PROA_ROW_OUT_{shape}, "
                f"{f'PROA_PAST({n})' if lanes else 'NULL'}}};",
                f"PROA_MAP_{shape}({n}, {fields})", "#endif"]
        if shape in ("UNARY", "BINARY", "TERNARY", "FLAGGED", "FLAGGED2"):  # the result is of the inputs' dtype
            names.append(n)
    out += ["/* Those that may follow one another, by name, for kernels that run the rows of many ops. */",
            "#ifdef PROA_FORMULAS_ALL"]
    out += [f"extern const proa_rows PROA_LEVELLED({n}_rows);" for n in names]
    out += ["static const struct {", "    const char *op;", "    const proa_rows *rows;", "} formula_rows[] = {"]
    out += [f'    {{"{n}", &PROA_LEVELLED({n}_rows)}},' for n in sorted(names)] + ["};", "#endif"]
    out += ["#ifdef PROA_FORMULAS_NAMES", "static const char *const formula_names[] = {"]
    out += [f'    "{n}",' for n in sorted(names)] + ["};", "#endif"]
    return banner("Ops that are a scalar formula: rows, their table and the kernel. See ops/elementwise/rows.h.") + \
        "\n".join(out) + "\n"


def emit_cuda_formulas(ops):
    """The same formulas for ops/elementwise/cuda.h: a functor a dtype, and the kernel. Complex dtypes are left out."""
    out = []
    for op in ops:
        if not op.entry.get("formula"):
            continue
        shape, group, *dtypes = str(op.entry["formula"]).split()
        dtypes = [d for d in dtypes if d not in ("C64", "C128")]
        flagged, n, ins = shape.startswith("flagged"), op.name, len(op.ins)
        if not dtypes:
            continue
        result = "uint8_t" if shape in ("test", "compare") else "T"
        xs, attrs = ["x", "y", "z"][:ins], [f.name for f in op.attrs]
        out.append(f"#ifdef PROA_FORMULAS_{group.upper()}")
        for d in dtypes:
            members = "".join(f" {'bool' if flagged else 'T'} {a};" for a in attrs)
            args = ", ".join(xs if flagged else xs + attrs)
            body = f"{attrs[0]} ? {n}_on_{d}({args}) : {n}_off_{d}({args})" if flagged else f"{n}_{d}({args})"
            out.append(f"struct {n}_{d}_cuda {{ typedef cuda_c_{d} T; typedef {result} R;{members}\n"
                       f"    CUDA_CALL R operator()({', '.join('T ' + x for x in xs)}) const {{ return (R)({body}); }} }};")
        mask = " | ".join(f"1u << PROA_{d}" for d in dtypes)
        tensors = ", ".join(f"a->{f.name}" for f in op.outs + op.ins)
        out.append(f"CUDA_KERNEL({n}, CUDA_IS(a->{op.ins[0].name}, CUDA_REALS))\n{{\n    proa_tensor *t[] = {{{tensors}}};\n"
                   f"    switch (cuda_compute_dtype({mask}, cuda_look(t[1]).dtype)) {{")
        for i, d in enumerate(dtypes):
            label = "default" if i == len(dtypes) - 1 else f"case PROA_{d}"
            given = ", ".join(f"a->{x}" if flagged else f"(cuda_c_{d})a->{x}" for x in attrs)
            out.append(f"    {label}: return cuda_map_run<{ins}>(c, t, {n}_{d}_cuda{{{given}}});")
        out += ["    }\n}", "#endif"]
    out += ["/* X(op, flagged): what may stand in a fused chain (devices/cuda/fuse.c). */", "#ifdef PROA_FORMULAS_CHAIN",
            "#define PROA_CHAIN_FORMULAS(X) \\\n    " + " \\\n    ".join(chain_formulas(ops)), "#endif"]
    return banner("Ops that are a scalar formula, as CUDA kernels. See ops/elementwise/cuda.h.") + "\n".join(out) + "\n"


def chain_formulas(ops):
    """Formulas of floating numbers that give such, and whose attributes are numbers."""
    for op in ops:
        shape, _, *dtypes = str(op.entry.get("formula") or "test -").split()
        if shape not in ("test", "compare") and {"F32", "F64"} <= set(dtypes) and all(a.kind in ("FLOAT", "BOOL") for a in op.attrs):
            yield f"X({op.name}, {int(shape.startswith('flagged'))})"


def emit_json(ops, table):
    out = []
    for op in ops:
        e = op.entry
        out.append({
            "name": op.name, "family": pathlib.Path(op.path).parent.name, "call": e["call"], "doc": op.doc,
            "fields": [{"name": f.name, "kind": f.kind, "role": f.role, "default": f.default,
                        "flags": sorted(f.flags), "enum": f.enum,
                        "alias": f.alias.name if f.alias else None} for f in op.fields],
            "order": [f.name for f in op.ordered], "flags": sorted(op.flags), "dtypes": op.dtypes,
            "kernels": op.kernels, "vjp": op.vjp, "amp": op.amp, "saves": [x.partition(" for ")[0] for x in e.get("saves", [])],
            "wires": [w["type"] for w in op.wires], "samples": e.get("samples", []),
            "tolerance": e.get("tolerance"), "reference": e.get("reference"), "skip": e.get("skip"),
            "refuses": e.get("refuses") or {},
            "oracle": e.get("oracle"), "python": e.get("python"),
        })
    return json.dumps({"ops": out, "dtype_lists": table["dtype_lists"], "enums": table["enums"]}, indent=1) + "\n"


def emit_lock(ops):
    rows = ["# Op names and the wire names they write and read. Regenerated by `make lock`; CI diffs it.",
            "# op\twritten\tread"]
    for op in sorted(ops, key=lambda o: o.name):
        types = [w["type"] for w in op.wires]
        rows.append("\t".join([op.name, types[0] if types else "-", " ".join(types[1:]) or "-"]))
    return "\n".join(rows) + "\n"


def write(path, text):
    if path.exists() and path.read_text() == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("--table", required=True)
    p.add_argument("--out", required=True)
    p.add_argument("--include", default=str(pathlib.Path(__file__).parent.parent / "include"),
                   help="folder of proa/op.h: its layout goes into the table's hash")
    p.add_argument("--lock", help="lock file to write")
    p.add_argument("--plugin", help="name of an outside op set")
    p.add_argument("yaml", nargs="+")
    a = p.parse_args()
    table = yaml.safe_load(pathlib.Path(a.table).read_text())
    ops, names = [], set()
    for path in sorted(a.yaml):
        for entry in yaml.safe_load(pathlib.Path(path).read_text()) or []:
            op = Op(entry, path, table)
            if op.name in names:
                op.bad("defined twice")
            names.add(op.name)
            ops.append(op)
    out = pathlib.Path(a.out)
    headers = pathlib.Path(a.include) / "proa"
    layout = [(headers / h).read_text() for h in ("core.h", "op.h", "wire.h")] if not a.plugin else []
    digest = hashlib.sha256("\n".join(layout + [op.signature() for op in ops]).encode()).hexdigest()
    if a.plugin:
        n = a.plugin
        write(out / f"{n}_ops.h", emit_ops_h(ops, {"enums": {}}).replace("PROA_OPS_H", f"PROA_{n.upper()}_OPS_H")
              .replace("#include <proa/core.h>", "#include <proa/ops.h>"))
        write(out / f"{n}_ops_impl.h", emit_impl_h(ops, table, n))
        calls = emit_calls(ops, f"{n}_ops.h", "plugin:").replace("plugin:", "&op_")
        write(out / f"{n}_ops.c", emit_table(ops, table, n, None) + calls)
        return 0
    write(out / "proa/ops.h", emit_ops_h(ops, table, digest))
    write(out / "ops_impl.h", emit_impl_h(ops, table, None))
    write(out / "ops_table.c", emit_table(ops, table, None, digest))
    ids = "\n".join(f"extern const proa_op proa__op_{op.name};" for op in ops)
    write(out / "ops_calls.c", emit_calls(ops, "proa/ops.h", "&proa__op_").replace(
        "#include <proa/op.h>\n", "#include <proa/op.h>\n\n" + ids + "\n", 1))
    header, source = emit_kernels(ops)
    write(out / "kernels.h", header)
    write(out / "kernels_level.c", source)
    write(out / "formulas.inc", emit_formulas(ops))
    write(out / "formulas_cuda.inc", emit_cuda_formulas(ops))
    write(out / "py_api.inc", banner("The callables of the Python extension.") + gen_python.emit(ops, cstr))
    write(out / "ops.json", emit_json(ops, table))
    if a.lock:
        write(pathlib.Path(a.lock), emit_lock(ops))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except (SchemaError, KeyError) as e:
        sys.exit(f"gen_ops: {e}")
