"""Static mode: programs built, run, differentiated, trained, saved and loaded; what they return must agree."""
import os
import tempfile

import numpy as np
import paddle
import paddle.static as static
from parity import array, case


def built(build, feed=None, steps=1, **run):
    """The results of build() (names are not compared), fetched after startup; constants come from initializers."""
    paddle.enable_static()
    try:
        main, startup = static.Program(), static.Program()
        with static.scope_guard(static.Scope()), static.program_guard(main, startup), paddle.utils.unique_name.guard():
            fetch = build()
            exe = static.Executor(paddle.CPUPlace())
            exe.run(startup)
            return [exe.run(main, feed=feed, fetch_list=fetch, **run) for _ in range(steps)]
    finally:
        paddle.disable_static()


def given(*shape, scale=1.0):
    """A parameter attribute that gives the same values on both sides."""
    values = array(*shape, low=-1, high=1).astype("float32") * scale
    return paddle.ParamAttr(initializer=paddle.nn.initializer.Assign(values))


def f32(*shape):
    return array(*shape).astype("float32")


@case("paddle.enable_static", "paddle.disable_static", "paddle.static.data", "paddle.static.Executor",
      "paddle.static.Executor.run", "paddle.static.Program", "paddle.static.program_guard", "paddle.static.scope_guard",
      "paddle.static.Scope", "paddle.static.nn.fc", "paddle.static")
def fully_connected():
    w, v = given(12, 5), given(4, 3)

    def build():
        x = static.data("x", [None, 3, 4])
        return [static.nn.fc(x, 5, weight_attr=w, activation="relu"),
                static.nn.fc(x, 3, num_flatten_dims=2, weight_attr=v)]
    return built(build, {"x": f32(2, 3, 4)})


@case("paddle.static.append_backward", "paddle.static.gradients", "paddle.static.create_parameter",
      "paddle.static.nn.create_parameter", "paddle.static.Variable.stop_gradient")
def derivatives():
    w = given(3, 2)

    def build():
        x = static.data("x", [4, 3])
        x.stop_gradient = False
        weight = static.create_parameter([3, 2], "float32", attr=w)
        loss = (paddle.matmul(x, weight) ** 2).mean()
        pairs = static.append_backward(loss)
        dx, = static.gradients([loss], [x])
        return [loss, dx, *(g for _, g in pairs)]
    return built(build, {"x": f32(4, 3)})


@case("paddle.static.nn.conv2d", "paddle.static.nn.conv2d_transpose", "paddle.static.nn.conv3d",
      "paddle.static.nn.conv3d_transpose")
def convolutions():
    a, b, c, d = given(6, 2, 3, 3), given(4, 3, 2, 2), given(2, 4, 1, 2, 2), given(4, 2, 2, 2, 2)

    def build():
        x, y = static.data("x", [2, 4, 6, 6]), static.data("y", [1, 4, 3, 4, 4])
        return [static.nn.conv2d(x, 6, 3, stride=2, padding=1, groups=2, param_attr=a, act="tanh"),
                static.nn.conv2d_transpose(x, 3, filter_size=2, stride=2, param_attr=b),
                static.nn.conv3d(y, 2, (1, 2, 2), param_attr=c, bias_attr=False),
                static.nn.conv3d_transpose(y, 2, filter_size=2, param_attr=d)]
    return built(build, {"x": f32(2, 4, 6, 6), "y": f32(1, 4, 3, 4, 4)})


@case("paddle.static.nn.batch_norm", "paddle.static.nn.layer_norm", "paddle.static.nn.group_norm",
      "paddle.static.nn.instance_norm")
def normalizations():
    def build():
        x = static.data("x", [3, 4, 5, 5])
        return [static.nn.batch_norm(x, act="relu"), static.nn.batch_norm(x, is_test=True, momentum=0.5),
                static.nn.layer_norm(x, begin_norm_axis=2), static.nn.group_norm(x, 2), static.nn.instance_norm(x)]
    return built(build, {"x": f32(3, 4, 5, 5)}, steps=2)


@case("paddle.static.nn.embedding", "paddle.static.nn.prelu", "paddle.static.nn.bilinear_tensor_product",
      "paddle.static.nn.row_conv")
def other_layers():
    a, b, c = given(10, 4), given(3, 4, 5), given(3, 6)

    def build():
        ids, x, y = static.data("ids", [None, 3], "int64"), static.data("x", [2, 4]), static.data("y", [2, 5])
        z = static.data("z", [2, 7, 6])
        return [static.nn.embedding(ids, [10, 4], padding_idx=2, param_attr=a), static.nn.prelu(z, "all"),
                static.nn.bilinear_tensor_product(x, y, 3, param_attr=b), static.nn.row_conv(z, 2, param_attr=c)]
    return built(build, {"ids": np.array([[1, 2, 9], [0, 3, 2]]), "x": f32(2, 4), "y": f32(2, 5), "z": f32(2, 7, 6)})


