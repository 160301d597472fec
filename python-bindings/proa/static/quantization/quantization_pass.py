"""Passes over an IrGraph: quantizers for training, the layout of old files for inference, scales of outputs."""
from ...framework.program_desc import OpDesc, VarDesc
from ..scope import global_scope
from ...quantization.program.rewrite import Rewriter
from ...quantization.program.slots import ACTIVATIONS, ALL, WEIGHTED, channel_axis, operands, results, skipped

__all__ = ["AddQuantDequantPass", "ConvertToInt8Pass", "OutScaleForInferencePass", "OutScaleForTrainingPass",
           "QuantizationFreezePass", "QuantizationTransformPass", "TransformForMobilePass"]

_QUANTIZERS = ("fake_quantize_abs_max", "fake_quantize_range_abs_max", "fake_quantize_moving_average_abs_max",
               "fake_channel_wise_quantize_abs_max")
_DEQUANTIZERS = ("fake_dequantize_max_abs", "fake_channel_wise_dequantize_max_abs")
_RESTORING = "fake_quantize_dequantize_moving_average_abs_max"
_OBSERVING = "moving_average_abs_max_scale"


def _is_backward(op):
    return bool((op.attr("op_role", 0) or 0) & 1)


class _Pass:
    """A pass with a scope, in which it keeps the variables that it makes."""

    def __init__(self, scope, place):
        self._scope, self._place = scope or global_scope(), place

    def _array(self, name):
        import numpy as np
        found = self._scope.find_var(name)
        if found is None:
            raise ValueError(f"{type(self).__name__}: the scope has no value of {name!r}: run the startup program first")
        return np.array(found.get_tensor())

    def _has(self, name):
        found = self._scope.find_var(name)
        return found is not None and found.get_tensor()._is_initialized()

    def _set(self, name, array):
        self._scope.var(name).get_tensor().set(array, self._place)

    def _number(self, block, name, value, dtype="float32", count=1):
        """A persistable variable; a value that the scope has stays."""
        import numpy as np
        if name not in block.vars:
            block.add_var(VarDesc(name, dtype, [count], persistable=True))
        if not self._has(name):
            self._set(name, np.full([count], value, dtype))
        return name


