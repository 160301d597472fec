"""The static half of Optimizer: minimize adds backward, clipping, decay and update operators to the program, and
keeps accumulators and the learning rate in persistable variables."""
from .. import _core
from ..framework import mode, unique_name
from .lr import LRScheduler

BACKWARD, OPTIMIZE = 1, 2


def is_static(optimizer_or_loss):
    """Whether a tensor belongs to a program."""
    return isinstance(optimizer_or_loss, _core.Tensor) and optimizer_or_loss.is_symbolic


def rate_variable(opt, program):
    """The program's variable of the learning rate; an executor sets it before a run if there is a scheduler."""
    from ..static.variable import make_persistable
    if isinstance(opt._learning_rate, _core.Tensor):  # a variable that a user feeds or computes
        return opt._learning_rate
    kept = opt._rate_vars.get(program)
    if kept is None:
        name = unique_name.generate("learning_rate")
        kept = make_persistable(name, [], _core.float32, float(opt.get_lr()))
        opt._rate_vars[program] = kept
        if isinstance(opt._learning_rate, LRScheduler):
            program.lr_scheduler, program.lr_var_name = opt._learning_rate, name
    return kept


def rate(opt, factor, dtype):
    """A one-element variable: the learning rate times a parameter's own factor."""
    from ..static.program import default_main_program
    base = rate_variable(opt, default_main_program())
    if dtype == _core.float64:
        base = _core.cast(base, _core.float64)
    return base if factor == 1.0 else _core.scale(base, float(factor))


def accumulator(opt, full_name, shape, dtype, fill_value):
    """A persistable variable of an optimizer's state."""
    from ..static.variable import make_persistable
    return make_persistable(full_name, list(shape), dtype, float(fill_value))


def master_weight(param):
    """A float32 twin of a half parameter, set from it by the startup program."""
    from ..static.program import default_main_program, default_startup_program
    name = unique_name.generate(param.name + "_fp32_master")
    master = default_main_program()._core.persistable(name, param.shape, _core.float32)
    master.persistable = True
    startup = default_startup_program()._core
    twin = startup.persistable(name, param.shape, _core.float32)
    with mode.opened(startup):
        _core.assign_to(_core.cast(startup.find(param.name), _core.float32), twin)
    return master


def backward(opt, loss, startup_program=None, parameters=None, no_grad_set=None, callbacks=None):
    """append_backward for the optimizer's parameters."""
    from ..static.backward import append_backward
    wanted = parameters or [p for params, _ in opt._groups() for p in params or ()] or None
    return append_backward(loss, wanted, no_grad_set, callbacks)


def apply_gradients(opt, params_grads):
    """The operators of one step, for (parameter, gradient) pairs."""
    pairs = sorted(params_grads, key=lambda pair: pair[0].name)
    from ..static.variable import program_of
    if not pairs:
        return []
    program = program_of(pairs[0][0])
    before = len(program._core.ops(0))
    recording = _core.set_recording(False)
    try:
        with mode.opened(program._core, OPTIMIZE):
            for index, (params, options) in enumerate(opt._groups()):
                mine = pairs if options is None else _of_group(pairs, params)
                if mine:
                    opt._plans.clear()
                    opt._update(("program", index), [p for p, _ in mine], [g for _, g in mine], options)
            opt._plans.clear()
    finally:
        _core.set_recording(recording)
    program._optimizer = opt
    return [op for wire in _core.describe(program._core, 0)[before:] for op in program._as_operators(wire)]


def _of_group(pairs, params):
    names = {p.name for p in params}
    return [pair for pair in pairs if pair[0].name in names]


def minimize(opt, loss, startup_program=None, parameters=None, no_grad_set=None):
    """Everything that training on loss needs; returns (operators, [(parameter, gradient)])."""
    from ..static.program import default_startup_program, program_guard
    from ..static.variable import program_of
    with program_guard(program_of(loss), startup_program or default_startup_program()):
        pairs = opt.backward(loss, startup_program, parameters, no_grad_set)
        if not pairs and parameters is None and not any(p.trainable for p in program_of(loss).all_parameters()):
            return [], []
        if not pairs:
            raise ValueError(f"{type(opt).__name__}.minimize: no parameter of the program gets a gradient from the "
                             "loss")
        return opt.apply_gradients(pairs), pairs
