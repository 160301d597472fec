"""Disturbs a rank of a 4-rank training at a random moment: SIGKILL, SIGSTOP beyond the time-out, its connections cut, or its link
dropped, over shared memory or Gloo. The others must end with a typed error that names a rank, within the time-out and 5 s; no
process, socket, shared memory or file is left; the job, started again, ends with the bits of a run that nobody disturbed.

    python tests/robustness/kill/ranks.py [TRIALS [SEED]] [--kind kill|stop|cut|drop] [--engine shm|gloo] [--early SHARE]

As root it runs in mount and network namespaces of its own, each rank behind a link (veth) that can be taken down: what is sent
then vanishes, and nobody is told. Without root there are no dropped links.
"""
import argparse
import os
import pathlib
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "ranks"))
import _namespaces as namespaces

RANKS, STEPS, TIMEOUT, SLACK = 4, int(os.environ.get("PROA_KILL_STEPS", "40")), 8.0, 5.0

TRAINING = """
import faulthandler, os, signal, socket, sys, time
faulthandler.register(signal.SIGUSR2)
import numpy as np
import proa as paddle
import proa.distributed as dist

STEPS, folder, rank = int(sys.argv[2]), sys.argv[1], os.environ["PADDLE_TRAINER_ID"]

def cut(number, frame):
    for fd in os.listdir("/proc/self/fd"):
        try:
            with socket.socket(fileno=os.dup(int(fd))) as s:
                s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

signal.signal(signal.SIGUSR1, cut)
open(f"{folder}/joins.{rank}", "w").close()
try:
    dist.init_parallel_env()
    paddle.seed(3)
    net = paddle.DataParallel(paddle.nn.Sequential(paddle.nn.Linear(32, 64), paddle.nn.Tanh(), paddle.nn.Linear(64, 4)))
    opt = paddle.optimizer.Adam(0.01, parameters=net.parameters())
    path, first = folder + "/checkpoint", 0
    if os.path.exists(path):
        saved = paddle.load(path)
        first = saved["step"] + 1
        net.set_state_dict(saved["net"])
        opt.set_state_dict(saved["opt"])
    open(f"{folder}/ready.{rank}", "w").close()
    for step in range(first, STEPS):
        rng = np.random.RandomState(step * 100 + int(rank))
        loss = (net(paddle.to_tensor(rng.standard_normal((8, 32)).astype("float32"))) ** 2).mean()
        loss.backward()
        opt.step()
        opt.clear_grad()
        if rank == "0":
            paddle.save({"step": step, "net": net.state_dict(), "opt": opt.state_dict()}, path + ".part")
            os.replace(path + ".part", path)
        dist.barrier()
        time.sleep(0.02)
    if rank == "0":
        np.save(folder + "/result.npy", np.concatenate([p.numpy().reshape(-1) for p in net.parameters()]))
    dist.barrier()
except (RuntimeError, TimeoutError, ValueError, OSError) as e:
    with open(f"{folder}/error.{rank}", "w") as f:
        f.write(f"{type(e).__name__}: {e}")
    os._exit(3)
"""


def host(engine):
    return namespaces.HUB if engine == "gloo" else "127.0.0.1"


def start(folder, script, incarnation, token, engine, port):
    ranks = []
    for rank in range(RANKS):
        env = {**os.environ, "PROA_STORE": f"tcp://{host(engine)}:{port}", "PROA_STORE_SERVED": "1", "PROA_TOKEN": token,
               "PROA_INCARNATION": str(incarnation), "PADDLE_JOB_ID": "kills", "PADDLE_TRAINER_ID": str(rank),
               "PADDLE_TRAINERS_NUM": str(RANKS), "PROA_TIMEOUT": str(TIMEOUT), "OMP_NUM_THREADS": "1",
               "PROA_SHM": "0" if engine == "gloo" else "1", "PADDLE_CURRENT_ENDPOINT": f"127.0.0.1:{7000 + rank}",
               "PADDLE_TRAINER_ENDPOINTS": ",".join(f"127.0.0.1:{7000 + r}" for r in range(RANKS))}
        inside = namespaces.at(rank) if engine == "gloo" else []
        with open(folder / f"log.{rank}", "ab") as log:
            ranks.append(subprocess.Popen([*inside, sys.executable, str(script), str(folder), str(STEPS)], env=env, stdout=log, stderr=log))
    return ranks


def serve(core, incarnation, token, engine):
    return core.store_serve(host(engine), 0, f"kills/{incarnation}/{token}")


def open_sockets():
    """TCP sockets of all namespaces that listen or are connected."""
    if not namespaces.isolated():
        return []
    tables = [pathlib.Path("/proc/net/tcp").read_text()]
    tables += [subprocess.run([*namespaces.at(r), "cat", "/proc/net/tcp"], check=True, capture_output=True,
                              text=True).stdout for r in range(RANKS)]
    return [f"socket {line.split()[1]}" for table in tables for line in table.splitlines()[1:] if line.split()[3] in ("01", "0A")]


def left_over(token, shared):
    """Processes of the job, its sockets, and shared memory that was not there before."""
    found = open_sockets() + [f"shared memory {name}" for name in set(os.listdir("/dev/shm")) - shared]
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if token.encode() in (process / "environ").read_bytes() and int(process.name) != os.getpid():
                found.append(f"process {process.name}")
        except OSError:
            pass
    return found


