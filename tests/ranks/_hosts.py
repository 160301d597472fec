"""Jobs over two hosts, which are namespaces (_namespaces.py) with process numbers of their own, so that only ranks of one host can
share memory: messages and a training; a rank that is killed, and the job that both launchers start again; a link that drops
everything. Needs root.

    python tests/ranks/_hosts.py FOLDER
"""
import os
import pathlib
import subprocess
import sys
import time

import _namespaces as namespaces

TIMEOUT, SLACK, LIMIT, RANKS_EACH = 5.0, 5.0, 120, 2

START = """
import json, os, pathlib, sys, time
import numpy as np
import proa as paddle
import proa.distributed as dist
folder = pathlib.Path(sys.argv[1])
dist.init_parallel_env()
rank, size, start = dist.get_rank(), dist.get_world_size(), int(os.environ["PROA_INCARNATION"])
"""

MESSAGES = START + """
assert size == 4 and dist.get_group(0)._engine == "gloo", dist.get_group(0)
pairs = {ranks: dist.new_group(ranks) for ranks in ((0, 1), (2, 3), (0, 2), (1, 3))}
for ranks, group in [(range(4), dist.get_group(0)), *pairs.items()]:
    if rank not in ranks:
        continue
    assert group._engine == ("shm" if ranks in ((0, 1), (2, 3)) else "gloo"), group
    for n in (1, 1000, 300000):
        x = paddle.to_tensor(np.arange(n, dtype="float32") % 7 + rank)
        dist.all_reduce(x, group=group)
        np.testing.assert_array_equal(x.numpy(), sum(np.arange(n, dtype="float32") % 7 + r for r in ranks))
    seen = []
    dist.all_gather_object(seen, {"host": rank // 2, "pid": os.getpid()}, group)
    assert [s["host"] for s in seen] == [r // 2 for r in ranks]
"""

TRAINING = START + """
paddle.seed(3)
net = paddle.DataParallel(paddle.nn.Sequential(paddle.nn.Linear(32, 64), paddle.nn.Tanh(), paddle.nn.Linear(64, 4)))
opt = paddle.optimizer.Adam(0.01, parameters=net.parameters())
checkpoint, first = folder / "checkpoint", 0
if checkpoint.exists():
    saved = paddle.load(str(checkpoint))
    first = saved["step"] + 1
    net.set_state_dict(saved["net"])
    opt.set_state_dict(saved["opt"])
(folder / f"starts.{rank}.{start}").write_text(str(first))
try:
    for step in range(first, STEPS):
        x = np.random.RandomState(100 * step + rank).standard_normal((8, 32)).astype("float32")
        (net(paddle.to_tensor(x)) ** 2).mean().backward()
        opt.step()
        opt.clear_grad()
        if rank == 0:
            paddle.save({"step": step, "net": net.state_dict(), "opt": opt.state_dict()}, f"{checkpoint}.part")
            os.replace(f"{checkpoint}.part", checkpoint)
        dist.barrier()
        if (rank, start, step) == (VICTIM, 0, 4):
            os.kill(os.getpid(), 9)
        (folder / f"ready.{rank}").touch()
        time.sleep(PAUSE)
except (RuntimeError, TimeoutError) as e:
    (folder / f"error.{rank}.{start}").write_text(f"{type(e).__name__}: {e}")
    raise
np.save(folder / f"weights.{rank}.npy", np.concatenate([p.numpy().reshape(-1) for p in net.parameters()]))
"""


def training(steps=10, victim=-1, pause=0.02):
    return f"STEPS, VICTIM, PAUSE = {steps}, {victim}, {pause}\n" + TRAINING


IPS = ("--ips", ",".join(map(namespaces.address, (0, 1))))
MASTER = ("--nnodes", "2", "--master", f"{namespaces.address(0)}:7170")


def start(folder, script, *options):
    """The launchers of a job, one a host."""
    folder.mkdir()
    path = folder / "script.py"
    path.write_text(script)
    launchers = []
    for host in (0, 1):
        command = [*namespaces.at(host), "unshare", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, "-m",
                   "proa.distributed.launch", "--rank", str(host), "--nproc_per_node", str(RANKS_EACH), "--log_dir",
                   str(folder / f"log.{host}"), *options, str(path), str(folder)]
        env = {**os.environ, "PROA_TIMEOUT": str(TIMEOUT), "PROA_TOKEN": "secret", "OMP_NUM_THREADS": "1"}
        launchers.append(subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
    return launchers


def ends(folder, launchers, limit=LIMIT):
    """The launchers' exit codes, and all that was said."""
    try:
        said = [one.communicate(timeout=limit)[1] for one in launchers]
    finally:
        for one in launchers:
            one.kill()
    logs = [p.read_text() for p in sorted(folder.glob("log.*/workerlog.*"))]
    return [one.returncode for one in launchers], "\n".join(said + logs)


def wait_for(paths):
    until = time.monotonic() + LIMIT
    while not all(path.exists() for path in paths):
        assert time.monotonic() < until, f"none of {paths}"
        time.sleep(0.02)


def weights(folder):
    """Rank 0's, which all ranks have."""
    found = [(folder / f"weights.{rank}.npy").read_bytes() for rank in range(2 * RANKS_EACH)]
    assert len(set(found)) == 1, "ranks have different weights"
    return found[0]


def succeeds(folder, script, *options):
    codes, said = ends(folder, start(folder, script, *options))
    assert codes == [0, 0], f"{codes}\n{said}"
    return said


def errors(folder, ranks, number):
    """The errors that ended those ranks' training."""
    return [(folder / f"error.{rank}.{number}").read_text() for rank in ranks]


def killed(base, undisturbed):
    """A rank dies, the second host's last or the one that serves the store; both launchers start again and go on from the
    checkpoint."""
    for victim, nodes in ((3, MASTER), (0, IPS)):
        folder = base / f"killed_{victim}"
        said = succeeds(folder, training(victim=victim), *nodes, "--max_restart", "1")
        assert "starting all ranks again (1 of 1)" in said, said
        found = errors(folder, (0, 1) if victim == 3 else (2, 3), 0)  # a launcher ends the ranks of its own host
        assert all(f"rank {victim}" in text for text in found), found
        assert [(folder / f"starts.{r}.1").read_text() for r in range(4)] == ["5"] * 4
        assert weights(folder) == undisturbed, "another result than without the kill"


def dropped(base):
    """The second host's link drops everything: each rank has an error that names one, in time."""
    folder = base / "dropped"
    launchers = start(folder, training(steps=100000), *MASTER)
    wait_for([folder / f"ready.{rank}" for rank in range(4)])
    namespaces.set_link(1, "down")
    since = time.monotonic()
    wait_for([folder / f"error.{rank}.0" for rank in range(4)])
    took = time.monotonic() - since
    assert took < TIMEOUT + SLACK, f"{took:.1f} s"
    codes, said = ends(folder, launchers)
    namespaces.set_link(1, "up")
    found = errors(folder, range(4), 0)
    assert all("rank" in text for text in found), found
    assert codes[0] != 0 != codes[1], f"{codes}\n{said}"
    return took


def main():
    namespaces.isolate(2)
    base = pathlib.Path(sys.argv[1])
    succeeds(base / "messages", MESSAGES, *MASTER)
    succeeds(base / "undisturbed", training(), *IPS)
    killed(base, weights(base / "undisturbed"))
    print(f"two hosts: messages, two kills and restarts; a dropped link ends all ranks in {dropped(base):.1f} s")


if __name__ == "__main__":
    main()
