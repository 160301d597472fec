"""to_static and what belongs to it: specs, caches, layers in training, switches, errors."""
import copy
import gc
import linecache
import warnings
import weakref

import numpy as np
import pytest

import proa as paddle
from proa.jit.dy2static.errors import ConversionError
from proa.static import BuildStrategy, InputSpec

nn = paddle.nn


def tensor(*shape, seed=0, dtype="float32"):
    return paddle.to_tensor(np.random.RandomState(seed).standard_normal(shape).astype(dtype))


class Net(nn.Layer):
    def __init__(self, dropout=0.0):
        super().__init__()
        self.fc = nn.Linear(4, 8)
        self.bn = nn.BatchNorm1D(8)
        self.drop = nn.Dropout(dropout)
        self.out = nn.Linear(8, 2)
        self.register_buffer("calls", paddle.zeros([1]))

    def forward(self, x, scale=1.0):
        y = self.bn(self.fc(x))
        if y.mean() > 0:
            y = y * scale
        else:
            y = -y
        self.calls = self.calls + 1
        return self.out(self.drop(nn.functional.relu(y)))


class Decorated(Net):
    @paddle.jit.to_static
    def forward(self, x, scale=1.0):
        return super().forward(x, scale)


def make(kind=Net, **options):
    paddle.seed(5)
    return kind(**options)


def train(net, steps=5, dims=(6, 4)):
    optimizer = paddle.optimizer.AdamW(learning_rate=0.05, parameters=net.parameters())
    losses = []
    for i in range(steps):
        loss = nn.functional.mse_loss(net(tensor(*dims, seed=i)), tensor(dims[0], 2, seed=100 + i))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
    return losses


def state(net):
    return {name: value.numpy() for name, value in net.state_dict().items()}


def same_state(one, other):
    a, b = state(one), state(other)
    return list(a) == list(b) and all(np.array_equal(a[name], b[name]) for name in a)


@pytest.mark.parametrize("how", ["layer", "decorator", "method"])
def test_training_is_bit_equal(how):
    eager = make()
    if how == "decorator":
        static = make(Decorated)
    else:
        static = make()
        if how == "layer":
            assert paddle.jit.to_static(static) is static
        else:
            static.forward = paddle.jit.to_static(static.forward)
    assert train(eager) == train(static)
    assert same_state(eager, static)
    assert float(static.calls) == 5
    eager.eval(), static.eval()
    x = tensor(3, 4)
    assert np.array_equal(eager(x).numpy(), static(x).numpy())
    assert float(static.calls) == 6


def test_input_gradients():
    net, twin = make(), paddle.jit.to_static(make())
    x, y = tensor(5, 4), tensor(5, 4)
    x.stop_gradient = y.stop_gradient = False
    net(x).sum().backward()
    twin(y).sum().backward()
    assert np.array_equal(x.grad.numpy(), y.grad.numpy())


def test_gradients_through_control_flow():
    def f(x):
        total = x * 0
        for i in range(4):
            if x.sum() > i:
                total = total + x * x
            else:
                total = total + x
        n = paddle.to_tensor(0)
        while n < 3:
            total = total * x
            n = n + 1
        return total.sum()
    static = paddle.jit.to_static(f)
    for seed in range(3):
        x, y = tensor(3, seed=seed), tensor(3, seed=seed)
        x.stop_gradient = y.stop_gradient = False
        f(x).backward()
        static(y).backward()
        assert np.allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-6)  # summed in another order


def test_gradients_through_changed_arguments():
    """A change in place of an argument is the caller's, too, and part of what backward goes through."""
    def f(x, w):
        y = x + w * w
        x.add_(w)
        x[0] = 2.0 * w[0]
        return y

    def spoiled(x, w):
        y = x * w
        x.add_(w)
        return y
    found = []
    for function in (f, paddle.jit.to_static(f)):
        x, w = tensor(3), tensor(3, seed=1)
        w.stop_gradient = False
        y = function(x, w)
        assert not x.stop_gradient
        (y * x).sum().backward()
        found.append((y.numpy(), x.numpy(), w.grad.numpy()))
    assert all(np.array_equal(a, b) for a, b in zip(*found))
    for function in (spoiled, paddle.jit.to_static(spoiled)):
        w.stop_gradient = False
        with pytest.raises(RuntimeError, match="changed in place afterwards"):
            function(tensor(3), w).sum().backward()


