"""Quantizable operators by Paddle's names: slots of their operands and results."""

WEIGHTED = {"conv2d": (("Input", "Filter"), ("Output",)), "depthwise_conv2d": (("Input", "Filter"), ("Output",)),
            "conv2d_transpose": (("Input", "Filter"), ("Output",)), "mul": (("X", "Y"), ("Out",)),
            "matmul": (("X", "Y"), ("Out",)), "matmul_v2": (("X", "Y"), ("Out",))}

_UNARY = """pool2d softmax argmax transpose gather mean reshape reshape2 transpose2 nearest_interp trilinear_interp squeeze relu
relu6 leaky_relu tanh swish dropout sigmoid hard_swish hard_sigmoid pad2d pad3d flatten flatten2 unsqueeze2
flatten_contiguous_range split squeeze2 nearest_interp_v2 bilinear_interp bilinear_interp_v2 arg_max abs assign cast clip crop
cumsum expand_v2 fill_any_like gelu p_norm pow reduce_mean logical_not meshgrid tile reduce_sum square softplus
shuffle_channel reduce_max scale concat""".split()
_BINARY = """elementwise_add elementwise_sub elementwise_mul elementwise_pow equal greater_equal greater_than less_equal less_than
not_equal logical_and""".split()

ACTIVATIONS = {**{t: (("X",), ("Out",)) for t in _UNARY}, **{t: (("X", "Y"), ("Out",)) for t in _BINARY},
               "slice": (("Input",), ("Out",)), "strided_slice": (("Input",), ("Out",)), "batch_norm": (("X",), ("Y",)),
               "layer_norm": (("X",), ("Y",)), "instance_norm": (("X",), ("Y",)), "prelu": (("X", "Alpha"), ("Out",)),
               "stack": (("X",), ("Y",)), "norm": (("X",), ("Norm",)), "top_k_v2": (("X",), ("Out",)),
               "group_norm": (("X",), ("Y",)), "where": (("Condition", "X", "Y"), ("Out",)),
               "lookup_table": (("W", "Ids"), ("Out",)), "lookup_table_v2": (("W", "Ids"), ("Out",)),
               "roi_align": (("X", "ROIs"), ("Out",)), "grid_sampler": (("X", "Grid"), ("Output",))}

ALL = {**ACTIVATIONS, **WEIGHTED}

# Weights whose channels are the second axis: [in, out, …].
SECOND_AXIS = ("conv2d_transpose", "mul", "matmul", "matmul_v2")


def operands(op):
    """Names that an operator's quantized slots read."""
    return [n for slot in ALL.get(op.type, ((), ()))[0] for n in op.input(slot)]


def results(op):
    """(slot, index, name) of an operator's quantized slots that it writes."""
    return [(slot, i, n) for slot in ALL.get(op.type, ((), ()))[1] for i, n in enumerate(op.output(slot))]


def transposed(op):
    """Whether a matrix product takes its second operand transposed."""
    return bool(op.attr("trans_y", op.attr("transpose_Y", False)))


def channel_axis(op):
    """The axis of output channels of an operator's weight."""
    return 1 if op.type in SECOND_AXIS and not transposed(op) else 0


def skipped(op, patterns=("skip_quant",)):
    """Whether an operator says that it stays as it is."""
    scope = op.attr("op_namescope", "") or ""
    return bool(op.attr("skip_quant", False)) or any(p and p in scope for p in patterns)
