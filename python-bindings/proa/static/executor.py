"""Executor: runs a program on fed values, with the persistable variables of a scope. What a run needs is prepared
once for each program version, set of feeds and set of fetches."""
import time
import warnings
from collections import OrderedDict

from .. import _core
from ..framework.dtype import dtype_name
from . import scope as _scope
from .backward import gradient_of, reshape
from .late import LatePlan
from .pipeline import prepared as pipelined
from .places import set_device
from .program import Program, default_main_program
from .scope import ScopeTensor
from .variable import true_name

__all__ = ["Executor"]

_PLANS = 32  # prepared runs that an executor keeps


def _reads_and_writes(core):
    """(persistables read before any operator wrote them, persistables written), by name, of the global block."""
    persistable = {name for name, _, is_persistable, *_ in core.vars(0) if is_persistable}
    first, written = set(), set()
    for wire in core_ops(core):
        for _, inputs, outputs, *_ in wire:
            first.update(n for names in inputs.values() for n in names if n in persistable and n not in written)
            written.update(n for names in outputs.values() for n in names if n in persistable)
    return first, written


def core_ops(core):
    """The wire operators of every block, inner blocks as if they stood at the end."""
    for block in range(core.blocks()):
        yield from _core.describe(core, block)


def _is_made(core, name):
    """Whether an operator makes a variable of that name, which is none of the persistables."""
    return core.find(name) is not None and not _core.is_declared(core, name) and name not in core.inputs and \
        all(name != entry[0] or not entry[2] for entry in core.vars(0))


def _results_of_calls(core):
    """Results of operators that call Python: fetched, so that those are never left out."""
    if all(name != "host_call" for name, _ in core.ops(0)):
        return []
    return [name for wire in _core.describe(core, 0) for kind, _, outputs, *_ in wire if kind == "host_call"
            for name in outputs.get("out", [])]


class _Plan:
    """One program version with its feeds and fetches, bound to one scope."""

    def __init__(self, program, feeds, lods, shapes, fetches, scope, prune, passes):
        self.program, self.scope = program, scope
        core = self.core = program._core.clone()
        if shapes:
            reshape(core, [(name, *change) for name, change in shapes.items()], program._backwards)
        self.feeds = [_Feed(name, core.find(name)) for name in feeds]
        # a fed tensor's sequences are inputs of their own, and so are those of what is fetched
        self.fed_lods = [(name, level, var) for name, var in ((f.name, f.var) for f in self.feeds) if lods.get(name)
                         for level, var in enumerate(_core.variable_lod(var, core))]
        persistable = program._persistables()
        # a fetched persistable is read from the scope after the run, a plain tensor is there; the others are outputs
        calls = [] if prune else _results_of_calls(core)
        self.outputs = [name for name in dict.fromkeys(fetches)
                        if isinstance(name, str) and name not in persistable]
        self.outputs += [name for name in calls if name not in self.outputs] if self.outputs else []
        self.fetched_lods = {name: [_core.variable_name(core, v) for v in _core.variable_lod(core.find(name), core)]
                             for name in self.outputs if core.find(name) is not None}
        self.outputs += dict.fromkeys(lod for lods in self.fetched_lods.values() for lod in lods
                                      if lod not in self.outputs)
        self.kept = [name for name in sorted(program._kept) if name not in feeds and _is_made(core, name)]
        self.outputs += [name for name in self.kept if name not in self.outputs]
        found = [(name, core.find(name)) for name in self.outputs]
        for name, var in found:
            if var is None:
                raise ValueError(f"Executor.run: there is no variable {name!r} in the program to fetch")
        self.fetches = fetches
        self.first, self.written = _reads_and_writes(core)
        self.prune = prune
        self.bound = {}
        self._bind(persistable)
        core.set_inputs([f.var for f in self.feeds] + [var for *_, var in self.fed_lods])
        core.set_outputs([var for _, var in found])
        self.executor = _core.Executor(core, prune=prune, passes=passes)
        self.runs = 0
        # where each fetched value is among the outputs, if all are plain ones
        plain = all(isinstance(f, str) and f in self.outputs for f in fetches) and not any(self.fetched_lods.values())
        self.places = [self.outputs.index(f) for f in fetches] if plain else None

    def _bind(self, persistable):
        self.generation = None
        missing = []
        for name, (shape, dtype) in persistable.items():
            value = self.scope._find(name)
            if value is None and self.program._core.value(name) is not None:
                continue  # a constant that the program brought with it
            if name in self.written and name not in self.first and not _holds(value, shape, dtype):
                value = _core.full(shape, 0, dtype)
                self.scope.var(name).hold(value)
            if value is None:
                if name in self.first and not self.prune:
                    missing.append(name)
                continue
            self.core.bind(name, value)
            self.bound[name] = value
        if missing:
            known = self.program._parameters
            tables = any(getattr(known.get(name), "table_kind", None) for name in missing)
            raise RuntimeError(f"Executor.run: the scope has no value of {', '.join(map(repr, sorted(missing)[:5]))}"
                               f"{' and others' if len(missing) > 5 else ''}: run the startup program first"
                               f"{'; a table on servers is read by the program of fleet.utils.DistributedInfer' if tables else ''}")
        self.generation = self.scope._generation()

    def fits(self):
        """Whether the scope still holds the tensors that were bound."""
        generation = self.scope._generation()
        if generation != self.generation:
            if any(self.scope._find(name) is not value for name, value in self.bound.items()):
                return False
            self.generation = generation
        return True

    def is_done(self):
        """Whether it ran once, for what it makes, as startup programs do: nothing goes in or out."""
        return self.runs == 1 and not self.feeds and not self.outputs

    def run(self, feed, return_numpy):
        self.runs += 1
        inputs = [f.take(feed[f.name]) for f in self.feeds]
        inputs += [_core.to_tensor(feed[name].lod()[level], dtype="int64") for name, level, _ in self.fed_lods]
        made = self.executor.run(inputs)
        for name in self.kept:
            self.scope.var(name).hold(made[self.outputs.index(name)])
        if self.places is not None and return_numpy:
            return [made[i].numpy() for i in self.places]
        results = dict(zip(self.outputs, made))
        found = [ScopeTensor(results[name], lod=[results[n].tolist() for n in self.fetched_lods.get(name, ())])
                 if name in results else ScopeTensor(self._persistable(name)) for name in self.fetches]
        return [_as_array(r) for r in found] if return_numpy else found

    def _persistable(self, name):
        if isinstance(name, _core.Tensor):
            return name
        value = self.scope._find(name)
        if value is None:
            value = self.program._core.value(name)
        if value is None:
            raise ValueError(f"Executor.run: {name!r} has no value to fetch")
        return value.clone()


