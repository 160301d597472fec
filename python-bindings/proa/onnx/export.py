"""onnx.export: captures a layer's forward for inference and writes it as an ONNX model."""
import inspect
import os

from .._asks import asks
from ..jit.save import capture, prefix_of, select_outputs, specs_of
from ..jit.static_function import StaticFunction

_WHO = "onnx.export"


def _check(path):
    """Raises what ONNX's own checker has to say about a file, if that package is installed."""
    try:
        from onnx import checker
    except ImportError:
        return
    checker.check_model(path, full_check=True)


def _required(parameters):
    """The number of arguments that a function needs."""
    return sum(one.default is one.empty and one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD) for one in parameters)


@asks("path:str")
def export(layer, path, input_spec=None, opset_version=9, **configs):
    """Writes a layer as the ONNX model path + '.onnx'. No other package is needed.

    input_spec: what forward takes; needed unless to_static was given it or the layer has been called. Inputs have its
    names, and None dims stay open. With fewer entries than forward takes arguments, a layer under to_static is exported
    as it was called last, with the first inputs alone. opset_version: 7 to 20; ops that need a later one are an error that names it.
    output_spec: the outputs to keep. enable_onnx_checker: ask the package onnx, if it is installed, to check the file.
    Other configurations are accepted and have no effect. The model predicts: dropout is off and batch norm uses its
    statistics, whatever mode the layer is in.

    >>> import os, tempfile
    >>> import proa as paddle
    >>> path = os.path.join(tempfile.mkdtemp(), "linear")
    >>> paddle.onnx.export(paddle.nn.Linear(3, 2), path, input_spec=[paddle.static.InputSpec([None, 3], name="x")])
    >>> os.path.exists(path + ".onnx")
    True
    """
    from ..distributed import DataParallel
    from ..nn import Layer
    if isinstance(layer, DataParallel):
        layer = layer._layers
    if not isinstance(layer, Layer) and not inspect.isroutine(layer) and not isinstance(layer, StaticFunction):
        raise TypeError(f"{_WHO}: expected a Layer or a function, got {type(layer).__name__}")
    if isinstance(opset_version, bool) or not isinstance(opset_version, int):
        raise TypeError(f"{_WHO}: opset_version must be an int, got {type(opset_version).__name__}")
    prefix, specs = prefix_of(os.fspath(path), _WHO), specs_of(input_spec, _WHO)
    function = layer.forward if isinstance(layer, Layer) else layer
    static = function if isinstance(function, StaticFunction) else StaticFunction(function, name="forward")
    few = specs is not None and static.program_cache and len(specs) < _required(static._signature.parameters)
    program = capture(static, None if few else specs, layer if isinstance(layer, Layer) else None, _WHO)
    select_outputs(program, configs.get("output_spec"), _WHO)
    if few:
        program.set_inputs([program.find(name) for name in program.inputs[:len(specs)]])
    program.prune()
    program.onnx_export(prefix + ".onnx", opset_version)
    if configs.get("enable_onnx_checker"):
        _check(prefix + ".onnx")
