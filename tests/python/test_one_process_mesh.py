"""Tensors on a mesh of one process: every method of Tensor against a plain tensor, errors, and what does not take them."""
import copy
import pickle

import numpy as np
import pytest

import proa as paddle
import proa.distributed as dist
from proa import nn
from proa.distributed import Partial, ProcessMesh, Replicate, Shard

MESH = ProcessMesh([0], dim_names=["x"])
VALUES = np.arange(16.0).reshape(4, 4).astype("float32")
LEFT_OUT = {"__class__", "__init_subclass__", "__subclasshook__", "__new__", "__init__", "__setattr__", "__delattr__", "_become"}
RANDOM = {"multinomial"}


def placed(placements=(Shard(0),), values=VALUES):
    return dist.shard_tensor(values, MESH, list(placements), stop_gradient=False)


def result(tensor, name, args):
    found = getattr(tensor, name)
    return found(*args) if callable(found) else found


def numbers(tensor):
    return np.nan_to_num(np.array(tensor.numpy(), dtype="complex128"))


@pytest.mark.parametrize("args", [(), (1,), "t", "tt", ([1],), ("float64",), (0, 0)])
def test_methods_are_those_of_a_plain_tensor(args):
    agreed, other = 0, paddle.to_tensor(VALUES, stop_gradient=False)
    given = tuple(other for _ in args) if isinstance(args, str) else args
    for name in sorted(set(dir(paddle.Tensor)) - LEFT_OUT - RANDOM):
        try:
            want = result(paddle.to_tensor(VALUES, stop_gradient=False), name, given)
        except Exception:
            want = None
        try:
            got = result(placed(), name, given)
        except Exception as error:
            assert not isinstance(error, (SystemError, AssertionError)) or want is None, (name, error)
            continue
        if isinstance(want, paddle.Tensor) and isinstance(got, paddle.Tensor):
            np.testing.assert_allclose(numbers(got), numbers(want), rtol=1e-6, err_msg=name)
            agreed += 1
    assert agreed > 15


def test_life():
    x = placed()
    assert x.is_dist() and isinstance(x, paddle.Tensor) and x.is_leaf and not x.stop_gradient and x.grad is None and len(x) == 4
    assert x.process_mesh == MESH and x.placements == [Shard(0)] and x.dist_attr.dims_mapping == [0, -1]
    assert repr(x).startswith("Tensor(shape=[4, 4], dtype=float32, place=Place(cpu), stop_gradient=False, process_mesh={shape: [1], "
                              "process_ids: [0], dim_names: [x]}, placements=[Shard(dim=0)], GlobalDenseTensor=\n       [[0. , 1. ")
    y = copy.deepcopy(x)
    y.set_value(VALUES + 1)
    assert float(x[0, 1]) == 1 and float(y[0, 1]) == 2 and [int(r.sum()) for r in x] == [6, 22, 38, 54]
    (x * y).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), VALUES + 1)
    assert x.grad.placements == [Shard(0)]
    x.clear_gradient()
    assert not x.grad.numpy().any()
    x.grad = None
    assert x.grad is None and x.detach().stop_gradient and x.clone().grad is None
    plain = paddle.ones([1])
    assert not plain.is_dist() and plain.placements is None and plain.process_mesh is None