def wait_for(folder, what, ranks=range(RANKS)):
    until = time.monotonic() + 120
    while not all((folder / f"{what}.{r}").exists() for r in ranks) and time.monotonic() < until:
        time.sleep(0.01)


def disturb(rng, folder, ranks, engine, options):
    """Waits for a random moment, then does something to a random rank; what, whom and when."""
    kind, victim = rng.choice(["kill", "stop", "cut", *(["drop"] if engine == "gloo" else [])]), rng.randrange(RANKS)
    kind = options.kind or kind
    early = rng.random() < options.early  # while ranks still meet
    wait_for(folder, *(("joins", [victim]) if early else ("ready",)))
    time.sleep(rng.uniform(0, 0.3 if early else 0.03 * STEPS))
    if kind == "drop":
        namespaces.set_link(victim, "down")
    elif ranks[victim].poll() is None:
        ranks[victim].send_signal({"kill": signal.SIGKILL, "stop": signal.SIGSTOP, "cut": signal.SIGUSR1}[kind])
    since = time.monotonic()
    wait_for(folder, "joins")  # nobody waits for a rank before that
    return kind, victim, max(since, time.monotonic() if early else 0)


def look_at_survivors(folder, ranks, kind, victim, since):
    """Complaints about how the others end."""
    problems = []
    for rank, process in enumerate(ranks):
        if rank == victim and kind in ("kill", "stop"):
            continue
        try:
            code = process.wait(max(0.1, since + TIMEOUT + SLACK - time.monotonic()))
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGUSR2)  # its log says where it is
            time.sleep(2)
            problems.append(f"rank {rank} still waits after {TIMEOUT + SLACK} s; log: {(folder / f'log.{rank}').read_text()[-2000:]}")
            continue
        error = folder / f"error.{rank}"
        said = error.read_text() if error.exists() else ""
        if code == -signal.SIGUSR1 and rank == victim:  # it came when the interpreter had put its handlers away
            continue
        if code and (code != 3 or "rank" not in said):
            problems.append(f"rank {rank} ended with {code} and said {said!r}; log: {(folder / f'log.{rank}').read_text()[-400:]}")
    return problems


def trial(core, rng, script, references, number, options):
    engine = rng.choice(sorted(references))
    token, shared = secrets.token_hex(16), set(os.listdir("/dev/shm"))
    with tempfile.TemporaryDirectory(prefix="proa_kills_") as name:
        folder = pathlib.Path(name)
        ranks = start(folder, script, 0, token, engine, serve(core, 0, token, engine))
        kind, victim, since = disturb(rng, folder, ranks, engine, options)
        problems = look_at_survivors(folder, ranks, kind, victim, since)
        took = time.monotonic() - since
        for process in ranks:
            if process.poll() is None:
                process.kill()
            process.wait()
        core.store_stop()
        if kind == "drop":
            namespaces.set_link(victim, "up")
        problems += left_over(token, shared)
        if not problems:
            for path in folder.glob("error.*"):
                path.unlink()
            ranks = start(folder, script, 1, token, engine, serve(core, 1, token, engine))
            codes = [p.wait(120) for p in ranks]
            core.store_stop()
            said = [path.read_text() for path in sorted(folder.glob("error.*"))]
            if any(codes) or (folder / "result.npy").read_bytes() != references[engine]:
                problems.append(f"the restarted job ended with {codes}; its result is not that of an undisturbed run; {said}")
            problems += left_over(token, shared)
    print(f"{number}: {kind} of rank {victim} over {engine}, the others ended after {took:.1f} s" + "".join(f"\n    {p}" for p in problems),
          flush=True)
    return problems


def undisturbed(core, script, engine):
    token = secrets.token_hex(16)
    with tempfile.TemporaryDirectory(prefix="proa_kills_") as name:
        codes = [p.wait(120) for p in start(pathlib.Path(name), script, 0, token, engine, serve(core, 0, token, engine))]
        core.store_stop()
        logs = "".join(p.read_text() for p in pathlib.Path(name).glob("log.*"))
        assert not any(codes), (codes, logs)
        return (pathlib.Path(name) / "result.npy").read_bytes()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("trials", nargs="?", type=int, default=200)
    parser.add_argument("seed", nargs="?", type=int, default=int(time.time()))
    parser.add_argument("--kind", choices=["kill", "stop", "cut", "drop"])
    parser.add_argument("--engine", choices=["shm", "gloo"])
    parser.add_argument("--early", type=float, default=0.15, help="share of the trials that disturb ranks while they meet")
    options = parser.parse_args()
    engines = ["shm"]
    if namespaces.isolated() or namespaces.able():
        namespaces.isolate(RANKS)
        engines = ["shm", "gloo"]
    if options.engine:
        engines = [e for e in engines if e == options.engine]
    print("seed", options.seed, "engines:", *engines, flush=True)
    from proa import _core
    rng, bad = random.Random(options.seed), 0
    with tempfile.TemporaryDirectory(prefix="proa_kills_") as name:
        script = pathlib.Path(name) / "training.py"
        script.write_text(TRAINING)
        references = {engine: undisturbed(_core, script, engine) for engine in engines}
        for number in range(options.trials):
            bad += bool(trial(_core, rng, script, references, number, options))
    print(f"{options.trials} trials, {bad} bad")
    return bad > 0


sys.exit(main())