class QuantizationTransformPass(_Pass):
    """Puts a quantizer and a dequantizer between each quantizable operator and what it reads, in training programs and in
    those for inference (for_test). Gradients are those of the numbers that the operators saw."""

    _supported_quantizable_op_type = list(WEIGHTED)

    def __init__(self, scope=None, place=None, weight_bits=8, activation_bits=8, activation_quantize_type="abs_max",
                 weight_quantize_type="abs_max", window_size=10000, moving_rate=0.9, skip_pattern=("skip_quant",),
                 quantizable_op_type=("conv2d", "depthwise_conv2d", "mul"), weight_quantize_func=None, act_quantize_func=None,
                 weight_preprocess_func=None, act_preprocess_func=None, optimizer_func=None, executor=None, is_test=None):
        super().__init__(scope, place)
        if any(f is not None for f in (weight_quantize_func, act_quantize_func, weight_preprocess_func, act_preprocess_func)):
            raise NotImplementedError("QuantizationTransformPass: functions of one's own are not supported: build the network "
                                      "with them, and name its operators in skip_pattern")
        if activation_quantize_type not in ("abs_max", "range_abs_max", "moving_average_abs_max"):
            raise ValueError(f"activation_quantize_type must be 'abs_max', 'range_abs_max' or 'moving_average_abs_max', got "
                             f"{activation_quantize_type!r}")
        if weight_quantize_type not in ("abs_max", "channel_wise_abs_max"):
            raise ValueError(f"weight_quantize_type must be 'abs_max' or 'channel_wise_abs_max', got {weight_quantize_type!r}")
        for one in quantizable_op_type:
            if one not in WEIGHTED:
                raise AssertionError(f"quantizable_op_type: {one!r} has no weight; expected {', '.join(WEIGHTED)}")
        self._weight_bits, self._activation_bits = weight_bits, activation_bits
        self._act, self._weight = activation_quantize_type, weight_quantize_type
        self._window_size, self._moving_rate = window_size, moving_rate
        self._skip = (skip_pattern,) if isinstance(skip_pattern, str) else tuple(skip_pattern or ())
        self._types, self._is_test = tuple(quantizable_op_type), is_test

    def apply(self, graph):
        """Edits the graph; returns it."""
        if self._is_test is not None:
            graph._for_test = self._is_test
        block, self._test = graph._block, graph._for_test
        restored, ops = {}, []
        for op in block.ops:
            known = op.type in self._types
            if known and not _is_backward(op) and not skipped(op, self._skip):
                for name in dict.fromkeys(operands(op)):
                    if name not in restored:
                        restored[name] = self._insert(block, op, name, ops)
                    op.rename_input(name, restored[name])
                op.set_attr("quantization_type", "qat_with_weight")
                op.set_attr("with_quant_attr", True)
            elif _is_backward(op) and (known or op.type.removesuffix("_grad") in self._types):
                for name in dict.fromkeys(op.input_names):
                    if name in restored:
                        op.rename_input(name, restored[name])
            ops.append(op)
        block.ops = ops
        return graph

    def _insert(self, block, op, name, ops):
        kept = block.vars[name].persistable if name in block.vars else False
        bits = self._weight_bits if kept else self._activation_bits
        quantized = block.like(name + ".quantized", name, persistable=False).name
        restored = block.like(name + ".quantized.dequantized", name, persistable=False).name
        axis = channel_axis(op) if kept and self._weight == "channel_wise_abs_max" else None
        kind = "channel_wise_abs_max" if axis is not None else "abs_max" if kept else self._act
        scale = self._quantizer(block, kind, name, quantized, bits, axis, ops)
        n = 2 ** (bits - 1) - 1
        if axis is None:
            ops.append(OpDesc("fake_dequantize_max_abs", {"X": [quantized], "Scale": [scale]}, {"Out": [restored]},
                              {"max_range": float(n)}))
        else:
            ops.append(OpDesc("fake_channel_wise_dequantize_max_abs", {"X": [quantized], "Scales": [scale]},
                              {"Out": [restored]}, {"quant_bits": [bits], "quant_axis": axis}))
        return restored

    def _quantizer(self, block, kind, name, out, bits, axis, ops):
        """Adds the quantizer; returns the name of its scale."""
        count = 1 if axis is None else block.vars[name].shape[axis]
        scale = self._number(block, name + "@scale", 0.001, count=count)
        inputs, outputs, attrs = {"X": [name]}, {"Out": [out], "OutScale": [scale]}, {"bit_length": bits}
        if kind == "channel_wise_abs_max":
            attrs.update(quant_axis=axis, is_test=self._test)
        elif kind == "range_abs_max":
            inputs["InScale"], attrs["window_size"], attrs["is_test"] = [scale], self._window_size, self._test
            if not self._test:
                inputs["Iter"] = [self._steps(block, ops)]
                outputs["OutScales"] = [self._number(block, name + "@scales", 0.0, count=self._window_size)]
        elif kind == "moving_average_abs_max":
            inputs["InScale"], attrs["moving_rate"], attrs["is_test"] = [scale], self._moving_rate, self._test
            if not self._test:
                for slot in ("State", "Accum"):
                    kept = self._number(block, f"{name}@{slot.lower()}", 1.0)
                    inputs["In" + slot], outputs["Out" + slot] = [kept], [kept]
        prefix = "fake_" if kind == "channel_wise_abs_max" else "fake_quantize_"
        full = "fake_channel_wise_quantize_abs_max" if prefix == "fake_" else prefix + kind
        ops.append(OpDesc(full, inputs, outputs, attrs))
        return scale

    def _steps(self, block, ops):
        name = self._number(block, "@QUANTIZATION_STEPS@", 0, "int64")
        if not any(name in op.output_names for op in ops):
            ops.append(OpDesc("increment", {"X": [name]}, {"Out": [name]}, {"step": 1.0}))
        return name


