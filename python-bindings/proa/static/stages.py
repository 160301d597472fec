"""The stages of a program, by the op_device of its operators: which stage runs each op, what goes over the borders between
stages, and which persistables several stages share."""
import re

_INDEX = re.compile(r"[a-z_]+:(\d+)")


def kind_of(role):
    """"F" of a forward op, "B" of a backward one, "O" of one that runs once a step: updates, learning-rate schedules."""
    return "B" if role & 1 else "O" if role & (2 | 16) else "F"


class Op:
    """One op of the core's program: its number, kind, stage (None: none is known), reads and writes."""

    def __init__(self, at, link):
        self.at, self.name, self.device = at, link[0], link[2]
        self.kind, self.reads, self.writes, self.repeatable = kind_of(link[1]), link[3], link[4], link[5]
        index = _INDEX.fullmatch(self.device)
        self.stage = int(index[1]) if index else None


class Stages:
    """The ops of each stage of a program, and its messages. core: the core's program, with its backward."""

    def __init__(self, core):
        self.ops = [Op(at, link) for at, link in enumerate(core.links())]
        self.persistable = {name for name, _, persistable, *_ in core.vars(0) if persistable}
        self.fed = set(core.inputs)
        numbers = {op.stage for op in self.ops if op.kind == "F" and op.stage is not None}
        if not numbers:
            raise ValueError("pipeline: no operator has a stage; build each part of the model under paddle.static.device_guard('gpu:N')")
        self.count = max(numbers) + 1
        missing = sorted(set(range(self.count)) - numbers)
        if missing:
            raise ValueError(f"pipeline: no operator is on stage {missing[0]}; number the stages of device_guard from 0 to {self.count - 1} "
                             "without a gap")
        self.makers = {name: op for op in self.ops if op.kind != "O" for name in op.writes if name not in self.persistable}
        self._forwards()
        self._backwards()
        self._check()

    def of(self, kind, stage):
        """The ops of a kind that a stage runs, in order. Those that run once a step are each rank's own."""
        return [op for op in self.ops if op.kind == kind and (kind == "O" or op.stage == stage)]

    # ---- a stage for every op

    def _made(self, op, kind):
        """The stages of the ops of a kind that make what op reads."""
        makers = [self.makers[name] for name in op.reads if name in self.makers]
        return [maker.stage for maker in makers if maker.kind == kind and maker.stage is not None]

    def _from_readers(self, ops, fallback):
        """Ops that read nothing of a stage are where they are read first."""
        readers = {}
        for op in self.ops:
            for name in op.reads:
                if op.stage is not None:
                    readers.setdefault(name, []).append(op.stage)
        for op in reversed(ops):
            if op.stage is None:
                stages = [stage for name in op.writes for stage in readers.get(name, ())]
                op.stage = min(stages) if stages else fallback
                for name in op.reads:
                    readers.setdefault(name, []).append(op.stage)

    def _forwards(self):
        """An op without a stage is at the last of the stages whose results it reads."""
        forward = [op for op in self.ops if op.kind == "F"]
        for op in forward:
            if op.stage is None:
                op.stage = max(self._made(op, "F"), default=None)
        self._from_readers(forward, 0)

    def _backwards(self):
        """A gradient's op is at its forward op's stage, or at the first of the stages whose gradients it reads, if that is
        earlier: sums of what several stages send back."""
        backward = [op for op in self.ops if op.kind == "B"]
        for op in backward:
            stages = self._made(op, "B") + ([] if op.stage is None else [op.stage])
            op.stage = min(stages, default=max(self._made(op, "F"), default=None))
        self._from_readers(backward, self.count - 1)

    def _check(self):
        for op in self.ops:
            for maker in (self.makers.get(name) for name in op.reads):
                if maker is None or op.kind == "B" and maker.kind == "B":
                    continue
                if op.kind != "B" and maker.kind == "B" or op.kind == "O":
                    raise NotImplementedError(f"pipeline: {op.name} reads what {maker.name} makes in every micro-batch; a pipeline's step "
                                              "runs once for all of them")
                if maker.stage > op.stage:
                    raise ValueError(f"pipeline: {op.name} on stage {op.stage} reads what {maker.name} makes on stage {maker.stage}; "
                                     "operators must be on stages in the order in which they are built")

    # ---- what stages exchange

    def _reach(self, kind, furthest):
        """name → (stage that makes it, the furthest that reads it) of variables that other stages read."""
        found = {}
        for op in self.ops:
            for name in op.reads:
                maker = self.makers.get(name)
                if maker is not None and maker.kind == kind and op.kind != "O":
                    far = furthest(found.get(name, (0, maker.stage))[1], op.stage)
                    found[name] = (maker.stage, far)
        return {name: ends for name, ends in found.items() if ends[0] != ends[1]}

    def forward_border(self, stage):
        """Names of what goes from a stage to the next, in every micro-batch's forward: through stages that do not read it, too."""
        return sorted(name for name, (made, far) in self._reach("F", max).items() if made <= stage < far)

    def backward_border(self, stage):
        """Names of what goes from a stage to the one before."""
        return sorted(name for name, (made, far) in self._reach("B", min).items() if far < stage <= made)

    def homes(self, names):
        """parameter → the first stage that reads it: where it is updated."""
        found = {}
        for op in self.ops:
            for name in op.reads:
                if op.kind == "F" and name in names:
                    found[name] = min(found.get(name, op.stage), op.stage)
        return found

    def shared(self, homes):
        """[(persistable, the stage that changes it, another that reads it)]: sent before each step."""
        written = {name: {stage} for name, stage in homes.items()}
        for op in self.ops:
            for name in op.writes:
                if op.kind != "O" and name in self.persistable:
                    written.setdefault(name, set()).add(op.stage)
        for name, stages in written.items():
            if len(stages) > 1:
                raise ValueError(f"pipeline: stages {sorted(stages)} write {name!r}; a persistable variable may change on one stage")
        reads = {(name, op.stage) for op in self.ops if op.kind != "O" for name in op.reads if name in written}
        return sorted((name, home, reader) for name, reader in reads for home in written[name] if home != reader)

    def needed(self, stage):
        """The persistables that a stage reads or writes."""
        return {name for kind in "FBO" for op in self.of(kind, stage) for name in (*op.reads, *op.writes) if name in self.persistable}
