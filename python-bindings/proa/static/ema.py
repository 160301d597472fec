"""Exponential moving averages of a program's parameters, for evaluation."""
import contextlib

from .. import _core
from ..framework import mode, unique_name
from .program import Program, default_main_program, program_guard
from .variable import make_persistable

__all__ = ["ExponentialMovingAverage"]

_COUNTER = "@EMA_STEP_COUNTER@"
_OPTIMIZE, _SCHEDULE = 2, 16


@contextlib.contextmanager
def _role(role):
    """Operators inside are for that: an evaluating clone leaves them out."""
    program = default_main_program()._core
    before = program.set_role(role)
    try:
        yield
    finally:
        program.set_role(before)


def _counter():
    return make_persistable(_COUNTER, [1], _core.int64, 0)


class ExponentialMovingAverage:
    """Averages of the parameters of the default main program: average = decay · average + (1 - decay) · parameter,
    from zero. update() adds the operators to the program; `with ema.apply(executor):` puts the averages, divided by
    1 - decay^steps, into the parameters. thres_steps (a variable): the decay is min(decay, (1 + t) / (10 + t)).

    >>> import proa as paddle
    >>> paddle.enable_static()
    >>> main, startup = paddle.static.Program(), paddle.static.Program()
    >>> with paddle.static.program_guard(main, startup):
    ...     loss = paddle.mean(paddle.static.nn.fc(paddle.static.data("x", [None, 3]), 2))
    ...     updates = paddle.optimizer.SGD(0.1).minimize(loss)
    ...     ema = paddle.static.ExponentialMovingAverage(0.9)
    ...     ema.update()
    >>> executor = paddle.static.Executor()
    >>> executor.run(startup)
    []
    >>> x = [[1.0, 2.0, 3.0]]
    >>> trained = executor.run(main, feed={"x": x}, fetch_list=[loss])
    >>> with ema.apply(executor):
    ...     averaged = executor.run(main.clone(for_test=True), feed={"x": x}, fetch_list=[loss.name])
    >>> paddle.disable_static()
    """

    def __init__(self, decay=0.999, thres_steps=None, name=None):
        if mode.in_dynamic_mode():
            raise RuntimeError("ExponentialMovingAverage averages the parameters of a static program; eagerly, keep "
                               "averages in tensors of your own")
        self._name = name or ""
        with _role(_SCHEDULE):
            self._decay = self._scheduled(decay, thres_steps)
        self._kept = [(param, unique_name.generate(f"{self._name}{param.name}.ema_tmp"))
                      for param in default_main_program().all_parameters() if param.do_model_average is not False]
        with _role(_OPTIMIZE):
            self._averages = {param.name: make_persistable(
                unique_name.generate(f"{self._name}{param.name}_ema"), list(param.shape), param.dtype, 0.0)
                for param, _ in self._kept}
        self.apply_program, self.restore_program = Program(), Program()
        with program_guard(self.apply_program):
            self._build_apply()
        with program_guard(self.restore_program):
            for param, spare in self._kept:
                _core.assign_to(self._variable(spare, param), self._variable(param.name, param))

    @staticmethod
    def _scheduled(decay, steps):
        """The variable that holds the decay, and the operators that set it."""
        var = make_persistable("scheduled_ema_decay_rate", [1], _core.float32, decay)
        if steps is not None:
            steps = _core.cast(steps, _core.float32)
            slow = _core.reshape(_core.divide(steps + 1.0, steps + 10.0), [1])
            _core.assign_to(_core.minimum(slow, _core.full([1], decay, _core.float32)), var)
        return var

    @staticmethod
    def _variable(name, like):
        """The variable of that name in the program that is being built."""
        return default_main_program().global_block().create_var(name, like.dtype, like.declared_shape, persistable=True)

    def _build_apply(self):
        step = _core.cast(_counter(), _core.float32)
        decay = self._variable(self._decay.name, self._decay)
        one = _core.full([1], 1.0, _core.float32)
        weight = _core.where(step > 0, one - _core.pow(decay, step), one)
        for param, spare in self._kept:
            own = self._variable(param.name, param)
            average = self._variable(self._averages[param.name].name, param)
            _core.assign_to(own, self._variable(spare, param))
            _core.assign_to(_core.cast(_core.divide(average, weight), param.dtype), own)

    def update(self):
        """Adds the operators that update the averages to the default main program: call it once, behind minimize."""
        counter = _counter()
        default_main_program().global_block().prepend_op(type="increment", inputs={"X": counter},
                                                         outputs={"Out": counter}, attrs={"step": 1.0})
        with _role(_OPTIMIZE):
            for param, _ in self._kept:
                average = self._averages[param.name]
                mixed = average * self._decay + param * (1 - self._decay)
                _core.assign_to(_core.cast(mixed, param.dtype), average)

    @contextlib.contextmanager
    def apply(self, executor, need_restore=True):
        """Inside the with statement the parameters are their averages; need_restore: behind it they are what they
        were."""
        executor.run(self.apply_program)
        try:
            yield
        finally:
            if need_restore:
                self.restore(executor)

    def restore(self, executor):
        """Gives the parameters the values that they had before apply."""
        executor.run(self.restore_program)
