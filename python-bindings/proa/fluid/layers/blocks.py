"""Control flow of Paddle 1.x, as `with` statements: While, Switch, IfElse, StaticRNN, DynamicRNN. A program with one of them
is run operator by operator."""
import contextlib

from ... import _core
from ...static.late import core_name, late_of
from ...static.program import default_main_program
from ...static.variable import Variable
from ...tensor.array import Outer
from ..data_feeder import check_type, check_variable_and_dtype
from .host import merge_lod_tensor, split_lod_tensor

__all__ = ["ConditionalBlock", "DynamicRNN", "IfElse", "StaticRNN", "Switch", "While"]


def _late():
    return late_of(default_main_program())


def _now(var):
    """A handle that goes on standing for what a variable is now."""
    core = default_main_program()._core
    return core.find(core_name(core, var))


@contextlib.contextmanager
def _block(late):
    """A block of steps. Tensor arrays that it writes go on as what they are at its end."""
    with late.block() as block, Outer() as outer:
        yield block
    for array, before in outer.arrays:
        if array._value is not before:
            block.rewrites.append((before, core_name(late._core, array._value)))


def _condition(cond, who):
    check_variable_and_dtype(cond, "cond", ["bool"], who)
    if any(n not in (1, -1) for n in cond.declared_shape):
        raise TypeError(f"{who}: condition expected shape as [1], but given shape as {list(cond.declared_shape)}")
    return cond


class While:
    """Runs a block as long as cond holds, which the block writes.

    >>> import proa as paddle
    >>> from proa import fluid
    >>> paddle.enable_static()
    >>> with fluid.program_guard(fluid.Program(), fluid.Program()):
    ...     i = fluid.layers.fill_constant([1], "int64", 0)
    ...     end = fluid.layers.fill_constant([1], "int64", 5)
    ...     cond = fluid.layers.less_than(i, end)
    ...     with fluid.layers.While(cond).block():
    ...         i = fluid.layers.increment(i, in_place=True)
    ...         cond = fluid.layers.less_than(i, end, cond=cond)
    ...     int(fluid.Executor().run(fluid.default_main_program(), fetch_list=[i])[0][0])
    5
    >>> paddle.disable_static()
    """

    def __init__(self, cond, is_test=False, name=None):
        self._cond = _condition(cond, "fluid.layers.While")

    @contextlib.contextmanager
    def block(self):
        """Operators that are built inside are the loop's body."""
        late, condition = _late(), _now(self._cond)
        with _block(late) as block:
            yield
        late.add_block("while", block, condition=condition)


class ConditionalBlock:
    """Runs a block where all inputs hold."""

    def __init__(self, inputs, is_scalar_condition=False, name=None):
        for one in inputs:
            check_type(one, "input", Variable, "ConditionalBlock")
        self._inputs, self._scalar = inputs, is_scalar_condition

    @contextlib.contextmanager
    def block(self):
        """Operators that are built inside are the block."""
        late = _late()
        where = [_now(one) for one in self._inputs] if self._scalar else []
        with _block(late) as block:
            yield
        late.add_block("branch", block, where=where, unless=[])


class Switch:
    """The block of the first case whose condition holds, or of the default."""

    def __init__(self, name=None):
        self._before, self._inside = [], False

    def __enter__(self):
        self._inside = True
        return self

    def __exit__(self, *error):
        self._inside = False
        return False

    @contextlib.contextmanager
    def _chosen(self, where):
        late, unless = _late(), list(self._before)
        with _block(late) as block:
            yield
        late.add_block("branch", block, where=where, unless=unless)

    @contextlib.contextmanager
    def case(self, condition):
        """Operators that are built inside run where condition holds, and none before did."""
        if not self._inside:
            raise ValueError("case should be called inside with")
        check_variable_and_dtype(condition, "condition", ["bool"], "the member function case of fluid.layers.Switch")
        held = _now(condition)
        with self._chosen([held]):
            yield
        self._before.append(held)

    @contextlib.contextmanager
    def default(self):
        """Operators that are built inside run where no condition holds."""
        if not self._before:
            raise ValueError("there should be at least one condition")
        with self._chosen([]):
            yield


