"""paddle.inference: settings, predictors and handles behave as Paddle's."""
import os
import tempfile

import numpy as np
import paddle
from paddle import inference, nn
from paddle.static import InputSpec

from parity import array, case, fill

I = "paddle.inference."
C, P, T = I + "Config.", I + "Predictor.", I + "Tensor."


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.fc, self.out = nn.Linear(4, 6), nn.Linear(6, 2)

    def forward(self, x, shift):
        y = self.out(nn.functional.relu(self.fc(x)))
        return y + shift, y.sum(axis=1)


def saved():
    net = Net()
    fill(net)
    net.eval()
    path = os.path.join(tempfile.mkdtemp(), "net")
    paddle.jit.save(net, path, input_spec=[InputSpec([None, 4], "float32", "x"), InputSpec([None, 2], "float32", "shift")])
    return path


def config_of(path, ir_optim=True):
    config = inference.Config(path + ".pdmodel", path + ".pdiparams")
    config.disable_glog_info()
    config.switch_ir_optim(ir_optim)
    return config


def values(predictor, x, shift):
    for name, v in (("x", x), ("shift", shift)):
        predictor.get_input_handle(name).copy_from_cpu(v.astype("float32"))
    predictor.run()
    return [predictor.get_output_handle(n).copy_to_cpu() for n in predictor.get_output_names()]


def error_of(call):
    try:
        call()
    except Exception as error:
        return type(error).__name__
    return "none"


@case("paddle.inference", I + "Config", I + "create_predictor", I + "Predictor", P + "get_input_names",
      P + "get_output_names", P + "get_input_handle", P + "get_output_handle", P + "run", T + "copy_from_cpu",
      T + "copy_to_cpu", C + "disable_glog_info", C + "switch_ir_optim", grad=False)
def predictors():
    path = saved()
    found = []
    for ir_optim in (True, False):
        predictor = inference.create_predictor(config_of(path, ir_optim))
        found.append(predictor.get_input_names())
        found.append(len(predictor.get_output_names()))
        for batch in (2, 1, 5):
            found.append(values(predictor, array(batch, 4), array(batch, 2)))
    return found


@case(I + "Tensor", T + "reshape", T + "shape", T + "type", T + "lod", T + "set_lod", I + "DataType",
      I + "DataType.FLOAT32", I + "DataType.INT32", I + "DataType.INT64", grad=False)
def handles():
    predictor = inference.create_predictor(config_of(saved()))
    x, out = predictor.get_input_handle("x"), predictor.get_output_handle(predictor.get_output_names()[0])
    found = [x.shape(), str(x.type()), x.lod(), out.shape()]
    x.reshape([3, 4])
    found.append(x.shape())
    values(predictor, array(3, 4), array(3, 2))
    found += [x.shape(), str(x.type()), out.shape(), str(out.type()), out.copy_to_cpu()]
    for dtype in ("float64", "float16", "int32", "int64", "uint8", "int8", "bool"):
        x.copy_from_cpu(np.ones((1, 4), dtype))
        found += [str(x.type()), repr(x.type()), x.copy_to_cpu()]
    x.set_lod([[0, 1, 3]])
    return found + [x.lod()]


@case(P + "clone", P + "clear_intermediate_tensor", P + "try_shrink_memory", I + "PredictorPool",
      I + "PredictorPool.retrive", grad=False)
def clones():
    path = saved()
    first = inference.create_predictor(config_of(path))
    pool = inference.PredictorPool(config_of(path), 2)
    x, shift = array(3, 4), array(3, 2)
    found = [values(p, x, shift) for p in (first, first.clone(), pool.retrive(0), pool.retrive(1))]
    first.clear_intermediate_tensor()
    found.append(error_of(first.get_output_handle(first.get_output_names()[0]).copy_to_cpu))
    return found + [first.try_shrink_memory() >= 0, pool.retrive(1) is pool.retrive(1), error_of(lambda: pool.retrive(5)),
                    error_of(lambda: pool.retrive(-1)), error_of(lambda: inference.PredictorPool(config_of(path), 0))]