@case("paddle.static.nn.cond", "paddle.static.nn.case", "paddle.static.nn.switch_case")
def branches():
    def build():
        x, n = static.data("x", [3]), static.data("n", [1], "int32")
        x.stop_gradient = False
        y = static.nn.cond(x.sum() > 0, lambda: [x * 2.0, x + 1.0], lambda: [x - 1.0, x * x])
        z = static.nn.switch_case(n, [lambda: x * 1.0, lambda: x * 10.0, lambda: x * 100.0])
        w = static.nn.case([(n < 1, lambda: x + 1.0), (n < 2, lambda: x + 2.0)])
        return [*y, z, w, static.gradients([(y[0] * y[1]).sum() + z.sum()], [x])[0]]
    return [built(build, {"x": s * np.array([1, 2, 4], "float32"), "n": np.array([k], "int32")})
            for s, k in ((1, 0), (-1, 1), (1, 2))]


@case("paddle.static.nn.while_loop")
def loops():
    def build():
        x = static.data("x", [2, 3])
        i, n = paddle.full([1], 0, "int64"), paddle.full([1], 4, "int64")
        # x itself is no loop variable: Paddle would overwrite it
        i, total, product = static.nn.while_loop(lambda i, a, b: i < n, lambda i, a, b: [i + 1, a + x, b * 0.5],
                                                 [i, paddle.zeros([2, 3]), x * 1.0])
        return [i, total, product]
    return built(build, {"x": f32(2, 3)})


@case("paddle.static.create_global_var", "paddle.static.global_scope", "paddle.static.default_main_program",
      "paddle.static.default_startup_program", "paddle.static.Variable.persistable", "paddle.static.Program.list_vars",
      "paddle.static.Program.all_parameters", "paddle.static.Program.global_block", "paddle.static.Program.num_blocks",
      "paddle.static.Program.blocks", "paddle.static.Program.block", "paddle.static.Program.current_block")
def what_is_in_a_program():
    seen = []

    def build():
        step = static.create_global_var([2], 3.0, "float32", persistable=True, name="step")
        x = static.data("x", [None, 4])
        y = static.nn.fc(x, 2, weight_attr=given(4, 2))
        main = static.default_main_program()
        seen.extend([sorted(v.name for v in main.list_vars() if v.persistable and v.name not in ("feed", "fetch")),
                     [p.name for p in main.all_parameters()], [list(p.shape) for p in main.all_parameters()],
                     main.num_blocks, len(main.blocks), main.block(0).idx, main.current_block().idx,
                     main.global_block().has_var("x"), main.global_block().var("step").persistable, step.persistable,
                     static.default_startup_program() is not main, list(x.shape), x.name,
                     static.global_scope().find_var("nothing") is None])
        return [y + step]
    return built(build, {"x": f32(3, 4)}), seen


@case("paddle.static.Program.clone", "paddle.static.CompiledProgram", "paddle.static.BuildStrategy",
      "paddle.static.ExecutionStrategy", "paddle.static.BuildStrategy.enable_inplace",
      "paddle.static.BuildStrategy.fuse_elewise_add_act_ops", "paddle.static.Program.random_seed")
def clones():
    paddle.enable_static()
    try:
        main, startup = static.Program(), static.Program()
        with static.scope_guard(static.Scope()), static.program_guard(main, startup):
            x = static.data("x", [None, 4])
            w = given(4, 4)
            y = paddle.nn.functional.dropout(static.nn.fc(x, 4, weight_attr=w), 0.5)
            test = main.clone(for_test=True)
            paddle.optimizer.SGD(0.5).minimize(y.mean())
            main.random_seed = 3
            exe = static.Executor()
            exe.run(startup)
            feed = {"x": f32(3, 4)}
            strategy = static.BuildStrategy()
            strategy.enable_inplace, strategy.fuse_elewise_add_act_ops = True, True
            static.ExecutionStrategy().num_threads = 2
            compiled = static.CompiledProgram(test, build_strategy=strategy)
            return (exe.run(test, feed, [y.name]), exe.run(compiled, feed, [y.name]), main.random_seed,
                    len(test.global_block().ops) < len(main.global_block().ops))
    finally:
        paddle.disable_static()


@case("paddle.static.Executor.close", "paddle.static.cpu_places", "paddle.static.device_guard",
      "paddle.static.name_scope", "paddle.static.WeightNormParamAttr", "paddle.static.accuracy")
