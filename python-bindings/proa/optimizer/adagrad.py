"""Adagrad, Adadelta and RMSProp: hyperparameters, their checks, and arguments of the update ops. Accumulators and the
step are in the base class Optimizer."""
from .optimizer import Optimizer
from .sgd import given


class Adagrad(Optimizer, kind="adagrad"):
    """moment + grad² is the new moment; param − lr · grad / (√moment + epsilon)."""

    _options = ("epsilon", "initial_accumulator_value")

    def __init__(self, learning_rate, epsilon=1e-6, parameters=None, weight_decay=None, grad_clip=None, name=None,
                 initial_accumulator_value=0.0):
        given("Adagrad", learning_rate=learning_rate, epsilon=epsilon)
        self._epsilon = epsilon
        self._initial_accumulator_value = self.initial_accumulator_value = initial_accumulator_value
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)


class Adadelta(Optimizer, kind="adadelta"):
    """Steps as large as the running size of updates over that of gradients."""

    _options = ("epsilon", "rho")

    def __init__(self, learning_rate=0.001, epsilon=1e-6, rho=0.95, parameters=None, weight_decay=None,
                 grad_clip=None, name=None):
        given("Adadelta", learning_rate=learning_rate, epsilon=epsilon, rho=rho)
        self._epsilon = epsilon
        self._rho = rho
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)


class RMSProp(Optimizer, kind="rmsprop"):
    """grad / √(mean of grad² + epsilon), with momentum; centered takes the mean gradient out of the mean square."""

    _options = ("epsilon", "rho", "momentum", "centered")

    def __init__(self, learning_rate, rho=0.95, epsilon=1e-6, momentum=0.0, centered=False, parameters=None,
                 weight_decay=None, grad_clip=None, name=None):
        given("RMSProp", learning_rate=learning_rate, rho=rho, epsilon=epsilon, momentum=momentum)
        for option, value in (("epsilon", epsilon), ("momentum", momentum), ("rho", rho)):
            if value < 0:
                raise ValueError(f"RMSProp: {option} must not be negative, got {value}")
        self._rho = rho
        self._epsilon = epsilon
        self._momentum = momentum
        self._centered = centered
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)
