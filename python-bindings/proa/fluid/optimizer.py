"""fluid.optimizer: the optimisers under the names and signatures of 2.0."""
from .. import optimizer as _optimizer
from ..optimizer.lr import LRScheduler
from ..static.ema import ExponentialMovingAverage  # noqa: F401
from ..incubate.optimizer import LookAhead as LookaheadOptimizer, ModelAverage  # noqa: F401

__all__ = ["Adadelta", "AdadeltaOptimizer", "Adagrad", "AdagradOptimizer", "Adam", "AdamOptimizer", "Adamax", "AdamaxOptimizer",
           "ExponentialMovingAverage", "LambOptimizer", "LookaheadOptimizer", "ModelAverage", "Momentum", "MomentumOptimizer",
           "RMSPropOptimizer", "SGD", "SGDOptimizer"]


class _Fluid:
    """What 2.0's optimisers do that those of paddle.optimizer spell otherwise."""

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
    return learning_rate if isinstance(learning_rate, LRScheduler) else getattr(learning_rate, "_scheduler", None) or \
        float(learning_rate)


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


SGD, Momentum, Adam, Adamax = SGDOptimizer, MomentumOptimizer, AdamOptimizer, AdamaxOptimizer
Adagrad, Adadelta, RMSProp, Lamb = AdagradOptimizer, AdadeltaOptimizer, RMSPropOptimizer, LambOptimizer
Optimizer = _optimizer.Optimizer