class QuantizationFreezePass(_Pass):
    """Makes of a trained graph the layout of old files: weights are integers, and dequantizers follow the operators."""

    def __init__(self, scope, place, bias_correction=False, weight_bits=8, activation_bits=8, round_type="round",
                 weight_quantize_type="abs_max", quantizable_op_type=None):
        super().__init__(scope, place)
        self._bias_correction, self._weight_bits, self._activation_bits = bias_correction, weight_bits, activation_bits
        self._channels = weight_quantize_type == "channel_wise_abs_max"

    def apply(self, graph):
        """Edits the graph, and the weights in the scope; returns it."""
        block, scales, source, kept = graph._block, {}, {}, []
        kind, quantized = "moving_average_abs_max", set()
        for op in block.ops:
            if op.type in _QUANTIZERS:
                name, out = op.input("X")[0], op.output("Out")[0]
                source[out] = name
                if not block.vars[name].persistable:
                    scales[name], kind = float(self._array(op.output("OutScale")[0])[0]), op.type.removeprefix("fake_quantize_")
            elif op.type in _DEQUANTIZERS:
                source[op.output("Out")[0]] = source[op.input("X")[0]]
            else:
                for name in dict.fromkeys(op.input_names):
                    if name in source:
                        quantized.add(id(op))
                        op.rename_input(name, source[name])
                kept.append(op)
        block.ops = kept
        arrays = {n: self._array(n) for op in kept if id(op) in quantized for n in op.input_names
                  if n in block.vars and block.vars[n].persistable}
        Rewriter(block, arrays, self._activation_bits, self._weight_bits, False, self._channels, kind,
                 self._bias_correction).run(scales, list(WEIGHTED), (), lambda op: id(op) not in quantized)
        for name, array in arrays.items():
            self._set(name, array)
        _forget_unused(block)
        return graph


def _forget_unused(block):
    used = {n for op in block.ops for n in op.input_names + op.output_names}
    for name in [n for n in block.vars if n not in used]:
        del block.vars[name]


class ConvertToInt8Pass(_Pass):
    """Keeps the integers of weights in variables of int8, `<weight>.int8`."""

    def __init__(self, scope, place, quantizable_op_type=None):
        super().__init__(scope, place)

    def apply(self, graph):
        """Edits the graph; returns it."""
        block = graph._block
        for op in block.ops:
            if op.attr("quantization_type", "") != "qat_with_weight":
                continue
            for name in dict.fromkeys(op.input_names):
                if name in block.vars and block.vars[name].persistable:
                    made = name + ".int8"
                    if made not in block.vars:
                        array = self._array(name).astype("int8")
                        block.add_var(VarDesc(made, "int8", array.shape, persistable=True))
                        self._set(made, array)
                    op.rename_input(name, made)
        _forget_unused(block)
        return graph


class TransformForMobilePass:
    """Names quantizers as Paddle Lite does: quantize and dequantize."""

    def apply(self, graph):
        """Edits the graph; returns it."""
        for op in graph._block.ops:
            if op.type in _QUANTIZERS or op.type in _DEQUANTIZERS:
                op.type = "quantize" if op.type in _QUANTIZERS else "dequantize"
        return graph


