"""Program, Block and Operator: what static mode builds, and the default programs."""
import contextlib
import weakref
from collections import OrderedDict

from .. import _core
from ..framework import mode, unique_name
from ..framework.dtype import to_dtype
from ..framework.parameter import Parameter
from .params import value_of
from .scope import ScopeVariable, global_scope
from .append import append, described
from .variable import _dims, text_of

__all__ = ["Program", "default_main_program", "default_startup_program", "name_scope", "program_guard"]

_living = weakref.WeakSet()


def living():
    """Every Program that there is."""
    return list(_living)


class Operator:
    """An operator as Paddle's program format has it: type, slots of variable names, attributes."""

    def __init__(self, block, desc):
        self.block = block
        self.type, self._inputs, self._outputs, self._attrs, self._role = desc

    @property
    def input_names(self):
        return sorted(self._inputs)

    @property
    def output_names(self):
        return sorted(self._outputs)

    @property
    def input_arg_names(self):
        return [name for names in self._inputs.values() for name in names]

    @property
    def output_arg_names(self):
        return [name for names in self._outputs.values() for name in names]

    @property
    def attr_names(self):
        return sorted(self._attrs)

    def input(self, name):
        """Names of the variables in an input slot."""
        return list(self._inputs.get(name, []))

    def output(self, name):
        """Names of the variables in an output slot."""
        return list(self._outputs.get(name, []))

    def has_attr(self, name):
        """Whether there is an attribute of that name."""
        return name in self._attrs or name == "op_device"

    def supplied(self, name=None):
        """Names of the variables that supply an attribute's value, or any attribute's."""
        named = [v[0] for key, v in self._attrs.items() if name in (None, key) and isinstance(v, tuple)]
        return [one for names in named for one in ([names] if isinstance(names, str) else names)]

    def attr(self, name):
        """An attribute's value; None if variables supply it."""
        if name == "op_device":
            return self._attrs.get(name, "")
        if self.supplied(name):
            return None
        if name not in self._attrs:
            raise ValueError(f"operator {self.type} has no attribute {name!r}; it has {', '.join(self.attr_names)}")
        return self._attrs[name]

    def all_attrs(self):
        """All attributes by name; a variable that supplies a value stands for it."""
        return {name: self._shown(value) for name, value in self._attrs.items()}

    def _shown(self, value):
        if not isinstance(value, tuple):
            return value
        return self.block.var(value[0]) if isinstance(value[0], str) else [self.block.var(name) for name in value[0]]

    @property
    def desc(self):
        return _OpDesc(self)

    def to_string(self, throw_on_error=False):
        """The operator in one line."""
        outs = ", ".join(f"{slot}={names}" for slot, names in self._outputs.items())
        ins = ", ".join(f"{slot}={names}" for slot, names in self._inputs.items())
        attrs = ", ".join(f"{name} = {value}" for name, value in sorted(self._attrs.items()))
        return f"{{{outs}}} = {self.type}(inputs={{{ins}}}{', ' if attrs else ''}{attrs})"

    __repr__ = __str__ = to_string


def _runs_at_once():
    """Whether a block's operators are called on tensors: in dynamic mode, and where a function is captured."""
    return not mode.by_name()


def _placeholder(name, stop_gradient, persistable):
    """A tensor that an operator makes."""
    made = _core.Tensor()
    if name:
        made.name = name
    made.stop_gradient, made.persistable = stop_gradient, persistable
    return made