@case(C + "set_model_buffer", C + "model_from_memory", C + "set_model", C + "set_prog_file", C + "set_params_file",
      C + "prog_file", C + "params_file", C + "model_dir", grad=False)
def where_models_come_from():
    path = saved()
    ends = [path + ".pdmodel", path + ".pdiparams"]
    data = [open(end, "rb").read() for end in ends]
    memory, named, set_later = inference.Config(), inference.Config(), inference.Config()
    memory.set_model_buffer(data[0], len(data[0]), data[1], len(data[1]))
    named.set_prog_file(ends[0])
    named.set_params_file(ends[1])
    set_later.set_model(*ends)
    found = [memory.model_from_memory(), named.model_from_memory(), named.prog_file() == ends[0],
             set_later.params_file() == ends[1], inference.Config("/some/folder").model_dir(), named.model_dir()]
    x, shift = array(2, 4), array(2, 2)
    for config in (memory, named, set_later):
        config.disable_glog_info()
        found.append(values(inference.create_predictor(config), x, shift))
    return found


@case(C + "ir_optim", C + "mkldnn_enabled", C + "enable_mkldnn", C + "cpu_math_library_num_threads",
      C + "set_cpu_math_library_num_threads", C + "glog_info_disabled", C + "use_gpu", C + "disable_gpu",
      C + "gpu_device_id", C + "memory_pool_init_size_mb", C + "fraction_of_gpu_memory_for_pool", C + "use_xpu",
      C + "xpu_device_id", C + "lite_engine_enabled", C + "tensorrt_engine_enabled", C + "tensorrt_dla_enabled",
      C + "specify_input_name", C + "switch_specify_input_names", C + "use_feed_fetch_ops_enabled",
      C + "switch_use_feed_fetch_ops", C + "enable_memory_optim", C + "switch_ir_debug", C + "set_mkldnn_op",
      C + "set_mkldnn_cache_capacity", C + "set_optim_cache_dir", C + "set_bfloat16_op", C + "delete_pass",
      C + "pass_builder", C + "enable_mkldnn_bfloat16", C + "disable_mkldnn", C + "summary", grad=False)
def settings():
    asked = ("ir_optim mkldnn_enabled cpu_math_library_num_threads glog_info_disabled use_gpu gpu_device_id use_xpu "
             "memory_pool_init_size_mb fraction_of_gpu_memory_for_pool xpu_device_id lite_engine_enabled model_dir "
             "tensorrt_engine_enabled tensorrt_dla_enabled specify_input_name use_feed_fetch_ops_enabled "
             "model_from_memory").split()
    config = inference.Config("a", "b")
    found = [getattr(config, name)() for name in asked]
    config.switch_ir_optim(False)
    config.set_cpu_math_library_num_threads(3)
    config.disable_glog_info()
    config.disable_gpu()
    config.disable_mkldnn()
    config.switch_specify_input_names(True)
    config.switch_use_feed_fetch_ops(False)
    config.enable_memory_optim()
    config.switch_ir_debug(False)
    config.set_mkldnn_op({"conv2d"})
    config.set_bfloat16_op({"conv2d"})
    config.set_mkldnn_cache_capacity(3)
    config.set_optim_cache_dir(tempfile.mkdtemp())
    found += [getattr(config, name)() for name in asked]
    config.enable_mkldnn()
    config.switch_ir_optim()
    config.delete_pass("no pass")
    config.pass_builder().delete_pass("no pass")
    rows = [[cell.strip() for cell in line.split("|")[1:3]] for line in config.summary().splitlines() if "|" in line]
    return found + [getattr(config, name)() for name in asked] + \
        [row for row in rows if row[0] in ("model_file", "params_file", "cpu_math_thread", "ir_optim", "use_gpu")]