def _holds(value, shape, dtype):
    """Whether a scope's tensor can take what a program writes to a variable."""
    return value is not None and value.dtype == dtype and value.ndim == len(shape) and \
        all(a == b or b < 0 for a, b in zip(value.shape, shape))


class _Feed:
    """A fed variable: takes values of its dtype and shape."""

    def __init__(self, name, var):
        self.name, self.var, self.dtype, self.shape = name, var, var.dtype, list(var.shape)
        self.seen = None  # the last shape that fitted

    def take(self, value):
        """A fed value as a tensor: on its own memory where that fits, for it is read before run returns."""
        tensor = _core.feed(value, self.var)
        return self._convert(value) if tensor is None else tensor

    def _convert(self, value):
        if isinstance(value, ScopeTensor):
            value = value._value()
        plain = isinstance(value, (list, tuple, int, float, bool))
        tensor = value if isinstance(value, _core.Tensor) else _core.to_tensor(value, dtype=self.dtype if plain else None)
        shape = tensor.shape
        if shape != self.seen:
            if len(shape) != len(self.shape) or any(a >= 0 and a != b for a, b in zip(self.shape, shape)):
                raise ValueError(f"Executor.run: the fed variable {self.name!r} should have shape {tuple(self.shape)}, "
                                 f"got {tuple(shape)}")
            self.seen = shape
        if tensor.dtype != self.dtype:
            raise ValueError(f"Executor.run: the data type of fed variable {self.name!r} must be "
                             f"{dtype_name(self.dtype)}, got {dtype_name(tensor.dtype)}")
        return tensor


