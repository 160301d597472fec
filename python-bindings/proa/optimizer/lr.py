"""Learning-rate schedulers: plain Python numbers, no tensors. Each class's get_lr() is a function of last_epoch
(and, where Paddle says so, of the rate before), so that a state_dict of two numbers is enough to go on. Closed
forms come from optim/schedules.yaml, which C's schedules are made of, too."""
import math
import warnings

from .._asks import asks
from .._elsewhere import elsewhere
from .._errors import compared
from .rates import half_cosine, line, RATES, swing

__all__ = ['LRScheduler', 'NoamDecay', 'PiecewiseDecay', 'NaturalExpDecay', 'InverseTimeDecay',
           'PolynomialDecay', 'LinearWarmup', 'ExponentialDecay', 'MultiStepDecay', 'StepDecay', 'LambdaDecay',
           'ReduceOnPlateau', 'CosineAnnealingDecay', 'MultiplicativeDecay', 'OneCycleLR', 'CyclicLR',
           'LinearLR', 'CosineAnnealingWarmRestarts']

__getattr__ = elsewhere(__name__)


def _require(condition, kind, message):
    if not condition:
        raise kind(message)


def _number(who, name, value, positive=False):
    _require(isinstance(value, (int, float)), TypeError,
             f"{who}: {name} must be a number, got {type(value).__name__}")
    _require(not positive or value >= 0, ValueError, f"{who}: {name} must not be negative, got {value}")


def _count(who, name, value, kind=ValueError):
    _require(isinstance(value, int), TypeError, f"{who}: {name} must be an int, got {type(value).__name__}")
    _require(value > 0, kind, f"{who}: {name} must be positive, got {value}")


def _tabled(cls):
    """Gives a class its formula of optim/schedules.yaml."""
    name, method = RATES[cls.__name__]
    method.__name__, method.__qualname__, method.__module__ = name, f"{cls.__qualname__}.{name}", cls.__module__
    setattr(cls, name, method)
    return cls


class LRScheduler:
    """Base of the schedulers: subclasses define get_lr(). step() moves to the next epoch (or to `epoch`)."""

    def __init__(self, learning_rate=0.1, last_epoch=-1, verbose=False):
        _number(type(self).__name__, "learning_rate", learning_rate, positive=True)
        self.base_lr = self.last_lr = float(learning_rate)
        self.last_epoch = last_epoch
        self.verbose = verbose
        self._var_name = None
        self.step()

    def __call__(self):
        return self.last_lr

    def get_lr(self):
        raise NotImplementedError(f"{type(self).__name__}: a scheduler must define get_lr()")

    def _say(self):
        if self.verbose:
            print(f"Epoch {self.last_epoch}: {type(self).__name__} set learning rate to {self.last_lr}.")

    def step(self, epoch=None):
        if epoch is None:
            self.last_epoch += 1
            self.last_lr = self.get_lr()
        else:
            self.last_epoch = epoch
            self.last_lr = getattr(self, "_get_closed_form_lr", self.get_lr)()
        self._say()

    def state_keys(self):
        self.keys = ['last_epoch', 'last_lr']

    def state_dict(self):
        self.state_keys()
        state = {}
        for key in self.keys:
            if key in self.__dict__:
                value = self.__dict__[key]
                state[key] = value if isinstance(value, (int, float, type(None))) else float(value)
        return state

    def set_state_dict(self, state_dict):
        self.state_keys()
        for key in self.keys:
            one = getattr(state_dict, "ndim", 1) == 0
            for entry in () if one or isinstance(state_dict, dict) else state_dict:
                compared(entry)
            _require(not one and key in state_dict, RuntimeError,
                     f"{type(self).__name__}.set_state_dict: the state has no '{key}'")
            self.__dict__[key] = state_dict[key]
        if len(state_dict) > len(self.keys):
            warnings.warn(f"{type(self).__name__}.set_state_dict: the state has entries that this scheduler does "
                          "not use; was it saved by another scheduler?")

    set_dict = set_state_dict


@_tabled
class NoamDecay(LRScheduler):
    """learning_rate · d_model^-½ · min(epoch^-½, epoch · warmup_steps^-1½)."""

    def __init__(self, d_model, warmup_steps, learning_rate=1.0, last_epoch=-1, verbose=False):
        _require(d_model > 0, ValueError, f"NoamDecay: d_model must be positive, got {d_model}")
        self.d_model = d_model
        self.warmup_steps = warmup_steps
        super().__init__(learning_rate, last_epoch, verbose)


