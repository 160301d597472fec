"""Linear regression in static mode: SGD, a clone for testing, saving and loading for inference."""
import numpy as np
import paddle

from common import fill, say

paddle.enable_static()

rng = np.random.RandomState(0)
x_all = rng.uniform(-1, 1, (120, 13)).astype("float32")
y_all = (x_all @ rng.uniform(-2, 2, (13, 1)) + 0.5 + 0.01 * rng.randn(120, 1)).astype("float32")

main_program = paddle.static.Program()
startup_program = paddle.static.Program()
with paddle.static.program_guard(main_program, startup_program):
    x = paddle.static.data(name="x", shape=[None, 13], dtype="float32")
    y = paddle.static.data(name="y", shape=[None, 1], dtype="float32")
    y_predict = paddle.static.nn.fc(x, size=1)
    cost = paddle.nn.functional.square_error_cost(input=y_predict, label=y)
    avg_loss = paddle.mean(cost)
    test_program = main_program.clone(for_test=True)
    sgd_optimizer = paddle.optimizer.SGD(learning_rate=0.05)
    ops, params_grads = sgd_optimizer.minimize(avg_loss)

print([(p.name, tuple(p.shape), g.name) for p, g in params_grads])
print(avg_loss.shape == [] or tuple(avg_loss.shape) == (), main_program.num_blocks, len(main_program.all_parameters()))

place = paddle.CPUPlace()
exe = paddle.static.Executor(place)
exe.run(startup_program)
fill(main_program, 1)
for epoch in range(5):
    for i in range(0, 120, 20):
        loss, = exe.run(main_program, feed={"x": x_all[i:i + 20], "y": y_all[i:i + 20]}, fetch_list=[avg_loss])
    test_loss, = exe.run(test_program, feed={"x": x_all, "y": y_all}, fetch_list=[avg_loss.name])
    say("epoch", epoch, loss, test_loss)

grad = exe.run(main_program, feed={"x": x_all[:4], "y": y_all[:4]}, fetch_list=[g for _, g in params_grads])
say("gradients", *grad)
say("weights", *[np.array(paddle.static.global_scope().find_var(p.name).get_tensor())
                 for p in main_program.all_parameters()])

paddle.static.save_inference_model("./regression/model", [x], [y_predict], exe, program=main_program)
expected, = exe.run(test_program, feed={"x": x_all[:5], "y": y_all[:5]}, fetch_list=[y_predict])
with paddle.static.scope_guard(paddle.static.Scope()):
    program, feed_names, fetch_targets = paddle.static.load_inference_model("./regression/model", exe)
    print(feed_names, len(fetch_targets))
    result = exe.run(program, feed={feed_names[0]: x_all[:5]}, fetch_list=fetch_targets)
    say("loaded", result[0])
    say("difference", np.abs(result[0] - expected).max() < 1e-6)

# gradients of gradients' targets, by hand
with paddle.static.program_guard(paddle.static.Program(), paddle.static.Program()):
    a = paddle.static.data("a", [3], "float32")
    a.stop_gradient = False
    b = paddle.tanh(a) * a
    da, = paddle.static.gradients([b], [a])
    dda, = paddle.static.gradients([da], [a])
    values = exe.run(feed={"a": np.array([0.1, 0.2, -0.3], "float32")}, fetch_list=[b, da, dda])
    say("gradients", *values)
