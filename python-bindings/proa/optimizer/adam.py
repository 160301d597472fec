"""Adam, AdamW, Adamax and Lamb: hyperparameters, their checks, and arguments of the update ops. Accumulators and the
step are in the base class Optimizer."""
from .. import _core
from .optimizer import Optimizer, whole_of
from .sgd import given


def _check(who, beta1, beta2, epsilon):
    for name, value in (("beta1", beta1), ("beta2", beta2)):
        if not isinstance(value, _core.Tensor) and not 0 <= value < 1:
            raise ValueError(f"{who}: {name} must be at least 0 and below 1, got {value}")
    if not isinstance(epsilon, _core.Tensor) and not 0 <= epsilon:
        raise ValueError(f"{who}: epsilon must not be negative, got {epsilon}")


class Adam(Optimizer, kind="adam"):
    """Moments of the gradient, corrected for their start: param − lr · m̂ / (√v̂ + epsilon).

    Of gradients that are SelectedRows, lazy_mode updates the rows that are given only.
    """

    _options = ("beta1", "beta2", "epsilon", "lazy_mode")
    _decays_rows = False

    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, parameters=None,
                 weight_decay=None, grad_clip=None, lazy_mode=False, multi_precision=False, use_multi_tensor=False,
                 name=None):
        given("Adam", learning_rate=learning_rate, beta1=beta1, beta2=beta2, epsilon=epsilon)
        _check("Adam", beta1, beta2, epsilon)
        self._beta1, self._beta2, self._epsilon = beta1, beta2, epsilon
        self._lazy_mode = lazy_mode
        self._multi_precision = multi_precision
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)


class AdamW(Optimizer, kind="adamw"):
    """Adam whose weight decay shrinks the parameter itself: by lr · weight_decay before the step."""

    _options = ("weight_decay", "beta1", "beta2", "epsilon", "lazy_mode")

    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, parameters=None,
                 weight_decay=0.01, lr_ratio=None, apply_decay_param_fun=None, grad_clip=None, lazy_mode=False,
                 multi_precision=False, name=None):
        given("AdamW", learning_rate=learning_rate, beta1=beta1, beta2=beta2, epsilon=epsilon)
        _check("AdamW", beta1, beta2, epsilon)
        if not isinstance(weight_decay, (float, _core.Tensor)):
            raise TypeError(f"AdamW: weight_decay must be a float or a Tensor, got {type(weight_decay).__name__}")
        if lr_ratio is not None and not callable(lr_ratio):
            raise AssertionError(f"AdamW: lr_ratio must be a function of a parameter, got {type(lr_ratio).__name__}")
        self._beta1, self._beta2, self._epsilon = beta1, beta2, epsilon
        self._weight_decay = weight_decay
        self._lr_ratio = lr_ratio
        self._apply_decay_param_fun = apply_decay_param_fun
        self._lazy_mode = lazy_mode
        self._multi_precision = multi_precision
        super().__init__(learning_rate, parameters, None, grad_clip, name)

    def _add_param_group(self, group):
        self._default_dict["weight_decay"] = self._weight_decay
        super()._add_param_group(group)

    def _describe_params(self, group):
        for param in group['params']:
            self._set_param_rate(param, group)

    def _extra(self, param):
        ratio = 1.0 if self._lr_ratio is None else float(self._lr_ratio(whole_of(param)))
        fun = self._apply_decay_param_fun
        return ratio, fun is None or bool(fun(param.name))

    def _numbers(self, batch):
        return [float(self._beta1), float(self._beta2), float(self._epsilon), batch.extra[0], float(self._weight_decay),
                batch.extra[1], bool(self._lazy_mode)]


class Adamax(Optimizer, kind="adamax"):
    """Adam with the largest gradient so far, fading, instead of the second moment."""

    _options = ("beta1", "beta2", "epsilon")

    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, parameters=None,
                 weight_decay=None, grad_clip=None, name=None):
        given("Adamax", learning_rate=learning_rate, beta1=beta1, beta2=beta2, epsilon=epsilon)
        _check("Adamax", beta1, beta2, epsilon)
        self._beta1, self._beta2, self._epsilon = beta1, beta2, epsilon
        super().__init__(learning_rate, parameters, weight_decay, grad_clip, name)


class Lamb(Optimizer, kind="lamb"):
    """Adam's direction plus lamb_weight_decay · param, as long as the parameter itself."""

    _options = ("beta1", "beta2", "epsilon", "lamb_weight_decay", "exclude_from_weight_decay_fn")

    def __init__(self, learning_rate=0.001, lamb_weight_decay=0.01, beta1=0.9, beta2=0.999, epsilon=1e-6,
                 parameters=None, grad_clip=None, exclude_from_weight_decay_fn=None, multi_precision=False,
                 always_adapt=False, name=None):
        given("Lamb", error=AssertionError, learning_rate=learning_rate, beta1=beta1, beta2=beta2, epsilon=epsilon)
        self._beta1, self._beta2, self._epsilon = beta1, beta2, epsilon
        self._lamb_weight_decay = lamb_weight_decay
        self._exclude_from_weight_decay_fn = exclude_from_weight_decay_fn
        self._multi_precision = multi_precision
        self.always_adapt = always_adapt
        super().__init__(learning_rate, parameters, None, grad_clip, name)

    def _extra(self, param):
        fun = self._exclude_from_weight_decay_fn
        return 0.0 if fun is not None and fun(whole_of(param)) else float(self._lamb_weight_decay)

    def _numbers(self, batch):
        return [batch.extra, float(self._beta1), float(self._beta2), float(self._epsilon), bool(self.always_adapt)]
