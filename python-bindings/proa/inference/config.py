"""Config: which model a predictor loads, and how it runs. What Proa needs no switch for is accepted and kept, so
that it can be asked for again; devices and engines that Proa does not have are errors."""
import os

from .. import _core
from .kinds import PrecisionType

__all__ = ["Config", "PassBuilder"]

# the optimising passes, in the order in which they run: jit/passes/passes.c
PASSES = ("fold", "identity", "cse", "batch_norm", "pooled", "pool", "recompute", "product", "layout", "elementwise",
          "optimizer", "dead")


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
    return bytes(value[:count])


def _name(value, who):
    if not isinstance(value, str):
        raise TypeError(f"{who}: expected a pass's name, got {type(value).__name__}")
    return value


class PassBuilder:
    """Which optimising passes run. Their names are Proa's (docs/programs.md), and so is their order."""

    def __init__(self):
        self._passes, self._debug = list(PASSES), False

    def all_passes(self):
        """Names of the passes that run."""
        return list(self._passes)

    def delete_pass(self, name):
        """Leaves a pass out; a name that is not among them changes nothing."""
        _name(name, "delete_pass")
        self._passes = [p for p in self._passes if p != name]

    def append_pass(self, name):
        """Takes a pass in again."""
        self.set_passes([*self._passes, name])

    def set_passes(self, names):
        """Exactly these passes run."""
        for name in names:
            if _name(name, "set_passes") not in PASSES:
                raise ValueError(f"set_passes: there is no pass {name!r}; there are: {', '.join(PASSES)}")
        self._passes = [p for p in PASSES if p in names]

    def debug_string(self):
        """The passes' names, one a line."""
        return "Passes to apply:\n" + "".join(f"  - {p}\n" for p in self._passes)

    def turn_on_debug(self):
        """The program is printed to stderr before the first pass and after each."""
        self._debug = True

    def _copy(self):
        other = PassBuilder()
        other._passes, other._debug = list(self._passes), self._debug
        return other


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


