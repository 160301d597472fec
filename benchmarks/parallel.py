"""Training steps of a small GPT under tensor, pipeline and sharded parallelism on this host: Proa beside PyTorch's DTensor,
pipelining and FSDP2 over Gloo, in one run.

    benchmarks/parallel.py [--ranks 2,4] [--torch PYTHON] [--rounds N] [--steps N] [--quick]

The two take turns, one job after the other; a figure is the median over the rounds of rank 0's median step, between barriers. exposed:
1 − alone / step, where alone is a step in which as many ranks take their shares of the rows and exchange nothing: what messages,
waiting and a pipeline's bubble take. Each rank has one thread and the same layers, sizes, micro-batches and optimizer (Adam, PyTorch's
fused) in both. Sharding 2 is FSDP2 with reshard_after_forward=False, sharding 3 with True. --quick: small sizes, measures nothing."""
import argparse
import contextlib
import json
import os
import statistics
import sys
import time

import dist as processes

SIZES = {"layers": 8, "hidden": 256, "heads": 4, "vocabulary": 1024, "sequence": 128}
QUICK = {"layers": 4, "hidden": 32, "heads": 4, "vocabulary": 64, "sequence": 16}
ROWS, MICRO = 16, 4  # of a step over all ranks; micro-batches of a pipeline
ALONE, JOBS = "alone", ("model", "pipe", "sharding 2", "sharding 3")


def rows_of(job, ranks):
    return ROWS if job in ("model", "pipe") else ROWS // ranks


# ---- Proa ------------------------------------------------------------------------------------------------------------

