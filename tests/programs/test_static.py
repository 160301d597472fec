"""Static mode on Proa alone: what programs, blocks, operators, scopes and executors say and refuse."""
import sys

import numpy as np
import pytest

import proa as paddle

static = paddle.static


@pytest.fixture
def programs():
    """A fresh main and startup program, scope and static mode."""
    main, startup = static.Program(), static.Program()
    paddle.enable_static()
    try:
        with static.scope_guard(static.Scope()), static.program_guard(main, startup), \
                paddle.utils.unique_name.guard():
            yield main, startup
    finally:
        paddle.disable_static()


def test_modes():
    assert paddle.in_dynamic_mode()
    paddle.enable_static()
    try:
        assert not paddle.in_dynamic_mode()
        assert paddle.ones([2]).is_symbolic
    finally:
        paddle.disable_static()
    assert paddle.in_dynamic_mode() and paddle.ones([2]).tolist() == [1.0, 1.0]


def test_program_in_words(programs):
    main, startup = programs
    x = static.data("x", [None, 3])
    y = static.nn.fc(x, 2, activation="relu")
    block = main.global_block()
    assert [op.type for op in block.ops] == ["matmul_v2", "elementwise_add", "relu"]
    op = block.ops[0]
    assert op.input_names == ["X", "Y"] and op.input("X") == ["x"] and op.input("Y") == ["fc_0.w_0"]
    assert op.output_arg_names == block.ops[1].input("X") and op.attr("trans_x") is False
    assert y.name == block.ops[2].output("Out")[0] and y.shape == (-1, 2)
    assert str(op).startswith("{Out=[") and "matmul_v2(inputs={X=['x'], Y=['fc_0.w_0']}" in str(op)
    assert "persist trainable param fc_0.w_0 : LOD_TENSOR.shape(3, 2).dtype(float32).stop_gradient(False)" in str(main)
    assert str(x) == "var x : LOD_TENSOR.shape(-1, 3).dtype(float32).stop_gradient(True)"
    assert [p.name for p in main.all_parameters()] == ["fc_0.w_0", "fc_0.b_0"]
    assert {v.name for v in main.list_vars() if v.persistable} == {"fc_0.w_0", "fc_0.b_0"}
    assert main.num_blocks == 1 and block.has_var("x") and not block.has_var("z")
    assert block.var("fc_0.w_0") is main.all_parameters()[0]
    assert isinstance(x, static.Variable) and not isinstance(paddle.to_tensor([1.0]), static.Variable)
    assert len(startup.global_block().ops) >= 2
    with pytest.raises(ValueError, match="var z not in this block"):
        block.var("z")
    with pytest.raises(ValueError, match="no attribute"):
        op.attr("nothing")


def test_clone_for_test(programs):
    main, startup = programs
    x = static.data("x", [4, 6])
    y = paddle.nn.functional.dropout(static.nn.fc(x, 6), 0.5)
    loss = y.mean()
    before = main.clone(for_test=True)
    paddle.optimizer.SGD(0.1).minimize(loss)
    after = main.clone(for_test=True)
    assert [op.type for op in before.global_block().ops] == [op.type for op in after.global_block().ops]
    assert "sgd" in [op.type for op in main.global_block().ops]
    assert [p.name for p in after.all_parameters()] == [p.name for p in main.all_parameters()]
    exe = static.Executor()
    exe.run(startup)
    a = exe.run(after, {"x": np.ones((4, 6), "float32")}, [y.name])[0]
    b = exe.run(after, {"x": np.ones((4, 6), "float32")}, [y.name])[0]
    assert np.array_equal(a, b) and (a != 0).all()


def test_roles_and_gradients(programs):
    main, _ = programs
    x = static.data("x", [2, 3])
    loss = (static.nn.fc(x, 1) ** 2).mean()
    pairs = static.append_backward(loss)
    assert [(p.name, g.name) for p, g in pairs] == [("fc_0.w_0", "fc_0.w_0@GRAD"), ("fc_0.b_0", "fc_0.b_0@GRAD")]
    roles = [op._role for op in main.global_block().ops]
    assert roles == sorted(roles) and set(roles) == {0, 1}
    with pytest.raises(ValueError, match="one element"):
        static.append_backward(static.nn.fc(x, 2))