@case(I + "DataType.name", I + "DataType.value", I + "DataType.BOOL", I + "DataType.FLOAT16", I + "DataType.FLOAT64",
      I + "DataType.INT8", I + "DataType.UINT8", I + "PlaceType", I + "PlaceType.CPU", I + "PlaceType.GPU",
      I + "PlaceType.XPU", I + "PlaceType.UNK", I + "PlaceType.CUSTOM", I + "PlaceType.name", I + "PlaceType.value",
      I + "PrecisionType", I + "PrecisionType.Float32", I + "PrecisionType.Half", I + "PrecisionType.Int8",
      I + "PrecisionType.Bfloat16", I + "PrecisionType.name", I + "PrecisionType.value", C + "Precision", C + "Float32",
      C + "Half", C + "Int8", C + "Bfloat16", I + "get_num_bytes_of_data_type", I + "get_version",
      I + "get_trt_compile_version", I + "get_trt_runtime_version", grad=False)
def kinds():
    found = []
    for kind in (inference.DataType, inference.PlaceType, inference.PrecisionType):
        for name, one in kind.__members__.items():
            found += [name, one.name, one.value, int(one), str(one), repr(one), one == one.value, kind(one.value) == one]
    sized = [inference.DataType.FLOAT32, inference.DataType.INT32, inference.DataType.INT64, inference.DataType.UINT8]
    config = inference.Config
    return sorted(map(str, found)) + [inference.get_num_bytes_of_data_type(k) for k in sized] + \
        [str(v) for v in (config.Float32, config.Half, config.Int8, config.Bfloat16)] + \
        [config.Precision is inference.PrecisionType, inference.get_version().startswith("version: "),
         list(inference.get_trt_compile_version()), list(inference.get_trt_runtime_version())]


@case(P + "run", P + "get_input_handle", P + "get_output_handle", T + "copy_from_cpu", T + "copy_to_cpu", T + "reshape",
      I + "create_predictor", I + "Config", C + "enable_tensorrt_engine", C + "enable_xpu", grad=False)
def wrong_use():
    path = saved()
    config = config_of(path)
    predictor = inference.create_predictor(config)
    x, shift = predictor.get_input_handle("x"), predictor.get_input_handle("shift")
    out = predictor.get_output_handle(predictor.get_output_names()[0])
    good, more = np.ones((2, 4), "float32"), np.ones((2, 2), "float32")
    found = [error_of(call) for call in (
        lambda: predictor.get_input_handle("y"), lambda: predictor.get_output_handle("y"), x.copy_to_cpu,
        out.copy_to_cpu, predictor.run, lambda: x.reshape("a"), lambda: x.reshape(3), lambda: x.copy_from_cpu([1.0]),
        lambda: x.copy_from_cpu(["a"]), lambda: x.copy_from_cpu(good.astype("complex64")),
        lambda: out.copy_from_cpu(good), inference.Tensor, lambda: inference.Config(3),
        lambda: config.delete_pass(3), lambda: config.set_cpu_math_library_num_threads("a"),
        lambda: config.set_model_buffer(1, 2, 3, 4), lambda: inference.create_predictor(3),
        lambda: inference.create_predictor(config), lambda: inference.create_predictor(inference.Config("/no", "/no")),
        lambda: inference.create_predictor(inference.Config("/no")), config.enable_tensorrt_engine, config.enable_xpu,
        lambda: predictor.run(3), lambda: predictor.run([good, more]), lambda: predictor.run([]),
        lambda: predictor.run([paddle.to_tensor(good)]), lambda: inference.get_num_bytes_of_data_type(3))]
    shift.copy_from_cpu(more)
    for wrong in (good[:, :3], good[0], good.astype("float64"), good.astype("int32")):
        x.copy_from_cpu(wrong)
        found.append(error_of(predictor.run))
    x.copy_from_cpu(good)
    found.append(error_of(predictor.run))
    x.reshape([9, 4])
    return found + [error_of(predictor.run), error_of(x.copy_to_cpu)]