def odds_and_ends():
    w = given(4, 3)

    def build():
        with static.device_guard("cpu"), static.name_scope("here"):
            p, label = static.data("p", [4, 3]), static.data("label", [4, 1], "int64")
            normed = static.nn.fc(static.data("x", [2, 4]), 3, bias_attr=False, weight_attr=static.WeightNormParamAttr(
                dim=1, initializer=w.initializer))
        return [static.accuracy(p, label), static.accuracy(p, label, k=2), normed]
    exe = static.Executor()
    exe.close()
    return (built(build, {"p": f32(4, 3), "label": np.array([[0], [1], [2], [1]]), "x": f32(2, 4)}),
            len(static.cpu_places(2)))


def trained(make, steps=4):
    """Losses and parameters of a small training with this optimizer."""
    a, b = given(5, 8), given(8, 1)

    def build():
        x, y = static.data("x", [None, 5]), static.data("y", [None, 1])
        h = static.nn.fc(x, 8, weight_attr=a, activation="tanh")
        loss = ((static.nn.fc(h, 1, weight_attr=b) - y) ** 2).mean()
        make().minimize(loss)
        return [loss, *static.default_main_program().all_parameters()]
    return built(build, {"x": f32(6, 5), "y": f32(6, 1)}, steps=steps)


@case("paddle.optimizer.SGD", "paddle.optimizer.SGD.minimize")
def sgd():
    return trained(lambda: paddle.optimizer.SGD(0.1, weight_decay=0.01, grad_clip=paddle.nn.ClipGradByNorm(0.5)))


@case("paddle.optimizer.Momentum", "paddle.optimizer.Momentum.minimize")
def momentum():
    return trained(lambda: paddle.optimizer.Momentum(0.1, 0.8, use_nesterov=True,
                                                     grad_clip=paddle.nn.ClipGradByValue(0.1)))


@case("paddle.optimizer.Adam", "paddle.optimizer.Adam.minimize")
def adam():
    return trained(lambda: paddle.optimizer.Adam(0.05, beta1=0.8, weight_decay=paddle.regularizer.L1Decay(0.01)))


@case("paddle.optimizer.AdamW", "paddle.optimizer.Adamax", "paddle.optimizer.Adagrad", "paddle.optimizer.Adadelta",
      "paddle.optimizer.RMSProp", "paddle.optimizer.Lamb")
def more_optimizers():
    o = paddle.optimizer
    return [trained(make, 3) for make in (lambda: o.AdamW(0.05, weight_decay=0.1), lambda: o.Adamax(0.05),
                                          lambda: o.Adagrad(0.1), lambda: o.Adadelta(0.5),
                                          lambda: o.RMSProp(0.05, momentum=0.5, centered=True), lambda: o.Lamb(0.05))]


@case("paddle.static.save", "paddle.static.load", "paddle.static.load_program_state", "paddle.static.set_program_state",
      "paddle.static.save_inference_model", "paddle.static.load_inference_model", "paddle.static.serialize_program",
      "paddle.static.serialize_persistables", "paddle.static.deserialize_program",
      "paddle.static.deserialize_persistables", "paddle.static.save_to_file", "paddle.static.load_from_file",
      "paddle.static.normalize_program", "paddle.static.Program.state_dict", "paddle.static.Program.set_state_dict")
def files():
    paddle.enable_static()
    try:
        main, startup = static.Program(), static.Program()
        folder = tempfile.mkdtemp()
        with static.scope_guard(static.Scope()), static.program_guard(main, startup), paddle.utils.unique_name.guard():
            x = static.data("x", [None, 4])
            y = static.nn.fc(x, 3, weight_attr=given(4, 3))
            exe = static.Executor()
            exe.run(startup)
            prefix, feed, out = os.path.join(folder, "m"), {"x": f32(2, 4)}, []
            static.save(main, prefix)
            state = static.load_program_state(prefix)
            out.append({k: np.array(v) for k, v in sorted(state.items())})
            static.set_program_state(main, {k: v * 2 for k, v in state.items()})
            out.append(exe.run(main, feed, [y]))
            static.load(main, prefix, exe)
            out.append(exe.run(main, feed, [y]))
            own = main.state_dict()
            main.set_state_dict({k: np.array(v) * 3 for k, v in own.items()})
            out.append([exe.run(main, feed, [y]), sorted(own)])
            static.save_inference_model(prefix, [x], [y], exe)
            program, feeds, fetches = static.load_inference_model(prefix, exe)
            out.append([feeds, len(fetches), exe.run(program, {feeds[0]: feed["x"]}, fetches)])
            static.save_to_file(prefix, static.serialize_program([x], [y]))
            params = static.serialize_persistables([x], [y], exe)
            program = static.deserialize_program(static.load_from_file(prefix))
            static.deserialize_persistables(program, params, exe)
            out.append([isinstance(program, static.Program), isinstance(params, bytes)])
            out.append(isinstance(static.normalize_program(main, [x], [y]), static.Program))
            return out
    finally:
        paddle.disable_static()
