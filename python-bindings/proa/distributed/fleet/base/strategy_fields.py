"""Fields of Paddle 2.6.2's message paddle.fleet.DistributedStrategy and of the messages in it, as messages_of reads them."""
from ....framework.text_message import Message, messages_of

FIELDS = """
DistributedStrategy
 1 mode mode 1
 2 bool amp False
 3 bool recompute False
 4 bool localsgd False
 5 bool dgc False
 6 bool gradient_merge False
 7 bool lars False
 8 bool lamb False
 9 bool pipeline False
 10 bool elastic False
 11 bool auto False
 12 bool a_sync True
 13 bool sync_nccl_allreduce True
 14 int32 nccl_comm_num 1
 15 bool use_hierarchical_allreduce False
 16 int32 hierarchical_allreduce_inter_nranks 1
 17 bool sync_batch_norm False
 18 bool fuse_all_reduce_ops True
 19 int32 fuse_grad_size_in_MB 32
 20 float fuse_grad_size_in_TFLOPS 5e+01
 21 bool cudnn_exhaustive_search False
 22 int32 conv_workspace_size_limit 512
 23 bool cudnn_batchnorm_spatial_persistent False
 24 bool adaptive_localsgd False
 25 bool fp16_allreduce False
 26 bool sharding False
 27 float last_comm_group_size_MB 1
 28 bool find_unused_parameters False
 29 bool tensor_parallel False
 30 bool without_graph_optimization True
 31 int32 fuse_grad_size_in_num 8
 32 bool calc_comm_same_stream False
 33 bool asp False
 34 bool fuse_grad_merge False
 35 bool semi_auto False
 36 bool adam_d2sum False
 37 bool auto_search False
 38 bool heter_ccl_mode False
 39 bool is_fl_ps_mode False
 40 bool with_coordinator False
 41 bool qat False
 42 bool split_data True
 101 RecomputeConfig recompute_configs
 102 AMPConfig amp_configs
 103 LocalSGDConfig localsgd_configs
 104 GradientMergeConfig gradient_merge_configs
 105 DGCConfig dgc_configs
 106 PipelineConfig pipeline_configs
 107 AsyncConfig a_sync_configs
 108 LarsConfig lars_configs
 109 LambConfig lamb_configs
 110 AdaptiveLocalSGDConfig adaptive_localsgd_configs
 111 ShardingConfig sharding_configs
 112 HybridConfig hybrid_configs
 113 TensorParallelConfig tensor_parallel_configs
 114 TrainerDescConfig trainer_desc_configs
 116 FsClientParameter fs_client_param
 117 QatConfig qat_configs
 201 BuildStrategy build_strategy
 202 ExecutionStrategy execution_strategy
 203 GradientScaleConfig gradient_scale_configs

RecomputeConfig
 1 string* checkpoints
 2 bool enable_offload False
 3 int32* checkpoint_shape
 4 bool enable_tuning False
 5 RefinedOpsPattern* refined_ops_patterns

RefinedOpsPattern
 1 string* main_ops
 2 int32 num 0
 3 string* pre_ops
 4 string* suf_ops

AMPConfig
 1 float init_loss_scaling 32768
 2 int32 incr_every_n_steps 1000
 3 int32 decr_every_n_nan_or_inf 2
 4 float incr_ratio 2
 5 float decr_ratio 0.8
 6 bool use_dynamic_loss_scaling True
 7 string* custom_white_list
 8 string* custom_black_list
 9 string* custom_black_varnames
 10 bool use_pure_fp16 False
 11 bool use_fp16_guard True
 12 bool use_optimizer_fp16 False
 13 bool use_pure_bf16 False

LocalSGDConfig
 1 int32 k_steps 1
 2 int32 begin_step 1

GradientMergeConfig
 1 int32 k_steps 1
 2 bool avg True

DGCConfig
 1 int32 rampup_begin_step 0
 2 int32 rampup_step 1
 3 float* sparsity

PipelineConfig
 1 int32 micro_batch_size 1
 2 int32 accumulate_steps 1
 3 string schedule_mode 1F1B
 4 bool p2p_cache_shape True
 5 bool enable_partial_send_recv True

AsyncConfig
 1 int32 k_steps -1
 2 int32 max_merge_var_num 1
 3 int32 send_queue_size 16
 4 bool independent_recv_thread False
 5 int32 min_send_grad_num_before_recv 1
 6 int32 thread_pool_size 1
 7 int32 send_wait_times 1
 8 bool runtime_split_send_recv False
 9 bool launch_barrier True
 10 string heter_worker_device_guard cpu
 11 int32 lr_decay_steps 10
 12 int32 use_ps_gpu 0

LarsConfig
 1 float lars_coeff 0.001
 2 float lars_weight_decay 0.0005
 3 float epsilon 0
 4 string* exclude_from_weight_decay

LambConfig
 1 float lamb_weight_decay 0.01
 2 string* exclude_from_weight_decay

AdaptiveLocalSGDConfig
 1 int32 init_k_steps 1
 2 int32 begin_step 1

ShardingConfig
 1 string sharding_segment_strategy segment_broadcast_MB
 2 float segment_broadcast_MB 32
 3 string* segment_anchors
 4 int32 sharding_degree 8
 5 int32 mp_degree 1
 6 int32 dp_degree 1
 7 bool hybrid_dp False
 8 int32 gradient_merge_acc_step 1
 9 bool optimize_offload False
 10 bool pp_allreduce_in_optimize False
 11 int32 pp_degree 1
 12 bool optimize_cast False
 13 bool _dp_as_optimizer_sharding False
 14 int32 stage 1
 15 bool enable_tuning False
 16 bool use_calc_stream False

HybridConfig
 1 int32 dp_degree -1
 2 int32 mp_degree 1
 3 int32 pp_degree 1
 4 int32 sharding_degree 1
 5 int32 sep_degree 1
 6 MpConfig mp_configs
 7 PpConfig pp_configs
 8 DygraphShardingConfig sharding_configs

MpConfig
 1 bool sync_param True
 2 bool sync_grad False
 3 bool sync_moment False
 4 string sync_mode broadcast
 5 bool mp_async_allreduce False
 6 bool mp_skip_c_identity False
 7 bool mp_fused_linear_param_grad_add False
 8 bool need_broadcast_data True

PpConfig
 1 bool dp_comm_overlap False
 2 bool delay_scale_loss False
 3 bool enable_timer False
 4 bool sharding_comm_overlap False
 5 bool profiling False

DygraphShardingConfig
 1 bool tensor_fusion False
 2 int32 accumulate_steps 1
 3 bool comm_overlap False
 4 bool split_param False
 5 bool fuse_optimizer True

TensorParallelConfig
 1 int32 tensor_parallel_degree 1
 2 int32 tensor_init_seed -1

TrainerDescConfig
 1 string dump_fields_path
 2 string* dump_fields
 3 string* dump_param
 4 string* stat_var_names
 5 string trainer
 6 string device_worker
 7 string* local_sparse
 8 string* remote_sparse

FsClientParameter
 1 string uri
 2 string user
 3 string passwd
 4 string hadoop_bin

QatConfig
 1 bool channel_wise_abs_max True
 2 int32 weight_bits 8
 3 int32 activation_bits 8
 4 string* not_quant_pattern
 5 string algo

BuildStrategy
 1 bool enable_sequential_execution False
 2 bool fuse_elewise_add_act_ops False
 3 bool fuse_bn_act_ops False
 4 bool fuse_relu_depthwise_conv False
 5 bool fuse_broadcast_ops False
 6 bool fuse_all_optimizer_ops False
 7 bool enable_inplace False
 8 bool enable_backward_optimizer_op_deps True
 9 bool cache_runtime_context False
 10 bool fuse_bn_add_act_ops True
 11 bool enable_auto_fusion False
 12 bool enable_addto False
 13 bool fix_op_run_order False
 14 bool allow_cuda_graph_capture False
 15 int32 reduce_strategy 0
 16 bool fuse_gemm_epilogue False
 17 string debug_graphviz_path
 18 bool fused_attention False
 19 bool fused_feedforward False

ExecutionStrategy
 1 int32 num_threads 1
 2 int32 num_iteration_per_drop_scope 10
 3 int32 num_iteration_per_run 1
 4 bool use_thread_barrier False

GradientScaleConfig
 1 string scale_strategy avg
 2 bool scale_gradient False
"""

MESSAGES = messages_of(FIELDS)


class StrategyMessage(Message):
    """A DistributedStrategy, or a message in one."""

    messages = MESSAGES
