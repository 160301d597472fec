"""GPUs, XPUs and engines in a build without them: settings without effect, and refusals. Checks of arguments and hooks
while a program is built."""
import hashlib
import os
import subprocess
import sys
import tempfile
import warnings

import paddle
import paddle.static as static
from paddle import inference, nn
from parity import array, case, fill, rand, raised

C, V = "paddle.inference.Config.", "paddle.static.Variable."


@case("paddle.get_cuda_rng_state", "paddle.set_cuda_rng_state", grad=False)
def states_of_no_gpu():
    """A checkpoint's states of GPUs are ignored, and leave the CPU's alone."""
    paddle.seed(7)
    before = paddle.rand([3])
    paddle.seed(7)
    set_to = [paddle.set_cuda_rng_state(paddle.get_cuda_rng_state()), paddle.set_cuda_rng_state(paddle.get_rng_state())]
    return [paddle.get_cuda_rng_state(), set_to, bool((paddle.rand([3]) == before).all())]


@case("paddle.static.cuda_places", "paddle.static.xpu_places", "paddle.Tensor.pin_memory", grad=False)
def places_of_no_device():
    x = paddle.ones([2])
    return [raised(call) for call in (static.cuda_places, lambda: static.cuda_places([0]), static.xpu_places,
                                      lambda: static.xpu_places([0]), x.pin_memory)]


@case("paddle.Tensor.cuda", grad=False)
def no_script_goes_on_without_its_gpu():
    """Real Paddle ends the process, Proa raises: neither computes on the CPU what was meant for a GPU."""
    script = "import paddle; x = paddle.ones([1]); print('here'); x.{}; print('went on')"
    found = []
    for call in ("cuda()", "cuda(0)", "cpu()"):
        done = subprocess.run([sys.executable, "-c", ("import proa; proa.install_as_paddle(); " if paddle.__name__ == "proa" else "")
                               + script.format(call)], text=True, capture_output=True)
        found.append([done.returncode != 0, [line for line in done.stdout.split("\n") if line in ("here", "went on")]])
    return found


@case(*(C + n for n in ("enable_lite_engine", "enable_tensorrt_dla", "enable_tensorrt_oss", "tensorrt_oss_enabled",
                        "exp_disable_tensorrt_ops", "set_trt_dynamic_shape_info", "enable_profile")), grad=False)
def settings_of_engines():
    """Engines' options, and a profile, leave a model's answers as they are."""
    net = fill(nn.Sequential(nn.Linear(4, 3), nn.Tanh()))
    net.eval()
    path = os.path.join(tempfile.mkdtemp(), "net")
    paddle.jit.save(net, path, input_spec=[static.InputSpec([None, 4], "float32", "x")])
    config, x, asked = inference.Config(path + ".pdmodel", path + ".pdiparams"), array(3, 4).astype("float32"), []
    config.disable_glog_info()
    name = "oss" if paddle.__name__ == "proa" else "varseqlen"  # 2.6.2's name
    oss = getattr(config, f"tensorrt_{name}_enabled")
    asked += [oss(), config.tensorrt_dla_enabled(), config.lite_engine_enabled()]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config.enable_lite_engine()
    config.enable_tensorrt_dla()
    getattr(config, f"enable_tensorrt_{name}")()
    config.exp_disable_tensorrt_ops(["tanh"])
    config.set_trt_dynamic_shape_info({"x": [1, 4]}, {"x": [8, 4]}, {"x": [2, 4]})
    config.enable_profile()
    asked += [oss(), config.tensorrt_dla_enabled(), config.lite_engine_enabled(), config.tensorrt_engine_enabled(),
              config.use_gpu()]
    predictor = inference.create_predictor(config)
    handle = predictor.get_input_handle("x")
    handle.copy_from_cpu(x)
    predictor.run()
    return asked, predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu(), net(paddle.to_tensor(x)).numpy()