@_tabled
class PiecewiseDecay(LRScheduler):
    """values[i] until epoch boundaries[i], the last value from then on."""

    def __init__(self, boundaries, values, last_epoch=-1, verbose=False):
        _require(len(boundaries) > 0, ValueError, "PiecewiseDecay: boundaries must not be empty")
        _require(len(values) > len(boundaries), ValueError,
                 f"PiecewiseDecay: {len(boundaries)} boundaries need {len(boundaries) + 1} values, "
                 f"got {len(values)}")
        self.boundaries = boundaries
        self.values = values
        super().__init__(last_epoch=last_epoch, verbose=verbose)


@_tabled
class NaturalExpDecay(LRScheduler):
    """learning_rate · e^(-gamma · epoch)."""

    def __init__(self, learning_rate, gamma, last_epoch=-1, verbose=False):
        _require(gamma > 0, AssertionError, f"NaturalExpDecay: gamma must be positive, got {gamma}")
        self.gamma = gamma
        super().__init__(learning_rate, last_epoch, verbose)


@_tabled
class InverseTimeDecay(LRScheduler):
    """learning_rate / (1 + gamma · epoch)."""

    def __init__(self, learning_rate, gamma, last_epoch=-1, verbose=False):
        self.gamma = gamma
        super().__init__(learning_rate, last_epoch, verbose)


@_tabled
class PolynomialDecay(LRScheduler):
    """From learning_rate to end_lr in decay_steps as (1 - epoch/decay_steps)^power; with cycle, the span grows
    by another decay_steps whenever it is over."""

    @asks("decay_steps<?")
    def __init__(self, learning_rate, decay_steps, end_lr=0.0001, power=1.0, cycle=False, last_epoch=-1,
                 verbose=False):
        _require(isinstance(decay_steps, int) and decay_steps > 0, AssertionError,
                 f"PolynomialDecay: decay_steps must be a positive int, got {decay_steps!r}")
        _require(power > 0, AssertionError, f"PolynomialDecay: power must be positive, got {power}")
        self.decay_steps = decay_steps
        self.end_lr = end_lr
        self.power = power
        self.cycle = cycle
        super().__init__(learning_rate, last_epoch, verbose)


class LinearWarmup(LRScheduler):
    """From start_lr to end_lr in warmup_steps, then learning_rate: a number or a scheduler, which starts there."""

    def __init__(self, learning_rate, warmup_steps, start_lr, end_lr, last_epoch=-1, verbose=False):
        _require(isinstance(learning_rate, (float, int, LRScheduler)), TypeError,
                 f"LinearWarmup: learning_rate must be a number or a scheduler, got {type(learning_rate).__name__}")
        _require(isinstance(warmup_steps, int) and warmup_steps > 0, AssertionError,
                 f"LinearWarmup: warmup_steps must be a positive int, got {warmup_steps!r}")
        _require(end_lr > start_lr, AssertionError,
                 f"LinearWarmup: end_lr {end_lr} must be greater than start_lr {start_lr}")
        self.learning_rate = learning_rate
        self.warmup_steps = warmup_steps
        self.start_lr = start_lr
        self.end_lr = end_lr
        super().__init__(start_lr, last_epoch, verbose)

    def state_dict(self):
        state = super().state_dict()
        if isinstance(self.learning_rate, LRScheduler):
            state["LinearWarmup_LR"] = self.learning_rate.state_dict()
        return state

    def set_state_dict(self, state_dict):
        inner = isinstance(self.learning_rate, LRScheduler)
        super().set_state_dict({k: v for k, v in state_dict.items() if not inner or k != "LinearWarmup_LR"})
        if inner:
            self.learning_rate.set_state_dict(state_dict["LinearWarmup_LR"])

    def get_lr(self):
        if self.last_epoch < self.warmup_steps:
            return line(self.start_lr, self.end_lr, self.last_epoch, self.warmup_steps)
        if isinstance(self.learning_rate, LRScheduler):
            self.learning_rate.step(self.last_epoch - self.warmup_steps)
            return self.learning_rate()
        return self.learning_rate


@_tabled
class ExponentialDecay(LRScheduler):
    """learning_rate · gamma^epoch."""

    def __init__(self, learning_rate, gamma, last_epoch=-1, verbose=False):
        _require(0 < gamma < 1, AssertionError, f"ExponentialDecay: gamma must be between 0 and 1, got {gamma}")
        self.gamma = gamma
        super().__init__(learning_rate, last_epoch, verbose)


