"""Generates the op table's C descriptors: a row for every field, wire slot, op and kernel, in ops_table.c,
kernels.h and kernels_level.c.

Used by gen_ops.py alone.
"""
from gen_headers import banner, grad_ins
from gen_schema import cstr, WIRE_TYPES


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
            if f is not None and f.kind == "STEPS":
                op.bad(f"paddle form {w['type']}: {key}: steps have no form in files, which hold programs from before passes")
            wtype = spec.get("as") or (f.wire_type if f else None)
            if wtype not in WIRE_TYPES:
                op.bad(f"paddle form {w['type']}: {key}: needs as: one of {WIRE_TYPES}")
            const = spec.get("value")
            text = "NULL" if const is None else cstr(wire_text(const))
            missing = "NULL" if "missing" not in spec else cstr(wire_text(spec["missing"]))
            extra = [cstr(spec[k]) if k in spec else "NULL" for k in ("tensor", "tensors")]
            attrs.append(f"{{{cstr(key)}, {op.fields.index(f) if f else -1}, {WIRE_TYPES.index(wtype)}, "
                         f"{text}, {missing}, {extra[0]}, {extra[1]}, {1 + op.fields.index(op.by_name[spec['of']]) if 'of' in spec else 0}}}")
        base = f"wire_{op.name}_{i}"
        if slots:
            decls.append(f"static const proa_wire_slot {base}_slots[] = {{{', '.join(slots)}}};")
        if attrs:
            decls.append(f"static const proa_wire_attr {base}_attrs[] = {{{', '.join(attrs)}}};")
        forms = None
        if "optimizer" in op.entry and set(w) == {"type"}:
            forms = optimizer_form(op, base, w)
        functions = {"read": "NULL", "write": "NULL"}
        for key, proto, call in (("read", "proa_wire_reader *r", "r"), ("write", "const void *args, proa_wire_writer *w", "args, w")):
            if w.get(key):
                functions[key] = f"{base}_{key}" if op.rank else w[key]
                decls.append(f"proa_status {w[key]}({op.takes}{proto});")
                if op.rank:
                    decls.append(f"static proa_status {base}_{key}({proto}) {{ return {w[key]}({op.given}{call}); }}")
        if forms:
            decls.append(forms)
        rows.append(f"    {{{cstr(w['type'])}, {base + '_slots' if slots else 'NULL'}, "
                    f"{base + '_attrs' if attrs else 'NULL'}, {len(slots)}, {len(attrs)}, "
                    f"{functions['read']}, {functions['write']}, false}},")
    if rows:
        decls.append(f"static const proa_wire wires_{op.name}[] = {{\n" + "\n".join(rows) + "\n};")
    return "\n".join(decls)


def optimizer_form(op, base, w):
    """The reader and writer of a step, over what `optimizer:` says; names them in the form."""
    kind = op.name.removesuffix("_step")
    w |= {"read": f"{base}_read", "write": f"{base}_write"}
    return (f"proa_status {base}_read(proa_wire_reader *r) {{ return proa__optimizer_read(&proa__optimizer_{kind}, r); }}\n"
            f"proa_status {base}_write(const void *args, proa_wire_writer *w) "
            f"{{ return proa__optimizer_write(&proa__optimizer_{kind}, args, w); }}")


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


def emit_composed(composed):
    """The forms that belong to no op: a reader makes them of several."""
    rows = [f"    {{.type = {cstr(c['composed'])}, .read = {c['read']}, .no_gradient = {str(c.get('gradient') is False).lower()}}},"
            for c in composed]
    reads = [f"proa_status {read}(proa_wire_reader *);" for read in dict.fromkeys(c["read"] for c in composed)]
    return "\n".join(["\n/* Forms of several ops */", *reads, "const proa_wire proa_composed_table[] = {", *rows, "};",
                      f"const uint32_t proa_composed_count = {len(composed)};"]) + "\n"


def emit_table(ops, table, plugin, digest):
    include = f"{plugin}_ops_impl.h" if plugin else "ops_impl.h"
    out = [banner("Descriptors of every op."), f"#include \"{include}\"", "#include <proa/wire.h>\n"]
    if not plugin:
        out.append('#include "core/call_cost.h"\n#include "core/group.h"\n#include "kernels.h"\n#include "ops/optimizer/kind.h"\n')
        out += [f"extern const proa__optimizer_kind proa__optimizer_{op.name.removesuffix('_step')};" for op in ops if "optimizer" in op.entry]
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
            call = f"{infer[1:]}(&{'op_' if plugin else 'proa__op_'}{n}, a, m)" if infer[0] == "@" else f"{infer}({op.given}a, m)"
            if infer[0] == "@":
                out.append(f"{'static' if plugin else 'extern'} const proa_op {'op_' if plugin else 'proa__op_'}{n};")
            out.append(f"static proa_status infer_{n}(const void *a, void *m) {{ return {call}; }}")
        if op.has_rule:
            out.append(f"static proa_status vjp_{n}(const void *a, void *g) {{ return {op.vjp}({op.given}a, g); }}")
        if op.flops() and not plugin:
            out.append(f"static double flops_{n}(const void *args)\n{{\n    const proa_{n}_args *a = args;\n"
                       f"    return {op.flops()};\n}}")
        if op.view:
            out.append(f"static proa_status view_{n}(void *a, const proa_meta *m) "
                       f"{{ return {op.view}(a, m); }}")
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
    .infer = {f'infer_{n}' if infer else 'NULL'}, .view = {f'view_{n}' if op.view else 'NULL'}, .vjp = {f'vjp_{n}' if op.has_rule else 'NULL'},
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
        counts = "\n".join(f"    {f'flops_{op.name}' if op.flops() else 'NULL'}," for op in ops)
        out.append(f"double (*const proa__op_flops[])(const void *args) = {{\n{counts}\n}};")
        out.append(f'const char proa_table_hash[] = "{digest}";')
        shared = "\n".join(f"    case {i}:" for i, op in enumerate(ops) if op.communicates)
        out.append(f"\nbool proa__op_communicates(const proa_op *op)\n{{\n    switch (op->id) {{\n{shared} return true;\n"
                   "    default: return false;\n    }\n}")
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
                source.append(f"extern const proa_kernel PROA_LEVELED({k});")
            elif family == "any":  # compiled once, and always there
                source.append(f"extern const proa_kernel {k};")
            else:
                source.append(f"#if {guards[family]}\nextern const proa_kernel {k};\n#endif")
    source.append("\nvoid PROA_LEVELED(proa__kernels_fill)(proa_kernel_row *rows)\n{\n    const proa_kernel **row;")
    for i, op in enumerate(ops):
        source.append(f"    row = rows[{i}]; /* {op.name} */")
        for k in op.kernels:
            family = k.rsplit("_", 1)[1]
            if family == "cpu":
                source.append(f"    *row++ = &PROA_LEVELED({k});")
            elif family == "any":
                source.append(f"    *row++ = &{k};")
            else:
                source.append(f"#if {guards[family]}\n    *row++ = &{k};\n#endif")
        source.append("    *row = NULL;")
    source.append("}\n")
    return header, "\n".join(source)
