"""Kills ranks of a job of two pipeline stages, each sharded over two ranks, with SIGKILL at random moments (some while ranks still
meet), and starts it again with four ranks or with two, until it ends. Started with as many ranks each time it must have the bits of a
job that nobody killed; with either number, the losses and weights of one process to 1e-5.

    python tests/robustness/kill/hybrid.py [TRIALS [SEED]]
"""
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
MODELS = HERE.parents[1] / "ranks"
sys.path.insert(0, str(MODELS))
RANKS, STEPS, MICRO, BOUND = 4, int(os.environ.get("PROA_KILL_STEPS", "16")), 4, 60

TRAINING = """
import json, os, shutil, sys, time
folder = sys.argv[1]
open(f"{folder}/{os.environ['PADDLE_TRAINER_ID']}.part", "w").write(str(os.getpid()))
os.replace(f"{folder}/{os.environ['PADDLE_TRAINER_ID']}.part", f"{folder}/{os.environ['PADDLE_TRAINER_ID']}.pid")
import numpy as np
import proa as paddle
import proa.distributed as dist
from hybrid import MICRO, STEPS, make_optimizer
from _hybrid_models import ROWS, Stack, batch, descriptions, loss_of, whole_name
from proa.distributed import fleet
from proa.distributed.fleet.meta_parallel import PipelineLayer

sharding = int(os.environ["PADDLE_TRAINERS_NUM"]) // 2
strategy = fleet.DistributedStrategy()
strategy.hybrid_configs = {"pp_degree": 2, "sharding_degree": sharding}
strategy.pipeline_configs = {"accumulate_steps": MICRO, "micro_batch_size": ROWS // sharding // MICRO}
fleet.init(is_collective=True, strategy=strategy)
hcg = fleet.get_hybrid_communicate_group()
stage, part = hcg.get_stage_id(), hcg.get_sharding_parallel_rank()
paddle.seed(5)
weights = Stack("gpt", False).state_dict()
net = PipelineLayer(descriptions("gpt", False), topology=hcg.topology(), loss_fn=loss_of("gpt", False))
for name, p in net.named_parameters():
    p.set_value(weights[whole_name("gpt", name)])
schedule, opt = make_optimizer(net.parameters())
model, opt = fleet.distributed_model(net), fleet.distributed_optimizer(opt)
losses = []
if os.path.exists(folder + "/latest"):
    with open(folder + "/latest") as f:
        losses = json.load(f)
    at = f"{folder}/{len(losses)}/{stage}"
    model.set_state_dict(paddle.load(at + ".pdparams"))
    opt.set_state_dict(paddle.load(at + ".pdopt"))
dist.barrier()
while len(losses) < STEPS:
    x, y = (paddle.to_tensor(np.split(a, sharding)[part]) for a in batch("gpt", len(losses)))
    loss = model.train_batch([x, y], opt, schedule)
    dist.all_reduce(loss, dist.ReduceOp.AVG, hcg.get_sharding_parallel_group())
    losses.append(float(loss))
    at, state = f"{folder}/{len(losses)}/{stage}", opt.whole_state_dict()
    if part == 0:
        os.makedirs(os.path.dirname(at), exist_ok=True)
        paddle.save(model.state_dict(), at + ".pdparams")
        paddle.save(state, at + ".pdopt")
    dist.barrier()  # all stages' files are there
    if dist.get_rank() == 0:
        with open(folder + "/latest.part", "w") as f:
            json.dump(losses, f)
        os.replace(folder + "/latest.part", folder + "/latest")
        shutil.rmtree(f"{folder}/{len(losses) - 2}", ignore_errors=True)
    dist.barrier()
    time.sleep(0.05)
"""


def make_optimizer(parameters):
    """(schedule, optimizer)"""
    import proa as paddle
    schedule = paddle.optimizer.lr.StepDecay(2e-3, 5)
    return schedule, paddle.optimizer.AdamW(schedule, epsilon=1e-4, parameters=parameters, grad_clip=paddle.nn.ClipGradByGlobalNorm(0.3))


def one_process():
    """(losses, weights) of the training on one process."""
    import proa as paddle
    from _hybrid_models import Stack, batch, loss_of
    paddle.seed(5)
    net, losses = Stack("gpt", False), []
    schedule, opt = make_optimizer(net.parameters())
    for step in range(STEPS):
        x, y = map(paddle.to_tensor, batch("gpt", step))
        loss = loss_of("gpt", False)(net(x), y)
        loss.backward()
        opt.step()
        opt.clear_grad()
        schedule.step()
        losses.append(float(loss))
    return losses, {name: p.numpy() for name, p in net.state_dict().items()}


