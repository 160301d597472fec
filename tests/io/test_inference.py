"""paddle.inference: models that real Paddle exported run equally through its predictors and Proa's; clones, pools,
settings and wrong use. The models need real Paddle (PROA_ORACLE)."""
import pathlib
import shutil
import subprocess
import sys
import threading

import numpy as np
import pytest

import oracle
import proa as paddle
from conftest import NEEDS_PADDLE, once
from proa import inference
from proa.inference.config import PASSES
from proa.static import InputSpec

HERE = pathlib.Path(__file__).resolve().parent
MODELS = ["mlp", "two_inputs", "lenet", "resnet18", "mobilenet_v2", "encoder", "algebra", "tensors", "control", "lstm"]
DROPS_BATCH = ("algebra/ir/1/17", "algebra/plain/1/17")  # real lstsq gives a batch of one matrix without its batch axis


# ---- against real Paddle -------------------------------------------------------------------------------------------

@pytest.fixture(scope="module")
def both(exported, tmp_path_factory):
    """The files that predict.py wrote under each, for all models."""
    run = HERE / "inference/predict.py", exported

    def predict(folder):
        folder.mkdir()
        oracle.ask(*run, folder / "paddle", *MODELS)
        subprocess.run([sys.executable, "-m", "proa", *run, folder / "proa", *MODELS], check=True, timeout=300)
    folder = once(tmp_path_factory, "predicted", predict)
    return {who: np.load(folder / f"{who}.npz") for who in ("paddle", "proa")}


@NEEDS_PADDLE
@pytest.mark.parametrize("model", MODELS)
def test_equals_paddle(both, model):
    want, have = ({k: v for k, v in both[who].items() if k.startswith(model + "/")} for who in ("paddle", "proa"))
    assert sorted(want) == sorted(have) and len(want) >= 11
    for key, y in want.items():
        if key in DROPS_BATCH:
            y = y[None]
        assert have[key].dtype == y.dtype and have[key].shape == y.shape, key
        if key.endswith("/names"):
            assert list(have[key]) == list(y)
        else:
            assert np.abs(have[key] - y).max(initial=0) <= 1e-4 * max(1, np.abs(y).max(initial=0)), key


LENGTHS = """
import sys, numpy as np, paddle
from paddle import inference
path = sys.argv[1]
config = inference.Config(path + ".pdmodel", path + ".pdiparams")
predictor = inference.create_predictor(config)
twin = predictor.clone()
for one, lengths in ((predictor, (8, 3, 5, 8)), (twin, (2,))):
    handle = one.get_input_handle(one.get_input_names()[0])
    for n in lengths:
        handle.copy_from_cpu(np.arange(n * 4, dtype="float32").reshape(n, 4) / 10)
        one.run()
        for name in one.get_output_names():
            print(" ".join(f"{v:.5f}" for v in one.get_output_handle(name).copy_to_cpu().ravel()))
"""


@NEEDS_PADDLE
def test_other_lengths_than_those_of_the_file(tmp_path):
    """Paddle's predictors take values of other lengths than the model was saved with."""
    paddle.seed(1)
    net = paddle.nn.Sequential(paddle.nn.Linear(4, 6), paddle.nn.BatchNorm1D(6), paddle.nn.ReLU(), paddle.nn.Linear(6, 2))
    net.eval()
    paddle.jit.save(net, str(tmp_path / "m"), [InputSpec([8, 4], "float32", "x")])
    (tmp_path / "lengths.py").write_text(LENGTHS)
    theirs = oracle.ask(tmp_path / "lengths.py", tmp_path / "m")
    ours = subprocess.run([sys.executable, "-m", "proa", tmp_path / "lengths.py", tmp_path / "m"], text=True, capture_output=True,
                          timeout=300, check=True).stdout
    numbers = [np.array([float(v) for v in line.split()]) for text in (theirs, ours) for line in text.splitlines()
               if line and set(line) <= set("-0123456789. ")]
    assert len(numbers) == 10 and [one.size for one in numbers[5:]] == [16, 6, 10, 16, 4]
    for want, have in zip(numbers[:5], numbers[5:]):
        np.testing.assert_allclose(have, want, atol=2e-5)


