"""Edits of program descriptions that quantize them: in the layout of old files, integers between quantizers and
dequantizers behind operators; in that of ONNX, pairs of quantize_linear and dequantize_linear."""
from ...framework.program_desc import OpDesc, VarDesc
from .slots import WEIGHTED, channel_axis, operands

__all__ = ["Rewriter", "integers", "weight_scale"]

_OLD_ACTIVATIONS = {"range_abs_max": "fake_quantize_range_abs_max", "abs_max": "fake_quantize_abs_max",
                    "moving_average_abs_max": "fake_quantize_moving_average_abs_max"}


def weight_scale(weight, axis=None):
    """The largest magnitudes of a weight: one, or one an index of an axis. None is zero."""
    import numpy as np
    over = None if axis is None else tuple(d for d in range(weight.ndim) if d != axis)
    most = np.abs(weight.astype(np.float32)).max(axis=over, initial=0).reshape(-1)
    return np.where(most == 0, np.float32(1e-8), most).astype(np.float32)


def integers(weight, scale, axis, bits, even=False, op=None):
    """A weight's integers, as floats. even: halves to even and down to −n − 1, as quantize_linear has it. `op` reads it."""
    import numpy as np
    n = np.float32(2 ** (bits - 1) - 1)
    s = scale.reshape([-1 if d == axis else 1 for d in range(weight.ndim)]) if scale.size > 1 else scale
    v = weight.astype(np.float32) / s * n
    return np.clip(np.rint(v), -n - 1, n) if even else np.rint(np.clip(v, -n, n))


def corrected(weight, integral, scale, axis, bits):
    """Integers whose channels have the weight's mean and deviation."""
    import numpy as np
    n = np.float32(2 ** (bits - 1) - 1)
    over = tuple(d for d in range(weight.ndim) if d != axis) if scale.size > 1 else None
    s = scale.reshape([-1 if d == axis else 1 for d in range(weight.ndim)]) if scale.size > 1 else scale
    back = integral * s / n
    mean = (weight - back).mean(axis=over, keepdims=True)
    ratio = weight.std(axis=over, keepdims=True) / (back.std(axis=over, keepdims=True) + 1e-8)
    return integers((mean + back) * ratio, scale, axis, bits)


