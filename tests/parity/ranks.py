"""One rank of two for cases/distributed_two_ranks.py: `ranks.py FOLDER`, which gets FOLDER/<rank>, this rank's outcomes.
Takes the variables of Paddle's launcher from its environment; runs on real Paddle (Gloo) and on Proa."""
import os
import pathlib
import pickle
import sys

import numpy as np
import paddle
import paddle.distributed as dist

FOLDER = pathlib.Path(sys.argv[1])


def of(*values):
    return paddle.to_tensor(np.array(values, "float32"))


def collectives(rank):
    found = []
    for op in (dist.ReduceOp.SUM, dist.ReduceOp.MAX, dist.ReduceOp.MIN, dist.ReduceOp.PROD):
        x = of(1.5 + rank, 2.0 - 3 * rank)
        dist.all_reduce(x, op=op)
        found.append(x.numpy())
    at_one = of(1.0 + rank, 2.0)
    dist.reduce(at_one, dst=1, op=dist.ReduceOp.MAX)
    gathered, sent, shared, part = [], of(1.0 + rank, 2.0), of(5.0 * rank, 2.0), of(0.0, 0.0)
    dist.all_gather(gathered, sent)
    dist.broadcast(shared, src=1)
    dist.scatter(part, [of(1.0, 2.0), of(3.0, 4.0)] if rank == 1 else None, src=1)
    found += [at_one.numpy() if rank == 1 else None, [x.numpy() for x in gathered], shared.numpy(), part.numpy()]
    x = of(1.0 + rank, 7.0)
    dist.send(x, dst=1) if rank == 0 else dist.recv(x, src=0)
    return [*found, x.numpy()]


def barrier(rank):
    """Rank 1 reads behind the barrier a file that rank 0 wrote before it."""
    path = FOLDER / "written"
    if rank == 0:
        path.write_text("before")
    dist.barrier()
    return path.read_text()


def groups(rank):
    both, one = dist.new_group([0, 1]), dist.new_group([1])
    x = of(1.0 + rank)
    dist.all_reduce(x, group=both)
    waited = dist.wait(x, one)  # on CPUs 2.6.2 has no op that waits for a group of several
    return [x.numpy(), both.nranks, both.ranks, both.rank, both.is_member(), both.get_group_rank(1),
            waited, dist.get_group(both.id) is both, dist.get_group(0).nranks, one.nranks, one.ranks]


def data_parallel(rank):
    """Ranks with weights and rows of their own: rank 0's weights hold, and gradients are means."""
    net = paddle.nn.Linear(3, 2)
    net.weight.set_value(np.arange(6, dtype="float32").reshape(3, 2) * 0.1 + rank)
    net.bias.set_value(np.full(2, 0.5 + rank, "float32"))
    model, found = paddle.DataParallel(net), []
    x = paddle.to_tensor(np.arange(6, dtype="float32").reshape(2, 3) + rank)
    for setter in (None, model.set_state_dict, model.set_dict, model.load_dict):
        if setter is not None:
            setter({name: value * 0.5 + 0.25 for name, value in model.state_dict().items()})
        loss = (model(x) ** 2).mean()
        scaled = model.scale_loss(loss)
        scaled.backward()
        model.apply_collective_grads()
        found += [loss.numpy(), scaled.numpy(), net.weight.numpy(), net.weight.grad.numpy(), net.bias.grad.numpy()]
        net.clear_gradients()
    model.init_reducer()  # a second one, as after parameters were frozen
    return [*found, list(model.state_dict())]


def main():
    world = dist.init_parallel_env()
    rank = dist.get_rank()
    env = dist.ParallelEnv()
    found = [[type(world).__name__, rank, dist.get_world_size(), env.rank, env.world_size, env.local_rank, env.nranks,
              env.current_endpoint == env.trainer_endpoints[rank], len(env.trainer_endpoints), dist.is_initialized()]]
    found += [part(rank) for part in (collectives, barrier, groups, data_parallel)]
    (FOLDER / f"{rank}").write_bytes(pickle.dumps(found))


os.environ.pop("http_proxy", None)
main()
