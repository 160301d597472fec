"""fleet on static programs, in a process that has not joined a job eagerly: what the strategy's switches make of an optimizer."""
import importlib
import os
import tempfile

import numpy as np
import paddle
import paddle.distributed.fleet as fleet
from parity import array, case, since_removed

F = "paddle.distributed.fleet."


def trained(strategy, make, steps=6):
    """Weights and losses of a static training through fleet."""
    paddle.enable_static()
    try:
        main, startup = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(main, startup), paddle.static.scope_guard(paddle.static.Scope()), \
                paddle.utils.unique_name.guard():
            fleet.init(is_collective=True)
            x = paddle.static.data("x", [4, 3])
            hidden = paddle.tanh(paddle.static.nn.fc(x, 5, weight_attr=constant(1), bias_attr=constant(2, "excluded")))
            out = paddle.static.nn.fc(hidden, 2, weight_attr=constant(3), bias_attr=constant(4))
            loss = paddle.mean(out * out)
            strategy.recompute_configs = {"checkpoints": [hidden.name]}
            fleet.distributed_optimizer(make(), strategy)
            fleet.minimize(loss)
            exe = paddle.static.Executor(paddle.CPUPlace())
            exe.run(startup)
            losses = [exe.run(main, {"x": array(4, 3).astype("float32") * (1 + step)}, [loss])[0] for step in range(steps)]
            found = [np.array(paddle.static.global_scope().find_var(p.name).get_tensor()) for p in sorted(main.all_parameters(), key=lambda p: p.name)]
            return [float(np.ravel(v)[0]) for v in losses], found
    finally:
        paddle.disable_static()


def constant(seed, name=None):
    return paddle.ParamAttr(name=name and f"{name}_{seed}", initializer=paddle.nn.initializer.Constant(seed / 7))


@case(*(F + n for n in ("distributed_optimizer", "minimize", "Fleet.distributed_optimizer", "Fleet.minimize")))
def static_switches():
    """LARS, LAMB, recompute and gradient merge; switches that one process switches off."""
    opt, results = paddle.optimizer, []
    for switches, make in (
            ({}, lambda: opt.SGD(0.1)),
            ({"lars": True, "lars_configs": {"lars_coeff": 0.3, "exclude_from_weight_decay": ["excluded"]}},
             lambda: opt.Momentum(0.1, 0.9)),
            ({"lamb": True, "lamb_configs": {"lamb_weight_decay": 0.02, "exclude_from_weight_decay": ["excluded", "ed_2"]}},
             lambda: opt.Adam(0.05)),
            ({"recompute": True}, lambda: opt.Momentum(0.05, 0.9, use_nesterov=True)),
            ({"gradient_merge": True, "gradient_merge_configs": {"k_steps": 2, "avg": True}}, lambda: opt.Momentum(0.1, 0.9)),
            ({"gradient_merge": True, "gradient_merge_configs": {"k_steps": 3, "avg": False}, "recompute": True},
             lambda: opt.SGD(0.05)),
            ({"dgc": True, "localsgd": True, "sharding": True}, lambda: opt.Momentum(0.1, 0.9))):
        strategy = fleet.DistributedStrategy()
        for name, value in switches.items():
            setattr(strategy, name, value)
        results.append(trained(strategy, make))
    return results


@case(F + "Fleet.save_persistables", F + "save_persistables", grad=False)
def saved_by_the_first_worker():
    paddle.enable_static()
    try:
        fleet.init(is_collective=True)
        main, startup = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(main, startup), paddle.utils.unique_name.guard(), tempfile.TemporaryDirectory() as folder:
            x = paddle.static.data("x", [None, 4])
            out = paddle.static.nn.fc(x, 3, weight_attr=paddle.nn.initializer.Constant(0.25))
            loss = paddle.mean(out * out)
            fleet.distributed_optimizer(paddle.optimizer.SGD(0.1))
            fleet.minimize(loss)
            exe = paddle.static.Executor(paddle.CPUPlace())
            exe.run(startup)
            values = array(2, 4).astype("float32")
            exe.run(main, {"x": values}, [loss])
            # 2.6.2's do nothing in collective jobs; its own functions of those names do what 2.0's and 2.1's did
            persistables = since_removed(F + "save_persistables", lambda: importlib.import_module("paddle.distributed.io").save_persistables)
            persistables(exe, os.path.join(folder, "all"), main)
            kept_files = sorted(name for name in os.listdir(os.path.join(folder, "all")) if "fc" in name)
            values = [np.frombuffer(open(os.path.join(folder, "all", name), "rb").read()[-12:], "float32") for name in kept_files]
            return kept_files, values
    finally:
        paddle.disable_static()