class Rewriter:
    """Quantizes one block. `arrays` (name → array) holds the parameters, and gets scales and integers."""

    def __init__(self, block, arrays, activation_bits=8, weight_bits=8, onnx=False, channels=True,
                 activation_type="moving_average_abs_max", bias_correction=False, rounded=integers):
        """rounded: a function like integers."""
        self.block, self.arrays, self.rounded = block, arrays, rounded
        self.activation_bits, self.weight_bits = activation_bits, weight_bits
        self.onnx, self.channels, self.bias_correction = onnx, channels, bias_correction
        self.activation_type = activation_type
        self._quantized, self._weights, self._renamed = {}, {}, {}
        self._channel_scales = 0

    # ---- pieces

    def keep(self, name, array):
        """A persistable variable with a value."""
        self.arrays[name] = array
        if name not in self.block.vars:
            self.block.add_var(VarDesc(name, array.dtype.name, array.shape, persistable=True))
        return name

    def _scale(self, name, value):
        import numpy as np
        return self.keep(name, np.asarray(value, np.float32).reshape(-1))

    def _zero_point(self, name, count):
        import numpy as np
        return self.keep(name, np.zeros([count], np.float32))

    def keep_scale(self, name, scale):
        """The scales and zero points of a variable, in ONNX's layout."""
        self._scale(name + "@scale", scale)
        self._zero_point(name + "@zero_point", self.arrays[name + "@scale"].size)

    @staticmethod
    def scale_slots(name):
        """The slots that name what keep_scale kept."""
        return {"Scale": [name + "@scale"], "ZeroPoint": [name + "@zero_point"]}

    def quantize(self, name, scale):
        """(operators, name): integers of a variable, in the old layout."""
        scale_name = self._scale(name + "@scale", scale)
        out = self.block.like(name + ".quantized", name).name
        attrs = {"bit_length": self.activation_bits, "is_test": True}
        if self.activation_type == "range_abs_max":
            attrs["window_size"] = 10000
        kind = _OLD_ACTIVATIONS[self.activation_type]
        inputs = {"X": [name]} if self.activation_type == "abs_max" else {"X": [name], "InScale": [scale_name]}
        return [OpDesc(kind, inputs, {"Out": [out], "OutScale": [scale_name]}, attrs)], out

    def restore(self, name, scale, suffix=".quant_dequant"):
        """(operators, name): a variable on its grid, in either layout."""
        if not self.onnx:
            scale_name = self._scale(f"{name}{suffix}@scale", scale)
            out = self.block.like(f"{name}{suffix}", name).name
            attrs = {"bit_length": self.activation_bits, "is_test": True, "moving_rate": 0.9}
            return [OpDesc("fake_quantize_dequantize_moving_average_abs_max", {"X": [name], "InScale": [scale_name]},
                           {"Out": [out], "OutScale": [scale_name]}, attrs)], out
        self.keep_scale(name, scale)
        slots = self.scale_slots(name)
        inside = self.block.like(name + ".quantized", name).name
        out = self.block.like(name + ".dequantized", name).name
        attrs = {"quant_axis": -1, "bit_length": self.activation_bits}
        return [OpDesc("quantize_linear", {"X": [name], **slots}, {"Y": [inside]},
                       {**attrs, "round_type": 0, "is_test": True, "only_observer": False}),
                OpDesc("dequantize_linear", {"X": [inside], **slots}, {"Y": [out]}, {**attrs, "only_observer": False})], out

    def weight(self, op, name):
        """(scales, axis or None) of a weight, whose integers replace it."""
        if name not in self._weights:
            axis = channel_axis(op) if self.channels else None
            value = self.arrays[name]
            scale = weight_scale(value, axis)
            integral = self.rounded(value, scale, axis, self.weight_bits, self.onnx, op)
            if self.bias_correction and not self.onnx:
                integral = corrected(value, integral, scale, axis, self.weight_bits)
            kind = "int8" if self.onnx and self.weight_bits <= 8 else "float32"
            self.arrays[name] = integral.astype(kind)
            self.block.vars[name] = self.block.vars[name].retyped(kind)
            self._weights[name] = (scale, axis)
        return self._weights[name]

    def weight_restored(self, op, name):
        """(operators, name): a weight of integers on its grid, in ONNX's layout."""
        fresh = name not in self._weights
        scale, axis = self.weight(op, name)
        out = name + ".dequantized"
        if not fresh:
            return [], out
        self.block.like(out, name, dtype="float32")
        self.keep_scale(name, scale)
        attrs = {"quant_axis": -1 if axis is None else axis, "bit_length": self.weight_bits, "only_observer": False}
        return [OpDesc("dequantize_linear", {"X": [name], **self.scale_slots(name)}, {"Y": [out]}, attrs)], out

    def dequantize(self, op, scale, axis, act_scale):
        """The operator behind one of integers, in the old layout; later readers read what it makes."""
        slot = WEIGHTED[op.type][1][0]
        out = op.output(slot)[0]
        made = self.block.like(out + ".dequantized", out).name
        self._renamed[out] = made
        if axis is None:
            n = (2 ** (self.weight_bits - 1) - 1) * (2 ** (self.activation_bits - 1) - 1)
            return OpDesc("fake_dequantize_max_abs", {"X": [out], "Scale": [act_scale]}, {"Out": [made]},
                          {"max_range": n / float(scale[0])})
        if op.type == "conv2d_transpose":
            import numpy as np
            scale = np.tile(scale, op.attr("groups", 1))
        kept = self._scale(f"channel_scale_{self._channel_scales}", scale)
        self._channel_scales += 1
        columns = op.attr("x_num_col_dims", 1)
        if op.type in ("matmul", "matmul_v2"):
            columns = max(len(self.block.vars[out].shape) - 1, 1)
        return OpDesc("fake_channel_wise_dequantize_max_abs", {"X": [out], "Scales": [kept, act_scale]}, {"Out": [made]},
                      {"quant_bits": [self.weight_bits, self.activation_bits], "quant_axis": axis, "x_num_col_dims": columns})

    # ---- the block

    def _is_weight(self, name):
        known = self.block.vars.get(name)
        return known is not None and known.persistable and name in self.arrays

    def _activation(self, name, scales, ops, integral):
        """The quantized name of a variable, whose operators are added to ops once; None without a scale."""
        key = (name, integral)
        if key not in self._quantized:
            if name not in scales:
                return None
            new, out = self.quantize(name, scales[name]) if integral else self.restore(name, scales[name])
            ops += new
            self._quantized[key] = out
        return self._quantized[key]

    def _weighted(self, op, act, weight, scales, ops):
        """Quantizes an operator of one activation and one weight; False if there is no scale."""
        original = act
        act = self._renamed.get(act, act)
        quantized = self._activation_of(original, act, scales, ops, integral=not self.onnx)
        if quantized is None:
            return False
        if self.onnx:
            new, restored = self.weight_restored(op, weight)
            ops += new
            op.rename_input(weight, restored)
        else:
            scale, axis = self.weight(op, weight)
        op.rename_input(original, quantized)
        bias = op.inputs.pop("Bias", None) if not self.onnx else None
        ops.append(op)
        if not self.onnx:
            ops.append(self.dequantize(op, scale, axis, act + "@scale"))
            self._add_bias(op, bias, ops)
        return True

    def _add_bias(self, op, bias, ops):
        """A bias that the operator held is added to what was dequantized."""
        if not bias:
            return
        out = op.output(WEIGHTED[op.type][1][0])[0]
        made = self.block.like(out + ".biased", out).name
        ops.append(OpDesc("elementwise_add", {"X": [self._renamed[out]], "Y": bias}, {"Out": [made]}, {"axis": 1}))
        self._renamed[out] = made

    def _activation_of(self, original, name, scales, ops, integral):
        """As _activation, of a variable that an earlier dequantizer renamed: the scale is the original's."""
        if original != name and original in scales:
            scales.setdefault(name, scales[original])
        return self._activation(name, scales, ops, integral)

    def run(self, scales, weighted, activations, skip=lambda op: False):
        """Quantizes operators of the types `weighted` that have a weight, and the activations of those of `activations`,
        by scales (name → number). Returns how many operators were quantized."""
        scales, ops, count = dict(scales), [], 0
        for op in self.block.ops:
            names = operands(op)
            weights = [n for n in names if self._is_weight(n)]
            acts = [n for n in names if n not in weights]
            if op.type in weighted and len(weights) == 1 and len(acts) == 1 and not skip(op) and \
                    self._weighted(op, acts[0], weights[0], scales, ops):
                count += 1
                continue
            wanted = op.type in activations or (op.type in weighted and not weights)
            for name in dict.fromkeys(op.input_names):
                now = self._renamed.get(name, name)
                if wanted and name in acts and not skip(op) and self._all_known(acts, scales):
                    now = self._activation_of(name, now, scales, ops, integral=False) or now
                if now != name:
                    op.rename_input(name, now)
            count += bool(wanted)
            ops.append(op)
        self.block.ops = ops
        return count

    @staticmethod
    def _all_known(names, scales):
        return all(name in scales for name in names)