class _Again:
    """The last call of run: one with the same program, names and fetches needs no preparation."""

    def __init__(self, program, feed, fetch_list, scope, prune, plan):
        self.program, self.names, self.fetches, self.scope, self.prune = program, list(feed), fetch_list, scope, prune
        self.plan, self.core, self.version = plan, plan.program._core, plan.program._core.version

    @staticmethod
    def can(program, feed, fetch_list):
        """Whether a call says all that its plan depends on, and nothing that may be changed later."""
        return program is not None and type(feed) is dict and type(fetch_list) is list and all(
            type(name) is str for name in feed) and all(isinstance(f, (str, _core.Tensor)) for f in fetch_list)

    def is_this(self, program, feed, fetch_list, scope, prune):
        if program is not self.program or scope is not self.scope or prune != self.prune or type(feed) is not dict or \
                type(fetch_list) is not list or len(fetch_list) != len(self.fetches) or list(feed) != self.names:
            return False
        for a, b in zip(fetch_list, self.fetches):
            if a is not b:
                return False
        for value in feed.values():
            if type(value) is ScopeTensor:  # may carry sequences
                return False
        return self.core.version == self.version and self.plan.fits()


def _levels(program, name, value):
    """The number of sequence levels of a fed value: none, or as many as the variable has."""
    found = len(value.lod()) if isinstance(value, ScopeTensor) else 0
    wanted = len(_core.variable_lod(program._core.find(name), program._core))
    if not wanted:
        return 0
    if found and found != wanted:
        raise ValueError(f"Executor.run: the fed variable {name!r} has lod_level {wanted}, and the fed tensor's lod "
                         f"has {found} levels")
    if found and not value.has_valid_recursive_sequence_lengths():
        raise ValueError(f"Executor.run: the lod {value.lod()} fed with {name!r} does not fit {value.shape()[0]} rows")
    return found


def _other_shape(var, value):
    """[(shape, dtype)] of a fed value that has others than the variable."""
    if isinstance(value, ScopeTensor):
        value = value._value()
    if not hasattr(value, "shape"):
        import numpy
        value = numpy.asarray(value)
        dtype = dtype_name(var.dtype)  # numbers take the variable's
    else:
        dtype = str(value.dtype).removeprefix("paddle.")
    found, declared = tuple(value.shape), var.declared_shape
    fits = len(found) == len(declared) and all(a < 0 or a == b for a, b in zip(declared, found))
    same = dtype in (dtype_name(var.dtype), "uint16")  # bfloat16 as NumPy holds it
    if not fits and found and declared and declared[0] < 0:
        found = (-1, *found[1:])
    return [] if fits and same else [(tuple(declared) if fits else found, dtype_name(var.dtype) if same else dtype)]


def _as_array(result):
    if result.lod():
        raise RuntimeError("Executor.run: a fetched tensor has sequences (lod), which an array cannot hold: call run "
                           "with return_numpy=False")
    return result.numpy()


