"""The cases of the table's test matrix: op x sample x dtype, with inputs that are the same everywhere.

Used by tests/ops/test_ops.py (which runs them on Proa) and tests/ops/run_matrix.py (which runs them in
real Paddle, in a virtual environment of its own). Needs NumPy alone. bfloat16 travels as float32 values that
bfloat16 can hold.
"""
import functools
import importlib.util
import itertools
import json
import pathlib
import zlib

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
NUMPY = {"BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64",
         "F16": "float16", "BF16": "float32", "F32": "float32", "F64": "float64", "C64": "complex64",
         "C128": "complex128"}
NAMES = {"BOOL": "bool", "U8": "uint8", "I8": "int8", "I16": "int16", "I32": "int32", "I64": "int64",
         "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64", "C64": "complex64",
         "C128": "complex128"}
# Relative to the largest magnitude of the expected output. Halves: kernels compute in float32 and round once, by at
# most 2^-11 and 2^-8 of the value, and references do not round at all. The others: sums of some hundred terms.
TOLERANCE = {"F16": 5e-4, "BF16": 4e-3, "F32": 2e-6, "F64": 1e-14, "C64": 2e-6, "C128": 1e-14}


def to_bf16(a):
    """float32 values rounded to the nearest bfloat16 (ties to even)."""
    bits = np.ascontiguousarray(a, np.float32).view(np.uint32).astype(np.uint64)
    bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
    return bits.astype(np.uint32).view(np.float32).reshape(np.shape(a))


class Array:
    """A tensor input: NumPy values and the dtype's table name (they differ for bfloat16)."""

    def __init__(self, values, dtype):
        values = np.asarray(values)
        self.dtype = dtype
        self.values = to_bf16(values) if dtype == "BF16" else np.array(values, NUMPY[dtype])


def wide(array):
    """Values for a reference, which is not to add rounding of its own: float16 as float32, as bfloat16 is anyway."""
    return array.values.astype(np.float32) if array.dtype == "F16" else array.values


class From:
    """An input that is an output of the sample's `forward` op, until runner.resolve puts its values here."""

    def __init__(self, output):
        self.output = output


class Case:
    def __init__(self, op, index, dtype, inputs, attrs, sample):
        self.op, self.index, self.dtype, self.inputs, self.attrs, self.sample = op, index, dtype, inputs, attrs, sample
        self.forward = None  # the case of the sample's `forward` op
        self.derived = {k: v.output for k, v in inputs.items() if isinstance(v, From)}
        self.id = f"{op['name']}/{index}/{dtype or '-'}"

    def fields(self, convert):
        """Arguments of references and oracles: every input (absent ones as None or []) through `convert`, every
        attribute with its default; dtypes by their names in the table."""
        given = {}
        for f in tensor_fields(self.op):
            value = self.inputs.get(f["name"], [] if f["kind"] == "TENSORS" else None)
            given[f["name"]] = [convert(v) for v in value] if isinstance(value, list) else convert(value)
        for f in self.op["fields"]:
            if f["role"] == "ATTR":
                given[f["name"]] = self.sample.get(f["name"], default_value(f))
        return given

    def arrays(self):
        return self.fields(lambda v: wide(v) if isinstance(v, Array) else v)

    def tolerance(self, at_least=0.0):
        """Error bound of an output, as a part of its range. Integer inputs may have floating outputs."""
        of = dict(TOLERANCE, **{k: float(v) for k, v in (self.op.get("tolerance") or {}).items()})
        dtypes = {self.dtype, self.sample.get("dtype")}  # a dtype attribute is what the output is rounded to
        if self.dtype not in TOLERANCE:
            dtypes |= {v.dtype for v in flat(self.inputs)}
        return max([at_least] + ([of[d] for d in dtypes if d in of] or [of["F32"]]))


def default_value(f):
    """A default's text in the table as a Python value."""
    text = f["default"]
    if text is None or text == "none":
        return None
    if f["kind"] in ("ENUM", "STRING", "DTYPE"):
        return text.strip('"')
    return {"true": True, "false": False, "inf": float("inf"), "-inf": -float("inf")}.get(text) \
        if text in ("true", "false", "inf", "-inf") else json.loads(text)


def random_values(rng, shape, dtype, low, high):
    shape = tuple(shape)
    if dtype == "BOOL":
        return rng.randint(0, 2, shape).astype(bool)
    if dtype in ("U8", "I8", "I16", "I32", "I64"):
        low = (0 if dtype == "U8" else -5) if low is None else low
        return rng.randint(int(low), max(int(low) + 1, int(6 if high is None else high)), shape)
    if low is not None:
        draw = lambda: rng.uniform(low, high, shape)
    else:
        draw = lambda: rng.standard_normal(shape)
    return draw() + 1j * draw() if dtype in ("C64", "C128") else draw()


def make_tensor(rng, spec, dtype, zero=None):
    """A tensor from its spec; `zero`: the leading length that is replaced by 0 (for empty variants)."""
    if spec == "none" or spec is None:
        return None
    if isinstance(spec, list):
        spec = {"shape": spec}
    if "from" in spec:
        return From(spec["from"])
    kind = spec.get("dtype") or dtype
    if "values" in spec:
        return Array(spec["values"], kind)
    shape = list(spec["shape"])
    if zero is not None and shape and shape[0] == zero:
        shape[0] = 0
    values = random_values(rng, shape, kind, spec.get("low"), spec.get("high"))
    square = values.ndim > 1 and values.shape[-1] == values.shape[-2]
    return Array(MADE[spec["make"]](values) if "make" in spec and square else values, kind)


def adjoint(a):
    return np.conj(np.swapaxes(a, -1, -2))


