"""Dtypes, places, devices, one process of paddle.distributed, flags and utils."""
import warnings

import paddle

from parity import case, raised


@case("paddle.bool", "paddle.uint8", "paddle.int8", "paddle.int16", "paddle.int32", "paddle.int64", "paddle.float16",
      "paddle.bfloat16", "paddle.float32", "paddle.float64", "paddle.complex64", "paddle.complex128")
def dtypes():
    all_of_them = [paddle.bool, paddle.uint8, paddle.int8, paddle.int16, paddle.int32, paddle.int64, paddle.float16,
                   paddle.float32, paddle.float64, paddle.complex64, paddle.complex128]
    made = [paddle.zeros([2], dtype=d) for d in all_of_them]
    return made + [str(d) for d in all_of_them] + [str(paddle.bfloat16)] + \
        [t.dtype == d for t, d in zip(made, all_of_them)] + \
        [paddle.cast(paddle.to_tensor([1.5, 0.0]), paddle.bfloat16).dtype == paddle.bfloat16]


MEMBERS = ["BOOL", "UINT8", "INT8", "INT16", "INT32", "INT64", "FP16", "BF16", "FP32", "FP64", "COMPLEX64", "COMPLEX128",
           "LOD_TENSOR", "SELECTED_ROWS", "FEED_MINIBATCH", "FETCH_LIST", "STEP_SCOPES", "LOD_RANK_TABLE",
           "LOD_TENSOR_ARRAY", "PLACE_LIST", "READER", "RAW", "STRING", "STRINGS"]


@case("paddle.dtype", "paddle.dtype.name", "paddle.dtype.value", *(f"paddle.dtype.{name}" for name in MEMBERS))
def members_of_dtype():
    found = [getattr(paddle.dtype, name) for name in MEMBERS]
    return [[m.name, m.value, int(m), str(m), m == m.value, m != m.value, paddle.dtype(m.value) is m or
             paddle.dtype(m.value) == m, paddle.dtype.__members__[m.name] == m] for m in found] + \
        [paddle.dtype.FP32 == paddle.float32, hash(paddle.float32), paddle.float32 == paddle.float64, paddle.bool == 1,
         raised(lambda: paddle.zeros([1], dtype=paddle.dtype.RAW), TypeError, RuntimeError)]


@case("paddle.CPUPlace", "paddle.device.set_device", "paddle.device.get_device", "paddle.set_device",
      "paddle.get_device")
def places():
    place = paddle.set_device("cpu")
    x = paddle.to_tensor([1.0], place=paddle.CPUPlace())
    again = paddle.device.set_device("cpu")
    return [paddle.get_device(), paddle.device.get_device(), str(place) == str(again), x.place.is_cpu_place(), x,
            raised(lambda: paddle.set_device("nothing"), ValueError)]


@case("paddle.is_compiled_with_xpu", "paddle.device.is_compiled_with_xpu", "paddle.is_compiled_with_rocm",
      "paddle.device.is_compiled_with_rocm", "paddle.is_compiled_with_cuda", "paddle.device.is_compiled_with_cuda",
      "paddle.get_cudnn_version", "paddle.device.get_cudnn_version")
def what_the_build_lacks():
    return [paddle.is_compiled_with_xpu(), paddle.device.is_compiled_with_xpu(), paddle.is_compiled_with_rocm(),
            paddle.device.is_compiled_with_rocm(), paddle.is_compiled_with_cuda(),
            paddle.device.is_compiled_with_cuda(), paddle.get_cudnn_version(), paddle.device.get_cudnn_version(),
            paddle.is_compiled_with_custom_device("npu"), paddle.is_compiled_with_cinn(), paddle.is_compiled_with_ipu()]


@case("paddle.distributed.get_rank", "paddle.distributed.get_world_size", "paddle.distributed.ParallelEnv",
      "paddle.distributed.ParallelEnv.rank", "paddle.distributed.ParallelEnv.world_size",
      "paddle.distributed.ParallelEnv.local_rank", "paddle.distributed.ParallelEnv.nranks",
      "paddle.distributed.ParallelEnv.current_endpoint", "paddle.distributed.ParallelEnv.trainer_endpoints",
      "paddle.distributed.ParallelEnv.nrings")
def one_process():
    env = paddle.distributed.ParallelEnv()
    return [paddle.distributed.get_rank(), paddle.distributed.get_world_size(), env.rank, env.world_size,
            env.local_rank, env.nranks, env.current_endpoint, env.trainer_endpoints, env.nrings]


@case("paddle.get_flags", "paddle.set_flags")
def flags():
    paddle.set_flags({"FLAGS_check_nan_inf": True})
    switched_on = bool(paddle.get_flags("FLAGS_check_nan_inf")["FLAGS_check_nan_inf"])
    paddle.set_flags({"FLAGS_check_nan_inf": False})
    return [switched_on, bool(paddle.get_flags(["FLAGS_check_nan_inf"])["FLAGS_check_nan_inf"]),
            raised(lambda: paddle.set_flags([1]), TypeError), raised(lambda: paddle.get_flags(3), TypeError)]


@case("paddle.sysconfig.get_include", "paddle.sysconfig.get_lib")
def folders():
    return [isinstance(paddle.sysconfig.get_include(), str), isinstance(paddle.sysconfig.get_lib(), str),
            paddle.sysconfig.get_include().endswith("include"), paddle.sysconfig.get_lib().endswith("libs")]


@case("paddle.utils.deprecated")
def deprecated():
    @paddle.utils.deprecated(update_to="paddle.other", since="2.0.0", reason="it moved", level=1)
    def old(x):
        return x + 1

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [old(2), old.__name__]  # level 2: 2.6.2 has switched the decorator off


@case("paddle.utils.require_version", "paddle.utils.try_import", "paddle.utils.run_check")
def checks():
    paddle.utils.run_check()
    return [paddle.utils.require_version("2.0.0"), paddle.utils.require_version("2.0", "2.7"),
            paddle.utils.try_import("math").sqrt(4.0), raised(lambda: paddle.utils.require_version("9.0"), Exception),
            raised(lambda: paddle.utils.require_version(2), TypeError),
            raised(lambda: paddle.utils.try_import("no_such_module_here"), ImportError)]


@case("paddle.batch")
def batch():
    return [list(paddle.batch(lambda: iter(range(5)), 2)()),
            list(paddle.batch(lambda: iter(range(5)), 2, drop_last=True)())]


@case("paddle.disable_static", "paddle.in_dynamic_mode", "paddle.get_default_dtype", "paddle.set_default_dtype")
def modes():
    paddle.disable_static()
    first = [paddle.in_dynamic_mode(), paddle.get_default_dtype()]
    paddle.set_default_dtype("float64")
    made = paddle.ones([2])
    paddle.set_default_dtype("float32")
    return first + [made, paddle.get_default_dtype(), paddle.ones([1])]
