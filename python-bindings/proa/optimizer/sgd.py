"""SGD and Momentum: hyperparameters, their checks, and arguments of the update ops. Accumulators and the step are in
the base class Optimizer."""
from .. import _core
from ..regularizer import L2Decay
from .optimizer import Optimizer


def given(who, *, error=ValueError, **values):
    """Raises for options that are None."""
    for name, value in values.items():
        if value is None:
            raise error(f"{who}: {name} must be given, got None")


class SGD(Optimizer, kind="sgd"):
    """param − lr · grad."""

    def __init__(self, learning_rate=0.001, parameters=None, weight_decay=None, grad_clip=None,
                 multi_precision=False, name=None):
        given("SGD", learning_rate=learning_rate)
        self._multi_precision = multi_precision
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)


class Momentum(Optimizer, kind="momentum"):
    """velocity = momentum · velocity + grad; param − lr · velocity, or with use_nesterov
    param − lr · (grad + momentum · velocity). L2 decay is part of the op."""

    _options = ("momentum", "use_nesterov", "rescale_grad", "regularization_coeff")

    def __init__(self, learning_rate=0.001, momentum=0.9, parameters=None, use_nesterov=False, weight_decay=None,
                 grad_clip=None, multi_precision=False, rescale_grad=1.0, use_multi_tensor=False, name=None):
        given("Momentum", learning_rate=learning_rate, momentum=momentum)
        self._momentum = momentum
        self._use_nesterov = bool(use_nesterov)
        self._rescale_grad = rescale_grad
        self._regularization_coeff, rest = self._split(weight_decay)
        self._multi_precision = multi_precision
        if parameters is not None and not isinstance(parameters, (dict, _core.Tensor)):
            parameters = [self._split_group(p, weight_decay) if isinstance(p, dict) else p for p in parameters]
        super().__init__(learning_rate, parameters, rest, grad_clip, name)

    @staticmethod
    def _split(decay):
        """(what the op does, what is left to a regularizer)."""
        if isinstance(decay, L2Decay):
            return decay._coeff, None
        return (decay, None) if isinstance(decay, float) else (0.0, decay)

    def _split_group(self, group, decay):
        group = dict(group)
        group["regularization_coeff"], group["weight_decay"] = self._split(group.get("weight_decay", decay))
        return group

    def _extra(self, param):
        own = getattr(param, "regularizer", None)
        return self._regularization_coeff if own is None else own._coeff if isinstance(own, L2Decay) else 0.0

    def _create_regularization_of_grad(self, param, grad, regularization=None):
        if isinstance(getattr(param, "regularizer", None), L2Decay):
            return grad
        return super()._create_regularization_of_grad(param, grad, regularization)

    def _numbers(self, batch):
        return [float(self._momentum), self._use_nesterov, batch.extra, float(self._rescale_grad)]
