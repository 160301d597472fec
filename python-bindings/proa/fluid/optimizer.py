"""fluid.optimizer: the optimizers under the names and signatures of 2.0."""
from .. import _core
from .. import optimizer as _optimizer
from ..distributed.dgc import DGCMomentum
from ..optimizer.lr import LRScheduler
from ..static.ema import ExponentialMovingAverage
from ..framework.mode import in_dynamic_mode
from .layer_helper import LayerHelper
from ..incubate.optimizer import LookAhead as LookaheadOptimizer, ModelAverage

__all__ = ["Adadelta", "AdadeltaOptimizer", "Adagrad", "AdagradOptimizer", "Adam", "AdamOptimizer", "Adamax", "AdamaxOptimizer",
           "DecayedAdagrad", "DecayedAdagradOptimizer", "Dpsgd", "DpsgdOptimizer", "ExponentialMovingAverage", "Ftrl", "FtrlOptimizer",
           "LambOptimizer", "LarsMomentum", "LarsMomentumOptimizer", "LookaheadOptimizer", "ModelAverage", "Momentum", "MomentumOptimizer",
           "RMSPropOptimizer", "SGD", "SGDOptimizer"]


class _Fluid:
    """What 2.0's optimizers do that those of paddle.optimizer spell otherwise."""

    _rate_kinds = (float, LRScheduler, _core.Tensor)  # a Tensor: a variable of the program

    def current_step_lr(self):
        """The learning rate of this step."""
        return self.get_lr()

    def set_dict(self, state):
        self.set_state_dict(state)

    load_state_dict = set_dict

    def minimize(self, loss, startup_program=None, parameter_list=None, no_grad_set=None, grad_clip=None):
        """One step from the gradients that backward() has left; in a program, backward and step."""
        return super().minimize(loss, startup_program, parameter_list, no_grad_set)

    def backward(self, loss, startup_program=None, parameter_list=None, no_grad_set=None, callbacks=None):
        """The (parameter, gradient) pairs."""
        return super().backward(loss, startup_program, parameter_list, no_grad_set, callbacks)


def _rate(learning_rate):
    scheduler = learning_rate if isinstance(learning_rate, LRScheduler) else getattr(learning_rate, "_scheduler", None)
    variable = isinstance(learning_rate, _core.Tensor) and learning_rate.is_symbolic
    return scheduler or (learning_rate if variable else float(learning_rate))


def _common(learning_rate, parameter_list, regularization, grad_clip, name):
    return dict(learning_rate=_rate(learning_rate), parameters=parameter_list, weight_decay=regularization,
                grad_clip=grad_clip, name=name)


class SGDOptimizer(_Fluid, _optimizer.SGD):
    """parameter -= learning_rate · gradient."""

    def __init__(self, learning_rate, parameter_list=None, regularization=None, grad_clip=None, name=None):
        super().__init__(**_common(learning_rate, parameter_list, regularization, grad_clip, name))


class MomentumOptimizer(_Fluid, _optimizer.Momentum):
    """velocity = momentum · velocity + gradient; parameter -= learning_rate · velocity."""

    def __init__(self, learning_rate, momentum, parameter_list=None, use_nesterov=False, regularization=None,
                 grad_clip=None, name=None):
        super().__init__(momentum=momentum, use_nesterov=use_nesterov,
                         **_common(learning_rate, parameter_list, regularization, grad_clip, name))


class AdamOptimizer(_Fluid, _optimizer.Adam):
    """Adam."""

    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-08, parameter_list=None,
                 regularization=None, grad_clip=None, name=None, lazy_mode=False):
        super().__init__(beta1=beta1, beta2=beta2, epsilon=epsilon, lazy_mode=lazy_mode,
                         **_common(learning_rate, parameter_list, regularization, grad_clip, name))


class AdamaxOptimizer(_Fluid, _optimizer.Adamax):
    """Adam with the infinity norm."""

    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-08, parameter_list=None,
                 regularization=None, grad_clip=None, name=None):
        super().__init__(beta1=beta1, beta2=beta2, epsilon=epsilon,
                         **_common(learning_rate, parameter_list, regularization, grad_clip, name))