class OutScaleForTrainingPass(_Pass):
    """Puts an observer behind each operator whose output's scale inference may want."""

    def __init__(self, scope=None, place=None, moving_rate=0.9, is_test=None, scale_dict=None):
        super().__init__(scope, place)
        self._moving_rate, self._is_test = moving_rate, is_test

    def apply(self, graph):
        """Edits the graph; returns it."""
        test = graph._for_test if self._is_test is None else self._is_test
        block, ops = graph._block, []
        for op in block.ops:
            ops.append(op)
            if op.type not in ALL or _is_backward(op):
                continue
            for _, _, name in results(op):
                if name in block.vars and block.vars[name].dtype == "float32" and not block.vars[name].persistable:
                    ops.append(self._observer(block, name, test))
        block.ops = ops
        return graph

    def _observer(self, block, name, test):
        out = block.like(name + ".observed", name).name
        inputs, outputs = {"X": [name]}, {"Out": [out], "OutScale": [self._number(block, name + "@out_scale", 1.0)]}
        if not test:
            for slot in ("State", "Accum"):
                kept = self._number(block, f"{name}@out_{slot.lower()}", 1.0)
                inputs["In" + slot], outputs["Out" + slot] = [kept], [kept]
        return OpDesc(_OBSERVING, inputs, outputs, {"moving_rate": self._moving_rate, "is_test": test})


class OutScaleForInferencePass(_Pass):
    """Writes what OutScaleForTrainingPass' observers found into the attribute out_threshold; takes them out."""

    def __init__(self, scope=None):
        super().__init__(scope, None)

    def apply(self, graph):
        """Edits the graph; returns it."""
        block = graph._block
        block.ops = [op for op in block.ops if op.type != _OBSERVING]
        for op in block.ops:
            for slot, index, name in results(op):
                if self._has(name + "@out_scale"):
                    scale = float(self._array(name + "@out_scale")[0])
                    op.set_attr("out_threshold", scale)
                    op.set_attr(f"{slot}{index}_threshold", scale)
                    op.set_attr("with_quant_attr", True)
        _forget_unused(block)
        return graph


class AddQuantDequantPass(_Pass):
    """Puts a quantizer that restores in front of operators that have no weights."""

    _supported_quantizable_op_type = list(ACTIVATIONS)

    def __init__(self, scope=None, place=None, moving_rate=0.9, quant_bits=8, skip_pattern=("skip_quant",),
                 quantizable_op_type=("elementwise_add", "pool2d"), is_full_quantized=False, is_test=None, scale_dict=None):
        super().__init__(scope, place)
        self._moving_rate, self._bits, self._is_test = moving_rate, quant_bits, is_test
        self._types = tuple(ACTIVATIONS) if is_full_quantized else tuple(quantizable_op_type)
        self._skip = (skip_pattern,) if isinstance(skip_pattern, str) else tuple(skip_pattern or ())

    def apply(self, graph):
        """Edits the graph; returns it."""
        test = graph._for_test if self._is_test is None else self._is_test
        block, restored, ops = graph._block, {}, []
        for op in block.ops:
            names = [n for n in dict.fromkeys(operands(op)) if n in block.vars]
            fits = op.type in self._types and not skipped(op, self._skip) and not _is_backward(op)
            if fits and all(not block.vars[n].persistable and block.vars[n].dtype == "float32" for n in names):
                for name in names:
                    if name not in restored:
                        restored[name] = self._insert(block, name, test, ops)
                    op.rename_input(name, restored[name])
            elif _is_backward(op) and op.type.removesuffix("_grad") in self._types:
                for name in dict.fromkeys(op.input_names):
                    if name in restored:
                        op.rename_input(name, restored[name])
            ops.append(op)
        block.ops = ops
        return graph

    def _insert(self, block, name, test, ops):
        out = block.like(name + ".quant_dequant", name).name
        scale = self._number(block, name + ".quant_dequant@scale", 0.001)
        inputs, outputs = {"X": [name], "InScale": [scale]}, {"Out": [out], "OutScale": [scale]}
        if not test:
            for slot in ("State", "Accum"):
                kept = self._number(block, f"{name}.quant_dequant@{slot.lower()}", 1.0)
                inputs["In" + slot], outputs["Out" + slot] = [kept], [kept]
        ops.append(OpDesc(_RESTORING, inputs, outputs,
                          {"moving_rate": self._moving_rate, "bit_length": self._bits, "is_test": test}))
        return out