def test_leaf_arguments_may_not_be_changed():
    def f(x):
        x.add_(paddle.ones([3]))
        return x
    for function in (f, paddle.jit.to_static(f)):
        x = tensor(3)
        x.stop_gradient = False
        with pytest.raises(RuntimeError, match="a leaf that wants a gradient"):
            function(x)
        with paddle.no_grad():
            assert np.array_equal(function(x).numpy(), x.numpy())


def test_dropout_differs_by_call():
    net = paddle.jit.to_static(make(dropout=0.5))
    x = tensor(64, 4)
    net(x)
    assert not np.array_equal(net(x).numpy(), net(x).numpy())
    net.eval()
    assert np.array_equal(net(x).numpy(), net(x).numpy())


def test_no_grad_records_nothing():
    net = paddle.jit.to_static(make())
    with paddle.no_grad():
        assert net(tensor(3, 4)).stop_gradient
    assert not net(tensor(3, 4)).stop_gradient


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


def test_other_methods():
    class Two(nn.Layer):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 2)

        def forward(self, x):
            return self.fc(x)

        @paddle.jit.to_static(input_spec=[InputSpec([None, 2])])
        def positive(self, x):
            y = self.fc(x)
            return y if y.sum() > 0 else -y
    a, b = Two(), Two()
    x = tensor(3, 2)
    assert float(a.positive(x).sum()) >= 0
    assert a.positive is a.positive and a.positive is not b.positive
    twin = copy.deepcopy(a)
    assert np.array_equal(twin.positive(x).numpy(), a.positive(x).numpy())


def test_switch_and_rollback():
    net = make(Decorated)
    assert type(net.forward).__name__ == "StaticFunction"
    paddle.jit.ProgramTranslator().enable(False)
    try:
        seen = []
        f = paddle.jit.to_static(lambda x: seen.append(1) or x)
        f(tensor(1)), f(tensor(1))
        assert len(seen) == 2
    finally:
        paddle.jit.enable_to_static(True)
    before = net(tensor(3, 4)).numpy()
    assert net.forward.rollback().__func__ is net.forward.__func__
    assert not hasattr(net.forward, "program_cache")
    assert np.array_equal(net(tensor(3, 4)).numpy(), before)

    other = paddle.jit.to_static(make())
    other.forward.rollback()
    assert "forward" not in vars(other)


def test_not_to_static():
    calls = []

    @paddle.jit.not_to_static
    def plain(x):
        calls.append(bool(1))
        return x + 1

    @paddle.jit.to_static
    def f(x):
        return plain(x) * 2
    f(tensor(2)), f(tensor(2))
    assert calls == [True]


def test_what_people_look_at(capsys):
    @paddle.jit.to_static(input_spec=[InputSpec([None, 3], name="x")], build_strategy=BuildStrategy())
    def f(x):
        if x.sum() > 0:
            return x
        return -x
    assert "_proa.if_(" in f.code
    assert len(f.main_program.blocks) == 3 and f.concrete_program.main_program is f.main_program
    assert [var.name for var in f.inputs] == ["x"] and len(f.outputs) == 1
    paddle.jit.set_code_level(1, also_to_stdout=True)
    try:
        paddle.jit.to_static(lambda x: x if x.sum() > 1 else -x)(tensor(2))
        assert "_proa.choose(" in capsys.readouterr().out
    finally:
        paddle.jit.set_code_level(-1)
    with pytest.raises(TypeError):
        paddle.jit.set_verbosity("loud")
    with pytest.raises(TypeError):
        paddle.jit.to_static(3)
    with pytest.raises(TypeError):
        paddle.jit.to_static(lambda x: x, build_strategy=3)
    with pytest.raises(ValueError):
        paddle.jit.to_static(lambda x: x, input_spec=[InputSpec([1]), InputSpec([1])])(tensor(1))