def test_detached(programs):
    """detach stops gradients in a program, too: a copy, since Paddle's executor may write over shared memory."""
    main, _ = programs
    x = static.data("x", [2])
    x.stop_gradient = False
    y = (x * 2.0).detach()
    g, = static.gradients([y * x], [x])
    assert "assign" in [op.type for op in main.global_block().ops]
    assert static.Executor().run(main, {"x": np.array([1, 3], "float32")}, [g])[0].tolist() == [2, 6]


def test_executor_refuses(programs):
    main, startup = programs
    x = static.data("x", [None, 3])
    y = static.nn.fc(x, 2)
    exe = static.Executor()
    good = np.ones((2, 3), "float32")
    with pytest.raises(RuntimeError, match="run the startup program"):
        exe.run(main, {"x": good}, [y])
    exe.run(startup)
    with pytest.raises(ValueError, match="should have shape"):
        exe.run(main, {"x": np.ones((2, 4), "float32")}, [y])
    with pytest.raises(ValueError, match="data type of fed variable"):
        exe.run(main, {"x": good.astype("float64")}, [y])
    with pytest.raises(ValueError, match="no variable 'z'"):
        exe.run(main, {"x": good}, ["z"])
    with pytest.raises(TypeError, match="program must be"):
        exe.run("main", {"x": good}, [y])
    with pytest.raises(Exception, match="x"):
        exe.run(main, {}, [y])
    with pytest.warns(UserWarning, match="not found in program"):
        exe.run(main, {"x": good, "w": good}, [y])
    assert exe.run(main, {"x": [[1.0, 2.0, 3.0]]}, [y])[0].shape == (1, 2)
    lod = exe.run(main, {"x": good}, [y], return_numpy=False)[0]
    assert lod.shape() == [2, 2] and np.array(lod).dtype == "float32"
    exe.close()
    with pytest.raises(RuntimeError, match="closed"):
        exe.run(main, {"x": good}, [y])


def test_scopes(programs):
    main, startup = programs
    w = static.create_parameter([2, 2], "float32", default_initializer=paddle.nn.initializer.Constant(3.0))
    exe = static.Executor()
    exe.run(startup)
    other = static.Scope()
    exe.run(startup, scope=other)
    static.global_scope().find_var(w.name).get_tensor().set(np.eye(2, dtype="float32"), paddle.CPUPlace())
    assert exe.run(main, fetch_list=[w])[0].tolist() == [[1, 0], [0, 1]]
    assert exe.run(main, fetch_list=[w], scope=other)[0].tolist() == [[3, 3], [3, 3]]
    w.set_value(np.full((2, 2), 5, "float32"))
    assert np.array(w.get_value())[0, 0] == 5
    child = other.new_scope()
    assert child.find_var(w.name) is other.find_var(w.name) and child.find_var("nothing") is None
    with pytest.raises(ValueError, match="shape"):
        w.set_value(np.ones(3, "float32"))


def test_layers_and_state(programs):
    main, startup = programs
    x = static.data("x", [None, 4])
    net = paddle.nn.Sequential(paddle.nn.Linear(4, 3), paddle.nn.BatchNorm1D(3))
    y = net(x)
    exe = static.Executor()
    exe.run(startup)
    net[0].weight.set_value(np.zeros((4, 3), "float32"))
    net.set_state_dict({k: np.full(v.shape, 2.0, "float32") for k, v in net.state_dict().items()})
    out = exe.run(main, {"x": np.ones((5, 4), "float32")}, [y, net[1]._mean])
    np.testing.assert_allclose(out[0], np.full((5, 3), 2.0), atol=1e-4)
    np.testing.assert_allclose(out[1], np.full(3, 2.0 * 0.9 + 10.0 * 0.1), rtol=1e-5)
    state = main.state_dict()
    assert set(state) == {p.name for p in main.all_parameters()}
    main.set_state_dict({k: np.zeros_like(np.array(v)) for k, v in state.items()})
    assert not np.array(static.global_scope().find_var("linear_0.w_0").get_tensor()).any()