class Block:
    """A list of variables and operators of a program; block 0 is the global one."""

    def __init__(self, program, idx):
        self.program, self.idx = program, idx

    @property
    def desc(self):
        return self

    @property
    def parent_idx(self):
        return self.program._core.block_parent(self.idx)

    @property
    def ops(self):
        """The operators, in the order in which they run."""
        return self.program._operators(self.idx)

    def _listed(self):
        for name, var, persistable, *_ in self.program._core.vars(self.idx):
            yield name, self.program._dress(name, var, persistable)

    @property
    def vars(self):
        """The variables by name."""
        return OrderedDict(self._listed())

    def has_var(self, name):
        """Whether this block has a variable of that name."""
        return self.idx == 0 and self.program._core.find(name) is not None or \
            self.idx > 0 and any(name == entry[0] for entry in self.program._core.vars(self.idx))

    def var(self, name):
        """The variable of that name."""
        if not isinstance(name, str):
            raise TypeError(f"Block.var: name must be a string, got {type(name).__name__}")
        if self.idx == 0:
            found = self.program._variable(name)
        else:
            found = self.vars.get(name)
        if found is None and self.idx == 0:
            from .backward import gradient_of
            found = gradient_of(self.program, name)
        if found is None:
            raise ValueError(f"var {name} not in this block")
        return found

    def _find_var_recursive(self, name):
        return self.program._variable(name)

    def all_parameters(self):
        """The parameters."""
        return self.program.all_parameters() if self.idx == 0 else []

    def create_var(self, name=None, dtype="float32", shape=(), persistable=False, stop_gradient=False, lod_level=0,
                   type=7, initializer=None, is_data=False, **unused):
        """A variable. Persistable ones and data have values at once, the others when an operator has made them."""
        if _runs_at_once():
            return _placeholder(name, stop_gradient, persistable)
        if type == _core.dtype.RAW:  # a ring's id: bytes that startup programs hand from op to op
            return self.program._variable(name) or _core.declare(self.program._core, name, [-1], to_dtype("uint8"))
        if type != _core.dtype.LOD_TENSOR:
            raise NotImplementedError(f"create_var: expected a dense variable (type 7), got type {int(type)}")
        core = self.program._core
        name, dims = name or unique_name.generate("_generated_var"), _dims(shape or ())
        dtype = to_dtype("float32" if dtype is None else dtype)
        found = self.program._variable(name)
        if found is not None:
            return found
        if is_data:
            var = core.data(name, dims, dtype)
            if lod_level:
                core.data_lod(var, lod_level)
        else:
            var = core.persistable(name, dims, dtype) if persistable else _core.declare(core, name, dims, dtype)
            if lod_level:
                self.program._declared_lod[name] = lod_level
        differentiable = var.is_floating_point() or var.is_complex()
        var.persistable, var.stop_gradient = persistable, stop_gradient or not differentiable
        if differentiable and not stop_gradient and not persistable:
            self.program._wanting.add(name)
        if initializer is not None:
            with mode.opened(core):
                initializer(var)
        return var

    def _clone_variable(self, var, force_persistable=True):
        """A variable of the same name, shape and dtype in this block."""
        return self.create_var(name=var.name, dtype=var.dtype, shape=var.declared_shape, stop_gradient=True,
                               persistable=force_persistable or var.persistable)

    def append_op(self, type=None, inputs=None, outputs=None, attrs=None, stop_gradient=False, **unused):
        """Appends the operator of Paddle's format: slots of variables (or names), and attributes. Shapes and dtypes
        of what it makes follow from it.

        >>> import proa as paddle
        >>> paddle.enable_static()
        >>> with paddle.static.program_guard(paddle.static.Program()):
        ...     x = paddle.static.data("x", [None, 3])
        ...     block = paddle.static.default_main_program().global_block()
        ...     out = block.create_var(name="doubled")
        ...     op = block.append_op(type="scale", inputs={"X": x}, outputs={"Out": out}, attrs={"scale": 2.0})
        ...     out.shape
        (-1, 3)
        >>> paddle.disable_static()
        """
        if _runs_at_once():
            from ..fluid.layer_helper import LayerHelper
            return LayerHelper(type).append_op(type, inputs, outputs, attrs)
        return append(self, type, inputs, outputs, attrs, stop_gradient)

    def prepend_op(self, type=None, inputs=None, outputs=None, attrs=None, **unused):
        """append_op in front of all operators."""
        return append(self, type, inputs, outputs, attrs, index=0)

    _prepend_op = prepend_op

    def _insert_op(self, index, type=None, inputs=None, outputs=None, attrs=None, **unused):
        return append(self, type, inputs, outputs, attrs, index=index)

    def create_parameter(self, shape, dtype="float32", name=None, initializer=None, trainable=True, regularizer=None,
                         optimize_attr=None, do_model_average=True, need_clip=True, **unused):
        """A parameter of the program; `initializer` adds the operators that set it to this block."""
        program, core = self.program, self.program._core
        name = name or unique_name.generate("_param")
        found = program._parameters.get(name)
        if found is not None:
            return found
        param = Parameter._share(core.persistable(name, _dims(shape), to_dtype(dtype)))
        param._describe(name=name, trainable=trainable, optimize_attr=optimize_attr or {"learning_rate": 1.0},
                        regularizer=regularizer, do_model_average=do_model_average, need_clip=need_clip)
        program._add_parameter(param)
        if initializer is not None:
            with mode.opened(core):
                initializer(param)
        return param

    def to_string(self, throw_on_error=False, with_details=False):
        """Variables and operators, a line each."""
        lines = ["{ // block " + str(self.idx)]
        lines += ["    " + text_of(var, persistable) for var, persistable in
                  ((self.program._dress(n, v, p), p) for n, v, p, *_ in self.program._core.vars(self.idx))]
        lines += ["", *("    " + op.to_string() for op in self.ops), "}"]
        return "\n".join(lines) + "\n"

    __repr__ = __str__ = to_string