def test_translator():
    def f(x):
        return x * 2
    translator = paddle.jit.ProgramTranslator.get_instance()
    assert translator is paddle.jit.ProgramTranslator()
    assert translator.get_output(f, tensor(2)).shape == [2]
    assert "def f" in translator.get_code(f)
    main, startup, inputs, outputs = translator.get_program(f, tensor(2))
    assert main.num_blocks == 1 and len(inputs) == len(outputs) == 1
    assert translator.get_func(f)(3) == 6
    kept = paddle.jit.to_static(f)
    kept(tensor(2))
    assert any(name.endswith("f") for name in translator.get_program_cache())


def test_errors_name_the_users_line():
    def f(x):
        y = x + 1
        return paddle.reshape(y, [7, 7])  # the line

    with pytest.raises(ValueError) as caught:
        paddle.jit.to_static(f)(tensor(3))
    text, note = str(caught.value), "\n".join(caught.value.__notes__)
    line = f.__code__.co_firstlineno + 2
    assert text.startswith("In transformed code:") and f'File "{__file__}", line {line}, in f' in text
    assert linecache.getline(__file__, line).strip() in text
    assert "_proa.call(paddle.reshape)(y, [7, 7])" in note
    frames, step = [], caught.tb
    while step:
        frames.append((step.tb_frame.f_code.co_filename, step.tb_lineno))
        step = step.tb_next
    assert (__file__, line) in frames


def test_half_bound_names_are_explained():
    def f(x):
        if x.sum() > 0:  # the line
            y = x
        return y
    with pytest.raises(NameError) as caught:
        paddle.jit.to_static(f)(tensor(3))
    assert f'line {f.__code__.co_firstlineno + 1}: give it a value before' in "\n".join(caught.value.__notes__)


def test_values_are_refused():
    for f in (lambda x: x.tolist(), lambda x: [1, 2][x.astype("int64").sum()],
              lambda x: x.item()):
        with pytest.raises((RuntimeError, TypeError, ConversionError)):
            paddle.jit.to_static(f)(tensor(3))


def test_numpy_of_a_variable_stands_for_it():
    def f(x, n):
        for i in range(n.numpy()[0]):
            x = x + i
        if x.numpy().mean() > 1:
            x = x * 2
        return float(x.numpy().sum())
    for n in (1, 4):
        assert paddle.jit.to_static(f)(tensor(2), paddle.to_tensor([n])) == f(tensor(2), paddle.to_tensor([n]))


def test_a_number_may_become_a_tensor_of_one_element():
    def f(n):
        last = 4
        for i in range(n):
            last = paddle.full([1], 2.5) * i
        return last
    assert paddle.jit.to_static(f)(paddle.to_tensor(3)).tolist() == [5.0]
    assert paddle.jit.to_static(f)(paddle.to_tensor(0)).tolist() == [4.0]


def test_casts_of_several_elements():
    x = paddle.to_tensor([0.5, 2.75])
    assert paddle.jit.to_static(lambda x: int(x))(x).tolist() == [0, 2]
    assert paddle.jit.to_static(lambda x: float(bool(x)))(x).tolist() == [1.0, 1.0]


def test_generators_are_refused():
    def f(x):
        yield x
    with pytest.raises(ConversionError, match="generator"):
        paddle.jit.to_static(f)(tensor(1))


def test_fall_back():
    def f(x):
        return float(sum(x.tolist()))
    with pytest.raises(RuntimeError):
        paddle.jit.to_static(f)(tensor(2))
    lenient = paddle.jit.to_static(f, full_graph=False)
    with pytest.warns(UserWarning, match="runs as plain Python"):
        assert isinstance(lenient(tensor(2)), float)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lenient(tensor(2))


def test_a_list_in_a_layer_is_refused():
    class Keeps(nn.Layer):
        def __init__(self):
            super().__init__()
            self.seen = []

        def forward(self, x):
            self.seen.append(x * 2)
            return x
    net = paddle.jit.to_static(Keeps())
    with pytest.raises(ConversionError, match="Keeps.seen"):
        net(tensor(2))
    assert net.seen == []


def test_static_cond_inside():
    @paddle.jit.to_static
    def f(x):
        return paddle.static.nn.cond(x.sum() > 0, lambda: x + 1, lambda: x - 1)
    for seed in range(4):
        x = tensor(3, seed=seed)
        assert np.array_equal(f(x).numpy(), (x + 1 if x.sum() > 0 else x - 1).numpy())