@_tabled
class MultiStepDecay(LRScheduler):
    """Times gamma at each of the milestones."""

    def __init__(self, learning_rate, milestones, gamma=0.1, last_epoch=-1, verbose=False):
        _require(isinstance(milestones, (tuple, list)), TypeError,
                 f"MultiStepDecay: milestones must be a list or tuple, got {type(milestones).__name__}")
        _require(all(a < b for a, b in zip(milestones, milestones[1:])), ValueError,
                 f"MultiStepDecay: milestones must increase, got {milestones}")
        _require(not gamma >= 1, ValueError, f"MultiStepDecay: gamma must be less than 1, got {gamma}")
        self.milestones = milestones
        self.gamma = gamma
        super().__init__(learning_rate, last_epoch, verbose)


@_tabled
class StepDecay(LRScheduler):
    """Times gamma every step_size epochs."""

    def __init__(self, learning_rate, step_size, gamma=0.1, last_epoch=-1, verbose=False):
        _require(isinstance(step_size, int), TypeError,
                 f"StepDecay: step_size must be an int, got {type(step_size).__name__}")
        _require(not gamma >= 1, ValueError, f"StepDecay: gamma must be less than 1, got {gamma}")
        _require(step_size > 0, AssertionError, f"StepDecay: step_size must be positive, got {step_size}")
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(learning_rate, last_epoch, verbose)


class _Lambda(LRScheduler):
    def __init__(self, learning_rate, lr_lambda, last_epoch=-1, verbose=False):
        _require(callable(lr_lambda), TypeError,
                 f"{type(self).__name__}: lr_lambda must be a function, got {type(lr_lambda).__name__}")
        self.lr_lambda = lr_lambda
        super().__init__(learning_rate, last_epoch, verbose)


class LambdaDecay(_Lambda):
    """learning_rate · lr_lambda(epoch)."""

    def get_lr(self):
        return self.base_lr * self.lr_lambda(self.last_epoch)


class MultiplicativeDecay(_Lambda):
    """learning_rate · lr_lambda(1) · … · lr_lambda(epoch)."""

    def get_lr(self):
        rate = self.base_lr
        for epoch in range(1, self.last_epoch + 1):
            rate = rate * self.lr_lambda(epoch)
        return rate


class ReduceOnPlateau(LRScheduler):
    """Times factor when the metric given to step() has not become better for more than patience steps."""

    def __init__(self, learning_rate, mode='min', factor=0.1, patience=10, threshold=1e-4, threshold_mode='rel',
                 cooldown=0, min_lr=0, epsilon=1e-8, verbose=False):
        mode, threshold_mode = mode.lower(), threshold_mode.lower()
        _require(mode in ('min', 'max'), ValueError, f"ReduceOnPlateau: mode must be 'min' or 'max', got '{mode}'")
        _require(factor < 1, ValueError, f"ReduceOnPlateau: factor must be less than 1, got {factor}")
        _require(threshold_mode in ('rel', 'abs'), ValueError,
                 f"ReduceOnPlateau: threshold_mode must be 'rel' or 'abs', got '{threshold_mode}'")
        _number("ReduceOnPlateau", "learning_rate", learning_rate)
        self.mode = mode
        self.factor = factor
        self.threshold_mode = threshold_mode
        self.patience = patience
        self.threshold = threshold
        self.cooldown = cooldown
        self.min_lr = min_lr
        self.epsilon = epsilon
        self.cooldown_counter = 0
        self.best = None
        self.num_bad_epochs = 0
        self.base_lr = self.last_lr = float(learning_rate)
        self.last_epoch = 0
        self.verbose = verbose
        self._var_name = None

    def state_keys(self):
        self.keys = ['cooldown_counter', 'best', 'num_bad_epochs', 'last_epoch', 'last_lr']

    def step(self, metrics, epoch=None):
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        if not isinstance(metrics, (int, float)):
            _require(hasattr(metrics, "dtype"), TypeError,
                     f"ReduceOnPlateau.step: metrics must be a number, array or Tensor, got {type(metrics).__name__}")
            _require(metrics.size == 1, AssertionError,
                     f"ReduceOnPlateau.step: metrics must have one element, got {metrics.size}")
        if self.cooldown_counter > 0:
            self.cooldown_counter -= 1
            return
        if self.best is None or self._is_better(metrics, self.best):
            self.best = metrics
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.num_bad_epochs > self.patience:
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
            rate = max(self.last_lr * self.factor, self.min_lr)
            if self.last_lr - rate > self.epsilon:
                self.last_lr = rate
                self._say()

    def _is_better(self, current, best):
        margin = best * self.threshold if self.threshold_mode == 'rel' else self.threshold
        return current < best - margin if self.mode == 'min' else current > best + margin


