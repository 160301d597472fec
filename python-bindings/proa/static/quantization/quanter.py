"""quant_aware applies the quantization passes for training to a program, convert the passes for inference."""
from ..program import default_main_program
from ..scope import global_scope
from ..graph import Graph, IrGraph
from .quantization_pass import (AddQuantDequantPass, OutScaleForInferencePass, OutScaleForTrainingPass, QuantizationFreezePass,
                                QuantizationTransformPass)
from ...quantization.program.slots import ACTIVATIONS, WEIGHTED

__all__ = ["convert", "quant_aware"]

_DEFAULTS = {"weight_quantize_type": "channel_wise_abs_max", "activation_quantize_type": "moving_average_abs_max",
             "weight_bits": 8, "activation_bits": 8, "not_quant_pattern": ["skip_quant"],
             "quantize_op_types": ["conv2d", "depthwise_conv2d", "mul", "matmul", "matmul_v2"], "dtype": "int8",
             "window_size": 10000, "moving_rate": 0.9, "for_tensorrt": False, "is_full_quantize": False, "onnx_format": False}


def _config(given):
    unknown = set(given or ()) - set(_DEFAULTS) - {"quant_post_first", "scale_trainable", "name"}
    if unknown:
        raise ValueError(f"quant_aware: unknown settings {sorted(unknown)}; expected {', '.join(_DEFAULTS)}")
    config = {**_DEFAULTS, **(given or {})}
    if config["onnx_format"]:
        raise NotImplementedError("quant_aware: onnx_format is not supported for programs: use ImperativeQuantAware")
    return config


def quant_aware(program, place, config=None, scope=None, for_test=False, **unused):
    """The program with quantizers: one for training, or (for_test) one for evaluation. Both share scales by name."""
    config, scope = _config(config), scope or global_scope()
    graph = IrGraph(Graph(program or default_main_program()), for_test)
    types = list(config["quantize_op_types"]) + (list(ACTIVATIONS) if config["is_full_quantize"] else [])
    weighted, others = [t for t in types if t in WEIGHTED], [t for t in types if t not in WEIGHTED]
    QuantizationTransformPass(scope, place, config["weight_bits"], config["activation_bits"],
                              config["activation_quantize_type"], config["weight_quantize_type"], config["window_size"],
                              config["moving_rate"], config["not_quant_pattern"], weighted).apply(graph)
    if others:
        AddQuantDequantPass(scope, place, config["moving_rate"], config["activation_bits"], config["not_quant_pattern"],
                            others).apply(graph)
    OutScaleForTrainingPass(scope, place, config["moving_rate"]).apply(graph)
    return graph.to_program()


def convert(program, place, config=None, scope=None, save_int8=False):
    """The program for inference of what quant_aware(for_test=True) made, in the layout of old files."""
    config, scope = _config(config), scope or global_scope()
    graph = IrGraph(Graph(program), True)
    OutScaleForInferencePass(scope).apply(graph)
    QuantizationFreezePass(scope, place, False, config["weight_bits"], config["activation_bits"],
                           weight_quantize_type=config["weight_quantize_type"]).apply(graph)
    return graph.to_program()
