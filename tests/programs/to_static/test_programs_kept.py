"""Programs of a function under to_static: what is part of the key, what makes a new one, how many stay."""
import gc
import weakref

import numpy as np

from nets import make, tensor
import proa as paddle
from proa.static import InputSpec

nn = paddle.nn


def test_one_program_for_unknown_dims():
    net = paddle.jit.to_static(make(), input_spec=[InputSpec([None, 4], name="images")])
    net.eval()
    twin = make()
    twin.eval()
    for n in (1, 3, 8):
        assert np.array_equal(net(tensor(n, 4)).numpy(), twin(tensor(n, 4)).numpy())
    assert len(net.forward.program_cache) == 1
    assert net.forward.inputs[0].name == "images" and net.forward.inputs[0].shape == (-1, 4)


def test_cache_key():
    calls = []

    @paddle.jit.to_static
    def f(x, factor=2, *, names=("a",)):
        calls.append(factor)
        return x * factor, names
    f(tensor(2)), f(tensor(2)), f(tensor(2), 2)
    assert len(calls) == 1
    f(tensor(3)), f(tensor(2), 3), f(tensor(2), factor=2.0), f(tensor(2), names=("b",))
    assert len(calls) == 5
    f(tensor(2, dtype="float64"))
    assert len(calls) == 6 and len(f.program_cache) == 6


def test_programs_are_bounded():
    from proa import _core
    calls = []

    @paddle.jit.to_static
    def f(x):
        calls.append(len(x.shape))
        return x * 2
    _core.set_flag("kept_programs", "3")
    try:
        for n in (1, 2, 3, 1, 4, 1, 5):  # 1 is used again and again
            f(tensor(n))
        assert len(calls) == 5 and len(f.program_cache) == 3
        f(tensor(1))
        assert len(calls) == 5, "what is used stays"
        f(tensor(2))
        assert len(calls) == 6, "what was used least recently has gone"
        info = f.cache_info()
        assert (info.programs, info.kept, info.made, info.evicted) == (3, 3, 6, 3)
        assert info.plans == 3 and info.arena_bytes >= 0
        for n in range(6, 40):
            f(tensor(n))
        assert f.cache_info().programs == f.cache_info().plans == 3
    finally:
        _core.set_flag("kept_programs", "32")


def test_nested_arguments():
    @paddle.jit.to_static
    def f(batch, rest, *more, **named):
        return {"sum": batch["a"] + batch["b"][0], "rest": [rest[0] * rest[1], rest[1]],
                "more": sum(more, named["z"])}
    a, b = tensor(2), tensor(2, seed=1)
    for _ in range(2):
        out = f({"a": a, "b": (b, 3)}, [a, 5], a, b, z=b)
        assert np.array_equal(out["sum"].numpy(), (a + b).numpy())
        assert out["rest"][1] == 5 and np.array_equal(out["rest"][0].numpy(), (a * 5).numpy())
        assert np.array_equal(out["more"].numpy(), (b + a + b).numpy())


def test_arrays_are_tensors():
    f = paddle.jit.to_static(lambda x: x + 1)
    assert f(np.zeros([2], "float32")).tolist() == [1, 1]


def test_functions_of_global_layers():
    net = make()
    f = paddle.jit.to_static(lambda x: net(x))
    assert f(tensor(3, 4)).shape == [3, 2]
    net.eval()
    assert np.array_equal(f(tensor(3, 4)).numpy(), net(tensor(3, 4)).numpy())


def test_a_new_parameter_is_seen():
    net = paddle.jit.to_static(nn.Linear(2, 2))
    x = tensor(1, 2)
    net(x)
    net.weight = paddle.create_parameter([2, 2], "float32", default_initializer=nn.initializer.Constant(3.0))
    net.bias.set_value(np.zeros([2], "float32"))
    assert np.allclose(net(x).numpy(), 3 * x.sum().item())


def test_amp_is_part_of_the_key():
    f = paddle.jit.to_static(lambda x: paddle.matmul(x, x))
    x = tensor(4, 4)
    assert f(x).dtype == paddle.float32
    with paddle.amp.auto_cast(dtype="bfloat16"):
        assert f(x).dtype == paddle.bfloat16
    assert f(x).dtype == paddle.float32


def test_a_new_buffer_is_seen():
    net = paddle.jit.to_static(make())
    x = tensor(3, 4)
    net(x)
    net.calls = paddle.full([1], 40.0)
    net(x), net(x)
    assert float(net.calls) == 42


def test_a_cast_is_seen():
    net = paddle.jit.to_static(nn.Linear(3, 2))
    x = tensor(4, 3)
    assert net(x).dtype == paddle.float32
    net.to(dtype="float64")
    assert net(x.astype("float64")).dtype == paddle.float64
    net.to(dtype="float32")
    assert np.array_equal(net(x).numpy(), nn.functional.linear(x, net.weight, net.bias).numpy())


def test_one_sublayer_in_evaluation():
    net, twin = paddle.jit.to_static(make(dropout=0.5)), make(dropout=0.5)
    x = tensor(30, 4)
    net(x)
    net.drop.eval(), twin.drop.eval()
    assert np.array_equal(net(x).numpy(), net(x).numpy())
    assert np.array_equal(net(x).numpy(), twin(x).numpy())


def test_dims_and_dtypes_do_not_mix():
    f = paddle.jit.to_static(lambda a, b: a.sum() + b.sum())
    for dims in (([2], [3, 1]), ([2, 3], [1]), ([2], [3, 1])):
        a, b = tensor(*dims[0]), tensor(*dims[1], seed=1)
        assert np.allclose(f(a, b).numpy(), (a.sum() + b.sum()).numpy())


def test_layers_are_freed():
    def use():
        net = paddle.jit.to_static(make())
        net(tensor(3, 4)).sum().backward()
        return weakref.ref(net), weakref.ref(net.forward)
    one, other = use()
    gc.collect()
    assert one() is None and other() is None
