"""Programs as a whole: switches, functions of Python inside a run, variables in files, metrics."""
import os
import tempfile

import numpy as np
import paddle
import paddle.static as static
from parity import array, case

BUILD = """async_mode bkcl_comm_num cache_runtime_context debug_graphviz_path enable_addto enable_auto_fusion
enable_backward_optimizer_op_deps enable_inplace enable_sequential_execution fuse_all_optimizer_ops
fuse_bn_act_ops fuse_bn_add_act_ops fuse_elewise_add_act_ops fuse_relu_depthwise_conv
hierarchical_allreduce_inter_nranks is_distribution memory_optimize nccl_comm_num num_trainers
remove_unnecessary_lock sync_batch_norm trainer_id trainers_endpoints use_hierarchical_allreduce""".split()
RUN = "num_iteration_per_drop_scope num_iteration_per_run num_threads use_experimental_executor use_thread_barrier".split()


@case(*(f"paddle.static.BuildStrategy.{name}" for name in BUILD), "paddle.static.BuildStrategy")
def build_switches():
    """Defaults of the switches, and that they can be set."""
    one, two = static.BuildStrategy(), static.BuildStrategy()
    before = {name: getattr(one, name) for name in BUILD}
    after = {}
    for name, value in before.items():
        setattr(two, name, not value if isinstance(value, bool) else True if value is None else
                value + 1 if isinstance(value, int) else ["127.0.0.1:1"] if isinstance(value, list) else "/tmp/g")
        after[name] = getattr(two, name)
    return before, after


@case("paddle.static.BuildStrategy.reduce_strategy", "paddle.static.BuildStrategy.ReduceStrategy",
      "paddle.static.BuildStrategy.gradient_scale_strategy", "paddle.static.BuildStrategy.GradientScaleStrategy",
      "paddle.static.BuildStrategy.fuse_all_reduce_ops", "paddle.static.BuildStrategy.fuse_broadcast_ops",
      "paddle.static.BuildStrategy.mkldnn_enabled_op_types")
def build_choices():
    one = static.BuildStrategy()
    kinds, scales = static.BuildStrategy.ReduceStrategy, static.BuildStrategy.GradientScaleStrategy
    out = [one.reduce_strategy == kinds.AllReduce, one.gradient_scale_strategy == scales.CoeffNumDevice]
    one.reduce_strategy, one.gradient_scale_strategy = kinds.Reduce, scales.One
    one.fuse_all_reduce_ops = one.fuse_broadcast_ops = False
    one.mkldnn_enabled_op_types = {"relu"}
    return out, one.reduce_strategy == kinds.Reduce, one.gradient_scale_strategy == scales.One, \
        one.fuse_all_reduce_ops, one.fuse_broadcast_ops, sorted(one.mkldnn_enabled_op_types)


@case(*(f"paddle.static.ExecutionStrategy.{name}" for name in RUN), "paddle.static.ExecutionStrategy",
      "paddle.static.ExecutionStrategy.allow_op_delay")
def run_switches():
    one = static.ExecutionStrategy()
    before = [getattr(one, name) for name in RUN]
    for name in RUN:
        setattr(one, name, True if isinstance(getattr(one, name), bool) else 3)
    return before, [getattr(one, name) for name in RUN]


def program(build, feed, fetch_last=True):
    paddle.enable_static()
    try:
        main, startup, scope = static.Program(), static.Program(), static.Scope()
        with static.scope_guard(scope), static.program_guard(main, startup), paddle.utils.unique_name.guard():
            outs = build()
            exe = static.Executor()
            exe.run(startup)
            return exe.run(main, feed, outs)
    finally:
        paddle.disable_static()


def f32(*shape):
    return array(*shape).astype("float32")


@case("paddle.static.py_func", "paddle.static.nn.py_func")
def python_functions():
    calls = []

    def forward(x, y):
        calls.append("forward")
        return np.tanh(np.array(x)) * np.array(y)

    def backward(x, y, out, dout):
        calls.append("backward")
        x, y, dout = np.array(x), np.array(y), np.array(dout)
        return dout * y * (1 - np.tanh(x) ** 2), dout * np.tanh(x)

    def build():
        x, y = static.data("x", [2, 3]), static.data("y", [2, 3])
        x.stop_gradient = y.stop_gradient = False
        out = static.default_main_program().current_block().create_var(name="made", dtype="float32", shape=[2, 3])
        out = static.py_func(forward, [x, y], out, backward)
        return [out, *static.gradients([(out * out).sum()], [x, y])]
    return program(build, {"x": f32(2, 3), "y": f32(2, 3)}), sorted(set(calls))


@case("paddle.static.Print")
def printed():
    def build():
        x = static.data("x", [2, 3])
        x.stop_gradient = False
        y = static.Print(x * 2.0, first_n=1, message="seen", print_phase="both")
        return [y, static.gradients([(y * y).sum()], [x])[0]]
    return program(build, {"x": f32(2, 3)})


