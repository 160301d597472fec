"""Pruning of layers and programs, and the optimizer that keeps pruned weights at zero."""
import weakref

import numpy as np

from ...autograd.guards import no_grad
from ...fluid.framework import dygraph_only
from ...framework import create_parameter, in_dynamic_mode
from ...nn import Layer
from ...nn.initializer import Constant
from ...static import Program, default_main_program, default_startup_program, global_scope, program_guard
from .supported_layer_list import _default_pruning, supported_layers_and_prune_func_map
from .utils import MaskAlgo

__all__ = []

_ALGORITHMS = {"mask_1d": MaskAlgo.MASK_1D, "mask_2d_greedy": MaskAlgo.MASK_2D_GREEDY, "mask_2d_best": MaskAlgo.MASK_2D_BEST}


def set_excluded_layers(param_names, main_program=None):
    """Parameters whose names contain one of these are not pruned: of a program, default_main_program's (and of what runs
    eagerly) unless another is given."""
    ASPHelper.set_excluded_layers(param_names, main_program or default_main_program())


def reset_excluded_layers(main_program=None):
    """No parameter of the program is excluded; of no program, where none is given."""
    ASPHelper.reset_excluded_layers(main_program)


def decorate(optimizer):
    """The optimizer with masks: its step() and minimize() put what was pruned back to zero."""
    return ASPHelper.decorate(optimizer)


def prune_model(model, n=2, m=4, mask_algo="mask_1d", with_mask=True):
    """Sets n of m neighbors of each supported weight to zero; returns the masks by the parameters' names.

    mask_algo: 'mask_1d', 'mask_2d_greedy' or 'mask_2d_best'. with_mask: the decorated optimizer's masks are set, too.
    """
    if mask_algo not in _ALGORITHMS:
        raise AssertionError(f"prune_model: mask_algo must be one of {', '.join(_ALGORITHMS)}, got {mask_algo!r}")
    how = {"n": n, "m": m, "mask_algo": _ALGORITHMS[mask_algo], "with_mask": with_mask}
    if isinstance(model, Layer):
        return ASPHelper.prune_model_by_layer(None, model, **how)
    if isinstance(model, Program):
        return ASPHelper.prune_model_by_program(None, model, **how)
    raise TypeError(f"prune_model: model should be paddle.nn.Layer or paddle.static.Program, but got {type(model)}")


class ProgramASPInfo:
    """A program's masks, as variables and as arrays, and its excluded layers."""

    def __init__(self):
        self.mask_vars, self.masks, self.excluded_layers = {}, {}, []


