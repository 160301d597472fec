"""CompiledProgram and its strategies. Switches of optimizing passes have an effect; docs/python.md lists those that are
stored without effect."""
from .program import Program

__all__ = ["BuildStrategy", "CompiledProgram", "ExecutionStrategy", "ParallelExecutor"]


class _Switches:
    _defaults = {}

    def __init_subclass__(cls):
        for name, value in cls._defaults.items():
            setattr(cls, name, value() if callable(value) else value)

    def __init__(self):
        for name, value in self._defaults.items():
            object.__setattr__(self, name, value() if callable(value) else value)

    def __setattr__(self, name, value):
        if name not in self._defaults:
            raise AttributeError(f"{type(self).__name__} has no switch {name!r}")
        object.__setattr__(self, name, value)

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{k}={getattr(self, k)!r}' for k in self._defaults)})"


class BuildStrategy(_Switches):
    """Switches of a program's transformation before it runs."""

    class ReduceStrategy:
        AllReduce, Reduce, _NoReduce = 0, 1, 2

    class GradientScaleStrategy:
        CoeffNumDevice, One, Customized = 0, 1, 2

    _defaults = {
        "enable_inplace": True, "memory_optimize": None, "fuse_elewise_add_act_ops": False, "fuse_bn_act_ops": False,
        "fuse_bn_add_act_ops": True, "fuse_all_optimizer_ops": False, "enable_auto_fusion": False,
        "fuse_relu_depthwise_conv": False, "fuse_gemm_epilogue": False,
        # what one process on one CPU has no use for
        "reduce_strategy": 0, "gradient_scale_strategy": 0, "debug_graphviz_path": "", "enable_addto": False,
        "enable_sequential_execution": False, "fuse_all_reduce_ops": None, "fuse_broadcast_ops": None,
        "remove_unnecessary_lock": True, "sync_batch_norm": False, "async_mode": False, "num_trainers": 1,
        "trainer_id": 0, "trainers_endpoints": list, "nccl_comm_num": 1, "bkcl_comm_num": 1,
        "use_hierarchical_allreduce": False, "hierarchical_allreduce_inter_nranks": 0, "is_distribution": False,
        "cache_runtime_context": False, "mkldnn_enabled_op_types": set,
        "enable_backward_optimizer_op_deps": True, "fix_op_run_order": False, "sequential_run": False,
        "allow_cuda_graph_capture": False, "build_cinn_pass": False, "fused_attention": False,
        "fused_feedforward": False, "fuse_adamw": False, "fuse_dot_product_attention": False,
    }


class ExecutionStrategy(_Switches):
    """Settings of a program's execution. Threads are set by paddle.set_num_threads or OMP_NUM_THREADS."""

    _defaults = {"num_threads": 0, "num_iteration_per_drop_scope": 100, "num_iteration_per_run": 1,
                 "allow_op_delay": False, "use_thread_barrier": False, "use_experimental_executor": True}


class CompiledProgram:
    """A program that runs with the optimizing passes."""

    def __init__(self, program_or_graph, build_strategy=None):
        if not isinstance(program_or_graph, Program):
            raise TypeError(f"CompiledProgram: expected a Program, got {type(program_or_graph).__name__}")
        self._program, self._build_strategy = program_or_graph, build_strategy or BuildStrategy()

    def with_data_parallel(self, loss_name=None, build_strategy=None, exec_strategy=None, share_vars_from=None,
                           places=None):
        """The same program: there is one device."""
        if places is not None and len(places if isinstance(places, (list, tuple)) else [places]) > 1:
            raise ValueError("with_data_parallel: this build has one device; use paddle.distributed for several "
                             "processes")
        if build_strategy is not None:
            self._build_strategy = build_strategy
        return self

    def _passes(self):
        """For the core's executor: None, all that fit."""
        return None


class ParallelExecutor:
    """Runs a program with the optimizing passes, on one device."""

    def __init__(self, use_cuda=False, loss_name=None, main_program=None, share_vars_from=None, exec_strategy=None,
                 build_strategy=None, num_trainers=1, trainer_id=0, scope=None):
        from .executor import Executor
        from .program import default_main_program
        if use_cuda:
            raise ValueError("ParallelExecutor: this build of Proa has no CUDA device: use_cuda must be False")
        if num_trainers != 1:
            raise ValueError("ParallelExecutor: use paddle.distributed for several processes")
        self._compiled = CompiledProgram(main_program or default_main_program(), build_strategy)
        self._executor, self._scope = Executor(), scope

    @property
    def device_count(self):
        return 1

    def run(self, fetch_list, feed=None, feed_dict=None, return_numpy=True):
        """As Executor.run."""
        return self._executor.run(self._compiled, feed if feed is not None else feed_dict, fetch_list,
                                  scope=self._scope, return_numpy=return_numpy)

    def drop_local_exe_scopes(self):
        """Nothing is kept between runs."""
