"""DistributedInfer: predictions by a program whose sparse tables may be on parameter servers."""
import os


class DistributedInfer:
    """A program for inference, taken from one for training before an optimizer is added to that."""

    def __init__(self, main_program=None, startup_program=None):
        from ....static import default_main_program, default_startup_program
        self.origin_main_program = (main_program or default_main_program()).clone()
        self.origin_startup_program = startup_program or default_startup_program()
        self._pulling = None

    def init_distributed_infer_env(self, exe, loss, role_maker=None, dirname=None):
        """Joins the job, runs the startup program and reads those persistables that have a file in dirname; with servers, adds an
        optimizer to loss, as in Paddle, which names the tables, and starts the servers or connects to them. Does nothing in a process
        whose programs fleet.minimize or an earlier call has prepared, as in Paddle."""
        from ..fleet import fleet
        if fleet._programs_ready:
            return
        fleet.init(role_maker)
        if fleet._has_servers():
            self._start(fleet, exe, loss, dirname)
        else:
            exe.run(self.origin_startup_program)
            if dirname is not None:
                self._load(exe, dirname)
        fleet._programs_ready = True

    def _start(self, fleet, exe, loss, dirname):
        from ....optimizer import SGD
        from ..base.distributed_strategy import DistributedStrategy
        strategy = DistributedStrategy()
        strategy.a_sync = True
        fleet.distributed_optimizer(SGD(0.0), strategy).minimize(loss, self.origin_startup_program)
        if fleet.is_server():
            fleet.init_server(dirname)
            fleet.run_server()
            return
        exe.run(self.origin_startup_program)
        if dirname is not None:
            self._load(exe, dirname, {t.name for t in fleet._ps.sparse})
        fleet.init_worker()

    def _load(self, exe, dirname, tables=()):
        from ....fluid import io
        saved = [v for v in self.origin_main_program.list_vars()
                 if io.is_persistable(v) and v.name not in tables and os.path.isfile(os.path.join(dirname, v.name))]
        io.load_vars(exe, dirname, self.origin_main_program, vars=saved)

    def get_dist_infer_program(self):
        """The program whose look-ups read the servers' tables, without counting; without servers, the program itself."""
        from ..fleet import fleet
        if not fleet._has_servers():
            return self.origin_main_program
        if fleet._ps is None:
            raise RuntimeError("DistributedInfer.get_dist_infer_program: call init_distributed_infer_env, or fleet.minimize, first")
        if self._pulling is None:
            from ..ps.inference import pulling
            self._pulling = pulling(fleet._ps, self.origin_main_program)
        return self._pulling