class AdagradOptimizer(_Fluid, _optimizer.Adagrad):
    """Rates fall with the sum of squared gradients."""

    def __init__(self, learning_rate, epsilon=1e-06, parameter_list=None, regularization=None, grad_clip=None, name=None,
                 initial_accumulator_value=0.0):
        super().__init__(epsilon=epsilon, initial_accumulator_value=initial_accumulator_value,
                         **_common(learning_rate, parameter_list, regularization, grad_clip, name))


class AdadeltaOptimizer(_Fluid, _optimizer.Adadelta):
    """Adagrad over a moving window."""

    def __init__(self, learning_rate, epsilon=1e-06, rho=0.95, parameter_list=None, regularization=None, grad_clip=None,
                 name=None):
        super().__init__(epsilon=epsilon, rho=rho,
                         **_common(learning_rate, parameter_list, regularization, grad_clip, name))


class RMSPropOptimizer(_Fluid, _optimizer.RMSProp):
    """Rates fall with the moving mean of squared gradients."""

    def __init__(self, learning_rate, rho=0.95, epsilon=1e-06, momentum=0.0, centered=False, parameter_list=None,
                 regularization=None, grad_clip=None, name=None):
        super().__init__(rho=rho, epsilon=epsilon, momentum=momentum, centered=centered,
                         **_common(learning_rate, parameter_list, regularization, grad_clip, name))


class LambOptimizer(_Fluid, _optimizer.Lamb):
    """Adam with a rate for each layer."""

    def __init__(self, learning_rate=0.001, lamb_weight_decay=0.01, beta1=0.9, beta2=0.999, epsilon=1e-06,
                 parameter_list=None, regularization=None, grad_clip=None, exclude_from_weight_decay_fn=None, name=None):
        super().__init__(_rate(learning_rate), lamb_weight_decay=lamb_weight_decay, beta1=beta1, beta2=beta2,
                         epsilon=epsilon, parameters=parameter_list, grad_clip=grad_clip,
                         exclude_from_weight_decay_fn=exclude_from_weight_decay_fn, name=name)


class _ByOperator(_Fluid, _optimizer.Optimizer):
    """An optimizer whose step is an operator of Paddle's format on each parameter: its type, the accumulators as
    {input slot: (name, first value)}, and the attributes."""

    _state = {}

    def _attributes(self, param):
        return {}

    def _slots(self, param):
        return tuple((name, None, first, None) for name, first in self._state.values())

    def _apply(self, batch, grads, rate):
        helper = LayerHelper(self.type)
        for at, (param, grad) in enumerate(zip(batch.params, grads)):
            held = {slot: [state[at]] for slot, state in zip(self._state, batch.states)}
            made = {f"{slot.replace('Accumulator', 'Accum')}Out": value for slot, value in held.items()}
            helper.append_op(self.type, {"Param": [param], "Grad": [grad], "LearningRate": [rate], **held},
                             {"ParamOut": [param], **made}, self._attributes(param))


class FtrlOptimizer(_ByOperator):
    """FTRL-proximal."""

    type, _state = "ftrl", {"SquaredAccumulator": ("squared", 0.0), "LinearAccumulator": ("linear", 0.0)}

    def __init__(self, learning_rate, l1=0.0, l2=0.0, lr_power=-0.5, parameter_list=None, regularization=None, grad_clip=None,
                 name=None):
        if learning_rate is None:
            raise ValueError("FtrlOptimizer: learning_rate must be given, got None")
        super().__init__(**_common(learning_rate, parameter_list, regularization, grad_clip, name))
        self._l1, self._l2, self._lr_power = l1, l2, lr_power

    def _attributes(self, param):
        return {"l1": float(self._l1), "l2": float(self._l2), "lr_power": float(self._lr_power)}


class LarsMomentumOptimizer(_ByOperator):
    """Momentum with a rate for each layer."""

    type, _state = "lars_momentum", {"Velocity": ("velocity", 0.0)}

    def __init__(self, learning_rate, momentum, lars_coeff=0.001, lars_weight_decay=0.0005, parameter_list=None,
                 regularization=None, grad_clip=None, name=None, exclude_from_weight_decay=None, epsilon=0):
        super().__init__(**_common(learning_rate, parameter_list, regularization, grad_clip, name))
        self._momentum, self._lars_coeff, self._epsilon = momentum, float(lars_coeff), float(epsilon)
        self._lars_weight_decay, self._exclude = float(lars_weight_decay), exclude_from_weight_decay or []

    def _attributes(self, param):
        kept = any(name in param.name for name in self._exclude)
        return {"mu": float(self._momentum), "lars_coeff": self._lars_coeff,
                "lars_weight_decay": [0.0 if kept else self._lars_weight_decay],
                "epsilon": self._epsilon}


