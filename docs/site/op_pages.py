"""Reference pages of the ops, written from the op table (gen/ops.json) and from running each op's first samples: one
page per op, to which its family's page links and no menu does.

Shapes and errors on a page are those that the library of this build gave and raised. Its C call is compiled by build.py.
Reads the samples through tests/matrix.py and tests/runner.py."""
import inspect
import re
import textwrap

import matrix
import runner

from markup import code, escaped, inline, table, title

DTYPES = matrix.NAMES
SHOWN = 4  # samples of the op table that a page shows at most
C_TYPES = {"INT": "int64_t", "FLOAT": "double", "BOOL": "bool", "INTS": "proa_ints", "FLOATS": "proa_floats", "DTYPE": "proa_dtype",
           "STRING": "const char *", "SCALAR": "proa_scalar", "STEPS": "proa_steps", "BLOCK": "struct proa_block *"}
FLAGS = [("BROADCASTS", "Inputs are broadcast together, as in NumPy."),
         ("BATCHES", "All dims but the last two are broadcast together."),
         ("PROMOTES", "Inputs of several dtypes are brought to the one that holds all."),
         ("VIEW", "The result shows the input's memory where strides allow."),
         ("RANDOM", "Draws random numbers from the device's generator (``proa_seed``)."),
         ("DATA_SHAPE", "The result's shape depends on values: under capture it is known when the program runs."),
         ("STRIDED", "Reads views as they lie, without a copy.")]
AMP = {"LOW": "Computes in the low precision.", "F32": "Computes in float32.", "WIDEST": "Computes in the widest dtype of its inputs."}


def gradient(op):
    if op["vjp"] == "none":
        return "Nothing flows back through this op, as in Paddle."
    if op["vjp"] == "refused":
        return "Backward through this op is an error: Paddle has no gradient of it."
    if not op["vjp"]:
        return "It has no gradient."
    saved = [f"``{name}``" for name in op["saves"]]
    return "Has a gradient; the tape keeps " + (f"{', '.join(saved)} for it." if saved else "no values for it.")


def python_names(package):
    """op -> public functions that call it: by the table, or by the words of their source."""
    found = {}
    for module_name, module in package:
        for name, value in vars(module).items():
            if name.startswith("_") or not callable(value) or inspect.isclass(value):
                continue
            try:
                words = set(re.findall(r"_core\.(\w+)\(", inspect.getsource(value)))
            except (OSError, TypeError):
                words = set()
            for op in words:
                found.setdefault(op, []).append(f"{module_name}.{name}")
            if module_name in ("proa", "proa.nn.functional"):  # a name that both share
                found.setdefault(name, []).append(f"{module_name}.{name}")
    return found


def names_of(op, by_source):
    wanted = op["python"] or []
    listed = []
    for text in [wanted] if isinstance(wanted, str) else wanted:
        listed += [n for n in re.match(r"\s*([\w. ]+)", text)[1].split() if n != "Tensor"]
    listed += [n.replace("proa", "paddle", 1) for n in by_source.get(op["name"], [])]
    return sorted(dict.fromkeys(n for n in listed if n.startswith("paddle")), key=lambda n: (n.count("."), n))


# ---- one sample: what it gives, and its call in C


def shape_text(value):
    if value is None:
        return "none"
    if isinstance(value, list):
        return "[" + ", ".join(shape_text(v) for v in value) + "]"
    shape = list(value.values.shape if isinstance(value, matrix.Array) else value.shape)
    return f"``{shape}``"


def given(case):
    said = [f"{name} {shape_text(v)}" for name, v in case.inputs.items()]
    return ", ".join(said + [f"``{k} = {v}``" for k, v in case.attrs.items()]) or "–"


def results(case):
    made = runner.call(case)
    outs = [f["name"] for f in case.op["fields"] if f["role"] == "OUT"]
    return ", ".join(f"{name} {shape_text(v)}" for name, v in zip(outs, made))


def c_dims(shape):
    return f"PROA_SHAPE({', '.join(map(str, shape))})" if shape else "PROA_SCALAR_SHAPE"