@case("paddle.check_shape", grad=False)
def shapes_are_checked_while_a_program_is_built():
    shapes = ([1, 2], (1, 2), [-1, 2], 3, "a", [1.0], ["a"], None)
    found = [raised(lambda s=s: paddle.check_shape(s, "op")) for s in shapes]
    paddle.enable_static()
    try:
        with static.program_guard(static.Program()):
            whole, part, real = (static.data(n, [2], d) for n, d in (("w", "int32"), ("p", "int64"), ("r", "float32")))
            found += [raised(lambda s=s: paddle.check_shape(s, "op")) for s in (*shapes, whole, part, real, [whole, 2], [real, 2])]
    finally:
        paddle.disable_static()
    return found


@case(V + "numpy", V + "gradient", V + "clear_gradient", grad=False)
def variables_hold_nothing():
    paddle.enable_static()
    try:
        with static.program_guard(static.Program()):
            x = static.data("x", [2, 3])
            x.stop_gradient = False
            y = (x * 2).sum()
            return [raised(call) for v in (x, y) for call in (v.numpy, v.gradient, v.clear_gradient)]
    finally:
        paddle.disable_static()


@case(V + "register_hook", grad=False)
def hooks_in_programs():
    paddle.enable_static()
    try:
        main = static.Program()
        with static.program_guard(main):
            x = static.data("x", [2, 3])
            x.stop_gradient = False
            y = paddle.tanh(x)
            y.register_hook(lambda g: g * 3)
            static.append_backward((y * y).sum(), parameter_list=[x])
            return static.Executor().run(main, {"x": array(2, 3).astype("float32")}, [y, x.name + "@GRAD"])
    finally:
        paddle.disable_static()


@case("paddle.Tensor.block", "paddle.Tensor.name", "paddle.Tensor.type", grad=False)
def what_tensors_share_with_variables():
    x, y = paddle.ones([2]), paddle.ones([2])
    names = [x.name, y.name]
    x.name = "mine"
    return [names[0] != names[1], names[0].rpartition("_")[0] == names[1].rpartition("_")[0], x.name, (x + 1).name != x.name,
            x.type.name, x.type == paddle.dtype.LOD_TENSOR, x.block.idx, x.block.program is static.default_main_program(),
            paddle.nn.Linear(2, 2).weight.type.name, raised(lambda: setattr(x, "type", 3)), raised(lambda: setattr(x, "block", 3))]


@case("paddle.optimizer.Optimizer.append_regularization_ops", grad=False)
def gradients_with_decay():
    w, g = rand(2, 3), rand(2, 3, grad=False)
    plain, decays = paddle.optimizer.SGD(0.1, parameters=[w]), paddle.optimizer.SGD(0.1, parameters=[w], weight_decay=0.5)
    found = [opt.append_regularization_ops([(w, g), (w, None)], how) for opt in (plain, decays)
             for how in (None, paddle.regularizer.L2Decay(0.25), paddle.regularizer.L1Decay(0.25))]
    return [[(p is w, grad) for p, grad in pairs] for pairs in found]


@case("paddle.utils.download.get_weights_path_from_url", grad=False)
def weights_that_are_there():
    from paddle.utils import download
    kept = download.WEIGHTS_HOME
    with tempfile.TemporaryDirectory() as folder:
        download.WEIGHTS_HOME = folder
        try:
            with open(os.path.join(folder, "w.pdparams"), "wb") as file:
                file.write(b"weights")
            found = download.get_weights_path_from_url("https://nowhere.invalid/models/w.pdparams")
            summed = download.get_weights_path_from_url("https://nowhere.invalid/w.pdparams", hashlib.md5(b"weights").hexdigest())
            return [os.path.relpath(found, folder), os.path.relpath(summed, folder),
                    raised(lambda: download.get_weights_path_from_url("w.pdparams"), AssertionError)]
        finally:
            download.WEIGHTS_HOME = kept
