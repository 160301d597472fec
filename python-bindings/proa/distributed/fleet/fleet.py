"""Fleet: the object through which a script joins a job and wraps model and optimizer for distributed training."""
import os
import warnings

from ... import _core
from ...framework import mode
from .. import communication as _c
from ..group import get_rank, get_world_size, init_parallel_env, is_initialized
from .base.distributed_strategy import DistributedStrategy
from .base.role_maker import PaddleCloudRoleMaker, Role, RoleMakerBase
from .base.topology import CommunicateTopology, HybridCommunicateGroup, ParallelMode
from .base.util_factory import UtilBase

_NAMES = {"dp": "data", "pp": "pipe", "sharding": "sharding", "sep": "sep", "mp": "model"}


class Fleet:
    """See the module's functions, which are the methods of its one object."""

    def __init__(self):
        self._role_maker, self._is_collective = None, False
        self._user_defined_strategy = DistributedStrategy()
        self._util, self._hcg, self._topology = UtilBase(), None, None
        self.user_defined_optimizer = self._static_optimizer = None
        self._averages_gradients = False  # whether the model that distributed_model made does
        self._ps = self._server = self._worker = None  # of a job with parameter servers: what minimize found; this process's part
        self._programs_ready = False  # whether minimize or DistributedInfer has prepared this process's programs

    # ---- joining ----

    def init(self, role_maker=None, is_collective=False, strategy=None, log_level="INFO"):
        """Joins the job: role_maker says who this process is (None: the launcher's environment), is_collective that there
        are no servers, strategy how the training is spread."""
        if role_maker is None:
            if not isinstance(is_collective, bool):
                raise ValueError(f"`is_collective` should be instance of bool, but got {type(is_collective)}")
            self._is_collective = is_collective
            role_maker = PaddleCloudRoleMaker(is_collective=is_collective)
        elif not isinstance(role_maker, RoleMakerBase):
            raise ValueError(f"`role_maker` should be subclass of `RoleMakerBase`, but got {type(role_maker)}")
        else:
            self._is_collective = role_maker._is_collective
        if strategy is not None and not isinstance(strategy, DistributedStrategy):
            raise TypeError(f"fleet.init: strategy must be a DistributedStrategy, got {type(strategy).__name__}")
        if role_maker._role == Role.HETER_WORKER:
            raise NotImplementedError("fleet.init: heterogeneous workers (HETER_TRAINER) are missing; start servers and workers only")
        self._role_maker, self._ps = role_maker, None
        self._user_defined_strategy = DistributedStrategy() if strategy is None else strategy
        self._util._set_role_maker(role_maker)
        if self._is_collective and not mode.building():
            if not is_initialized() and get_world_size() > 1:
                init_parallel_env()
            if self._user_defined_strategy.auto and self._user_defined_strategy.auto_plan is not None:
                from .auto import choose_degrees
                choose_degrees(self._user_defined_strategy)
            self._make_groups()
        return self

    def _make_groups(self):
        configs = self._user_defined_strategy.hybrid_configs
        degrees = {name: configs[f"{name}_degree"] for name in _NAMES}
        rest = 1
        for name, degree in degrees.items():
            if name != "dp":
                if degree < 1:
                    raise ValueError(f"fleet.init: {name}_degree is {degree}; expected 1 or more")
                rest *= degree
        world = get_world_size()
        if degrees["dp"] < 1:
            degrees["dp"] = world // rest
        if rest * degrees["dp"] != world:
            raise ValueError(f"fleet.init: the degrees {degrees} make {rest * degrees['dp']} processes, there are {world}; "
                             "set hybrid_configs so that their product is that")
        order = self._user_defined_strategy.hybrid_parallel_order
        needed = [name for name, degree in degrees.items() if degree > 1]
        if not set(needed) <= set(order) <= set(_NAMES) or len(set(order)) < len(order):
            raise ValueError(f"fleet.init: hybrid_configs' order is {order}; expected some of {list(_NAMES)}, each once, and "
                             f"among them {needed}, whose degrees are above 1")
        self._topology = CommunicateTopology([_NAMES[name] for name in order], [degrees[name] for name in order])
        self._hcg = HybridCommunicateGroup(self._topology)

    def _maker(self):
        if self._role_maker is None:
            self.init(is_collective=True)
        return self._role_maker

    # ---- who this process is ----

    def is_first_worker(self):
        """Whether this is worker 0."""
        return self._maker()._is_first_worker()

    def worker_index(self):
        """This worker's number."""
        return self._maker()._worker_index()

    def worker_num(self):
        """The number of workers."""
        return self._maker()._worker_num()

    def node_num(self):
        """The number of machines."""
        return self._maker()._node_num()

    def local_rank(self):
        """The launcher's number of this process on its machine: text, None if it set none."""
        return os.getenv("PADDLE_RANK_IN_NODE")

    def local_device_ids(self):
        """The launcher's devices on this machine: text, numbers joined by commas, or None."""
        return os.getenv("PADDLE_LOCAL_DEVICE_IDS")

    def world_device_ids(self):
        """The launcher's devices on all machines: text, the machines' joined by colons, or None."""
        return os.getenv("PADDLE_WORLD_DEVICE_IDS")

    def is_worker(self):
        """Whether this is a worker."""
        return self._maker()._is_worker()

    def is_server(self):
        """Whether this is a server."""
        return self._maker()._is_server()

    def is_coordinator(self):
        """Whether this is a coordinator: never."""
        return False

    def server_index(self):
        """This server's number."""
        return self._maker()._server_index()

    def server_num(self):
        """The number of servers."""
        return self._maker()._server_num()

    def worker_endpoints(self, to_string=False):
        """The workers' addresses: a list, or one text."""
        return _listed(self._maker()._get_trainer_endpoints(), to_string)

    def server_endpoints(self, to_string=False):
        """The servers' addresses."""
        return _listed(self._maker()._get_pserver_endpoints(), to_string)

    def get_hybrid_communicate_group(self):
        """The groups along the axes of parallelism."""
        if self._hcg is None:
            self._make_groups()
        return self._hcg

    _get_hybrid_communicate_group = get_hybrid_communicate_group

    def get_hybrid_parallel_topology(self):
        """The grid of ranks."""
        self.get_hybrid_communicate_group()
        return self._topology

    @property
    def util(self):
        """Messages of arrays, shards of file lists."""
        return self._util

    def barrier_worker(self):
        """Waits for all workers."""
        if self._worker is not None:
            self._worker.barrier()
        else:
            self._util.barrier("worker")

    def all_reduce(self, input, mode="sum"):
        """An array reduced over the workers."""
        return self._util.all_reduce(input, mode)

    # ---- training ----

    def distributed_model(self, model):
        """The model as its parallel mode asks for: over data, divided layers, divided states. With one process: itself."""
        from .meta_parallel.pipeline_parallel import PipelineParallel
        from .meta_parallel.wrappers import LocalParallel, ShardingParallel, TensorParallel, data_parallel
        hcg, strategy = self.get_hybrid_communicate_group(), self._user_defined_strategy
        if hcg.nranks < 2:
            return model
        if hcg.get_sep_parallel_world_size() > 1:
            raise NotImplementedError("distributed_model: segments (sep_degree > 1) are not there; set sep_degree to 1")
        if strategy.sync_batch_norm and hcg.get_pipe_parallel_world_size() > 1:
            raise ValueError("distributed_model: sync_batch_norm, whose statistics are over all ranks, does not go with stages (pp_degree), "
                             "which run at different times; turn it off")
        if strategy.sync_batch_norm:
            from ...nn import SyncBatchNorm
            model = SyncBatchNorm.convert_sync_batchnorm(model)
        parallel = hcg.get_parallel_mode()
        self._averages_gradients = _local_switch("distributed_model", strategy, hcg) is None
        if not self._averages_gradients:
            return LocalParallel(model, hcg, strategy)
        if parallel == ParallelMode.DATA_PARALLEL:
            return data_parallel(model, strategy, hcg)
        if parallel == ParallelMode.TENSOR_PARALLEL:
            return TensorParallel(model, hcg, strategy)
        if parallel == ParallelMode.SHARDING_PARALLEL:
            return ShardingParallel(model, hcg, strategy)
        return PipelineParallel(model, hcg, strategy)

    def distributed_optimizer(self, optimizer, strategy=None):
        """The optimizer for the job: it averages gradients where the model does not, and clips over all ranks."""
        self.user_defined_optimizer, self._static_optimizer = optimizer, None
        if strategy is not None:
            self._user_defined_strategy = strategy
        if mode.building():
            return self
        if self._has_servers():
            raise NotImplementedError("fleet.distributed_optimizer: parameter servers train static programs; call paddle.enable_static() first")
        from .local_sgd import LocalSGD
        from .meta_optimizers import HybridParallelOptimizer
        from .switches import check_optimizer, compressed
        hcg, strategy = self.get_hybrid_communicate_group(), self._user_defined_strategy
        switch = _local_switch("distributed_optimizer", strategy, hcg)
        if switch is None:
            return HybridParallelOptimizer(optimizer, hcg, strategy)
        check_optimizer("distributed_optimizer", switch, optimizer)
        if self._averages_gradients:
            raise ValueError(f"distributed_optimizer: {switch} of the strategy came after distributed_model, which averages gradients; "
                             "give the strategy to fleet.init")
        if switch == "dgc":
            return HybridParallelOptimizer(compressed(optimizer, strategy.dgc_configs), hcg, strategy)
        return LocalSGD(optimizer, hcg, strategy)

    def distributed_scaler(self, scaler):
        """The scaler, whose ranks skip steps together."""
        from .meta_optimizers import distributed_scaler
        return distributed_scaler(scaler, self.get_hybrid_communicate_group())

    def minimize(self, loss, startup_program=None, parameter_list=None, no_grad_set=None):
        """Adds the optimizer, as the strategy's switches transform it, to the loss's program; with several workers gradients
        are averaged over them."""
        from ...static.program import default_startup_program
        from ...static.variable import program_of
        from .static_optimizers import average_over_ranks, transformed
        if self.user_defined_optimizer is None:
            raise ValueError("fleet.minimize: call distributed_optimizer first")
        if not isinstance(loss, _core.Tensor) or not loss.is_symbolic:
            return self.user_defined_optimizer.minimize(loss, startup_program, parameter_list, no_grad_set)
        if self._has_servers():
            from .ps.programs import minimize
            if self._ps is not None:
                raise NotImplementedError("fleet.minimize: servers keep the tables of one program, and this process has called minimize before; "
                                          "train the sum of the losses, or call fleet.init again")
            self._ps, operators, pairs = minimize(self.user_defined_optimizer, self._user_defined_strategy, loss, startup_program,
                                                  parameter_list, no_grad_set)
            self._programs_ready = True
            return operators, pairs
        if get_world_size() > 1 and not is_initialized():
            init_parallel_env()
        self._static_optimizer = transformed(self.user_defined_optimizer, self._user_defined_strategy)
        result = self._static_optimizer.minimize(loss, startup_program, parameter_list, no_grad_set)
        if get_world_size() > 1:
            average_over_ranks(self._static_optimizer, program_of(loss), startup_program or default_startup_program(),
                               self._user_defined_strategy)
        self._programs_ready = True
        return result

    def _optimizer(self):
        if self.user_defined_optimizer is None:
            raise ValueError("fleet: call distributed_optimizer first")
        return self._static_optimizer or self.user_defined_optimizer

    def step(self):
        """The optimizer's step."""
        self._optimizer().step()

    def clear_grad(self):
        """Clears gradients."""
        self._optimizer().clear_grad()

    def get_lr(self):
        """The learning rate."""
        return self._optimizer().get_lr()

    def set_lr(self, value):
        """Sets the learning rate."""
        self._optimizer().set_lr(value)

    def state_dict(self):
        """The optimizer's state."""
        return self._optimizer().state_dict()

    def set_state_dict(self, state_dict):
        """Sets the optimizer's state."""
        return self._optimizer().set_state_dict(state_dict)

    def get_loss_scaling(self):
        """The scale of losses, of an optimizer that has one."""
        return self._optimizer().get_loss_scaling()

    def amp_init(self, place, scope=None, test_program=None, use_fp16_test=False):
        """Casts the parameters of a program of pure float16."""
        return self._optimizer().amp_init(place, scope, test_program, use_fp16_test)

    # ---- servers ----

    def init_server(self, dirname=None, var_names=None, **kwargs):
        """Prepares this server's tables; reads rows of sparse ones from a folder that save_persistables wrote, of var_names or of all
        that are there. A job without servers: a warning."""
        if self._without_servers("init_server"):
            return
        from .ps.server import Server
        if not self.is_server():
            raise RuntimeError("fleet.init_server: this process is a worker; call it where fleet.is_server()")
        self._server = Server(self._ps, self._role_maker)
        if dirname is not None:
            self._server.load(dirname, var_names)

    def run_server(self):
        """Serves the tables until the job ends; does not return before. A job without servers: a warning."""
        if self._without_servers("run_server"):
            return
        if self._server is None:
            raise RuntimeError("fleet.run_server: call fleet.init_server() first")
        self._server.run()

    def init_worker(self, scopes=None):
        """Connects this worker to the servers: worker 0's values go there, and all workers take them. A job without servers: a
        warning."""
        if self._without_servers("init_worker"):
            return
        from .ps.worker import Worker
        if not self.is_worker():
            raise RuntimeError("fleet.init_worker: this process is a server; call it where fleet.is_worker()")
        if self._ps is None:
            raise RuntimeError("fleet.init_worker: call fleet.minimize first, which says what the servers keep")
        self._worker = Worker(self._ps, self._role_maker)
        self._worker.start(scopes[0] if isinstance(scopes, (list, tuple)) and scopes else None)

    def stop_worker(self):
        """Ends this worker's connections to the servers, which go on. A job without servers: a warning."""
        if not self._without_servers("stop_worker") and self._worker is not None:
            self._worker.stop()
            self._worker = None

    def shrink(self, threshold=None):
        """A day ends for the tables: rows that nobody has read for `threshold` calls of shrink go. Worker 0's call counts. A job
        without servers: a warning."""
        if self._without_servers("shrink"):
            return
        if not isinstance(threshold, int) or threshold < 1:
            raise ValueError(f"fleet.shrink: threshold must be a number of days, at least 1, got {threshold!r}")
        if self.is_first_worker():
            self._joined("shrink").shrink(threshold)

    def load_model(self, path, mode=0):
        """Reads what save_persistables wrote: worker 0 the dense parameters, the servers their rows. All workers call it."""
        worker = self._joined("load_model")
        if self.is_first_worker():
            worker.load(path)
        worker.barrier()
        worker.pull_dense()

    def load_inference_model(self, path, mode=0):
        """load_model of what save_inference_model wrote: parameters and rows of tables."""
        self.load_model(path, mode)

    def load_one_table(self, table_id, path, mode=0):
        """Has the servers read the rows of one sparse table, which save_one_table or save_persistables wrote. All workers call it."""
        worker = self._joined("load_one_table")
        if self.is_first_worker():
            worker.load_table(table_id, path)
        worker.barrier()

    def save_one_table(self, table_id, path, mode=0):
        """Has the servers write the rows of one sparse table: mode 0 all, 1 all as a base, 2 those since the last. Worker 0's call
        counts."""
        worker = self._joined("save_one_table")
        if mode not in (0, 1, 2):
            raise ValueError(f"fleet.save_one_table: mode must be 0 (all), 1 (base) or 2 (delta), got {mode!r}")
        if self.is_first_worker():
            worker.save_table(table_id, path, mode)

    def save_dense_params(self, executor, dirname, scope, program, var_names=None):
        """Writes the dense parameters, as the servers have them, and the program's other persistables: all, or those of var_names.
        Worker 0's call counts."""
        worker = self._joined("save_dense_params")
        if self.is_first_worker():
            worker.save_dense(dirname, scope, var_names)

    def _has_servers(self):
        return not self._is_collective and bool(self._maker()._get_pserver_endpoints())

    def _joined(self, who):
        if self._worker is None:
            raise RuntimeError(f"fleet.{who}: this process is not connected to servers; call fleet.init_worker() first")
        return self._worker

    def _without_servers(self, name):
        if self._role_maker is None:
            raise ValueError(f"fleet.{name}: this process has no role yet; call fleet.init first")
        if self._has_servers():
            return False
        warnings.warn(f"fleet.{name}: the job has no servers, so there is nothing to do", stacklevel=3)
        return True

    # ---- saving ----

    def save_persistables(self, executor, dirname, main_program=None, mode=0):
        """Saves a program's persistables, on the first worker. Sparse tables on servers: mode 0 all rows, 1 all rows, as a base; 2 those
        that were updated since the last base or delta."""
        from ...fluid import io
        if mode not in (0, 1, 2):
            raise ValueError(f"fleet.save_persistables: mode must be 0 (all), 1 (base) or 2 (delta), got {mode!r}")
        if not self.is_first_worker():
            return
        if self._ps is not None:
            self._joined("save_persistables").save(dirname, mode)
        else:
            io.save_persistables(executor, dirname, main_program)

    def save_inference_model(self, executor, dirname, feeded_var_names, target_vars, main_program=None,
                             export_for_deployment=True, mode=0):
        """Saves an inference model in a folder, on the first worker."""
        from ...fluid import io
        if not self.is_first_worker():
            return
        if self._ps is not None:
            from .ps.inference import save
            save(self._joined("save_inference_model"), dirname, feeded_var_names, target_vars, executor, main_program, mode)
        else:
            io.save_inference_model(dirname, feeded_var_names, target_vars, executor, main_program)

    def save(self, dirname, feed=(), fetch=(), **configs):
        """Saves an inference model if feeds and fetches are named, else persistables."""
        from ...static import Executor, default_main_program
        executor = configs.get("executor") or Executor(_core.CPUPlace())
        if feed or fetch:
            self.save_inference_model(executor, dirname, list(feed), list(fetch), configs.get("main_program"))
        else:
            self.save_persistables(executor, dirname, configs.get("main_program") or default_main_program())

    # ---- links ----

    def collective_perf(self, comm_type, round=50, size_and_time={}):
        """Times a collective over growing sizes: {MB: seconds}, printed by worker 0."""
        import time
        calls = {"allreduce": lambda t: _c.all_reduce(t), "reduce": lambda t: _c.reduce(t, 0), "broadcast": lambda t: _c.broadcast(t, 0),
                 "allgather": lambda t: _c.all_gather([], t),
                 "reduce_scatter": lambda t: _c.reduce_scatter(_zeros(int(t.size) // get_world_size()), t)}
        if comm_type not in calls:
            raise ValueError(f"collective_perf: comm_type must be one of {sorted(calls)}, got {comm_type!r}")
        measured = {}
        for mb in size_and_time or {1: 0, 4: 0, 16: 0}:
            tensor = _zeros(int(mb * (1 << 18)) // get_world_size() * get_world_size())
            self.barrier_worker()
            began = time.perf_counter()
            for _ in range(round):
                calls[comm_type](tensor)
            measured[mb] = (time.perf_counter() - began) / round
            if get_rank() == 0:
                print(f"{comm_type} {mb} MB: {measured[mb] * 1e3:.3f} ms")
        return measured

    def allreduce_perf(self, *args, **kwargs):
        """collective_perf of allreduce."""
        return self.collective_perf("allreduce", *args, **kwargs)

    def reduce_perf(self, *args, **kwargs):
        """collective_perf of reduce."""
        return self.collective_perf("reduce", *args, **kwargs)

    def broadcast_perf(self, *args, **kwargs):
        """collective_perf of broadcast."""
        return self.collective_perf("broadcast", *args, **kwargs)

    def allgather_perf(self, *args, **kwargs):
        """collective_perf of allgather."""
        return self.collective_perf("allgather", *args, **kwargs)

    def reduce_scatter_perf(self, *args, **kwargs):
        """collective_perf of reduce_scatter."""
        return self.collective_perf("reduce_scatter", *args, **kwargs)


def _local_switch(who, strategy, hcg):
    """The switch by which ranks keep their gradients, if one is on; it goes with data parallelism alone."""
    if hcg.nranks < 2:
        return None
    from .switches import local_switch
    switch = local_switch(who, strategy)
    if switch is not None and hcg.get_parallel_mode() != ParallelMode.DATA_PARALLEL:
        degrees = {n: d for n, d in strategy.hybrid_configs.items() if n.endswith("_degree") and d > 1}
        raise ValueError(f"{who}: {switch} of the strategy goes with data parallelism alone, hybrid_configs has {degrees}; set dp_degree "
                         "alone, or switch it off")
    return switch


def _zeros(n):
    return _core.full([n], 0.0, _core.float32)


def _listed(endpoints, to_string):
    return ",".join(endpoints) if to_string else endpoints


fleet = Fleet()
