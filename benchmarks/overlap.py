"""Communication hidden behind backward over a slow link: a step of DataParallel on Proa, and of torch's DistributedDataParallel
beside it, between two network namespaces whose link carries 1 Gbit/s (tc tbf). Needs root.

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


def median_of(run, times):
    run()
    took = []
    for _ in range(times):
        begin = time.perf_counter()
        run()
        took.append(time.perf_counter() - begin)
    return sorted(took)[times // 2]


class Proa:
    def __init__(self, batch):
        import proa as paddle
        from proa import _core
        self.core, self.dist = _core, paddle.distributed
        self.dist.init_parallel_env()
        net = paddle.nn.Sequential(*[paddle.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)])
        self.parameters, self.model, self.x = net.parameters(), paddle.DataParallel(net), paddle.randn([batch, WIDTH])
        self.flat = [paddle.zeros([sum(p.size for p in self.parameters) // 2]) for _ in range(2)]

    def clear(self):
        for p in self.parameters:
            p.clear_gradient()

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
        compute = merged(spans(lambda e: e["cat"] == "op"))
        sent = spans(lambda e: e["name"] == "all_reduce" and e["cat"] != "op")
        hidden = sum(max(0, min(b, d) - max(a, c)) for a, b in sent for c, d in compute)
        return hidden / sum(b - a for a, b in sent), trace


class Torch:
    def __init__(self, batch):
        import torch
        import torch.distributed as dist
        torch.set_num_threads(1)
        self.dist = dist
        dist.init_process_group("gloo")
        net = torch.nn.Sequential(*[torch.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)])
        self.parameters = list(net.parameters())
        self.model, self.x = torch.nn.parallel.DistributedDataParallel(net), torch.randn(batch, WIDTH)
        self.flat = [torch.zeros(sum(p.numel() for p in self.parameters) // 2) for _ in range(2)]

    def clear(self):
        for p in self.parameters:
            p.grad = None

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


def rank(kind, batch, out):
    it = {"proa": Proa, "torch": Torch}[kind](batch)

    def step():
        it.clear()
        it.model(it.x).mean().backward()

    def quiet():
        with it.model.no_sync():
            step()

    for _ in range(3):  # buckets are rebuilt
        step()
    alone = median_of(lambda: [it.all_reduce(f) for f in it.flat], 5)
    without, exchanged = [], []
    for _ in range(3):
        it.dist.barrier()
        without.append(median_of(quiet, 5))
        it.dist.barrier()
        exchanged.append(median_of(step, 5))
    hidden, trace = it.traced(step)
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


def run(python, kind, batch):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out.json")
        env = {**os.environ, "OMP_NUM_THREADS": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "10.77.0.1", "MASTER_PORT": "7411",
               "PROA_SHM": "0", "PROA_INTERFACE": "eth0", "GLOO_SOCKET_IFNAME": "eth0"}
        ranks = [subprocess.Popen(["ip", "netns", "exec", f"r{r}", python, __file__, "--as", kind, "--batch", str(batch), "--out", out],
                                  env={**env, "RANK": str(r)}) for r in (0, 1)]
        if any([r.wait() for r in ranks]):
            raise SystemExit(f"overlap.py: a rank of {kind} failed")
        with open(out) as f:
            return json.load(f)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--torch", default="")
    p.add_argument("--batch", type=int, default=2048)
    p.add_argument("--trace", help="where Proa's trace of a step goes")
    p.add_argument("--as", dest="kind", choices=["proa", "torch"])
    p.add_argument("--out")
    options = p.parse_args()
    if options.kind:
        return rank(options.kind, options.batch, options.out)
    if INSIDE not in os.environ:
        os.environ[INSIDE] = "1"
        os.execvp("unshare", ["unshare", "--mount", "--net", "--propagation", "private", sys.executable, *sys.argv])
    make_link()
    print(f"{LAYERS} layers of {WIDTH} x {WIDTH}, {options.batch} rows, 2 ranks, {RATE}; seconds\n"
          "framework | step without exchange | with | exchange alone | hidden | hidden in the trace\n---|---|---|---|---|---")
    for kind, python in (("proa", sys.executable), ("torch", options.torch)):
        if not python:
            continue
        r = run(python, kind, options.batch)
        in_trace = f"{r['in_trace']:.0%}" if r["in_trace"] is not None else "–"
        print(f"{kind} | {r['without']:.3f} | {r['with']:.3f} | {r['alone']:.3f} | {r['hidden']:.0%} | {in_trace}", flush=True)
        if options.trace and r["trace"]:
            with open(options.trace, "w") as f:
                json.dump(r["trace"], f)
    return None


if __name__ == "__main__":
    main()
