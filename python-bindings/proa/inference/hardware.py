"""Settings of Config for hardware and engines that Proa has none of: they are kept, so that they can be asked for again, or
refused where Paddle's build for CPUs refuses them. Plug-ins' devices are real."""
import copy

from .kinds import PrecisionType

__all__ = ["DistConfig", "LiteNNAdapterConfig", "XpuConfig"]


def _need(who, what, value, kind):
    """The value if it is of the kind; an int passes for a float."""
    fits = isinstance(value, (int, float) if kind is float else kind) and (kind is bool or not isinstance(value, bool))
    if not fits:
        raise TypeError(f"{who}: {what} must be {kind.__name__}, got {type(value).__name__}")
    return kind(value)


def _texts(who, what, value, kind=list):
    if not isinstance(value, kind) or not all(isinstance(text, str) for text in value):
        raise TypeError(f"{who}: {what} must be a {kind.__name__} of str, got {value!r}")
    return kind(value)


class XpuConfig:
    """Settings of an XPU: attributes, of which each keeps its type."""

    _defaults = {"context_gm_size": -1, "conv_autotune_file": "", "conv_autotune_file_writeback": False,
                 "conv_autotune_level": 0, "device_id": 0, "fc_autotune_file": "", "fc_autotune_file_writeback": False,
                 "fc_autotune_level": 0, "gemm_compute_precision": 1, "l3_autotune_size": 0, "l3_size": 0,
                 "quant_post_dynamic_activation_method": 0, "quant_post_dynamic_op_types": [],
                 "quant_post_dynamic_weight_precision": 1, "quant_post_static_gelu_out_threshold": 10.0,
                 "transformer_encoder_adaptive_seqlen": True, "transformer_softmax_optimize_level": 0}
    _pointers = ("context", "l3_ptr", "stream")
    _unsigned = ("l3_size", "l3_autotune_size")
    __slots__ = ("_values",)

    def __init__(self):
        object.__setattr__(self, "_values", copy.deepcopy(XpuConfig._defaults))

    def __setattr__(self, name, value):
        who = "XpuConfig"
        if name in XpuConfig._pointers:
            if value is not None:
                raise TypeError(f"{who}: {name} must be None: there is no XPU that it could point to, got {type(value).__name__}")
            return
        if name not in XpuConfig._defaults:
            raise AttributeError(f"XpuConfig has no attribute {name!r}")
        kind = type(XpuConfig._defaults[name])
        value = bool(value) if kind is bool else _texts(who, name, value) if kind is list else _need(who, name, value, kind)
        if name in XpuConfig._unsigned and value < 0:
            raise TypeError(f"{who}: {name} must not be negative, got {value}")
        self._values[name] = value


def _member(name):
    def read(self):
        return copy.copy(self._values.get(name))

    def write(self, value):
        XpuConfig.__setattr__(self, name, value)
    return property(read, write, doc=f"{name} of an XPU.")


for _name in (*XpuConfig._defaults, *XpuConfig._pointers):
    setattr(XpuConfig, _name, _member(_name))


class DistConfig:
    """A model that runs in several processes: ranks, endpoints and files."""

    def __init__(self):
        self._ranks, self._endpoints, self._current = (1, 0), [], ""
        self._carrier, self._file, self._on = "inference", "", False

    def set_carrier_id(self, carrier_id):
        """The carrier's name."""
        self._carrier = _need("set_carrier_id", "carrier_id", carrier_id, str)

    def carrier_id(self):
        """The carrier's name."""
        return self._carrier

    def set_comm_init_config(self, path):
        """The file that describes groups of ranks."""
        self._file = _need("set_comm_init_config", "path", path, str)

    def comm_init_config(self):
        """The file that describes groups of ranks."""
        return self._file

    def set_endpoints(self, trainer_endpoints, current_endpoint):
        """The addresses of all ranks, and of this one."""
        self._endpoints = _texts("set_endpoints", "trainer_endpoints", trainer_endpoints)
        self._current = _need("set_endpoints", "current_endpoint", current_endpoint, str)

    def trainer_endpoints(self):
        """The addresses of all ranks."""
        return list(self._endpoints)

    def current_endpoint(self):
        """This rank's address."""
        return self._current

    def set_ranks(self, nranks, rank):
        """The number of ranks, and this one's."""
        self._ranks = _need("set_ranks", "nranks", nranks, int), _need("set_ranks", "rank", rank, int)

    def nranks(self):
        """The number of ranks."""
        return self._ranks[0]

    def rank(self):
        """This rank's number."""
        return self._ranks[1]

    def enable_dist_model(self, use_dist_model):
        """Whether the model runs in several processes."""
        self._on = bool(use_dist_model)

    def use_dist_model(self):
        """Whether the model runs in several processes."""
        return self._on