@case(*(F + "Fleet." + n for n in ("local_rank", "local_device_ids", "world_device_ids")), grad=False)
def devices_that_a_launcher_named():
    found, names = [], ("PADDLE_RANK_IN_NODE", "PADDLE_LOCAL_DEVICE_IDS", "PADDLE_WORLD_DEVICE_IDS")
    for values in (("3", "0,1", "0,1:2,3"), (None, None, None)):
        for name, value in zip(names, values):
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        fleet.init(is_collective=True)
        found.append([str(getattr(fleet.fleet, n)()) for n in ("local_rank", "local_device_ids", "world_device_ids")])
    return found


@case(F + "Fleet.get_loss_scaling", F + "Fleet.amp_init", grad=False)
def the_scale_of_a_loss():
    """Parameters stay float32 in O1; runs in float16 are not for CPUs of real Paddle."""
    paddle.enable_static()
    try:
        fleet.init(is_collective=True)
        main, startup = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(main, startup), paddle.static.scope_guard(paddle.static.Scope()):
            out = paddle.static.nn.fc(paddle.static.data("x", [4, 3]), 2)
            strategy = fleet.DistributedStrategy()
            strategy.amp, strategy.amp_configs = True, {"init_loss_scaling": 16.0}
            fleet.distributed_optimizer(paddle.optimizer.SGD(0.1), strategy)
            fleet.minimize(paddle.mean(out * out))
            paddle.static.Executor(paddle.CPUPlace()).run(startup)
            scale, value = fleet.fleet.get_loss_scaling(), lambda var: np.array(paddle.static.global_scope().find_var(var.name).get_tensor())
            found = [list(scale.shape), scale.persistable, value(scale), str(fleet.fleet.amp_init(paddle.CPUPlace()))]
            return found + sorted([list(p.shape), str(value(p).dtype)] for p in main.all_parameters())
    finally:
        paddle.disable_static()


@case(F + "Fleet.save_inference_model", grad=False)
def a_model_that_the_first_worker_saved():
    """2.6.2's does nothing in collective jobs; what it saves by its own function, in another folder's form, computes the same."""
    paddle.enable_static()
    try:
        fleet.init(is_collective=True)
        main, startup = paddle.static.Program(), paddle.static.Program()
        with paddle.static.program_guard(main, startup), paddle.static.scope_guard(paddle.static.Scope()), \
                tempfile.TemporaryDirectory() as folder:
            x = paddle.static.data("x", [None, 4])
            out = paddle.static.nn.fc(x, 3, weight_attr=constant(2))
            fleet.distributed_optimizer(paddle.optimizer.SGD(0.1))
            fleet.minimize(paddle.mean(out * out))
            exe, values = paddle.static.Executor(paddle.CPUPlace()), array(2, 4).astype("float32")
            exe.run(startup)
            exe.run(main, {"x": values})
            if paddle.__name__ == "proa":
                fleet.fleet.save_inference_model(exe, folder, ["x"], [out], main)
                again, feeds, fetches = importlib.import_module("paddle.fluid").io.load_inference_model(folder, exe)
            else:
                paddle.static.save_inference_model(os.path.join(folder, "model"), [x], [out], exe, program=main)
                again, feeds, fetches = paddle.static.load_inference_model(os.path.join(folder, "model"), exe)
            return feeds, exe.run(again, {"x": values}, fetches)
    finally:
        paddle.disable_static()
