"""A rank's stage of a program that device_guard divides: its section of the program, in Paddle's form, and running it by a
schedule of micro-batches. Messages are those of the eager pipeline (fleet.meta_parallel)."""
import weakref

from .. import _core
from .program import Program
from .stages import Stages, kind_of

_PLANS = 8  # prepared steps that a pipeline keeps


class Pipeline:
    """The stage of one rank. neighbors sends and receives (None: there is one stage), steps is the stage's schedule, homes say
    where parameters are updated, checkpoints (None: nothing is computed again) what backward need not compute anew."""

    def __init__(self, program, stage, micro_batches, steps, homes, neighbors, checkpoints):
        self._program = weakref.ref(program)
        self.stage, self.micro_batches, self.steps = stage, micro_batches, steps
        self.neighbors, self.checkpoints = neighbors, checkpoints
        self.stages = stages = Stages(program._core)
        self.shared = stages.shared(homes)
        self.before, self.after = stages.forward_border(stage - 1), stages.forward_border(stage)
        self.back_after, self.back_before = stages.backward_border(stage + 1), stages.backward_border(stage)
        self.needed = stages.needed(stage)
        self.most_held = self.most_bytes = 0  # the most micro-batches, and bytes, that waited for their backward
        self._plans = {}

    def section(self, group):
        """This stage's program, with send_v2 and recv_v2 at the borders."""
        stages, stage = self.stages, self.stage
        made = Program(self._program()._core.clone())
        made._take_parameters(self._program())
        core = made._core
        core.keep(sorted(op.at for kind in "FBO" for op in stages.of(kind, stage)))
        for names, kind, peer in ((self.before, "F", stage - 1), (self.back_after, "B", stage + 1)):
            for name in names:
                core.receive(name, _reader(core, name, kind), peer, group)
        for names, peer in ((self.after, stage + 1), (self.back_before, stage - 1)):
            for name in names:
                _send(core, name, max(i for i, link in enumerate(core.links()) if name in link[4]) + 1, peer, group)
        return made

    def plan(self, fetches, scope, passes):
        """A step that fetches these of the stage's variables."""
        key = (self._program()._core.version, tuple(fetches), id(scope), passes)
        found = self._plans.get(key)
        if found is None or not found.fits():
            found = self._plans[key] = _Step(self, self._program(), fetches, scope, passes)
            while len(self._plans) > _PLANS:
                self._plans.pop(next(iter(self._plans)))
        return found


def _reader(core, name, kind):
    """The first op that reads a variable, or, of one that only passes through, the first op of its kind."""
    links = core.links()
    return next((i for i, link in enumerate(links) if name in link[3]),
                next((i for i, link in enumerate(links) if kind_of(link[1]) == kind), 0))


def _send(core, name, before, peer, group):
    links = core.links()
    like = links[before - 1]
    was, role = _core.set_op_device(like[2]), core.set_role(like[1])
    try:
        _core.append(core, "send_v2", {"X": [name]}, {}, {"peer": peer, "ring_id": group}, before if before < len(links) else -1)
    finally:
        core.set_role(role)
        _core.set_op_device(was)


class _Part:
    """Some of a stage's ops as a program of its own: what it reads that it does not make goes in, `results` come out."""

    def __init__(self, program, ops, results, scope, passes):
        from .executor import _Plan
        core = program._core.clone()
        core.keep([op.at for op in ops])
        made = {name for op in ops for name in op.writes}
        self.results = [name for name in results if name in made]
        core.set_outputs([core.find(name) for name in self.results])
        core.prune()
        read = {name for link in core.links() for name in link[3]}
        self.inputs = [name for name in core.inputs if name in read]
        self._empty = not core.ops(0)
        if not self._empty:
            self._plan = _Plan(Program(core), self.inputs, {}, {}, self.results, scope, False, passes)

    def fits(self):
        return self._empty or self._plan.fits()

    def run(self, values):
        """{name: tensor} of the results, of a dict of all that is known."""
        if self._empty:
            return {}
        made = self._plan.executor.run([values[name] for name in self._plan.core.inputs])
        return dict(zip(self._plan.outputs, made))