class LiteNNAdapterConfig:
    """Settings of Paddle Lite's adapter, which models here do not run on; each setter returns the settings."""

    def __init__(self):
        self._values = {}

    def _keep(self, name, *values):
        self._values[name] = values
        return self

    def enable(self):
        """Turns the adapter on."""
        return self._keep("use_nnadapter", True)

    def disable(self):
        """Turns the adapter off."""
        return self._keep("use_nnadapter", False)

    def set_device_names(self, names):
        """The devices' names."""
        return self._keep("device_names", _texts("set_device_names", "names", names))

    def set_context_properties(self, properties):
        """Properties of the devices' context."""
        return self._keep("context_properties", _need("set_context_properties", "properties", properties, str))

    def set_model_cache_dir(self, path):
        """The folder of compiled models."""
        return self._keep("model_cache_dir", _need("set_model_cache_dir", "path", path, str))

    def set_model_cache_buffers(self, token, buffers):
        """Compiled models in memory."""
        return self._keep("model_cache_buffers", _need("set_model_cache_buffers", "token", token, str),
                          _texts("set_model_cache_buffers", "buffers", buffers))

    def set_subgraph_partition_config_path(self, path):
        """The file that cuts models in parts."""
        return self._keep("partition_path", _need("set_subgraph_partition_config_path", "path", path, str))

    def set_subgraph_partition_config_buffer(self, text):
        """The text that cuts models in parts."""
        return self._keep("partition_text", _need("set_subgraph_partition_config_buffer", "text", text, str))


