"""paddle.static.amp: mixed precision for programs. The program's ops go through the doors once more, with autocast on, before
gradients are added; so casts fall where they do eagerly, and the gradients of casts follow."""
import contextlib

from ... import _core
from ...framework import mode, unique_name
from ..program import default_main_program
from ..variable import make_persistable, program_of
from . import bf16, debugging
from .lists import AutoMixedPrecisionLists, CustomOpLists

__all__ = ["AutoMixedPrecisionLists", "CustomOpLists", "bf16", "cast_model_to_fp16", "cast_parameters_to_fp16",
           "decorate", "fp16_guard"]


@contextlib.contextmanager
def fp16_guard():
    """Inside, ops are marked: with use_fp16_guard they alone are converted."""
    core = default_main_program()._core
    before = core.mark(True)
    try:
        yield
    finally:
        core.mark(before)


@contextlib.contextmanager
def _autocast(dtype, level, lists):
    lists = lists or AutoMixedPrecisionLists()
    token = _core.autocast_enter(2 if level == "O2" else 1, dtype, lists.white_added or None, lists.black_added or None)
    try:
        yield
    finally:
        _core.autocast_leave(token)


def recast(program, dtype, level="O1", lists=None, marked_only=False):
    """Puts the casts of autocast into a program that has no gradients yet."""
    if any(op.attr("op_role") & 3 for op in program.global_block().ops if op.has_attr("op_role")):
        raise ValueError("static.amp: the program has gradients or updates already; convert it before minimize")
    with mode.eager(), _autocast(dtype, level, lists):
        program._core.recast(marked_only)
    program._ops.clear()


def cast_model_to_fp16(program, amp_lists=None, use_fp16_guard=True, dest_type="float16", level="O2", use_promote=False):
    """Converts a program in place: all ops but those of the black list (of those in fp16_guard, if use_fp16_guard).
    Parameters stay float32, and are cast where they are used. Returns the set of parameters' names that are cast."""
    name = dest_type if isinstance(dest_type, str) else str(dest_type).rpartition(".")[2]
    recast(program, name, level, amp_lists, use_fp16_guard)
    return set()


def cast_parameters_to_fp16(place, program, scope=None, to_fp16_var_names=None, dest_type="float16",
                            rewrite_master_weight=False, master_weights={}):
    """Nothing to do: parameters are cast where they are used."""


class _Decorated:
    """An optimizer whose minimize converts the program and, for float16, scales the loss."""

    def __init__(self, optimizer, lists, level, dtype, use_guard, scaling):
        self._optimizer, self._lists, self._level, self._dtype = optimizer, lists, level, dtype
        self._use_guard, self._scaling = use_guard, scaling
        self._scale = None
        self.agree = lambda found: found  # makes whether a gradient is not finite the same on all ranks

    def __getattr__(self, name):
        return getattr(self._optimizer, name)

    def get_loss_scaling(self):
        """The variable of the loss's scale; None for bfloat16, which needs none."""
        return self._scale

    def amp_init(self, place, scope=None, test_program=None, use_fp16_test=False, rewrite_master_weight=False):
        """Converts test_program, if it is given; parameters are float32 anyhow."""
        if test_program is not None and use_fp16_test:
            recast(test_program, self._dtype, self._level, self._lists, self._use_guard)

    def backward(self, loss, startup_program=None, parameter_list=None, no_grad_set=None, callbacks=None):
        """Converts the program and adds the gradients of the loss (scaled, for float16)."""
        program = program_of(loss)
        name = _core.variable_name(program._core, loss)
        recast(program, self._dtype, self._level, self._lists, self._use_guard)
        loss = program._core.find(name)
        if loss.dtype != _core.float32:
            with mode.opened(program._core):
                loss = _core.cast(loss, "float32")
        if self._dtype == "float16":
            self._scale = make_persistable(unique_name.generate("loss_scaling"), [1], _core.float32,
                                           self._scaling["init_loss_scaling"])
            with mode.opened(program._core):
                loss = _core.multiply(loss, _core.reshape(self._scale, loss.shape))
        return self._optimizer.backward(loss, startup_program, parameter_list, no_grad_set, callbacks)

    def apply_gradients(self, params_grads):
        """The step, which a gradient that is not finite turns into none."""
        if self._scale is not None:
            params_grads = self._unscaled(params_grads)
        return self._optimizer.apply_gradients(params_grads)

    def _unscaled(self, pairs):
        rules, scale = self._scaling, self._scale
        with mode.opened(program_of(pairs[0][0])._core, 2):
            grads = [g for _, g in pairs]  # written in place
            found = _core.check_finite_and_unscale(grads, scale)
            found = self.agree(found[0] if isinstance(found, (list, tuple)) else found)
            if rules["use_dynamic_loss_scaling"]:
                good, bad = (make_persistable(unique_name.generate(n), [1], _core.int32, 0) for n in
                             ("good_steps", "bad_steps"))
                _core.update_loss_scaling(grads, found, scale, good, bad, None, rules["incr_every_n_steps"],
                                          rules["decr_every_n_nan_or_inf"], rules["incr_ratio"], rules["decr_ratio"])
        return [(p, g) for (p, _), g in zip(pairs, grads)]

    def minimize(self, loss, startup_program=None, parameter_list=None, no_grad_set=None):
        """Converts, differentiates, and adds the step; returns (operators, [(parameter, gradient)])."""
        from ..program import default_startup_program, program_guard
        with program_guard(program_of(loss), startup_program or default_startup_program()):
            pairs = self.backward(loss, startup_program, parameter_list, no_grad_set)
            return self.apply_gradients(pairs), pairs


def decorate(optimizer, amp_lists=None, init_loss_scaling=2 ** 15, incr_every_n_steps=1000, decr_every_n_nan_or_inf=2,
             incr_ratio=2.0, decr_ratio=0.8, use_dynamic_loss_scaling=True, use_pure_fp16=False, use_fp16_guard=None,
             use_bf16=False, use_promote=False):
    """An optimizer for mixed precision: float16 with a scaled loss, or bfloat16."""
    scaling = {"init_loss_scaling": float(init_loss_scaling), "incr_every_n_steps": incr_every_n_steps,
               "decr_every_n_nan_or_inf": decr_every_n_nan_or_inf, "incr_ratio": incr_ratio, "decr_ratio": decr_ratio,
               "use_dynamic_loss_scaling": use_dynamic_loss_scaling}
    guard = use_pure_fp16 if use_fp16_guard is None else use_fp16_guard
    return _Decorated(optimizer, amp_lists, "O2" if use_pure_fp16 else "O1", "bfloat16" if use_bf16 else "float16", guard,
                      scaling)
