"""The slots and attributes of the operators of Paddle 2.6.2, from its own registry, and below of those that 2.0 had beside
them: a line is
`type: inputs -> outputs | attributes`. Behind a slot, * means several variables, ? that it may be left out, ~ that it is
intermediate. One table, long because the operators are many."""

TEXT = """
abs: X -> Out
accuracy: Out Indices Label -> Accuracy Correct Total
acos: X -> Out
acosh: X -> Out
adadelta: Param Grad AvgSquaredGrad AvgSquaredUpdate LearningRate MasterParam? -> ParamOut AvgSquaredGradOut
  AvgSquaredUpdateOut MasterParamOut? | rho epsilon multi_precision
adagrad: Param Grad Moment LearningRate MasterParam? -> ParamOut MomentOut MasterParamOut? | epsilon multi_precision
adam: Param Grad LearningRate Moment1 Moment2 Beta1Pow Beta2Pow MasterParam? SkipUpdate? Beta1Tensor? Beta2Tensor?
  EpsilonTensor? -> ParamOut Moment1Out Moment2Out Beta1PowOut Beta2PowOut MasterParamOut? | beta1 beta2 epsilon
  lazy_mode min_row_size_to_use_multithread multi_precision use_global_beta_pow
adamax: Param Grad LearningRate Moment InfNorm Beta1Pow MasterParam? -> ParamOut MomentOut InfNormOut MasterParamOut?
  | beta1 beta2 epsilon multi_precision
adamw: Param Grad LearningRate Moment1 Moment2 Beta1Pow Beta2Pow MasterParam? SkipUpdate? Beta1Tensor? Beta2Tensor?
  EpsilonTensor? -> ParamOut Moment1Out Moment2Out Beta1PowOut Beta2PowOut MasterParamOut? | beta1 beta2 epsilon
  lr_ratio coeff with_decay lazy_mode min_row_size_to_use_multithread multi_precision use_global_beta_pow
add_position_encoding: X -> Out | alpha beta
addmm: Input X Y -> Out | Beta Alpha
affine_channel: X Scale Bias -> Out | data_layout
affine_grid: Theta OutputShape? -> Output | output_shape align_corners
all_gather: x -> out | ring_id nranks
all_reduce: x -> out | ring_id reduce_type
all_to_all: x -> out | ring_id
allclose: Input Other Rtol? Atol? -> Out | rtol atol equal_nan
alloc_float_status:  -> FloatStatus
alltoall: X -> Out | ring_id use_calc_stream
anchor_generator: Input -> Anchors Variances | anchor_sizes aspect_ratios variances stride offset
angle: X -> Out
arg_max: X -> Out | axis keepdims flatten dtype
arg_min: X -> Out | axis keepdims flatten dtype
argsort: X -> Out Indices | axis descending
array_to_lod_tensor: X RankTable -> Out
as_complex: X -> Out
as_real: X -> Out
as_strided: input -> out | dims stride offset
asin: X -> Out
asinh: X -> Out
assert: Cond Data* ->  | summarize
assign: X? -> Out
assign_pos: X cum_count eff_num_len -> Out
assign_value:  -> Out | shape dtype bool_values fp32_values fp64_values int32_values int64_values
atan: X -> Out
atan2: X1 X2 -> Out
atanh: X -> Out
attention_lstm: X C0 H0? AttentionWeight AttentionBias? AttentionScalar? AttentionScalarBias? LSTMWeight LSTMBias ->
  Hidden Cell AttentionedX~ AttentionFCOut~ LSTMX~ LSTMOUT~ | gate_activation cell_activation candidate_activation
auc: Predict Label StatPos StatNeg InsTagWeight? -> AUC StatPosOut StatNegOut | curve num_thresholds slide_steps
average_accumulates: param in_sum_1 in_sum_2 in_sum_3 in_num_accumulates in_old_num_accumulates in_num_updates ->
  out_sum_1 out_sum_2 out_sum_3 out_num_accumulates out_old_num_accumulates out_num_updates | average_window
  max_average_window min_average_window
barrier: X -> Out | ring_id
batch_fc: Input W Bias -> Out
batch_norm: X Scale? Bias? Mean Variance MomentumTensor? -> Y MeanOut VarianceOut SavedMean~ SavedVariance~
  ReserveSpace? | is_test momentum epsilon data_layout use_global_stats trainable_statistics
bce_loss: X Label -> Out
beam_search: pre_ids pre_scores ids? scores -> selected_ids selected_scores parent_idx? | level beam_size end_id
  is_accumulated
beam_search_decode: Ids Scores -> SentenceIds SentenceScores | beam_size end_id
bernoulli: X -> Out
bicubic_interp: X OutSize? SizeTensor*? Scale? -> Out | data_layout out_d out_h out_w scale interp_method
  align_corners align_mode use_mkldnn
bicubic_interp_v2: X OutSize? SizeTensor*? Scale? -> Out | data_layout out_d out_h out_w scale interp_method
  align_corners align_mode
bilateral_slice: X Grid Guide -> Out | has_offset
bilinear_interp: X OutSize? SizeTensor*? Scale? -> Out | data_layout out_d out_h out_w scale interp_method
  align_corners align_mode use_mkldnn
bilinear_interp_v2: X OutSize? SizeTensor*? Scale? -> Out | data_layout out_d out_h out_w scale interp_method
  align_corners align_mode
bilinear_tensor_product: X Y Weight Bias? -> Out
bincount: X Weights? -> Out | minlength
bipartite_match: DistMat -> ColToRowMatchIndices ColToRowMatchDist | match_type dist_threshold
bitwise_and: X Y -> Out
bitwise_not: X -> Out
bitwise_or: X Y -> Out
bitwise_xor: X Y -> Out
block_multihead_attention: qkv key_cache value_cache seq_lens_encoder seq_lens_decoder seq_lens_this_time
  padding_offsets cum_offsets cu_seqlens_q cu_seqlens_k block_tables pre_key_cache? pre_value_cache? rope_emb? mask?
  tgt_mask? cache_k_quant_scales? cache_v_quant_scales? cache_k_dequant_scales? cache_v_dequant_scales? qkv_out_scale?
  qkv_bias? out_shift? out_smooth? -> fmha_out qkv_out key_cache_out value_cache_out | max_seq_len block_size
  use_neox_style dynamic_cachekv_quant quant_round_type quant_max_bound quant_min_bound out_scale compute_dtype
bmm: X Y -> Out
box_clip: Input ImInfo -> Output
box_coder: PriorBox PriorBoxVar? TargetBox -> OutputBox | code_type box_normalized axis variance
box_decoder_and_assign: PriorBox PriorBoxVar? TargetBox BoxScore -> DecodeBox OutputAssignBox | box_clip
bpr_loss: X Label -> Y
brelu: X -> Out | t_min t_max
broadcast: x -> out | ring_id root
broadcast_tensors: X* -> Out*
c_allgather: X -> Out | ring_id use_calc_stream nranks
c_allreduce_max: X -> Out | ring_id use_calc_stream use_model_parallel
c_allreduce_min: X -> Out | ring_id use_calc_stream use_model_parallel
c_allreduce_prod: X -> Out | ring_id use_calc_stream use_model_parallel
c_allreduce_sum: X Cond? -> Out | ring_id use_calc_stream use_model_parallel
c_broadcast: X -> Out | ring_id root use_calc_stream
c_comm_init: X ->  | nranks rank device_id ring_id endpoints
c_comm_init_all:  ->  | devices ring_id
c_comm_init_multitrainer: X ->  | ntrainers trainer_id devices ring_id
c_concat: X -> Out | rank nranks ring_id use_calc_stream use_model_parallel
c_embedding: W Ids -> Out | start_index vocab_size
c_gen_xccl_id:  -> Out | endpoint other_endpoints rank ring_id
c_identity: X -> Out | ring_id use_calc_stream use_model_parallel
c_reduce_max: X -> Out | ring_id root_id use_calc_stream
c_reduce_min: X -> Out | ring_id root_id use_calc_stream
c_reduce_prod: X -> Out | ring_id root_id use_calc_stream
c_reduce_sum: X -> Out | ring_id root_id use_calc_stream
c_reducescatter: X -> Out | ring_id nranks use_calc_stream
c_scatter: X -> Out | ring_id root nranks use_calc_stream
c_softmax_with_cross_entropy: Logits Label -> Softmax Loss | ignore_index ring_id rank nranks
c_split: X -> Out | rank nranks ring_id use_calc_stream use_model_parallel
c_sync_calc_stream: X -> Out
c_sync_comm_stream: X* -> Out* | ring_id
c_wait_comm: X* -> Out* | ring_id
c_wait_compute: X* -> Out* | ring_id
cast: X -> Out | out_dtype in_dtype use_mkldnn
ceil: X -> Out
celu: X -> Out | alpha
channel_shuffle: X -> Out | groups data_format
check_finite_and_unscale: X* Scale -> Out* FoundInfinite
check_memory_continue: X* -> Out* XOut
check_numerics: tensor -> stats values | op_type var_name check_nan_inf_level stack_height_limit output_dir
cholesky: X -> Out | upper
cholesky_solve: X Y -> Out | upper
chunk_eval: Inference Label SeqLength? -> Precision Recall F1-Score NumInferChunks NumLabelChunks NumCorrectChunks |
  num_chunk_types chunk_scheme excluded_chunk_types
class_center_sample: Label -> RemappedLabel SampledLocalClassCenter | num_classes num_samples ring_id rank nranks
  fix_seed seed
clear_float_status: FloatStatus -> FloatStatusOut
clip: X Min? Max? -> Out | min max
clip_by_norm: X -> Out | max_norm
coalesce_tensor: Input* -> Output* FusedOutput | dtype copy_data set_constant persist_output constant use_align
  align_size user_defined_size_of_dtype concated_shapes concated_ranks
collect_fpn_proposals: MultiLevelRois* MultiLevelScores* MultiLevelRoIsNum*? -> FpnRois RoisNum? | post_nms_topN
complex: X Y -> Out
concat: X* AxisTensor? -> Out | axis
conditional_block: Cond* Input* -> Out* Scope | sub_block is_scalar_condition
conditional_block_infer: Cond* Input* -> Out* Scope | sub_block is_scalar_condition
conj: X -> Out
conv2d: Input Filter -> Output | strides paddings padding_algorithm dilations groups data_format
conv2d_transpose: Input Filter Bias? -> Output | strides paddings output_padding output_size padding_algorithm groups
  dilations data_format
conv3d: Input Filter -> Output | strides paddings padding_algorithm groups dilations data_format
conv3d_transpose: Input Filter -> Output | strides paddings output_padding output_size padding_algorithm groups
  dilations data_format
copy_cross_scope: X Id ->  | to_main_scope num_micro_batches
correlation: Input1 Input2 -> Output | pad_size kernel_size max_displacement stride1 stride2 corr_type_multiply
cos: X -> Out
cosh: X -> Out
create_double_buffer_reader: UnderlyingReader -> Out | place
create_py_reader: blocking_queue -> Out* | shape_concat ranks lod_levels dtypes need_check_feed use_data_config
  device_index device_count
crf_decoding: Emission Transition Label? Length? -> ViterbiPath
crop: X Y? Offsets? -> Out | offsets shape
crop_tensor: X Shape? ShapeTensor*? Offsets? OffsetsTensor*? -> Out | shape offsets
cross: X Y -> Out | dim
cross_entropy: X Label -> Y | soft_label ignore_index
cross_entropy2: X Label -> Y XShape MatchX | ignore_index
ctc_align: Input InputLength? -> Output OutputLength? | blank merge_repeated padding_value
cummax: x -> out indices | axis dtype
cummin: x -> out indices | axis dtype
cumprod: X -> Out | dim
cumsum: X -> Out | axis flatten exclusive reverse
cvm: X CVM -> Y | use_cvm
data: ShapeTensor? ShapeTensorList*? -> out | name shape dtype place
data_norm: scale_w? bias? X BatchSize BatchSum BatchSquareSum -> Y Means~ Scales~ | epsilon slot_dim
  summary_decay_rate enable_scale_and_shift data_layout sync_stats
decayed_adagrad: Param Grad Moment LearningRate -> ParamOut MomentOut | decay epsilon
decode_jpeg: X -> Out | mode
deformable_conv: Input Offset Filter Mask -> Output | strides paddings dilations deformable_groups groups im2col_step
deformable_conv_v1: Input Offset Filter -> Output | strides paddings dilations groups deformable_groups im2col_step
deformable_psroi_pooling: Input ROIs Trans -> TopCount Output | no_trans spatial_scale output_dim group_size
  pooled_height pooled_width part_size sample_per_part trans_std
delete_var: X* ->
density_prior_box: Input Image -> Boxes Variances | variances clip flatten_to_2d step_w step_h offset fixed_sizes
  fixed_ratios densities
depend: X Dep* -> Out
depthwise_conv2d: Input Filter -> Output | strides paddings padding_algorithm groups dilations data_format
depthwise_conv2d_transpose: Input Filter Bias? -> Output | strides paddings output_padding output_size
  padding_algorithm groups dilations data_format
dequantize: Input -> Output | Scale Shift
dequantize_abs_max: X Scale -> Out | max_range
dequantize_linear: X Scale ZeroPoint InAccum? InState? -> Y OutState? OutAccum? OutScale? | quant_axis bit_length
  round_type is_test only_observer
dequantize_log: X Dict -> Out
dequeue:  -> Out* | queue_name
detection_map: DetectRes Label HasState? PosCount? TruePos? FalsePos? -> AccumPosCount AccumTruePos AccumFalsePos MAP
  | class_num background_label overlap_threshold evaluate_difficult ap_type
determinant: Input -> Out
dgc_clip_by_norm: current_step X -> Out | rampup_begin_step max_norm
dgc_momentum: Param Grad Velocity LearningRate MasterParam? current_step nranks -> ParamOut VelocityOut
  MasterParamOut? Grad_out | mu use_nesterov regularization_method regularization_coeff multi_precision rescale_grad
  rampup_begin_step
diag_embed: Input -> Out | offset dim1 dim2
diag_v2: X -> Out | offset padding_value
diagonal: Input -> Out | offset axis1 axis2
digamma: X -> Out
dirichlet: Alpha -> Out
dist: X Y -> Out | p
dist_concat: x -> out | ring_id nranks
distribute_fpn_proposals: FpnRois RoisNum? -> MultiFpnRois* RestoreIndex MultiLevelRoIsNum*? | min_level max_level
  refer_level refer_scale pixel_offset
distributed_fused_lamb: Param* Grad* FP32FusedParam? FP32FusedGrad? FP16FusedParam? FP16FusedGrad? Moment1 Moment2
  Beta1Pow Beta2Pow FusedParamOffsets FP32ShardFusedParamOffsets FP16ShardFusedParamOffsets ParamInfo ParamOrder
  LearningRate GlobalScale -> FP32FusedParamOut? FP16FusedParamOut? FP32AccFusedGrad? FP16AccFusedGrad? Moment1Out
  Moment2Out Beta1PowOut Beta2PowOut ParamOut* FoundInf AccStep? StopUpdate? Step | acc_steps beta1 beta2 epsilon
  max_global_grad_norm weight_decay clip_after_allreduce use_master_param_norm use_master_acc_grad
  is_grad_scaled_by_nranks nranks ring_ids use_hierarchical_allreduce
distributed_fused_lamb_init: Param* Grad* -> FP32FusedParam? FP32FusedGrad? FP16FusedParam? FP16FusedGrad? Moment1
  Moment2 Beta1Pow Beta2Pow FusedParamOffsets FP32ShardFusedParamOffsets FP16ShardFusedParamOffsets ParamInfo
  ParamOrder ParamOut* MasterParamOut* GradOut* GlobalScale Step | beta1 beta2 apply_weight_decay alignment rank
  nranks
distributed_lookup_table: Ids* W -> Outputs* | table_id is_distributed lookup_table_version padding_idx dtype is_test
distributed_push_sparse: Ids* Shows* Clicks* -> Outputs* | table_id size is_distributed push_sparse_version
  padding_idx dtype is_test use_cvm_op
dot: X Y -> Out
dpsgd: Param Grad LearningRate -> ParamOut | clip batch_size sigma seed
dropout: X Seed? -> Out Mask~ | dropout_prob is_test dropout_implementation
dropout_nd: X Seed? -> Out Mask~ | dropout_prob is_test dropout_implementation axis
edit_distance: Hyps Refs HypsLength? RefsLength? -> SequenceNum Out | normalized
eig: X -> Eigenvalues Eigenvectors
eigh: X -> Eigenvalues Eigenvectors | UPLO
eigvals: X -> Out
eigvalsh: X -> Eigenvalues Eigenvectors | UPLO is_test
einsum: Operands* -> Out InnerCache*~ XShape*~ | equation
elementwise_add: X Y -> Out | axis
elementwise_div: X Y -> Out | axis
elementwise_floordiv: X Y -> Out | axis
elementwise_fmax: X Y -> Out
elementwise_fmin: X Y -> Out
elementwise_heaviside: X Y -> Out
elementwise_max: X Y -> Out | axis
elementwise_min: X Y -> Out | axis
elementwise_mod: X Y -> Out | axis
elementwise_mul: X Y -> Out | axis
elementwise_pow: X Y -> Out | axis
elementwise_sub: X Y -> Out | axis
elu: X -> Out | alpha
empty: ShapeTensor? ShapeTensorList*? -> Out | shape dtype
enqueue: X ->  | queue_name
equal: X Y -> Out | axis force_cpu
equal_all: X Y -> Out
erf: X -> Out
erfinv: X -> Out
exp: X -> Out
expand: X ExpandTimes? expand_times_tensor*? -> Out | expand_times
expand_as_v2: X Y? -> Out | target_shape
expand_v2: X Shape? expand_shapes_tensor*? -> Out | shape
expm1: X -> Out
exponential: X -> Out | lambda
eye:  -> Out | num_rows num_columns dtype
fake_channel_wise_dequantize_max_abs: X Scales* -> Out | quant_bits quant_axis x_num_col_dims
fake_channel_wise_quantize_abs_max: X -> Out OutScale | quant_axis bit_length is_test
fake_channel_wise_quantize_dequantize_abs_max: X -> Out OutScale | quant_axis bit_length
fake_dequantize_max_abs: X Scale -> Out | max_range
fake_init:  -> Out | shape
fake_quantize_abs_max: X -> Out OutScale | bit_length
fake_quantize_dequantize_abs_max: X -> Out OutScale | bit_length
fake_quantize_dequantize_moving_average_abs_max: X InScale InAccum? InState? -> Out OutScale OutState? OutAccum? |
  moving_rate bit_length is_test
fake_quantize_moving_average_abs_max: X InScale InAccum? InState? -> Out OutScale OutState? OutAccum? | moving_rate
  bit_length is_test
fake_quantize_range_abs_max: X InScale Iter? -> Out OutScale OutScales? | window_size bit_length is_test
faster_tokenizer: Vocab Text TextPair? -> InputIds SegmentIds | do_lower_case is_split_into_words max_seq_len
  pad_to_max_seq_len
fc: Input W Bias? -> Out | in_num_col_dims activation_type use_mkldnn padding_weights use_quantizer mkldnn_data_type
  Scale_in Scale_weights Scale_out force_fp32_output
feed: X -> Out | col
fetch: X -> Out | col
fetch_barrier: X*? -> Out* | trainer_id endpoints
fetch_v2: X -> Out | col deepcopy
fft_c2c: X -> Out | axes normalization forward
fft_c2r: X -> Out | axes normalization forward last_dim_size
fft_r2c: X -> Out | axes normalization forward onesided
fill:  -> Out | value shape dtype force_cpu
fill_any: X -> Out | value
fill_any_like: X -> Out | value dtype
fill_constant: ValueTensor? ShapeTensor? ShapeTensorList*? -> Out | dtype shape value str_value force_cpu place_type
fill_constant_batch_size_like: Input -> Out | shape input_dim_idx output_dim_idx dtype value str_value force_cpu
fill_diagonal: X -> Out | value offset wrap
fill_diagonal_tensor: X Y -> Out | offset dim1 dim2
fill_zeros_like: X -> Out
fill_zeros_like2: X -> Out | dtype
flash_attn: q k v fixed_seed_offset? attn_mask? -> out softmax softmax_lse seed_offset | dropout causal return_softmax
  is_test rng_name
flash_attn_unpadded: q k v cu_seqlens_q cu_seqlens_k fixed_seed_offset? attn_mask? -> out softmax softmax_lse~
  seed_offset~ | max_seqlen_q max_seqlen_k scale dropout causal return_softmax is_test rng_name
flatten2: X -> Out XShape~ | axis use_mkldnn mkldnn_data_type
flatten_contiguous_range: X -> Out XShape~ | start_axis stop_axis
flip: X -> Out | axis
floor: X -> Out
fold: X -> Y | output_sizes kernel_sizes strides paddings dilations
frame: X -> Out | frame_length hop_length axis
frobenius_norm: X -> Out | dim keep_dim reduce_all in_dtype out_dtype
fsp: X Y -> Out
ftrl: Param SquaredAccumulator LinearAccumulator Grad LearningRate -> ParamOut SquaredAccumOut LinearAccumOut | l1 l2
  lr_power
full_int_array:  -> out | value dtype place
fused_adam: Params* Grads* LearningRate Moments1* Moments2* Beta1Pows* Beta2Pows* MasterParams*? SkipUpdate? ->
  ParamsOut* Moments1Out* Moments2Out* Beta1PowsOut* Beta2PowsOut* MasterParamsOut*? | beta1 beta2 epsilon chunk_size
  weight_decay use_adamw multi_precision use_global_beta_pow
fused_bias_act: x bias? dequant_scales? shift? smooth? -> out | act_method compute_dtype quant_scale quant_round_type
  quant_max_bound quant_min_bound
fused_bias_dropout_residual_layer_norm: X Residual Bias? LnScale? LnBias? -> Y BiasDropoutResidualOut~ DropoutMaskOut~
  LnMean~ LnVariance~ | dropout_rate is_test dropout_fix_seed dropout_seed dropout_implementation ln_epsilon
fused_bias_residual_layernorm: x bias? residual? norm_weight? norm_bias? -> out residual_out? mean variance | epsilon
  residual_alpha begin_norm_axis quant_scale quant_round_type quant_max_bound quant_min_bound
fused_conv2d: Input Filter Bias? ResidualData? -> Output | strides paddings padding_algorithm dilations groups
  data_format mkldnn_data_type fuse_activation fuse_residual_connection force_fp32_output use_mkldnn
fused_conv2d_add_act: Input Filter Bias? ResidualData? -> Output Outputs*? | strides paddings padding_algorithm
  dilations groups data_format activation split_channels exhaustive_search workspace_size_MB fuse_alpha
fused_conv3d: Input Filter Bias? ResidualData? -> Output | strides paddings padding_algorithm dilations groups
  data_format mkldnn_data_type fuse_activation fuse_residual_connection force_fp32_output use_mkldnn
fused_dconv_drelu_dbn: grad_output weight grad_output_add? residual_input? bn1_eqscale? bn1_eqbias? conv_input?
  bn1_mean bn1_inv_std bn1_gamma bn1_beta bn1_input bn2_mean? bn2_inv_std? bn2_gamma? bn2_beta? bn2_input? ->
  grad_weight grad_bn1_input grad_bn1_gamma grad_bn1_beta grad_bn2_input? grad_bn2_gamma? grad_bn2_beta? | paddings
  dilations strides padding_algorithm groups data_format fuse_shortcut fuse_dual fuse_add exhaustive_search
fused_dropout_add: x y seed_tensor? PTensor? -> out seed_offset | p is_test mode seed fix_seed
fused_elementwise_add: X Y -> Out | axis fuse_activation fuse_alpha fuse_beta fused_output_scale fused_unsqueeze2_axes
  scale_x scale_y scale_out
fused_elementwise_div: X Y -> Out | axis fuse_activation fuse_alpha fuse_beta fused_output_scale fused_unsqueeze2_axes
  scale_x scale_y scale_out
fused_elementwise_mul: X Y -> Out | axis fuse_activation fuse_alpha fuse_beta fused_output_scale fused_unsqueeze2_axes
  scale_x scale_y scale_out
fused_elementwise_sub: X Y -> Out | axis fuse_activation fuse_alpha fuse_beta fused_output_scale fused_unsqueeze2_axes
  scale_x scale_y scale_out
fused_elemwise_activation: X Y -> Out IntermediateOut~ | axis scale save_intermediate_out functor_list
fused_elemwise_add_activation: X Y -> Out IntermediateOut~ | axis scale save_intermediate_out functor_list
fused_embedding_eltwise_layernorm: Ids* Embs* Bias Scale -> Out | epsilon
fused_embedding_fc_lstm: Ids Embeddings WeightH Bias H0? C0? -> Hidden Cell XX~ BatchedInput~ BatchedHidden~
  BatchedCell~ ReorderedH0~ ReorderedC0~ | use_peepholes is_reverse use_seq gate_activation cell_activation
  candidate_activation
fused_embedding_seq_pool: W Ids -> Out | combiner padding_idx grad_inplace is_sparse
fused_fc_elementwise_layernorm: X W Y Bias0? Scale? Bias1? -> Out Mean? Variance? | x_num_col_dims activation_type
  epsilon begin_norm_axis
fused_linear_param_grad_add: x dout dweight? dbias? -> dweight_out dbias_out | multi_precision has_bias
fused_matmul: X Y ResidualData? -> Out | trans_x trans_y matmul_alpha fuse_activation fuse_alpha fuse_beta
  fused_output_scale fused_reshape_X fused_transpose_X fused_reshape_Y fused_transpose_Y fused_reshape_Out
  fused_transpose_Out mkldnn_data_type Scale_x Scale_y Scale_in_eltwise Scale_out force_fp32_output
fused_rotary_position_embedding: q k? v? sin? cos? position_ids? -> out_q out_k? out_v? | use_neox_rotary_style
fused_scale_bias_add_relu: x1 scale1 bias1 x2 scale2? bias2? -> out | fuse_dual exhaustive_search
fused_scale_bias_relu_conv_bn: x w scale? bias? bn_scale bn_bias input_running_mean input_running_var -> out
  out_running_mean out_running_var saved_mean saved_var eq_scale eq_bias | paddings dilations strides
  padding_algorithm groups data_format momentum epsilon fuse_prologue exhaustive_search accumulation_count
fused_seqpool_cvm: X* CVM -> Out* | pooltype pad_value use_cvm cvm_offset
fused_softmax_mask: X Mask -> Out
fused_softmax_mask_upper_triangle: X -> Out
fused_softplus: X -> Out | beta threshold fuse_activation fuse_alpha fuse_beta
fused_token_prune: Attn X Mask NewMask -> SlimmedX CLSInds | keep_first_token keep_order
fused_transpose: X -> Out XShape~ | axis fused_squeeze2_axes fused_unsqueeze2_axes fused_reshape2_shape scale shift
  output_data_type
fusion_gru: X H0? WeightX WeightH Bias? -> ReorderedH0~ XX~ BatchedInput~ BatchedOut~ Hidden | activation
  gate_activation is_reverse use_seq origin_mode use_mkldnn mkldnn_data_type Scale_data Shift_data Scale_weights
  force_fp32_output
fusion_lstm: X WeightX WeightH Bias H0? C0? -> Hidden Cell XX~ BatchedInput~ BatchedHidden~ BatchedCell~ ReorderedH0~
  ReorderedC0~ CheckedCell~ | use_peepholes is_reverse use_seq gate_activation cell_activation candidate_activation
  use_mkldnn mkldnn_data_type Scale_data Shift_data Scale_weights force_fp32_output
fusion_repeated_fc_relu: X W* Bias* -> ReluOut*~ Out
fusion_seqconv_eltadd_relu: X Filter Bias -> Out ColMat~ | contextLength contextStart contextStride
fusion_seqexpand_concat_fc: X* FCWeight FCBias? -> Out FCOut~ | fc_activation
fusion_seqpool_concat: X* -> Out | pooltype axis
fusion_seqpool_cvm_concat: X* CVM -> Out | pooltype use_cvm axis
fusion_squared_mat_sub: X Y -> SquaredX~ SquaredY~ SquaredXY~ Out | scalar
fusion_transpose_flatten_concat: X* -> Out | trans_axis flatten_axis concat_axis
gather: X Index Axis? -> Out | axis
gather_nd: X Index -> Out
gather_tree: Ids Parents -> Out
gaussian_inplace: x -> out | mean std seed
gaussian_random: ShapeTensor? ShapeTensorList*? -> Out | shape mean std seed dtype
gelu: X -> Out | approximate
generate_mask_labels: ImInfo GtClasses IsCrowd GtSegms Rois LabelsInt32 -> MaskRois RoiHasMaskInt32 MaskInt32 |
  num_classes resolution
generate_proposal_labels: RpnRois GtClasses IsCrowd GtBoxes ImInfo MaxOverlap? -> Rois LabelsInt32 BboxTargets
  BboxInsideWeights BboxOutsideWeights MaxOverlapWithGT | batch_size_per_im fg_fraction fg_thresh bg_thresh_hi
  bg_thresh_lo bbox_reg_weights class_nums use_random is_cascade_rcnn is_cls_agnostic
generate_proposals: Scores BboxDeltas ImInfo Anchors Variances -> RpnRois RpnRoiProbs RpnRoisNum? | pre_nms_topN
  post_nms_topN nms_thresh min_size eta
generate_proposals_v2: Scores BboxDeltas ImShape Anchors Variances -> RpnRois RpnRoiProbs RpnRoisNum? | pre_nms_topN
  post_nms_topN nms_thresh min_size eta pixel_offset
get_float_status: FloatStatus -> FloatStatusOut
get_places:  -> Out | device_count device_type
get_tensor_from_selected_rows: X -> Out
global_gather: X local_count global_count -> Out | ring_id use_calc_stream
global_scatter: X local_count global_count -> Out | ring_id use_calc_stream
grad_add: X Y -> Out | axis
graph_khop_sampler: Row Eids? Col_Ptr X -> Out_Src Out_Dst Sample_Index Reindex_X Out_Eids~ | sample_sizes return_eids
graph_reindex: X Neighbors Count HashTable_Value? HashTable_Index? -> Reindex_Src Reindex_Dst Out_Nodes
graph_sample_neighbors: Row Col_Ptr X Eids? Perm_Buffer? -> Out Out_Count Out_Eids | sample_size return_eids
  flag_perm_buffer
graph_send_recv: X Src_index Dst_index Out_size? -> Out Dst_count~ | reduce_op out_size
graph_send_ue_recv: X Y Src_index Dst_index Out_size? -> Out Dst_count~ | message_op reduce_op out_size
graph_send_uv: x y src_index dst_index -> out | message_op
greater_equal: X Y -> Out | axis force_cpu
greater_than: X Y -> Out | axis force_cpu
grid_sampler: X Grid -> Output | mode padding_mode align_corners
group_norm: X Scale? Bias? -> Y Mean~ Variance~ | epsilon groups data_layout
gru: Input H0? Weight Bias? -> BatchGate~ BatchResetHiddenPrev~ BatchHidden~ Hidden | activation gate_activation
  is_reverse origin_mode
gru_unit: Input HiddenPrev Weight Bias? -> Gate~ ResetHiddenPrev~ Hidden | activation gate_activation origin_mode
gumbel_softmax: X -> Out | temperature hard axis
hard_shrink: X -> Out | threshold
hard_sigmoid: X -> Out | slope offset
hard_swish: X -> Out | threshold scale offset
hash: X -> Out | num_hash mod_by
heter_listen_and_serv: X* ->  | endpoint pserver_id message_to_block_id distributed_mode optimize_blocks fanin
  rpc_exec_thread_num
hierarchical_sigmoid: X W Label PathTable? PathCode? Bias? -> Out PreOut~ W_Out~ | num_classes trainer_id
  height_sections epmap table_names is_sparse
hinge_loss: Logits Labels -> Loss
histogram: X -> Out | bins min max
huber_loss: X Y -> Out Residual~ | delta
i0: x -> out
i0e: x -> out
i1: x -> out
i1e: x -> out
identity_loss: X -> Out | reduction
im2sequence: X Y? -> Out | kernels strides paddings out_stride
imag: X -> Out
increment: X -> Out | step
index_add: X Index AddValue -> Out | axis
index_put: x indices* value -> out | accumulate
index_sample: X Index -> Out
index_select: X Index -> Out | dim
index_select_strided: x -> out | index axis
instance_norm: X Scale? Bias? -> Y SavedMean~ SavedVariance~ | epsilon
inverse: Input -> Output
iou_similarity: X Y -> Out | box_normalized
is_empty: X -> Out
isclose: Input Other Rtol? Atol? -> Out | rtol atol equal_nan
isfinite_v2: X -> Out
isinf: X -> Out
isinf_v2: X -> Out
isnan: X -> Out
isnan_v2: X -> Out
kldiv_loss: X Target -> Loss | reduction
kron: X Y -> Out
kthvalue: X -> Out Indices | k axis keepdim
l1_norm: X -> Out
label_smooth: X PriorDist? -> Out | epsilon
lamb: Param Grad LearningRate Moment1 Moment2 Beta1Pow Beta2Pow MasterParam? SkipUpdate? -> ParamOut Moment1Out
  Moment2Out Beta1PowOut? Beta2PowOut? MasterParamOut? | weight_decay beta1 beta2 epsilon always_adapt multi_precision
lars_momentum: Param* Grad* Velocity* LearningRate* MasterParam*? -> ParamOut* VelocityOut* MasterParamOut*? | mu
  lars_coeff lars_weight_decay epsilon multi_precision rescale_grad
layer_norm: X Scale? Bias? -> Y Mean~ Variance~ | epsilon begin_norm_axis
leaky_relu: X -> Out | alpha
lerp: X Y Weight -> Out
less_equal: X Y -> Out | axis force_cpu
less_than: X Y -> Out | axis force_cpu
lgamma: X -> Out
limit_by_capacity: expert_count capacity -> Out | n_worker
linear_chain_crf: Emission Transition Label Length? -> Alpha~ EmissionExps~ TransitionExps~ LogLikelihood
linear_interp: X OutSize? SizeTensor*? Scale? -> Out | data_layout out_d out_h out_w scale interp_method align_corners
  align_mode use_mkldnn
linear_interp_v2: X OutSize? SizeTensor*? Scale? -> Out | data_layout out_d out_h out_w scale interp_method
  align_corners align_mode
linspace: Start Stop Num -> Out | dtype
listen_and_serv: X* ->  | endpoint pserver_id grad_to_block_id distributed_mode dc_asgd optimize_blocks
  prefetch_var_name_to_block_id sparse_grad_to_param Fanin checkpint_block_id lr_decay_block_id rpc_get_thread_num
  rpc_send_thread_num rpc_prefetch_thread_num
llm_int8_linear: x weight bias? weight_scale -> out | threshold
load:  -> Out | load_as_fp16 file_path seek shape
load_combine:  -> Out* | load_as_fp16 file_path model_from_memory
locality_aware_nms: BBoxes Scores -> Out | background_label score_threshold nms_top_k nms_threshold nms_eta keep_top_k
  normalized
lod_array_length: X -> Out
lod_rank_table: X -> Out | level
lod_reset: X Y? -> Out | target_lod append
lod_tensor_to_array: X RankTable -> Out
log: X -> Out
log10: X -> Out
log1p: X -> Out
log2: X -> Out
log_loss: Predicted Labels -> Loss | epsilon
log_softmax: X -> Out | axis
logcumsumexp: X -> Out | axis flatten exclusive reverse
logical_and: X Y -> Out
logical_not: X -> Out
logical_or: X Y -> Out
logical_xor: X Y -> Out
logit: X -> Out | eps
logsigmoid: X -> Out
logspace: Start Stop Num Base -> Out | dtype
logsumexp: X -> Out | axis keepdim reduce_all
lookup_table: W Ids -> Out | is_sparse is_distributed padding_idx remote_prefetch entry_config is_test entry
  table_class table_names trainer_id slot grad_inplace epmap height_sections
lookup_table_dequant: W Ids -> Out | padding_idx
lookup_table_v2: Ids W -> Out | padding_idx
lrn: X -> Out MidOut | n k alpha beta data_format
lstm: Input H0? C0? Weight Bias -> Hidden Cell BatchGate~ BatchCellPreAct~ | use_peepholes is_reverse is_test
  gate_activation cell_activation candidate_activation
lstmp: Input H0? C0? Weight ProjWeight Bias -> Projection Cell BatchGate~ BatchCellPreAct~ BatchHidden~ | use_peepholes
  is_reverse cell_clip proj_clip gate_activation cell_activation candidate_activation proj_activation
lstsq: X Y -> Solution Residuals? Rank SingularValues | rcond driver
lu: X -> Out Pivots Infos | pivots
lu_unpack: X Pivots -> Pmat L U | unpack_ludata unpack_pivots
margin_cross_entropy: Logits Label -> Softmax Loss | return_softmax ring_id rank nranks margin1 margin2 margin3 scale
masked_multihead_attention: x cache_kv bias? src_mask? cum_offsets? sequence_lengths? rotary_tensor?
  beam_cache_offset? qkv_out_scale? out_shift? out_smooth? -> out cache_kv_out beam_cache_offset_out | seq_len
  rotary_emb_dims use_neox_rotary_style compute_dtype out_scale quant_round_type quant_max_bound quant_min_bound
masked_select: X Mask -> Y
match_matrix_tensor: X Y W -> Out Tmp | dim_t
matmul: X Y -> Out | transpose_X transpose_Y alpha use_mkldnn use_quantizer mkldnn_data_type Scale_x Scale_y Scale_out
  force_fp32_output head_number
matmul_v2: X Y -> Out | trans_x trans_y
matrix_nms: BBoxes Scores -> Out Index RoisNum? | score_threshold nms_top_k keep_top_k post_threshold use_gaussian
  gaussian_sigma background_label normalized
matrix_power: X -> Out | n
matrix_rank: X TolTensor? -> Out | tol hermitian use_default_tol
max_pool2d_with_index: X -> Out Mask | ksize strides paddings global_pooling adaptive
max_pool3d_with_index: X -> Out Mask | ksize strides paddings global_pooling adaptive
max_sequence_len: RankTable -> Out
maxout: X -> Out | groups axis
mean: X -> Out
memcpy: X -> Out | dst_place_type
memcpy_d2h: X -> Out | dst_place_type
memcpy_h2d: X -> Out | dst_place_type
memory_efficient_attention: query key value bias? cu_seqlens_q? cu_seqlens_k? causal_diagonal? seqlen_k?
  MaxSeqlenQTensor? MaxSeqlenKTensor? -> output logsumexp seed_and_offset | max_seqlen_q max_seqlen_k causal dropout_p
  scale is_test
merge_lod_tensor: X Mask InTrue InFalse -> Out | level
merge_lod_tensor_infer: X Mask InTrue InFalse -> Out | level
merge_selected_rows: X -> Out
merged_adam: Param* Grad* LearningRate* Moment1* Moment2* Beta1Pow* Beta2Pow* MasterParam*? -> ParamOut* Moment1Out*
  Moment2Out* Beta1PowOut* Beta2PowOut* MasterParamOut*? | beta1 beta2 epsilon multi_precision use_global_beta_pow
merged_momentum: Param* Grad* Velocity* LearningRate* MasterParam*? -> ParamOut* VelocityOut* MasterParamOut*? | mu
  use_nesterov regularization_method regularization_coeff multi_precision rescale_grad
meshgrid: X* -> Out*
mine_hard_examples: ClsLoss LocLoss? MatchIndices MatchDist -> NegIndices UpdatedMatchIndices | neg_pos_ratio
  neg_dist_threshold sample_size mining_type
minus: X Y -> Out
mish: X -> Out | threshold
mode: X -> Out Indices | axis keepdim
modified_huber_loss: X Y -> IntermediateVal~ Out
moe: X Gate Bmm0 Bias0 Bmm1 Bias1 -> Out | act_type
momentum: Param Grad Velocity LearningRate MasterParam? -> ParamOut VelocityOut MasterParamOut? | mu use_nesterov
  regularization_method regularization_coeff multi_precision rescale_grad
moving_average_abs_max_scale: X InAccum? InState? -> Out? OutScale OutState? OutAccum? | moving_rate is_test
mp_allreduce_sum: X -> Out | ring_id use_calc_stream
mul: X Y -> Out | x_num_col_dims y_num_col_dims
multi_dot: X* -> Out
multi_gru: X WeightX* WeightH* Bias*? Scale_weights*? -> Hidden | activation gate_activation layers origin_mode
  mkldnn_data_type Scale_data Shift_data force_fp32_output
multiclass_nms: BBoxes Scores -> Out | background_label score_threshold nms_top_k nms_threshold nms_eta keep_top_k
  normalized
multiclass_nms2: BBoxes Scores -> Out Index~ | background_label score_threshold nms_top_k nms_threshold nms_eta
  keep_top_k normalized
multiclass_nms3: BBoxes Scores RoisNum? -> Out Index NmsRoisNum? | score_threshold nms_top_k keep_top_k nms_threshold
  normalized nms_eta background_label
multihead_matmul: Input W Bias BiasQK? -> Out | transpose_Q transpose_K transpose_V alpha head_number
multinomial: X -> Out | num_samples replacement
multiplex: X* Ids -> Out
mv: X Vec -> Out
nanmedian: X -> Out MedianIndex~ | axis keepdim
nce: Input Label Weight Bias? SampleWeight? CustomDistProbs? CustomDistAlias? CustomDistAliasProbs? -> Cost
  SampleLogits~ SampleLabels~ | num_total_classes custom_neg_classes num_neg_samples sampler seed is_sparse remote_prefetch is_test
nearest_interp: X OutSize? SizeTensor*? Scale? -> Out | data_layout out_d out_h out_w scale interp_method
  align_corners align_mode use_mkldnn
nearest_interp_v2: X OutSize? SizeTensor*? Scale? -> Out | data_layout out_d out_h out_w scale interp_method
  align_corners align_mode
nextafter: x y -> out
nll_loss: X Label Weight? -> Out Total_weight | ignore_index reduction
nms: Boxes -> KeepBoxesIdxs | iou_threshold
nop: X* -> Out*
norm: X -> Out Norm~ | axis epsilon is_test
not_equal: X Y -> Out | axis force_cpu
npu_identity: x -> out | format
number_count: numbers -> Out | upper_range
one_hot_v2: X depth_tensor? -> Out | depth dtype allow_out_of_range
overlap_add: X -> Out | hop_length axis
p_norm: X -> Out | porder axis epsilon keepdim asvector
p_recv:  -> out | ring_id peer dtype dynamic_shape
p_recv_array:  -> out | ring_id peer dtype out_shape
p_send: x ->  | ring_id peer dynamic_shape
p_send_array: x* ->  | ring_id peer
pad: X -> Out | paddings pad_value
pad2d: X Paddings? -> Out | paddings pad_value mode data_format
pad3d: X Paddings? -> Out | paddings mode value data_format
partial_allgather: X -> Out | ring_id use_calc_stream nranks rank
partial_concat: X* -> Out | start_index length
partial_recv:  -> Out | ring_id peer dtype out_shape use_calc_stream num id
partial_send: X ->  | ring_id peer use_calc_stream num id
partial_sum: X* -> Out | start_index length
pixel_shuffle: X -> Out | upscale_factor data_format
pixel_unshuffle: X -> Out | downscale_factor data_format
poisson: X -> Out
polygamma: x -> out | n
polygon_box_transform: Input -> Output
pool2d: X -> Out | ksize strides paddings ceil_mode exclusive data_format pooling_type global_pooling adaptive
  padding_algorithm use_cudnn
pool3d: X -> Out | ksize strides paddings ceil_mode exclusive data_format pooling_type global_pooling adaptive
  padding_algorithm use_cudnn
positive_negative_pair: Score Label QueryID AccumulatePositivePair? AccumulateNegativePair? AccumulateNeutralPair?
  Weight? -> PositivePair NegativePair NeutralPair? | column
pow: X FactorTensor? -> Out | factor
pow2_decay_with_linear_warmup: LearningRate Step -> LearningRateOut StepOut | warmup_steps total_steps base_lr end_lr
precision_recall: MaxProbs Indices Labels Weights? StatesInfo? -> BatchMetrics AccumMetrics AccumStatesInfo |
  class_number
prelu: X Alpha -> Out | data_format mode
print: In -> Out | first_n message summarize print_tensor_name print_tensor_type print_tensor_shape
  print_tensor_layout print_tensor_lod print_phase is_forward
prior_box: Input Image -> Boxes Variances | min_sizes max_sizes aspect_ratios variances flip clip step_w step_h offset
  min_max_aspect_ratios_order
proximal_gd: Param Grad LearningRate -> ParamOut | l1 l2
prune_gate_by_capacity: GateIdx ExpertCount -> NewGateIdx | n_expert n_worker
psroi_pool: X ROIs RoisNum? -> Out | pooled_height pooled_width output_channels spatial_scale
pull_box_extended_sparse: Ids* -> Out* OutExtend* | emb_size emb_extended_size
pull_box_sparse: W? Ids* -> Out* | is_sparse is_distributed size
pull_gpups_sparse: W? Ids* -> Out* | size is_sparse is_distributed
pull_sparse: Ids* W* -> Out* | EmbeddingDim TableId AccessorClass CtrLabelName PaddingId ScaleSparseGrad InputNames
  is_distributed
pull_sparse_v2: Ids* W* -> Out* | EmbeddingDim TableId AccessorClass CtrLabelName PaddingId ScaleSparseGrad InputNames
  is_distributed
push_dense: Ids* ->  | TableId ScaleDataNorm InputNames
put_along_axis: Input Index Value -> Result | Axis Reduce Include_self
py_func: X* -> Out* | forward_callable_id backward_callable_id backward_skip_vars
pylayer: Input* -> Out* Scope | blocks
pyramid_hash: X W WhiteList BlackList -> Out DropPos X_Temp_Out~ | num_emb space_len pyramid_layer rand_len
  drop_out_percent is_training use_filter white_list_len black_list_len seed lr distribute_update_vars
qr: X -> Q R | mode
quant_linear: x w bias? -> out | in_num_col_dims activation_type padding_weights scale_in scale_weights
  quant_round_type quant_max_bound quant_min_bound
quantize: Input -> Output | is_negative_input Scale Shift output_format bfloat16
quantize_linear: X Scale ZeroPoint InAccum? InState? -> Y OutState? OutAccum? OutScale? | quant_axis bit_length
  round_type is_test only_observer
queue_generator:  ->  | names capacity
randint: ShapeTensor? ShapeTensorList*? -> Out | low high shape dtype seed
random_routing: Prob TopK_Value TopK_Idx -> Out
randperm:  -> Out | n dtype
range: Start End Step -> Out
rank_attention: X RankOffset RankParam -> InputHelp? Out InsRank? | MaxRank MaxSize
rank_loss: Label Left Right -> Out
read: Reader -> Out* | throw_eof_exp infer_out drop_last
read_file:  -> Out | filename
read_from_array: X I X_W? -> Out
real: X -> Out
reciprocal: X -> Out
recurrent: inputs* initial_states* parameters* -> outputs* step_scopes | has_states ex_states states sub_block reverse
  is_train skip_eager_deletion_vars
recv_v2:  -> Out | ring_id peer dtype out_shape use_calc_stream dynamic_shape
reduce: x -> out | ring_id root_id reduce_type
reduce_all: X AxisTensor? AxisTensorList*? -> Out | dim keep_dim reduce_all in_dtype out_dtype
reduce_amax: X AxisTensor? AxisTensorList*? -> Out | dim keep_dim reduce_all in_dtype out_dtype
reduce_amin: X AxisTensor? AxisTensorList*? -> Out | dim keep_dim reduce_all in_dtype out_dtype
reduce_any: X AxisTensor? AxisTensorList*? -> Out | dim keep_dim reduce_all in_dtype out_dtype
reduce_max: X -> Out | dim keep_dim reduce_all in_dtype out_dtype
reduce_mean: X -> Out | dim keep_dim reduce_all in_dtype out_dtype
reduce_min: X -> Out | dim keep_dim reduce_all in_dtype out_dtype
reduce_prod: X -> Out | dim keep_dim reduce_all in_dtype out_dtype
reduce_scatter: x -> out | ring_id nranks
reduce_sum: X -> Out | dim keep_dim reduce_all in_dtype out_dtype
relu: X -> Out
relu6: X -> Out
renorm: X -> Out | p axis max_norm
reorder_lod_tensor_by_rank: X RankTable -> Out
repeat_interleave: X RepeatsTensor? -> Out | Repeats dim
requantize: Input -> Output | Scale_in Scale_out Shift_in Shift_out
reshape: X Shape? ShapeTensor*? -> Out | shape use_mkldnn
reshape2: X Shape? ShapeTensor*? -> Out XShape~ | shape use_mkldnn use_quantizer mkldnn_data_type
retinanet_detection_output: BBoxes* Scores* Anchors* ImInfo -> Out | score_threshold nms_top_k nms_threshold nms_eta
  keep_top_k
retinanet_target_assign: Anchor GtBoxes GtLabels IsCrowd ImInfo -> LocationIndex ScoreIndex TargetBBox TargetLabel
  BBoxInsideWeight ForegroundNumber | positive_overlap negative_overlap
reverse: X -> Out | axis
rms_norm: x bias? residual? norm_weight norm_bias? -> out residual_out? | epsilon begin_norm_axis quant_scale
  quant_round_type quant_max_bound quant_min_bound
rmsprop: Param MeanSquare Grad Moment LearningRate MeanGrad? MasterParam? -> ParamOut MomentOut MeanSquareOut
  MeanGradOut MasterParamOut? | epsilon decay momentum centered multi_precision
rnn: Input PreState* WeightList* SequenceLength? -> Out DropoutState? State* Reserve~ | dropout_prob is_bidirec
  input_size hidden_size num_layers mode seed is_test
roi_align: X ROIs RoisNum? -> Out | pooled_height pooled_width spatial_scale sampling_ratio aligned
roi_pool: X ROIs RoisNum? -> Out Argmax~ | pooled_height pooled_width spatial_scale
roll: X ShiftsTensor? -> Out | shifts axis
round: X -> Out
row_conv: X Filter -> Out
rpn_target_assign: Anchor GtBoxes IsCrowd ImInfo -> LocationIndex ScoreIndex TargetBBox TargetLabel BBoxInsideWeight |
  rpn_batch_size_per_im rpn_straddle_thresh rpn_positive_overlap rpn_negative_overlap rpn_fg_fraction use_random
rrelu: X -> Out Noise~ | is_test lower upper
rsqrt: X -> Out
run_program: X* Params*? -> Out* OutScope DOut*? CUDAGraph? | global_block start_op_index end_op_index is_test
  in_pir_pt_mode program_id cuda_graph_capture_mode cuda_graph_pool_id use_interpretorcore forward_global_block
  backward_global_block param_grad_names out_grad_names x_names x_grad_names
sampling_id: X -> Out | min max seed
save: X -> kLookupTablePath? | overwrite save_as_fp16 file_path
save_combine: X* -> Y? | overwrite save_as_fp16 file_path save_to_memory
scale: X ScaleTensor? -> Out | scale bias bias_after_scale
scatter: X Ids Updates -> Out | overwrite
scatter_nd_add: X Index Updates -> Out
searchsorted: SortedSequence Values -> Out | out_int32 right
seed:  -> Out | seed
segment_pool: X SegmentIds -> Out SummedIds~ | pooltype
select_input: X* Mask -> Out
select_output: X Mask -> Out*
self_dp_attention: X -> Out | alpha head_number
selu: X -> Out | scale alpha
send: X* -> Out* | table_id is_sparse send_varnames
send_and_recv: X* -> Out* | message_name mode send_var_name recv_var_name trainer_id endpoints next_endpoints
  previous_endpoints
send_barrier: X* -> Out* | trainer_id endpoints half_async
send_v2: X ->  | ring_id peer use_calc_stream dynamic_shape
sequence_concat: X* -> Out
sequence_conv: X PaddingData? Filter -> Out | paddingTrainable contextLength contextStart contextStride
sequence_enumerate: X -> Out | win_size pad_value
sequence_erase: X -> Out | tokens
sequence_expand: X Y -> Out | ref_level
sequence_expand_as: X Y -> Out
sequence_mask: X MaxLenTensor? -> Y | maxlen out_dtype
sequence_pad: X PadValue -> Out Length | padded_length
sequence_pool: X -> Out MaxIndex~ | is_test pooltype pad_value
sequence_reshape: X -> Out | new_dim
sequence_reverse: X -> Y
sequence_scatter: X Ids Updates -> Out
sequence_slice: X Offset Length -> Out
sequence_softmax: X -> Out | use_cudnn
sequence_unpad: X Length -> Out
set_value: Input ValueTensor? StartsTensorList*? EndsTensorList*? StepsTensorList*? -> Out | dtype axes starts ends
  steps decrease_axes none_axes values shape
sgd: Param LearningRate Grad MasterParam? -> ParamOut MasterParamOut? | multi_precision
shadow_output: x -> out | name
shape: Input -> Out
shard_index: X -> Out | index_num nshards shard_id ignore_value
share_buffer: X* -> Out* XOut* | share_dims_and_dtype
share_data: X -> Out
shrink_rnn_memory: X RankTable I -> Out
shuffle_batch: X Seed -> Out ShuffleIdx SeedOut | startup_seed
shuffle_channel: X -> Out | group
sigmoid: X -> Out
sigmoid_cross_entropy_with_logits: X Label pos_weight? -> Out | normalize ignore_index
sign: X -> Out
silu: X -> Out
similarity_focus: X -> Out | axis indexes
sin: X -> Out
sinh: X -> Out
size: Input -> Out
skip_layernorm: X Y Scale Bias -> Out | epsilon begin_norm_axis
slice: Input StartsTensor? EndsTensor? StartsTensorList*? EndsTensorList*? -> Out | axes starts ends infer_flags
  decrease_axis
slogdeterminant: Input -> Out
soft_relu: X -> Out | threshold
softmax: X -> Out | axis
softmax_with_cross_entropy: Logits Label -> Softmax Loss | soft_label use_softmax numeric_stable_mode ignore_index
  axis
softplus: X -> Out | beta threshold
softshrink: X -> Out | lambda
softsign: X -> Out
solve: X Y -> Out
sparse_abs: x -> out
sparse_acos: x -> out
sparse_acosh: x -> out
sparse_add: x y -> out
sparse_addmm: input x y -> out | beta alpha
sparse_asin: x -> out
sparse_asinh: x -> out
sparse_atan: x -> out
sparse_atanh: x -> out
sparse_batch_norm: x mean variance scale bias -> out mean_out variance_out saved_mean saved_variance reserve_space |
  is_test momentum epsilon data_layout use_global_stats trainable_statistics
sparse_cast: x -> out | index_dtype value_dtype
sparse_coalesce: x -> out
sparse_conv3d: x kernel -> out rulebook~ counter~ | paddings dilations strides groups subm key
sparse_divide: x y -> out
sparse_divide_scalar: x -> out | scalar
sparse_expm1: x -> out
sparse_full_like: x ValueTensor? -> out | value dtype
sparse_fused_attention: query key value sparse_mask key_padding_mask? attn_mask? -> out softmax~
sparse_indices: x -> out
sparse_isnan: x -> out
sparse_leaky_relu: x -> out | alpha
sparse_log1p: x -> out
sparse_masked_matmul: x y mask -> out
sparse_matmul: x y -> out
sparse_maxpool: x -> out rulebook~ counter~ | kernel_sizes paddings dilations strides
sparse_momentum: Param Grad Velocity Index Axis? LearningRate MasterParam? -> ParamOut VelocityOut MasterParamOut? |
  mu use_nesterov regularization_method regularization_coeff multi_precision rescale_grad axis
sparse_multiply: x y -> out
sparse_mv: x vec -> out
sparse_pow: x -> out | factor
sparse_relu: x -> out
sparse_relu6: x -> out
sparse_reshape: x ShapeTensor? ShapeTensorList*? -> out | shape
sparse_scale: x -> out | scale bias bias_after_scale
sparse_sin: x -> out
sparse_sinh: x -> out
sparse_slice: x AxesTensor? AxesTensorList*? StartsTensor? StartsTensorList*? EndsTensor? EndsTensorList*? -> out |
  axes starts ends
sparse_softmax: x -> out | axis
sparse_sparse_coo_tensor: values indices -> out | shape
sparse_sqrt: x -> out
sparse_square: x -> out
sparse_subtract: x y -> out
sparse_sum: x AxisTensor? AxisTensorList*? -> out | axis dtype keepdim
sparse_sync_batch_norm: x mean variance scale bias -> out mean_out variance_out saved_mean saved_variance
  reserve_space | is_test momentum epsilon data_layout use_global_stats trainable_statistics
sparse_tan: x -> out
sparse_tanh: x -> out
sparse_to_dense: x -> out
sparse_to_sparse_coo: x -> out | sparse_dim
sparse_to_sparse_csr: x -> out
sparse_transpose: x -> out | perm
sparse_values: x -> out
spectral_norm: Weight U V -> Out | dim power_iters eps
split: X AxisTensor? SectionsTensorList*? -> Out* | sections num axis use_mkldnn mkldnn_data_type
split_lod_tensor: X Mask -> OutTrue OutFalse | level
spp: X -> Out | pyramid_height pooling_type
sqrt: X -> Out
square: X -> Out
squared_l2_norm: X -> Out
squeeze2: X -> Out XShape~ | axes
squeeze_excitation_block: x filter filter_max bias? branch? -> out | act_type act_param filter_dims
stack: X* -> Y | axis
stanh: X -> Out | scale_a scale_b
stft: X Window -> Out | n_fft hop_length normalized onesided
strided_slice: Input StartsTensor? StartsTensorList*? EndsTensor? EndsTensorList*? StridesTensor? StridesTensorList*?
  -> Out | axes starts ends strides infer_flags decrease_axis
sum: X* -> Out | use_mkldnn mkldnn_data_type
svd: X -> U S VH | full_matrices
swish: X -> Out
take_along_axis: Input Index -> Result | Axis
tan: X -> Out
tanh: X -> Out
tanh_shrink: X -> Out
tdm_child: X TreeInfo -> Child LeafMask | child_nums dtype
tdm_sampler: X Travel Layer -> Out Labels? Mask | output_positive neg_samples_num_list layer_offset_lod seed dtype
teacher_student_sigmoid_loss: X Label -> Y | soft_max_up_bound soft_max_lower_bound
temporal_shift: X -> Out | seg_num shift_ratio data_format
tensor_array_to_tensor: X -> Out OutIndex | axis use_stack
tensor_unfold: input -> out | axis size step
thresholded_relu: X -> Out | threshold
tile: X RepeatTimes? repeat_times_tensor*? -> Out | repeat_times
top_k: X K? -> Out Indices | k
top_k_v2: X K? -> Out Indices | k axis largest sorted
top_p_sampling: x ps threshold? -> out ids | seed
trace: Input -> Out | offset axis1 axis2
transfer_dtype: X -> Out | out_dtype in_dtype use_mkldnn
transfer_layout: X -> Out | src_layout dst_layout
transpose: X -> Out | axis use_mkldnn data_format mkldnn_data_type
transpose2: X -> Out XShape~ | axis
triangular_solve: X Y -> Out | upper transpose unitriangular
tril_indices:  -> out | rows cols offset dtype
tril_triu: X -> Out | diagonal lower
trilinear_interp: X OutSize? SizeTensor*? Scale? -> Out | data_layout out_d out_h out_w scale interp_method
  align_corners align_mode use_mkldnn
trilinear_interp_v2: X OutSize? SizeTensor*? Scale? -> Out | data_layout out_d out_h out_w scale interp_method
  align_corners align_mode
triu_indices:  -> out | row col offset dtype
trunc: X -> Out
truncated_gaussian_random:  -> Out | shape mean std seed dtype
unbind: X -> Out* | axis
unfold: X -> Y | kernel_sizes strides paddings dilations
uniform_random: ShapeTensor? ShapeTensorList*? -> Out | shape dtype min max seed diag_num diag_step diag_val
uniform_random_batch_size_like: Input -> Out | shape input_dim_idx output_dim_idx min max seed diag_num diag_step
  diag_val dtype
uniform_random_inplace: X -> Out | min max seed diag_num diag_step diag_val
unique: X -> Out Indices? Index Counts? | return_index return_inverse return_counts axis dtype is_sorted
unique_consecutive: X -> Out Index? Counts? | return_inverse return_counts axis dtype
unique_with_counts: X -> Out Index Count | dtype
unpool: X Indices -> Out | ksize unpooling_type strides paddings output_size data_format
unpool3d: X Indices -> Out | ksize strides paddings output_size data_format
unsqueeze2: X AxesTensor? AxesTensorList*? -> Out XShape~ | axes
unstack: X -> Y* | axis num
unzip: X lod -> Y | len
update_loss_scaling: X* FoundInfinite PrevLossScaling InGoodSteps InBadSteps StopUpdate? -> Out* LossScaling
  OutGoodSteps OutBadSteps | incr_every_n_steps decr_every_n_nan_or_inf incr_ratio decr_ratio stop_update
var_conv_2d: X ROW COLUMN W -> Out Col | InputChannel OutputChannel StrideH StrideW KernelH KernelW
variable_length_memory_efficient_attention: query key value seq_lens kv_seq_lens mask? -> out | scale causal
  pre_cache_length
view_dtype: input -> out | dtype
view_shape: input -> out | dims
viterbi_decode: Input Transition Length -> Scores Path | include_bos_eos_tag
warpctc: Logits Label LogitsLength? LabelLength? -> Loss WarpCTCGrad~ | blank norm_by_times
warprnnt: input label input_lengths label_lengths -> loss warprnntgrad~ | blank fastemit_lambda
weight_dequantize: x scale -> out | algo out_dtype
weight_only_linear: x weight bias? weight_scale -> out | weight_dtype arch
weight_quantize: x -> out scale | algo arch
weighted_sample_neighbors: row colptr edge_weight input_nodes eids? -> out_neighbors out_count out_eids | sample_size
  return_eids
where: Condition X Y -> Out
where_index: Condition -> Out
while: X* Condition* -> Out* StepScopes | sub_block is_test
write_to_array: X I -> Out
yolo_box: X ImgSize -> Boxes Scores | anchors class_num conf_thresh downsample_ratio clip_bbox scale_x_y iou_aware
  iou_aware_factor
yolov3_loss: X GTBox GTLabel GTScore? -> Loss ObjectnessMask~ GTMatchMask~ | anchors anchor_mask class_num
  ignore_thresh downsample_ratio use_label_smooth scale_x_y
center_loss: X Label Centers CenterUpdateRate -> CentersOut SampleCenterDiff Loss | cluster_num need_update
conv_shift: X Y -> Out
cos_sim: X Y -> Out XNorm~ YNorm~
expand_as: X target_tensor -> Out
flatten: X -> Out XShape~ | axis
isfinite: X -> Out
isinf: X -> Out
isnan: X -> Out
lstm_unit: X C_prev -> C H | forget_bias
margin_rank_loss: X1 X2 Label -> Activated~ Out | margin
one_hot: X depth_tensor? -> Out | depth dtype allow_out_of_range
pad_constant_like: X Y -> Out | pad_value
proximal_adagrad: Param Moment Grad LearningRate -> ParamOut MomentOut | l1 l2
sigmoid_focal_loss: X Label FgNum -> Out | gamma alpha
smooth_l1_loss: X Y InsideWeight? OutsideWeight? -> Diff~ Out | sigma
space_to_depth: X -> Out | blocksize
split_byref: X -> Out* | sections num axis
squared_l2_distance: X Y -> sub_result~ Out
squeeze: X -> Out XShape~ | axes
unsqueeze: X AxesTensor? AxesTensorList*? -> Out XShape~ | axes
prroi_pool: X ROIs BatchRoINums? -> Out | spatial_scale pooled_height pooled_width
sample_logits: Logits Labels CustomizedSamples? CustomizedProbabilities? -> Samples~ Probabilities~ LogitsDim~ LabelsDim~
  SampledLogits SampledLabels | use_customized_samples uniq remove_accidental_hits num_samples seed
filter_by_instag: Ins Ins_tag Filter_tag -> Out LossWeight IndexMap | is_lod out_val_if_empty
tree_conv: NodesVector EdgeSet Filter -> Out | max_depth
"""
