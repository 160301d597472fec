"""Programs against eager execution: prediction by LeNet, ResNet-18 (3x64x64), a 4-layer 256-wide encoder and an MLP,
and training steps of the same models through to_static; Proa eager, Proa's executor without and with passes, real
Paddle eager and to_static (where installed), in alternating processes.

    .venv/bin/python benchmarks/programs.py [model ...]      (rounds: ROUNDS, default 3; THREADS, default 2;
                                  PEERS= measures Proa alone; THREADS=1 CPU_TIME=: processor time, on a busy machine)

Prints medians over the rounds of each process's fastest call, in milliseconds, and what of Proa's eager time it takes.
No absolute time is a claim.
"""
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = pathlib.Path(os.environ.get("PROA_BUILD", ROOT / "build")).resolve()

MEASURE = r'''
import importlib, json, os, sys, time
which, model = sys.argv[1:]
import numpy as np
if which == "proa":
    import proa as paddle
    from proa import _core
else:
    import paddle
nn, jit = paddle.nn, importlib.import_module(paddle.__name__ + ".jit")

def encoder():
    layer = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, activation="gelu")
    return nn.TransformerEncoder(layer, 4)

def mlp():
    sizes = [64, 256, 256, 256, 10]
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [nn.Linear(a, b), nn.GELU()]
    return nn.Sequential(*layers[:-1])

make, shape = {"lenet": (paddle.vision.models.LeNet, (16, 1, 28, 28)),
               "resnet18": (lambda: paddle.vision.models.resnet18(num_classes=10), (16, 3, 64, 64)),
               "encoder": (encoder, (8, 32, 256)), "mlp": (mlp, (64, 64))}[model]
paddle.seed(1)
net = make()
x = paddle.to_tensor(np.random.RandomState(0).randn(*shape).astype("float32"))

clock = time.process_time if "CPU_TIME" in os.environ else time.perf_counter

def cost(fn, seconds=0.4):
    fn(), fn()
    times, end = [], clock() + seconds
    while clock() < end or len(times) < 5:
        start = clock()
        fn()
        times.append(clock() - start)
    return min(times) * 1e3

result = {}
net.eval()
with paddle.no_grad():
    result["predict, eager"] = cost(lambda: net(x).numpy())
    want = net(x).numpy()
    if which == "proa":
        program = _core.capture(lambda t: [net(t)], [("x", list(shape), "float32")])
        for name, passes in (("no passes", ""), ("passes", None)):
            e = _core.Executor(program, frozen=True, passes=passes)
            got = e.run([x])[0].numpy()
            assert abs(got - want).max() <= 1e-5 * abs(want).max(), (model, name, abs(got - want).max())
            result["predict, " + name] = cost(lambda: e.run([x])[0].numpy())
            result["arena, " + name + ", MiB"] = e.stats()["arena_bytes"] / 2**20
    else:
        fn = jit.to_static(net)
        result["predict, to_static"] = cost(lambda: fn(x).numpy())
        net = make()

def train(call, net):
    opt = paddle.optimizer.Momentum(0.001, parameters=net.parameters())
    def step():
        loss = paddle.mean(paddle.square(call(x)))
        loss.backward()
        opt.step()
        opt.clear_grad()
        return float(loss)
    return step

net.train()
result["train, eager"] = cost(train(net, net))
fresh = make()
fresh.train()
start = time.perf_counter()
static = train(jit.to_static(fresh), fresh)
static()
result["first step, to_static"] = (time.perf_counter() - start) * 1e3
result["train, to_static"] = cost(static)
print(json.dumps(result))
'''


def measure(which, model):
    python = ROOT / (".venv-oracle" if which == "paddle" else ".venv") / "bin/python"
    env = dict(os.environ, PYTHONPATH=str(BUILD / "python"), OMP_NUM_THREADS=os.environ.get("THREADS", "2"), GLOG_minloglevel="3")
    run = subprocess.run([python, "-c", MEASURE, which, model], capture_output=True, text=True, env=env)
    if run.returncode:
        print(f"{model}, {which}: {(run.stderr.strip().splitlines() or ['?'])[-1]}")
        return {}
    return json.loads(run.stdout.splitlines()[-1])


def main():
    peers = ["proa"] + (["paddle"] if "PEERS" not in os.environ and (ROOT / ".venv-oracle/bin/python").exists() else [])
    for model in sys.argv[1:] or ["lenet", "resnet18", "encoder", "mlp"]:
        seen = {}
        for _ in range(int(os.environ.get("ROUNDS", "3"))):
            for which in peers:
                for name, value in measure(which, model).items():
                    seen.setdefault((which, name), []).append(value)
        print(f"{model}:")
        for (which, name), values in seen.items():
            value = statistics.median(values)
            base = seen.get(("proa", name.split(",")[0] + ", eager"))
            ratio = f"{value / statistics.median(base):8.2f} x eager Proa" if base else ""
            print(f"  {which:7} {name:28} {value:10.3f}{ratio}")


if __name__ == "__main__":
    main()
