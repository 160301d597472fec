"""Communication hidden behind backward over a slow link: a step of data parallelism on Proa (DataParallel; DataParallel of a
to_static layer; a static program whose gradients GradAllReduce averages), and of torch's DistributedDataParallel beside it, between
two network namespaces whose link carries 1 Gbit/s (tc tbf). Needs root. Rows marked "waiting": FLAGS_passes=-overlap.

    benchmarks/overlap.py [--torch PYTHON] [--batch ROWS] [--trace FILE]

exposed: a step with exchange less one without (no_sync). alone: the same bytes averaged with nothing beside. hidden: 1 - exposed /
alone. In Proa's trace: the part of the time of all_reduce in which an op of backward ran, too."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

LAYERS, WIDTH, RATE = 12, 1024, "1gbit"
INSIDE = "PROA_OVERLAP_INSIDE"
ENDPOINTS = ["10.77.0.1:7412", "10.77.0.2:7412"]


def median_of(run, times):
    run()
    took = []
    for _ in range(times):
        begin = time.perf_counter()
        run()
        took.append(time.perf_counter() - begin)
    return sorted(took)[times // 2]


class Proa:
    """Modes: eager, to_static, static."""

    def __init__(self, batch, mode):
        import proa as paddle
        from proa import _core
        self.paddle, self.core, self.dist, self.batch = paddle, _core, paddle.distributed, batch
        self.dist.init_parallel_env()
        self.flat = [paddle.zeros([LAYERS * (WIDTH * WIDTH + WIDTH) // 2]) for _ in range(2)]
        self.step, self.quiet = self.static_steps() if mode == "static" else self.layer_steps(mode)

    def net(self):
        return self.paddle.nn.Sequential(*[self.paddle.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)])

    def layer_steps(self, mode):
        net = self.net()
        called = self.paddle.jit.to_static(net, full_graph=True) if mode == "to_static" else net
        model, x = self.paddle.DataParallel(called), self.paddle.randn([self.batch, WIDTH])

        def step():
            for p in net.parameters():
                p.clear_gradient()
            model(x).mean().backward()

        def quiet():
            with model.no_sync():
                step()
        return step, quiet

    def static_steps(self):
        import numpy as np
        from proa.fluid.transpiler.collective import GradAllReduce
        static = self.paddle.static
        self.paddle.enable_static()
        exe, feed, steps = static.Executor(), {"x": np.random.rand(self.batch, WIDTH).astype("float32")}, []
        for exchanges in (True, False):
            main, startup = static.Program(), static.Program()
            with static.program_guard(main, startup), self.paddle.utils.unique_name.guard():
                loss = self.net()(static.data("x", [None, WIDTH])).mean()
                self.paddle.optimizer.SGD(1e-6).minimize(loss)
            if exchanges:
                GradAllReduce().transpile(startup, main, self.dist.get_rank(), ENDPOINTS, ENDPOINTS[self.dist.get_rank()])
            exe.run(startup)
            steps.append(lambda main=main, loss=loss: exe.run(main, feed, [loss]))
        self.paddle.disable_static()
        return steps

    def all_reduce(self, flat):
        self.dist.all_reduce(flat)

    def traced(self, step):
        """(share of all_reduce's time beside an op of backward, in a recorded step; the trace)."""
        self.core.profile_start()
        step()
        self.core.profile_stop()
        with tempfile.NamedTemporaryFile() as file:
            self.core.profile_write_trace(file.name)
            trace = json.load(open(file.name))
        events = [e for e in trace["traceEvents"] if e.get("ph") == "X"]
        spans = lambda keep: [(e["ts"], e["ts"] + e["dur"]) for e in events if keep(e)]
        compute = merged(spans(lambda e: e["cat"] == "op" and e["name"] != "all_reduce"))
        sent = spans(lambda e: e["name"] == "all_reduce")  # of a thread, or a program's step that waits
        hidden = sum(max(0, min(b, d) - max(a, c)) for a, b in sent for c, d in compute)
        return hidden / sum(b - a for a, b in sent), trace


class Torch:
    def __init__(self, batch, mode):
        import torch
        import torch.distributed as dist
        torch.set_num_threads(1)
        self.dist = dist
        dist.init_process_group("gloo")
        net = torch.nn.Sequential(*[torch.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)])
        self.parameters = list(net.parameters())
        self.model, self.x = torch.nn.parallel.DistributedDataParallel(net), torch.randn(batch, WIDTH)
        self.flat = [torch.zeros(sum(p.numel() for p in self.parameters) // 2) for _ in range(2)]

    def step(self):
        for p in self.parameters:
            p.grad = None
        self.model(self.x).mean().backward()

    def quiet(self):
        with self.model.no_sync():
            self.step()

    def all_reduce(self, flat):
        self.dist.all_reduce(flat)

    def traced(self, step):
        return None, None


def merged(spans):
    out = []
    for a, b in sorted(spans):
        if out and a <= out[-1][1]:
            out[-1] = (out[-1][0], max(b, out[-1][1]))
        else:
            out.append((a, b))
    return out


def rank(kind, mode, batch, out):
    it = {"proa": Proa, "torch": Torch}[kind](batch, mode)
    for _ in range(3):  # buckets are rebuilt
        it.step()
    alone = median_of(lambda: [it.all_reduce(f) for f in it.flat], 5)
    without, exchanged = [], []
    for _ in range(3):
        it.dist.barrier()
        without.append(median_of(it.quiet, 5))
        it.dist.barrier()
        exchanged.append(median_of(it.step, 5))
    hidden, trace = it.traced(it.step)
    it.dist.barrier()
    if it.dist.get_rank() == 0:
        exposed = sorted(exchanged)[1] - sorted(without)[1]
        with open(out, "w") as f:
            json.dump({"without": sorted(without)[1], "with": sorted(exchanged)[1], "alone": alone, "hidden": 1 - exposed / alone,
                       "in_trace": hidden, "trace": trace}, f)


def make_link():
    commands = ["mkdir -p /run/netns", "mount -t tmpfs none /run/netns", "ip netns add r0", "ip netns add r1",
                "ip -n r0 link add eth0 type veth peer name eth0 netns r1"]
    for r in (0, 1):
        commands += [f"ip -n r{r} addr add 10.77.0.{r + 1}/24 dev eth0", f"ip -n r{r} link set eth0 up", f"ip -n r{r} link set lo up",
                     f"tc -n r{r} qdisc add dev eth0 root tbf rate {RATE} burst 512kb latency 100ms"]
    for command in commands:
        subprocess.run(command.split(), check=True)


def run(python, kind, mode, flags, batch):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out.json")
        env = {**os.environ, **flags, "OMP_NUM_THREADS": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "10.77.0.1", "MASTER_PORT": "7411",
               "PADDLE_TRAINER_ENDPOINTS": ",".join(ENDPOINTS), "PROA_SHM": "0", "PROA_INTERFACE": "eth0", "GLOO_SOCKET_IFNAME": "eth0"}
        ranks = [subprocess.Popen(["ip", "netns", "exec", f"r{r}", python, __file__, "--as", kind, "--mode", mode, "--batch", str(batch), "--out", out],
                                  env={**env, "RANK": str(r)}) for r in (0, 1)]
        if any([r.wait() for r in ranks]):
            raise SystemExit(f"overlap.py: a rank of {kind} failed")
        with open(out) as f:
            return json.load(f)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--torch", default="")
    p.add_argument("--batch", type=int, default=2048)
    p.add_argument("--trace", help="where Proa's traces of a step go: FILE.eager, FILE.to_static, FILE.static")
    p.add_argument("--as", dest="kind", choices=["proa", "torch"])
    p.add_argument("--mode", default="eager", choices=["eager", "to_static", "static"])
    p.add_argument("--out")
    options = p.parse_args()
    if options.kind:
        return rank(options.kind, options.mode, options.batch, options.out)
    if INSIDE not in os.environ:
        os.environ[INSIDE] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--net", "--propagation", "private", sys.executable, *sys.argv])
    make_link()
    print(f"{LAYERS} layers of {WIDTH} x {WIDTH}, {options.batch} rows, 2 ranks, {RATE}; seconds\n"
          "framework | step without exchange | with | exchange alone | hidden | hidden in the trace\n---|---|---|---|---|---")
    waits = {"FLAGS_passes": "-overlap"}
    rows = [("eager", "proa", "eager", {}), ("to_static", "proa", "to_static", {}), ("to_static, waiting", "proa", "to_static", waits),
            ("static", "proa", "static", {}), ("static, waiting", "proa", "static", waits), ("torch", "torch", "eager", {})]
    for name, kind, mode, flags in rows:
        python = sys.executable if kind == "proa" else options.torch
        if not python:
            continue
        r = run(python, kind, mode, flags, options.batch)
        in_trace = f"{r['in_trace']:.0%}" if r["in_trace"] is not None else "–"
        print(f"{name} | {r['without']:.3f} | {r['with']:.3f} | {r['alone']:.3f} | {r['hidden']:.0%} | {in_trace}", flush=True)
        if options.trace and r["trace"] and not flags:
            with open(f"{options.trace}.{mode}", "w") as f:
                json.dump(r["trace"], f)
    return None


if __name__ == "__main__":
    main()