class Program:
    """Operators and variables that an Executor runs.

    >>> import proa as paddle
    >>> paddle.enable_static()
    >>> main = paddle.static.Program()
    >>> with paddle.static.program_guard(main):
    ...     x = paddle.static.data("x", [None, 3])
    ...     y = paddle.static.nn.fc(x, 2)
    >>> [p.shape for p in main.all_parameters()]
    [(3, 2), (2,)]
    >>> paddle.disable_static()
    """

    _global_seed = 0

    def __init__(self, _core_program=None):
        self._core = _core_program or _core.Program()
        self._parameters = OrderedDict()
        self._seed = Program._global_seed
        self._rng = None            # the random generator's state between runs, with a seed of its own
        self.lr_scheduler, self.lr_var_name = None, None
        self._ops = {}
        self._wanting = set()  # variables made with stop_gradient=False
        self._fed_wanting = set()  # those of them that are fed: gradients flow to them, other than to data
        self._declared_lod = {}  # levels of sequences of variables that no operator has made
        self._optimizer = None
        self._loaders = []  # what DataLoader.from_generator(iterable=False) feeds to every run
        self._backwards = []  # (first operator, end, names of targets, inputs, seeds, stops, gradients) of each
        self._any_shape = set()  # fed variables whose values may have other shapes and dtypes than declared
        self._loss = None  # of append_backward
        self._kept = set()  # variables whose values stay in the scope
        self._late = None  # steps, where one of them needs a value that only a run has
        self._variable_attrs = {}  # variable → what _set_attr has said about it
        self._rewritten = {}  # fed variable → what an operator has made of it
        self._pipeline = self._pipeline_opt = None  # the rank's stage, where fleet divided the program
        self._after_run = None  # called with the scope after a run
        _living.add(self)

    def _next_feed(self):
        """{name: value} of the loaders that were started."""
        return {name: value for loader in self._loaders for name, value in loader.next_feed().items()}

    # ---- variables

    def _add_parameter(self, param):
        self._parameters[param.name] = param
        _core.mark_parameter(self._core, param.name, True)

    def _dress(self, name, var, persistable):
        known = self._parameters.get(name)
        if known is not None:
            return known
        if persistable:
            var.persistable = True
        return var

    def _variable(self, name):
        """The variable of that name, or None."""
        known = self._parameters.get(name)
        if known is not None:
            return known
        var = self._core.find(name)
        if var is not None and name in self._persistables():
            var.persistable = True
        if var is not None and name in self._fed_wanting:
            var.stop_gradient = False
        return var

    def _persistables(self):
        """name → (shape, dtype) of the persistable variables."""
        kept = self._ops.get("persistables")
        if kept is None or kept[0] != self._core.version:
            found = {name: (var.declared_shape, var.dtype)
                     for name, var, persistable, *_ in self._core.vars(0) if persistable}
            kept = self._ops["persistables"] = (self._core.version, found)
        return kept[1]

    def list_vars(self):
        """Every variable of every block."""
        for block in self.blocks:
            yield from block.vars.values()

    def all_parameters(self):
        """The parameters."""
        return list(self._parameters.values())

    # ---- blocks and operators

    def _operators(self, block):
        kept = self._ops.get(block)
        if kept is None or kept[0] != self._core.version:
            made = [op for wire in described(self._core, block) for op in self._as_operators(wire, block)]
            kept = self._ops[block] = (self._core.version, made)
        return kept[1]

    def _as_operators(self, wire, block=0):
        owner = Block(self, block)
        return [Operator(owner, desc) for desc in wire]

    @property
    def num_blocks(self):
        return self._core.blocks()

    @property
    def blocks(self):
        return [Block(self, i) for i in range(self.num_blocks)]

    def global_block(self):
        """Block 0."""
        return Block(self, 0)

    def block(self, index):
        """The block of that index."""
        if not 0 <= index < self.num_blocks:
            raise IndexError(f"Program.block: there is no block {index}; there are {self.num_blocks}")
        return Block(self, index)

    def current_block(self):
        """The block that operators are added to."""
        return Block(self, 0)

    # ---- as a whole

    @property
    def random_seed(self):
        """0: runs draw from the process's generator; otherwise the program draws numbers of its own."""
        return self._seed

    @random_seed.setter
    def random_seed(self, seed):
        if not isinstance(seed, int):
            raise ValueError("Program.random_seed must be an integer")
        self._seed, self._rng = seed, None

    def global_seed(self, seed=0):
        """The random_seed of this program and of those made from now on."""
        Program._global_seed = self.random_seed = seed

    def clone(self, for_test=False):
        """A copy whose parameters have the same names. for_test: without what only trains, and with dropout and
        batch norm as in evaluation."""
        copy = Program(self._core.clone(for_test))
        copy._take_parameters(self)
        copy._wanting, copy._fed_wanting = set(self._wanting), set(self._fed_wanting)
        copy._seed = self._seed
        copy.lr_scheduler, copy.lr_var_name = self.lr_scheduler, self.lr_var_name
        copy._late, copy._any_shape = self._late and self._late.copy_for(copy), set(self._any_shape)
        copy._backwards = list(self._backwards)
        copy._rewritten, copy._kept = dict(self._rewritten), set(self._kept)
        copy._variable_attrs = {name: dict(attrs) for name, attrs in self._variable_attrs.items()}
        return copy

    def _take_parameters(self, other):
        for name, param in other._parameters.items():
            var = self._core.find(name)
            if var is None:
                continue
            mine = Parameter._share(var)
            mine.__dict__.update(param.__dict__)
            mine.persistable, mine.stop_gradient = True, param.stop_gradient
            self._add_parameter(mine)

    def _adopt_parameters(self):
        """Parameters of a program that was read: the persistables that its file calls so."""
        for name in _core.parameter_names(self._core):
            param = Parameter._share(self._core.find(name))
            stops = {entry[0]: entry[5] for entry in self._core.vars(0)}
            param._describe(name=name, trainable=not stops.get(name, False))
            self._parameters[name] = param
        return self

    def _prune(self, targets):
        """A copy with the operators that targets need."""
        return self._prune_with_input([], targets)

    def _planned(self, who):
        """The core's program, which says all; an error for a program that is run operator by operator."""
        if self._late is not None:
            raise NotImplementedError(f"(Unimplemented) {who}: the program has control flow of Paddle 1.x, or an operator "
                                      "whose attribute is fed: it can be run, not saved or pruned. Build it with "
                                      "static.nn.cond and while_loop, and with numbers as attributes")
        return self._core

    def _prune_with_input(self, feeded_var_names, targets):
        self._planned("prune")
        copy = self.clone()
        targets = targets if isinstance(targets, (list, tuple)) else [targets]
        from .variable import true_name
        found = [copy._core.find(true_name(self._core, t)) for t in targets]
        copy._core.set_outputs(found)
        if feeded_var_names:
            copy._core.set_inputs([copy._core.find(name) for name in feeded_var_names])
        from .io import keep_only_needed
        keep_only_needed(copy)
        return copy

    def to_string(self, throw_on_error=False, with_details=False):
        """Blocks, variables and operators as text."""
        return "\n".join(block.to_string() for block in self.blocks)

    __repr__ = __str__ = to_string

    @property
    def desc(self):
        return _Desc(self)

    @staticmethod
    def parse_from_string(binary_str):
        """The program that serialized bytes hold; its variables have no values yet."""
        return Program(_core.decode(binary_str))._adopt_parameters()

    # ---- values

    def state_dict(self, mode="all", scope=None):
        """The values of persistable variables: mode 'param', 'opt' or 'all'."""
        if mode not in ("all", "param", "opt"):
            raise ValueError(f"Program.state_dict: mode must be 'all', 'param' or 'opt', got {mode!r}")
        scope = scope or global_scope()
        state = OrderedDict()
        for name in self._persistables():
            if mode == "all" or (name in self._parameters) == (mode == "param"):
                found = scope.find_var(name)
                if found is None or found.value is None:
                    found = ScopeVariable(scope, name)
                    found.value = value_of(self, name, scope)
                state[name] = found.get_tensor()
        return state

    def set_state_dict(self, state_dict, scope=None):
        """Sets the values of variables by name."""
        if not isinstance(state_dict, dict):
            raise TypeError(f"Program.set_state_dict: expected a dict, got {type(state_dict).__name__}")
        from .variable import set_in_scope
        wanted = self._persistables()
        for name, value in state_dict.items():
            if name in wanted:
                set_in_scope(self._variable(name), value, scope)


