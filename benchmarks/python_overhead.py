"""What small work costs from Python: one-element `x + y` without and with recording, `x[0]`, reshape, relu, and a
3-layer tiny MLP's SGD step; Proa, real Paddle and PyTorch (where installed) in alternating processes.

    .venv/bin/python benchmarks/python_overhead.py            (rounds: ROUNDS, default 5)

Prints medians in nanoseconds and how many times longer each peer takes than Proa. No absolute time is a claim.
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
import json, sys, time
which = sys.argv[1]
if which == "torch":
    import torch
    torch.set_num_threads(2)
    tensor = lambda v, grad=False: torch.tensor(v, requires_grad=grad)
    nn, F = torch.nn, torch.nn.functional
    relu, loss = F.relu, F.mse_loss
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    clear = opt.zero_grad
else:
    if which == "proa":
        import proa as paddle
    else:
        import paddle
    tensor = lambda v, grad=False: paddle.to_tensor(v, stop_gradient=not grad)
    nn, F = paddle.nn, paddle.nn.functional
    relu, loss = F.relu, F.mse_loss
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))
    opt = paddle.optimizer.SGD(learning_rate=0.01, parameters=net.parameters())
    clear = opt.clear_grad
x, y, g = tensor([1.0]), tensor([2.0]), tensor([1.0], True)
batch, target = tensor([[0.1 * i for i in range(8)]] * 4), tensor([[1.0]] * 4)

def step():
    loss(net(batch), target).backward()
    opt.step()
    clear()

def cost(fn, seconds=0.15):
    n = 1
    while True:  # as many calls as take the time
        start = time.perf_counter()
        for _ in range(n):
            fn()
        took = time.perf_counter() - start
        if took > seconds:
            return took / n * 1e9
        n = max(n * 2, int(n * seconds / max(took, 1e-9)))

print(json.dumps({"x + y": cost(lambda: x + y), "x + y, recorded": cost(lambda: g + y), "x[0]": cost(lambda: x[0]),
                  "reshape": cost(lambda: x.reshape([1, 1])), "relu": cost(lambda: relu(x)),
                  "tiny MLP step": cost(step)}))
'''


def interpreters():
    found = {"proa": sys.executable}
    for name, path in (("paddle", ".venv-oracle"), ("torch", ".venv-torch")):
        python = ROOT / path / "bin/python"
        if python.exists():
            found[name] = str(python)
    return found


def main():
    env = dict(os.environ, PYTHONPATH=str(BUILD / "python"), GLOG_minloglevel="2", FLAGS_paddle_num_threads="2",
               OMP_NUM_THREADS="2", GOMP_SPINCOUNT=os.environ.get("GOMP_SPINCOUNT", "1000"))
    who = interpreters()
    runs = {name: [] for name in who}
    for _ in range(int(os.environ.get("ROUNDS", "5"))):
        for name, python in who.items():
            done = subprocess.run([python, "-c", MEASURE, name], env=env, text=True, capture_output=True, check=True)
            runs[name].append(json.loads(done.stdout.strip().splitlines()[-1]))
    print(f"{'':20}" + "".join(f"{name + ' ns':>14}" for name in who) +
          "".join(f"{name + ' / proa':>16}" for name in who if name != "proa"))
    for row in runs["proa"][0]:
        median = {name: statistics.median(r[row] for r in runs[name]) for name in who}
        print(f"{row:20}" + "".join(f"{median[name]:14.0f}" for name in who) +
              "".join(f"{median[name] / median['proa']:16.1f}" for name in who if name != "proa"))


main()