class Config:
    """Which model is loaded, and how it runs.

    Config(model_file, params_file); Config(folder) with __model__ and a file for each parameter; Config(prefix) for
    prefix.pdmodel and prefix.pdiparams; Config(other) copies; Config() with set_model or set_model_buffer later. A
    predictor takes its Config: a second predictor needs one of its own, or a clone of the first.
    """

    Precision = PrecisionType
    Float32, Int8, Half, Bfloat16 = (PrecisionType.Float32, PrecisionType.Int8, PrecisionType.Half,
                                     PrecisionType.Bfloat16)

    def __init__(self, *args):
        self._dir = self._model = self._params = ""
        self._buffers, self._used = None, False
        self._threads, self._builder = 1, PassBuilder()
        self._flags = {"ir_optim": True, "ir_debug": False, "memory_optim": False, "mkldnn": True, "log": True,
                       "specify_input_names": False, "feed_fetch_ops": False, "bfloat16": False}
        self._gpu, self._pool = None, 100  # the GPU's number; MiB, which are only kept
        if len(args) == 1 and isinstance(args[0], Config):
            other = args[0]
            self.__dict__.update(other.__dict__, _builder=other._builder._copy(), _flags=dict(other._flags),
                                 _used=False)
        elif args:
            self.set_model(*args)

    # ---- the model -------------------------------------------------------------------------------------------------

    def set_model(self, *args):
        """set_model(folder), set_model(prefix) or set_model(model_file, params_file)."""
        if len(args) not in (1, 2):
            raise TypeError(f"Config: expected a folder, or model file and parameter file, got {len(args)} arguments")
        paths = [_path(a, "Config") for a in args]
        if len(paths) == 2:
            self._model, self._params = paths
        elif not os.path.isdir(paths[0]) and os.path.isfile(paths[0] + ".pdmodel"):
            self._model, self._params = paths[0] + ".pdmodel", paths[0] + ".pdiparams"
        else:
            self._dir = paths[0]

    def set_prog_file(self, path):
        """The file of the model."""
        self._model = _path(path, "set_prog_file")

    def set_params_file(self, path):
        """The file of the parameters."""
        self._params = _path(path, "set_params_file")

    def set_model_buffer(self, model, model_size, params, params_size):
        """A model and its parameters in memory: bytes, and how many of them count."""
        self._buffers = (_bytes(model, model_size, "set_model_buffer"), _bytes(params, params_size, "set_model_buffer"))

    def model_dir(self):
        """The folder; "": none."""
        return self._dir

    def prog_file(self):
        """The file of the model; "": none."""
        return self._model

    def params_file(self):
        """The file of the parameters; "": none."""
        return self._params

    def model_from_memory(self):
        """Whether set_model_buffer was called."""
        return self._buffers is not None

    # ---- how it runs -----------------------------------------------------------------------------------------------

    def switch_ir_optim(self, x=True):
        """Whether the optimising passes run; without them results have the bits of eager execution."""
        self._flags["ir_optim"] = bool(x)

    def ir_optim(self):
        """Whether the optimising passes run."""
        return self._flags["ir_optim"]

    def switch_ir_debug(self, x=True):
        """Whether the program is printed to stderr before the first pass and after each."""
        self._flags["ir_debug"] = bool(x)

    def pass_builder(self):
        """Which passes run: a PassBuilder."""
        return self._builder

    def delete_pass(self, name):
        """Leaves a pass out, by Proa's name of it; other names change nothing."""
        self._builder.delete_pass(name)

    def set_cpu_math_library_num_threads(self, n):
        """Threads of a run; below 1: as many as the process has set."""
        if not isinstance(n, int):
            raise TypeError(f"set_cpu_math_library_num_threads: expected an int, got {type(n).__name__}")
        self._threads = n

    def cpu_math_library_num_threads(self):
        """Threads of a run; Paddle's default is 1."""
        return self._threads

    def enable_memory_optim(self, x=True):
        """Accepted: temporaries always share one arena."""
        self._flags["memory_optim"] = bool(x)

    def enable_mkldnn(self):
        """Accepted: oneDNN's kernels are taken wherever they are the best."""
        self._flags["mkldnn"] = True

    def disable_mkldnn(self):
        """Accepted; FLAGS_backends is what leaves oneDNN out."""
        self._flags["mkldnn"] = False

    def mkldnn_enabled(self):
        """What enable_mkldnn or disable_mkldnn said last."""
        return self._flags["mkldnn"]

    def enable_mkldnn_bfloat16(self):
        """Accepted: it allows bfloat16, and Proa goes on in the model's own precision."""
        self._flags["bfloat16"] = True

    def set_mkldnn_op(self, ops):
        """Accepted: each op takes its best kernel."""

    def set_bfloat16_op(self, ops):
        """Accepted: see enable_mkldnn_bfloat16."""

    def set_mkldnn_cache_capacity(self, capacity=0):
        """Accepted: an executor keeps the plans of the last 64 input shapes."""

    def set_optim_cache_dir(self, path):
        """Accepted: nothing is cached in files."""

    def disable_glog_info(self):
        """Accepted: predictors print nothing."""
        self._flags["log"] = False

    def glog_info_disabled(self):
        """Whether disable_glog_info was called."""
        return not self._flags["log"]

    def switch_use_feed_fetch_ops(self, x=True):
        """Accepted: data go through handles or run's list."""

    use_feed_fetch_ops_enabled = _constant(False, "False: data go through handles or run's list.")

    def switch_specify_input_names(self, x=True):
        """Accepted: inputs always have names."""
        self._flags["specify_input_names"] = bool(x)

    def specify_input_name(self):
        """What switch_specify_input_names said."""
        return self._flags["specify_input_names"]

    # ---- devices and engines ---------------------------------------------------------------------------------------

    def enable_use_gpu(self, memory_pool_init_size_mb=100, device_id=0, precision_mode=PrecisionType.Float32):
        """The model runs on this GPU: its weights are brought there once, when the predictor is made. A GPU that cannot be
        used is an error; the pool grows as it is needed; the precision is the model's own."""
        if precision_mode != PrecisionType.Float32:
            raise ValueError("enable_use_gpu: models run in their own precision: export one that was cast (paddle.amp.decorate, "
                             f"Layer.astype), got precision_mode {precision_mode}")
        was = _core.get_device()
        _core.set_device(f"gpu:{int(device_id)}")
        _core.set_device(was)
        self._gpu, self._pool = int(device_id), int(memory_pool_init_size_mb)

    enable_xpu = _no("XPU")
    enable_tensorrt_engine = enable_tensorrt_dla = enable_tensorrt_oss = _no("TensorRT")
    exp_disable_tensorrt_ops = set_trt_dynamic_shape_info = _no("TensorRT")
    enable_quantizer = quantizer_config = _no("quantiser", "models run in their own precision")
    enable_profile = _no("profiler of its own", "run the predictor inside paddle.profiler.Profiler")
    to_native_config = _no("NativeConfig", "create_predictor takes a Config")
    enable_lite_engine = _no("Paddle Lite")
    enable_dlnne = _no("DLNNE")

    def disable_gpu(self):
        """The model runs on the CPU, as it does unless enable_use_gpu is called."""
        self._gpu = None

    def use_gpu(self):
        """Whether the model runs on a GPU."""
        return self._gpu is not None

    def gpu_device_id(self):
        """The GPU's number."""
        return self._gpu or 0

    def memory_pool_init_size_mb(self):
        """What enable_use_gpu said; the pool grows as it is needed."""
        return self._pool

    use_xpu = _constant(False, "False: models run on the CPU.")
    xpu_device_id = _constant(0, "0: there is no XPU.")
    fraction_of_gpu_memory_for_pool = _constant(0.0, "0: the pool grows as it is needed.")
    tensorrt_engine_enabled = _constant(False, "False: there is no TensorRT.")
    tensorrt_dla_enabled = tensorrt_oss_enabled = _constant(False, "False: there is no TensorRT.")
    lite_engine_enabled = _constant(False, "False: there is no Paddle Lite.")

    # ---- summary ---------------------------------------------------------------------------------------------------

    def summary(self):
        """A table of what is set."""
        def said(flag):
            return str(self._flags[flag]).lower()
        if self._buffers is not None:
            model = [("model_from_memory", "true")]
        elif self._dir:
            model = [("model_dir", self._dir)]
        else:
            model = [("model_file", self._model), ("params_file", self._params)]
        groups = [[("Option", "Value")], model,
                  [("cpu_math_thread", str(self._threads)), ("enable_mkldnn", said("mkldnn"))],
                  [("use_gpu", str(self.use_gpu()).lower())], [("use_xpu", "false")],
                  [("ir_optim", said("ir_optim")), ("ir_debug", said("ir_debug")),
                   ("memory_optim", said("memory_optim")), ("enable_log", said("log"))]]
        wide = [max(len(row[i]) for group in groups for row in group) for i in (0, 1)]
        line = "+" + "+".join("-" * (w + 2) for w in wide) + "+"
        rows = [line]
        for group in groups:
            rows += [f"| {a:{wide[0]}} | {b:{wide[1]}} |" for a, b in group] + [line]
        return "\n" + "\n".join(rows) + "\n"

    def _pass_list(self):
        """What executors call it: "" none, None what FLAGS_passes says."""
        if not self._flags["ir_optim"]:
            return ""
        names = self._builder.all_passes()
        return None if names == list(PASSES) else ",".join(names)

    def _dumps(self):
        return self._flags["ir_debug"] or self._builder._debug
