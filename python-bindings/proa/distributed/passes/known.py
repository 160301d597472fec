"""Passes of Paddle's names. Fusions, and memory and communication passes, are the executor's in Proa: it does them for every program
when it compiles it. A pass of such a name checks its programs and leaves them as they are. Passes that need what Proa has elsewhere
are errors that say where."""
from .pass_base import PassBase, PassType, register_pass

# Of each name, what the executor has for it (docs/programs.md).
_BY_EXECUTOR = {
    "fuse_elewise_add_act": PassType.FUSION_OPT, "fuse_bn_act": PassType.FUSION_OPT, "fuse_bn_add_act": PassType.FUSION_OPT,
    "fuse_relu_depthwise_conv": PassType.FUSION_OPT, "fused_attention": PassType.FUSION_OPT, "fused_feedforward": PassType.FUSION_OPT,
    "fuse_gemm_epilogue": PassType.FUSION_OPT, "fuse_adamw": PassType.FUSION_OPT, "fuse_optimizer": PassType.FUSION_OPT,
    "inplace_addto_op": PassType.CALC_OPT, "build_cinn": PassType.CALC_OPT, "fuse_all_reduce": PassType.COMM_OPT,
}

_LAYERS = "paddle.distributed.to_static of a layer on a mesh, or fleet's strategy"
_SERVERS = "fleet.distributed_optimizer(…).minimize(loss) of a job with parameter servers"
_ELSEWHERE = {
    **dict.fromkeys((
        "allreduce_matmul_grad_overlapping", "auto_parallel_amp", "auto_parallel_data_parallel_optimization", "auto_parallel_fp16",
        "auto_parallel_fused_linear_promotion", "auto_parallel_grad_clip", "auto_parallel_gradient_merge_pass", "auto_parallel_pipeline",
        "auto_parallel_quantization", "auto_parallel_recompute", "auto_parallel_sequence_parallel_optimization", "auto_parallel_sharding",
        "auto_parallel_supplement_explicit_dependencies"), _LAYERS),
    **dict.fromkeys(("pipeline_scheduler_FThenB", "pipeline_scheduler_1F1B", "pipeline_scheduler_Eager1F1B"),
                    "fleet's strategy with pipeline = True (schedule_mode)"),
    **dict.fromkeys((
        "add_lr_decay_table_pass", "add_listen_and_serv_pass", "add_rpc_global_flags_pass", "add_optimizer_pass", "add_geo_optimizer_pass",
        "build_pserver_startup_program_pass", "delete_unused_in_startup_pass", "append_send_ops_pass", "distributed_ops_pass",
        "delete_optimizer_pass", "delete_extra_optimizer_pass", "fake_init_ops_pass", "ps_gpu_pass", "ps_transpile_pass",
        "split_heter_worker_ops_pass", "split_trainer_ops_pass", "set_heter_pipeline_opt_pass", "split_fl_ops_pass"), _SERVERS),
}


class _ByExecutor(PassBase):
    kind = PassType.UNKNOWN

    def _type(self):
        return self.kind

    def _apply_single_impl(self, main_program, startup_program, context):
        from ...static.program import Program
        for program in (main_program, startup_program):
            if program is not None and not isinstance(program, Program):
                raise TypeError(f"{self.name}.apply: expected Programs, got {type(program).__name__}")


class _Elsewhere(PassBase):
    where = ""

    def _apply_single_impl(self, main_program, startup_program, context):
        raise NotImplementedError(f"the pass {self.name} does not transform programs by itself: use {self.where}")


for _name, _kind in _BY_EXECUTOR.items():
    register_pass(_name)(type(_name, (_ByExecutor,), {"kind": _kind, "__doc__": f"{_name}: done by the executor."}))
for _name, _where in _ELSEWHERE.items():
    register_pass(_name)(type(_name, (_Elsewhere,), {"where": _where, "__doc__": f"{_name}: an error that names {_where}."}))
del _name, _kind, _where