# What `make:` turns random square matrices into. `regular` ones are far from singular.
MADE = {"hermitian": lambda a: (a + adjoint(a)) / 2,
        "definite": lambda a: a @ adjoint(a) / a.shape[-1] + np.eye(a.shape[-1]),
        "regular": lambda a: a / a.shape[-1] + np.eye(a.shape[-1])}


def inside(case, field, direction):
    """The part of a direction that stays among the matrices that the sample makes: those are Hermitian."""
    spec = case.sample.get(field)
    kept = isinstance(spec, dict) and spec.get("make") in ("hermitian", "definite")
    return MADE["hermitian"](direction) if kept else direction


def is_free(spec):
    """True if the spec's dtype is the case's."""
    return isinstance(spec, list) and not any(isinstance(x, (dict, list)) for x in spec) or (
        isinstance(spec, dict) and "dtype" not in spec)


def tensor_fields(op):
    return [f for f in op["fields"] if f["role"] == "IN"]


def sample_specs(op, sample):
    """Every tensor spec of a sample, lists flattened."""
    for f in tensor_fields(op):
        spec = sample.get(f["name"])
        if f["kind"] == "TENSORS":
            yield from spec or []
        elif spec is not None:
            yield spec


def case_dtypes(op, sample):
    free = any(is_free(s) for s in sample_specs(op, sample))
    if sample.get("dtypes"):
        return list(sample["dtypes"])
    return list(op["dtypes"]) if free else [None]


def build(op, index, sample, dtype, zero=None):
    rng = np.random.RandomState(zlib.crc32(f"{op['name']}/{index}/{dtype}".encode()) & 0x7FFFFFFF)
    inputs = {}
    for f in tensor_fields(op):
        if f["name"] not in sample:
            continue
        spec = sample[f["name"]]
        if f["kind"] == "TENSORS":
            inputs[f["name"]] = [make_tensor(rng, s, dtype, zero) for s in spec or []]
        else:
            inputs[f["name"]] = make_tensor(rng, spec, dtype, zero)
    named = {f["name"]: f for f in op["fields"] if f["role"] == "ATTR"}
    attrs = {}
    for key, value in sample.items():
        if key in named:
            attrs[key] = NAMES[value] if named[key]["kind"] == "DTYPE" and value in NAMES else value
    case = Case(op, index, dtype or first_dtype(inputs), inputs, attrs, sample)
    if isinstance(sample.get("forward"), dict):  # else it is an attribute of that name
        case.forward = forward_case(case, rng, zero)
    return case


def forward_case(case, rng, zero):
    """The forward op over the same inputs and attributes, by name, and over what `forward` itself gives."""
    given = case.sample["forward"]
    op, inputs = OPS[given["op"]], {}
    for f in tensor_fields(op):
        if f["name"] in given:
            inputs[f["name"]] = make_tensor(rng, given[f["name"]], case.dtype, zero)
        elif f["name"] in case.inputs:
            inputs[f["name"]] = case.inputs[f["name"]]
    names = {f["name"] for f in op["fields"] if f["role"] == "ATTR"}
    attrs = {k: v for k, v in {**case.attrs, **given}.items() if k in names}
    return Case(op, case.index, case.dtype, inputs, attrs, attrs)


def flat(inputs):
    """Every tensor that is there, lists flattened."""
    each = itertools.chain.from_iterable(v if isinstance(v, list) else [v] for v in inputs.values())
    return [v for v in each if isinstance(v, Array)]


def first_dtype(inputs):
    return next((v.dtype for v in flat(inputs)), None)


def cases(op):
    for index, sample in enumerate(op["samples"]):
        for dtype in case_dtypes(op, sample):
            yield build(op, index, sample, dtype)


def empty_case(op, index, sample, dtype):
    """The sample with the first tensor's first length replaced by 0 wherever a tensor
    starts with it (a batch, mostly); None if it has none."""
    for spec in sample_specs(op, sample):
        shape = spec if isinstance(spec, list) else spec.get("shape") if isinstance(spec, dict) else None
        if shape and sample.get("empty", True):
            return build(op, index, sample, dtype, zero=shape[0])
    return None


OPS = {}  # the table by name, once it is loaded


def load_table(build_dir):
    ops = json.loads((pathlib.Path(build_dir) / "gen/ops.json").read_text())["ops"]
    OPS.update((op["name"], op) for op in ops)
    return ops


def comparable(op, outputs, lib=np):
    """The determined part of an op's outputs, where not all is (the signs of eigenvectors): INVARIANTS of the family's
    reference.py has a function for such an op, on arrays (lib: numpy) or on tensors (proa._core)."""
    function = getattr(family_module(op, "reference"), "INVARIANTS", {}).get(op["name"])
    return outputs if function is None or any(x is None for x in outputs) else function(list(outputs), lib)


@functools.cache
def loaded(family, name):
    """ops/<family>/<name>.py as a module, None if there is none."""
    path = ROOT / "ops" / family / f"{name}.py"
    if not path.exists():
        return None
    key = f"proa_{family}_{name}"
    spec = importlib.util.spec_from_file_location(key, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def family_module(op, name):
    return loaded(op["family"], name)


def epilogue(out, residual, activation, alpha, beta):
    """Epilogue of the fused ops: adds a residual, applies an activation of the table's fused_activation."""
    elementwise = family_module({"family": "elementwise"}, "reference")
    out = out if residual is None else out + residual
    numbers = {"leaky_relu": [alpha], "elu": [alpha], "hardsigmoid": [alpha, beta], "gelu": [False], "gelu_tanh": [True]}
    name = "gelu" if activation == "gelu_tanh" else activation
    return out if name == "none" else getattr(elementwise, name)(out, *numbers.get(activation, []))