class _OpDesc:
    """Operator.desc: the operator's parts as methods. Shapes and dtypes are known from the start."""

    def __init__(self, op):
        self._op = op

    def infer_shape(self, block):
        """Nothing is left to infer."""

    infer_var_type = check_attrs = infer_shape

    def type(self):
        return self._op.type

    def input_arg_names(self):
        return self._op.input_arg_names

    def output_arg_names(self):
        return self._op.output_arg_names

    def input_names(self):
        return self._op.input_names

    def output_names(self):
        return self._op.output_names

    def __getattr__(self, name):
        return getattr(self._op, name)


class _Desc:
    """Program.desc, as far as scripts use it."""

    def __init__(self, program):
        self._program = program

    def serialize_to_string(self):
        return _core.encode(self._program._planned("serialize_to_string"), True)


# ---- the default programs ------------------------------------------------------------------------------------------

_main, _startup = Program(), Program()


def default_main_program():
    """The program that operators are added to."""
    return _main


def default_startup_program():
    """The program that gives variables their first values."""
    return _startup


def _switch(main, startup):
    global _main, _startup
    before = _main, _startup
    _main, _startup = main, startup
    return before


@contextlib.contextmanager
def program_guard(main_program, startup_program=None):
    """Makes these the default programs inside the with statement."""
    for what, value in (("main_program", main_program), ("startup_program", startup_program)):
        if not isinstance(value, Program) and (value is not None or what == "main_program"):
            raise TypeError(f"program_guard: {what} must be a Program, got {type(value).__name__}")
    before = _switch(main_program, startup_program or _startup)
    building = mode.building()
    was = _core.program_open(main_program._core) if building else None
    try:
        yield
    finally:
        _switch(*before)
        if building:
            _core.program_open(was)


@contextlib.contextmanager
def name_scope(prefix=None):
    """Groups operators for people who look at them. Names of variables do not change."""
    if prefix is not None and not isinstance(prefix, str):
        raise TypeError(f"name_scope: prefix must be a string, got {type(prefix).__name__}")
    if prefix == "":
        raise ValueError("name_scope: prefix must not be empty")
    yield
