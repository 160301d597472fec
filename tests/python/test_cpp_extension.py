"""paddle.utils.cpp_extension: operators of tests/extension, built by load and setup; called eagerly, in programs, in exported models."""
import os
import pathlib
import re
import subprocess
import sys
import warnings

import numpy as np
import pytest

import proa as paddle
from conftest import BUILD
from proa.utils import cpp_extension
from proa.utils.cpp_extension.extension_utils import functions_of, load_op_meta_info_and_register_op, parse_op_info, run_cmd

SOURCES = pathlib.Path(__file__).resolve().parents[1] / "extension"


def load(name, sources, folder):
    """cpp_extension.load without the optimizer, which takes longer than the tests."""
    return cpp_extension.load(name, sources, build_directory=str(folder), extra_cxx_cflags=["-O0"])


def build(factory, name, folder=None):
    """The module of tests/extension/<name>.cc. Workers of one run share the folder, so that one of them compiles."""
    root = factory.getbasetemp()
    shared = root.parent if os.environ.get("PYTEST_XDIST_WORKER") else root
    return load(name, [SOURCES / (name + ".cc")], folder or shared / "operators")


@pytest.fixture(scope="module")
def ops(tmp_path_factory):
    return build(tmp_path_factory, "ops")


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    return build(tmp_path_factory, "old_style")


@pytest.fixture(scope="module")
def bad(tmp_path_factory):
    return build(tmp_path_factory, "mistakes")


def renamed_source(prefix):
    """old_style.cc with other names of operators, so that one process can load both."""
    return (SOURCES / "old_style.cc").read_text().replace("(old_", f"({prefix}")


def leaf(*values, dtype="float32"):
    return paddle.to_tensor(np.array(values, dtype), stop_gradient=False)


# ---- eager calls ----------------------------------------------------------------------------------------


def test_gradients_of_gradients(ops):
    x = leaf(-1, 2, 3)
    y = ops.ext_cube(x)
    slope, = paddle.grad(y.sum(), x, create_graph=True)
    curve, = paddle.grad((slope * slope).sum(), x)
    assert y.tolist() == [-1, 8, 27] and slope.tolist() == [3, 12, 27]
    np.testing.assert_allclose(curve.numpy(), 2 * 3 * x.numpy() ** 2 * 6 * x.numpy())


def test_lists(ops):
    a, b = leaf([1, 2], [3, 4]), leaf([5, 6])
    joined = ops.ext_join([a, b], 0)
    assert joined.tolist() == [[1, 2], [3, 4], [5, 6]]
    (joined * joined).sum().backward()
    assert a.grad.tolist() == [[2, 4], [6, 8]] and b.grad.tolist() == [[10, 12]]
    pieces = ops.ext_pieces(paddle.arange(6.0).reshape([6, 1]), 3)
    assert isinstance(pieces, list) and [p.tolist() for p in pieces] == [[[0], [1]], [[2], [3]], [[4], [5]]]


ATTRIBUTES = (True, -3, 1.5, 1 << 40, "abcd", [1, 2], [0.5, 0.25], [1 << 40, -(1 << 40), 11], ["a", "b,c", ""])
DESCRIBED = [1, -3, 1.5, float(1 << 40), 4, 3, 0.75, 11, 130]


def test_attributes_of_every_type(ops):
    assert ops.ext_describe(paddle.ones([2]), *ATTRIBUTES).tolist() == DESCRIBED
    named = dict(zip(("b", "i", "f", "l", "s", "ints", "floats", "longs", "texts"), ATTRIBUTES))
    assert ops.ext_describe(x=paddle.ones([2]), **named).tolist() == DESCRIBED
    with pytest.raises(OSError, match="1099511627776 does not fit an int"):
        ops.ext_describe(paddle.ones([2]), True, 1 << 40, *ATTRIBUTES[2:])
    with pytest.raises((TypeError, ValueError), match="texts: expected a list of strings"):
        ops.ext_describe(paddle.ones([2]), *ATTRIBUTES[:-1], "text")
    with pytest.raises(TypeError, match="argument i is missing"):
        ops.ext_describe(paddle.ones([2]), True)


