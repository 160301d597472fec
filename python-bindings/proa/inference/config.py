"""Config: which model a predictor loads, and how it runs; over proa/inference.h. What Proa needs no switch for is
kept, so that it can be asked for again; devices and engines that Proa does not have are errors (ONNX Runtime and Paddle
Lite: warnings), options of an engine that is not on have no effect."""
import os
import warnings

from .. import _core
from .hardware import Hardware
from .kinds import PrecisionType
from .quantizer import MkldnnQuantizerConfig

__all__ = ["Config", "PassBuilder"]

PASSES = tuple(_core.pass_names())


def _path(value, who):
    if not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{who}: expected a path, got {type(value).__name__}")
    return os.fspath(value)


def _bytes(value, count, who):
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogateescape")
    if not isinstance(value, (bytes, bytearray, memoryview)) or not isinstance(count, int):
        raise TypeError(f"{who}: expected bytes and their number, got {type(value).__name__}, {type(count).__name__}")
    if not 0 <= count <= len(value):
        raise ValueError(f"{who}: {count} bytes of a buffer of {len(value)}")
    return memoryview(value)[:count]


def _name(value, who):
    if not isinstance(value, str):
        raise TypeError(f"{who}: expected a pass's name, got {type(value).__name__}")
    return value


def _types(values, who):
    if isinstance(values, str) or not all(isinstance(value, str) for value in values):
        raise TypeError(f"{who}: expected a set of op types, such as {{'conv2d'}}, got {values!r}")
    return sorted(values)


class PassBuilder:
    """The optimizing passes that run. Their names are Proa's (docs/programs.md), and so is their order."""

    def __init__(self, core=None):
        self._core = core or _core.InferenceConfig()

    def all_passes(self):
        """Names of the passes that run."""
        return self._core.names("PASSES")

    def delete_pass(self, name):
        """Leaves a pass out; a name that is not among them changes nothing."""
        _name(name, "delete_pass")
        if name in self.all_passes():
            self._core.set_names("PASSES", [p for p in self.all_passes() if p != name])

    def append_pass(self, name):
        """Takes a pass in again."""
        self.set_passes([*self.all_passes(), name])

    def set_passes(self, names):
        """Exactly these passes run."""
        for name in names:
            if _name(name, "set_passes") not in PASSES:
                raise ValueError(f"set_passes: there is no pass {name!r}; there are: {', '.join(PASSES)}")
        self._core.set_names("PASSES", [p for p in PASSES if p in names])

    def debug_string(self):
        """The passes' names, one a line."""
        return "Passes to apply:\n" + "".join(f"  - {p}\n" for p in self.all_passes())

    def turn_on_debug(self):
        """The program is printed to stderr before the first pass and after each."""
        self._core.set("IR_DEBUG", 1)


def _no(what, instead="models run on the CPU"):
    def refuse(self, *args, **kwargs):
        raise RuntimeError(f"inference.Config: this build has no {what}: {instead}")
    refuse.__doc__ = f"An error: there is no {what}."
    return refuse


def _constant(value, doc):
    def ask(self):
        return value
    ask.__doc__ = doc
    return ask


def _asked(name, doc, kind=bool):
    def ask(self):
        return kind(self._core.get(name))
    ask.__doc__ = doc
    return ask


def _switch(name, doc):
    def switch(self, x=True):
        self._core.set(name, bool(x))
    switch.__doc__ = doc
    return switch


def _said(name, value, doc):
    def say(self):
        self._core.set(name, value)
    say.__doc__ = doc
    return say


