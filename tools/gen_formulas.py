"""Generates formulas*.inc: for each elementwise op with a `formula:` the macro calls that make inner loops, kernels and
functors of its scalar formula, for the CPU, for CUDA and for fused chains.

Used by gen_ops.py alone.
"""
from gen_headers import banner
from gen_schema import DTYPES


def emit_formulas(ops):
    """The text of formulas.inc. `formula: unary math F32 F64` makes, in the file that defines PROA_FORMULAS_MATH, an inner loop
    per dtype (attributes follow by name), the table of these loops, and the kernel. `lanes: true`: float32 uses the vector
    code of kernels/simd_activations.h. `grain: 4096`: elements that are worth a thread."""
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
        out += [f"const proa_rows PROA_LEVELED({n}_rows) = {{{{{entries}}}, PROA_ROW_OUT_{shape}, "
                f"{f'PROA_NONTEMPORAL({n})' if lanes else 'NULL'}, {op.entry.get('grain', 0)}}};",
                f"PROA_MAP_{shape}({n}, {fields})", "#endif"]
        if shape in ("UNARY", "BINARY", "TERNARY", "FLAGGED", "FLAGGED2"):  # the result is of the inputs' dtype
            names.append(n)
    out += ["/* Those that may follow one another, by name, for kernels that run the rows of many ops. */",
            "#ifdef PROA_FORMULAS_ALL"]
    out += [f"extern const proa_rows PROA_LEVELED({n}_rows);" for n in names]
    out += ["static const struct {", "    const char *op;", "    const proa_rows *rows;", "} formula_rows[] = {"]
    out += [f'    {{"{n}", &PROA_LEVELED({n}_rows)}},' for n in sorted(names)] + ["};", "#endif"]
    out += ["#ifdef PROA_FORMULAS_NAMES", "static const char *const formula_names[] = {"]
    out += [f'    "{n}",' for n in sorted(names)] + ["};", "#endif"]
    return banner("Ops that are a scalar formula: rows, their table and the kernel. See ops/elementwise/inner_loops.h.") + \
        "\n".join(out) + "\n"


def emit_cuda_formulas(ops):
    """The same formulas for ops/elementwise/cuda/elementwise.h: a functor a dtype, and the kernel. Complex dtypes are left out."""
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
    return banner("Ops that are a scalar formula, as CUDA kernels. See ops/elementwise/cuda/elementwise.h.") + "\n".join(out) + "\n"


def chain_formulas(ops):
    """Formulas of floating numbers that give such, and whose attributes are numbers."""
    for op in ops:
        shape, _, *dtypes = str(op.entry.get("formula") or "test -").split()
        if shape not in ("test", "compare") and {"F32", "F64"} <= set(dtypes) and all(a.kind in ("FLOAT", "BOOL") for a in op.attrs):
            yield f"X({op.name}, {int(shape.startswith('flagged'))})"
