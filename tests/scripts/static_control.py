"""Control flow and parts of programs in static mode: cond, case, switch_case, while_loop, scopes, names."""
import numpy as np
import paddle
import paddle.static as static

from common import say

paddle.enable_static()
exe = static.Executor(paddle.CPUPlace())


def run(build, feed):
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        fetch = build()
        exe.run(startup)
        return exe.run(main, feed=feed, fetch_list=fetch)


def branches():
    x = static.data("x", [4], "float32")
    x.stop_gradient = False
    y = static.nn.cond(paddle.sum(x) > 0, lambda: x * 3.0, lambda: x - 1.0)
    return [y, static.gradients([paddle.sum(y * y)], [x])[0]]


for sign in (1.0, -1.0):
    say("cond", *run(branches, {"x": sign * np.arange(4, dtype="float32")}))


def cases():
    n = static.data("n", [1], "int32")
    a = static.nn.switch_case(n, {1: lambda: paddle.full([2], 1.0), 3: lambda: paddle.full([2], 3.0)},
                              default=lambda: paddle.full([2], -1.0))
    b = static.nn.case([(n < 2, lambda: paddle.full([1], 5, "int64")), (n < 3, lambda: paddle.full([1], 6, "int64"))],
                       default=lambda: paddle.full([1], 7, "int64"))
    return [a, b]


for n in (1, 2, 3):
    say("case", *run(cases, {"n": np.array([n], "int32")}))


def loop():
    x = static.data("x", [2, 2], "float32")
    i = paddle.full([1], 0, "int64")
    total = paddle.zeros([2, 2])

    def body(i, total):
        return [i + 1, total + x * paddle.cast(i, "float32")]

    return static.nn.while_loop(lambda i, total: i < 5, body, [i, total])


say("while", *run(loop, {"x": np.arange(4, dtype="float32").reshape(2, 2)}))


def shared():
    x = static.data("x", [None, 3], "float32")
    one = static.nn.fc(x, 2, weight_attr=paddle.ParamAttr(name="w", initializer=paddle.nn.initializer.Constant(0.5)))
    two = static.nn.fc(x, 2, weight_attr=paddle.ParamAttr(name="w"), bias_attr=False)
    step = static.create_global_var([1], 2.0, "float32", persistable=True, name="step")
    paddle.increment(step, 1.0)
    total = paddle.add(one, two) * step
    print([p.name for p in static.default_main_program().all_parameters()])
    return [total]


x = np.ones((2, 3), "float32")
say("shared", *run(shared, {"x": x}))

with static.scope_guard(static.Scope()):
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        counter = static.create_global_var([1], 0.0, "float32", persistable=True, name="counter")
        paddle.increment(counter, 2.0)
    exe.run(startup)
    for _ in range(3):
        out = exe.run(main, fetch_list=[counter])
    say("counter", out[0], np.array(static.global_scope().find_var("counter").get_tensor()))
print(static.global_scope().find_var("counter") is None)

init = paddle.nn.initializer
for make in (init.Constant(1.5), init.Assign(np.arange(6, dtype="float32").reshape(2, 3))):
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        w = static.create_parameter([2, 3], "float32", default_initializer=make)
    exe.run(startup)
    say("initial", *exe.run(main, fetch_list=[w]))

for name in ("conv2d", "batch_norm", "group_norm", "instance_norm", "prelu", "conv2d_transpose"):
    def layer():
        x = static.data("x", [2, 4, 5, 5], "float32")
        const = paddle.ParamAttr(initializer=init.Constant(0.05))
        if name == "conv2d":
            y = static.nn.conv2d(x, 3, 3, padding=1, stride=2, param_attr=const, act="relu")
        elif name == "conv2d_transpose":
            y = static.nn.conv2d_transpose(x, 3, filter_size=3, param_attr=const, stride=2)
        elif name == "batch_norm":
            y = static.nn.batch_norm(x, act="tanh")
        elif name == "group_norm":
            y = static.nn.group_norm(x, 2)
        elif name == "instance_norm":
            y = static.nn.instance_norm(x)
        else:
            y = static.nn.prelu(x, "channel", param_attr=const)
        return [y, paddle.mean(y)]
    out = run(layer, {"x": np.sin(np.arange(200, dtype="float32")).reshape(2, 4, 5, 5)})
    say(name, np.shape(out[0]), out[1], np.ravel(out[0])[:6])
