"""Adagrad, Adadelta and RMSProp."""
from .. import _core
from .optimizer import Optimizer
from .sgd import given


class Adagrad(Optimizer):
    """moment + grad² is the new moment; param − lr · grad / (√moment + epsilon)."""

    _moment_acc_str = "moment"
    _options = ("epsilon", "initial_accumulator_value")

    def __init__(self, learning_rate, epsilon=1e-6, parameters=None, weight_decay=None, grad_clip=None, name=None,
                 initial_accumulator_value=0.0):
        given("Adagrad", learning_rate=learning_rate, epsilon=epsilon)
        self.type = "adagrad"
        self._epsilon = epsilon
        self._initial_accumulator_value = self.initial_accumulator_value = initial_accumulator_value
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)

    def _slots(self, param):
        return (("moment", None, self._initial_accumulator_value, None),)

    def _apply(self, batch, grads, rate):
        _core.adagrad_step(batch.params, grads, rate, batch.states[0], batch.masters, self._skip, self._epsilon)


class Adadelta(Optimizer):
    """Steps as large as the running size of updates over that of gradients."""

    _avg_squared_grad_acc_str = "_avg_squared_grad"
    _avg_squared_update_acc_str = "_avg_squared_update"
    _options = ("epsilon", "rho")

    def __init__(self, learning_rate=0.001, epsilon=1e-6, rho=0.95, parameters=None, weight_decay=None,
                 grad_clip=None, name=None):
        given("Adadelta", learning_rate=learning_rate, epsilon=epsilon, rho=rho)
        self.type = "adadelta"
        self._epsilon = epsilon
        self._rho = rho
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)

    def _slots(self, param):
        return (("_avg_squared_grad", None, 0.0, None), ("_avg_squared_update", None, 0.0, None))

    def _apply(self, batch, grads, rate):
        squares, updates = batch.states
        _core.adadelta_step(batch.params, grads, rate, squares, updates, batch.masters, self._skip, self._rho,
                            self._epsilon)


class RMSProp(Optimizer):
    """grad / √(mean of grad² + epsilon), with momentum; centered takes the mean gradient out of the mean square."""

    _momentum_acc_str = "momentum"
    _mean_square_acc_str = "mean_square"
    _mean_grad_acc_str = "mean_grad"
    _options = ("epsilon", "rho", "momentum", "centered")

    def __init__(self, learning_rate, rho=0.95, epsilon=1e-6, momentum=0.0, centered=False, parameters=None,
                 weight_decay=None, grad_clip=None, name=None):
        given("RMSProp", learning_rate=learning_rate, rho=rho, epsilon=epsilon, momentum=momentum)
        for option, value in (("epsilon", epsilon), ("momentum", momentum), ("rho", rho)):
            if value < 0:
                raise ValueError(f"RMSProp: {option} must not be negative, got {value}")
        self.type = "rmsprop"
        self._rho = rho
        self._epsilon = epsilon
        self._momentum = momentum
        self._centered = centered
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)

    def _slots(self, param):
        return tuple((name, None, 0.0, None) for name in ("momentum", "mean_square", "mean_grad"))

    def _apply(self, batch, grads, rate):
        momentum, squares, means = batch.states
        _core.rmsprop_step(batch.params, grads, rate, squares, means, momentum, batch.masters, self._skip,
                           self._rho, self._epsilon, self._momentum, bool(self._centered))
