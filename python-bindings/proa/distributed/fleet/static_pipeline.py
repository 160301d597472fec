"""strategy.pipeline of static programs: a program is cut at the borders of its operators' op_device (device_guard); each rank
keeps a stage, updates the stage's parameters with gradients that it has summed over micro-batches, and runs a schedule."""
from ... import _core
from ...autograd.guards import no_grad
from ...framework import mode
from ..group import get_rank, get_world_size
from ..sharding.clip import ModelSquares, clip_over_ranks, squares, summed
from .base.topology import CommunicateTopology, HybridCommunicateGroup
from .meta_parallel.p2p import Neighbors
from .meta_parallel.pipeline_schedule import steps_of

_ALONE = ("gradient_merge", "sharding", "fp16_allreduce", "tensor_parallel")


class StaticPipeline:
    """Another optimizer, whose operators are added for the parameters of this rank's stage only."""

    def __init__(self, optimizer, base, scaled, strategy):
        others = [name for name in _ALONE if strategy._message.get(name)]
        if others:
            raise ValueError(f"fleet.minimize: {others[0]} of the strategy does not go with pipeline; switch one of them off"
                             f"{' (accumulate_steps sums gradients)' if others[0] == 'gradient_merge' else ''}")
        self._optimizer, self._base, self._scaled, self._strategy = optimizer, base, scaled, strategy
        configs = strategy.pipeline_configs
        self.micro_batches, self.schedule = configs["accumulate_steps"], configs["schedule_mode"]
        self.micro_batch_size = configs["micro_batch_size"]

    def __getattr__(self, name):
        return getattr(self._optimizer, name)

    def minimize(self, loss, startup_program=None, parameter_list=None, no_grad_set=None):
        """Adds backward, sums of gradients and this stage's step, and cuts both programs; returns (operators, [(parameter,
        gradient)])."""
        from ...static.pipeline import Pipeline
        from ...static.program import default_startup_program, program_guard
        from ...static.stages import Stages
        from ...static.variable import program_of
        program, startup = program_of(loss), startup_program or default_startup_program()
        program._planned("pipeline")
        with program_guard(program, startup):
            pairs = self._optimizer.backward(loss, startup_program, parameter_list, no_grad_set)
            stages = Stages(program._core)
            hcg, stage = self._groups(stages.count)
            homes = stages.homes({p.name for p, _ in pairs})
            own = [pair for pair in pairs if homes[pair[0].name] == stage]
            if stages.count > 1:
                self._join_ranks(hcg, own, stage)
            operators = self._step(program, own, stage, hcg)
        steps = steps_of("fleet.minimize", self.schedule, stage, stages.count, self.micro_batches)
        recompute = self._strategy._message.get("recompute")
        checkpoints = set(self._strategy.recompute_configs["checkpoints"]) if recompute else None
        neighbors = Neighbors(hcg) if stages.count > 1 else None
        pipeline = program._pipeline = Pipeline(program, stage, self.micro_batches, steps, homes, neighbors, checkpoints)
        ring = hcg.get_pipe_parallel_group().id if hcg is not None else 0
        program._pipeline_opt = {
            "section_program": pipeline.section(ring), "pipeline_stage": stage, "num_pipeline_stages": stages.count,
            "inner_parallelism": stages.count, "num_microbatches": self.micro_batches, "micro_batch_size": self.micro_batch_size,
            "schedule_mode": self.schedule, "local_rank": get_rank()}
        self._start(startup, pipeline.needed, hcg)
        return operators, pairs

    def _groups(self, stages):
        """(groups, this rank's stage): the stages of a pipeline are neighboring ranks, and there are as many pipelines as fit."""
        ranks = get_world_size()
        if ranks % stages:
            raise ValueError(f"fleet.minimize: device_guard divides the program into {stages} stages, which {ranks} ranks are no multiple of; "
                             "start as many ranks as stages, or a multiple for data parallelism")
        if ranks == 1:
            return None, 0
        hcg = HybridCommunicateGroup(CommunicateTopology(["data", "pipe"], [ranks // stages, stages]))
        return hcg, hcg.get_stage_id()

    def _join_ranks(self, hcg, own, stage):
        """Makes the norm of all gradients, and whether they are finite, be over the stages."""
        group = hcg.get_pipe_parallel_group()
        if not own and (self._scaled is not None or self._base._grad_clip is not None):
            raise ValueError(f"fleet.minimize: stage {stage} has no trained parameter; with amp or grad_clip in the strategy each stage "
                             "needs one, as stages look at gradients together")
        clip_over_ranks(self._base, lambda pairs: summed(squares([g for _, g in pairs]), group), ModelSquares([p for p, _ in own]))
        if self._scaled is not None:
            self._scaled.agree = lambda found: _core.cast(_core.all_reduce(_core.cast(found, _core.int32), op="MAX", group=group.id),
                                                          found.dtype)

    def _step(self, program, own, stage, hcg):
        """Sums of gradients in every micro-batch; once a step their averages over micro-batches and pipelines, and the update."""
        from ...static.variable import make_persistable
        core, totals = program._core, []
        was = _core.set_op_device(f"gpu:{stage}")
        try:
            with mode.opened(core, 1), no_grad():
                for param, grad in own:
                    total = make_persistable(f"{param.name}@GRAD@MERGED", param.shape, grad.dtype, 0.0)
                    _core.assign_to(_core.add(total, grad), total)
                    totals.append(total)
            with mode.opened(core, 2), no_grad():
                merged = [(param, _core.scale(total, 1.0 / self.micro_batches)) for (param, _), total in zip(own, totals)]
            names = [_core.variable_name(core, grad) for _, grad in merged]
            operators = self._optimizer.apply_gradients(merged) if merged else []
            with mode.opened(core, 2), no_grad():
                for total in totals:
                    _core.assign_to(_core.full(total.shape, 0.0, total.dtype), total)
        finally:
            _core.set_op_device(was)
        if hcg is not None and hcg.get_data_parallel_world_size() > 1 and names:
            bucket = max(1, int(self._strategy._message.get("fuse_grad_size_in_MB") * (1 << 20)))
            _core.average_gradients(core, [core.find(name) for name in names], hcg.get_data_parallel_group()._handle, bucket)
        return operators

    @staticmethod
    def _start(startup, needed, hcg):
        """Keeps what gives this stage's persistables their values; random numbers of the others' are drawn all the same, so that
        a stage begins as in one process. Pipelines begin as the first one."""
        core = startup._core
        kept, wanted = [], set(needed)
        persistable = {name for name, _, persistable, *_ in core.vars(0) if persistable}
        for at, (_, _, _, reads, writes, repeatable) in reversed(list(enumerate(core.links()))):
            given = [name for name in writes if name in persistable]
            if any(name in wanted for name in writes) or not repeatable and not given:
                kept.append(at)
                wanted.update(reads)
        core.keep(sorted(kept))
        if hcg is not None and hcg.get_data_parallel_world_size() > 1:
            shared = [core.find(name) for name in sorted(needed) if name in persistable]
            with mode.opened(core), no_grad():
                for var in shared:
                    _core.broadcast_(var, src=0, group=hcg.get_data_parallel_group().id)
