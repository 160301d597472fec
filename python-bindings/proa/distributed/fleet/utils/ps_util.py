"""DistributedInfer: predictions by a program whose sparse tables may be a parameter server's. Proa has none (docs/limits.md), so
the tables are the process's own, and a job with servers is an error."""
import os


class DistributedInfer:
    """A program for inference, taken from one for training before an optimizer is added to that."""

    def __init__(self, main_program=None, startup_program=None):
        from ....static import default_main_program, default_startup_program
        self.origin_main_program = (main_program or default_main_program()).clone()
        self.origin_startup_program = startup_program or default_startup_program()

    def init_distributed_infer_env(self, exe, loss, role_maker=None, dirname=None):
        """Joins the job, runs the startup program and reads those persistables that have a file in dirname. Does nothing in a
        process whose programs fleet.minimize or an earlier call has prepared, as in Paddle."""
        from ..fleet import fleet
        if fleet._programs_ready:
            return
        fleet.init(role_maker)
        fleet._refuse_servers("DistributedInfer.init_distributed_infer_env")
        exe.run(self.origin_startup_program)
        if dirname is not None:
            self._load(exe, dirname)
        fleet._programs_ready = True

    def _load(self, exe, dirname):
        from ....fluid import io
        saved = [v for v in self.origin_main_program.list_vars()
                 if io.is_persistable(v) and os.path.isfile(os.path.join(dirname, v.name))]
        io.load_vars(exe, dirname, self.origin_main_program, vars=saved)

    def get_dist_infer_program(self):
        """The program whose look-ups read the servers' tables: without servers, the program itself."""
        from ..fleet import fleet
        fleet._refuse_servers("DistributedInfer.get_dist_infer_program")
        return self.origin_main_program
