"""Interpreter for programs that cannot be compiled ahead: an attribute of an operator is known only when it runs (a fed
axis), or there is control flow of Paddle 1.x. Executes operator by operator. Uses append, scope and host_ops."""
import contextlib
import re

from .. import _core
from ..framework import mode, unique_name
from .scope import ScopeTensor

_RECURRENT = {"lstm": "Input", "lstmp": "Input", "gru": "Input", "fusion_lstm": "X", "fusion_gru": "X",
              "fused_embedding_fc_lstm": "Ids", "attention_lstm": "X"}
_SEQUENCED = frozenset(("im2sequence", "sequence_erase", "match_matrix_tensor", "var_conv_2d", "filter_by_instag", "detection_map",
                        "rpn_target_assign", "retinanet_target_assign", "generate_proposal_labels", "generate_mask_labels"))
# Results without sequences: in the order of steps, or of the batch.
_OF_BATCH = ("BatchGate", "BatchCellPreAct", "BatchHidden", "BatchResetHiddenPrev", "AttentionedX", "AttentionFCOut", "LSTMX",
             "LSTMOUT", "Tmp", "MAP", "AccumPosCount")
# Errors of the core for operators that need a value, which only a run has.
_NEEDS_A_VALUE = re.compile(r"comes from a variable|has no elements in memory")


def needs_a_value(error):
    """Whether an operator was refused because it needs the value of a variable."""
    return isinstance(error, (NotImplementedError, RuntimeError)) and _NEEDS_A_VALUE.search(str(error)) is not None


def late_of(program):
    """The Late of a program, which it has from now on."""
    if program._late is None:
        program._late = Late(program)
    return program._late


class Late:
    """The steps of such a program: operators of its core by number, operators in Paddle's format, and blocks."""

    def __init__(self, program):
        self._core = program._core
        self.steps, self._open, self._synced = [], [], 0
        self.made = set()    # names that operators in Paddle's format make
        self.wanted = set()  # variables that gradients go to

    def copy_for(self, program):
        """The same steps for a clone."""
        self._sync()
        other = Late(program)
        other.steps, other._synced = list(self.steps), self._synced
        other.made, other.wanted = set(self.made), set(self.wanted)
        return other

    def _sync(self):
        """Operators that functions have added to the core since the last step."""
        count = len(self._core.ops(0))
        into = self._open[-1].steps if self._open else self.steps
        into += [("core", i) for i in range(self._synced, count)]
        self._synced = count
        return into

    def all_steps(self):
        """Steps of the whole program."""
        self._sync()
        return self.steps

    def append(self, kind, inputs, outputs, attrs):
        """One more operator in Paddle's format, on names."""
        names = [name for names in outputs.values() for name in names]
        self.made.update(names)
        levels = 1 if kind in _SEQUENCED or kind == "ctc_align" and "OutputLength" not in outputs else 0
        of = _RECURRENT.get(kind)  # whose results are as their input
        if of:
            levels = len(_core.variable_lod(self._core.find(inputs[of][0]), self._core))
        for slot, name in ((slot, name) for slot, names in outputs.items() for name in names):
            if _core.is_declared(self._core, name):  # for functions, a variable that is there
                declared = self._core.find(name)
                made = self._core.data(name, list(declared.declared_shape), declared.dtype)
                if levels and slot not in _OF_BATCH:
                    self._core.data_lod(made, levels)
        inputs, outputs = ({slot: [self._core.find(name) for name in names] for slot, names in slots.items()}
                           for slots in (inputs, outputs))
        self._sync().append(("operator", (kind, inputs, outputs, attrs)))

    def variable(self, like=None, shape=None, dtype=None, name=None, levels=None):
        """A variable that a step makes, with as many levels of sequences as another, if they are not given."""
        shape = like.declared_shape if shape is None else shape
        made = self._core.data(unique_name.generate(name or "late"), list(shape), dtype or like.dtype)
        made.stop_gradient = like is None or like.stop_gradient
        levels = len(_core.variable_lod(like, self._core)) if levels is None and like is not None else levels
        if levels:
            self._core.data_lod(made, levels)
        return made

    @contextlib.contextmanager
    def block(self):
        """Operators that are built inside are a Block of their own, which the caller makes a step of."""
        self._sync()
        block = Block(self)
        self._open.append(block)
        try:
            yield block
            self._sync()
        finally:
            self._open.pop()

    @contextlib.contextmanager
    def outside(self):
        """Operators that are built inside come before the innermost open block."""
        self._sync()
        block = self._open.pop()
        try:
            yield
            self._sync()
        finally:
            self._open.append(block)

    def add_block(self, kind, block, **parts):
        """The step that runs a block."""
        self._sync().append((kind, (block, parts)))

    def rewritten(self, before, name):
        """An operator gave a variable's name to a new one; `before` is the old one."""
        for block in self._open:
            block.rewrites.append((before, name))

    def gradients(self, program, targets, inputs, seeds, stops):
        """Variables for the gradients of targets with respect to inputs, which each run computes."""
        found = []
        for one in inputs:
            name = one.name + "@GRAD"
            var = self._core.find(name)
            found.append(self._core.data(name, one.declared_shape, one.dtype) if var is None else var)
        self._sync().append(("gradients", ([t.name for t in targets], [x.name for x in inputs], [g.name for g in found],
                                           [s.name for s in seeds or ()])))
        self.wanted.update(x.name for x in inputs)
        self.wanted.difference_update(s.name for s in stops or ())
        self.made.update(g.name for g in found)
        return found