class IfElse:
    """Some rows of a batch go through one block, the others through another."""

    OUT_IF_ELSE_BLOCKS, IN_IF_ELSE_TRUE_BLOCKS, IN_IF_ELSE_FALSE_BLOCKS = range(3)

    def __init__(self, cond, name=None):
        check_type(cond, "cond", Variable, "fluid.layers.IfElse")
        self.cond, self.status = cond, IfElse.OUT_IF_ELSE_BLOCKS
        self._parts, self._outputs = {}, {}

    def input(self, x):
        """The rows of x that go through this block."""
        if self.status == IfElse.OUT_IF_ELSE_BLOCKS:
            raise ValueError("input must in true/false blocks")
        if id(x) not in self._parts:
            self._parts[id(x)] = x, split_lod_tensor(x, self.cond)
        return self._parts[id(x)][1][self.status - 1]

    @contextlib.contextmanager
    def _inside(self, status):
        if self.status != IfElse.OUT_IF_ELSE_BLOCKS:
            raise ValueError("cannot nest true and false blocks")
        self.status = status
        try:
            yield
        finally:
            self.status = IfElse.OUT_IF_ELSE_BLOCKS
        if status not in self._outputs:
            raise ValueError("Must set output inside block")

    def true_block(self):
        """The block of rows where cond holds."""
        return self._inside(IfElse.IN_IF_ELSE_TRUE_BLOCKS)

    def false_block(self):
        """The block of the others."""
        return self._inside(IfElse.IN_IF_ELSE_FALSE_BLOCKS)

    def output(self, *outs):
        """Results of this block."""
        if self.status == IfElse.OUT_IF_ELSE_BLOCKS:
            raise ValueError("output can only be invoked in the sub-block")
        for one in outs:
            check_type(one, "each output", Variable, "fluid.layers.IfElse.output")
        self._outputs.setdefault(self.status, []).extend(outs)

    def __call__(self):
        """The results, in the batch's order."""
        if self.status != IfElse.OUT_IF_ELSE_BLOCKS:
            raise ValueError("IfElse::__call__ must be out of sub-block")
        if not self._outputs:
            raise ValueError("Must invoke true_block or false_block before __call__")
        both = [self._outputs.get(which) for which in (1, 2)]
        if None in both:
            return both[0] or both[1]
        if len(both[0]) != len(both[1]):
            raise ValueError("The number of outputs of both blocks must be the same")
        return [merge_lod_tensor(yes, no, self.cond, self.cond) for yes, no in zip(*both)]


class _Recurrent:
    """What StaticRNN and DynamicRNN share: a block that is built once, with variables that every step sets."""

    _BEFORE, _INSIDE, _AFTER = range(3)

    def __init__(self, name=None):
        self._status, self._memories, self._inputs, self._outputs = self._BEFORE, {}, [], []

    @contextlib.contextmanager
    def _built(self, kind):
        if self._status != self._BEFORE:
            raise ValueError(f"{type(self).__name__}: the block can only be built once")
        self._late, self._status = _late(), self._INSIDE
        try:
            with _block(self._late) as self._block_of:
                yield
        finally:
            self._status = self._AFTER
        self._finish(kind)

    def _inside(self, method):
        if self._status != self._INSIDE:
            raise ValueError(f"You must invoke {type(self).__name__}.{method} in its block")

    def _step_of(self, x):
        inside = self._late.variable(x, shape=self._step_shape(x), levels=max(x.lod_level - 1, 0))
        self._inputs.append((_now(x), inside))
        return inside

    def update_memory(self, mem, var):
        """Sets the value of a memory in the next step."""
        self._inside("update_memory")
        for what, one in (("mem", mem), ("var", var)):
            check_type(one, what, Variable, f"{type(self).__name__}.update_memory")
        if id(mem) not in self._memories:
            raise ValueError("update_memory: mem must come from memory()")
        self._memories[id(mem)]["after"] = _now(var)

    def output(self, *outputs):
        """Results of a step."""
        for one in outputs:
            self.step_output(one)

    def step_output(self, o):
        """A result of a step."""
        self._inside("step_output")
        check_type(o, "o", Variable, f"{type(self).__name__}.step_output")
        with self._late.outside():
            out = self._late.variable(o, shape=self._whole_shape(o), levels=self._levels(o))
        self._outputs.append((_now(o), out))

    def __call__(self, *args, **kwargs):
        """The results of all steps."""
        if self._status != self._AFTER:
            raise ValueError(f"{type(self).__name__}: the output can only be visited outside its block")
        if not self._outputs:
            raise ValueError(f"{type(self).__name__} has no output")
        outs = [out for _, out in self._outputs]
        return outs[0] if len(outs) == 1 else outs

    def _checked(self):
        for memory in self._memories.values():
            if memory["after"] is None:
                raise ValueError(f"{type(self).__name__}: a memory is never updated: call update_memory")
        return list(self._memories.values())