def test_hooks_run():
    net = nn.Linear(2, 2)
    seen = []
    net.register_forward_pre_hook(lambda layer, inputs: seen.append("before") or (inputs[0] * 2,))
    net.register_forward_post_hook(lambda layer, inputs, out: out + 1)
    x = tensor(1, 2)
    expected = net(x).numpy()
    assert np.array_equal(paddle.jit.to_static(net)(x).numpy(), expected)


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


def test_gradients_inside():
    @paddle.jit.to_static
    def slope(x):
        y = (x * x * x).sum()
        d, = paddle.grad(y, x, create_graph=True)
        return (d * d).sum()
    x = tensor(3)
    x.stop_gradient = False
    out = slope(x)
    out.backward()
    assert np.allclose(float(out), (9 * x.numpy() ** 4).sum(), rtol=1e-5)
    assert np.allclose(x.grad.numpy(), 36 * x.numpy() ** 3, rtol=1e-5)


def test_prints_in_each_run(capsys):
    @paddle.jit.to_static
    def f(x):
        print("sum:", x.sum(), end="!\n")
        print("captured")
        return x * 2
    for n in (1, 2):
        f(paddle.full([2], float(n)))
        said = capsys.readouterr().out
        assert "sum: Tensor(shape=[], dtype=float32" in said and f"{2.0 * n:g}" in said and said.endswith("!\n")
        assert ("captured" in said) == (n == 1)


def test_asserts_in_each_run():
    @paddle.jit.to_static
    def f(x):
        assert x.sum() > 0, "must be positive"
        return x * 2
    assert f(paddle.ones([2])).tolist() == [2, 2]
    with pytest.raises(AssertionError, match="must be positive"):
        f(-paddle.ones([2]))
    assert f(paddle.ones([2])).tolist() == [2, 2]

    @paddle.jit.to_static
    def g(x):
        if x.sum() > 0:
            assert x.max() > 1
        return x
    with pytest.raises(ConversionError, match="assert on a tensor inside a branch"):
        g(paddle.ones([2]))


def test_without_source():
    space = {}
    exec("def f(x):\n    return x + 1\ndef g(x):\n    return x if x.sum() > 0 else -x\n", space)
    with pytest.warns(UserWarning, match="captured as it is"):
        assert paddle.jit.to_static(space["f"])(paddle.ones([1])).tolist() == [2]
    with pytest.warns(UserWarning), pytest.raises(RuntimeError):
        paddle.jit.to_static(space["g"])(paddle.ones([1]))


def test_two_lambdas_on_a_line():
    make = paddle.jit.to_static
    f, g = make(lambda x: x if x.sum() > 0 else -x), make(lambda x: x * 2 if x.sum() > 0 else x)
    assert f(-paddle.ones([1])).tolist() == [1] and g(paddle.ones([1])).tolist() == [2]


def test_in_a_hapi_model():
    net = paddle.jit.to_static(nn.Linear(4, 2))
    model = paddle.Model(net, inputs=[InputSpec([None, 4], name="x")], labels=[InputSpec([None], "int64", "label")])
    model.prepare(paddle.optimizer.SGD(0.1, parameters=net.parameters()), nn.CrossEntropyLoss())
    first, *_ = [model.train_batch([np.ones([3, 4], "float32")], [np.array([0, 1, 1])])[0] for _ in range(5)]
    last = model.eval_batch([np.ones([3, 4], "float32")], [np.array([0, 1, 1])])[0]
    assert float(np.ravel(last)[0]) < float(np.ravel(first)[0])


def test_static_control_flow_inside():
    @paddle.jit.to_static
    def f(x):
        n, x = paddle.static.nn.while_loop(lambda n, x: n < 3, lambda n, x: [n + 1, x * 2],
                                           [paddle.zeros([], "int64"), x])
        y = paddle.static.nn.case([(x.sum() > 10, lambda: x + 1)], default=lambda: x - 1)
        return paddle.static.nn.switch_case(n, {3: lambda: y * 2, 4: lambda: y * 3})
    assert f(paddle.full([2], 1.0)).tolist() == [18, 18]
    assert f(paddle.full([2], 0.5)).tolist() == [6, 6]