@case("paddle.static.auc", tol=1e-5)
def area_under_the_curve():
    def build():
        p, label = static.data("p", [6, 2]), static.data("label", [6, 1], "int64")
        return [static.auc(p, label, num_thresholds=200)[0]]
    p = array(6, low=0.05, high=0.95)
    return program(build, {"p": np.stack([1 - p, p], 1).astype("float32"),
                           "label": np.array([[0], [1], [1], [0], [1], [0]])})


@case("paddle.static.ctr_metric_bundle", tol=1e-5)
def click_through_rates():
    def build():
        p, label = static.data("p", [None, 1]), static.data("label", [None, 1])
        real = static.data("real", [None, 1])
        return [*static.ctr_metric_bundle(p, label), *static.ctr_metric_bundle(p, label, real)]
    return program(build, {"p": array(4, 1, low=0.05, high=0.95).astype("float32"), "label": np.array([[0], [1], [1], [0]], "float32"),
                           "real": np.zeros([4, 1], "float32")})


@case("paddle.static.save_vars", "paddle.static.load_vars")
def variables_in_files():
    paddle.enable_static()
    try:
        main, startup, out = static.Program(), static.Program(), []
        with static.scope_guard(static.Scope()), static.program_guard(main, startup), paddle.utils.unique_name.guard(), \
                tempfile.TemporaryDirectory() as folder:
            w = static.create_parameter([3, 2], "float32", name="w",
                                        default_initializer=paddle.nn.initializer.Constant(0.5))
            static.create_parameter([2], "float32", name="b", default_initializer=paddle.nn.initializer.Constant(2.0))
            exe = static.Executor()
            exe.run(startup)
            static.save_vars(exe, folder, main, vars=main.all_parameters())
            static.save_vars(exe, folder, main, predicate=lambda v: v.name in ("w", "b"), filename="all")
            out.append(sorted(os.listdir(folder)))
            w.set_value(np.zeros((3, 2), "float32"))
            static.load_vars(exe, folder, main, vars=main.all_parameters())
            out.append(np.array(w.get_value()))
            w.set_value(np.zeros((3, 2), "float32"))
            static.load_vars(exe, folder, main, predicate=lambda v: v.name in ("w", "b"), filename="all")
            out.append(np.array(w.get_value()))
            w.set_value(np.zeros((3, 2), "float32"))
            with static.program_guard(static.Program()):  # the variables' program counts, not the default one
                static.load_vars(exe, folder, vars=[w])
            return out, np.array(w.get_value())
    finally:
        paddle.disable_static()


@case("paddle.static.Program.parse_from_string", "paddle.static.Program.to_string", "paddle.static.Program.global_seed",
      "paddle.static.Program.random_seed")
def programs_as_text():
    paddle.enable_static()
    try:
        main = static.Program()
        with static.program_guard(main, static.Program()), paddle.utils.unique_name.guard():
            x = static.data("x", [None, 3])
            y = paddle.tanh(x) + 1.0
            text = main.desc.serialize_to_string()
            again = static.Program.parse_from_string(text)
            out = static.Executor().run(again, {"x": np.ones((2, 3), "float32")}, [y.name])
            shown = main.to_string(True)
            before = main.random_seed
            main.global_seed(7)
            seeds = before, main.random_seed, static.Program().random_seed
            main.global_seed(0)
            return out, "x" in shown and "tanh" in shown, seeds, [op.type for op in again.global_block().ops]
    finally:
        paddle.disable_static()


@case("paddle.static.WeightNormParamAttr.params_with_weight_norm")
def the_rest():
    return isinstance(static.WeightNormParamAttr.params_with_weight_norm, list)


@case("paddle.static.append_backward", "paddle.static.gradients", grad=False)
def where_gradients_stop():
    """A variable of no_grad_set has no gradient itself, and no step changes it."""
    paddle.enable_static()
    try:
        main, startup = static.Program(), static.Program()
        with static.scope_guard(static.Scope()), static.program_guard(main, startup), paddle.utils.unique_name.guard():
            x = static.data("x", [None, 4])
            x.stop_gradient = False
            u, v = (paddle.ParamAttr(n, initializer=paddle.nn.initializer.Assign(array(4, 4).astype("float32"))) for n in "uv")
            a = static.nn.fc(x, 4, weight_attr=u, bias_attr=False)
            loss = (static.nn.fc(a, 4, weight_attr=v, bias_attr=False) ** 2).mean()
            found = [[g is None for g in static.gradients([loss], [x, a], no_grad_set=stop)] for stop in ({"x"}, {a}, {a.name})]
            _, pairs = paddle.optimizer.SGD(0.2).minimize(loss, no_grad_set={"u"})
            exe, feed = static.Executor(), {"x": array(3, 4).astype("float32")}
            exe.run(startup)
            return found, [p.name for p, _ in pairs], [exe.run(main, feed, [loss, "u", "v"]) for _ in range(2)]
    finally:
        paddle.disable_static()