def c_tensor(value):
    if value is None:
        return "PROA_NONE"
    if isinstance(value, list):
        return f"PROA_LIST({', '.join(c_tensor(v) for v in value)})" if value else "(proa_tensors){0}"
    make = "proa_randn" if value.dtype in ("F16", "BF16", "F32", "F64") else "proa_zeros"
    return f"{make}({c_dims(value.values.shape)}, PROA_{value.dtype})"


def c_value(f, value):
    kind = f["kind"]
    if kind == "INTS":
        return c_dims(value) if value else "PROA_SCALAR_SHAPE"
    if kind == "FLOATS":
        return f"PROA_FLOATS({', '.join(map(str, value))})" if value else "(proa_floats){0}"
    if kind == "DTYPE":
        return f"PROA_{value}" if value and value != "none" else "PROA_NODTYPE"
    if kind == "ENUM":
        return f"PROA_{f['enum']}_{value}".upper()
    if kind == "STRING":
        return '"' + str(value) + '"'
    if kind == "STEPS":
        return f'proa_steps_read("{value}")'
    if kind == "BOOL":
        return str(bool(value)).lower()
    return str(value).replace("inf", "INFINITY").replace("nan", "NAN")


def c_call(case):
    """The op's call in C: declarations of its inputs, then the call; None where a sample says no C (programs' blocks)."""
    op = case.op
    if any(f["kind"] == "BLOCK" for f in op["fields"]):
        return None
    fields = {f["name"]: f for f in op["fields"]}
    lines, args, options = [], [], []
    for name in op["order"]:
        f = fields[name]
        value = case.inputs.get(name) if f["role"] == "IN" else case.sample.get(name)
        if f["role"] == "IN" and f["kind"] == "TENSORS":
            args.append(c_tensor(value or []))
        elif f["role"] == "IN":
            made = c_tensor(value)
            if made != "PROA_NONE":
                lines.append(f"proa_tensor *{name} = {made};")
            args.append(name if made != "PROA_NONE" else made)
        elif f["default"] is None:
            args.append(c_value(f, value))
        elif name in case.sample:
            options.append(c_option(f, value))
    outs = [f for f in op["fields"] if f["role"] == "OUT" and "MUTATED" not in f["flags"]]
    result = {0: "proa_status status"}.get(len(outs)) or (
        f"proa_{op['name']}_result result" if len(outs) > 1 else
        ("proa_tensors " if outs[0]["kind"] == "TENSORS" else "proa_tensor *") + outs[0]["name"])
    if len(outs) == 1 and outs[0]["name"] in case.inputs:
        result = result.replace(outs[0]["name"], "result")
    lines.append(f"{result} = proa_{op['name']}({', '.join(args + options)});")
    return lines


def c_option(f, value):
    if f["kind"] == "BOOL" and f["default"] == "true":
        return f".no_{f['name']} = {str(not value).lower()}"
    text = c_value(f, value)
    if f["kind"] in ("INT", "FLOAT") and str(value) in ("0", "0.0") and f["default"] not in ("0", "0.0"):
        text = "PROA_ZERO"
    return f".{f['name']} = " + (f"PROA_SCALAR({text})" if f["kind"] == "SCALAR" else text)


def refused(op):
    """The message for a dtype that the op does not take; None where it takes all, or has no sample to try with."""
    for index, sample in enumerate(op["samples"]):
        free = [d for d in matrix.case_dtypes(op, sample) if d]
        away = [d for d in ("BOOL", "C64", "I32", "F32") if d not in op["dtypes"]]
        if not free or not away or sample.get("forward"):
            continue
        try:
            runner.call(matrix.build(op, index, sample, away[0]))
        except Exception as problem:  # any type: it is what a user sees
            return f"{type(problem).__name__}: {' '.join(str(problem).split())}"
    return None


def parameter_rows(op):
    fields = {f["name"]: f for f in op["fields"]}
    for name in op["order"]:
        f = fields[name]
        if f["role"] == "IN":
            kind = ("Tensor[]" if f["kind"] == "TENSORS" else "Tensor") + (", may be absent" if "OPTIONAL" in f["flags"] else "")
            kind += ", gets no gradient" if "NO_GRAD" in f["flags"] and op["vjp"] not in (None, "none") else ""
            yield [f"``{name}``", kind, ""]
        else:
            kind = f"``proa_{f['enum']}``" if f["enum"] else f"``{C_TYPES[f['kind']].strip()}``"
            kind += ", or a tensor" if "FROM_TENSOR" in f["flags"] else ""
            yield [f"``{name}``", kind, "required" if f["default"] is None else f"``{f['default']}``"]
    for f in op["fields"]:
        if f["role"] == "OUT":
            kind = "Tensor[]" if f["kind"] == "TENSORS" else "Tensor"
            yield [f"``{f['name']}``", f"{kind}, result" + (f"; written over ``{f['alias']}``" if "MUTATED" in f["flags"] else ""), ""]