def test_layers_are_freed():
    def use():
        net = paddle.jit.to_static(make())
        net(tensor(3, 4)).sum().backward()
        return weakref.ref(net), weakref.ref(net.forward)
    one, other = use()
    gc.collect()
    assert one() is None and other() is None


def test_text_of_a_variable_warns():
    @paddle.jit.to_static
    def described(x):
        return x, f"{x.sum()}"
    with pytest.warns(UserWarning, match="the text of a tensor is that of the program's variable"):
        described(paddle.ones([2]))


class Scored(paddle.nn.Layer):
    """Normalized, with dropout; the score's gradient is wanted again."""

    def __init__(self):
        super().__init__()
        self.first, self.second = paddle.nn.Linear(4, 5), paddle.nn.Linear(5, 1)
        self.norm = paddle.nn.BatchNorm1D(5)

    def forward(self, x):
        hidden = paddle.nn.functional.dropout(paddle.tanh(self.norm(self.first(x))), 0.3)
        return self.second(hidden) * hidden.sum()


def gradient_penalty(static):
    paddle.seed(3)
    layer = Scored()
    call = paddle.jit.to_static(layer) if static else layer
    x = paddle.to_tensor(np.random.RandomState(0).randn(6, 4).astype("float32"), stop_gradient=False)
    found = []
    for _ in range(2):
        score = call(x)
        dx, = paddle.grad([score.sum()], [x], create_graph=True)
        ((score ** 2).mean() + ((dx ** 2).sum() - 1) ** 2).backward()
        gradients = [dx, x.grad, *(p.grad for p in layer.parameters() if p.grad is not None), *layer.buffers()]
        found += [one.numpy() for one in gradients]
        x.clear_grad()
        layer.clear_gradients()
    return found


def test_gradient_of_a_gradient():
    eager, static = gradient_penalty(False), gradient_penalty(True)
    assert len(eager) == len(static)
    largest = max(np.abs(one).max() for one in eager)  # a bias before the norm has a gradient of rounding alone
    for one, other in zip(eager, static):
        assert np.abs(one - other).max() <= 1e-5 * largest


