"""Modules and names that are not documented and that public programs take all the same."""
import hashlib
import importlib
import os
import subprocess
import sys
import tarfile

import numpy as np
import pytest

import proa as paddle

IMPORTS = """
import paddle.utils.download
from paddle.utils.download import get_weights_path_from_url, get_path_from_url, _decompress, _get_unique_endpoints, is_url
from paddle.framework import core
from paddle.framework.io import EagerParamBase
from paddle.common_ops_import import LayerHelper, Variable, convert_dtype, check_variable_and_dtype
from paddle.hapi.model import _all_gather
from paddle.dataset.common import md5file
from paddle.vision.transforms.functional import _is_pil_image, _is_tensor_image, _is_numpy_image
from paddle import _C_ops, _legacy_C_ops
import paddle._C_ops as C_ops
import paddle.base.core
from paddle.base import core, framework, unique_name
from paddle.base.framework import EagerParamBase, in_dygraph_mode, in_dynamic_or_pir_mode, in_pir_mode, use_pir_api
from paddle.base.log_helper import get_logger
from paddle.framework import in_dynamic_or_pir_mode, use_pir_api, set_flags, dygraph_only, to_variable
from paddle.framework.framework import get_default_dtype
from paddle.nn.functional.vision import grid_sample
from paddle.nn.initializer.constant import Constant
from paddle.nn.initializer.kaiming import KaimingNormal
from paddle.optimizer.adamw import AdamW
from paddle.optimizer.momentum import Momentum
from paddle.sparse.creation import sparse_coo_tensor
from paddle.tensor.ops import sqrt
from paddle.text.viterbi_decode import ViterbiDecoder
from paddle.utils.layers_utils import flatten, map_structure, pack_sequence_as
from paddle.amp.auto_cast import amp_state
from paddle.distributed.fleet.meta_optimizers.dygraph_optimizer.dygraph_sharding_optimizer import DygraphShardingOptimizer
from paddle.distributed.fleet.meta_optimizers.dygraph_optimizer.hybrid_parallel_optimizer import HybridParallelOptimizer
from paddle.incubate.nn.attn_bias import BlockDiagonalMask, LowerTriangularMask
from paddle.incubate.nn.layer.fused_dropout_add import FusedDropoutAdd
from paddle.incubate.nn.layer.fused_transformer import FusedMultiTransformer
from paddle.incubate.nn.memory_efficient_attention import memory_efficient_attention
from paddle.io.dataloader.dataloader_iter import _DataLoaderIterBase
from paddle.utils.cpp_extension.cpp_extension import CUDA_HOME, BuildExtension, CppExtension
from paddle.utils.cpp_extension.extension_utils import _jit_compile, _import_module_from_library
import paddle
def f(x: paddle.paddle): return x
assert paddle.paddle is paddle and paddle.framework.io.EagerParamBase is EagerParamBase
assert paddle.nn.loss.CrossEntropyLoss is paddle.nn.CrossEntropyLoss
assert paddle.framework.core.VarDesc.VarType.FP32 == paddle.float32
assert paddle.optimizer.AdamW is AdamW and paddle.optimizer.momentum.SGD and callable(paddle.text.viterbi_decode)
assert paddle.base is paddle.fluid and framework is paddle.fluid.framework and not in_pir_mode()
assert paddle.core.EOFException is paddle.framework.core.EOFException
"""


@pytest.mark.parametrize("line", [line for line in IMPORTS.strip().split("\n") if line.startswith(("import", "from"))])
def test_each_import_alone(line):
    code = "import proa; proa.install_as_paddle()\n" + line
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_imports_together():
    done = subprocess.run([sys.executable, "-c", "import proa; proa.install_as_paddle()\n" + IMPORTS], capture_output=True,
                          text=True)
    assert done.returncode == 0, done.stderr


def test_version_gates():
    assert paddle.__version__ == paddle.version.full_version == "2.6.2"
    assert (paddle.version.major, paddle.version.minor, paddle.version.patch) == ("2", "6", "2")
    assert paddle.utils.require_version("2.4.0", "2.6.2") is None
    assert paddle.version.proa_version != paddle.__version__