class Config(Hardware):
    """The model to load, and how it runs.

    Config(model_file, params_file); Config(folder) with __model__ and a file for each parameter; Config(prefix) for
    prefix.pdmodel and prefix.pdiparams; Config(other) copies; Config() with set_model or set_model_buffer later. A
    predictor takes its Config: a second predictor needs one of its own, or a clone of the first.
    """

    Precision = PrecisionType
    Float32, Int8, Half, Bfloat16 = (PrecisionType.Float32, PrecisionType.Int8, PrecisionType.Half,
                                     PrecisionType.Bfloat16)

    def __init__(self, *args):
        if len(args) == 1 and isinstance(args[0], Config):
            self._take_hardware(args[0])
            self._core = args[0]._core.copy()
            return
        self._take_hardware()
        self._core = _core.InferenceConfig()
        if args:
            self.set_model(*args)

    # ---- the model -------------------------------------------------------------------------------------------------

    def set_model(self, *args):
        """set_model(folder), set_model(prefix) or set_model(model_file, params_file)."""
        if len(args) not in (1, 2):
            raise TypeError(f"Config: expected a folder, or model file and parameter file, got {len(args)} arguments")
        paths = [_path(a, "Config") for a in args]
        if len(paths) == 1 and not os.path.isdir(paths[0]) and os.path.isfile(paths[0] + ".pdmodel"):
            paths = [paths[0] + ".pdmodel", paths[0] + ".pdiparams"]
        if len(paths) == 1:
            self._core.set("MODEL_DIR", paths[0])
        else:
            self._core.set("MODEL_FILE", paths[0])
            self._core.set("PARAMS_FILE", paths[1])

    def set_prog_file(self, path):
        """The file of the model."""
        self._core.set("MODEL_FILE", _path(path, "set_prog_file"))

    def set_params_file(self, path):
        """The file of the parameters."""
        self._core.set("PARAMS_FILE", _path(path, "set_params_file"))

    def set_model_buffer(self, model, model_size, params, params_size):
        """A model and its parameters in memory: bytes, and how many of them count."""
        self._core.set_buffers(_bytes(model, model_size, "set_model_buffer"),
                               _bytes(params, params_size, "set_model_buffer"))

    model_dir = _asked("MODEL_DIR", 'The folder; "": none.', str)
    prog_file = _asked("MODEL_FILE", 'The file of the model; "": none.', str)
    params_file = _asked("PARAMS_FILE", 'The file of the parameters; "": none.', str)

    def model_from_memory(self):
        """Whether set_model_buffer was called."""
        return self._core.has_buffers()

    # ---- how it runs -----------------------------------------------------------------------------------------------

    switch_ir_optim = _switch("IR_OPTIM", "Whether the optimizing passes run; without them results have the bits of "
                              "eager execution.")
    ir_optim = _asked("IR_OPTIM", "Whether the optimizing passes run.")
    switch_ir_debug = _switch("IR_DEBUG", "Whether the program is printed to stderr before the first pass and after each.")

    def pass_builder(self):
        """A PassBuilder of the passes that run."""
        return PassBuilder(self._core)

    def delete_pass(self, name):
        """Leaves a pass out, by Proa's name of it; other names change nothing."""
        self.pass_builder().delete_pass(name)

    def set_cpu_math_library_num_threads(self, n):
        """Threads of a run; below 1: as many as the process has set."""
        if not isinstance(n, int):
            raise TypeError(f"set_cpu_math_library_num_threads: expected an int, got {type(n).__name__}")
        self._core.set("CPU_THREADS", n)

    cpu_math_library_num_threads = _asked("CPU_THREADS", "Threads of a run; Paddle's default is 1.", int)
    enable_memory_optim = _switch("MEMORY_OPTIM", "Accepted: temporaries always share one arena.")
    enable_mkldnn = _said("ONEDNN", 1, "Accepted: oneDNN's kernels are taken wherever they are the best.")
    disable_mkldnn = _said("ONEDNN", 0, "Accepted; FLAGS_backends is what leaves oneDNN out.")
    mkldnn_enabled = _asked("ONEDNN", "What enable_mkldnn or disable_mkldnn said last.")

    def enable_mkldnn_int8(self, mkldnn_int8_enabled_op_types=frozenset()):
        """Quantized products of the model run on integers, and so do the ops between them. Needs ir_optim. The set names the
        op types that may; an empty one: all that can."""
        self._core.set_names("INT8_OPS", _types(mkldnn_int8_enabled_op_types, "enable_mkldnn_int8"))
        self._core.set("ONEDNN_INT8", 1)

    mkldnn_int8_enabled = _asked("ONEDNN_INT8", "Whether enable_mkldnn_int8 was called.")
    enable_mkldnn_bfloat16 = _said("ONEDNN_BFLOAT16", 1, "Convolutions and products run in bfloat16, if the CPU multiplies such "
                                   "numbers; another is named once on stderr. Inputs and outputs stay float32.")

    def set_mkldnn_op(self, ops):
        """Accepted: each op takes its best kernel."""
        self._core.set_names("ONEDNN_OPS", ops)

    def set_bfloat16_op(self, ops):
        """The types of ops that enable_mkldnn_bfloat16 is for; none: all that can."""
        self._core.set_names("BFLOAT16_OPS", ops)

    def set_mkldnn_cache_capacity(self, capacity=0):
        """Accepted: an executor keeps the plans of the last 64 input shapes."""
        self._core.set("ONEDNN_CACHE_CAPACITY", capacity)

    def set_optim_cache_dir(self, path):
        """Accepted: nothing is cached in files."""
        self._core.set("CACHE_DIR", _path(path, "set_optim_cache_dir"))

    disable_glog_info = _said("LOG", 0, "Accepted: predictors print nothing.")

    def glog_info_disabled(self):
        """Whether disable_glog_info was called."""
        return not self._core.get("LOG")

    enable_profile = _said("PROFILE", 1, "The profiler records until the predictor is freed, which prints its table.")

    def switch_use_feed_fetch_ops(self, x=True):
        """Accepted: data go through handles or run's list."""

    use_feed_fetch_ops_enabled = _constant(False, "False: data go through handles or run's list.")
    switch_specify_input_names = _switch("SPECIFY_INPUT_NAMES", "Accepted: inputs always have names.")
    specify_input_name = _asked("SPECIFY_INPUT_NAMES", "What switch_specify_input_names said.")

    # ---- devices and engines ---------------------------------------------------------------------------------------

    def enable_use_gpu(self, memory_pool_init_size_mb=100, device_id=0, precision_mode=PrecisionType.Float32):
        """The model runs on this GPU: its weights are brought there once, when the predictor is made. A GPU that cannot be
        used is an error; the pool grows as it is needed; the precision is the model's own."""
        if precision_mode != PrecisionType.Float32:
            raise ValueError("enable_use_gpu: models run in their own precision: export one that was cast (paddle.amp.decorate, "
                             f"Layer.astype), got precision_mode {precision_mode}")
        self._core.set_device(f"gpu:{int(device_id)}")
        self._core.set("GPU_POOL_MB", int(memory_pool_init_size_mb))

    enable_xpu = _no("XPU")
    enable_tensorrt_engine = _no("TensorRT")

    def enable_tensorrt_dla(self, dla_core=0):
        """Accepted: there is no TensorRT that would use its DLA cores."""
        self._core.set("TENSORRT_DLA", 1)

    enable_tensorrt_oss = enable_tensorrt_varseqlen = _said(
        "TENSORRT_OSS", 1, "Accepted: there is no TensorRT that would use its plug-ins.")

    def exp_disable_tensorrt_ops(self, ops):
        """Accepted: no operator runs in TensorRT."""
        self._core.set_names("TENSORRT_EXCLUDED", ops)

    def set_trt_dynamic_shape_info(self, min_input_shape=None, max_input_shape=None, optim_input_shape=None,
                                   disable_trt_plugin_fp16=False):
        """Accepted: shapes are dynamic without it."""
        self._core.set("TENSORRT_SHAPES", 1)

    def collect_shape_range_info(self, path):
        """Accepted: nothing is written, since there is no TensorRT that would read it."""
        self._core.set("SHAPE_PATH", _path(path, "collect_shape_range_info"))
        self._core.set("SHAPES_COLLECTED", 1)

    def enable_tuned_tensorrt_dynamic_shape(self, path="", allow_build_at_runtime=True):
        """Accepted: shapes are dynamic without it."""
        self._core.set("SHAPE_PATH", _path(path, "enable_tuned_tensorrt_dynamic_shape"))
        self._core.set("TENSORRT_TUNED", 1)
        self._core.set("TENSORRT_BUILD_AT_RUNTIME", bool(allow_build_at_runtime))

    enable_quantizer = _said("ONEDNN_QUANTIZER", 1, "A float model is quantized by quantizer_config's samples when its predictor "
                             "is made, and runs on INT8 kernels. Needs ir_optim.")

    def quantizer_config(self):
        """The quantizer's samples and op types."""
        if not self._core.get("ONEDNN_QUANTIZER"):
            raise RuntimeError("inference.Config.quantizer_config: call enable_quantizer first")
        return MkldnnQuantizerConfig(self._core)

    to_native_config = _no("NativeConfig", "create_predictor takes a Config")
    enable_dlnne = _no("DLNNE")

    def disable_gpu(self):
        """The model runs on the CPU, as it does unless enable_use_gpu is called."""
        self._core.set_device("cpu")

    def use_gpu(self):
        """Whether the model runs on a GPU."""
        return self._core.device().startswith("gpu")

    def gpu_device_id(self):
        """The GPU's number."""
        return int(self._core.device().partition(":")[2] or 0)

    memory_pool_init_size_mb = _asked("GPU_POOL_MB", "What enable_use_gpu said; the pool grows as it is needed.", int)
    use_xpu = _constant(False, "False: models run on the CPU.")
    xpu_device_id = _constant(0, "0: there is no XPU.")
    fraction_of_gpu_memory_for_pool = _constant(0.0, "0: the pool grows as it is needed.")
    tensorrt_engine_enabled = _constant(False, "False: there is no TensorRT.")
    tensorrt_dla_enabled = _asked("TENSORRT_DLA", "Whether enable_tensorrt_dla was called.")
    tensorrt_oss_enabled = tensorrt_varseqlen_enabled = _asked("TENSORRT_OSS", "Whether enable_tensorrt_oss was called.")
    tensorrt_dynamic_shape_enabled = _asked("TENSORRT_SHAPES", "Whether set_trt_dynamic_shape_info was called.")
    tuned_tensorrt_dynamic_shape = _asked("TENSORRT_TUNED", "Whether enable_tuned_tensorrt_dynamic_shape was called.")
    trt_allow_build_at_runtime = _asked("TENSORRT_BUILD_AT_RUNTIME", "What enable_tuned_tensorrt_dynamic_shape said.")
    shape_range_info_collected = _asked("SHAPES_COLLECTED", "Whether collect_shape_range_info was called.")
    shape_range_info_path = _asked("SHAPE_PATH", 'The file that was named last; "": none.', str)

    def enable_onnxruntime(self):
        """A warning: models run natively."""
        warnings.warn("inference.Config.enable_onnxruntime: this build has no ONNX Runtime: models run natively")

    def disable_onnxruntime(self):
        """Accepted: models run natively."""

    enable_ort_optimization = disable_onnxruntime
    onnxruntime_enabled = _constant(False, "False: models run natively.")

    def enable_lite_engine(self, precision_mode=PrecisionType.Float32, zero_copy=False, passes_filter=(), ops_filter=()):
        """A warning: there is no Paddle Lite, and the model runs as it does without."""
        self._core.set("LITE_ENGINE", 1)
        warnings.warn("inference.Config.enable_lite_engine: this build has no Paddle Lite: models run on the CPU")

    lite_engine_enabled = _asked("LITE_ENGINE", "What enable_lite_engine said.")

    def summary(self):
        """A table of what is set."""
        return "\n" + self._core.summary()