def test_a_repeated_run_sees_what_has_changed(programs):
    """Executor.run remembers its last call; whatever a plan depends on may change between two."""
    main, startup = programs
    x = static.data("x", [None, 2])
    w = static.create_parameter([2], "float32", default_initializer=paddle.nn.initializer.Constant(3.0))
    y, z = x * w, x + w
    exe, ones, fetches = static.Executor(), np.ones((1, 2), "float32"), [y]
    exe.run(startup)

    def run(value=ones, **options):
        return exe.run(main, {"x": value}, fetches, **options)[0]
    assert run().tolist() == run().tolist() == [[3, 3]]
    assert len(exe._plans) == 1  # the startup program's is gone
    assert run(np.ones((3, 2), "float32")).shape == (3, 2) and run([[2.0, 2.0]]).tolist() == [[6, 6]]
    fetches[0] = z
    assert run().tolist() == [[4, 4]]
    static.global_scope().find_var(w.name).get_tensor().set(np.zeros(2, "float32"))
    assert run().tolist() == [[1, 1]]
    other = static.Scope()
    with static.scope_guard(other):
        exe.run(startup)
        assert run().tolist() == [[4, 4]]
    assert run().tolist() == run(scope=static.global_scope()).tolist() == [[1, 1]] and run(scope=other).tolist() == [[4, 4]]
    fetches[:] = [y + 5.0]
    assert run().tolist() == [[5, 5]]
    fetches.append(z)
    assert len(exe.run(main, {"x": ones}, fetches)) == 2
    kept = exe.run(main, {"x": ones}, fetches, return_numpy=False)[1]
    assert np.array(kept).tolist() == [[1, 1]]
    for bad in (np.ones((1, 3), "float32"), np.ones((1, 2), "int64")):
        with pytest.raises(ValueError, match="fed variable 'x'"):
            run(bad)
    assert run().tolist() == [[5, 5]]


def test_scheduler_and_accumulators(programs):
    main, startup = programs
    x = static.data("x", [2, 2])
    w = static.create_parameter([2, 1], "float32", default_initializer=paddle.nn.initializer.Constant(0.0))
    loss = paddle.matmul(x, w).sum()
    rate = paddle.optimizer.lr.PiecewiseDecay([1, 2], [1.0, 0.5, 0.25])
    opt = paddle.optimizer.SGD(rate)
    _, pairs = opt.minimize(loss)
    exe = static.Executor()
    exe.run(startup)
    ones, seen = np.ones((2, 2), "float32"), []
    for _ in range(3):
        seen.append(exe.run(main, {"x": ones}, [w])[0][0, 0])
        rate.step()
    assert seen == [-2.0, -3.0, -3.5]
    assert [p.name for p, _ in pairs] == [w.name]
    adam = paddle.optimizer.Adam(0.1)
    with static.program_guard(static.Program(), static.Program()):
        v = static.create_parameter([2], "float32")
        adam.minimize((v * v).sum())
        names = set(adam.state_dict())
    assert {n.rpartition("_0")[0].replace(v.name + "_", "") for n in names} == \
        {"moment1", "moment2", "beta1_pow_acc", "beta2_pow_acc"}


def test_an_optimizer_of_programs_that_are_freed(programs):
    opt, exe = paddle.optimizer.SGD(0.5), static.Executor()
    for _ in range(40):  # many of these programs lie where a freed one lay
        main, startup = static.Program(), static.Program()
        with static.program_guard(main, startup), static.scope_guard(static.Scope()):
            w = static.create_parameter([2], "float32", default_initializer=paddle.nn.initializer.Constant(1.0))
            opt.minimize((w * w).sum())
            exe.run(startup)
            assert exe.run(main, fetch_list=[w])[0].tolist() == [0, 0]
        del main, startup, w


@pytest.mark.parametrize("avg", [True, False])
def test_gradient_merge_optimizer(programs, avg):
    main, startup = programs
    x = static.data("x", [2])
    w = static.create_parameter([2], "float32", default_initializer=paddle.nn.initializer.Constant(1.0))
    from proa.incubate.optimizer import GradientMergeOptimizer
    GradientMergeOptimizer(paddle.optimizer.SGD(0.5), k_steps=2, avg=avg).minimize((w * x).sum())
    exe, seen = static.Executor(), []
    exe.run(startup)
    for value in (1.0, 3.0, 2.0, 0.0):
        seen.append(exe.run(main, {"x": np.full(2, value, "float32")}, [w])[0][0])
    assert seen == ([1, 0, 0, -0.5] if avg else [1, -1, -1, -2])
    with pytest.raises(AssertionError, match="k_steps must be a positive int"):
        GradientMergeOptimizer(paddle.optimizer.SGD(0.5), k_steps=0)


