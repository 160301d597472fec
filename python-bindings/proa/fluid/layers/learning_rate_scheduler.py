"""Learning rates that the program computes from a counter of its runs; in dynamic mode, the schedules of fluid.dygraph."""
import math

from ...framework import mode, unique_name
from ...tensor.search import where
from .elementwise import cos, elementwise_max, elementwise_min, elementwise_pow, exp, floor
from .shape import reshape
from .tensor import assign, autoincreased_step_counter, cast, create_global_var, fill_constant

__all__ = ["cosine_decay", "exponential_decay", "inverse_time_decay", "linear_lr_warmup", "natural_exp_decay", "noam_decay",
           "piecewise_decay", "polynomial_decay"]


def _counter(begin=0):
    return cast(autoincreased_step_counter("@LR_DECAY_COUNTER@", begin), "float32")


def _schedule(name, *args):
    from ..dygraph import learning_rate_scheduler as schedules
    return getattr(schedules, name)(*args)


def _constant(value):
    return fill_constant([1], "float32", value)


def _kept(value):
    """The rate as a persistable variable, which other programs can read."""
    rate = create_global_var([1], 0.0, "float32", persistable=True, name=unique_name.generate("learning_rate"))
    return assign(value, rate)


def _part(decay_steps, staircase):
    part = _counter() / decay_steps
    return floor(part) if staircase else part


def noam_decay(d_model, warmup_steps, learning_rate=1.0):
    """learning_rate / √d_model · min(1 / √step, step / warmup_steps^1.5)."""
    if not mode.by_name():
        return _schedule("NoamDecay", d_model, warmup_steps, 1, 1, "float32", learning_rate)
    step = _counter(1)
    return learning_rate * d_model ** -0.5 * elementwise_min(elementwise_pow(step, _constant(-0.5)),
                                                             step * warmup_steps ** -1.5)


def exponential_decay(learning_rate, decay_steps, decay_rate, staircase=False):
    """learning_rate · decay_rate^(step / decay_steps)."""
    if not mode.by_name():
        return _schedule("ExponentialDecay", learning_rate, decay_steps, decay_rate, staircase)
    return learning_rate * elementwise_pow(_constant(decay_rate), _part(decay_steps, staircase))


def natural_exp_decay(learning_rate, decay_steps, decay_rate, staircase=False):
    """learning_rate · exp(−decay_rate · step / decay_steps)."""
    if not mode.by_name():
        return _schedule("NaturalExpDecay", learning_rate, decay_steps, decay_rate, staircase)
    return learning_rate * exp(-decay_rate * _part(decay_steps, staircase))


def inverse_time_decay(learning_rate, decay_steps, decay_rate, staircase=False):
    """learning_rate / (1 + decay_rate · step / decay_steps)."""
    if not mode.by_name():
        return _schedule("InverseTimeDecay", learning_rate, decay_steps, decay_rate, staircase)
    return learning_rate / (1 + decay_rate * _part(decay_steps, staircase))


def polynomial_decay(learning_rate, decay_steps, end_learning_rate=0.0001, power=1.0, cycle=False):
    """From learning_rate to end_learning_rate in decay_steps; cycle: again with more steps, each time that they end."""
    if not mode.by_name():
        return _schedule("PolynomialDecay", learning_rate, decay_steps, end_learning_rate, power, cycle)
    step = _counter()
    if cycle:
        turns = elementwise_max(floor((step + decay_steps - 1) / decay_steps), _constant(1.0))
        part = step / (turns * decay_steps)
    else:
        part = elementwise_min(step, _constant(decay_steps)) / decay_steps
    return (learning_rate - end_learning_rate) * elementwise_pow(1 - part, _constant(power)) + end_learning_rate


def piecewise_decay(boundaries, values):
    """values[i] up to boundaries[i]."""
    if len(values) - len(boundaries) != 1:
        raise ValueError("piecewise_decay: there must be one value more than boundaries, got "
                         f"{len(values)} and {len(boundaries)}")
    if not mode.by_name():
        return _schedule("PiecewiseDecay", boundaries, values, 0)
    step, rate = _counter(), _constant(values[-1])
    for boundary, value in zip(reversed(boundaries), reversed(values[:-1])):
        rate = where(step < float(boundary), _constant(value), rate)
    return _kept(rate)


def cosine_decay(learning_rate, step_each_epoch, epochs):
    """Half a cosine over the epochs."""
    if not mode.by_name():
        return _schedule("CosineDecay", learning_rate, step_each_epoch, epochs)
    epoch = floor(_counter() / step_each_epoch)
    return learning_rate * 0.5 * (cos(epoch * (math.pi / epochs)) + 1)


def linear_lr_warmup(learning_rate, warmup_steps, start_lr, end_lr):
    """From start_lr to end_lr in warmup_steps, then learning_rate: a number, a variable or a schedule."""
    if not mode.by_name():
        return _schedule("LinearLrWarmup", learning_rate, warmup_steps, start_lr, end_lr)
    step = _counter()
    after = _constant(learning_rate) if isinstance(learning_rate, (int, float)) else reshape(learning_rate, [1])
    return _kept(where(step < float(warmup_steps), start_lr + (end_lr - start_lr) * (step / warmup_steps), after))