class StaticRNN(_Recurrent):
    """A block that runs once for each first index of its step inputs."""

    def step(self):
        """Operators that are built inside are a step."""
        return self._built("recurrent")

    def memory(self, init=None, shape=None, batch_ref=None, init_value=0.0, init_batch_dim_idx=0, ref_batch_dim_idx=1):
        """A variable that goes from step to step: first init, or init_value of shape, with the batch of batch_ref."""
        self._inside("memory")
        if init is None:
            if shape is None or batch_ref is None:
                raise ValueError("if init is None, memory at least need shape and batch_ref")
            check_type(batch_ref, "batch_ref", Variable, "fluid.layers.StaticRNN.memory")
            from .tensor import fill_constant_batch_size_like
            whole = next((of for of, inside in self._inputs if inside is batch_ref), None)
            with self._late.outside():
                init = fill_constant_batch_size_like(batch_ref if whole is None else whole, shape, batch_ref.dtype,
                                                     init_value, ref_batch_dim_idx, init_batch_dim_idx)
        check_type(init, "init", Variable, "fluid.layers.StaticRNN.memory")
        inside = self._late.variable(init)
        self._memories[id(inside)] = {"inside": inside, "first": _now(init), "after": None}
        return inside

    def step_input(self, x):
        """x[i] in step i."""
        self._inside("step_input")
        check_type(x, "x", Variable, "fluid.layers.StaticRNN.step_input")
        return self._step_of(x)

    @staticmethod
    def _step_shape(x):
        return x.declared_shape[1:]

    @staticmethod
    def _levels(o):
        return 0

    def _whole_shape(self, o):
        steps = self._inputs[0][0].declared_shape[0] if self._inputs else -1
        return [steps, *o.declared_shape]

    def _finish(self, kind):
        memories = [(m["inside"], m["first"], m["after"]) for m in self._checked()]
        if not self._inputs:
            raise ValueError("StaticRNN: a step needs an input: call step_input")
        self._late.add_block(kind, self._block_of, inputs=self._inputs, memories=memories, outputs=self._outputs)


class DynamicRNN(_Recurrent):
    """A block that runs once for each place in sequences (LoD), over those that are long enough."""

    def __init__(self, name=None):
        super().__init__(name)
        self._fixed = []

    def block(self):
        """Operators that are built inside are a step."""
        return self._built("dynamic")

    def step_input(self, x, level=0):
        """The i-th row of each sequence of x in step i."""
        self._inside("step_input")
        check_type(x, "x", Variable, "fluid.layers.DynamicRNN.step_input")
        return self._step_of(x)

    def static_input(self, x):
        """The same in each step: rows, or sequences, of those that still run."""
        self._inside("static_input")
        check_type(x, "x", Variable, "fluid.layers.DynamicRNN.static_input")
        if not self._inputs:
            raise RuntimeError("static_input() must be called after step_input().")
        inside = self._late.variable(x)
        self._fixed.append((_now(x), inside))
        return inside

    def memory(self, init=None, shape=None, value=0.0, need_reorder=False, dtype="float32"):
        """A variable that goes from step to step: first init, or `value` of shape for each sequence."""
        self._inside("memory")
        who = "fluid.layers.DynamicRNN.memory"
        if shape is not None or init is None:
            check_type(shape, "shape", (list, tuple), who)
            check_type(value, "value", (int, float), who)
        if init is not None:
            check_type(init, "init", Variable, who)
            check_type(need_reorder, "need_reorder", bool, who)
            inside = self._late.variable(init)
        else:
            from ...framework.dtype import to_dtype
            inside = self._late.variable(shape=[-1, *shape], dtype=to_dtype(dtype))
        self._memories[id(inside)] = {"inside": inside, "first": None if init is None else _now(init), "after": None,
                                      "shape": list(shape or ()), "value": value, "reorder": need_reorder}
        return inside

    @staticmethod
    def _step_shape(x):
        return x.declared_shape

    _whole_shape = _step_shape

    def _levels(self, o):
        return o.lod_level + 1

    def _finish(self, kind):
        if not self._inputs:
            raise ValueError("DynamicRNN: a step needs an input: call step_input")
        self._late.add_block(kind, self._block_of, inputs=self._inputs, fixed=self._fixed, memories=self._checked(),
                             outputs=self._outputs)
