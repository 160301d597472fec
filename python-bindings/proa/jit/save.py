"""jit.save: writes the inference programs and parameters of a layer or function as files that Paddle reads."""
import inspect
import os
import pickle
import types
import warnings

from .. import _core
from .._asks import asks
from ..framework.parameter import Parameter
from ..static.input import InputSpec
from .concrete import Concrete
from .dy2static.runtime.values import Tensor
from .signature import spec_of
from .static_function import StaticFunction, Switch

_CONFIGS = ("output_spec", "with_hook", "combine_params", "clip_extra", "skip_forward", "input_names_after_prune",
            "skip_prune_program")


def specs_of(input_spec, who="jit.save"):
    """input_spec with tensors as their specs; other values stay."""
    if input_spec is None:
        return None
    if not isinstance(input_spec, (list, tuple)):
        raise TypeError(f"{who}: input_spec must be a list or tuple, got {type(input_spec).__name__}")
    return [_spec(one) for one in input_spec]


def _spec(value):
    if isinstance(value, (list, tuple)):
        return type(value)(_spec(one) for one in value)
    if isinstance(value, dict):
        return {key: _spec(one) for key, one in value.items()}
    if isinstance(value, Tensor):
        return InputSpec(value.declared_shape, value.dtype, value.name)
    return spec_of(value) or value


def prefix_of(path, who="jit.save"):
    """path, whose folder is made if it is missing."""
    if not os.path.basename(path):
        raise ValueError(f"{who}: path must end in a file prefix, got {path!r}")
    folder = os.path.dirname(path)
    if folder:
        os.makedirs(folder, exist_ok=True)
    return path


# ---- what is saved ------------------------------------------------------------------------


def _methods(layer, specs, configs):
    """name -> StaticFunction of a layer's methods that are saved."""
    found = {}
    for name in sorted(set(dir(layer))):
        if name.startswith("__"):
            continue
        declared = inspect.getattr_static(layer, name, None)
        if not isinstance(declared, StaticFunction) and name != "forward":
            continue
        method = getattr(layer, name)
        if isinstance(method, StaticFunction):
            found[name] = method
    if specs is not None and set(found) - {"forward"}:
        raise ValueError(f"jit.save: input_spec must be None, since methods other than forward are saved, too: "
                         f"{sorted(set(found) - {'forward'})}; give each its own by to_static")
    if "forward" not in found and not configs.get("skip_forward"):
        found["forward"] = StaticFunction(layer.forward, name="forward")
    return found


def _hooked(layer, forward):
    """forward with the layer's own hooks, as one function to be captured."""
    def run(*inputs, **options):
        for hook in tuple(layer._forward_pre_hooks.values()):
            changed = hook(layer, inputs)
            if changed is not None:
                inputs = changed if isinstance(changed, tuple) else (changed,)
        outputs = forward(*inputs, **options)
        for hook in tuple(layer._forward_post_hooks.values()):
            changed = hook(layer, inputs, outputs)
            if changed is not None:
                outputs = changed
        return outputs
    return run


def capture(static, specs, layer=None, who="jit.save"):
    """The program for inference of a static function."""
    wanted = specs if specs is not None else static.input_spec
    if wanted is None and not static.program_cache and static._signature.parameters:
        raise ValueError(f"{who}: {static._name} needs input_spec: give it to {who} or to_static, or call the "
                         "layer once before")
    if wanted is None and static.program_cache:
        known = static._one()
        bound, feeds = known.bound, known.feeds
    else:
        bound = static._signature.bind_specs(wanted or [])
        feeds = static._signature.feeds(bound)
    function = static._inline()
    if layer is not None and static._name == "forward" and (layer._forward_pre_hooks or layer._forward_post_hooks):
        function = _hooked(layer, function)
    concrete = Concrete(function, static._signature, bound, feeds, static._layers(), False)
    named = {tensor.name: isinstance(tensor, Parameter) for tensor in concrete.parameters}  # asking gives names
    program = concrete.capture()
    program.set_outputs([program.find(name) for name in program.outputs[:concrete.count]])
    program = program.clone(True)
    for name, is_parameter in named.items():
        if is_parameter and program.value(name) is not None:
            _core.mark_parameter(program, name, True)
    return program


def _select_inputs(program, specs, configs):
    """Leaves out inputs that input_spec does not name."""
    names = configs.get("input_names_after_prune")
    if names is None:
        return
    missing = [name for name in names if name not in program.inputs]
    if missing:
        raise ValueError(f"jit.save: input_names_after_prune names {missing}, the inputs are {program.inputs}")
    program.set_inputs([program.find(name) for name in program.inputs if name in names])