def test_seed_is_the_programs_own(programs):
    main, startup = programs
    main.random_seed = 5
    x = paddle.uniform([3])
    exe = static.Executor()
    paddle.seed(1)
    a, b = exe.run(main, fetch_list=[x])[0], exe.run(main, fetch_list=[x])[0]
    again = main.clone()
    again.random_seed = 5
    paddle.seed(2)
    c = exe.run(again, fetch_list=[x.name])[0]
    assert np.array_equal(a, c) and not np.array_equal(a, b)


def test_compiled_and_strategies(programs):
    main, startup = programs
    x = static.data("x", [None, 3])
    y = paddle.tanh(static.nn.fc(x, 2)) * 2.0 + 1.0
    exe = static.Executor()
    exe.run(startup)
    strategy = static.BuildStrategy()
    strategy.fuse_elewise_add_act_ops = True
    with pytest.raises(AttributeError, match="no switch"):
        strategy.nothing = 1
    compiled = static.CompiledProgram(main, build_strategy=strategy)
    feed = {"x": np.ones((2, 3), "float32")}
    np.testing.assert_allclose(exe.run(compiled, feed, [y])[0], exe.run(main, feed, [y])[0], rtol=1e-6)
    parallel = static.ParallelExecutor(main_program=main)
    np.testing.assert_allclose(parallel.run([y], feed)[0], exe.run(main, feed, [y])[0], rtol=1e-6)


def test_control_flow_refuses(programs):
    x = static.data("x", [1])
    with pytest.raises(TypeError, match="bool"):
        static.nn.cond(x, lambda: x, lambda: x)
    with pytest.raises(ValueError):
        static.nn.cond(x > 0, lambda: x, lambda: [x, x])
    with pytest.raises(ValueError, match="as many values"):
        static.nn.while_loop(lambda i, j: i < 3, lambda i, j: [i + 1], [x, x])
    with pytest.raises(TypeError, match="callable"):
        static.nn.case([(x > 0, 3)])


def test_layer_inside_a_branch(programs):
    """Parameters that a branch makes belong to the whole program, and the branch goes on where it was."""
    main, startup = programs
    x = static.data("x", [2, 3])
    y = static.nn.cond(x.sum() > 0, lambda: static.nn.fc(x, 2, weight_attr=paddle.ParamAttr(
        initializer=paddle.nn.initializer.Constant(1.0))) * 2.0, lambda: paddle.zeros([2, 2]))
    exe = static.Executor()
    exe.run(startup)
    assert exe.run(main, {"x": np.ones((2, 3), "float32")}, [y])[0].tolist() == [[6, 6], [6, 6]]
    assert exe.run(main, {"x": -np.ones((2, 3), "float32")}, [y])[0].tolist() == [[0, 0], [0, 0]]


def test_pruned_run(programs):
    main, startup = programs
    x, z = static.data("x", [2]), static.data("z", [2])
    a = x * 2.0
    (a + z).sum()
    exe = static.Executor()
    assert exe.run(main, {"x": np.ones(2, "float32")}, [a], use_prune=True)[0].tolist() == [2, 2]


def test_weight_norm(programs):
    main, startup = programs
    x = static.data("x", [2, 3])
    y = static.nn.fc(x, 4, weight_attr=static.WeightNormParamAttr(dim=1, name="wn"), bias_attr=False)
    paddle.optimizer.SGD(0.1).minimize(y.sum())
    exe = static.Executor()
    exe.run(startup)
    v, g = (np.array(static.global_scope().find_var(n).get_tensor()) for n in ("wn_v", "wn_g"))
    np.testing.assert_allclose(np.linalg.norm(v, axis=0), g.ravel(), rtol=1e-5)
    out = exe.run(main, {"x": np.ones((2, 3), "float32")}, [y])[0]
    np.testing.assert_allclose(out, np.ones((2, 3)) @ v, rtol=1e-5)