class _Step:
    """A batch: forwards and backwards in the order of the schedule, then the update."""

    def __init__(self, pipeline, program, fetches, scope, passes):
        self.pipeline, self.program, self.scope = pipeline, program, scope
        stages, stage = pipeline.stages, pipeline.stage
        forward, backward, update = (stages.of(kind, stage) for kind in "FBO")
        self.fetches = fetches
        values = [name for name in fetches if name not in stages.persistable]
        given = {*stages.fed, *pipeline.before}
        kept, again = self._saved(forward, backward, given)
        self.forward = _Part(program, forward, [*kept, *pipeline.after, *values], scope, passes)
        self.backward = _Part(program, again + backward, [*pipeline.back_before, *values], scope, passes)
        self.update = _Part(program, update, values, scope, passes)
        self.kept = [name for name in self.backward.inputs if name not in pipeline.back_after]
        self.fed = {name for part in (self.forward, self.backward) for name in part.inputs if name in stages.fed}
        self.held = 0  # bytes that wait for their backward
        if self.update.inputs:
            raise NotImplementedError(f"pipeline: the update reads {self.update.inputs[0]!r}, which is fed to every micro-batch")
        self.fetched_feeds = [name for name in fetches if name in stages.fed]

    def _saved(self, forward, backward, given):
        """(what the backward needs of the forward, the forward's ops that it runs again)."""
        pipeline, makers = self.pipeline, {name: op for op in forward for name in op.writes}
        made = {name for op in backward for name in op.writes}
        persistable = pipeline.stages.persistable
        wanted = [name for op in backward for name in op.reads if name not in made and name not in persistable]
        kept, again, seen = [], set(), set()
        while wanted:
            name = wanted.pop()
            if name in seen or name in pipeline.back_after:
                continue
            seen.add(name)
            op = makers.get(name)
            if op is not None and pipeline.checkpoints is not None and op.repeatable and name not in given and \
                    name not in pipeline.checkpoints:
                again.add(op.at)
                wanted += [read for read in op.reads if read not in persistable]
            else:
                kept.append(name)
        return kept, [op for op in forward if op.at in again]

    def fits(self):
        """Whether the scope still holds the tensors that were bound."""
        return all(part.fits() for part in (self.forward, self.backward, self.update))

    # ---- a batch

    def _micro_batches(self, feed):
        """[{name: tensor}] of a feed: a dict of whole batches, whose rows are divided, or a list of micro-batches."""
        from .executor import _Feed
        core, n = self.program._core, self.pipeline.micro_batches
        whole = [name for name in (feed[0] if isinstance(feed, list) else feed) if name in self.fed or name in self.fetched_feeds]
        missing = sorted(self.fed - set(whole))
        if missing:
            raise ValueError(f"Executor.run: stage {self.pipeline.stage} reads {missing[0]!r}, which is not fed")
        feeds = {name: _Feed(name, core.find(name)) for name in whole}
        if isinstance(feed, list):
            return [{name: feeds[name].take(one[name]) for name in whole} for one in feed]
        parts = [{} for _ in range(n)]
        for name in whole:
            value = feed[name]
            tensor = value if isinstance(value, _core.Tensor) else _core.to_tensor(
                value._value() if hasattr(value, "_value") else value, dtype=None if hasattr(value, "dtype") else feeds[name].dtype)
            if not tensor.ndim or tensor.shape[0] % n:
                raise ValueError(f"Executor.run: {name!r} of shape {tuple(tensor.shape)} cannot be divided into accumulate_steps = {n} "
                                 "micro-batches of equally many rows")
            rows = tensor.shape[0] // n
            for i, part in enumerate(parts):
                part[name] = feeds[name].take(tensor[i * rows:(i + 1) * rows])
        return parts

    def _share(self):
        """Persistables that another stage changes, as its last step left them."""
        for name, home, reader in self.pipeline.shared:
            if self.pipeline.stage == home:
                self.pipeline.neighbors.send_to(reader, [self.scope._find(name)])
        for name, home, reader in self.pipeline.shared:
            if self.pipeline.stage == reader:
                _core.assign_to(self.pipeline.neighbors.recv_from(home)[0], self.scope._find(name))

    def _forward(self, values):
        pipeline = self.pipeline
        if pipeline.before:
            values.update(zip(pipeline.before, pipeline.neighbors.recv_forward()))
        values.update(self.forward.run(values))
        if pipeline.after:
            pipeline.neighbors.send_forward([values[name] for name in pipeline.after])
        return values

    def _backward(self, values):
        pipeline = self.pipeline
        if pipeline.back_after:
            values.update(zip(pipeline.back_after, pipeline.neighbors.recv_backward()))
        made = self.backward.run(values)
        if pipeline.back_before:
            pipeline.neighbors.send_backward([made[name] if name in made else values[name] for name in pipeline.back_before])
        return made

    def _bytes(self, values):
        return sum(int(t.size) * t.element_size() for name, t in values.items() if name not in self.fed)

    def run(self, feed, return_numpy):
        """One step; the values of fetches that this stage has."""
        pipeline, micro, waiting, found = self.pipeline, self._micro_batches(feed), {}, {}
        self._share()
        for kind, index, _ in pipeline.steps:
            if kind == "F":
                values = self._forward(micro[index])
                self._note(found, index, values)
                waiting[index] = {name: values[name] for name in self.kept}
                micro[index] = None
                self.held += self._bytes(waiting[index])
                pipeline.most_held = max(pipeline.most_held, len(waiting))
                pipeline.most_bytes = max(pipeline.most_bytes, self.held)
            else:
                values = waiting.pop(index)
                self.held -= self._bytes({name: values[name] for name in self.kept})
                self._note(found, index, self._backward(values))
        if pipeline.neighbors is not None:
            pipeline.neighbors.finish()
        updated = self.update.run({})
        results = [self._joined(name, found.get(name), updated) for name in self.fetches]
        return [r.numpy() for r in results] if return_numpy else [_in_scope(r) for r in results]

    def _note(self, found, index, values):
        for name in self.fetches:
            if name in values:
                found.setdefault(name, {})[index] = values[name]

    def _joined(self, name, by_index, updated):
        """The value that one run on the whole batch would give: the mean of numbers, the rows of all micro-batches."""
        if name in updated:
            return updated[name]
        if by_index is None:
            return self.scope._find(name).clone()
        parts = [by_index[i] for i in sorted(by_index)]
        if parts[0].is_floating_point() and all(t.size == 1 for t in parts):
            total = parts[0]
            for part in parts[1:]:
                total = _core.add(total, part)
            return _core.scale(total, 1.0 / len(parts))
        return _core.concat(parts) if parts[0].ndim else parts[-1]


def _in_scope(tensor):
    from .scope import ScopeTensor
    return ScopeTensor(tensor)


def prepared(program, fetches, scope, passes, given):
    """(the step, its feed) of a run of a program that is a pipeline: values that its loaders give are micro-batches."""
    pipeline = program._pipeline
    names = [name for name in fetches if isinstance(name, str) and _has(pipeline, name)]
    feed = given
    if program._loaders:
        feed = [{**given, **program._next_feed()} for _ in range(pipeline.micro_batches)]
    return pipeline.plan(names, scope, passes), feed


def _has(pipeline, name):
    """Whether a stage has a variable's values: it makes, gets or is fed them, or keeps the persistable."""
    stages = pipeline.stages
    made = {n for kind in "FBO" for op in stages.of(kind, pipeline.stage) for n in op.writes}
    return name in made or name in pipeline.needed or name in pipeline.before or name in stages.fed