def test_absent_inputs(ops):
    x = leaf(1, 2)
    assert ops.ext_add_maybe(x, x).tolist() == [2, 4]
    y = ops.ext_add_maybe(x, None)
    assert y.tolist() == [1, 2] and ops.ext_add_maybe(x).tolist() == [1, 2]
    y.sum().backward()
    assert x.grad.tolist() == [1, 1]


def test_in_place(ops):
    x = leaf(1, 2)
    y = x * 3
    doubled = ops.ext_double_(y)
    assert doubled.tolist() == y.tolist() == [6, 12]
    (doubled * doubled).sum().backward()
    assert x.grad.tolist() == [2 * 6 * 6, 2 * 12 * 6]
    with pytest.raises(ValueError, match="leaf"):
        ops.ext_double_(x)
    columns = paddle.ones([3, 2])
    ops.ext_double_(columns[:, 0])  # a view with strides
    assert columns.tolist() == [[2, 1]] * 3


def test_kernels_of_two_point_one(old):
    for dtype in ("float16", "float32", "float64"):
        out = old.old_leaky(paddle.to_tensor([-2.0, 4.0], dtype), 0.25)
        assert out.dtype == getattr(paddle, dtype) and out.tolist() == [-0.5, 4]
    x = leaf(-2, 4)
    half, sign = old.old_halves(x)
    assert half.tolist() == [-1, 2] and sign.tolist() == [1, 0] and sign.dtype == paddle.int32
    half.sum().backward()
    assert x.grad.tolist() == [0.5, 0.5]


def test_results_have_memory_of_their_own(old):
    first, second = old.old_twins(paddle.ones([2]))
    first[0] = 7.0
    assert first.tolist() == [7, 2] and second.tolist() == [2, 2]


# Functions whose Python twin has another name or other arguments.
TWINS = {
    "logsigmoid": lambda x, y: paddle.nn.functional.log_sigmoid(x), "relu": lambda x, y: paddle.nn.functional.relu(x),
    "sigmoid": lambda x, y: paddle.nn.functional.sigmoid(x), "silu": lambda x, y: paddle.nn.functional.silu(x),
    "elementwise_pow": paddle.pow, "logical_and": lambda x, y: paddle.logical_and(x > y, x < y),
    "logical_or": lambda x, y: paddle.logical_or(x > y, x < y), "logical_xor": lambda x, y: paddle.logical_xor(x >= y, x <= y),
    "logical_not": lambda x, y: paddle.logical_not(x == y), "scale": lambda x, y: (x + 1) * 2, "pow": lambda x, y: x ** 3,
    "clip": lambda x, y: paddle.clip(x, 0.2, 0.5), "where": lambda x, y: paddle.where(x > y, x, y), "cast": lambda x, y: x.astype("int32"),
    "operators": lambda x, y: (1 + x * 2 - y / 4) / x - (3 - y) * 0.5 + 2 / x + -y * (x - 1), "sum": lambda x, y: x.sum(),
    "sum_axis": lambda x, y: x.astype("float64").sum(1, keepdim=True), "mean": lambda x, y: x.mean(0),
    "max": lambda x, y: x.max(-1, keepdim=True), "min": lambda x, y: x.min(), "prod": lambda x, y: x.prod(),
    "matmul": lambda x, y: paddle.matmul(x, y, False, True), "softmax": lambda x, y: paddle.nn.functional.softmax(x, 0),
    "reshape": lambda x, y: x.reshape([3, 2]), "transpose": lambda x, y: x.T, "unsqueeze": lambda x, y: x.unsqueeze([0, 2]),
    "squeeze": lambda x, y: x, "expand": lambda x, y: x.expand([4, 2, 3]), "tile": lambda x, y: x.tile([2, 1]),
    "flip": lambda x, y: x.flip(1), "concat": lambda x, y: paddle.concat([x, y], 1), "stack": lambda x, y: paddle.stack([x, y], 1),
    "split": lambda x, y: x[:, 1:], "slice": lambda x, y: x[1:2], "gather": lambda x, y: paddle.concat([x[:, 1:2]] * 2, 1),
    "zeros": lambda x, y: paddle.full([2], 3.0), "full_like": lambda x, y: paddle.full_like(x, 1.5),
    "zeros_like": lambda x, y: paddle.zeros_like(x).astype("int64"), "ones_like": lambda x, y: paddle.ones_like(x), "copy_to": lambda x, y: x,
}
UNARY = ("abs acos asin atan ceil cos cosh erf exp expm1 floor isfinite isinf isnan log log10 log1p log2 reciprocal round rsqrt sign sin "
         "sinh sqrt square tan tanh").split()
