"""`proa plan` beside measured training steps on this host: step times and memory of a rank of a small GPT under data, tensor,
pipeline and sharded parallelism, at 2, 4 and 8 ranks. A few minutes, on a quiet machine.

    benchmarks/forecast.py [--ranks 2,4,8] [--steps N] [--memory] [--json FILE]

Speeds are measured, none is fitted to a parallel step: products and memory by a step of one replica on each core at once, without
messages, before and after each job, as a machine's speed drifts; the link by all-reduces of the job's ranks. Prints a table; exits with 1 where a step is off by more than 15 %, or memory
by more than 5 %. --memory compares memory alone, for which the machine need not be quiet."""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve()
SIZES = {"layers": 8, "hidden": 256, "heads": 4, "vocabulary": 1024, "sequence": 128}
ROWS, MICRO = 16, 4  # of a step over all ranks; micro-batches of a pipeline
CORES = len(os.sched_getaffinity(0))
JOBS = {2: ["data=2", "model=2", "pipe=2", "sharding=2", "sharding=2,stage=2", "sharding=2,stage=3"],
        4: ["data=4", "pipe=4", "model=2,pipe=2", "data=2,pipe=2"],
        8: ["data=2,model=2,pipe=2", "data=8", "pipe=8"]}
TIME, MEMORY = 0.15, 0.05
ALONE = "alone"


# ---- a rank ---------------------------------------------------------------------------------------------------------

