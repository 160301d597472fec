"""Optimizers, from `optimizer:` in the op tables: checks a step's slots (state tensors) and numbers (hyperparameters), and
writes them as C descriptors (optimizers.c), public macros (include/proa/ops/optimizers.h) and a table for Python
(optimizer/table.py). Used by gen_ops.py alone.

docs/add-an-optimizer.md documents the schema.
"""
from gen_headers import banner, folded
from gen_schema import cstr

KEYS = {"slots", "numbers", "skip", "constants", "groups"}
STARTS = ("zero", "initial_value", "beta1", "beta2")
FIXED = ("params", "grads", "learning_rate", "masters", "skip_update")


class Slot:
    """A list that the step updates beside the parameters."""

    def __init__(self, op, field, spec):
        if set(spec) - {"state", "wire", "start", "when", "wide", "moved_by"} or not {"state", "wire"} <= set(spec):
            op.bad(f"optimizer: slot {field}: needs state and wire, may have start, when, wide, moved_by")
        self.field = op.field(field, "optimizer").name
        self.state, self.wire = spec["state"], spec["wire"]
        self.start = spec.get("start", "zero")
        if self.start not in STARTS:
            op.bad(f"optimizer: slot {field}: start must be one of {STARTS}")
        self.when = op.field(spec["when"], "optimizer").name if "when" in spec else None
        self.wide, self.by_scale = bool(spec.get("wide")), spec.get("moved_by") == "scale"

    @property
    def is_power(self):
        return self.start in ("beta1", "beta2")


class Number:
    """An attribute of the step: the option that it is, its name in files, and what a file means that leaves it out."""

    def __init__(self, op, field, spec):
        if set(spec) - {"option", "wire", "as", "default", "missing"}:
            op.bad(f"optimizer: number {field}: may have option, wire, as, default, missing")
        f = op.field(field, "optimizer")
        self.field, self.is_switch = f.name, f.kind == "BOOL"
        self.option = None if spec.get("option") == "none" or spec.get("as") == "rescale" else spec.get("option", field)
        self.wire, self.kind = spec.get("wire", field), spec.get("as", "switch" if self.is_switch else "number")
        call = {"true": 1.0, "false": 0.0, None: None}.get(f.default, f.default)
        self.default = float(spec.get("default", call))
        self.missing = float(spec.get("missing", self.default if call is None else call))


class Kind:
    def __init__(self, op):
        spec = op.entry["optimizer"]
        if set(spec) - KEYS or not op.name.endswith("_step"):
            op.bad(f"optimizer: the op must be called …_step, and may have {sorted(KEYS)}")
        self.op, self.name, self.doc = op, op.name[:-5], op.doc
        self.slots = [Slot(op, *item) for item in (spec.get("slots") or {}).items()]
        self.numbers = [Number(op, *item) for item in (spec.get("numbers") or {}).items()]
        self.skip, self.constants = spec.get("skip"), spec.get("constants") or {}
        self.groups = op.field(spec["groups"], "optimizer").name if "groups" in spec else None
        named = {*FIXED, *(s.field for s in self.slots), *(n.field for n in self.numbers), *([self.groups] if self.groups else [])}
        given = {f.name for f in op.ins + op.attrs}
        if named != given:
            op.bad(f"optimizer: says nothing of {sorted(given - named)}, names {sorted(named - given)}, which the call lacks")


def kinds_of(ops):
    return [Kind(op) for op in ops if "optimizer" in op.entry]


def emit_rows(kind):
    args, metas = f"proa_{kind.op.name}_args", f"proa_{kind.op.name}_metas"
    slots = [f"    {{{cstr(s.field)}, {cstr(s.state)}, {cstr(s.wire)}, offsetof({args}, {s.field}), offsetof({args}, {s.field}_out), "
             f"offsetof({metas}, {s.field}_out), PROA__START_{s.start.upper()}, "
             f"{f'offsetof({args}, {s.when})' if s.when else '0'}, {str(s.wide).lower()}, {str(s.by_scale).lower()}}},"
             for s in kind.slots]
    numbers = [f"    {{{cstr(n.option) if n.option else 'NULL'}, {cstr(n.wire)}, offsetof({args}, {n.field}), "
               f"PROA__{n.kind.upper()}, {n.default!r}, {n.missing!r}}}," for n in kind.numbers]
    constants = [f"    {{{cstr(key)}, {'PROA_WIRE_BOOLEAN' if isinstance(value, bool) else 'PROA_WIRE_LONG'}, {int(value)}}},"
                 for key, value in kind.constants.items()]
    return slots, numbers, constants