def proa_layers(sizes, divided):
    """Makers of the layers: table, blocks, head; with weights that tensor parallelism divides."""
    import proa as paddle
    from proa import nn
    from proa.distributed.fleet.meta_parallel import ColumnParallelLinear, LayerDesc, RowParallelLinear
    h, heads, words = sizes["hidden"], sizes["heads"], sizes["vocabulary"]

    def column(out, gather=False):
        return ColumnParallelLinear(h, out, has_bias=True, gather_output=gather) if divided else nn.Linear(h, out)

    def row(inside):
        return RowParallelLinear(inside, h, input_is_parallel=True) if divided else nn.Linear(inside, h)

    class Table(nn.Layer):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(words, h), self.create_parameter([sizes["sequence"], h])

        def forward(self, x):
            return self.words(x) + self.places

    class Block(nn.Layer):
        def __init__(self):
            super().__init__()
            self.norm_a, self.norm_b = nn.LayerNorm(h), nn.LayerNorm(h)
            self.qkv, self.out, self.up, self.down = column(3 * h), row(h), column(4 * h), row(4 * h)

        def forward(self, x):
            rows, length, _ = x.shape
            q, k, v = paddle.split(self.qkv(self.norm_a(x)).reshape([rows, length, -1, 3 * h // heads]), 3, -1)
            mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(mixed.reshape([rows, length, -1]))
            return x + self.down(nn.functional.gelu(self.up(self.norm_b(x))))

    class Head(nn.Layer):
        def __init__(self):
            super().__init__()
            self.norm, self.linear = nn.LayerNorm(h), column(words, True)

        def forward(self, x):
            return self.linear(self.norm(x))

    return [LayerDesc(Table), *[LayerDesc(Block)] * sizes["layers"], LayerDesc(Head)]


def proa_loss(logits, labels):
    from proa.nn import functional as F
    return F.cross_entropy(logits.reshape([-1, logits.shape[-1]]), labels.reshape([-1]))


def proa_groups(job, ranks):
    """The groups of a job's ranks."""
    from proa.distributed import fleet
    axis = {"model": "mp", "pipe": "pp", "alone": "dp"}.get(job, "sharding")
    strategy = fleet.DistributedStrategy()
    strategy.hybrid_configs = {f"{name}_degree": ranks if name == axis else 1 for name in ("dp", "mp", "pp", "sharding")}
    strategy.pipeline_configs = {"accumulate_steps": MICRO, "micro_batch_size": ROWS // MICRO}
    fleet.init(is_collective=True, strategy=strategy)
    return fleet.get_hybrid_communicate_group()


def proa_step(job, ranks, sizes):
    """(a step that returns the loss, barrier)"""
    import proa as paddle
    import proa.distributed as dist
    from proa.distributed import fleet
    from proa.distributed.fleet.meta_parallel import PipelineLayer
    from proa.distributed.sharding import group_sharded_parallel
    dist.init_parallel_env()
    groups, layers = proa_groups(job, ranks), proa_layers(sizes, job == "model")
    if job == "pipe":
        net = PipelineLayer(layers, topology=groups.topology(), loss_fn=proa_loss, seg_method="layer:Block")
    else:
        net = paddle.nn.Sequential(*[layer.build_layer() for layer in layers])
    own = net.parameters()[dist.get_rank()::ranks] if job == ALONE else net.parameters()
    forward, opt = net, paddle.optimizer.Adam(1e-3, parameters=own)
    if job.startswith("sharding"):
        forward, opt, _ = group_sharded_parallel(net, opt, "os_g" if job.endswith("2") else "p_g_os", segment_size=sizes["hidden"],
                                                 group=groups.get_sharding_parallel_group())
    elif job != ALONE:
        forward, opt = fleet.distributed_model(net), fleet.distributed_optimizer(opt)
    ids = paddle.randint(0, sizes["vocabulary"], [rows_of(job, ranks), sizes["sequence"]])

    def step():
        if job == "pipe":
            return float(forward.train_batch([ids, ids], opt))
        loss = proa_loss(forward(ids), ids)
        loss.backward()
        opt.step()
        opt.clear_grad()
        return float(loss)

    return step, dist.barrier


# ---- PyTorch -----------------------------------------------------------------------------------------------------------

def torch_layers(sizes):
    from torch import nn
    h, heads, words = sizes["hidden"], sizes["heads"], sizes["vocabulary"]

    class Table(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(words, h), nn.Embedding(sizes["sequence"], h)

        def forward(self, x):
            return self.words(x) + self.places.weight

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm_a, self.norm_b = nn.LayerNorm(h), nn.LayerNorm(h)
            self.qkv, self.out, self.up, self.down = nn.Linear(h, 3 * h), nn.Linear(h, h), nn.Linear(h, 4 * h), nn.Linear(4 * h, h)

        def forward(self, x):
            rows, length, _ = x.shape
            q, k, v = self.qkv(self.norm_a(x)).view(rows, length, -1, 3 * h // heads).transpose(1, 2).chunk(3, -1)
            mixed = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(mixed.transpose(1, 2).reshape(rows, length, -1))
            return x + self.down(nn.functional.gelu(self.up(self.norm_b(x))))

    class Head(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm, self.linear = nn.LayerNorm(h), nn.Linear(h, words)

        def forward(self, x):
            return self.linear(self.norm(x).flatten(0, 1))  # pipelining refuses results that are views

    return [Table(), *[Block() for _ in range(sizes["layers"])], Head()]


def torch_loss(logits, labels):
    from torch.nn import functional as F
    return F.cross_entropy(logits.reshape(-1, logits.shape[-1]), labels.reshape(-1))


def divide_tensors(layers, mesh):
    """Tensor parallelism by DTensor."""
    from torch.distributed.tensor import Replicate
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    for block in layers[1:-1]:
        parallelize_module(block, mesh, {"qkv": ColwiseParallel(), "out": RowwiseParallel(), "up": ColwiseParallel(),
                                         "down": RowwiseParallel()})
    parallelize_module(layers[-1], mesh, {"linear": ColwiseParallel(output_layouts=Replicate())})


def let_fsdp2_run_on_cpus():
    """In PyTorch 2.6 two methods of CPU streams are missing (a call on a CPU is done when it returns), and copying gathered parameters
    counts as a change of what backward needs."""
    import torch
    from torch.distributed.fsdp._fully_shard import _fsdp_param_group as groups
    stream = torch.cpu.Stream
    if hasattr(stream, "record_event"):
        return
    stream.record_event, stream.wait_event = lambda self, event=None: torch.cpu.Event(), lambda self, event: None
    copy_out = groups.foreach_all_gather_copy_out

    def uncounted(result, params, group):
        with contextlib.ExitStack() as versions:
            for tensor in (t for p in params for t in p.all_gather_outputs):
                versions.enter_context(torch.autograd._unsafe_preserve_version_counter(tensor))
            copy_out(result, params, group)

    groups.foreach_all_gather_copy_out = uncounted


def shard(net, mesh, again):
    """FSDP2, a group of parameters for each layer. again: parameters are gathered again in backward."""
    from torch.distributed.fsdp import fully_shard
    let_fsdp2_run_on_cpus()
    for layer in net:
        fully_shard(layer, mesh=mesh, reshard_after_forward=again)
    fully_shard(net, mesh=mesh, reshard_after_forward=again)


def optimizers_of(parameters):
    """Adam for DTensors, and for others: one call takes one kind."""
    import torch
    from torch.distributed.tensor import DTensor
    kinds = [[p for p in parameters if isinstance(p, DTensor) == kind] for kind in (False, True)]
    return [torch.optim.Adam(kind, 1e-3, fused=True) for kind in kinds if kind]


class _All:
    """Calls that are waited for together."""

    def __init__(self, works):
        self.works = works

    def wait(self):
        for work in self.works:
            work.wait()


def pipeline_of(layers, rank, ranks):
    """(this rank's layers, a call on the step's rows that runs 1F1B and returns the last stage's loss)"""
    import torch
    import torch.distributed as dist
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B, schedules
    # 2.6 keeps the last of several calls alone, which stands for all over NCCL; over Gloo a send that nobody keeps is lost
    schedules._batch_p2p = lambda ops, desc=None: _All(dist.batch_isend_irecv(ops)) if ops else None
    each = (len(layers) - 2) // ranks
    begin, end = 1 + rank * each, 1 + (rank + 1) * each
    own = torch.nn.Sequential(*layers[begin if rank else 0:end if rank < ranks - 1 else len(layers)])
    schedule = Schedule1F1B(PipelineStage(own, rank, ranks, torch.device("cpu")), MICRO, loss_fn=torch_loss)

    def run(ids):
        losses = []
        inputs = () if rank else (ids,)
        schedule.step(*inputs, **({"target": ids, "losses": losses} if rank == ranks - 1 else {}))
        return sum(map(float, losses)) / MICRO if losses else None

    return own, run


def torch_step(job, ranks, sizes):
    """(a step that returns the loss if this rank has it, barrier)"""
    import torch
    import torch.distributed as dist
    from torch.distributed.device_mesh import init_device_mesh
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(1)
    mesh, layers = init_device_mesh("cpu", (ranks,)), torch_layers(sizes)
    net, pipeline = torch.nn.Sequential(*layers), None
    if job == "pipe":
        net, pipeline = pipeline_of(layers, dist.get_rank(), ranks)
    elif job == "model":
        divide_tensors(layers, mesh)
    elif job != ALONE:
        shard(net, mesh, job.endswith("3"))
    parameters = list(net.parameters())
    opts = optimizers_of(parameters[dist.get_rank()::ranks] if job == ALONE else parameters)
    ids = torch.randint(0, sizes["vocabulary"], (rows_of(job, ranks), sizes["sequence"]))

    def step():
        if pipeline:
            loss = pipeline(ids)
        else:
            loss = torch_loss(net(ids), ids)
            loss.backward()
            loss = float(loss)
        for opt in opts:
            opt.step()
        for p in parameters:
            p.grad = None
        return loss

    return step, dist.barrier


# ---- jobs --------------------------------------------------------------------------------------------------------------

def rank(options):
    """Rank 0 writes the median of its steps' seconds."""
    make = proa_step if options.kind == "proa" else torch_step
    step, barrier = make(options.job, int(options.ranks), QUICK if options.quick else SIZES)
    took, losses = [], []
    for _ in range(options.steps + 2):
        barrier()
        begin = time.perf_counter()
        losses.append(step())
        barrier()
        took.append(time.perf_counter() - begin)
    if losses[0] is not None and not losses[-1] < losses[0]:
        raise SystemExit(f"parallel.py: {options.kind}, {options.job}: the loss went from {losses[0]} to {losses[-1]}")
    if os.environ["RANK"] == "0":
        with open(options.out, "w") as f:
            json.dump(statistics.median(took[2:]), f)


def measure(options, ranks):
    """Median seconds by framework and job."""
    took = {}
    words = ["--steps", str(options.steps), *(["--quick"] if options.quick else [])]
    pythons = {"proa": sys.executable, **({"torch": options.torch} if options.torch else {})}
    for _ in range(options.rounds):
        for job in (ALONE, *JOBS):
            for kind, python in pythons.items():
                seconds = processes.run(python, __file__, kind, ranks, "--job", job, *words)
                took.setdefault((kind, job), []).append(seconds)
    return {key: statistics.median(each) for key, each in took.items()}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--ranks", default="2,4")
    p.add_argument("--torch", default="")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--steps", type=int, default=9)
    p.add_argument("--quick", action="store_true")
    p.add_argument("--as", dest="kind", choices=["proa", "torch"])
    p.add_argument("--job", choices=[ALONE, *JOBS])
    p.add_argument("--out")
    options = p.parse_args()
    if options.quick:
        options.rounds, options.steps = 1, min(options.steps, 3)
    if options.kind:
        return rank(options)
    print("ranks | step | Proa, ms | PyTorch + Gloo, ms | ratio | exposed, Proa | exposed, PyTorch\n---|---|---|---|---|---|---")
    for ranks in map(int, options.ranks.split(",")):
        took = measure(options, ranks)
        for job in (ALONE, *JOBS):
            ours, theirs = took["proa", job], took.get(("torch", job))
            exposed = [f"{1 - took[kind, ALONE] / took[kind, job]:.0%}" if (kind, job) in took and job != ALONE else "–"
                       for kind in ("proa", "torch")]
            other = f"{theirs * 1e3:.1f} | {theirs / ours:.2f}" if theirs else "– | –"
            print(f"{ranks} | {job} | {ours * 1e3:.1f} | {other} | {' | '.join(exposed)}", flush=True)
    return None


if __name__ == "__main__":
    main()