def net_of(divided):
    """The model of docs/plan.md's table as pieces of a pipeline, with dropout where its bytes count masks."""
    from proa import nn
    from proa.distributed.fleet.meta_parallel import ColumnParallelLinear, LayerDesc, RowParallelLinear, SharedLayerDesc, VocabParallelEmbedding
    import proa as paddle
    h, heads = SIZES["hidden"], SIZES["heads"]

    def column(out):
        return ColumnParallelLinear(h, out, has_bias=True, gather_output=False) if divided else nn.Linear(h, out)

    def row(inside):
        return RowParallelLinear(inside, h, input_is_parallel=True) if divided else nn.Linear(inside, h)

    class Table(nn.Layer):
        def __init__(self):
            super().__init__()
            self.inner = VocabParallelEmbedding(SIZES["vocabulary"], h) if divided else nn.Embedding(SIZES["vocabulary"], h)
            self.weight = self.inner.weight

        def forward(self, x):
            return self.inner(x)

    class Position(nn.Layer):
        def __init__(self):
            super().__init__()
            self.weight, self.drop = self.create_parameter([SIZES["sequence"], h]), nn.Dropout(0.1)

        def forward(self, x):
            return self.drop(x + self.weight)

    class Block(nn.Layer):
        def __init__(self):
            super().__init__()
            self.norm_a, self.norm_b = nn.LayerNorm(h), nn.LayerNorm(h)
            self.qkv, self.out, self.up, self.down = column(3 * h), row(h), column(4 * h), row(4 * h)
            self.drop = nn.Dropout(0.1)

        def forward(self, x):
            rows, s, _ = x.shape
            q, k, v = paddle.split(self.qkv(self.norm_a(x)).reshape([rows, s, -1, 3 * h // heads]).transpose([0, 2, 1, 3]), 3, -1)
            weights = nn.functional.softmax(paddle.matmul(q, k, transpose_y=True) * (h // heads) ** -0.5)
            mixed = paddle.matmul(self.drop(weights), v).transpose([0, 2, 1, 3]).reshape([rows, s, -1])
            x = x + self.drop(self.out(mixed))
            return x + self.drop(self.down(nn.functional.gelu(self.up(self.norm_b(x)))))

    def scores(table, x):
        from proa.distributed import fleet
        if divided:
            x = paddle._core.mp_identity(x, group=fleet.get_hybrid_communicate_group().get_model_parallel_group().id)
        return paddle.matmul(x, table.weight, transpose_y=True)

    return [SharedLayerDesc("table", Table, None, "weight"), LayerDesc(Position), *[LayerDesc(Block)] * SIZES["layers"],
            LayerDesc(nn.LayerNorm, h), SharedLayerDesc("table", Table, scores, "weight")]


def loss_of(divided):
    from proa import nn
    from proa.distributed.fleet.meta_parallel import ParallelCrossEntropy
    if divided:
        cross = ParallelCrossEntropy()
        return lambda logits, labels: cross(logits, labels.unsqueeze(-1)).mean()
    return lambda logits, labels: nn.functional.cross_entropy(logits.reshape([-1, logits.shape[-1]]), labels.reshape([-1]))


def degrees_of(text):
    found = {"data": 1, "pipe": 1, "sharding": 1, "model": 1, "stage": 1}
    found.update((name, int(n)) for name, n in (pair.split("=") for pair in text.split(",")) if text != ALONE)
    return found


def build(job):
    """(a step on a rank's rows, its optimizer's step alone, how it is joined to others)."""
    import proa as paddle
    from proa import nn
    from proa.distributed import fleet
    from proa.distributed.fleet.meta_parallel import PipelineLayer
    from proa.distributed.sharding.group_sharded import LEVELS, group_sharded_parallel
    degrees = degrees_of(job) if job != ALONE else degrees_of("data=1")
    divided, rows = degrees["model"] > 1, ROWS // degrees["data"] // degrees["sharding"]
    if job == ALONE:
        loss_fn = loss_of(False)
        pieces = [d.build_layer() for d in net_of(False)[:-1]]
        net = nn.LayerList(pieces)
        opt = paddle.optimizer.Adam(1e-4, parameters=net.parameters())
        rows = ROWS // CORES

        def forward(x):
            for piece in pieces:
                x = piece(x)
            return paddle.matmul(x, pieces[0].weight, transpose_y=True)
    else:
        strategy = fleet.DistributedStrategy()
        names = {"data": "dp", "pipe": "pp", "sharding": "sharding", "model": "mp"}
        strategy.hybrid_configs = {f"{names[axis]}_degree": degrees[axis] for axis in names}
        strategy.pipeline_configs = {"accumulate_steps": MICRO, "micro_batch_size": max(1, rows // MICRO)}
        fleet.init(is_collective=True, strategy=strategy)
        hcg, loss_fn = fleet.get_hybrid_communicate_group(), loss_of(divided)  # its group is the topology's
        if degrees["pipe"] > 1:
            net = PipelineLayer(net_of(divided), topology=hcg.topology(), loss_fn=loss_fn, seg_method="layer:Block")
        else:
            pieces = [d.build_layer() for d in net_of(divided)[:-1]]
            table, last = pieces[0], net_of(divided)[-1].forward_func

            class Whole(nn.Layer):
                def __init__(self):
                    super().__init__()
                    self.pieces = nn.LayerList(pieces)

                def forward(self, x):
                    for piece in pieces:
                        x = piece(x)
                    return last(table, x)
            net = Whole()
        opt = paddle.optimizer.Adam(1e-4, parameters=net.parameters())
        if degrees["stage"] > 1:
            forward, opt, _ = group_sharded_parallel(net, opt, LEVELS[degrees["stage"] - 1], segment_size=SIZES["hidden"],
                                                     group=hcg.get_sharding_parallel_group())
        else:
            forward = model = fleet.distributed_model(net)
            opt = fleet.distributed_optimizer(opt)
    ids = paddle.randint(0, SIZES["vocabulary"], [rows, SIZES["sequence"]])

    def step():
        if degrees["pipe"] > 1:
            model.train_batch([ids, ids], opt)
            return
        loss_fn(forward(ids), ids).backward()
        opt.step()
        opt.clear_grad()

    def backward():
        loss_fn(forward(ids), ids).backward()

    def update():
        opt.step()
        opt.clear_grad()

    return step, backward, update


def timed(call, steps):
    import proa.distributed as dist
    took = []
    for i in range(steps + 2):
        dist.barrier()
        begin = time.perf_counter()
        call()
        dist.barrier()
        if i >= 2:
            took.append(time.perf_counter() - begin)
    return statistics.median(took)


def all_reduce(elements, times=9):
    import proa as paddle
    import proa.distributed as dist
    x = paddle.zeros([elements])
    return timed(lambda: [dist.all_reduce(x) for _ in range(4)], times) / 4


def rank(job, steps, out):
    import proa.distributed as dist
    from proa import _core
    dist.init_parallel_env()
    result = {"small": all_reduce(1 << 8), "large": all_reduce(1 << 20)}
    before = _core.live_bytes()
    step, backward, update = build(job)
    if job == ALONE:
        took = {"backward": [], "update": []}
        for _ in range(steps + 2):
            for name, call in (("backward", backward), ("update", update)):
                dist.barrier()
                begin = time.perf_counter()
                call()
                took[name].append(time.perf_counter() - begin)
        result.update({name: statistics.median(times[2:]) for name, times in took.items()})
    else:
        result["step"] = timed(step, steps)
        _core.peak_bytes(True)
        step()
        held = []
        dist.all_gather_object(held, _core.peak_bytes(False) - before)
        result["memory"] = max(held)
    if dist.get_rank() == 0:
        with open(out, "w") as f:
            json.dump(result, f)


# ---- jobs and predictions -------------------------------------------------------------------------------------------

def measure(ranks, job, steps):
    with tempfile.TemporaryDirectory(prefix="proa_forecast_") as folder:
        out = os.path.join(folder, "out.json")
        run = subprocess.run([sys.executable, "-m", "proa.distributed.launch", "--nproc_per_node", str(ranks), "--log_dir", f"{folder}/log",
                              str(HERE), "--as", job, "--steps", str(steps), "--out", out], check=False, text=True, capture_output=True,
                             env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore"})
        if run.returncode:
            raise SystemExit(f"forecast.py: {job} of {ranks} ranks failed:\n{run.stdout}\n{run.stderr}")
        with open(out) as f:
            return json.load(f)


def plan(ranks, job, rows, machine):
    """proa plan's row."""
    build_folder = pathlib.Path(os.environ.get("PROA_BUILD", HERE.parents[1] / "build"))
    degrees = degrees_of(job)
    micro = MICRO if degrees["pipe"] > 1 else 1
    each = rows // degrees["data"] // degrees["sharding"] // micro
    words = [build_folder / "bin/proa", "plan", "--model", "gpt:" + ",".join(f"{k}={v}" for k, v in SIZES.items()), "--ranks", ranks,
             "--batch", rows, "--degrees", f"{job},micro_batch={each}", "--host-ranks", ranks, "--host-cores", CORES, "--json"]
    for name, value in machine.items():
        words += [f"--{name}", value]
    run = subprocess.run([str(w) for w in words], check=False, text=True, capture_output=True)
    if run.returncode:
        raise SystemExit(f"forecast.py: {run.stderr}")
    return json.loads(run.stdout)["rows"][0]


def speeds(steps):
    """Products and memory of a rank while all cores compute: the optimizer's time gives the bandwidth, the rest of a step the products."""
    took = measure(CORES, ALONE, steps)
    rows = ROWS // CORES
    unit = plan(1, "data=1", rows, {"flops": 1e12, "memory-bandwidth": 1e12})
    bandwidth = unit["update"] * 1e12 / took["update"]
    free = plan(1, "data=1", rows, {"flops": 1e12, "memory-bandwidth": 1e30})
    traffic = (unit["pipeline"] - free["pipeline"]) * 1e12  # bytes of memory-bound ops
    left = took["backward"] - traffic / bandwidth
    if left <= 0:
        raise SystemExit("forecast.py: memory-bound ops take the whole step at the optimizer's bandwidth; measure on a quiet machine")
    return {"flops": free["pipeline"] * 1e12 / left, "memory-bandwidth": bandwidth}


def link(ranks, took):
    """Bandwidth and latency of a ring from all-reduces of two sizes."""
    rounds = 2 * (ranks - 1)
    bandwidth = rounds * 4 * ((1 << 20) - (1 << 8)) / ranks / max(1e-9, took["large"] - took["small"])
    return f"{bandwidth:.6g},{max(0, took['small'] / rounds - 4 * (1 << 8) / ranks / bandwidth):.6g}"


def memory_of(ranks, job):
    """(predicted, measured) bytes of the rank that needs most."""
    return plan(ranks, job, ROWS, {"flops": 1e12})["memory"], measure(ranks, job, 1)["memory"]


def compare_memory(counts):
    """Prints a table; whether a job is off by more than MEMORY."""
    bad = 0
    print("ranks | degrees | memory, predicted | measured | off\n---|---|---|---|---")
    for ranks in counts:
        for job in JOBS[ranks]:
            want, took = memory_of(ranks, job)
            bad += abs(want / took - 1) > MEMORY
            print(f"{ranks} | {job} | {want / 1e6:.1f} MB | {took / 1e6:.1f} MB | {want / took - 1:+.1%}", flush=True)
    return bad > 0


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--ranks", default="2,4,8")
    p.add_argument("--steps", type=int, default=9)
    p.add_argument("--memory", action="store_true")
    p.add_argument("--json")
    p.add_argument("--as", dest="job")
    p.add_argument("--out")
    options = p.parse_args()
    if options.job:
        return rank(options.job, options.steps, options.out)
    if options.memory:
        return compare_memory(map(int, options.ranks.split(",")))
    print(f"{CORES} cores\nranks | degrees | products, GFLOP/s | memory, GB/s | step, predicted | measured | off | memory, predicted | measured | off\n"
          "---|---|---|---|---|---|---|---|---|---")
    bad, found, before = 0, [], speeds(options.steps)
    for ranks in map(int, options.ranks.split(",")):
        for job in JOBS[ranks]:
            took, after = measure(ranks, job, options.steps), speeds(options.steps)
            machine = {name: statistics.harmonic_mean([before[name], after[name]]) for name in before}
            want, before = plan(ranks, job, ROWS, {**machine, "link": link(ranks, took)}), after
            late, more = want["step"] / took["step"] - 1, want["memory"] / took["memory"] - 1
            bad += abs(late) > TIME or abs(more) > MEMORY
            found.append({"ranks": ranks, "job": job, "machine": machine, "predicted": want, "measured": took})
            print(f"{ranks} | {job} | {machine['flops'] / 1e9:.1f} | {machine['memory-bandwidth'] / 1e9:.1f} | {want['step'] * 1e3:.0f} ms | {took['step'] * 1e3:.0f} ms | {late:+.0%} | {want['memory'] / 1e6:.1f} MB | "
                  f"{took['memory'] / 1e6:.1f} MB | {more:+.0%}", flush=True)
    if options.json:
        with open(options.json, "w") as f:
            json.dump(found, f)
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