def start(folder, ranks):
    script = folder / "training.py"
    script.write_text(TRAINING)
    for old in folder.glob("*.pid"):
        old.unlink()
    path = os.pathsep.join([str(HERE), str(MODELS), os.environ.get("PYTHONPATH", "")])
    return subprocess.Popen([sys.executable, "-m", "proa.distributed.launch", "--nproc_per_node", str(ranks), "--log_dir",
                             str(folder / "log"), str(script), str(folder)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "PROA_TIMEOUT": "30"})


def steps_done(folder):
    try:
        return len(json.loads((folder / "latest").read_text()))
    except OSError:
        return 0


def kill_one(rng, folder, job, ranks):
    """Kills a random rank while ranks meet or behind a random step; (what happened, complaints)."""
    victim, until, done = rng.randrange(ranks), time.monotonic() + 120, steps_done(folder)
    goal = done + rng.choice([0, rng.randrange(max(1, STEPS - done)), rng.randrange(max(1, STEPS - done))])
    pid = folder / f"{victim}.pid"
    while time.monotonic() < until and job.poll() is None and not (pid.exists() and steps_done(folder) >= goal):
        time.sleep(0.005)
    time.sleep(rng.uniform(0, 1.5 if goal == done else 0.15))  # seconds of a start; of a step and its checkpoint
    if job.poll() is not None:
        return "it had ended", [] if job.returncode == 0 else [f"the job ended with {job.returncode} before anybody was killed"]
    try:
        os.kill(int(pid.read_text()), signal.SIGKILL)
    except (OSError, ValueError):
        return "it was ending", []
    since = time.monotonic()
    try:
        code = job.wait(BOUND)
    except subprocess.TimeoutExpired:
        return "killed", [f"the others still wait {BOUND} s after rank {victim} was killed"]
    finished = steps_done(folder) == STEPS
    wrong = [] if code or finished else [f"a job of which rank {victim} was killed ended with {code}"]
    return f"rank {victim} of {ranks} killed after {steps_done(folder)} steps, all ended in {time.monotonic() - since:.1f} s", wrong


def result(folder):
    """(losses, {stage: bytes of its parameters}, weights by their names in one process)"""
    import proa as paddle
    from _hybrid_models import whole_name
    losses = json.loads((folder / "latest").read_text())
    files = sorted((folder / str(STEPS)).glob("*.pdparams"))
    weights = [(whole_name("gpt", name), value.numpy()) for file in files for name, value in paddle.load(str(file)).items()]
    return losses, [file.read_bytes() for file in files], weights


def undisturbed(ranks):
    """The result of a job that nobody kills."""
    with tempfile.TemporaryDirectory(prefix="proa_hybrid_") as name:
        folder = pathlib.Path(name)
        if start(folder, ranks).wait(240):
            raise RuntimeError("\n".join(p.read_text() for p in folder.glob("log/workerlog.*")))
        return result(folder)


def trial(rng, sizes, kills, reference, alone):
    """Complaints about a job that is killed and started again with a random one of these numbers of ranks; reference: the result of a
    job that nobody killed, or None."""
    problems, used = [], set()
    with tempfile.TemporaryDirectory(prefix="proa_hybrid_") as name:
        folder = pathlib.Path(name)
        for number in range(kills):
            ranks = RANKS if number == 0 else rng.choice(sizes)
            used.add(ranks)
            job = start(folder, ranks)
            said, wrong = kill_one(rng, folder, job, ranks)
            print("   ", said, flush=True)
            if job.poll() is None:
                job.terminate()
                job.wait()
            problems += wrong
        ranks = sizes[0]  # the last start: whatever was asked for first
        used.add(ranks)
        code = start(folder, ranks).wait(240)
        if code:
            return [*problems, f"the job, started again, ended with {code}: " + "".join(p.read_text()[-600:] for p in folder.glob("log/workerlog.*"))]
        losses, files, weights = result(folder)
    if used == {RANKS} and reference and (losses, files) != reference[:2]:
        problems.append("the result differs from that of a job that nobody killed")
    if not np.allclose(losses, alone[0], rtol=1e-5, atol=0):
        problems.append(f"losses {losses} are not one process's {alone[0]}")
    largest = max(np.abs(w).max() for w in alone[1].values())
    off = max(np.abs(value - alone[1][name]).max() / largest for name, value in weights)
    if not off <= 1e-5:
        problems.append(f"weights are {off:.1e} away from one process's")
    return problems


def main():
    trials = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
    print("seed", seed, flush=True)
    rng, bad = random.Random(seed), 0
    reference, alone = undisturbed(RANKS), one_process()
    for number in range(trials):
        sizes = rng.choice([[RANKS], [RANKS // 2], [RANKS // 2, RANKS]])
        problems = trial(rng, sizes, rng.randint(1, 3), reference, alone)
        print(f"{number}: restarted with {sizes}" + "".join(f"\n    {p}" for p in problems), flush=True)
        bad += bool(problems)
    print(f"{trials} trials, {bad} bad")
    return bad > 0


if __name__ == "__main__":
    sys.exit(main())
