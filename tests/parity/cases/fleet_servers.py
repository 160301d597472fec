"""fleet's names for parameter servers in a process that has none: warnings, and inference with tables of its own. The cases' order
counts: fleet of this process has no role before the first, and no program before the second."""
import os
import tempfile

import numpy as np
import paddle
import paddle.distributed.fleet as fleet
from parity import array, case, raised
from paddle.distributed.fleet.utils import DistributedInfer

F = "paddle.distributed.fleet."
METHODS = ("init_server", "init_worker", "run_server", "stop_worker", "shrink")


def called(name):
    method = getattr(fleet.fleet, name)
    return raised(lambda: method(3) if name == "shrink" else method())


@case(*(F + "Fleet." + name for name in METHODS), grad=False)
def calls_for_servers():
    found = [called(name) for name in METHODS]
    fleet.init()
    return [*found, *(called(name) for name in METHODS), fleet.fleet.init_server("a folder that is not there"),
            [getattr(fleet, name) == getattr(fleet.fleet, name) for name in METHODS]]


def network():
    """(program, startup program, prediction, loss) with weights that are drawn anew by each run of the startup program."""
    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(main, startup), paddle.utils.unique_name.guard():
        words, x = paddle.static.data("words", [None, 2], "int64"), paddle.static.data("x", [None, 4])
        rows = paddle.static.nn.embedding(words, [7, 3], param_attr=paddle.ParamAttr(name="table"))
        hidden = paddle.concat([paddle.flatten(rows, 1), x], 1)
        out = paddle.static.nn.fc(hidden, 2, weight_attr=paddle.ParamAttr(name="weight"), bias_attr=paddle.ParamAttr(name="bias"))
        return main, startup, out, paddle.mean(out * out)


def fixed(main, seed):
    """Sets the scope's parameters to values that seed says."""
    for k, p in enumerate(sorted(main.all_parameters(), key=lambda p: p.name)):
        n = int(np.prod(p.shape))
        paddle.static.global_scope().find_var(p.name).get_tensor().set(
            np.cos(np.arange(n) + k + seed).reshape(p.shape).astype("float32"), paddle.CPUPlace())


@case(*(F + "utils.DistributedInfer" + n for n in ("", ".init_distributed_infer_env", ".get_dist_infer_program")), grad=False)
def inference_without_servers():
    """Values that were saved are read back; a second call, and one behind minimize, leave the process's values alone."""
    paddle.enable_static()
    try:
        exe, found = paddle.static.Executor(paddle.CPUPlace()), []
        feed = {"words": np.array([[0, 6], [3, 3]], "int64"), "x": array(2, 4).astype("float32")}
        main, startup, out, loss = network()
        with tempfile.TemporaryDirectory() as folder, paddle.static.program_guard(main, startup):
            exe.run(startup)
            fixed(main, 1)
            paddle.static.save_vars(exe, folder, main, vars=[p for p in main.all_parameters() if p.name != "bias"])
            fixed(main, 2)
            infer = DistributedInfer(main, startup)
            infer.sparse_table_maps = {}  # no table is a server's: without servers 2.6.2 does not find out by itself, and fails
            infer.init_distributed_infer_env(exe, loss, dirname=folder)
            program = infer.get_dist_infer_program()
            found += [sorted(os.listdir(folder)), program is main, *exe.run(program, feed, [out.name])]
            fixed(main, 3)
            infer.init_distributed_infer_env(exe, loss, dirname=folder)
            found += exe.run(infer.get_dist_infer_program(), feed, [out.name])
            fleet.distributed_optimizer(paddle.optimizer.SGD(0.5), fleet.DistributedStrategy())
            fleet.minimize(loss)
            infer.init_distributed_infer_env(exe, loss, dirname=folder)
            found += exe.run(infer.get_dist_infer_program(), feed, [out.name])
        return found
    finally:
        paddle.disable_static()
