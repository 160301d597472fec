"""Comparison of two runs' logs of results (amp.debugging), as a workbook of xlsxwriter's."""
import os

_INT32_MAX = 2**31 - 1
_TOLERANCE = 1e-2
_WIDTHS = {"op_type": 24, "tensor_name": 60, "numel": 10, "num_zero": 10, "infinite": 8, "dtype": 8, "max_value": 16,
           "min_value": 16, "mean_value": 16, "num_inf": 8, "num_nan": 8}
_VALUES = ["dtype", "max_value", "min_value", "mean_value", "num_zero"]


def _float32(text):
    import numpy as np
    return np.float32(text)


_FIELDS = {"op": ("op_type", str), "device": ("device", str), "tensor": ("tensor_name", str), "dtype": ("dtype", str),
           "numel": ("numel", int), "max": ("max_value", _float32), "min": ("min_value", _float32),
           "mean": ("mean_value", _float32), "num_inf": ("has_inf", int), "num_nan": ("has_nan", int),
           "num_zero": ("num_zero", int)}


class TensorInfo:
    """The entries of a log's line on one tensor; None where the line has none."""

    def __init__(self):
        for name, _ in _FIELDS.values():
            setattr(self, name, None)

    def init_from_string(self, line):
        """Takes the entries of a line."""
        for word in line.split():
            key, _, text = word.strip("[],").partition("=")
            if key in _FIELDS:
                name, convert = _FIELDS[key]
                try:
                    setattr(self, name, convert(text))
                except ValueError:
                    print(f"!! Error parsing {line}")
                    break
        return self

    def key(self):
        """The text by which lines of two logs are paired."""
        return f"{self.op_type}/{self.tensor_name}"


def _beyond_fp16(value):
    import numpy as np
    with np.errstate(over="ignore"):
        return value is not None and not np.isfinite(np.float16(value))


def _ratio(a, b):
    return None if a is None or b is None else a / b if b != 0 else 1


class _Pair:
    """A tensor of the float32 log, of the float16 log, or of both."""

    def __init__(self, wide, low, index, scale):
        self.wide, self.low, self.index = wide, low, index
        one = low or wide
        self.op_type, self.numel = one.op_type, one.numel
        if wide and low and wide.numel != low.numel:
            raise AssertionError(f"compare_accuracy: {one.key()} has {wide.numel} elements in the one log, {low.numel} in the other")
        scaled = wide and "GRAD" in wide.tensor_name
        self.scaled = [scale * wide.max_value, scale * wide.min_value] if scaled else [None, None]

    def ratios(self):
        return [_ratio(getattr(self.low, name), getattr(self.wide, name)) for name in ("max_value", "min_value", "mean_value")]

    def name(self):
        if self.low is None:
            return f"{self.wide.tensor_name}#{self.index}"
        if self.wide is None:
            return self.low.tensor_name
        return f"{self.low.tensor_name.replace('.cast_fp16', '/.cast_fp16/')}#{self.index}"

    def is_normal(self):
        """Whether float16 can hold the values, and the two runs agree about them."""
        import numpy as np
        if self.numel is not None and self.numel > _INT32_MAX:
            return False
        values = [*self.scaled] + [getattr(one, name) for one in (self.wide, self.low) if one
                                   for name in ("max_value", "min_value")]
        if any(map(_beyond_fp16, values)) or self.low and (self.low.has_inf or self.low.has_nan):
            return False
        low = [self.low.max_value, self.low.min_value] if self.low else [None, None]
        return all(a is None or b is None or np.allclose(a, b, atol=_TOLERANCE, rtol=_TOLERANCE)
                   for a, b in zip(low, self.scaled))


def _read(folder, name):
    """The tensors of a log; None if there is no such file."""
    path = os.path.join(folder, name)
    try:
        with open(path, encoding="utf-8") as log:
            return [TensorInfo().init_from_string(line) for line in log if "[PRECISION]" in line]
    except FileNotFoundError:
        print("the file ", path, "is not found")
        return None


def _numbered(infos):
    """(tensor, how many of its key came before)."""
    seen = {}
    for info in infos:
        n = seen.get(info.key(), 0)
        seen[info.key()] = n + 1
        yield info, n


def _merge(wide, low, scale):
    """Pairs of two logs by key and order; the order is the float16 log's, or the float32 log's if it is the only one."""
    if low is None:
        return [_Pair(info, None, n, scale) for info, n in _numbered(wide or [])]
    known = {(info.key(), n): info for info, n in _numbered(wide or [])}
    read, pairs = {}, []
    for info in low:
        key = info.key().replace(".cast_fp16", "").replace(".cast_fp32", "")
        n = read.get(key, 0)
        found = known.get((key, n))
        read[key] = n + (found is not None)
        pairs.append(_Pair(found, info, n, scale))
    return pairs