def test_download_is_local(tmp_path):
    from proa.utils import download
    url = "https://example.org/models/weights.tar"
    with pytest.raises(RuntimeError, match=r"fetches nothing\. Put the file at .*weights\.tar"):
        download.get_path_from_url(url, str(tmp_path))
    (tmp_path / "made").mkdir()
    (tmp_path / "made/a.txt").write_text("1")
    with tarfile.open(tmp_path / "weights.tar", "w") as archive:
        archive.add(tmp_path / "made", "made")
    (tmp_path / "made/a.txt").unlink()
    digest = hashlib.md5((tmp_path / "weights.tar").read_bytes()).hexdigest()
    found = download.get_path_from_url(url, str(tmp_path), digest)
    assert found == str(tmp_path / "made") and (tmp_path / "made/a.txt").read_text() == "1"
    with pytest.raises(RuntimeError, match="another MD5"):
        download.get_path_from_url(url, str(tmp_path), "0" * 32)


def test_archives_stay_in_their_folder(tmp_path):
    from proa.utils import download
    (tmp_path / "x").write_text("1")
    inner = tmp_path / "inner"
    inner.mkdir()
    with tarfile.open(inner / "bad.tar", "w") as archive:
        archive.add(tmp_path / "x", "../../escaped")
    with pytest.raises(ValueError, match="leads out of its folder"):
        download._decompress(str(inner / "bad.tar"))
    assert not os.path.exists(tmp_path.parent / "escaped")


@pytest.mark.parametrize("act, expected", [
    ("hard_swish", lambda x: x * np.clip(x + 3, 0, 6) / 6), ("hard_sigmoid", lambda x: np.clip(0.2 * x + 0.5, 0, 1)),
    ("relu", lambda x: np.maximum(x, 0)), ("leaky_relu", lambda x: np.where(x > 0, x, 0.02 * x))])
def test_batch_norm_takes_names_of_operators(act, expected):
    x = np.linspace(-4, 4, 16, dtype="float32").reshape(2, 2, 2, 2)
    layer = paddle.nn.BatchNorm(2, act=act, epsilon=0.0)
    layer.eval()
    np.testing.assert_allclose(layer(paddle.to_tensor(x)).numpy(), expected(x), rtol=1e-5, atol=1e-6)
    static = paddle.jit.to_static(layer, input_spec=[paddle.static.InputSpec([None, 2, 2, 2])])
    np.testing.assert_allclose(static(paddle.to_tensor(x)).numpy(), expected(x), rtol=1e-5, atol=1e-6)


def test_layers_have_a_helper():
    helper = paddle.nn.Linear(1, 1)._helper
    assert helper.get_default_dtype() == paddle.get_default_dtype()
    out = helper.append_activation(paddle.to_tensor([-1.0, 2.0]), act="relu")
    assert out.tolist() == [0.0, 2.0]
    made = helper.create_variable_for_type_inference("float32")
    helper.append_op("scale", {"X": [paddle.to_tensor([2.0])]}, {"Out": [made]}, {"scale": 3.0})
    assert made.tolist() == [6.0]


def test_tensors_have_a_type_without_static_mode():
    code = "import proa as paddle; assert paddle.ones([2]).type == 7 == paddle.dtype.LOD_TENSOR"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def static_mode():
    paddle.enable_static()
    yield
    paddle.disable_static()


def test_programs_and_their_state_are_saved(static_mode, tmp_path):
    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, startup):
        x = paddle.static.data("x", [2, 3])
        y = paddle.static.nn.fc(x, 2)
    executor = paddle.static.Executor()
    executor.run(startup)
    paddle.save(main, str(tmp_path / "m.pdmodel"))
    paddle.save(main.state_dict(), str(tmp_path / "m.pdparams"))
    again = paddle.load(str(tmp_path / "m.pdmodel"))
    assert [op.type for op in again.global_block().ops] == [op.type for op in main.global_block().ops]
    state = paddle.load(str(tmp_path / "m.pdparams"), return_numpy=True)
    assert sorted(state) == sorted(p.name for p in main.all_parameters())
    feed = {"x": np.ones([2, 3], "float32")}
    expected, = executor.run(main, feed=feed, fetch_list=[y])
    again.set_state_dict(state)
    found, = executor.run(again, feed=feed, fetch_list=[y.name])
    np.testing.assert_array_equal(found, expected)