BINARY = ("add subtract multiply divide maximum minimum remainder floor_divide equal not_equal less_than less_equal greater_than "
          "greater_equal").split()


def test_functions_on_tensors(tmp_path_factory):
    """Each function of paddle/extension/operations.h gives what its Python twin gives."""
    call = build(tmp_path_factory, "functions").fn_call
    x = paddle.to_tensor([[0.9, 0.5, 0.25], [0.125, 0.75, 0.5]])
    y = paddle.to_tensor([[0.5, 0.5, 0.5], [0.25, 1.0, 0.125]])
    twins = {**TWINS, **{n: (lambda x, y, n=n: getattr(paddle, n)(x)) for n in UNARY}, **{n: getattr(paddle, n) for n in BINARY}}
    named = set(re.findall(r"(?:UNARY|BINARY|CASE)\((\w+)", (SOURCES / "functions.cc").read_text())) - {"name"}
    assert set(twins) == named
    for name, twin in twins.items():
        got, expected = call(x, y, name), twin(x, y)
        assert got.shape == expected.shape and got.dtype == expected.dtype, name
        np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-6, atol=1e-7, err_msg=name)


def test_strided_and_shared_inputs(ops):
    x = paddle.arange(6.0).reshape([2, 3])
    np.testing.assert_array_equal(ops.ext_cube(x.T).numpy(), x.numpy().T ** 3)
    same = ops.ext_add_maybe(x)  # the kernel returns its input
    same[0, 0] = 7.0
    assert float(x[0, 0]) == 0


# ---- errors -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name, raises, text", [
    ("bad_throws", OSError, "the kernel is out of order"),
    ("bad_checks", OSError, r"x has 2 elements, expected 3(.|\n)*mistakes.cc:\d+"),
    ("bad_too_many", ValueError, "bad_too_many: returned 2 tensors, but has 1 outputs"),
    ("bad_empty", OSError, "call mutable_data"),
    ("bad_wrong_type", OSError, "elements are float, not double"),
    ("bad_multiplies", ValueError, "matmul"),
    ("bad_throws_number", OSError, "no std::exception"),
])
def test_failing_kernels(bad, name, raises, text):
    x = paddle.ones([2, 2]) if name == "bad_multiplies" else paddle.ones([2])
    for _ in range(2):
        with pytest.raises(raises, match=text):
            getattr(bad, name)(x)
    assert (x + x).sum() == 2 * x.sum()  # nothing stays behind


def test_failing_inference(bad):
    with pytest.raises(ValueError, match="bad_infers: out has no shape: .* SetInferShapeFn"):
        bad.bad_infers(paddle.ones([2]), paddle.ones([2]))
    with paddle.static.program_guard(paddle.static.Program()):
        paddle.enable_static()
        out = bad.bad_other_dtype(paddle.static.data("x", [2], "float32"))
        try:
            with pytest.raises(ValueError, match="returned as int32.*infers float32.*SetInferDtypeFn"):
                paddle.static.Executor().run(feed={"x": np.ones(2, "float32")}, fetch_list=[out])
        finally:
            paddle.disable_static()
    x = leaf(1, 2)
    with pytest.raises(ValueError, match=r"float32\[1\] is no gradient of an input of shape \[2\]"):
        bad.bad_gradient(x).sum().backward()


