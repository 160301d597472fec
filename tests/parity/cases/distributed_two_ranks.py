"""paddle.distributed between two processes of this machine (../ranks.py), on real Paddle over Gloo; entries."""
import os
import pathlib
import pickle
import socket
import subprocess
import sys
import tempfile

import paddle
import paddle.distributed as dist
from parity import HERE, case, raised

D = "paddle.distributed."


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


@case(*(D + n for n in ("init_parallel_env", "ReduceOp", "ReduceOp.SUM", "ReduceOp.MAX", "ReduceOp.MIN", "ReduceOp.PROD",
                        "all_reduce", "reduce", "all_gather", "broadcast", "scatter", "send", "recv", "barrier", "wait", "new_group",
                        "get_group", "ParallelEnv", "get_rank", "get_world_size")),
      *("paddle.DataParallel" + n for n in ("", ".state_dict", ".set_state_dict", ".set_dict", ".load_dict", ".scale_loss",
                                            ".apply_collective_grads", ".init_reducer")))
def two_ranks():
    command = [sys.executable, *(["-m", "proa"] if paddle.__name__ == "proa" else []), str(HERE / "ranks.py")]
    *ports, master = free_ports(3)
    endpoints = [f"127.0.0.1:{port}" for port in ports]
    with tempfile.TemporaryDirectory() as folder:
        running = [subprocess.Popen([*command, folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={
            **os.environ, "PADDLE_TRAINER_ID": str(rank), "PADDLE_TRAINERS_NUM": "2", "PADDLE_DISTRI_BACKEND": "gloo",
            "PADDLE_TRAINER_ENDPOINTS": ",".join(endpoints), "PADDLE_CURRENT_ENDPOINT": endpoints[rank],
            "PADDLE_MASTER": f"127.0.0.1:{master}"}) for rank in range(2)]
        try:
            said = [one.communicate(timeout=120)[0] for one in running]
        finally:
            for one in running:
                one.kill()
        if any(one.returncode for one in running):
            raise RuntimeError("a rank failed:\n" + "\n".join(text[-1500:] for text in said))
        return [pickle.loads((pathlib.Path(folder) / str(rank)).read_bytes()) for rank in range(2)]


@case(D + "ParallelEnv.device_id", D + "ParallelEnv.dev_id", grad=False)
def selected_device():
    """Of a device that is no GPU: on CPUs alone 2.6.2's ParallelEnv lacks the attribute."""
    before = dict(os.environ)
    try:
        os.environ.update(PADDLE_XCCL_BACKEND="npu", FLAGS_selected_npus="3,4")
        env = dist.ParallelEnv()
        del os.environ["FLAGS_selected_npus"]
        return [env.device_type, env.device_id, env.dev_id, dist.ParallelEnv().dev_id]
    finally:
        os.environ.clear()
        os.environ.update(before)


SPAWNS = """
import pickle, sys
import paddle
import paddle.distributed as dist

def work(base, folder):
    env = dist.init_parallel_env() and dist.ParallelEnv()
    x = paddle.to_tensor([base + env.rank])
    dist.all_reduce(x)
    with open(f"{folder}/{env.rank}", "wb") as f:
        pickle.dump([x.numpy(), env.rank, env.world_size], f)

def fails():
    raise KeyError("the cause")

if __name__ == "__main__":
    context = dist.spawn(work, args=(1.0, sys.argv[1]), nprocs=2, backend="gloo")
    try:
        dist.spawn(fails, nprocs=1, backend="gloo")
    except Exception as e:
        said = ["Process 0 terminated with the following error" in str(e), "the cause" in str(e)]
    with open(sys.argv[1] + "/parent", "wb") as f:
        pickle.dump([len(context.processes), said], f)
"""


@case(D + "spawn")
def spawned():
    """A script, which children import again."""
    with tempfile.TemporaryDirectory() as folder:
        script = pathlib.Path(folder) / "spawns.py"
        script.write_text(SPAWNS)
        ran = subprocess.run([sys.executable, *(["-m", "proa"] if paddle.__name__ == "proa" else []), str(script), folder],
                             capture_output=True, text=True, timeout=120)
        if ran.returncode:
            raise RuntimeError(ran.stderr[-1500:])
        return [pickle.loads((pathlib.Path(folder) / name).read_bytes()) for name in ("0", "1", "parent")]


@case(D + "split")
def split_refusals():
    """Values need several ranks of a build with GPUs: real Paddle's on CPUs has only these."""
    x = paddle.ones([2, 8])
    return [raised(lambda: dist.split(x, (8, 8), "conv")), raised(lambda: dist.split(x, (8,), "linear")),
            raised(lambda: dist.split(x, (8, 8, 8), "embedding"))]


@case(D + "CountFilterEntry", D + "ProbabilityEntry")
def entries():
    return [dist.ProbabilityEntry(0.5)._to_attr(), dist.CountFilterEntry(5)._to_attr(), dist.CountFilterEntry(0)._to_attr(),
            [raised(lambda v=v: dist.ProbabilityEntry(v)) for v in (0.0, 1.0, 1.5, 1, "a")],
            [raised(lambda v=v: dist.CountFilterEntry(v)) for v in (-1, 1.0, "a")]]
