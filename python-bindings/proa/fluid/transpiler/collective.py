"""fluid.transpiler.collective: a program of one process becomes that of a rank, by collectives on its gradients."""
from ... import _core
from ...distributed.group import world
from ...framework import mode

__all__ = ["GradAllReduce"]

HALF_GRADIENT = "@GRAD@FP16"  # behind a parameter's name: its gradient in float16, which travels in place of the other


class Collective:
    """Makes a program of one process that of a rank: its startup program gives every rank the parameters of rank 0. nrings is taken
    as 1."""

    def __init__(self, nrings=1):
        self.nrings = nrings
        self.rank = self.nranks = self.endpoints = self.current_endpoint = None

    def transpile(self, startup_program, main_program, rank, endpoints, current_endpoint, wait_port=True):
        """Changes both programs in place. endpoints (a list, or joined by commas) are those of all ranks."""
        if isinstance(endpoints, str):
            endpoints = endpoints.split(",")
        if rank < 0 or rank >= len(endpoints) or endpoints[rank] != current_endpoint:
            raise ValueError(f"transpile: rank {rank} of {len(endpoints)} endpoints is not {current_endpoint}")
        if len(endpoints) != world().nranks:
            raise ValueError(f"transpile: {len(endpoints)} endpoints in a job of {world().nranks} ranks; call "
                             "paddle.distributed.init_parallel_env first, and list all of them")
        self.rank, self.nranks = rank, len(endpoints)
        self.endpoints, self.current_endpoint = endpoints, current_endpoint
        if self.nranks == 1:
            return
        self._start(startup_program, main_program)
        self._change(main_program)

    def _change(self, main):
        """Changes the main program: for subclasses."""

    def _start(self, startup, main):
        """The ring, and rank 0's parameters and buffers for all."""
        others = [e for e in self.endpoints if e != self.current_endpoint]
        shared = [startup._variable(name) for name in self._shared(main)]
        with mode.opened(startup._core):
            identity = _core.gen_ring_id(self.current_endpoint, ",".join(others), rank=self.rank)
            _core.init_ring(identity, nranks=self.nranks, rank=self.rank)
            for var in shared:
                if var is not None:
                    _core.broadcast_(var)

    def _shared(self, main):
        """The names of what is rank 0's at the start."""
        return [v.name for v in main.list_vars() if v.persistable]


class GradAllReduce(Collective):
    """Averages the gradients of a program's parameters over the ranks, in buckets of fuse_grad_size_in_MB, behind the ops
    that make them; its startup program gives every rank the parameters of rank 0.

    >>> import proa as paddle
    >>> from proa.fluid.transpiler.collective import GradAllReduce
    >>> paddle.enable_static()
    >>> main, startup = paddle.static.Program(), paddle.static.Program()
    >>> with paddle.static.program_guard(main, startup):
    ...     loss = paddle.static.nn.fc(paddle.static.data("x", [2, 3]), 1).mean()
    ...     pairs = paddle.optimizer.SGD().minimize(loss)
    >>> GradAllReduce().transpile(startup, main, 0, ["127.0.0.1:6170"], "127.0.0.1:6170")
    >>> paddle.disable_static()
    """

    def __init__(self, nrings=1, fuse_grad_size_in_MB=32):
        super().__init__(nrings)
        self.fuse_grad_size_in_MB = fuse_grad_size_in_MB

    def _change(self, main):
        self._average(main, [grad for _, grad in self._sent(main)], world())

    @staticmethod
    def _sent(main):
        """(parameter, gradient as it travels) of a program."""
        trained = [p for p in main.all_parameters() if p.trainable]
        halves = [main._variable(p.name + HALF_GRADIENT) for p in trained]
        found = [main._variable(p.name + "@GRAD") if half is None else half for p, half in zip(trained, halves)]
        return [(p, grad) for p, grad in zip(trained, found) if grad is not None]

    def _average(self, main, grads, group, owners=None):
        """Averages over a group where ops make them; owners: the group's ranks that get them, None: all."""
        _core.average_gradients(main._core, grads, group._handle, max(1, int(self.fuse_grad_size_in_MB * (1 << 20))), owners)
