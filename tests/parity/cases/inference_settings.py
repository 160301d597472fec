"""paddle.inference: settings of hardware that a build for CPUs has none of, their enums, and names of kernels."""
import paddle.inference as inference

from parity import case, raised

C = "paddle.inference.Config."


def _said(*calls):
    """The answers of calls on one Config: values that can be compared, or the kinds of errors."""
    config, answers = inference.Config(), []
    for name, *arguments in calls:
        try:
            answer = getattr(config, name)(*arguments)
        except Exception as e:
            answer = type(e).__name__
        answers.append(answer if isinstance(answer, (bool, int, str, type(None))) else str(answer))
    return answers


@case(*(C + name for name in (
    "disable_mkldnn_fc_passes", "enable_ipu", "enable_low_precision_io", "enable_new_executor", "enable_opencl", "use_opencl",
    "enable_save_optim_model", "exp_disable_mixed_precision_ops", "exp_enable_mixed_precision_ops", "exp_enable_use_cutlass",
    "load_ipu_config", "set_ipu_config", "set_ipu_custom_info", "set_xpu_device_id", "set_xpu_config", "enable_custom_device")), grad=False)
def hardware():
    return [_said(*calls) for calls in (
        [("disable_mkldnn_fc_passes",), ("enable_new_executor",), ("enable_new_executor", False), ("exp_enable_use_cutlass",)],
        [("enable_low_precision_io",), ("enable_low_precision_io", False)], [("use_opencl",), ("enable_opencl",), ("use_opencl",)],
        [("enable_save_optim_model",), ("enable_save_optim_model", True)],
        [("exp_disable_mixed_precision_ops", {"conv2d"}), ("exp_enable_mixed_precision_ops", {"conv2d"}),
         ("exp_enable_mixed_precision_ops", 3), ("exp_enable_mixed_precision_ops", ["a"]), ("exp_disable_mixed_precision_ops", {1})],
        [("enable_ipu",)], [("set_ipu_config",)], [("load_ipu_config", "/none")], [("set_ipu_custom_info",)],
        [("set_ipu_custom_info", [["a", "b", "c", "d"]], {"x": True})], [("set_xpu_device_id", 2), ("xpu_device_id",)],
        [("set_xpu_config", inference.XpuConfig())], [("set_xpu_config", 3)], [("enable_custom_device", 3)])]


@case(*(C + name for name in (
    "enable_tensorrt_explicit_quantization", "tensorrt_explicit_quantization_enabled", "enable_tensorrt_inspector",
    "tensorrt_inspector_enabled", "enable_tensorrt_memory_optim", "mark_trt_engine_outputs", "set_tensorrt_optimization_level",
    "tensorrt_optimization_level", "tensorrt_precision_mode")), grad=False)
def tensorrt():
    level = "set_tensorrt_optimization_level"
    return [_said(*calls) for calls in (
        [("tensorrt_explicit_quantization_enabled",), ("enable_tensorrt_explicit_quantization",), ("tensorrt_explicit_quantization_enabled",)],
        [("tensorrt_inspector_enabled",), ("enable_tensorrt_inspector", True), ("tensorrt_inspector_enabled",)],
        [("enable_tensorrt_memory_optim",)], [("enable_tensorrt_memory_optim", False, 5)],
        [("mark_trt_engine_outputs",), ("mark_trt_engine_outputs", ["a"]), ("mark_trt_engine_outputs", 3)],
        [("tensorrt_optimization_level",), (level, 5), ("tensorrt_optimization_level",), (level, 7), (level, -1), (level, 0), (level, "a"),
         ("tensorrt_optimization_level",)], [("tensorrt_precision_mode",)])]