class Product(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.w = self.create_parameter([1], default_initializer=paddle.nn.initializer.Constant(2.0))

    def forward(self, x):
        return paddle.sin(x * self.w) * x


def test_third_gradient_where_inputs_depend_on_parameters():
    found = []
    for static in (False, True):
        layer = Product()
        call = paddle.jit.to_static(layer) if static else layer
        z = paddle.to_tensor([0.7], stop_gradient=False)
        x = z * layer.w
        y = call(x) + call(x * z)
        first = paddle.grad([y], [z, layer.w], create_graph=True)
        second = paddle.grad([first[0] + first[1]], [z, layer.w], create_graph=True)
        third = paddle.grad([second[0] * second[1]], [z, layer.w])
        found.append([float(one) for one in (*first, *second, *third)])
    assert np.allclose(found[0], found[1], rtol=1e-6)


def test_gradient_of_a_gradient_is_refused():
    @paddle.jit.to_static
    def branches(x):
        if x.sum() > 0:
            x = x * x
        return x
    x = paddle.ones([2])
    x.stop_gradient = False
    with pytest.raises(NotImplementedError, match="branches or loops has no gradient of its gradient"):
        paddle.grad([branches(x).sum()], [x], create_graph=True)

    call = paddle.jit.to_static(Product())
    h = x * 1
    y = call(h)
    h.add_(paddle.ones([2]))
    with pytest.raises(RuntimeError, match="an input was changed in place"):
        paddle.grad([y.sum()], [x], create_graph=True)


class Normed(paddle.nn.Layer):
    """Batch norm that trains inside a loop, and in a branch inside it."""

    def __init__(self):
        super().__init__()
        self.norm, self.linear = paddle.nn.BatchNorm1D(4), paddle.nn.Linear(4, 4)

    def forward(self, x, turns):
        i = paddle.zeros([], "int64")
        while i < turns:
            x = self.linear(x)
            if i > 0:
                x = self.norm(x)
            i = i + 1
        return x


class NormedInBranches(Normed):
    """Batch norm that trains in a branch, and again in one inside it; the other branch leaves it alone."""

    def forward(self, x, turns):
        y = self.linear(x)
        if x.mean() < 0.5:
            y = self.norm(y * x)
            if y.max() > 1.5:
                y = y + self.norm(y) * 2
        return y


def trained_statistics(static, kind=Normed):
    paddle.seed(1)
    layer = kind()
    call = paddle.jit.to_static(layer) if static else layer
    found = []
    for seed in range(5):
        x = paddle.to_tensor(np.random.RandomState(seed).rand(6, 4).astype("float32"))
        (call(x, paddle.to_tensor(3)) ** 2).sum().backward()
        found += [one.numpy() for one in (layer.norm._mean, layer.norm._variance)]
        found += [np.zeros(p.shape) if p.grad is None else p.grad.numpy() for p in layer.parameters()]
        layer.clear_gradients()
    return found


@pytest.mark.parametrize("kind", [Normed, NormedInBranches])
def test_statistics_move_in_control_flow(kind):
    eager, static = trained_statistics(False, kind), trained_statistics(True, kind)
    assert len(eager) == len(static) and all(np.array_equal(a, b) for a, b in zip(eager, static))


class KeepsWhatCame(nn.Layer):
    """As detection models do: forward leaves its feeds, and what it found, in attributes."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(3, 2)
        self.inputs, self.notes, self.steps = {}, {"kind": "mean"}, None

    def forward(self, inputs):
        self.inputs = inputs
        self.found = [self.fc(inputs["x"])]
        self.steps = (inputs["x"] * 2, {"sum": self.inputs["x"].sum(), "kind": "mean"})
        self.notes["scaled"] = self.found[-1] * self.inputs["scale"]
        return self.notes["scaled"] + 1


def kept(static):
    net = KeepsWhatCame()
    net.fc.weight.set_value(np.linspace(-1, 1, 6, dtype="float32").reshape(3, 2))
    run = paddle.jit.to_static(net) if static else net
    notes, seen = net.notes, []
    for i in range(2):
        x = paddle.full([2, 3], 1.0 + i)
        result = run({"x": x, "scale": paddle.to_tensor([2.0 + i])})
        (result.sum() + net.found[0].sum()).backward()
        seen += [result.detach(), net.inputs["x"], net.inputs["scale"], *net.found, net.steps[0], net.steps[1]["sum"],
                 net.notes["scaled"]]
        assert net.notes is notes and net.steps[1]["kind"] == net.notes["kind"] == "mean"
    return [one.numpy() for one in seen] + [net.fc.weight.grad.numpy()]


def test_containers_of_tensors_stay_in_attributes(tmp_path):
    eager, static = kept(False), kept(True)
    assert len(eager) == len(static) and all(map(np.array_equal, static, eager))
    net = KeepsWhatCame()
    spec = paddle.static.InputSpec
    net.forward = paddle.jit.to_static(net.forward, input_spec=[{"x": spec([None, 3]), "scale": spec([1])}])
    paddle.jit.save(net, str(tmp_path / "m"))
    assert net.inputs == {} and net.notes == {"kind": "mean"} and net.steps is None and not hasattr(net, "found")
    x, scale = paddle.ones([4, 3]), paddle.to_tensor([2.0])
    loaded = paddle.jit.load(str(tmp_path / "m"))(scale, x)
    assert np.array_equal(loaded.numpy(), (net.fc(x) * scale + 1).numpy())


def test_values_set_inside_are_written_by_every_call():
    """Buffers that a hook sets to what it computed (spectral_norm's vectors), as eagerly."""
    def outputs(static):
        paddle.seed(3)
        net = nn.utils.spectral_norm(nn.Linear(4, 3))
        run = paddle.jit.to_static(lambda x: net(x)) if static else net
        seen = []
        for i in range(3):
            y = run(tensor(2, 4, seed=i))
            y.sum().backward()
            seen += [y.detach(), net.weight_u, net.weight_v]
        return [one.numpy() for one in [*seen, net.weight_orig.grad]]
    for have, want in zip(outputs(True), outputs(False)):
        np.testing.assert_allclose(have, want, rtol=1e-5, atol=1e-6)