# ---- one that Proa saved -------------------------------------------------------------------------------------------

class Net(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = paddle.nn.Conv2D(2, 4, 3, padding=1), paddle.nn.BatchNorm2D(4)
        self.out = paddle.nn.Linear(4, 3)

    def forward(self, x, shift):
        y = paddle.nn.functional.relu(self.norm(self.conv(x)) + 0.25)
        return self.out(y.mean([2, 3])) + shift, y.sum([1, 2, 3])


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """(prefix, the layer)."""
    prefix = str(tmp_path_factory.mktemp("net") / "net")
    paddle.seed(3)
    net = Net()
    net.norm._mean.set_value(np.linspace(-1, 1, 4, dtype="float32"))
    net.eval()
    paddle.jit.save(net, prefix, input_spec=[InputSpec([None, 2, None, None], "float32", "x"),
                                             InputSpec([None, 3], "float32", "shift")])
    return prefix, net


def config_of(saved, **switches):
    config = inference.Config(saved[0] + ".pdmodel", saved[0] + ".pdiparams")
    for name, value in switches.items():
        getattr(config, name)(value)
    return config


def sample(batch, side=6, seed=0):
    random = np.random.RandomState(seed)
    return random.randn(batch, 2, side, side).astype("float32"), random.randn(batch, 3).astype("float32")


def predict(predictor, x, shift):
    predictor.get_input_handle("x").copy_from_cpu(x)
    predictor.get_input_handle("shift").copy_from_cpu(shift)
    predictor.run()
    return [predictor.get_output_handle(n).copy_to_cpu() for n in predictor.get_output_names()]


def close(results, net, x, shift):
    want = net(paddle.to_tensor(x), paddle.to_tensor(shift))
    for have, wanted in zip(results, want):
        np.testing.assert_allclose(have, wanted.numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("ir_optim", [True, False])
def test_shapes_of_one_predictor(saved, ir_optim):
    predictor = inference.create_predictor(config_of(saved, switch_ir_optim=ir_optim))
    for batch, side in ((4, 6), (1, 9), (4, 6), (0, 6), (2, 5)):
        x, shift = sample(batch, side)
        close(predict(predictor, x, shift), saved[1], x, shift)


def test_ir_optim_chooses_the_plan(saved):
    plain = inference.create_predictor(config_of(saved, switch_ir_optim=False))
    fused = inference.create_predictor(config_of(saved))
    without = config_of(saved)
    without.delete_pass("epilogue_fusion")
    without.pass_builder().delete_pass("batch_norm")
    assert without.pass_builder().all_passes() == [p for p in PASSES if p not in ("epilogue_fusion", "batch_norm")]
    some = inference.create_predictor(without)
    names = [p._core.ops() for p in (plain, fused, some)]
    assert "batch_norm" in names[0] and "conv2d" in names[0] and not any("fused" in n for n in names[0])
    assert "conv2d_fused" in names[1] and "batch_norm" not in names[1]
    assert "conv2d" in names[2] and "conv2d_fused" not in names[2]
    x, shift = sample(3)
    for predictor in (plain, fused, some):
        close(predict(predictor, x, shift), saved[1], x, shift)


def test_pass_names():
    builder = inference.Config().pass_builder()
    assert builder.all_passes() == list(PASSES)
    paddle._core.Program().optimize(",".join(PASSES), True)  # unknown ones are errors
    builder.delete_pass("conv_bn_fuse_pass")  # one of Paddle's: nothing
    builder.set_passes(["dead", "fold"])
    assert builder.all_passes() == ["fold", "dead"]
    builder.append_pass("cse")
    assert builder.all_passes() == ["fold", "cse", "dead"] and "- cse\n" in builder.debug_string()
    with pytest.raises(ValueError, match="nonsense"):
        builder.append_pass("nonsense")


def test_debug_prints_programs(saved):
    script = ("import sys; from proa import inference; c = inference.Config(sys.argv[1]); c.switch_ir_debug(True);"
              "inference.create_predictor(c)")
    done = subprocess.run([sys.executable, "-c", script, saved[0]], capture_output=True, text=True, check=True)
    assert "conv2d_fused" in done.stderr


def test_where_models_come_from(saved, tmp_path):
    x, shift = sample(2)
    model, params = (pathlib.Path(saved[0] + end).read_bytes() for end in (".pdmodel", ".pdiparams"))
    memory = inference.Config()
    memory.set_model_buffer(model + b"more", len(model), params, len(params))
    assert memory.model_from_memory() and "model_from_memory" in memory.summary()
    named = inference.Config()
    named.set_prog_file(saved[0] + ".pdmodel")
    named.set_params_file(saved[0] + ".pdiparams")
    assert (named.prog_file(), named.params_file()) == (saved[0] + ".pdmodel", saved[0] + ".pdiparams")
    assert named.model_dir() == ""
    later = inference.Config()
    later.set_model(saved[0] + ".pdmodel", saved[0] + ".pdiparams")
    paddle.enable_static()
    try:
        program, _, _ = paddle.static.load_inference_model(saved[0], None)
        paddle.static.save_vars(None, str(tmp_path), program, predicate=lambda v: v.persistable)
        shutil.copy(saved[0] + ".pdmodel", tmp_path / "__model__")
        folder = inference.Config(str(tmp_path))
        assert folder.model_dir() == str(tmp_path) and str(tmp_path) in folder.summary()
        inside = predict(inference.create_predictor(folder), x, shift)  # static mode makes no difference
    finally:
        paddle.disable_static()
    close(inside, saved[1], x, shift)
    for config in (memory, named, later, inference.Config(saved[0])):
        close(predict(inference.create_predictor(config), x, shift), saved[1], x, shift)


def test_run_on_tensors(saved):
    predictor = inference.create_predictor(config_of(saved))
    x, shift = sample(3)
    tensors = [paddle.to_tensor(x), paddle.to_tensor(shift)]
    results = predictor.run(tensors)
    assert all(isinstance(r, paddle.Tensor) for r in results)
    close([r.numpy() for r in results], saved[1], x, shift)
    close([predictor.get_output_handle(n).copy_to_cpu() for n in predictor.get_output_names()], saved[1], x, shift)
    tensors[0].name, tensors[1].name = "x", "shift"  # by name, then in any order
    close([r.numpy() for r in predictor.run(tensors[::-1])], saved[1], x, shift)
    predictor.get_input_handle("x").share_external_data(paddle.to_tensor(2 * x))
    predictor.run()
    close([predictor.get_output_handle(n).copy_to_cpu() for n in predictor.get_output_names()], saved[1], 2 * x, shift)


def test_copies(saved):
    """Inputs and outputs are copies."""
    predictor = inference.create_predictor(config_of(saved))
    x, shift = sample(2)
    given = x.copy()
    predictor.get_input_handle("x").copy_from_cpu(given)
    predictor.get_input_handle("shift").copy_from_cpu(shift)
    given[:] = 0
    predictor.run()
    out = predictor.get_output_handle(predictor.get_output_names()[0])
    first = out.copy_to_cpu()
    kept = first.copy()
    predictor.get_input_handle("x").copy_from_cpu(np.asfortranarray(x[:1]))
    predictor.get_input_handle("shift").reshape([1, 3])  # what is there stays
    predictor.run()
    assert np.array_equal(first, kept) and out.shape() == [1, 3]
    np.testing.assert_allclose(out.copy_to_cpu(), kept[:1], rtol=1e-5, atol=1e-6)
    first[:] = 0
    np.testing.assert_allclose(out.copy_to_cpu(), kept[:1], rtol=1e-5, atol=1e-6)


def test_clones_in_threads(saved):
    first = inference.create_predictor(config_of(saved))
    predict(first, *sample(1))
    pool = inference.PredictorPool(config_of(saved), 2)
    assert pool.retrive(1) is pool.retrive(1) and pool.retrive(0) is not pool.retrive(1)
    wrong = []

    def work(predictor, seed):
        try:
            for step in range(20):
                x, shift = sample(1 + (seed + step) % 3, seed=seed + step)
                close(predict(predictor, x, shift), saved[1], x, shift)
        except BaseException as error:  # told by the main thread
            wrong.append(error)

    twins = [first.clone(), first.clone(), pool.retrive(0), pool.retrive(1), first.clone().clone()]
    with pytest.raises(RuntimeError, match="run the predictor first"):
        twins[0].get_output_handle(twins[0].get_output_names()[0]).copy_to_cpu()
    threads = [threading.Thread(target=work, args=(p, i)) for i, p in enumerate(twins)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong, wrong[0]


def test_clearing(saved):
    predictor = inference.create_predictor(config_of(saved))
    x, shift = sample(2)
    predict(predictor, x, shift)
    predictor.clear_intermediate_tensor()
    with pytest.raises(RuntimeError, match="run the predictor first"):
        predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu()
    with pytest.raises(ValueError, match="'x' has no data"):
        predictor.run()
    assert predictor.try_shrink_memory() > 0 and predictor.try_shrink_memory() == 0
    close(predict(predictor, x, shift), saved[1], x, shift)


def test_threads_are_of_the_run(saved):
    was = paddle._core.get_threads()
    seen = []
    predictor = inference.create_predictor(config_of(saved, set_cpu_math_library_num_threads=3))
    predictor.register_output_hook(lambda op, name, value: seen.append(paddle._core.get_threads()))
    predict(predictor, *sample(1))
    assert seen and set(seen) == {3} and paddle._core.get_threads() == was


def test_hooks_see_every_op(saved):
    predictor = inference.create_predictor(config_of(saved, switch_ir_optim=False))
    seen = {}
    predictor.register_output_hook(lambda op, name, value: seen.setdefault(op, (name, value)))
    x, shift = sample(2)
    results = predict(predictor, x, shift)
    assert {"conv2d", "batch_norm", "relu"} <= set(seen)
    assert seen["conv2d"][1].shape == [2, 4, 6, 6] and seen["relu"][1].numpy().min() >= 0
    with pytest.raises(TypeError, match="callable"):
        predictor.register_output_hook(3)

    def fails(op, name, value):
        raise KeyError("mine")
    predictor.register_output_hook(fails)
    with pytest.raises(KeyError, match="mine"):
        predictor.run()
    predictor.register_output_hook(None)
    assert all(np.array_equal(a, b) for a, b in zip(predict(predictor, x, shift), results))


def test_whole_numbers(tmp_path):
    """A model that takes int64 takes int32 as well, and the reverse."""
    class Pick(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.table = paddle.nn.Embedding(9, 4)

        def forward(self, ids):
            return self.table(ids), ids

    net = Pick()
    paddle.jit.save(net, str(tmp_path / "m"), input_spec=[InputSpec([None, 2], "int64", "ids")])
    predictor = inference.create_predictor(inference.Config(str(tmp_path / "m")))
    handle = predictor.get_input_handle("ids")
    for dtype in ("int64", "int32"):
        ids = np.array([[1, 8], [3, 0]], dtype)
        handle.copy_from_cpu(ids)
        assert handle.type() == (inference.DataType.INT64 if dtype == "int64" else inference.DataType.INT32)
        predictor.run()
        rows, same = (predictor.get_output_handle(n).copy_to_cpu() for n in predictor.get_output_names())
        np.testing.assert_array_equal(rows, net.table.weight.numpy()[ids])
        np.testing.assert_array_equal(same, ids)


@pytest.mark.parametrize("ir_optim", [True, False])
@pytest.mark.parametrize("name", ["identity", "same", "weight", "found", "view", "scalar", "double"])
def test_odd_ends(tmp_path, name, ir_optim):
    """No parameters, no inputs that matter, outputs that are inputs, weights, the same, views; sizes from data."""
    def same(net, x):
        y = x * 2
        return y, y

    forward = {"identity": lambda net, x: x, "same": same, "weight": lambda net, x: (net.w, x + net.w),
               "found": lambda net, x: paddle.nonzero(x > 0), "view": lambda net, x: (x.reshape([-1]), x[1:]),
               "scalar": lambda net, x: x * 2, "double": lambda net, x: x.astype("float64")}[name]

    class One(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.w = self.create_parameter([4])

        def forward(self, x):
            return forward(self, x)

    net, x = One(), np.random.RandomState(0).randn(3, 4).astype("float32")
    x, shape = (np.array(0.5, "float32"), []) if name == "scalar" else (x, [None, 4])
    paddle.jit.save(net, str(tmp_path / "m"), input_spec=[InputSpec(shape, "float32", "x")])
    config = inference.Config(str(tmp_path / "m.pdmodel"), str(tmp_path / "m.pdiparams"))
    config.switch_ir_optim(ir_optim)
    predictor = inference.create_predictor(config)
    wanted = net(paddle.to_tensor(x))
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for _ in range(2):
        predictor.get_input_handle("x").copy_from_cpu(x)
        predictor.run()
        assert len(predictor.get_output_names()) == len(wanted)
        for output, want in zip(predictor.get_output_names(), wanted):
            got = predictor.get_output_handle(output).copy_to_cpu()
            np.testing.assert_allclose(got, want.numpy(), rtol=1e-6, atol=1e-6)
            got[...] = 9  # a copy: the next run is the same


# ---- settings ------------------------------------------------------------------------------------------------------

def test_settings():
    config = inference.Config()
    assert (config.ir_optim(), config.mkldnn_enabled(), config.glog_info_disabled()) == (True, True, False)
    assert (config.cpu_math_library_num_threads(), config.use_gpu(), config.use_xpu()) == (1, False, False)
    config.switch_ir_optim(0)
    config.disable_mkldnn()
    config.disable_glog_info()
    config.disable_gpu()
    config.enable_memory_optim()
    config.enable_mkldnn_bfloat16()
    config.set_mkldnn_op({"conv2d"})
    config.set_bfloat16_op({"conv2d"})
    config.set_mkldnn_cache_capacity(4)
    config.set_optim_cache_dir("somewhere")
    config.switch_use_feed_fetch_ops(False)
    config.switch_specify_input_names(True)
    config.set_cpu_math_library_num_threads(2)
    assert (config.ir_optim(), config.mkldnn_enabled(), config.glog_info_disabled()) == (False, False, True)
    assert config.specify_input_name() and not config.use_feed_fetch_ops_enabled()
    copy = inference.Config(config)
    config.switch_ir_optim()
    config.delete_pass("fold")
    assert not copy.ir_optim() and copy.cpu_math_library_num_threads() == 2 and "fold" in copy.pass_builder().all_passes()
    rows = [[c.strip() for c in line.split("|")[1:3]] for line in copy.summary().splitlines() if line.startswith("|")]
    assert ["cpu_math_thread", "2"] in rows and ["ir_optim", "false"] in rows and ["memory_optim", "true"] in rows


def test_enums():
    kinds = inference.DataType
    assert (repr(kinds.FLOAT32), str(kinds.INT64)) == ("<PaddleDType.FLOAT32: 0>", "PaddleDType.INT64")
    assert int(kinds.INT64) == kinds.INT64 == 1
    assert [inference.get_num_bytes_of_data_type(k) for k in (kinds.FLOAT32, kinds.INT64, kinds.UINT8)] == [4, 8, 1]
    assert str(inference.PlaceType.CPU) == "PaddlePlace.CPU" and inference.PlaceType(-1) is inference.PlaceType.UNK
    assert inference.Config.Precision is inference.PrecisionType and inference.Config.Half is inference.PrecisionType.Half
    assert inference.get_version().startswith("version: ") and inference.get_trt_compile_version() == (0, 0, 0)
    with pytest.raises(TypeError):
        inference.get_num_bytes_of_data_type(3)


# ---- wrong use -----------------------------------------------------------------------------------------------------

def test_wrong_models(saved, tmp_path):
    def fails(error, match, *args):
        with pytest.raises(error, match=match):
            inference.create_predictor(inference.Config(*args))
    fails(ValueError, "names no model")
    fails(RuntimeError, "cannot open the model file 'nothing'", "nothing", "nothing")
    fails(RuntimeError, "__model__", str(tmp_path))
    fails(RuntimeError, "cannot open the parameter file", saved[0] + ".pdmodel", "nothing")
    fails(RuntimeError, "cannot open the parameter file ''", saved[0] + ".pdmodel", "")
    (tmp_path / "torn").write_bytes(b"abc")
    fails(ValueError, "is no program", str(tmp_path / "torn"), saved[0] + ".pdiparams")
    fails(ValueError, "is no program", str(tmp_path / "torn"), "nothing")
    (tmp_path / "__model__").write_bytes(b"abc")
    fails(ValueError, "is no program", str(tmp_path))
    fails(TypeError, "expected a path", 3)
    fails(TypeError, "3 arguments", "a", "b", "c")
    shutil.copy(saved[0] + ".pdmodel", tmp_path / "__model__")
    fails(RuntimeError, "parameter file", str(tmp_path))
    for name, _, persistable, *_ in paddle._core.decode((tmp_path / "__model__").read_bytes()).vars(0):
        if persistable:
            (tmp_path / name).write_bytes(b"torn")
    fails(ValueError, "is cut off|version", str(tmp_path))
    model = pathlib.Path(saved[0] + ".pdmodel").read_bytes()
    for size, params in ((20, b""), (len(model), b"abc")):
        config = inference.Config()
        config.set_model_buffer(model, size, params, len(params))
        with pytest.raises(ValueError):
            inference.create_predictor(config)
    with pytest.raises(TypeError, match="set_model_buffer"):
        config.set_model_buffer(3, 4, 5, 6)
    with pytest.raises(ValueError, match="5 bytes of a buffer of 3"):
        config.set_model_buffer(b"abc", 5, b"", 0)
    with pytest.raises(TypeError, match="expected a Config"):
        inference.create_predictor(saved[0])


def test_a_config_is_for_one_predictor(saved):
    config = config_of(saved)
    inference.create_predictor(config)
    with pytest.raises(ValueError, match="only be used for one predictor"):
        inference.create_predictor(config)
    inference.create_predictor(inference.Config(config))


@pytest.mark.parametrize("name, args", [("enable_xpu", ()),
                                        ("enable_tensorrt_engine", (1 << 20, 1)), ("enable_dlnne", ()),
                                        ])
def test_devices_that_are_not_there(name, args):
    with pytest.raises(RuntimeError, match="this build has no"):
        getattr(inference.Config(), name)(*args)


def test_options_of_tensorrt():
    """The C config stores them, so that a copy answers as the config that it was made of."""
    asked = ("tensorrt_oss_enabled", "tensorrt_varseqlen_enabled", "tensorrt_dla_enabled", "tensorrt_dynamic_shape_enabled",
             "tuned_tensorrt_dynamic_shape", "trt_allow_build_at_runtime", "shape_range_info_collected")
    config = inference.Config()
    assert not any(getattr(config, name)() for name in asked)
    config.enable_tensorrt_oss()
    config.enable_tensorrt_dla(0)
    config.set_trt_dynamic_shape_info({"x": [1, 4]}, {"x": [8, 4]}, {"x": [2, 4]})
    config.collect_shape_range_info("shapes")
    config.enable_tuned_tensorrt_dynamic_shape("ranges", True)
    config.exp_disable_tensorrt_ops(["conv2d"])
    copy = inference.Config(config)
    assert all(getattr(copy, name)() for name in asked) and copy.shape_range_info_path() == "ranges"
    assert copy._core.names("TENSORRT_EXCLUDED") == ["conv2d"]
    with pytest.warns(UserWarning, match="no ONNX Runtime"):
        config.enable_onnxruntime()
    assert not config.onnxruntime_enabled()


def test_wrong_settings(saved):
    config = inference.Config()
    for name, argument in (("set_cpu_math_library_num_threads", "a"), ("delete_pass", 3), ("set_prog_file", 3)):
        with pytest.raises(TypeError, match=name):
            getattr(config, name)(argument)
    with pytest.raises(TypeError):
        inference.PredictorPool(config_of(saved), "a")
    with pytest.raises(ValueError):
        inference.PredictorPool(config_of(saved), 0)
    pool = inference.PredictorPool(config_of(saved), 1)
    with pytest.raises(ValueError, match="1 predictors"):
        pool.retrive(9)
    with pytest.raises(TypeError):
        pool.retrive(-1)


def test_wrong_handles(saved):
    predictor = inference.create_predictor(config_of(saved))
    with pytest.raises(RuntimeError, match="no input 'y'; it has: x, shift"):
        predictor.get_input_handle("y")
    with pytest.raises(RuntimeError, match="no output 'x'"):
        predictor.get_output_handle("x")
    with pytest.raises(TypeError):
        inference.Tensor()
    x, out = predictor.get_input_handle("x"), predictor.get_output_handle(predictor.get_output_names()[0])
    for handle in (x, out):
        assert (handle.shape(), handle.type(), handle.lod()) == ([0], inference.DataType.FLOAT32, [])
        with pytest.raises(RuntimeError, match="holds no memory"):
            handle.copy_to_cpu()
    with pytest.raises(TypeError, match="expected a NumPy array"):
        x.copy_from_cpu([1.0])
    with pytest.raises(TypeError, match="complex64"):
        x.copy_from_cpu(np.zeros(2, "complex64"))
    with pytest.raises(ValueError, match="strings"):
        x.copy_from_cpu(["a"])
    with pytest.raises(ValueError, match="strings"):
        x.reshape(3)
    with pytest.raises(TypeError, match="list of ints"):
        x.reshape("a")
    with pytest.raises(TypeError, match="share_external_data"):
        x.share_external_data(np.zeros(2))
    for write in (lambda: out.reshape([1]), lambda: out.copy_from_cpu(np.zeros(1, "float32"))):
        with pytest.raises(RuntimeError, match="can only be read"):
            write()
    x.set_lod([[0, 1, 2]])
    assert x.lod() == [[0, 1, 2]]


def test_wrong_runs(saved):
    predictor = inference.create_predictor(config_of(saved))
    good, shift = sample(2)
    with pytest.raises(ValueError, match="'x' has no data"):
        predictor.run()
    x = predictor.get_input_handle("x")
    predictor.get_input_handle("shift").copy_from_cpu(shift)
    x.reshape([2, 2, 6, 6])
    with pytest.raises(RuntimeError, match="holds no memory"):
        predictor.run()
    for wrong in (good[0], good[:, :1], good.astype("float64"), good.astype("int32")):
        x.copy_from_cpu(wrong)
        with pytest.raises(ValueError, match="x"):
            predictor.run()
    x.copy_from_cpu(good)
    x.reshape([9, 2, 6, 6])
    with pytest.raises(RuntimeError, match="holds 144 elements"):
        predictor.run()
    tensors = [paddle.to_tensor(good), paddle.to_tensor(shift)]
    for wrong, match in ((3, "got int"), ([], "got 0"), (tensors[:1], "got 1"), ([good, shift], "ndarray"),
                         (tensors[::-1], "x")):
        with pytest.raises(ValueError, match=match):
            predictor.run(wrong)
    close([r.numpy() for r in predictor.run(tensors)], saved[1], good, shift)