def select_outputs(program, output_spec, who="jit.save"):
    """Keeps the outputs that output_spec names: by name, or by being tensors of the last program's outputs."""
    if output_spec is None:
        return
    if not isinstance(output_spec, (list, tuple)):
        raise TypeError(f"{who}: output_spec must be a list, got {type(output_spec).__name__}")
    names = program.outputs
    chosen = []
    for one in output_spec:
        if isinstance(one, int) and not isinstance(one, bool):
            name = names[one] if -len(names) <= one < len(names) else None
        else:
            name = getattr(one, "name", None)
        if name not in names and len(output_spec) == len(names):
            chosen = names
            break
        if name not in names:
            raise ValueError(f"{who}: output_spec names {name!r}; the outputs are {names}")
        chosen.append(name)
    program.set_outputs([program.find(name) for name in chosen])


# ---- writing ------------------------------------------------------------------------------


def _info(program, layer):
    """What .pdiparams.info holds: for each persistable, its name in the layer and whether it is trained."""
    structured = {}
    if layer is not None:
        for name, tensor in layer.to_static_state_dict(use_hook=False).items():
            structured[tensor.name] = name, tensor
    found = {}
    for name, _, persistable, *_ in program.vars(0):
        if not persistable:
            continue
        entry = {}
        known = structured.get(name)
        entry["structured_name"] = known[0] if known else name
        value = known[1] if known else program.value(name)
        entry["stop_gradient"] = bool(value.stop_gradient) if value is not None else True
        if known and isinstance(value, Parameter):
            entry["trainable"] = value.trainable
        found[name] = entry
    return found


@asks("path:str")
def save(layer, path, input_spec=None, **configs):
    """Saves a layer (forward, and methods converted by to_static) or a function as path.pdmodel, path.pdiparams and
    path.pdiparams.info: for jit.load, paddle.inference, and real Paddle.

    input_spec: what forward takes; needed unless to_static was given it or the layer has been called. output_spec:
    the outputs to keep. A method m other than forward becomes path.m.pdmodel. What is saved predicts: dropout is off
    and batch norm uses its statistics, whatever mode the layer is in.

    >>> import os, tempfile
    >>> import proa as paddle
    >>> net = paddle.nn.Linear(3, 2)
    >>> path = os.path.join(tempfile.mkdtemp(), "linear")
    >>> paddle.jit.save(net, path, input_spec=[paddle.static.InputSpec([None, 3])])
    >>> x = paddle.ones([4, 3])
    >>> bool((paddle.jit.load(path)(x) == net(x)).all())
    True
    """
    from ..distributed import DataParallel
    from ..nn import Layer
    if not Switch.on:
        raise RuntimeError("jit.save: conversion is switched off: call paddle.jit.enable_to_static(True)")
    unknown = [key for key in configs if key not in _CONFIGS]
    if unknown:
        raise ValueError(f"jit.save: unknown configurations {unknown}; there are {list(_CONFIGS)}")
    if isinstance(layer, DataParallel):
        layer = layer._layers
    prefix, specs = prefix_of(str(path)), specs_of(input_spec)
    if isinstance(layer, Layer):
        _save_layer(layer, prefix, specs, configs)
    elif isinstance(layer, (StaticFunction, types.FunctionType, types.MethodType)):
        _save_function(layer, prefix, specs, configs)
    else:
        raise TypeError(f"jit.save: expected a Layer or a function, got {type(layer).__name__}")


def _save_layer(layer, prefix, specs, configs):
    info = {}
    for name, static in _methods(layer, specs, configs).items():
        program = capture(static, specs if name == "forward" else None, layer)
        if name == "forward":
            _select_inputs(program, specs, configs)
            select_outputs(program, configs.get("output_spec"))
        program.prune()
        program.save(prefix if name == "forward" else f"{prefix}.{name}")
        info.update(_info(program, layer))
    _write_info(prefix, info)


def _save_function(function, prefix, specs, configs):
    static = function if isinstance(function, StaticFunction) else StaticFunction(function)
    program = capture(static, specs)
    _select_inputs(program, specs, configs)
    select_outputs(program, configs.get("output_spec"))
    program.prune()
    program.save(prefix)
    layer = static._instance if hasattr(static._instance, "to_static_state_dict") else None
    info = _info(program, layer)
    if info and layer is None:
        warnings.warn("jit.save: a function is saved; the tensors that it uses are saved with it, without names of a "
                      "layer")
    _write_info(prefix, info)


def _write_info(prefix, info):
    path = prefix + ".pdiparams.info"
    if info:
        with _core.FileWriter(path) as file:
            pickle.dump(info, file, protocol=2)
    elif os.path.exists(path):
        os.remove(path)