def test_failing_builds(tmp_path):
    source = tmp_path / "broken.cc"
    source.write_text('#include "paddle/extension.h"\nint f() { return missing; }\n')
    with pytest.raises(RuntimeError, match=r"does not compile:(.|\n)*missing"):
        load("broken", [source], tmp_path)
    assert not list(tmp_path.glob("broken/*.so"))
    with pytest.raises(FileNotFoundError, match="no source"):
        load("broken", [tmp_path / "none.cc"], tmp_path)
    with pytest.warns(UserWarning, match="CUDA"), pytest.raises(ValueError, match="must name a file in C"):
        load("broken", ["kernel.cu"], tmp_path)
    with pytest.raises(RuntimeError, match="Failed to run command: exit 3"):
        run_cmd("exit 3")


LIBRARIES = {
    "none.cc": ("int f() { return 1; }", ValueError, "is no library of custom ops"),
    "paddles.cc": ('extern "C" int PD_GetOpMetaInfoMap() { return 1; }', NotImplementedError, "built against Paddle's own headers"),
    "paddles_calls.cc": ('namespace paddle { void log(); } extern "C" int PD_GetOpMetaInfoMap() { paddle::log(); return 1; }',
                         NotImplementedError, "built against Paddle's own headers"),
    "empty.cc": ('#include "paddle/extension.h"', ValueError, "has no ops"),
    "taken.cc": ('#include "paddle/extension.h"\nstd::vector<paddle::Tensor> F(const paddle::Tensor &x) { return {x}; }\n'
                 'PD_BUILD_OP(relu).Inputs({"X"}).Outputs({"Out"}).SetKernelFn(PD_KERNEL(F));', RuntimeError, "relu exists already"),
    "no_kernel.cc": ('#include "paddle/extension.h"\nPD_BUILD_OP(ext_none).Inputs({"X"}).Outputs({"Out"});', OSError, "no kernel"),
    "parameters.cc": ('#include "paddle/extension.h"\nstd::vector<paddle::Tensor> F(const paddle::Tensor &x) { return {x}; }\n'
                      'PD_BUILD_OP(ext_few).Inputs({"X", "Y"}).Outputs({"Out"}).SetKernelFn(PD_KERNEL(F));', OSError,
                      "has 1 parameters, expected 2"),
    "types.cc": ('#include "paddle/extension.h"\nstd::vector<paddle::Tensor> F(const paddle::Tensor &x, int) { return {x}; }\n'
                 'PD_BUILD_OP(ext_type).Inputs({"X"}).Outputs({"Out"}).Attrs({"n: unsigned"}).SetKernelFn(PD_KERNEL(F));', ValueError,
                 "unknown type .*unsigned"),
    "names.cc": ('#include "paddle/extension.h"\nstd::vector<paddle::Tensor> F(const paddle::Tensor &x, int) { return {x}; }\n'
                 'PD_BUILD_OP(ext_names).Inputs({"X"}).Outputs({"Out"}).Attrs({"x: int"}).SetKernelFn(PD_KERNEL(F));', ValueError,
                 "two parameters of one name.* x$"),
    "gradients.cc": ('#include "paddle/extension.h"\nstd::vector<paddle::Tensor> F(const paddle::Tensor &x) { return {x}; }\n'
                     'PD_BUILD_OP(ext_g).Inputs({"X"}).Outputs({"Out"}).SetKernelFn(PD_KERNEL(F));\n'
                     'PD_BUILD_GRAD_OP(ext_g).Inputs({paddle::Grad("Other")}).Outputs({paddle::Grad("X")}).SetKernelFn(PD_KERNEL(F));',
                     ValueError, "ext_g_grad: its forward op has no such input.*Other"),
}


@pytest.mark.parametrize("name", LIBRARIES)
def test_refused_libraries(tmp_path, name):
    text, raises, pattern = LIBRARIES[name]
    (tmp_path / name).write_text(text)
    with pytest.raises(raises, match=pattern):
        load(name[:-3], [tmp_path / name], tmp_path)