class _Workbook:
    """The workbook: a sheet a worker."""

    def __init__(self, path):
        try:
            import xlsxwriter
        except ImportError:
            raise ModuleNotFoundError("compare_accuracy: the package xlsxwriter is missing, which writes the workbook; "
                                      "install it: pip install xlsxwriter", name="xlsxwriter") from None
        self.book = xlsxwriter.Workbook(path)
        bold = {"bold": True}
        self.title = self.book.add_format({**bold, "border": 1, "font_color": "black", "bg_color": "#6495ED", "align": "center"})
        self.paired = self.book.add_format({**bold, "bg_color": "#F5F5F5"})
        self.red, self.yellow, self.orange = (self.book.add_format({**bold, "bg_color": color})
                                              for color in ("red", "yellow", "orange"))

    def titles(self, sheet, scale):
        sheet.merge_range("E1:H1", "fp32", self.title)
        sheet.merge_range("I1:N1", f"fp16 (scale={scale})", self.title)
        sheet.merge_range("O1:Q1", "fp16 / fp32", self.title)
        names = ["op_type", "tensor_name", "numel", "infinite", *_VALUES, *_VALUES, "num_inf", "num_nan",
                 "max_value", "min_value", "mean_value"]
        for column, name in enumerate(names):
            letter = chr(ord("A") + column)
            sheet.set_column(f"{letter}:{letter}", _WIDTHS[name])
        for column, name in enumerate(names):
            sheet.write(1, column, name, self.title)

    def value(self, value):
        text = f"{value:.6E}" if abs(value) < 1e-5 else f"{value:.6f}"
        return (text, self.red) if _beyond_fp16(value) else (text,)

    def values(self, info):
        """The cells of one run."""
        if info is None:
            return [("--",)] * len(_VALUES)
        dtype = ("--",) if info.dtype is None else (info.dtype, self.yellow) if info.dtype == "fp16" else (info.dtype,)
        numbers = [("--",) if v is None else self.value(v) for v in (info.max_value, info.min_value, info.mean_value)]
        return [dtype, *numbers, ("--",) if info.num_zero is None else (f"{info.num_zero:>10d}",)]

    def count(self, n):
        return ("--",) if n is None else (n, self.red) if n == 1 else (n,)

    def ratio(self, value, scale):
        if value is None:
            return ("--",)
        near = any(0.95 * s < value < 1.05 * s for s in (1, scale))
        return (f"{value:.6f}",) if near else (f"{value:.6f}", self.orange)

    def add(self, name, pairs, scale):
        sheet = self.book.add_worksheet(name)
        self.titles(sheet, scale)
        infinite = []
        for row, pair in enumerate(pairs, 2):
            normal = pair.is_normal()
            if not normal and pair.op_type not in infinite:
                infinite.append(pair.op_type)
            both = pair.wide is not None and pair.low is not None
            named = both and pair.low.tensor_name
            cells = [(pair.op_type,), (pair.name(), self.paired) if named else (pair.name(),),
                     (pair.numel, self.red) if pair.numel > _INT32_MAX else (pair.numel,),
                     ("0",) if normal else ("1", self.red), *self.values(pair.wide), *self.values(pair.low),
                     *(self.count(pair.low and n) for n in ((pair.low.has_inf, pair.low.has_nan) if pair.low else (None, None))),
                     *(self.ratio(v, scale) for v in (pair.ratios() if both else (None,) * 3))]
            for column, cell in enumerate(cells):
                sheet.write(row, column, *cell)
        print(f"-- OP Types produce infinite outputs: {infinite}")


def compare_accuracy(dump_path, another_dump_path, output_filename, loss_scale=1, dump_all_tensors=False):
    """amp.debugging.compare_accuracy."""
    book = _Workbook(output_filename)
    workers = [name for name in os.listdir(dump_path) if "worker_" in name]
    print(f"-- There are {len(workers)} workerlogs under {dump_path}: {workers}")
    for name in sorted(workers):
        print(f"-- [Step 1/4] Parsing FP32 logs under {dump_path}/{name}")
        wide = _read(dump_path, name)
        print(f"-- [Step 2/4] Parsing FP16 logs under {another_dump_path}/{name}")
        low = _read(another_dump_path, name)
        print(f"-- [Step 3/4] Merge FP32 and FP16 tensor info for {name}")
        pairs = _merge(wide, low, loss_scale)
        print(f"-- [Step 4/4] Add worksheet for mixed precision tensor info of {name}")
        book.add(name, pairs, loss_scale)
    print(f"-- Write to {output_filename}\n")
    book.book.close()
