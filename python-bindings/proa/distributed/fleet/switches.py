"""Switches of a strategy in which ranks do not average whole gradients: which of them is on, and what it goes with."""
from ..dgc import DGCMomentum

LOCAL = ("localsgd", "adaptive_localsgd", "dgc")
_OPTIMIZERS = {"dgc": ("Momentum",), "localsgd": ("SGD", "Momentum"), "adaptive_localsgd": ("SGD", "Momentum")}
_REFUSED = {"dgc": ("amp", "gradient_merge", "fp16_allreduce", "lars", "lamb", "sharding", "pipeline"),
            "localsgd": ("gradient_merge", "fp16_allreduce", "lars", "lamb", "sharding", "pipeline")}


def is_a(optimizer, name):
    """Whether an optimizer is of the class of this name, of paddle.optimizer or fluid.optimizer."""
    return any(cls.__name__ in (name, name + "Optimizer") for cls in type(optimizer).__mro__)


def local_switch(who, strategy):
    """The name of the switch that is on, or None; it goes with none of the others, nor with what changes gradients again."""
    on = [name for name in LOCAL if strategy._message.get(name)]
    if not on:
        return None
    others = on[1:] + [name for name in _REFUSED.get(on[0], _REFUSED["localsgd"]) if strategy._message.get(name)]
    if others:
        raise ValueError(f"{who}: {on[0]} of the strategy does not go with {others[0]}; switch one of them off")
    return on[0]


def check_optimizer(who, switch, optimizer):
    """Refuses optimizers that the switch is not defined for."""
    if not any(is_a(optimizer, name) for name in _OPTIMIZERS[switch]):
        raise ValueError(f"{who}: {switch} of the strategy is for {' and '.join(_OPTIMIZERS[switch])}, got "
                         f"{type(optimizer).__name__}; switch it off, or use one of these")


def compressed(optimizer, configs):
    """Momentum's parameters and options in an optimizer that sends compressed gradients."""
    if isinstance(optimizer, DGCMomentum):
        return optimizer
    decay = optimizer._regularization_coeff or optimizer.regularization
    return DGCMomentum(optimizer._learning_rate, optimizer._momentum, configs["rampup_begin_step"], configs["rampup_step"],
                       configs["sparsity"], optimizer._parameter_list, optimizer._use_nesterov, decay, optimizer._grad_clip,
                       optimizer._name)