def core_name(core, var):
    """The name that a variable has now."""
    return var if isinstance(var, str) else _core.variable_name(core, var) or var.name


class Block:
    """Steps inside a branch or loop, and the variables that they write."""

    def __init__(self, late):
        self.steps, self.rewrites, self.late = [], [], late

    def carried(self):
        """(name inside at the start, name at the end) of each variable that is written."""
        core, pairs = self.late._core, {}
        for before, name in self.rewrites:
            pairs.setdefault(core_name(core, before), name)
        return pairs


class LatePlan:
    """One way to run such a program: as executor._Plan."""

    feeds, fed_lods = (), ()

    def __init__(self, program, fetches, scope):
        self.program, self.fetches, self.scope = program, fetches, scope
        self.late, self.core = program._late, program._core
        self.steps = self.late.all_steps()
        from .append import described
        self.wires = described(self.core, 0)

    def run(self, feed, return_numpy):
        """The fetched values."""
        self.values = {name: self._fed(name, value) for name, value in feed.items()}
        with mode.eager():
            recording = _core.set_recording(True)
            try:
                self._run(self.steps)
            finally:
                _core.set_recording(recording)
        self._keep(feed)
        found = [name if isinstance(name, _core.Tensor) else self.value(name) for name in self.fetches]
        if return_numpy:
            return [one.numpy() for one in found]
        return [ScopeTensor(one.detach(), lod=one._lod) for one in found]

    def _keep(self, feed):
        """Variables that are persistable, or marked so, stay in the scope."""
        persistable = self.program._persistables()
        for name, value in self.values.items():
            if (name in persistable or name in self.program._kept) and name not in feed:
                held = self.scope.var(name)
                held.hold(value.detach() if isinstance(value, _core.Tensor) else value)
                held.lod = getattr(value, "_lod", None) or []

    def _fed(self, name, value):
        lod = value.lod() if isinstance(value, ScopeTensor) else []
        if isinstance(value, ScopeTensor):
            value = value._value()
        with mode.eager():
            var = self.core.find(name)
            tensor = value.detach() if isinstance(value, _core.Tensor) else _core.to_tensor(value)
            if var is not None and tensor.dtype != var.dtype:
                tensor = _core.cast(tensor, var.dtype)
            tensor.stop_gradient = name not in self.late.wanted
        if lod:
            tensor._lod = lod
        return tensor

    def value(self, var):
        """The value of a variable, or of a name."""
        name = core_name(self.core, var)
        found = self.values.get(name)
        if found is None:
            held = self.scope.find_var(name)
            found = held.value if held is not None else self.core.value(name)
            if found is not None and isinstance(found, _core.Tensor):
                found = self.values[name] = found.detach()
                found.stop_gradient = name not in self.late.wanted
        if found is None:
            raise ValueError(f"Executor.run: {name!r} has no value: nothing feeds or makes it")
        return found

    def set(self, var, value):
        """Gives a variable its value."""
        self.values[core_name(self.core, var)] = value

    def _run(self, steps):
        for kind, step in steps:
            if kind == "core":
                for wire in self.wires[step]:
                    self._operator(*wire[:4])
            else:
                getattr(self, "_" + kind)(*step)

    def _operator(self, kind, inputs, outputs, attrs):
        from ..fluid.op import run_eagerly
        from .host_ops import HOST
        inputs, outputs = ({slot: [core_name(self.core, one) for one in names] for slot, names in slots.items()}
                           for slots in (inputs, outputs))
        if kind == "assign" and self._is_array(inputs["X"][0]):
            self.values[outputs["Out"][0]] = list(self.values.get(inputs["X"][0], ()))
            return
        if kind in HOST:
            look = self.values.get if kind == "select_input" else self.value  # one of several that need not be there
            given = {slot: [look(name) for name in names] for slot, names in inputs.items()}
            if kind == "write_to_array":
                given["Array"] = [self.values.get(name, ()) for name in outputs["Out"]]
            made = HOST[kind](given, outputs, attrs)
            self.values.update((name, one) for slot, names in outputs.items() for name, one in zip(names, made[slot])
                               if one is not None)
            return
        given = {slot: [self.value(name) for name in names] for slot, names in inputs.items()}
        known = {name: one for slot, names in inputs.items() for name, one in zip(names, given[slot])}
        made = {slot: [known[name] if name in known else _core.Tensor() for name in names]
                for slot, names in outputs.items()}
        done = iter(run_eagerly(kind, given, made, attrs))
        self.values.update([(name, one) for slot, names in outputs.items() for name, one in zip(names, made[slot])
                            if next(done)])

    def _is_array(self, name):
        """Whether a name means a tensor array: a list, or one that was only created."""
        if name in self.values:
            return isinstance(self.values[name], list)
        return self.scope.find_var(name) is None and self.core.value(name) is None

    def _gradients(self, targets, inputs, results, seeds):
        from ..autograd import grad
        found = grad([self.value(name) for name in targets], [self.value(name) for name in inputs],
                     [self.value(name) for name in seeds] or None, retain_graph=True, allow_unused=True)
        for name, of, one in zip(results, inputs, found):
            value = self.value(of)
            self.values[name] = _core.full_like(value, 0) if one is None else one
            if value._lod:
                self.values[name]._lod = value._lod

    # ---- blocks

    def _while(self, block, parts):
        carried = block.carried()
        while bool(self.value(parts["condition"]).numpy().all()):
            self._run(block.steps)
            self.values.update([(before, self.values[name]) for before, name in carried.items() if name in self.values])
        self._pass_by(carried)

    def _branch(self, block, parts):
        """Runs a block where one variable holds and the others do not."""
        held = all(bool(self.value(v).numpy().all()) for v in parts["where"])
        if held and not any(bool(self.value(v).numpy().all()) for v in parts["unless"]):
            self._run(block.steps)
        else:
            self._pass_by(block.carried())

    def _pass_by(self, carried):
        """Variables that a block would have written keep their values."""
        for before, name in carried.items():
            if before != name and (before in self.values or self.scope.find_var(before) is not None):
                self.values[name] = self.value(before)

    def _recurrent(self, block, parts):
        """A step for each first index of the step inputs. memories: (inside, first value, after a step)."""
        sources = [self.value(of) for of, _ in parts["inputs"]]
        memories = [self.value(first) for _, first, _ in parts["memories"]]
        collected = [[] for _ in parts["outputs"]]
        for i in range(sources[0].shape[0]):
            for (_, inside), source in zip(parts["inputs"], sources):
                self.set(inside, source[i])
            for (inside, *_), value in zip(parts["memories"], memories):
                self.set(inside, value)
            self._run(block.steps)
            memories = [self.value(after) for *_, after in parts["memories"]]
            for into, (inside, _) in zip(collected, parts["outputs"]):
                into.append(self.value(inside))
        for (_, out), each in zip(parts["outputs"], collected):
            self.set(out, _core.stack(each, 0))

    def _dynamic(self, block, parts):
        """A step for each place in sequences, over those that are long enough, the longest first."""
        from . import host_ops
        table = host_ops.rank_table(self.value(parts["inputs"][0][0]), 0)
        sources = [host_ops.to_array(self.value(of), table) for of, _ in parts["inputs"]]
        fixed = [host_ops.reorder(self.value(of), table) for of, _ in parts["fixed"]]
        memories = [self._first_memory(m, table) for m in parts["memories"]]
        collected = [[] for _ in parts["outputs"]]
        for i, first in enumerate(sources[0]):
            rows = first.shape[0]
            for (_, inside), source in zip(parts["inputs"], sources):
                self.set(inside, source[i])
            for (_, inside), value in zip(parts["fixed"], fixed):
                self.set(inside, host_ops.first_sequences(value, rows))
            for memory, value in zip(parts["memories"], memories):
                self.set(memory["inside"], value[:rows])
            self._run(block.steps)
            memories = [self.value(memory["after"]) for memory in parts["memories"]]
            for into, (inside, _) in zip(collected, parts["outputs"]):
                into.append(self.value(inside))
        for (_, out), each in zip(parts["outputs"], collected):
            self.set(out, host_ops.from_array(each, table))

    def _first_memory(self, memory, table):
        from . import host_ops
        if memory["first"] is None:
            return _core.full([len(table.items()), *memory["shape"]], memory["value"], memory["inside"].dtype)
        value = self.value(memory["first"])
        return host_ops.reorder(value, table) if memory["reorder"] else value