@_tabled
class CosineAnnealingDecay(LRScheduler):
    """Half a cosine from learning_rate to eta_min in T_max epochs, and back."""

    def __init__(self, learning_rate, T_max, eta_min=0, last_epoch=-1, verbose=False):
        _count("CosineAnnealingDecay", "T_max", T_max, AssertionError)
        _number("CosineAnnealingDecay", "eta_min", eta_min)
        self.T_max = T_max
        self.eta_min = float(eta_min)
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self):
        epoch, period = self.last_epoch, self.T_max
        if epoch == 0:
            return self.base_lr
        if (epoch - 1 - period) % (2 * period) == 0:
            return self.last_lr + (self.base_lr - self.eta_min) * (1 - math.cos(math.pi / period)) / 2
        ratio = (1 + math.cos(math.pi * epoch / period)) / (1 + math.cos(math.pi * (epoch - 1) / period))
        return ratio * (self.last_lr - self.eta_min) + self.eta_min


class OneCycleLR(LRScheduler):
    """Up to max_learning_rate in phase_pct of total_steps, then down to end_learning_rate; three_phase goes down
    as fast as up first."""

    def __init__(self, max_learning_rate, total_steps, divide_factor=25.0, end_learning_rate=0.0001, phase_pct=0.3,
                 anneal_strategy='cos', three_phase=False, last_epoch=-1, verbose=False):
        who = "OneCycleLR"
        _number(who, "max_learning_rate", max_learning_rate, positive=True)
        _number(who, "end_learning_rate", end_learning_rate, positive=True)
        _count(who, "total_steps", total_steps)
        _require(isinstance(phase_pct, float), TypeError,
                 f"{who}: phase_pct must be a float, got {type(phase_pct).__name__}")
        _require(0 <= phase_pct <= 1, ValueError, f"{who}: phase_pct must be between 0 and 1, got {phase_pct}")
        _number(who, "divide_factor", divide_factor)
        _require(anneal_strategy in ('cos', 'linear'), ValueError,
                 f"{who}: anneal_strategy must be 'cos' or 'linear', got {anneal_strategy!r}")
        self.total_steps = total_steps
        first, last = max_learning_rate / float(divide_factor), float(end_learning_rate)
        up, end = phase_pct * total_steps - 1, total_steps - 1
        if three_phase:
            _require(phase_pct < 0.5, ValueError,
                     f"{who}: with three_phase, phase_pct must be less than 0.5, got {phase_pct}")
            self._bounds = [0, up, 2 * phase_pct * total_steps - 2, end]
            self._rates = [first, max_learning_rate, first, last]
        else:
            self._bounds = [0, up, end]
            self._rates = [first, max_learning_rate, last]
        self.anneal_func = self._cos_annealing if anneal_strategy == 'cos' else self._linear_annealing
        super().__init__(first, last_epoch, verbose)

    @staticmethod
    def _cos_annealing(start_lr, end_lr, pct):
        return half_cosine(start_lr, end_lr, pct, 1)

    @staticmethod
    def _linear_annealing(start_lr, end_lr, pct):
        return line(start_lr, end_lr, pct, 1)

    def get_lr(self):
        step = self.last_epoch
        _require(step <= self.total_steps, ValueError,
                 f"OneCycleLR: step {step} is beyond the {self.total_steps} steps of the cycle")
        phase = 0
        while phase < len(self._rates) - 2 and step > self._bounds[phase + 1]:
            phase += 1
        start, end = self._bounds[phase], self._bounds[phase + 1]
        return self.anneal_func(self._rates[phase], self._rates[phase + 1], (step - start) / (end - start))