class Executor:
    """Runs programs.

    >>> import proa as paddle
    >>> paddle.enable_static()
    >>> main, startup = paddle.static.Program(), paddle.static.Program()
    >>> with paddle.static.program_guard(main, startup):
    ...     x = paddle.static.data("x", [None, 2])
    ...     y = (x * 3.0).sum()
    >>> exe = paddle.static.Executor(paddle.CPUPlace())
    >>> float(exe.run(main, feed={"x": [[1.0, 2.0]]}, fetch_list=[y])[0])
    9.0
    >>> paddle.disable_static()
    """

    def __init__(self, place=None):
        if place is not None and not isinstance(place, (str, _core.Place)):
            raise ValueError(f"Executor: place must be a place or a string such as 'gpu:0', got {place!r}")
        self.place = place or _core.current_place()
        self._plans = OrderedDict()
        self._last = None
        self._closed = False

    def close(self):
        """Forgets what was prepared; the executor runs nothing any more."""
        self._plans.clear()
        self._last = None
        self._closed = True

    def flush(self):
        """Nothing is kept back."""

    def split_program_by_device(self, program):
        """The one region of a program's forward that device_guard puts on another device than the CPU: [first operator, last
        operator, names that it sends on, names that it receives, its program]; None if there is none."""
        from .regions import split
        return split(program)

    def run(self, program=None, feed=None, fetch_list=None, feed_var_name="feed", fetch_var_name="fetch", scope=None,
            return_numpy=True, use_program_cache=False, use_prune=False, return_merged=True):
        """Runs program (default: the main program) on feed, {name: value}; returns the values of fetch_list.

        Every operator runs unless use_prune leaves out what fetch_list does not need.
        """
        if self._closed:
            raise RuntimeError("Executor.run: the executor is closed")
        scope = _scope.global_scope() if scope is None else scope
        device, recording, was = _core.get_device(), _core.set_recording(False), _core.program_open(None)
        try:
            set_device(self.place)
            last = self._last
            if last is not None and last.is_this(program, feed, fetch_list, scope, use_prune):
                plan = last.plan
            else:
                plan, feed = self._prepare(program, feed, fetch_list, scope, use_prune)
            if plan.program.lr_scheduler is not None:
                _set_rate(plan.program, scope)
            if plan.program._seed:
                results = _seeded(plan.program, lambda: plan.run(feed, return_numpy))
            else:
                results = plan.run(feed, return_numpy)
            if plan.program._after_run is not None:
                plan.program._after_run(scope)
            return results
        finally:
            _core.program_open(was)
            _core.set_recording(recording)
            _core.set_device(device)

    def _prepare(self, given, feed, fetch_list, scope, use_prune):
        program, passes = _unwrapped(given)
        simple = _Again.can(given, feed, fetch_list) and not program._loaders
        if program._pipeline is not None:
            self._last = None
            return pipelined(program, self._fetch_names(program, fetch_list), scope, passes, _one_feed(feed))
        feed = {**_one_feed(feed), **program._next_feed()}
        feed = _with_kept(program, feed, scope)
        if program._late is not None:
            self._last = None
            return LatePlan(program, self._fetch_names(program, fetch_list), scope), feed
        plan = self._plan(program, feed, self._fetch_names(program, fetch_list), scope, use_prune, passes)
        known = simple and not program._any_shape and len(feed) == len(plan.feeds) and not plan.fed_lods
        self._last = _Again(given, feed, list(fetch_list), scope, use_prune, plan) if known else None
        return plan, feed

    def train_from_dataset(self, program=None, dataset=None, scope=None, thread=0, debug=False, fetch_list=None,
                           fetch_info=None, print_period=100, fetch_handler=None):
        """Runs program on every batch of a dataset (paddle.distributed.QueueDataset or InMemoryDataset), one after the
        other; prints the values of fetch_list every print_period batches, or hands them to fetch_handler.handler."""
        self._from_dataset("train_from_dataset", program, dataset, scope, fetch_list, fetch_info, print_period,
                           fetch_handler)

    def infer_from_dataset(self, program=None, dataset=None, scope=None, thread=0, debug=False, fetch_list=None,
                           fetch_info=None, print_period=100, fetch_handler=None):
        """As train_from_dataset: whether anything is trained is the program's affair."""
        self._from_dataset("infer_from_dataset", program, dataset, scope, fetch_list, fetch_info, print_period,
                           fetch_handler)

    def start_heter_trainer(self, program=None, scope=None, debug=False, fetch_list=None, fetch_info=None,
                            print_period=100, fetch_handler=None):
        """Not there: programs are not divided between kinds of workers."""
        raise NotImplementedError("Executor.start_heter_trainer: heterogeneous workers are missing; run the whole program "
                                  "with Executor.run or train_from_dataset")

    def _from_dataset(self, who, program, dataset, scope, fetch_list, fetch_info, print_period, handler):
        if not hasattr(dataset, "_batches"):
            raise ValueError(f"Executor.{who}: dataset must be a QueueDataset or an InMemoryDataset, got "
                             f"{type(dataset).__name__}")
        fetches = list(fetch_list or [])
        titles = list(fetch_info or [f if isinstance(f, str) else f.name for f in fetches])
        if len(titles) != len(fetches):
            raise ValueError(f"Executor.{who}: fetch_info has {len(titles)} entries, fetch_list {len(fetches)}")
        for number, feed in enumerate(dataset._batches(), 1):
            results = self.run(program, feed, fetches, scope=scope, return_numpy=False)
            if fetches and number % print_period == 0:
                if handler is not None:
                    handler.handler(dict(zip(titles, [r.numpy() for r in results])))
                else:
                    print(f"time: [{time.strftime('%F %T')}], batch: [{number}], " +
                          ", ".join(f"{t}:{r.numpy()}" for t, r in zip(titles, results)), flush=True)

    def _plan(self, program, feed, fetches, scope, prune, passes):
        names = []
        inputs = set(program._core.inputs)
        for name in feed:
            if name in inputs or program._core.find(name) is not None:
                names.append(name)
            else:
                warnings.warn(f"The variable {name} is not found in program. It is not declared or is pruned.",
                              stacklevel=4)
        lods = {name: _levels(program, name, feed[name]) for name in names}
        shapes = {name: shape for name in names if name in program._any_shape
                  for shape in _other_shape(program._core.find(name), feed[name])}
        key = (id(program), program._core.version, tuple(lods.items()), tuple(shapes.items()), len(program._kept),
               tuple(f if isinstance(f, str) else id(f) for f in fetches), id(scope), prune, passes)
        plan = self._plans.get(key)
        if plan is None or plan.program is not program or plan.scope is not scope or not plan.fits():
            for done in [k for k, p in self._plans.items() if p.is_done()]:
                del self._plans[done]  # the memory that it worked in is free
            plan = self._plans[key] = _Plan(program, names, lods, shapes, fetches, scope, prune, passes)
            while len(self._plans) > _PLANS:
                self._plans.popitem(last=False)
        self._plans.move_to_end(key)
        return plan

    @staticmethod
    def _fetch_names(program, fetch_list):
        if fetch_list is None:
            return []
        if not isinstance(fetch_list, (list, tuple)):
            fetch_list = [fetch_list]
        names = []
        for item in fetch_list:
            names += Executor._fetch_names(program, item) if isinstance(item, (list, tuple)) else \
                [item if Executor._is_plain(program, item) else true_name(program._core, item)]
        for name in names:
            if isinstance(name, str) and name.endswith("@GRAD") and program._core.find(name) is None:
                gradient_of(program, name)
        return [program._rewritten.get(name, name) if isinstance(name, str) else name for name in names]

    @staticmethod
    def _is_plain(program, item):
        """A tensor that belongs to no program: it is its own value."""
        return isinstance(item, _core.Tensor) and not item.is_symbolic and \
            _core.variable_name(program._core, item) is None


