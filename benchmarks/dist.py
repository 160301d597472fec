"""Collectives of several processes on this host, Proa beside torch.distributed's Gloo: time of one call by size.
Usage: dist.py [--ranks N] [--torch PYTHON], the Python of an environment with PyTorch. Prints one line a size: bytes,
milliseconds of Proa, milliseconds of PyTorch, their ratio."""
import argparse
import json
import os
import subprocess
import sys
import tempfile
import time

SIZES = [1 << k for k in range(10, 29, 2)]


def measure(call, synchronize, size):
    repeat = max(3, min(200, (64 << 20) // size))
    call()
    times = []
    for _ in range(5):
        synchronize()
        begin = time.perf_counter()
        for _ in range(repeat):
            call()
        times.append((time.perf_counter() - begin) / repeat)
    return sorted(times)[2]


def proa_rank(out):
    import proa as paddle
    import proa.distributed as dist
    dist.init_parallel_env()
    result = {}
    for size in SIZES:
        x = paddle.zeros([size // 4])
        result[size] = measure(lambda x=x: dist.all_reduce(x), dist.barrier, size)
    if dist.get_rank() == 0:
        json.dump(result, open(out, "w"))


def torch_rank(out):
    import torch
    import torch.distributed as dist
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    result = {}
    for size in SIZES:
        x = torch.zeros(size // 4)
        result[size] = measure(lambda x=x: dist.all_reduce(x), dist.barrier, size)
    if dist.get_rank() == 0:
        json.dump(result, open(out, "w"))


def run(python, kind, ranks, port):
    """Seconds by size, of one framework."""
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "out.json")
        store = {"PROA_STORE": f"tcp://127.0.0.1:{port}", "PROA_SIZE": str(ranks)} if kind == "proa" else {}
        children = [subprocess.Popen([python, __file__, "--as", kind, "--out", out],
                                     env={**os.environ, "OMP_NUM_THREADS": "1", "RANK": str(r), "PROA_RANK": str(r),
                                          "WORLD_SIZE": str(ranks), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port),
                                          **store}) for r in range(ranks)]
        if any([c.wait() for c in children]):
            raise SystemExit(f"dist.py: a rank of {kind} failed")
        with open(out) as f:
            return {int(k): v for k, v in json.load(f).items()}


def main():
    p = argparse.ArgumentParser(description=__doc__)
    p.add_argument("--ranks", type=int, default=2)
    p.add_argument("--torch", default="")
    p.add_argument("--as", dest="kind", choices=["proa", "torch"])
    p.add_argument("--out")
    options = p.parse_args()
    if options.kind:
        return {"proa": proa_rank, "torch": torch_rank}[options.kind](options.out)
    ours = run(sys.executable, "proa", options.ranks, 23451)
    theirs = run(options.torch, "torch", options.ranks, 23452) if options.torch else {}
    for size in SIZES:
        other = theirs.get(size)
        tail = f"{other * 1e3:10.3f} {other / ours[size]:6.2f}" if other else "         -      -"
        print(f"{size:10d} {ours[size] * 1e3:10.3f} {tail}  {size / ours[size] / 1e9:6.2f} GB/s")
    return None


if __name__ == "__main__":
    main()