def test_auc(programs):
    from sklearn.metrics import roc_auc_score
    main, startup = programs
    p, label = static.data("p", [None, 2]), static.data("label", [None, 1], "int64")
    whole, batch, _ = static.auc(p, label)
    exe = static.Executor()
    exe.run(startup)
    rng = np.random.RandomState(0)
    scores, labels = rng.uniform(size=(2, 40)).astype("float32"), rng.randint(0, 2, (2, 40, 1))
    for i in range(2):
        feed = {"p": np.stack([1 - scores[i], scores[i]], 1), "label": labels[i].astype("int64")}
        got = exe.run(main, feed, [whole, batch])
        assert abs(got[1] - roc_auc_score(labels[i].ravel(), scores[i])) < 2e-3
    assert abs(got[0] - roc_auc_score(labels.ravel(), scores.ravel())) < 2e-3


def test_feeds_that_nothing_needs(programs):
    x, y = static.data("x", [2, 3]), static.data("y", [2, 3])
    z = x * 2.0
    assert static.normalize_program(programs[0], [x], [z]).global_block().vars.keys() == {"x", z.name}
    assert static.normalize_program(programs[0], [x], [x]) is not None  # fetched as it is fed
    for fetched, unused in ((z, "y"), ([z, x], "y"), (y, "x")):
        with pytest.raises(ValueError, match=f"fetch_vars do not depend on {unused}"):
            static.normalize_program(programs[0], [x, y], fetched)
    with pytest.raises(ValueError, match="do not depend on y"):
        static.serialize_persistables([x, y], [z], static.Executor())


def lstm(nn):
    return nn.LSTM(4, 6, direction="bidirect"), [5, 4], lambda out: out[0]


def encoder(nn):
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0), 2), [5, 8], lambda out: out


def resnet(nn):
    return paddle.vision.models.resnet18(num_classes=10), [3, 32, 32], lambda out: out


@pytest.mark.parametrize("make", [lstm, encoder, resnet])
def test_networks_train_as_eagerly(programs, make):
    """Three steps with a batch that the program does not know: the losses of eager training."""
    main, startup = programs
    paddle.disable_static()
    net, shape, pick = make(paddle.nn)
    state = {k: v.numpy() for k, v in net.state_dict().items()}
    rng = np.random.RandomState(0)
    batches = [rng.uniform(-1, 1, (3, *shape)).astype("float32") for _ in range(3)]
    opt, want = paddle.optimizer.Momentum(0.01, parameters=net.parameters()), []
    for x in batches:
        loss = (pick(net(paddle.to_tensor(x))) ** 2).mean()
        loss.backward()
        opt.step()
        opt.clear_grad()
        want.append(float(loss))
    paddle.enable_static()
    with static.program_guard(main, startup):
        x = static.data("x", [None, *shape])
        net, _, pick = make(paddle.nn)
        loss = (pick(net(x)) ** 2).mean()
        paddle.optimizer.Momentum(0.01).minimize(loss)
        exe = static.Executor()
        exe.run(startup)
        net.set_state_dict(state)
        got = [float(exe.run(main, {"x": x}, [loss])[0]) for x in batches]
    np.testing.assert_allclose(got, want, rtol=1e-5)


def test_assignment_to_parts(programs):
    x = static.data("x", [None, 4])
    x.stop_gradient = False
    y, z = x * 1.0, x * 2.0
    y[x > 0] = 0.5
    z[:, 1:3] = 7.0
    g, = static.gradients([(y * y).sum() + z.sum()], [x])
    values = np.arange(-4, 4, dtype="float32").reshape(2, 4)
    got = static.Executor().run(feed={"x": values}, fetch_list=[y, z, g, x[x > 0]])
    want = np.where(values > 0, 0.5, values)
    assert np.array_equal(got[0], want) and got[1][:, 1:3].tolist() == [[7, 7], [7, 7]]
    assert got[2][0].tolist() == [-6, -6, -4, 0] and got[3].tolist() == [1, 2, 3]


