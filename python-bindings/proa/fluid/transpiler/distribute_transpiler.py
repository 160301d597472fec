"""fluid.DistributeTranspiler: a program of one process becomes that of a rank (modes "collective" and "nccl2")."""
from ...static.program import default_main_program, default_startup_program
from .collective import GradAllReduce
from .ps_dispatcher import HashName, RoundRobin

__all__ = ["DistributeTranspiler", "DistributeTranspilerConfig", "HashName", "RoundRobin"]


class DistributeTranspilerConfig:
    """Settings of a DistributeTranspiler. mode: "collective" or "nccl2", and "pserver", which transpile refuses."""

    slice_var_up = True
    split_method = None
    min_block_size = 8192
    mode = "pserver"
    collective_mode = None
    print_log = False
    wait_port = True
    sync_mode = True
    nccl_comm_num = 1


class DistributeTranspiler:
    """Makes the program of a rank, in place: gradients are averaged over the ranks."""

    def __init__(self, config=None):
        self.config = config if config is not None else DistributeTranspilerConfig()
        self.origin_program = None

    def transpile(self, trainer_id, program=None, pservers="127.0.0.1:6174", trainers=1, sync_mode=True,
                  startup_program=None, current_endpoint="127.0.0.1:6174"):
        """Changes program and startup_program (the default ones) in place. trainers: the endpoints of all ranks, a list or
        joined by commas. NotImplementedError for parameter servers and for local SGD."""
        mode, kind = self.config.mode, self.config.collective_mode
        if mode not in ("collective", "nccl2"):
            raise NotImplementedError(f"(Unimplemented) DistributeTranspiler.transpile: mode is {mode!r}; parameter servers "
                                      "are fleet's (fleet.init, fleet.distributed_optimizer); here set config.mode to 'collective', and give "
                                      "trainers the endpoints of all ranks")
        if kind not in (None, "grad_allreduce"):
            raise NotImplementedError(f"(Unimplemented) DistributeTranspiler.transpile: collective_mode is {kind!r}; expected "
                                      "'grad_allreduce'")
        if not isinstance(trainers, (str, list, tuple)):
            raise TypeError("DistributeTranspiler.transpile: trainers must be the endpoints of all ranks in this mode, got "
                            f"{trainers!r}")
        self.origin_program = default_main_program() if program is None else program
        startup = default_startup_program() if startup_program is None else startup_program
        endpoints = trainers if isinstance(trainers, str) else list(trainers)
        GradAllReduce().transpile(startup, self.origin_program, trainer_id, endpoints, current_endpoint, self.config.wait_port)

    def get_trainer_program(self, wait_port=True):
        """The program of this rank."""
        if self.origin_program is None:
            raise RuntimeError("(PreconditionNotMet) DistributeTranspiler.get_trainer_program: call transpile first")
        return self.origin_program