def test_missing_libraries(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file"):
        load_op_meta_info_and_register_op(str(tmp_path / "none.so"))
    (tmp_path / "text.so").write_text("no library")
    with pytest.raises(RuntimeError, match="cannot be loaded"):
        load_op_meta_info_and_register_op(str(tmp_path / "text.so"))
    with pytest.raises(ValueError, match="no custom operator 'ext_unheard_of'"):
        parse_op_info("ext_unheard_of")


# ---- programs -----------------------------------------------------------------------------------------------


def test_names(ops):
    assert parse_op_info("ext_join") == (["Xs@VECTOR"], ["axis"], ["Out"])
    assert parse_op_info("ext_describe")[1] == ["b", "i", "f", "l", "s", "ints", "floats", "longs", "texts"]
    assert load_op_meta_info_and_register_op(ops.__file__)[:2] == ["ext_cube", "ext_join"]
    assert paddle.utils.load_op_library(ops.__file__) is None
    assert functions_of("again", ops.__file__).ext_cube(paddle.full([1], 2.0)).item() == 8


def test_programs_train(ops):
    paddle.enable_static()
    try:
        main, startup = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(main, startup):
            x = paddle.static.data("x", [None, 2], "float32")
            x.stop_gradient = False
            joined = ops.ext_join([x, x * 2], 1)
            loss = ops.ext_cube(joined).mean()
            d_x, = paddle.static.gradients(loss, x)
            assert joined.shape == (-1, 4) and [op.type for op in main.global_block().ops].count("ext_cube_grad") == 1
        array = np.array([[1, 2], [3, 4], [5, 6]], "float32")
        got, slope = paddle.static.Executor().run(main, feed={"x": array}, fetch_list=[loss, d_x])
        np.testing.assert_allclose(got, (array ** 3).sum() * 9 / 12, rtol=1e-6)
        np.testing.assert_allclose(slope, 3 * array ** 2 * 9 / 12, rtol=1e-6)
        again = paddle.static.Program.parse_from_string(main.desc.serialize_to_string())
        np.testing.assert_array_equal(paddle.static.Executor().run(again, feed={"x": array}, fetch_list=[d_x.name])[0], slope)
    finally:
        paddle.disable_static()


class Net(paddle.nn.Layer):
    def __init__(self, ops):
        super().__init__()
        self.ops = ops
        self.linear = paddle.nn.Linear(3, 4)

    def forward(self, x):
        described = self.ops.ext_describe(x, *ATTRIBUTES)
        first, second = self.ops.ext_pieces(self.ops.ext_cube(self.linear(x)), 2)
        return self.ops.ext_join([first, second], 1) + described.sum().astype("float32")


def test_exported_models(ops, tmp_path):
    paddle.seed(1)
    net, x = Net(ops), paddle.randn([4, 3])
    expected = net(x).numpy()
    static = paddle.jit.to_static(Net(ops), full_graph=True)
    static.set_state_dict(net.state_dict())
    np.testing.assert_allclose(static(x).numpy(), expected, rtol=1e-6)
    prefix = str(tmp_path / "model")
    paddle.jit.save(net, prefix, [paddle.static.InputSpec([None, 3], "float32", "x")])
    np.testing.assert_allclose(paddle.jit.load(prefix)(x).numpy(), expected, rtol=1e-6)
    predictor = paddle.inference.create_predictor(paddle.inference.Config(prefix + ".pdmodel", prefix + ".pdiparams"))
    predictor.get_input_handle("x").copy_from_cpu(x.numpy())
    predictor.run()
    np.testing.assert_allclose(predictor.get_output_handle(predictor.get_output_names()[0]).copy_to_cpu(), expected, rtol=1e-6)
    script = ("import sys, proa as paddle\ntry: paddle.jit.load(sys.argv[1])\nexcept NotImplementedError as e: print(e)\n"
              "from proa.utils.cpp_extension.extension_utils import load_op_meta_info_and_register_op as load\n"
              "load(sys.argv[2]); print(paddle.jit.load(sys.argv[1])(paddle.ones([2, 3])).shape)")
    run = subprocess.run([sys.executable, "-c", script, prefix, ops.__file__], capture_output=True, text=True)
    assert run.returncode == 0 and "ext_cube" in run.stdout and "[1, 8]" in run.stdout, run.stdout + run.stderr
    command = [str(BUILD / "bin/proa"), "run", prefix, "--shape", "x=2,3"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 2 and "ext_cube" in run.stderr, run.stdout + run.stderr
    run = subprocess.run([*command, "--extension", ops.__file__], capture_output=True, text=True)
    assert run.returncode == 0 and "float32 [1, 8]" in run.stdout, run.stdout + run.stderr


def test_pip_is_imported_first():
    script = "import pip\nfrom proa.utils.cpp_extension import BuildExtension, CppExtension\nCppExtension(['a.cc'])"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr


# ---- building -------------------------------------------------------------------------------------------------


def test_built_again_only_after_a_change(tmp_path):
    source = tmp_path / "once.cc"
    text = renamed_source("once_")
    source.write_text(text)

    def compiled():
        script = ("import sys; from proa.utils import cpp_extension\n"
                  "cpp_extension.load('once', [sys.argv[1]], build_directory=sys.argv[2], verbose=True, extra_cxx_cflags=['-O0'])")
        out = subprocess.run([sys.executable, "-c", script, source, tmp_path], capture_output=True, text=True, check=True).stdout
        return " -shared " in out

    assert compiled() and not compiled()
    source.write_text(text + "// changed\n")
    assert compiled()


SETUP = """
from proa.utils.cpp_extension import CppExtension, setup
setup(name="packed_ops", ext_modules=CppExtension(sources=["packed.cc"], extra_compile_args=["-O0"]))
"""


def test_installed_packages(tmp_path):
    (tmp_path / "setup.py").write_text(SETUP)
    text = renamed_source("packed_")
    (tmp_path / "packed.cc").write_text(text)
    where = tmp_path / "site"
    run = subprocess.run([sys.executable, "setup.py", "install", "--single-version-externally-managed", "--record=files.txt",
                          f"--install-lib={where}"], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    assert {"packed_ops.py", "packed_ops_pd_.so"} <= {p.name for p in where.iterdir()}
    use = "import proa as paddle, packed_ops; print(packed_ops.packed_leaky(paddle.to_tensor([-2.0, 4.0]), 0.5).tolist())"
    got = subprocess.run([sys.executable, "-c", use], capture_output=True, text=True, cwd=where,
                         env={**os.environ, "PYTHONPATH": f"{where}:{os.environ.get('PYTHONPATH', '')}"})
    assert got.stdout.strip() == "[-1.0, 4.0]", got.stderr


def test_setup_refuses():
    with pytest.raises(ValueError, match="needs a name"):
        cpp_extension.setup(ext_modules=[])
    with pytest.raises(ValueError, match="must be one CppExtension"):
        cpp_extension.setup(name="x", ext_modules=[])


def test_sources_in_cuda_are_left_out(tmp_path):
    """A function of such a source is missing until it is called."""
    (tmp_path / "both.cc").write_text(
        '#include "paddle/extension.h"\nstd::vector<paddle::Tensor> on_gpu(const paddle::Tensor &x);\n'
        "std::vector<paddle::Tensor> F(const paddle::Tensor &x) { if (x.is_gpu()) return on_gpu(x); return {x * 2}; }\n"
        'PD_BUILD_OP(ext_both).Inputs({"X"}).Outputs({"Out"}).SetKernelFn(PD_KERNEL(F));\n')
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        module = load("both", [tmp_path / "both.cc", tmp_path / "both.cu"], tmp_path)
    assert any("CUDA sources are left out" in str(w.message) for w in seen)
    assert module.ext_both(paddle.ones([1])).item() == 2