def test_refusals(tmp_path):
    x, other = placed(), ProcessMesh([[0]])
    cases = [
        (TypeError, "placements", lambda: dist.shard_tensor(VALUES, MESH, [0])), (ValueError, "mesh", lambda: dist.shard_tensor(VALUES, 3, [])),
        (ValueError, "axis 7", lambda: dist.shard_tensor(VALUES, MESH, [Shard(7)])),
        (ValueError, "one may divide", lambda: dist.shard_tensor(VALUES, other and ProcessMesh([[0]]), [Shard(0), Shard(0)])),
        (ValueError, "for a mesh of 1", lambda: dist.shard_tensor(VALUES, MESH, [Replicate(), Shard(0)])),
        (ValueError, "two meshes", lambda: x + dist.shard_tensor(VALUES, other, [Shard(0)])),
        (ValueError, "on no mesh", lambda: dist.reshard(paddle.ones([2]), MESH, [Replicate()])),
        (ValueError, "different names", lambda: ProcessMesh([[0]], dim_names=["a", "a"])), (ValueError, "once", lambda: ProcessMesh([0, 0])),
        (ValueError, "process ids", lambda: ProcessMesh([0.5])), (ValueError, "no dimension", lambda: MESH.get_dim_size("z")),
        (ValueError, "unknown|sharding_specs", lambda: dist.DistAttr(MESH, ["z"])), (TypeError, "int", lambda: Shard("x")),
        (TypeError, "ReduceType", lambda: Partial("sum")), (TypeError, "callable", lambda: dist.dtensor_from_fn(3, MESH, [])),
        (ValueError, "process_mesh", lambda: dist.shard_layer(nn.Linear(2, 2), None)), (TypeError, "Optimizer", lambda: dist.shard_optimizer(None)),
        (TypeError, "save_state_dict", lambda: pickle.dumps(x)), (TypeError, "save_state_dict", lambda: paddle.save({"x": x}, str(tmp_path / "x"))),
        (ValueError, "shape", lambda: x.set_value(np.ones([3], "float32"))), (ValueError, "leaf", lambda: x.fill_(1.0)),
        (ValueError, "overwritten", lambda: paddle.ones([4, 4]).add_(x)), (RuntimeError, "divided|mesh", lambda: paddle.to_tensor(x)),
        (TypeError, "dict", lambda: dist.save_state_dict([x], str(tmp_path))), (TypeError, "Tensors", lambda: dist.save_state_dict({"a": 1}, "x")),
        (ValueError, "no folder", lambda: dist.load_state_dict({"x": x}, str(tmp_path / "none"))),
        (ValueError, "config", lambda: dist.Strategy(3)), (ValueError, "no setting", lambda: dist.Strategy({"sharding": {"stages": 1}})),
        (RuntimeError, "names process 3", lambda: dist.shard_tensor(VALUES, ProcessMesh([0, 3]), [Shard(0)]).numpy()),
    ]
    for kind, text, call in cases:
        with pytest.raises(kind, match=text):
            call()


def test_a_job_of_fewer_processes():
    x = dist.shard_tensor(VALUES, ProcessMesh([0, 1]), [Shard(0)])  # as the examples of Paddle's docs, which run in one process
    assert x.shape == [4, 4] and x._local_shape == [2, 4]
    away = dist.shard_tensor(VALUES, ProcessMesh([1]), [Shard(0)])
    assert not away._is_initialized() and "Not initialized" in repr(away)
    out = nn.functional.softmax(away @ away).reshape([2, 8])
    assert out.shape == [2, 8] and out.dtype == paddle.float32 and not out._is_initialized()


def test_malformed_metadata(tmp_path):
    dist.save_state_dict({"x": placed([Replicate()])}, str(tmp_path))
    good = (tmp_path / "0.metadata").read_bytes()
    held = {"x": placed(values=np.zeros([4, 4], "float32"))}
    dist.load_state_dict(held, str(tmp_path))
    np.testing.assert_array_equal(held["x"].numpy(), VALUES)
    draw = np.random.RandomState(0)
    for _ in range(300):
        bad = bytearray(good)
        for _ in range(draw.randint(1, 4)):
            bad[draw.randint(len(bad))] = draw.randint(256)
        (tmp_path / "0.metadata").write_bytes(bytes(bad[:draw.randint(len(bad)) if draw.randint(2) else len(bad)]))
        try:
            dist.load_state_dict(held, str(tmp_path))
        except (ValueError, MemoryError):
            pass
    (tmp_path / "0.metadata").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(ValueError, match="not read"):
        dist.load_state_dict(held, str(tmp_path))


def test_functions_under_to_static_run_as_they_are():
    net = dist.shard_layer(nn.Linear(4, 4), MESH)
    want = net(placed()).numpy()
    static = paddle.jit.to_static(net)
    np.testing.assert_allclose(static(placed()).numpy(), want, rtol=1e-6)
    with pytest.warns(UserWarning, match="mesh"):
        np.testing.assert_allclose(static(paddle.to_tensor(VALUES)).numpy(), want, rtol=1e-6)
