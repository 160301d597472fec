"""Rewrites a saved program of quantized layers: scales become attributes of operators, or the layout is ONNX's."""
from ...framework.program_desc import OpDesc
from ..program.model import Model
from ..program.rewrite import Rewriter, integers, weight_scale
from ..program.slots import ALL, operands, results

__all__ = ["finish", "note_scales", "to_onnx_layout"]

RESTORING = ("fake_quantize_dequantize_abs_max", "fake_channel_wise_quantize_dequantize_abs_max",
             "fake_quantize_dequantize_moving_average_abs_max")
OBSERVING = "moving_average_abs_max_scale"


def _plain(array):
    return float(array.reshape(-1)[0]) if array.size == 1 else [float(v) for v in array.reshape(-1)]


def _scale_of(op, arrays):
    """The scale that a quantizer of a saved model holds, or finds in a weight."""
    names, weight = op.output("OutScale"), arrays.get(op.input("X")[0])
    if names and names[0] in arrays:
        return _plain(arrays[names[0]])
    if weight is None:
        return None
    return _plain(weight_scale(weight, op.attr("quant_axis", 0) if "channel" in op.type else None))


def _index(op, name):
    for slot in ALL.get(op.type, ((), ()))[0]:
        if name in op.input(slot):
            return f"{slot}{op.input(slot).index(name)}"
    return None


def _note_inputs(block, arrays):
    makers = {n: op for op in block.ops if op.type in RESTORING or op.type == OBSERVING for n in op.output("Out")}
    for op in block.ops:
        if op.type in RESTORING or op.type == OBSERVING:
            continue
        for name in operands(op):
            scale = _scale_of(makers[name], arrays) if name in makers else None
            if scale is not None:
                op.set_attr(f"{_index(op, name)}_threshold", scale)
                op.set_attr("with_quant_attr", True)


def _take_observers(block, arrays):
    """Drops observers; their averages become out_threshold of the operators ahead of them."""
    kept, renamed = [], {}
    for op in block.ops:
        for name in dict.fromkeys(op.input_names):
            if name in renamed:
                op.rename_input(name, renamed[name])
        if op.type != OBSERVING:
            kept.append(op)
            continue
        source, scale = op.input("X")[0], _scale_of(op, arrays)
        renamed[op.output("Out")[0]] = source
        maker = next((o for o in kept if source in o.output_names), None)
        at = None if maker is None else next(((slot, i) for slot, i, n in results(maker) if n == source), None)
        if at is not None and scale is not None:
            maker.set_attr(f"{at[0]}{at[1]}_threshold", scale)
            maker.set_attr("out_threshold", scale)
            maker.set_attr("with_quant_attr", True)
    block.ops = kept


def _mark_skipped(block):
    quantized = {n for op in block.ops if op.type in RESTORING for n in op.output("Out")}
    made = {n for op in block.ops for n in op.output_names}
    for op in block.ops:
        if op.type in ("conv2d", "depthwise_conv2d", "matmul", "conv2d_transpose") and \
                any(n in made and n not in quantized for n in op.input_names):
            op.set_attr("skip_quant", True)
            op.set_attr("with_quant_attr", True)


def note_scales(model):
    """The default layout: quantizers stay, observers become attributes."""
    for block in model.desc.blocks:
        _note_inputs(block, model.arrays)
        _take_observers(block, model.arrays)
        _mark_skipped(block)


def _linear(block, model, op, bits, done):
    """quantize_linear and dequantize_linear in place of a fake quantizer."""
    source, out = op.input("X")[0], op.output("Out")[0]
    rewriter = Rewriter(block, model.arrays, op.attr("bit_length", bits), onnx=True)
    if source not in model.arrays:
        names = op.output("OutScale")
        if not names or names[0] not in model.arrays:
            return [op]
        ops, made = rewriter.restore(source, model.arrays[names[0]])
        ops[-1].rename_output(made, out)
        return ops
    axis, bits = op.attr("quant_axis", 0) if "channel" in op.type else None, op.attr("bit_length", bits)
    if source not in done:
        done.add(source)
        scale = weight_scale(model.arrays[source], axis)
        rewriter.keep_scale(source, scale)
        kind = "int8" if bits <= 8 else "float32"
        model.arrays[source] = integers(model.arrays[source], scale, axis, bits, even=True).astype(kind)
        block.vars[source] = block.vars[source].retyped(kind)
    return [OpDesc("dequantize_linear", {"X": [source], **rewriter.scale_slots(source)}, {"Y": [out]},
                   {"quant_axis": -1 if axis is None else axis, "bit_length": bits, "only_observer": False})]


def to_onnx_layout(model, bits):
    """Pairs of quantize_linear and dequantize_linear; weights are integers."""
    done = set()
    for block in model.desc.blocks:
        _take_observers(block, model.arrays)
        ops = []
        for op in block.ops:
            ops += _linear(block, model, op, bits, done) if op.type in RESTORING else [op]
        block.ops = ops


def finish(path, onnx_format, bits):
    """Rewrites what jit.save wrote."""
    with open(path + ".pdmodel", "rb") as f:
        program = f.read()
    with open(path + ".pdiparams", "rb") as f:
        model = Model.parse(program, f.read())
    if onnx_format:
        to_onnx_layout(model, bits)
    else:
        note_scales(model)
    model.clean()
    model.save(path)