class ASPHelper:
    """The masks of all programs; those of eager parameters are default_main_program's."""

    MASK_APPENDDED_NAME = "asp_mask"
    PADDLE_WEIGHT_SUFFIX = "w_"
    _infos = weakref.WeakKeyDictionary()

    @classmethod
    def _get_program_asp_info(cls, main_program):
        return cls._infos.setdefault(main_program, ProgramASPInfo())

    @classmethod
    def set_excluded_layers(cls, param_names, main_program):
        cls._get_program_asp_info(main_program).excluded_layers.extend(param_names)

    @classmethod
    def reset_excluded_layers(cls, main_program=None):
        for info in cls._infos.values() if main_program is None else [cls._get_program_asp_info(main_program)]:
            info.excluded_layers = []

    @classmethod
    def decorate(cls, optimizer):
        if in_dynamic_mode():
            cls._create_mask_variables(default_main_program(), default_startup_program(), optimizer._parameter_list)
        return OptimizerWithSparsityGuarantee(optimizer)

    @classmethod
    def _get_mask_name(cls, param_name):
        return f"{param_name}.{cls.MASK_APPENDDED_NAME}"

    @classmethod
    def _get_not_ASP_relevant_vars(cls, main_program):
        return [p for p in main_program.global_block().all_parameters() if cls.MASK_APPENDDED_NAME not in p.name.split(".")]

    @classmethod
    def _is_supported_layer(cls, main_program, param_name):
        """Whether a parameter is pruned: by its name, its layer's (linear_0) or its layer's kind (linear)."""
        parts = param_name.split(".")
        excluded = cls._get_program_asp_info(main_program).excluded_layers
        if cls.MASK_APPENDDED_NAME in parts or any(layer in param_name for layer in excluded):
            return False
        if param_name in supported_layers_and_prune_func_map:
            return True
        known = {parts[0], parts[0].rpartition("_")[0]} & supported_layers_and_prune_func_map.keys()
        return len(parts) > 1 and cls.PADDLE_WEIGHT_SUFFIX in parts[1] and bool(known)

    @classmethod
    def _get_prune_func_by_name(cls, param_name):
        layer = param_name.partition(".")[0]
        for name in (param_name, layer, layer.rpartition("_")[0]):
            if name in supported_layers_and_prune_func_map:
                return supported_layers_and_prune_func_map[name]
        return _default_pruning

    @classmethod
    def _pruned(cls, name, weight, n, m, mask_algo):
        pruned, mask = cls._get_prune_func_by_name(name)(weight, m, n, mask_algo, name)
        return pruned.astype(weight.dtype), mask

    @classmethod
    def prune_model_by_program(cls, place, main_program=None, n=2, m=4, mask_algo=MaskAlgo.MASK_1D, with_mask=True):
        main_program = main_program or default_main_program()
        info, scope = cls._get_program_asp_info(main_program), global_scope()
        for param in main_program.global_block().all_parameters():
            if not cls._is_supported_layer(main_program, param.name):
                continue
            tensor = scope.find_var(param.name).get_tensor()
            pruned, mask = cls._pruned(param.name, np.array(tensor), n, m, mask_algo)
            tensor.set(pruned, place)
            if with_mask:
                name = cls._get_mask_name(param.name)
                var = scope.find_var(name)
                if var is None:
                    raise AssertionError(f"prune_model: there is no variable {name}: call minimize() of asp.decorate(optimizer) and "
                                         "run the startup program first, or pass with_mask=False")
                mask = mask.astype(np.array(var.get_tensor()).dtype)
                var.get_tensor().set(mask, place)
            info.masks[param.name] = mask
        return info.masks.copy()

    @classmethod
    def prune_model_by_layer(cls, place, layer, n=2, m=4, mask_algo=MaskAlgo.MASK_1D, with_mask=True):
        if not in_dynamic_mode():
            programs = [p.block.program for p in layer.parameters()]
            if not programs:
                raise AssertionError("prune_model: the layer has no parameters, by which its program is known")
            return cls.prune_model_by_program(place, programs[-1], n, m, mask_algo, with_mask)
        program = default_main_program()
        info = cls._get_program_asp_info(program)
        for param in layer.parameters():
            if not cls._is_supported_layer(program, param.name):
                continue
            pruned, mask = cls._pruned(param.name, param.numpy(), n, m, mask_algo)
            param.set_value(pruned)
            if with_mask:
                if param.name not in info.mask_vars:
                    raise AssertionError(f"prune_model: {param.name} has no mask: call asp.decorate(optimizer) first, or pass "
                                         "with_mask=False")
                info.mask_vars[param.name].set_value(mask)
            info.masks[param.name] = mask
        return info.masks.copy()

    @classmethod
    def _minimize(cls, optimizer, loss, main_program=None, startup_program=None, parameter_list=None, no_grad_set=None):
        main_program = main_program or loss.block.program
        startup_program = startup_program or default_startup_program()
        made = optimizer.minimize(loss, startup_program, parameter_list, no_grad_set=no_grad_set)
        params = [pair[0] for pair in made[1]]
        cls._create_mask_variables(main_program, startup_program, params)
        cls._insert_sparse_mask_ops(main_program, params)
        return made

    @classmethod
    def _step(cls, optimizer):
        optimizer.step()
        masks = cls._get_program_asp_info(default_main_program()).mask_vars
        with no_grad():
            for param in optimizer._parameter_list:
                if param.name in masks:
                    param.set_value(param * masks[param.name])

    @classmethod
    def _create_mask_variables(cls, main_program, startup_program, params):
        """A mask of ones for each parameter that is pruned and has none."""
        info = cls._get_program_asp_info(main_program)
        with program_guard(main_program, startup_program):
            for param in params:
                if not cls._is_supported_layer(main_program, param.name) or param.name in info.mask_vars:
                    continue
                mask = create_parameter(name=cls._get_mask_name(param.name), shape=param.shape, dtype=param.dtype,
                                        default_initializer=Constant(1.0))
                mask.stop_gradient, mask.trainable = True, False
                info.mask_vars[param.name] = mask

    @classmethod
    def _insert_sparse_mask_ops(cls, main_program, params):
        masks = cls._get_program_asp_info(main_program).mask_vars
        for param in params:
            if param.name in masks:
                main_program.global_block().append_op(type="elementwise_mul", inputs={"X": param, "Y": masks[param.name]},
                                                      outputs={"Out": param}, attrs={"axis": -1, "op_role": 2})


class OptimizerWithSparsityGuarantee:
    """An optimizer whose steps keep pruned weights at zero; all else is the optimizer's own."""

    def __init__(self, optimizer):
        self._optimizer = optimizer

    def __getattr__(self, item):
        return getattr(self._optimizer, item)

    def minimize(self, loss, startup_program=None, parameter_list=None, no_grad_set=None):
        """The optimizer's minimize(), with masks as the program's last operators."""
        return ASPHelper._minimize(self._optimizer, loss, startup_program=startup_program, parameter_list=parameter_list,
                                   no_grad_set=no_grad_set)

    @dygraph_only
    def step(self):
        """The optimizer's step(), then the masks."""
        ASPHelper._step(self._optimizer)

    @dygraph_only
    def state_dict(self):
        """The optimizer's state and the masks."""
        masks = ASPHelper._get_program_asp_info(default_main_program()).mask_vars
        return {**self._optimizer.state_dict(), **{ASPHelper._get_mask_name(name): var for name, var in masks.items()}}

    @dygraph_only
    def set_state_dict(self, state_dict):
        """Sets the optimizer's state and the masks."""
        info = ASPHelper._get_program_asp_info(default_main_program())
        for name, var in info.mask_vars.items():
            mask_name = ASPHelper._get_mask_name(name)
            if mask_name not in state_dict:
                raise AssertionError(f"set_state_dict: the mask {mask_name} is missing")
            var.set_value(state_dict[mask_name])
            info.masks[name] = var.numpy()
        return self._optimizer.set_state_dict(state_dict)