class CyclicLR(LRScheduler):
    """Between base and max rate, step_size_up steps up and step_size_down down; the amplitude follows mode or
    scale_fn (of the cycle's number or of the iteration)."""

    def __init__(self, base_learning_rate, max_learning_rate, step_size_up, step_size_down=None, mode='triangular',
                 exp_gamma=1.0, scale_fn=None, scale_mode='cycle', last_epoch=-1, verbose=False):
        who = "CyclicLR"
        _number(who, "max_learning_rate", max_learning_rate, positive=True)
        _count(who, "step_size_up", step_size_up)
        if step_size_down is not None:
            _count(who, "step_size_down", step_size_down)
        _require(isinstance(exp_gamma, float), TypeError,
                 f"{who}: exp_gamma must be a float, got {type(exp_gamma).__name__}")
        _require(scale_fn is not None or mode in ('triangular', 'triangular2', 'exp_range'), ValueError,
                 f"{who}: mode must be 'triangular', 'triangular2' or 'exp_range' unless scale_fn is given, "
                 f"got {mode!r}")
        _require(scale_mode in ('cycle', 'iterations'), ValueError,
                 f"{who}: scale_mode must be 'cycle' or 'iterations', got {scale_mode!r}")
        up = float(step_size_up)
        self.cycle_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_up_pct = up / self.cycle_size
        self.max_lr = float(max_learning_rate)
        self.amplitude = self.max_lr - base_learning_rate
        self.mode = mode
        self.gamma = exp_gamma
        if scale_fn is None:
            scale_mode = 'iterations' if mode == 'exp_range' else 'cycle'
            scale_fn = {'triangular': self._triangular_scale_fn, 'triangular2': self._triangular2_scale_fn,
                        'exp_range': self._exp_range_scale_fn}[mode]
        self.scale_fn = scale_fn
        self.scale_mode = scale_mode
        super().__init__(base_learning_rate, last_epoch, verbose)

    def _triangular_scale_fn(self, x):
        return 1.0

    def _triangular2_scale_fn(self, x):
        return 1 / 2.0 ** (x - 1)

    def _exp_range_scale_fn(self, x):
        return self.gamma ** x

    def get_lr(self):
        iterations = self.last_epoch
        scale = self.scale_fn(1 + iterations // self.cycle_size if self.scale_mode == 'cycle' else iterations)
        return swing(self.base_lr, self.amplitude, scale, iterations, self.cycle_size, self.step_up_pct)


class LinearLR(LRScheduler):
    """From learning_rate · start_factor to learning_rate · end_factor in total_steps."""

    def __init__(self, learning_rate, total_steps, start_factor=1.0 / 3, end_factor=1.0, last_epoch=-1,
                 verbose=False):
        _require(0 < start_factor <= 1, ValueError,
                 f"LinearLR: start_factor must be above 0 and at most 1, got {start_factor}")
        _require(0 <= end_factor <= 1, ValueError, f"LinearLR: end_factor must be between 0 and 1, got {end_factor}")
        _require(total_steps > 0, ValueError, f"LinearLR: total_steps must be positive, got {total_steps}")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_steps = total_steps
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self):
        epoch = self.last_epoch
        if epoch == 0:
            return self.base_lr * self.start_factor
        if epoch > self.total_steps:
            return self.last_lr
        rise = self.end_factor - self.start_factor
        return self.last_lr * (1.0 + rise / (self.total_steps * self.start_factor + (epoch - 1) * rise))


class CosineAnnealingWarmRestarts(LRScheduler):
    """Half a cosine from learning_rate to eta_min in T_0 epochs, again and again, T_mult times as long each."""

    @asks("T_0<?")
    def __init__(self, learning_rate, T_0, T_mult=1, eta_min=0, last_epoch=-1, verbose=False):
        _require(isinstance(T_0, int) and T_0 > 0, ValueError,
                 f"CosineAnnealingWarmRestarts: T_0 must be a positive int, got {T_0!r}")
        _require(isinstance(T_mult, int) and T_mult >= 1, ValueError,
                 f"CosineAnnealingWarmRestarts: T_mult must be an int of at least 1, got {T_mult!r}")
        self.T_0 = self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur = last_epoch
        super().__init__(learning_rate, last_epoch, verbose)

    def set_state_dict(self, state_dict):
        super().set_state_dict(state_dict)
        self.T_i, self.T_cur = self.T_0, self.last_epoch  # Paddle's files do not hold them
        while self.T_cur >= self.T_i:
            self.T_cur -= self.T_i
            self.T_i *= self.T_mult

    def get_lr(self):
        return half_cosine(self.base_lr, self.eta_min, self.T_cur, self.T_i)

    def _seek(self, epoch):
        _require(epoch >= 0, ValueError, f"CosineAnnealingWarmRestarts.step: epoch must not be negative, got {epoch}")
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult ** n - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult ** n

    def step(self, epoch=None):
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        else:
            self._seek(epoch)
        self.last_epoch = math.floor(epoch)
        self.last_lr = self.get_lr()
        self._say()
