"""append_backward and gradients: operators that compute gradients, added to a program."""
from .. import _core
from .variable import program_of, true_name

__all__ = ["append_backward", "gradients"]


def _as_list(value):
    return [] if value is None else list(value) if isinstance(value, (list, tuple, set)) else [value]


def _variables(program, items):
    found = []
    for item in items:
        var = program._variable(true_name(program._core, item))
        if var is None:
            raise ValueError(f"there is no variable {true_name(program._core, item)!r} in the program")
        found.append(var)
    return found


def _stops(program, who, items):
    """Variables of no_grad_set; names that the program does not have stop nothing."""
    if items is not None and not isinstance(items, (set, list, tuple)):
        raise TypeError(f"{who}: no_grad_set must be a set, list or tuple, got {type(items).__name__}")
    names = [true_name(program._core, item) for item in items or ()]
    return _variables(program, [name for name in names if program._variable(name) is not None])


def _without(variables, stops):
    """Those at which no gradient stops: one that stops has none itself, either."""
    names = {v.name for v in stops}
    return [v for v in variables if v.name not in names]


def gradient_of(program, name):
    """The gradient of the program's loss by its name, "x@GRAD": append_backward makes those of parameters, and the others are
    made when they are asked for. None where there is none."""
    var = program._variable(name.removesuffix("@GRAD")) if name.endswith("@GRAD") else None
    if var is None or program._loss is None or not var.is_floating_point():
        return None
    if any(entry[0] == var.name and entry[5] for entry in program._core.vars(0)):
        return None
    var.stop_gradient = False
    return _gradients(program, [program._loss], [var], None, None)[0]


def _gradients(program, targets, inputs, seeds, stops):
    if program._late is not None:
        return program._late.gradients(program, targets, inputs, seeds, stops)
    core, before = program._core, len(program._core.ops(0))
    found = core.gradients(targets, inputs, seeds or None, stops or None)
    names = [[None if one is None else one.name for one in of] for of in (targets, inputs, seeds or (), stops or (), found)]
    program._backwards.append((before, len(core.ops(0)), names))
    return found


def reshape(core, changes, backwards):
    """Gives inputs of a clone other shapes and dtypes: [(variable's name, shape, dtype)]. Operators of a backward know the ranks
    that they were made for: with others, one at the program's end is made anew."""
    ranks = any(core.find(name).ndim != len(shape) for name, shape, _ in changes)
    ends = [begin for begin, *_ in backwards[1:]] + [len(core.ops(0))]
    again = backwards if ranks and [end for _, end, _ in backwards] == ends else ()
    if again:
        core.keep(list(range(again[0][0])))
    core.reshape_inputs([(core.find(name), shape, dtype) for name, shape, dtype in changes])
    for _, _, names in again:
        targets, inputs, seeds, stops = ([core.find(name) for name in of] for of in names[:4])
        for name, made in zip(names[4], core.gradients(targets, inputs, seeds or None, stops or None)):
            if name is not None and made is not None and made.name != name:
                core.rename(made.name, name)


def append_backward(loss, parameter_list=None, no_grad_set=None, callbacks=None, checkpoints=None,
                    distop_context=None):
    """Adds the backward of loss (one element); returns [(parameter, gradient)].

    parameter_list: parameters or names, default all trainable ones; no_grad_set: variables where gradients stop.
    """
    if not isinstance(loss, _core.Tensor) or not loss.is_symbolic:
        raise TypeError(f"append_backward: loss must be a variable of a program, got {type(loss).__name__}")
    if [n for n in loss.declared_shape if n != 1]:
        raise ValueError(f"append_backward: loss must have one element, got shape {loss.shape}; take its mean")
    program = program_of(loss)
    program._loss = loss
    if parameter_list is not None and not isinstance(parameter_list, (list, tuple, set)):
        raise TypeError(f"append_backward: parameter_list must be a list, tuple or set, got {type(parameter_list).__name__}")
    params = _variables(program, _as_list(parameter_list)) if parameter_list is not None else \
        [p for p in program.all_parameters() if p.trainable]
    stops = _stops(program, "append_backward", no_grad_set)
    params = _without(params, stops)
    if not params:
        return []
    grads = _gradients(program, [loss], params, None, stops)
    return [(p, g) for p, g in zip(params, grads) if g is not None]


def gradients(targets, inputs, target_gradients=None, no_grad_set=None):
    """Adds the operators for d(sum of targets)/d(inputs); returns a variable for each input, or None: where
    no gradient flows, as to data, unless their stop_gradient is set to False."""
    if target_gradients is not None and not isinstance(target_gradients, (_core.Tensor, list, tuple)):
        raise TypeError("gradients: target_gradients must be a Variable, a list, a tuple or None, got "
                        f"{type(target_gradients).__name__}")
    targets, inputs = _as_list(targets), _as_list(inputs)
    seeds = _as_list(target_gradients)
    for what, items in (("targets", targets), ("inputs", inputs)):
        if not items or not all(isinstance(v, _core.Tensor) and v.is_symbolic for v in items):
            raise TypeError(f"gradients: {what} must be variables of a program")
    if seeds and len(seeds) != len(targets):
        raise ValueError(f"gradients: target_gradients must be as many as targets, {len(targets)}, got {len(seeds)}")
    program = program_of(targets[0])
    stops = _stops(program, "gradients", no_grad_set)
    wanted = [x for x in _without(inputs, stops) if not x.stop_gradient]
    found = dict(zip((x.name for x in wanted), _gradients(program, targets, wanted, seeds, stops) if wanted else ()))
    grads = [found.get(x.name) for x in inputs]
    for x, grad in zip(inputs, grads):
        levels = _core.variable_lod(x, program._core)
        if levels and grad is not None:  # the rows of a gradient form the same sequences
            _core.set_variable_lod(grad, levels, program._core)
    return grads