def _unwrapped(program):
    """The Program itself, and which passes to run ("" none, None all)."""
    from .compiler import CompiledProgram
    if program is None:
        program = default_main_program()
    if isinstance(program, CompiledProgram):
        return program._program, program._passes()
    if not isinstance(program, Program):
        raise TypeError(f"Executor.run: program must be a Program or a CompiledProgram, got {type(program).__name__}")
    return program, ""


def _with_kept(program, feed, scope):
    """The feed of a run. A fed variable that is marked persistable stays in the scope, from where later runs take it; one
    that is persistable in the program is written there."""
    persistable, inputs = program._persistables(), program._core.inputs
    kept = {}
    for name, value in feed.items():
        if name in persistable or name in program._kept:
            held = ScopeTensor(owner=scope.var(name))
            held.set(value)
            held.set_lod(value.lod() if isinstance(value, ScopeTensor) else [])
            kept[name] = value
    feed = {name: value for name, value in feed.items() if name not in kept}
    for name in inputs:
        if name not in feed and name not in persistable and (held := scope.find_var(name)) is not None and \
                held.value is not None:
            feed[name] = ScopeTensor(owner=held)
    return feed


def _one_feed(feed):
    if feed is None:
        return {}
    if isinstance(feed, (list, tuple)):
        if len(feed) != 1:
            raise ValueError("Executor.run: this build has one device, so a list of feeds has one entry, got "
                             f"{len(feed)}")
        feed = feed[0]
    if not isinstance(feed, dict):
        raise TypeError(f"Executor.run: feed must be a dict, got {type(feed).__name__}")
    return {name if isinstance(name, str) else name.name: value for name, value in feed.items()}


def _set_rate(program, scope):
    """The scheduler's learning rate goes where the program reads it."""
    if program.lr_var_name is None:
        return
    found = scope.find_var(program.lr_var_name)
    if found is not None and found.value is not None:
        found.value.set_value(_core.full(found.value.shape, float(program.lr_scheduler()), found.value.dtype))


def _seeded(program, run):
    """Runs with the program's own random numbers: it has a seed."""
    before = _core.get_rng_state()
    if program._rng is None:
        _core.seed(program._seed & (2 ** 64 - 1))
    else:
        _core.set_rng_state(program._rng)
    try:
        return run()
    finally:
        program._rng = _core.get_rng_state()
        _core.set_rng_state(before)
