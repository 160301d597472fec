"""Collectives of several processes on this host, Proa beside torch.distributed's Gloo in one run: milliseconds of one call, by
call and bytes of a rank's tensor, and how many times as quick Proa is.

    benchmarks/dist.py [--ranks 2,4] [--torch PYTHON] [--largest BYTES]

The two take turns, one job after the other; a figure is the median of five stretches of calls between barriers."""
import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time

SIZES = [1 << k for k in range(10, 29, 3)]  # 1 KiB to 256 MiB
CALLS = ("all_reduce", "broadcast", "all_gather", "reduce_scatter")


def measure(call, synchronize, size):
    repeat = max(2, min(200, (32 << 20) // size))
    call()
    times = []
    for _ in range(5):
        synchronize()
        begin = time.perf_counter()
        for _ in range(repeat):
            call()
        times.append((time.perf_counter() - begin) / repeat)
    return sorted(times)[2]


def calls_of(dist, zeros, n, ranks, into):
    """name -> a call on n float32 elements of this rank; into: torch's names of calls on whole tensors."""
    x, part = zeros(n), zeros(max(1, n // ranks))
    return {"all_reduce": lambda: dist.all_reduce(x), "broadcast": lambda: dist.broadcast(x, 0),
            "all_gather": lambda: into[0](x[:part.shape[0] * ranks], part),
            "reduce_scatter": lambda: into[1](part, x[:part.shape[0] * ranks])}


def proa_calls(n, ranks):
    import proa as paddle
    import proa.distributed as dist
    return calls_of(dist, lambda k: paddle.zeros([k]), n, ranks, (dist.all_gather, dist.reduce_scatter)), dist.barrier


def torch_calls(n, ranks):
    import torch
    import torch.distributed as dist
    chunks = lambda whole: list(whole.chunk(ranks))
    gather = lambda out, part: dist.all_gather(chunks(out), part)

    def scatter(part, whole):  # Gloo has none: what PyTorch's users do instead
        dist.all_reduce(whole)
        part.copy_(chunks(whole)[dist.get_rank()])

    return calls_of(dist, torch.zeros, n, ranks, (gather, scatter)), dist.barrier


def rank(kind, ranks, largest, out):
    if kind == "proa":
        import proa.distributed as dist
        dist.init_parallel_env()
    else:
        import torch
        import torch.distributed as dist
        torch.set_num_threads(1)
        dist.init_process_group("gloo")
    result = []
    for size in [s for s in SIZES if s <= largest]:
        calls, synchronize = (proa_calls if kind == "proa" else torch_calls)(size // 4, ranks)
        result += [(name, size, measure(calls[name], synchronize, size)) for name in CALLS]
    if dist.get_rank() == 0:
        with open(out, "w") as f:
            json.dump(result, f)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run(python, script, kind, ranks, *words):
    """The result that rank 0 of a script's job on one framework writes to its --out."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out.json")
        store = {"PROA_STORE": f"tcp://127.0.0.1:{port}", "PROA_SIZE": str(ranks)} if kind == "proa" else {}
        children = [subprocess.Popen([python, script, "--as", kind, "--ranks", str(ranks), "--out", out, *words],
                                     env={**os.environ, "OMP_NUM_THREADS": "1", "RANK": str(r), "PROA_RANK": str(r),
                                          "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1",
                                          "MASTER_PORT": str(port), **store}) for r in range(ranks)]
        if any([c.wait() for c in children]):
            raise SystemExit(f"{os.path.basename(script)}: a rank of {kind} failed: {' '.join(words)}")
        with open(out) as f:
            return json.load(f)


def collectives(python, kind, ranks, largest):
    """Seconds by call and size, of one framework."""
    return {(name, size): seconds for name, size, seconds in run(python, __file__, kind, ranks, "--largest", str(largest))}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--ranks", default="2,4")
    p.add_argument("--torch", default="")
    p.add_argument("--largest", type=int, default=SIZES[-1])
    p.add_argument("--as", dest="kind", choices=["proa", "torch"])
    p.add_argument("--out")
    options = p.parse_args()
    if options.kind:
        return rank(options.kind, int(options.ranks), options.largest, options.out)
    print("ranks | call | bytes | Proa, ms | torch + Gloo, ms | ratio | GB/s of Proa\n---|---|---|---|---|---|---")
    for ranks in map(int, options.ranks.split(",")):
        ours = collectives(sys.executable, "proa", ranks, options.largest)
        theirs = collectives(options.torch, "torch", ranks, options.largest) if options.torch else {}
        for (name, size), seconds in ours.items():
            other = theirs.get((name, size))
            tail = f"{other * 1e3:.3f} | {other / seconds:.2f}" if other else "– | –"
            print(f"{ranks} | {name} | {size} | {seconds * 1e3:.3f} | {tail} | {size / seconds / 1e9:.2f}", flush=True)
    return None


if __name__ == "__main__":
    main()