def page(op, python):
    """The page of an op: (its lines of reStructuredText, its C call or None)."""
    name, lines = op["name"], []
    lines += [":orphan:", "", f".. _op-{name}:", "", *title(name), f":doc:`{op['family']} <family_{op['family']}>`: {inline(op['doc'])}", ""]
    lines += [f".. c:macro:: proa_{name}({', '.join(op['order'])})", ""]
    lines += [f"   Header ``<proa/ops/{op['family']}.h>``; required arguments by position, options as ``.name = value``.", ""]
    lines += table(["argument", "what", "default"], list(parameter_rows(op)))
    lines += ["Dtypes: " + ", ".join(DTYPES[d] for d in op["dtypes"]) + ".", ""]
    lines += [f"{text}\n" for flag, text in FLAGS if flag in op["flags"]]
    if op["amp"] in AMP:
        lines += ["Under autocast: " + AMP[op["amp"]][0].lower() + AMP[op["amp"]][1:], ""]
    lines += [gradient(op), ""]
    if "INPLACE" in op["flags"]:
        alias = next(f for f in op["fields"] if f["role"] == "OUT" and f["alias"])["alias"]
        lines += [f"``proa_{name}_`` writes the result over ``{alias}``.", ""]
    if python:
        lines += ["In Python: " + ", ".join(f"``{n}``" for n in python) + ".", ""]
    wires = list(dict.fromkeys(op["wires"]))
    lines += ["In Paddle's files: " + (f"``{wires[0]}``" + (f"; read as well: {', '.join(f'``{w}``' for w in wires[1:])}" if wires[1:] else "")
                                       if wires else "it has no form of its own there") + ".", ""]
    rows, call = [], None
    for index, sample in enumerate(op["samples"][:SHOWN]):
        dtypes = matrix.case_dtypes(op, sample)
        case = runner.resolve(matrix.build(op, index, sample, "F32" if "F32" in dtypes else dtypes[0]))
        call = call or c_call(case)
        rows.append([given(case), results(case)])
    if rows:
        lines += [*title("Shapes, by example", "-"), *table(["given", "result"], rows)]
    if call:
        lines += [*title("In C", "-"), *code("c", "\n".join(call))]
    error = refused(op)
    if error:
        lines += [*title("Errors", "-"), "A dtype that it does not take:", "", *code("text", "\n".join(textwrap.wrap(error, 90)))]
    lines += ["Kernels, best first: " + ", ".join(f"``{k}``" for k in op["kernels"]) + ".", ""]
    return lines, call


def write(out, build, package):
    """Pages of all ops by family; returns the C calls by op."""
    ops, calls = matrix.load_table(build), {}
    by_source = python_names(package)
    families = {}
    for op in ops:
        families.setdefault(op["family"], []).append(op)
    (out / "ops").mkdir(parents=True, exist_ok=True)
    for family, members in sorted(families.items()):
        lines = [*title(family), f"``<proa/ops/{family}.h>``", ""]
        lines += table(["op", "what it does"], [[f":ref:`{escaped(op['name'])} <op-{op['name']}>`", inline(op["doc"])] for op in members])
        (out / "ops" / f"family_{family}.rst").write_text("\n".join(lines))
        for op in members:
            text, call = page(op, names_of(op, by_source))
            (out / "ops" / f"{op['name']}.rst").write_text("\n".join(text))
            if call:
                calls[op["name"]] = call
    lines = [*title("Ops, family by family"), f"{len(ops)} ops. Each is a C function, a node of programs, and a form in Paddle's files; "
             "how one is added: :doc:`/add-an-op`.", "", ".. toctree::", "   :maxdepth: 1", "",
             *[f"   family_{family}" for family in sorted(families)], ""]
    (out / "ops/index.rst").write_text("\n".join(lines))
    return calls
