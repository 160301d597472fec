"""convert_to_mixed_precision: rewrites a saved float32 model into one that computes partly in half precision."""
from .kinds import PrecisionType

__all__ = ["convert_to_mixed_precision"]

# Operators that compute in half precision unless the caller says otherwise: products, and what keeps their precision.
_LOW = frozenset("""conv2d depthwise_conv2d conv2d_transpose matmul matmul_v2 mul bmm fc elementwise_add elementwise_sub
elementwise_mul elementwise_div elementwise_max elementwise_min relu relu6 leaky_relu prelu gelu sigmoid tanh hard_swish
hard_sigmoid swish silu pool2d reshape2 transpose2 flatten_contiguous_range flatten2 concat split slice strided_slice squeeze2
unsqueeze2 stack scale dropout nearest_interp_v2 bilinear_interp_v2 pad3d expand_v2 tile""".split())
_CODES = {"float16": 4, "bfloat16": 22, "float32": 5}


class _Converter:
    """Rewrites one block: casts stand where precisions meet."""

    def __init__(self, model, low, dtype):
        self.model, self.block, self.low, self.dtype = model, model.desc.main, low, dtype
        self.now = {n: "float32" for n, v in self.block.vars.items() if v.dtype == "float32"}
        self.casts = {}

    def _stored(self, array):
        import numpy as np
        if self.dtype == "float16":
            return array.astype(np.float16)
        bits = np.ascontiguousarray(array, np.float32).view(np.uint32)
        return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)  # to nearest, halves to even

    def _as(self, name, dtype, ops):
        """The name of a variable in that precision."""
        from ..framework.program_desc import OpDesc
        if self.now[name] == dtype:
            return name
        if (name, dtype) not in self.casts:
            out = f"{name}.{dtype}"
            kind = "uint16" if dtype == "bfloat16" else dtype  # bfloat16 goes by its bits
            if name in self.model.arrays:
                self.model.arrays[out] = self._stored(self.model.arrays[name])
                self.block.like(out, name, dtype=kind, persistable=True)
            else:
                self.block.like(out, name, dtype=kind)
                ops.append(OpDesc("cast", {"X": [name]}, {"Out": [out]},
                                  {"in_dtype": _CODES[self.now[name]], "out_dtype": _CODES[dtype]}))
            self.now[out] = dtype
            self.casts[name, dtype] = out
        return self.casts[name, dtype]

    def _retype(self, name, dtype):
        self.now[name] = dtype
        self.block.vars[name] = self.block.vars[name].retyped("uint16" if dtype == "bfloat16" else dtype)

    def run(self, keep_io_types):
        """The whole block."""
        ops = []
        for op in self.block.ops:
            floats = [n for n in dict.fromkeys(op.input_names) if n in self.now]
            low = op.type in self.low and bool(floats)
            if op.type not in ("feed", "fetch") or (op.type == "fetch" and keep_io_types):
                for name in floats:
                    op.rename_input(name, self._as(name, self.dtype if low else "float32", ops))
            half = low or (op.type == "feed" and not keep_io_types)
            for name in [n for n in dict.fromkeys(op.output_names) if n in self.now]:
                for dtype in _CODES:  # casts of what the name was
                    self.casts.pop((name, dtype), None)
                if half or self.now[name] != "float32":
                    self._retype(name, self.dtype if half else "float32")
            ops.append(op)
        self.block.ops = ops


def convert_to_mixed_precision(model_file, params_file, mixed_model_file, mixed_params_file, mixed_precision, backend,
                               keep_io_types=True, black_list=(), white_list=(), **unused):
    """Writes a model whose products, and what stands between them, compute in float16 or bfloat16.

    Operators of `black_list` stay in float32, those of `white_list` become half, too. Parameters that only such operators use
    are stored so. With keep_io_types what is fed and fetched stays as it was. `backend` is accepted: files are the same.
    """
    from ..quantization.program.model import Model
    dtype = {PrecisionType.Half: "float16", PrecisionType.Bfloat16: "bfloat16"}.get(mixed_precision)
    if dtype is None:
        raise ValueError("convert_to_mixed_precision: mixed_precision must be PrecisionType.Half or PrecisionType.Bfloat16, got "
                         f"{mixed_precision}")
    with open(model_file, "rb") as f:
        program = f.read()
    with open(params_file, "rb") as f:
        model = Model.parse(program, f.read())
    if len(model.desc.blocks) > 1:
        raise NotImplementedError("convert_to_mixed_precision: the model has branches or loops, which are not converted")
    _Converter(model, (_LOW | set(white_list)) - set(black_list), dtype).run(keep_io_types)
    model.clean()
    model.save(mixed_model_file, mixed_params_file)
