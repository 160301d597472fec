"""fluid.dygraph.learning_rate_scheduler: learning-rate schedules, which advance with each step of the optimizer."""
import math

from ..._core import Tensor
from ...optimizer.lr import LRScheduler

__all__ = ["CosineDecay", "ExponentialDecay", "InverseTimeDecay", "LambdaDecay", "LearningRateDecay", "LinearLrWarmup",
           "MultiStepDecay", "NaturalExpDecay", "NoamDecay", "PiecewiseDecay", "PolynomialDecay", "ReduceLROnPlateau",
           "StepDecay"]


class LearningRateDecay(LRScheduler):
    """Base: subclasses define step() as a function of step_num, which each call moves on by step_size."""

    def __init__(self, begin=0, step=1, dtype="float32"):
        self.step_num, self.step_size, self.dtype = begin, step, dtype
        self._var_name, self.verbose = None, False

    def __call__(self):
        rate = self.step()
        self.step_num += self.step_size
        return rate if isinstance(rate, Tensor) else self.create_lr_var(rate)

    def step(self):
        raise NotImplementedError()

    get_lr = property(lambda self: self.step)

    def create_lr_var(self, lr):
        """The rate as a tensor."""
        from ... import to_tensor
        return to_tensor([float(lr)])

    def _state_keys(self):
        self.keys = ["step_num"]

    def state_dict(self):
        """The state that the schedule resumes from."""
        self._state_keys()
        return {key: self.__dict__[key] for key in self.keys if key in self.__dict__}

    def set_state_dict(self, state_dict):
        """Goes on from a state."""
        self._state_keys()
        for key in self.keys:
            if key not in state_dict:
                raise RuntimeError(f"Please check whether state_dict is correct for optimizer. Can't find [ {key} ]")
            self.__dict__[key] = state_dict[key]

    set_dict = load_state_dict = set_state_dict


class PiecewiseDecay(LearningRateDecay):
    """values[i] up to boundaries[i]."""

    def __init__(self, boundaries, values, begin, step=1, dtype="float32"):
        super().__init__(begin, step, dtype)
        self.boundaries, self.values = boundaries, [float(v) for v in values]

    def step(self):
        return next((v for b, v in zip(self.boundaries, self.values) if self.step_num < b), self.values[-1])


class _Steps(LearningRateDecay):
    def __init__(self, learning_rate, decay_steps, decay_rate, staircase=False, begin=0, step=1, dtype="float32"):
        super().__init__(begin, step, dtype)
        self.learning_rate, self.decay_steps = learning_rate, decay_steps
        self.decay_rate, self.staircase = decay_rate, staircase

    def _part(self):
        part = self.step_num / self.decay_steps
        return math.floor(part) if self.staircase else part


class NaturalExpDecay(_Steps):
    """learning_rate · exp(−decay_rate · step / decay_steps)."""

    def step(self):
        return self.learning_rate * math.exp(-self.decay_rate * self._part())


class ExponentialDecay(_Steps):
    """learning_rate · decay_rate^(step / decay_steps)."""

    def step(self):
        return self.learning_rate * self.decay_rate ** self._part()


class InverseTimeDecay(_Steps):
    """learning_rate / (1 + decay_rate · step / decay_steps)."""

    def step(self):
        return self.learning_rate / (1 + self.decay_rate * self._part())


class PolynomialDecay(LearningRateDecay):
    """From learning_rate to end_learning_rate in decay_steps."""

    def __init__(self, learning_rate, decay_steps, end_learning_rate=0.0001, power=1.0, cycle=False, begin=0, step=1,
                 dtype="float32"):
        super().__init__(begin, step, dtype)
        self.learning_rate, self.decay_steps, self.end_learning_rate = learning_rate, decay_steps, end_learning_rate
        self.power, self.cycle = power, cycle

    def step(self):
        steps, at = self.decay_steps, self.step_num
        if self.cycle:
            steps *= max(math.ceil(at / steps), 1)
        else:
            at = min(at, steps)
        return (self.learning_rate - self.end_learning_rate) * (1 - at / steps) ** self.power + self.end_learning_rate


class CosineDecay(LearningRateDecay):
    """Half a cosine over the epochs."""

    def __init__(self, learning_rate, step_each_epoch, epochs, begin=0, step=1, dtype="float32"):
        super().__init__(begin, step, dtype)
        self.learning_rate, self.step_each_epoch, self.epochs = learning_rate, step_each_epoch, epochs

    def step(self):
        epoch = math.floor(self.step_num / self.step_each_epoch)
        return self.learning_rate * 0.5 * (math.cos(epoch * math.pi / self.epochs) + 1)


class NoamDecay(LearningRateDecay):
    """learning_rate · d_model^-½ · min(step^-½, step · warmup_steps^-1½)."""

    def __init__(self, d_model, warmup_steps, begin=1, step=1, dtype="float32", learning_rate=1.0):
        super().__init__(begin, step, dtype)
        self.learning_rate, self.d_model, self.warmup_steps = learning_rate, d_model, warmup_steps

    def step(self):
        at = self.step_num
        return self.learning_rate * self.d_model ** -0.5 * min(at ** -0.5 if at else math.inf,
                                                              self.warmup_steps ** -1.5 * at)