class DecayedAdagradOptimizer(_ByOperator):
    """Adagrad over a decaying mean."""

    type, _state = "decayed_adagrad", {"Moment": ("moment", 0.0)}

    def __init__(self, learning_rate, decay=0.95, epsilon=1e-06, parameter_list=None, regularization=None, grad_clip=None,
                 name=None):
        super().__init__(**_common(learning_rate, parameter_list, regularization, grad_clip, name))
        self._decay, self._epsilon = decay, epsilon

    def _attributes(self, param):
        return {"decay": float(self._decay), "epsilon": float(self._epsilon)}


class DpsgdOptimizer(_ByOperator):
    """Differentially private SGD: the gradient is cut to a norm, and noise is added."""

    type = "dpsgd"

    def __init__(self, learning_rate=0.001, clip=0.9, batch_size=0.999, sigma=1e-08, parameter_list=None):
        super().__init__(**_common(learning_rate, parameter_list, None, None, None))
        self._clip, self._batch_size, self._sigma = clip, batch_size, sigma

    def _attributes(self, param):
        return {"clip": float(self._clip), "batch_size": float(self._batch_size), "sigma": float(self._sigma)}


def _needs_program(name):
    if in_dynamic_mode():
        raise Exception(f"In dygraph, don't support {name}.")


class RecomputeOptimizer(_Fluid):
    """An optimizer whose backward may compute forward values anew between checkpoints: memory that plans share already."""

    def __init__(self, optimizer):
        _needs_program("RecomputeOptimizer")
        self._optimizer, self._checkpoints = optimizer, None

    def _set_checkpoints(self, checkpoints):
        if not isinstance(checkpoints, list):
            raise AssertionError("RecomputeOptimizer: checkpoints must be a list of variables or of their names")
        self._checkpoints = checkpoints

    def backward(self, loss, startup_program=None, parameter_list=None, no_grad_set=None, callbacks=None):
        return self._optimizer.backward(loss, startup_program, parameter_list, no_grad_set, callbacks)

    def apply_gradients(self, params_grads):
        return self._optimizer.apply_gradients(params_grads)

    def apply_optimize(self, loss, startup_program, params_grads):
        return self._optimizer.apply_gradients(params_grads)

    def minimize(self, loss, startup_program=None, parameter_list=None, no_grad_set=None, grad_clip=None):
        return self._optimizer.minimize(loss, startup_program, parameter_list, no_grad_set)


class PipelineOptimizer:
    """Not there: fleet does it, with strategy.pipeline."""

    def __init__(self, optimizer, num_microbatches=1, start_cpu_core_id=0):
        _needs_program("PipelineOptimizer")
        raise NotImplementedError("PipelineOptimizer: use fleet.distributed_optimizer with strategy.pipeline, which divides a program among ranks")


class DGCMomentumOptimizer(_Fluid, DGCMomentum):
    """Momentum whose gradients are sent compressed (paddle.distributed.dgc). num_trainers is the job's number of ranks."""

    def __init__(self, learning_rate, momentum, rampup_begin_step, rampup_step=1, sparsity=None, parameter_list=None,
                 use_nesterov=False, num_trainers=None, regularization=None, grad_clip=None, name=None):
        _needs_program("DGCMomentumOptimizer")
        super().__init__(momentum=momentum, rampup_begin_step=rampup_begin_step, rampup_step=rampup_step, sparsity=sparsity,
                         use_nesterov=use_nesterov, **_common(learning_rate, parameter_list, regularization, grad_clip, name))


Ftrl, LarsMomentum, DecayedAdagrad, Dpsgd = FtrlOptimizer, LarsMomentumOptimizer, DecayedAdagradOptimizer, DpsgdOptimizer
SGD, Momentum, Adam, Adamax = SGDOptimizer, MomentumOptimizer, AdamOptimizer, AdamaxOptimizer
Adagrad, Adadelta, RMSProp, Lamb = AdagradOptimizer, AdadeltaOptimizer, RMSPropOptimizer, LambOptimizer
Optimizer = _optimizer.Optimizer