class Hardware:
    """The part of Config. `_kept` holds what was set."""

    def _take_hardware(self, other=None):
        """Starts with another Config's settings, or none."""
        self._kept = copy.deepcopy(other._kept) if other is not None else {}

    # ---- plug-ins' devices, XPUs, IPUs

    def enable_custom_device(self, device_type, device_id=0, precision=PrecisionType.Float32):
        """The model runs on a plug-in's device; one that cannot be used is an error. The precision is the model's own."""
        who = "enable_custom_device"
        if precision != PrecisionType.Float32:
            raise ValueError(f"{who}: models run in their own precision, got precision {precision}")
        self._core.set_device(f"{_need(who, 'device_type', device_type, str)}:{_need(who, 'device_id', device_id, int)}")

    def set_xpu_config(self, config):
        """An error: there is no XPU, which enable_xpu would have to have found."""
        if not isinstance(config, XpuConfig):
            raise TypeError(f"set_xpu_config: expected an XpuConfig, got {type(config).__name__}")
        raise RuntimeError("(PreconditionNotMet) set_xpu_config: enable_xpu must be called first, and there is no XPU")

    def set_xpu_device_id(self, device_id=0):
        """An error: there is no XPU, which enable_xpu would have to have found."""
        _need("set_xpu_device_id", "device_id", device_id, int)
        raise RuntimeError("(PreconditionNotMet) set_xpu_device_id: enable_xpu must be called first, and there is no XPU")

    def xpu_config(self):
        """The defaults of an XPU's settings."""
        return XpuConfig()

    def enable_ipu(self, ipu_device_num=1, ipu_micro_batch_size=1, ipu_enable_pipelining=False, ipu_batches_per_step=1):
        """An error: there are no IPUs."""
        raise RuntimeError("(Unavailable) enable_ipu: this build has no IPU: models run on the CPU")

    def set_ipu_config(self, ipu_enable_fp16=False, ipu_replica_num=1, ipu_available_memory_proportion=1.0,
                       ipu_enable_half_partial=False, ipu_enable_model_runtime_executor=False):
        """Accepted: no model runs on an IPU."""

    def set_ipu_custom_info(self, ipu_custom_ops_info=(), ipu_custom_patterns=None):
        """Accepted: no model runs on an IPU."""

    def load_ipu_config(self, config_path):
        """An error: there are no IPUs; or there is no such file."""
        path = _need("load_ipu_config", "config_path", config_path, str)
        try:
            open(path, encoding="utf-8").close()
        except OSError as e:
            raise RuntimeError(f"(NotFound) load_ipu_config: {path} cannot be opened: {e.strerror}") from None
        self.enable_ipu()

    # ---- how models run there

    def enable_low_precision_io(self, x=True):
        """An error if it is to be on: models run in their own precision, and so do their inputs and outputs."""
        if x:
            raise ValueError("(InvalidArgument) enable_low_precision_io: enable_use_gpu must have been given a low precision, which "
                             "models here do not take from it: export one that was cast")

    def exp_enable_mixed_precision_ops(self, ops):
        """The types of ops that would run in low precision; models run in their own."""
        self._kept["mixed_precision_on"] = _texts("exp_enable_mixed_precision_ops", "ops", ops, set)

    def exp_disable_mixed_precision_ops(self, ops):
        """The types of ops that would stay in full precision; models run in their own."""
        self._kept["mixed_precision_off"] = _texts("exp_disable_mixed_precision_ops", "ops", ops, set)

    def exp_enable_use_cutlass(self):
        """Accepted: GPUs run Proa's kernels."""
        self._kept["cutlass"] = True

    def enable_new_executor(self, x=True):
        """Accepted: there is one executor."""
        self._kept["new_executor"] = bool(x)

    def enable_save_optim_model(self, save_optimized_model=False):
        """Accepted: nothing is cached in files."""
        self._kept["save_optimized_model"] = bool(save_optimized_model)

    def disable_mkldnn_fc_passes(self):
        """Accepted: passes are left out by delete_pass."""
        self._kept["fc_passes"] = False

    def enable_opencl(self):
        """Accepted: there is no Paddle Lite that would use OpenCL."""
        self._kept["opencl"] = True

    def use_opencl(self):
        """Whether enable_opencl was called."""
        return self._kept.get("opencl", False)

    def nnadapter(self):
        """Settings of Paddle Lite's adapter, which no model runs on."""
        return self._kept.setdefault("nnadapter", LiteNNAdapterConfig())

    def set_dist_config(self, config):
        """The settings of a model that runs in several processes. A predictor runs in one: kept."""
        if not isinstance(config, DistConfig):
            raise TypeError(f"set_dist_config: expected a DistConfig, got {type(config).__name__}")
        self._kept["dist"] = copy.deepcopy(config)

    def dist_config(self):
        """A copy of set_dist_config's settings."""
        return copy.deepcopy(self._kept.get("dist") or DistConfig())

    # ---- TensorRT

    def enable_tensorrt_explicit_quantization(self):
        """Accepted: no operator runs in TensorRT."""
        self._kept["tensorrt_quantized"] = True

    def tensorrt_explicit_quantization_enabled(self):
        """Whether enable_tensorrt_explicit_quantization was called."""
        return self._kept.get("tensorrt_quantized", False)

    def enable_tensorrt_inspector(self, inspector_serialize=False):
        """Accepted: no operator runs in TensorRT."""
        self._kept["tensorrt_inspector"] = True

    def tensorrt_inspector_enabled(self):
        """Whether enable_tensorrt_inspector was called."""
        return self._kept.get("tensorrt_inspector", False)

    def enable_tensorrt_memory_optim(self, engine_memory_sharing=True, sharing_identifier=0):
        """An error: TensorRT must be on, and there is none."""
        raise ValueError("(InvalidArgument) enable_tensorrt_memory_optim: enable_tensorrt_engine must be called first, and this build "
                         "has no TensorRT")

    def mark_trt_engine_outputs(self, output_tensor_names=()):
        """Accepted: no operator runs in TensorRT."""
        self._kept["tensorrt_outputs"] = _texts("mark_trt_engine_outputs", "output_tensor_names", list(output_tensor_names) if isinstance(
            output_tensor_names, (list, tuple)) else output_tensor_names)

    def set_tensorrt_optimization_level(self, level):
        """Kept: 0 to 5."""
        if not 0 <= _need("set_tensorrt_optimization_level", "level", level, int) <= 5:
            raise ValueError(f"(InvalidArgument) set_tensorrt_optimization_level: level must be in [0, 5], got {level}")
        self._kept["tensorrt_level"] = level

    def tensorrt_optimization_level(self):
        """The level that was set; 3 if none was."""
        return self._kept.get("tensorrt_level", 3)

    def tensorrt_precision_mode(self):
        """Float32: no operator runs in TensorRT."""
        return PrecisionType.Float32