class LinearLrWarmup(LearningRateDecay):
    """From start_lr to end_lr in warmup_steps, then learning_rate, a number or another schedule."""

    def __init__(self, learning_rate, warmup_steps, start_lr, end_lr, begin=1, step=1, dtype="float32"):
        super().__init__(begin, step, dtype)
        if start_lr > end_lr:
            raise AssertionError(f"start_lr {start_lr} must be less than end_lr {end_lr}")
        self.learning_rate, self.warmup_steps, self.start_lr = learning_rate, warmup_steps, start_lr
        self.lr_ratio_before_warmup = (end_lr - start_lr) / warmup_steps

    def step(self):
        after = self.learning_rate() if isinstance(self.learning_rate, LearningRateDecay) else self.learning_rate
        if self.step_num < self.warmup_steps:
            return self.lr_ratio_before_warmup * self.step_num + self.start_lr
        return after


class _LearningRateEpochDecay(LearningRateDecay):
    """Base of schedules that epoch() moves on."""

    def __init__(self, learning_rate, dtype=None):
        if not isinstance(learning_rate, (float, int)):
            raise TypeError("The type of 'learning_rate' must be 'float, int'.")
        if learning_rate < 0:
            raise ValueError(f"Invalid learning rate: {learning_rate}")
        super().__init__()
        self.base_lr, self.epoch_num = float(learning_rate), -1
        self.epoch()

    def _state_keys(self):
        self.keys = ["epoch_num", "learning_rate"]

    def __call__(self):
        return self.learning_rate

    def epoch(self, epoch=None):
        """Goes on to the next epoch, or to a given one."""
        self.epoch_num = self.epoch_num + 1 if epoch is None else epoch
        self.learning_rate = self.get_lr()

    def get_lr(self):
        raise NotImplementedError


class StepDecay(_LearningRateEpochDecay):
    """learning_rate · decay_rate^(epoch // step_size)."""

    def __init__(self, learning_rate, step_size, decay_rate=0.1):
        if not isinstance(step_size, int):
            raise TypeError(f"The type of 'step_size' must be 'int', but received {type(step_size)}.")
        if decay_rate >= 1.0:
            raise ValueError("decay_rate should be < 1.0.")
        self.step_size, self.decay_rate = step_size, decay_rate
        epochs = self.step_size
        super().__init__(learning_rate)
        self.step_size = epochs
        self.epoch(0)

    def get_lr(self):
        return self.base_lr * self.decay_rate ** (self.epoch_num // self.step_size)


class MultiStepDecay(_LearningRateEpochDecay):
    """learning_rate times decay_rate at each milestone."""

    def __init__(self, learning_rate, milestones, decay_rate=0.1):
        if not isinstance(milestones, (tuple, list)):
            raise TypeError(f"The type of 'milestones' in 'MultiStepDecay' must be 'tuple, list', but received "
                            f"{type(milestones)}.")
        if any(a >= b for a, b in zip(milestones, milestones[1:])):
            raise ValueError("The elements of milestones must be incremented")
        if decay_rate >= 1.0:
            raise ValueError("decay_rate should be < 1.0.")
        self.milestones, self.decay_rate = milestones, decay_rate
        super().__init__(learning_rate)

    def get_lr(self):
        return self.base_lr * self.decay_rate ** sum(self.epoch_num >= m for m in self.milestones)


class LambdaDecay(_LearningRateEpochDecay):
    """learning_rate · lr_lambda(epoch)."""

    def __init__(self, learning_rate, lr_lambda):
        if not callable(lr_lambda):
            raise TypeError(f"The type of 'lr_lambda' in 'LambdaDecay' must be 'function', but received {type(lr_lambda)}.")
        self.lr_lambda = lr_lambda
        super().__init__(learning_rate)

    def get_lr(self):
        return self.base_lr * self.lr_lambda(self.epoch_num)


class ReduceLROnPlateau(LearningRateDecay):
    """Falls when a loss stops getting better: step(loss) says so."""

    def __init__(self, learning_rate, mode="min", decay_rate=0.1, patience=10, verbose=False, threshold=1e-4,
                 threshold_mode="rel", cooldown=0, min_lr=0, eps=1e-8, dtype="float32"):
        from ...optimizer.lr import ReduceOnPlateau
        super().__init__()
        self._schedule = ReduceOnPlateau(float(learning_rate), mode, decay_rate, patience, threshold, threshold_mode,
                                         cooldown, min_lr, eps, verbose)

    def __call__(self):
        return self._schedule()

    def step(self, loss):
        """The loss of one more epoch."""
        self._schedule.step(loss)

    def state_dict(self):
        return self._schedule.state_dict()

    def set_state_dict(self, state_dict):
        self._schedule.set_state_dict(state_dict)

    set_dict = load_state_dict = set_state_dict