def test_what_is_no_program_is_not_loaded(tmp_path):
    (tmp_path / "odd.pdmodel").write_bytes(b"neither a pickle nor a program")
    with pytest.raises(ValueError, match="cannot read"):
        paddle.load(str(tmp_path / "odd.pdmodel"))


def test_auc_over_a_window(static_mode):
    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, startup):
        score, label = paddle.static.data("score", [4, 2]), paddle.static.data("label", [4, 1], "int64")
        whole, recent, _ = paddle.static.auc(score, label, slide_steps=2)
        _, latest, _ = paddle.static.auc(score, label, slide_steps=1)
        everything, same, _ = paddle.static.auc(score, label, slide_steps=0)
    executor = paddle.static.Executor()
    executor.run(startup)
    rng, batches, seen = np.random.RandomState(0), [], []
    for _ in range(4):
        p, y = rng.rand(4).astype("float32"), np.array([[0], [1], [0], [1]])
        batches.append((p, y.ravel()))
        seen.append(executor.run(main, feed={"score": np.stack([1 - p, p], 1), "label": y},
                                 fetch_list=[whole, recent, latest, everything, same]))

    def area(some):
        p, y = (np.concatenate(part) for part in zip(*some))
        return np.mean([(a > b) + 0.5 * (a == b) for a in p[y == 1] for b in p[y == 0]])
    for i, found in enumerate(seen):
        expected = [area(batches[:i + 1]), area(batches[max(i - 1, 0):i + 1]), area(batches[i:i + 1]), area(batches[:i + 1]),
                    area(batches[:i + 1])]
        np.testing.assert_allclose([float(v) for v in found], expected, atol=0.02)


def test_a_function_knows_that_it_is_captured():
    from proa.nn.layer.layers import in_declarative_mode
    seen = []

    def f(x):
        seen.append(in_declarative_mode())
        return x + 1
    f(paddle.ones([1]))
    paddle.jit.to_static(f)(paddle.ones([1]))
    assert seen == [False, True]


def test_modules_do_not_hide_functions_of_their_name():
    code = """import proa; proa.install_as_paddle()
import paddle, types
import paddle.amp.auto_cast as found
import paddle.tensor.einsum
assert found is paddle.amp.auto_cast and isinstance(paddle.amp.auto_cast, types.FunctionType)
assert isinstance(paddle.tensor.einsum, types.FunctionType)
with paddle.amp.auto_cast(False):
    pass
from paddle.amp.auto_cast import amp_state
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_amp_state():
    from proa.amp.auto_cast import amp_state
    assert amp_state() is None
    with paddle.amp.auto_cast(enable=False, custom_white_list=["tanh"]):
        assert amp_state()["custom_white_list"] == ["tanh"] and not amp_state()["enable"]
    assert amp_state() is None


def test_iterators_of_loaders_have_one_class():
    from proa.io.dataloader.dataloader_iter import _DataLoaderIterBase
    data = paddle.io.TensorDataset([paddle.arange(6.0)])
    for workers in (0, 1):
        batches = iter(paddle.io.DataLoader(data, batch_size=2, num_workers=workers))
        assert isinstance(batches, _DataLoaderIterBase) and len(list(batches)) == 3


def test_build_directory(tmp_path, monkeypatch):
    monkeypatch.setenv("PADDLE_EXTENSION_DIR", str(tmp_path / "operators"))
    assert paddle.utils.cpp_extension.get_build_directory() == str(tmp_path / "operators") and (tmp_path / "operators").is_dir()


def test_names_that_stand_elsewhere():
    from proa import _elsewhere
    for module, places in _elsewhere.PLACES.items():
        own = importlib.import_module(f"proa.{module}")
        for where, names in places:
            for name in names.split():
                assert getattr(own, name) is getattr(importlib.import_module(f"proa.{where}"), name), (module, name)
        with pytest.raises(AttributeError, match=f"'proa.{module}' has no attribute 'nothing'"):
            own.nothing