@case(C + "dist_config", C + "set_dist_config", C + "nnadapter", grad=False)
def processes_and_adapters():
    config = inference.Config()
    dist, answers = config.dist_config(), []
    asked = ("carrier_id", "comm_init_config", "current_endpoint", "nranks", "rank", "trainer_endpoints", "use_dist_model")
    for change in ((), ("set_carrier_id", "a"), ("set_ranks", 2, 1), ("set_endpoints", ["a", "b"], "a"), ("set_comm_init_config", "f"),
                   ("enable_dist_model", True)):
        if change:
            getattr(dist, change[0])(*change[1:])
        answers.append([getattr(dist, name)() for name in asked])
    before = config.dist_config().carrier_id()
    config.set_dist_config(dist)
    lite = config.nnadapter()
    chained = lite.enable().set_device_names(["a"]).set_context_properties("x").set_model_cache_dir("d").set_model_cache_buffers("t", ["b"])
    chained.set_subgraph_partition_config_path("p").set_subgraph_partition_config_buffer("b").disable()
    return (answers, before, config.dist_config().carrier_id(), config.dist_config() is dist,
            [raised(f, TypeError) for f in (lambda: config.set_dist_config(3), lambda: dist.set_ranks("a", 1),
                                            lambda: dist.set_carrier_id(3), lambda: lite.set_device_names("a"))])


@case("paddle.inference.XpuConfig", C + "xpu_config", *(f"paddle.inference.XpuConfig.{name}" for name in (
    "context", "context_gm_size", "conv_autotune_file", "conv_autotune_file_writeback", "conv_autotune_level", "device_id",
    "fc_autotune_file", "fc_autotune_file_writeback", "fc_autotune_level", "gemm_compute_precision", "l3_autotune_size", "l3_ptr",
    "l3_size", "quant_post_dynamic_activation_method", "quant_post_dynamic_op_types", "quant_post_dynamic_weight_precision",
    "quant_post_static_gelu_out_threshold", "stream", "transformer_encoder_adaptive_seqlen", "transformer_softmax_optimize_level")),
      grad=False)
def xpu_settings():
    xpu = inference.XpuConfig()
    names = sorted(n for n in dir(xpu) if not n.startswith("_"))
    defaults, changed = [getattr(xpu, n) for n in names], []
    for name, value in (("device_id", 3), ("device_id", "a"), ("l3_size", 100), ("l3_size", -1), ("l3_size", 1.5), ("conv_autotune_file", "f"),
                        ("conv_autotune_file", 3), ("conv_autotune_file_writeback", 3), ("quant_post_dynamic_op_types", 3),
                        ("quant_post_dynamic_op_types", ["a"]), ("quant_post_static_gelu_out_threshold", "a"),
                        ("quant_post_static_gelu_out_threshold", 2), ("context", None), ("stream", 5),
                        ("transformer_encoder_adaptive_seqlen", 0)):
        changed.append([name, raised(lambda n=name, v=value: setattr(xpu, n, v)), getattr(xpu, name)])
    config = inference.Config()
    config.xpu_config().device_id = 3
    return names, defaults, changed, config.xpu_config().device_id


@case(*(f"paddle.inference.{kind}.{what}" for kind in ("DataType", "PlaceType", "PrecisionType") for what in ("name", "value")), grad=False)
def members_of_enums():
    kinds = ((inference.DataType, ("FLOAT64", "FLOAT32", "FLOAT16", "INT64", "INT32", "UINT8", "INT8", "BOOL")),
             (inference.PlaceType, ("UNK", "CPU", "GPU", "XPU", "CUSTOM")), (inference.PrecisionType, ("Float32", "Int8", "Half", "Bfloat16")))
    return [[(member.name, member.value, str(member)) for member in (getattr(kind, n) for n in names)] for kind, names in kinds]


@case("paddle.inference._get_phi_kernel_name", grad=False)
def names_of_kernels():
    types = ("elementwise_add matmul_v2 reduce_sum top_k_v2 transfer_dtype conv2d batch_norm softmax reshape reshape2 matmul mean sum crop "
             "nope fill fill_any expand elementwise_add_grad matmul_grad reduce_sum_grad conv2d_grad conv2d_grad_grad batch_norm_grad_grad "
             "conv3d_grad_grad elementwise_mul_triple_grad tanh_grad_grad reshape_grad uniform_random_inplace_grad expand_grad").split()
    return ([inference._get_phi_kernel_name(name) for name in ["", *types]],
            raised(lambda: inference._get_phi_kernel_name(3)))