def emit_c(kinds):
    out = [banner("Kinds of optimizers: slots, numbers, constants."), '#include "ops/optimizer/kind.h"\n', '#include "impl/optimizer.h"\n']
    for kind in kinds:
        n, op = kind.name, kind.op.name
        rows = dict(zip(("slots", "numbers", "constants"), emit_rows(kind)))
        out.append(f"\n/* {n} */\n_Static_assert(sizeof(proa_{op}_args) <= PROA__STEP_ARGS_MAX, \"args of a step\");")
        for part, lines in rows.items():
            if lines:
                out.append(f"static const proa__optimizer_{part[:-1]} {n}_{part}[] = {{\n" + "\n".join(lines) + "\n};")
        fixed = ", ".join(f".{f}_at = offsetof(proa_{op}_args, {f})" for f in FIXED)
        metas = ", ".join(f".{f}_meta = offsetof(proa_{op}_metas, {f}_out)" for f in ("params", "masters"))
        outs = ", ".join(f".{f}_out_at = offsetof(proa_{op}_args, {f}_out)" for f in ("params", "masters"))
        parts = ", ".join(f".{part} = {f'{n}_{part}' if lines else 'NULL'}, .n_{part} = {len(lines)}" for part, lines in rows.items())
        out.append(f"extern const proa_op proa__op_{op};\nconst proa__optimizer_kind proa__optimizer_{n} = {{\n    .name = {cstr(n)}, "
                   f".op = &proa__op_{op}, {fixed},\n    {metas}, {outs},\n    {parts}, "
                   f".skip = {cstr(kind.skip) if kind.skip else 'NULL'}, "
                   f".groups_at = {f'offsetof(proa_{op}_args, {kind.groups})' if kind.groups else '0'}}};")
    rows = "\n".join(f"    &proa__optimizer_{kind.name}," for kind in kinds)
    out.append(f"\nconst proa__optimizer_kind *const proa__optimizer_kinds[] = {{\n{rows}\n    NULL,\n}};")
    out.append(f'const char proa__optimizer_names[] = {cstr(", ".join(kind.name for kind in kinds))};')
    return "\n".join(out) + "\n"


def emit_macros(kinds):
    out = [banner("An optimizer of each kind: proa_optimizer_new by name."), "#ifndef PROA_TABLE_OPTIMIZERS_H\n#define PROA_TABLE_OPTIMIZERS_H\n\n#include <proa/core.h>\n"]
    for kind in kinds:
        defaults = ", ".join(f".{n.option} = {bool(n.default) if n.is_switch else n.default}" for n in kind.numbers if n.option).lower()
        defaults += ", .initial_value = 0" if any(s.start == "initial_value" for s in kind.slots) else ""
        out.append(f"/* {kind.doc}{f' Options: {defaults}.' if defaults else ''} */\n"
                   f"#define proa_{kind.name}(...) PROA_X_optimizer_({cstr(kind.name)}, __VA_ARGS__, )\n")
    return folded("\n".join(out) + "\n#endif\n")


def emit_python(kinds):
    out = ['"""State and arguments of each optimizer. Generated by tools/gen_ops.py from the op tables: change those."""',
           "from .kind import Kind, Slot\n", "KINDS = {"]
    for kind in kinds:
        order = [f.name for f in kind.op.ins]
        slots = ", ".join(f"Slot({s.state!r}, {s.start!r}, {s.wide}, {s.is_power})" for s in kind.slots)
        by_call = sorted(range(len(kind.slots)), key=lambda i: order.index(kind.slots[i].field))
        numbers = ", ".join(f"({(n.option or n.field)!r}, {'bool' if n.is_switch else 'float'})"
                            for f in kind.op.attrs for n in kind.numbers if n.field == f.name)
        out.append(f"    {kind.name!r}: Kind({kind.op.name!r}, ({slots}{',' if slots else ''}), {tuple(by_call)!r}, "
                   f"({numbers}{',' if numbers else ''})),")
    return "\n".join(out) + "\n}\n"