def test_multi_box_head(programs):
    main, startup = programs
    image = static.data("image", [-1, 3, 32, 32])
    maps = [static.data("fine", [-1, 6, 4, 4]), static.data("coarse", [-1, 4, 2, 2])]
    lows, highs, ratios = [[6.0, 8.0], [16.0]], [[8.0, 12.0], [24.0]], [[2.0], [2.0, 3.0]]
    heads = static.nn.multi_box_head(maps, image, 32, 5, ratios, min_sizes=lows, max_sizes=highs, kernel_size=3, pad=1)
    exe = static.Executor()
    exe.run(startup)
    rng = np.random.RandomState(0)
    feed = {"image": np.zeros((2, 3, 32, 32), "float32"), "fine": rng.randn(2, 6, 4, 4).astype("float32"),
            "coarse": rng.randn(2, 4, 2, 2).astype("float32")}
    places, scores, boxes, spread = exe.run(feed=feed, fetch_list=list(heads))
    weights = [np.array(static.global_scope().find_var(p.name).get_tensor()) for p in main.all_parameters()]
    paddle.disable_static()
    want = {4: [], 5: []}
    priors = []
    for i, name in enumerate(("fine", "coarse")):
        x = paddle.to_tensor(feed[name])
        priors.append(paddle.vision.ops.prior_box(x, paddle.to_tensor(feed["image"]), lows[i], highs[i], ratios[i], flip=True))
        for k, width in enumerate((4, 5)):
            weight, bias = (paddle.to_tensor(w) for w in weights[4 * i + 2 * k:4 * i + 2 * k + 2])
            y = paddle.nn.functional.conv2d(x, weight, bias, padding=1)
            want[width].append(y.numpy().transpose(0, 2, 3, 1).reshape(2, -1, width))
    assert places.shape == (2, 16 * 8 + 4 * 6, 4)  # two sizes with a larger square and two ratios; one with four
    np.testing.assert_allclose(places, np.concatenate(want[4], 1), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(scores, np.concatenate(want[5], 1), rtol=1e-5, atol=1e-6)
    for got, k in ((boxes, 0), (spread, 1)):
        np.testing.assert_array_equal(got, np.concatenate([p[k].numpy().reshape(-1, 4) for p in priors]))
    with pytest.raises(ValueError, match="entry for each"):
        static.nn.multi_box_head(maps, image, 32, 5, ratios[:1], min_sizes=lows, max_sizes=highs)


def test_no_gradient_for_data(programs):
    x = static.data("x", [None, 3])
    w = static.create_parameter([3, 2], "float32")
    loss = paddle.mean(paddle.matmul(x, w))
    assert static.gradients(loss, [x, w])[0] is None
    x.stop_gradient = False
    assert static.gradients(loss, [x, w])[0].shape == (-1, 3)


def test_fed_arrays_stay_the_callers(programs):
    """They are read where they lie: nothing writes to them, what is fetched is no view of them, and no run keeps one."""
    main, _ = programs
    x = static.data("x", [None, 3])
    y, z = x.reshape([-1]), x * 1.0
    z.add_(paddle.full([1], 1.0))
    exe, row = static.Executor(), np.arange(6, dtype="float32").reshape(2, 3)

    def unaligned():
        array = np.zeros(25, "uint8")[1:].view("float32").reshape(2, 3)
        array[:] = row
        return array

    def locked():
        array = row.copy()
        array.flags.writeable = False
        return array

    for fed in (row.copy(), unaligned(), np.repeat(row, 2, axis=1)[:, ::2], row[::-1].copy()[::-1], locked(), row.tolist()):
        fetched = exe.run(main, feed={"x": fed}, fetch_list=[x, y, z])
        np.testing.assert_array_equal(np.array(fed), row)
        if isinstance(fed, np.ndarray) and fed.flags.writeable:
            fed[:] = 7
        for value, expected in zip(fetched, (row, row.reshape(-1), row + 1)):
            np.testing.assert_array_equal(value, expected)
    array = np.zeros((4, 3), "float32")
    held = sys.getrefcount(array)
    exe.run(main, feed={"x": array}, fetch_list=[z])
    assert sys.getrefcount(array) == held
    for wrong in (array.astype("float64"), array[0], array[:, :2]):
        with pytest.raises(ValueError, match="'x'"):
            exe.run(main, feed={"x": wrong}, fetch_list=[z])
