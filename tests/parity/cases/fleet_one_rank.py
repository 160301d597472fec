"""fleet's collective job of one process: its groups, its model, optimizer and scaler, what it saves, settings from flags."""
import contextlib
import io
import os

import numpy as np

os.environ.update(PADDLE_TRAINER_ID="0", PADDLE_TRAINERS_NUM="1", PADDLE_TRAINER_ENDPOINTS="127.0.0.1:6170",
                  PADDLE_CURRENT_ENDPOINT="127.0.0.1:6170")
import paddle
import paddle.distributed.fleet as fleet
from parity import array, case, fill

F, H = "paddle.distributed.fleet.", "paddle.distributed.fleet.HybridCommunicateGroup"
AXES = ("data", "model", "sharding")


def joined(strategy=None):
    fleet.init(is_collective=True, strategy=strategy or fleet.DistributedStrategy())
    return fleet.fleet


def kept(name, heir):
    """A method that Fleet had in 2.0 and 2.1 and passes on to the optimizer: 2.6.2 has the optimizer's alone."""
    return getattr(fleet.fleet, name) if paddle.__name__ == "proa" else getattr(heir, name)


@case(H, *(f"{H}.get_{a}_parallel_{n}" for a in AXES for n in ("group", "group_src_rank", "rank", "world_size")),
      *(f"{H}.{n}" for n in ("get_check_parallel_group", "get_global_rank", "get_parallel_mode", "get_pipe_parallel_group",
                             "get_pipe_parallel_world_size", "get_rank_from_stage", "get_stage_id", "topology")),
      F + "Fleet.get_hybrid_communicate_group", F + "Fleet.get_hybrid_parallel_topology", grad=False)
def groups_of_one_rank():
    f = joined()
    hcg = f.get_hybrid_communicate_group()
    group = lambda g: [g.nranks, list(g.ranks)]
    found = [[group(getattr(hcg, f"get_{a}_parallel_group")()), *(getattr(hcg, f"get_{a}_parallel_{n}")()
                                                                  for n in ("group_src_rank", "rank", "world_size"))] for a in AXES]
    return [found, group(hcg.get_pipe_parallel_group()), group(hcg.get_check_parallel_group()), hcg.get_pipe_parallel_world_size(),
            hcg.get_global_rank(), hcg.get_stage_id(), hcg.get_rank_from_stage(0), str(hcg.get_parallel_mode()),
            hcg.topology().world_size(), f.get_hybrid_parallel_topology().get_comm_list("data"),
            [fleet.worker_num(), fleet.worker_index(), fleet.is_first_worker(), fleet.worker_endpoints()]]


@case(*(F + "Fleet." + n for n in ("distributed_model", "step", "clear_grad", "get_lr", "set_lr", "state_dict", "set_state_dict")))
def a_step_of_one_rank():
    joined()
    net = fill(paddle.nn.Linear(4, 3))
    model = fleet.distributed_model(net)
    optimizer = fleet.distributed_optimizer(paddle.optimizer.Momentum(0.1, parameters=net.parameters()))
    x, found = paddle.to_tensor(array(5, 4).astype("float32")), [model is net]
    for step in range(3):
        (model(x) ** 2).mean().backward()
        kept("step", optimizer)()
        kept("clear_grad", optimizer)()
        found += [float(kept("get_lr", optimizer)()), float(np.abs(net.weight.grad.numpy()).max()) if net.weight.grad is not None else 0.0]
        kept("set_lr", optimizer)(0.1 / (step + 2))
    state = {name: np.array(value) for name, value in kept("state_dict", optimizer)().items()}
    kept("set_state_dict", optimizer)(kept("state_dict", optimizer)())
    (model(x) ** 2).mean().backward()
    optimizer.step()
    return found, [state[name] for name in sorted(state)], [p.numpy() for p in net.parameters()]


@case(F + "Fleet.distributed_scaler", F + "distributed_scaler")
def a_scaler_of_one_rank():
    joined()
    net = fill(paddle.nn.Linear(4, 3))
    optimizer = fleet.distributed_optimizer(paddle.optimizer.SGD(0.1, parameters=net.parameters()))
    scaler = fleet.distributed_scaler(paddle.amp.GradScaler(init_loss_scaling=8.0))
    x, found = paddle.to_tensor(array(5, 4).astype("float32")), [scaler.is_enable()]
    for factor in (1.0, 2.0):
        loss = (net(x) ** 2).mean() * factor
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.clear_grad()
        found.append(net.weight.numpy())
    return found


@case(F + "UtilBase.barrier", F + "UtilBase.print_on_rank", F + "Fleet.barrier_worker", F + "Fleet.util", F + "util",
      F + "barrier_worker", grad=False)
def messages_of_one_rank():
    f, text = joined(), io.StringIO()
    util = f.util if paddle.__name__ == "proa" else fleet.util  # 2.6.2's singleton lost the property
    with contextlib.redirect_stdout(text):
        util.print_on_rank("first", 0)
        util.print_on_rank("second", 1)
    return [text.getvalue(), str(f.barrier_worker()), str(util.barrier("worker")), str(fleet.barrier_worker())]


@case(*(F + "DistributedStrategy." + n for n in ("build_strategy", "execution_strategy", "conv_workspace_size_limit", "sync_nccl_allreduce",
                                                 "cudnn_exhaustive_search", "cudnn_batchnorm_spatial_persistent")), grad=False)
def settings_of_devices():
    s = fleet.DistributedStrategy()
    names = ("conv_workspace_size_limit", "sync_nccl_allreduce", "cudnn_exhaustive_search", "cudnn_batchnorm_spatial_persistent")
    found = [(n, getattr(s, n)) for n in names[1:]]  # the workspace's default is a flag of builds with CUDA
    s.conv_workspace_size_limit, s.sync_nccl_allreduce = 4000, False
    s.cudnn_exhaustive_search = s.cudnn_batchnorm_spatial_persistent = True
    found += [(n, getattr(s, n)) for n in names]
    build, execution = paddle.static.BuildStrategy(), paddle.static.ExecutionStrategy()
    build.fuse_all_optimizer_ops = build.enable_inplace = True
    execution.num_threads, execution.num_iteration_per_drop_scope = 7, 20
    s.build_strategy, s.execution_strategy = build, execution
    return [found, s.build_strategy.fuse_all_optimizer_ops, s.build_strategy.enable_inplace, s.build_strategy.fuse_bn_act_ops,
            s.execution_strategy.num_threads, s.execution_strategy.num_iteration_per_drop_scope]
