"""Sharding of static programs (ZeRO, Rajbhandari et al. 2020, arXiv 1910.02054): each rank updates its own parameters, whose
optimizer states it alone has, and sends them out."""
from ... import _core
from ...autograd.guards import no_grad
from ...fluid.transpiler.collective import GradAllReduce
from ...framework import mode
from ..group import get_rank, get_world_size, new_group, world
from ..sharding.clip import ModelSquares, clip_over_ranks, squares, summed
from ..sharding.group_sharded import deal_out


def _groups(configs):
    """(sharding group, data group) of this rank: sharding groups are neighbors."""
    divided, copies, ranks = configs["sharding_degree"], configs["dp_degree"], get_world_size()
    for name in ("mp_degree", "pp_degree"):
        if configs[name] > 1:
            raise NotImplementedError(f"fleet.minimize: {name} of sharding_configs does not transform static programs; set it to 1, or "
                                      "train eagerly")
    if configs["gradient_merge_acc_step"] > 1:
        raise ValueError("fleet.minimize: gradient_merge_acc_step of sharding_configs is the k_steps of gradient_merge here; set it there")
    if configs["stage"] not in (1, 2):
        raise ValueError(f"fleet.minimize: stage of sharding_configs must be 1 or 2 in static programs, got {configs['stage']}")
    if divided * copies != ranks:
        raise ValueError(f"fleet.minimize: sharding_degree {divided} · dp_degree {copies} of sharding_configs make {divided * copies} "
                         f"processes, there are {ranks}; set them so that their product is that")
    if copies == 1:
        return world(), None
    rows = [new_group(list(range(at, at + divided))) for at in range(0, ranks, divided)]
    columns = [new_group(list(range(at, ranks, divided))) for at in range(divided)]
    return rows[get_rank() // divided], columns[get_rank() % divided] if divided > 1 else world()


class StaticSharding:
    """Another optimizer, whose operators are added for this rank's parameters only; every rank then has the owner's values."""

    def __init__(self, optimizer, base, scaled, configs):
        self._optimizer, self._base, self._scaled, self.stage = optimizer, base, scaled, configs["stage"]
        self.group, self.data_group = _groups(configs)
        self.owners = {}  # by parameter's name: a rank of the group
        self.shared = []  # names of persistables that all ranks have

    def __getattr__(self, name):
        return getattr(self._optimizer, name)

    def minimize(self, loss, startup_program=None, parameter_list=None, no_grad_set=None):
        """Adds backward, this rank's part of the step and messages of parameters; returns (operators, [(parameter, gradient)])."""
        from ...static.program import default_startup_program, program_guard
        from ...static.variable import program_of
        program = program_of(loss)
        with program_guard(program, startup_program or default_startup_program()):
            pairs = self._optimizer.backward(loss, startup_program, parameter_list, no_grad_set)
            params, ranks = [p for p, _ in pairs], self.group.nranks
            if len(params) < ranks:
                raise ValueError(f"fleet.minimize: sharding deals {len(params)} parameters to {ranks} ranks; set a smaller sharding_degree")
            self.owners = {p.name: owner for p, owner in zip(params, deal_out(params, ranks))}
            self.shared = [v.name for v in program.list_vars() if v.persistable]
            if ranks > 1:
                self._join_ranks(params)
            operators = self._optimizer.apply_gradients([pair for pair in pairs if self.owners[pair[0].name] == self.group.rank])
            if ranks > 1:
                with mode.opened(program._core, 2), no_grad():
                    for param in params:
                        _core.broadcast_(param, src=self.owners[param.name], group=self.group.id)
        return operators, pairs

    def master_weights(self):
        """The float32 twins of this rank's half parameters, by the parameters' names."""
        return self._base._master_weights

    def _join_ranks(self, params):
        """Makes the norm of all gradients, and whether they are finite, be over the ranks."""
        clip_over_ranks(self._base, lambda pairs: summed(squares([g for _, g in pairs]), self.group), ModelSquares(params))
        if self._scaled is not None:
            self._scaled.agree = lambda found: _core.cast(_core.all_reduce(_core.cast(found, _core.int32), op="MAX", group=self.group.id),
                                                          found.dtype)


class ShardedReduce(GradAllReduce):
    """Averages gradients over all ranks (stage 1), or makes each average on the ranks that own its parameter (stage 2)."""

    def __init__(self, sharding, fuse_grad_size_in_MB):
        super().__init__(fuse_grad_size_in_MB=fuse_grad_size_in_MB)
        self._sharding = sharding

    def _shared(self, main):
        return self._sharding.shared

    def _start(self, startup, main):
        super()._start(startup, main)
        with mode.opened(startup._core), no_grad():
            for name, master in self._sharding.master_weights().items():
                _core.assign_to(_core.cast(startup._variable(name), _core.float32), startup._variable(master.name))

    def _change(self, main):
        sharding = self._sharding
        if sharding.stage == 1:
            super()._change(main)
            return
        sent = self._sent(main)
        self._average(main, [grad for _, grad in sent], sharding.group, [sharding.owners[p.name] for p, _ in sent])
        if sharding.data_group is not None:
            own = [grad for p, grad in self._sent(main) if sharding.owners[p.name] == sharding.group.rank]
            self._average(main, own, sharding.data_group)
