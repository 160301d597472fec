"""Python functions inside a static program: py_func with and without a backward, Print."""
import numpy as np
import paddle
import paddle.static as static

from common import say

paddle.enable_static()


def create_tmp_var(name, dtype, shape):
    return static.default_main_program().current_block().create_var(name=name, dtype=dtype, shape=shape)


def tanh(x):
    return np.tanh(x)


def tanh_grad(y, dy):
    return np.array(dy) * (1 - np.square(np.array(y)))


seen = []


def debug(x):
    seen.append(np.array(x).sum())


def both(x, y):
    return np.array(x) + 1, (np.array(y) * 2).astype("int64")


main, startup = static.Program(), static.Program()
with static.program_guard(main, startup):
    x = static.data("x", [None, 3])
    x.stop_gradient = False
    attr = paddle.ParamAttr(initializer=paddle.nn.initializer.Constant(0.1))
    h = static.nn.fc(x, 4, weight_attr=attr)
    new = create_tmp_var("hidden", "float32", [-1, 4])
    y = static.py_func(func=tanh, x=h, out=new, backward_func=tanh_grad, skip_vars_in_backward_input=h)
    static.py_func(func=debug, x=y, out=None)
    z = static.Print(y, message="hello", summarize=3, print_tensor_name=False)
    outs = [create_tmp_var("a", "float32", [-1, 3]), create_tmp_var("b", "int64", [-1, 4])]
    a, b = static.py_func(both, [x, y], outs)
    loss = paddle.mean(z * z)
    static.Print(loss, first_n=1, print_phase="forward", print_tensor_name=False)
    g, = static.gradients([loss], [x])

exe = static.Executor()
exe.run(startup)
print(y.name, tuple(y.shape))
for i in range(2):
    feed = {"x": np.arange(6, dtype="float32").reshape(2, 3) + i}
    say("run", *exe.run(main, feed=feed, fetch_list=[loss, g, a, b]))
say("seen", seen)
