#!/usr/bin/env python3
"""What `make bench-gpu` runs: products, memory-bound kernels, attention, launches, training steps and inference on one GPU, in Proa
and PyTorch (eager and compiled), in processes that alternate, in ten minutes at most.

    benchmarks/gpu.py [--rounds N] [--minutes M] [--seconds S] [--ways proa,proa+compile,torch,torch+compile] [--only TEXT] [--tiny]

Prints the card's name, the bandwidth and the products per second that PyTorch reaches on it (Proa, where there is no PyTorch), a
line a row, and the lines of the project's goals with their verdicts; writes build-cuda/bench-gpu.json. --tiny: small shapes, which
show that everything runs and measure nothing (the emulated device will do: FLAGS_device_plugins names it)."""
import argparse
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time

import common
import models
import run
from frameworks import framework, integers, random

WAYS = ["proa", "torch", "proa+compile", "torch+compile"]
# A row, how many times PyTorch's speed it must reach, and in which way.
GOALS = [("product, bf16", "torch", 0.95), ("attention, forward", "torch", 0.9), ("attention, f+b", "torch", 0.9),
         *((f"{model} step, {dtype}", way, goal) for model in ("GPT-2 124M", "BERT-base") for dtype in ("bf16", "TF32")
           for way, goal in (("torch", 1.2), ("torch+compile", 1.0))),
         ("ResNet-50 step, bf16", "torch", 1.1), ("ResNet-50 step, TF32", "torch", 1.1)]
BOUND = 0.85  # part of the measured bandwidth that memory-bound kernels must reach


class Gpu:
    """An adapter of frameworks.py whose tensors and layers are on the GPU."""

    def __init__(self, way):
        self.fw, self.way = framework(way, 2), way
        self.t, self.F, self.nn = self.fw.t, self.fw.F, self.fw.nn
        self.torch = self.fw.name == "torch"
        if self.torch:
            self.t.set_default_device("cuda")
            self.t.backends.cuda.matmul.allow_tf32 = self.t.backends.cudnn.allow_tf32 = True
        else:
            self.t.set_device("gpu")
            self.t.set_flags({"FLAGS_allow_tf32": True})

    def name(self):
        return self.t.cuda.get_device_name(0) if self.torch else self.t.device.cuda.get_device_name("gpu:0")

    def wait(self):
        self.t.cuda.synchronize() if self.torch else self.t.device.cuda.synchronize()

    def quiet(self, step):
        """Numbers of waits for the GPU and of driver allocations in a step; none in Proa's steady state."""
        names = {"waits": "waits", "allocations": "driver_allocations"}
        before = {k: self.t._core.device_property("gpu:0", of) for k, of in names.items()}
        step()
        return {k: self.t._core.device_property("gpu:0", of) - before[k] for k, of in names.items()}

    def tensor(self, array, dtype=None, grad=False):
        x = self.fw.tensor(array)
        x = self.fw.cast(x, dtype) if dtype else x
        if grad:
            x = x.detach()
            if self.torch:
                x.requires_grad_()
            else:
                x.stop_gradient = False
        return x

    def low(self, on):
        if not on:
            return contextlib.nullcontext()
        return self.t.autocast("cuda", self.t.bfloat16) if self.torch else self.t.amp.auto_cast(dtype="bfloat16")

    def maybe_compiled(self, model):
        return self.fw.compile(model) if "+compile" in self.way else model


def kernels(g, tiny):
    """name -> (what is timed, FLOPs, bytes)."""
    side, many = (64, 10) if tiny else (8192, 1000)
    rows, square = {}, random(side, side)
    for dtype, item in (("bfloat16", 2), ("float32", 4)):
        x, y = (g.tensor(square, dtype) for _ in range(2))
        label = {"bfloat16": "bf16", "float32": "TF32"}[dtype]
        rows[f"product, {label}"] = (lambda x=x, y=y: g.t.matmul(x, y), 2 * side ** 3, 0)
        w, b = (g.tensor(random(side), dtype) for _ in range(2))
        label, size = {"bfloat16": "bf16", "float32": "fp32"}[dtype], item * side * side
        rows[f"copy, {label}"] = ((lambda x=x: x.clone()), 0, 2 * size)
        rows[f"add, {label}"] = ((lambda x=x, y=y: x + y), 0, 3 * size)
        rows[f"gelu, {label}"] = ((lambda x=x: g.F.gelu(x)), 0, 2 * size)
        rows[f"softmax, {label}"] = ((lambda x=x: g.F.softmax(x, -1)), 0, 2 * size)
        rows[f"layer norm, {label}"] = ((lambda x=x, w=w, b=b: g.F.layer_norm(x, [side], w, b)), 0, 2 * size)
        x = g.tensor(square, dtype, grad=True)
        labels = g.tensor(integers(side, side))

        def entropy(x=x, labels=labels):
            g.F.cross_entropy(x, labels).backward()
            g.fw.clear(x)
        rows[f"cross-entropy, f+b, {label}"] = (entropy, 0, 3 * size)  # x read twice, its gradient written
    b, length, heads, width = (1, 16, 2, 16) if tiny else (8, 2048, 16, 64)
    q, k, v = (g.tensor(random(b, length, heads, width), "bfloat16", grad=True) for _ in range(3))
    flops = 2 * 2 * b * heads * length * length * width / 2

    def attention():
        return g.fw.attention(q, k, v, causal=True)

    def both():
        attention().sum().backward()
        for t in (q, k, v):
            g.fw.clear(t)
    rows["attention, forward"] = (attention, flops, 0)
    rows["attention, f+b"] = (both, 3.5 * flops, 0)
    small = g.tensor(random(64))

    def launches():
        for _ in range(many):
            small + small
    rows[f"launch of a kernel, {many} in a row"] = (launches, 0, 0)
    return rows


def network(g, name, tiny):
    """A model, its input and its labels."""
    if name == "ResNet-50":
        n, size = (1, 32) if tiny else (64, 224)
        small = {"blocks": [1, 1], "width": 8} if tiny else {}
        return models.resnet(g.fw, 50, 1000, **small), random(n, 3, size, size), integers(1000, n)
    n, length = (1, 8) if tiny else (16, 512)
    vocabulary, width, layers, heads = (64, 16, 1, 2) if tiny else (50257, 768, 12, 12)
    if name == "GPT-2 124M":
        model = models.decoder(g.fw, vocabulary, width, layers, heads, 1024)
        return model, integers(vocabulary, n, length), integers(vocabulary, n * length, seed=1)
    model = models.bert(g.fw, vocabulary if tiny else 30522, width, layers, heads, 512)
    return model, integers(64 if tiny else 30522, n, length), integers(width, n, seed=1)


def training(g, name, tiny):
    rows = {}
    for low in (True, False):
        model, x, labels = network(g, name, tiny)
        opt, call = g.fw.optimizer("adamw", model.parameters()), g.maybe_compiled(model)
        x, labels = g.tensor(x), g.tensor(labels)

        def step(low=low, opt=opt, call=call, x=x, labels=labels):
            with g.low(low):
                out = call(x)
                loss = g.F.cross_entropy(out.reshape([-1, out.shape[-1]]), labels)
            loss.backward()
            opt.step()
            g.fw.clear_grad(opt)
        rows[f"{name} step, {'bf16' if low else 'TF32'}"] = (step, 0, 0)
    return rows


def inference(g, name, tiny):
    model, x, _ = network(g, name, tiny)
    call, x = g.maybe_compiled(g.fw.evaluate(model)), g.tensor(x[:1])

    def forward():
        with g.fw.no_grad(), g.low(True):
            call(x)
    return {f"{name} inference, one sample, bf16": (forward, 0, 0)}


def predictor(g, path):
    config = g.t.inference.Config(path + ".pdmodel", path + ".pdiparams")
    config.enable_use_gpu()
    made = g.t.inference.create_predictor(config)
    return lambda x: made.run([x])


def exported(g, name, tiny):
    """Proa runs the exported model, through its predictor or (compiled) as jit.load gives it; PyTorch the model that it has."""
    model, x, _ = network(g, name, tiny)
    model, x = g.fw.evaluate(model), x[:1]
    if g.torch:
        call = g.maybe_compiled(model)
    else:
        with tempfile.TemporaryDirectory() as folder:
            path = f"{folder}/model"
            g.fw.export(model, x.shape, str(x.dtype), path)
            call = g.t.jit.load(path) if "+compile" in g.way else predictor(g, path)
    x = g.tensor(x)

    def forward():
        with g.fw.no_grad():
            call(x)
    return {f"{name} exported, one sample, TF32": (forward, 0, 0)}


UNITS = {"kernels": kernels}
REPEATS = 20  # kernels between two waits
for _name in ("GPT-2 124M", "BERT-base", "ResNet-50"):
    UNITS[_name] = lambda g, tiny, name=_name: {**training(g, name, tiny), **inference(g, name, tiny), **exported(g, name, tiny)}


def work(way, unit, only, tiny, seconds):
    """One process: what it measured, a line of JSON a row, as soon as it is there."""
    g = Gpu(way)
    print(json.dumps({"card": g.name()}), flush=True)
    for name, (call, flops, size) in UNITS[unit](g, tiny).items():
        if only not in name:
            continue
        times = 1 if tiny or not (flops or size) else REPEATS

        def timed(call=call, times=times):
            for _ in range(times):
                call()
            g.wait()
        try:
            found = {"seconds": common.measure(timed, seconds)[1] / times, "flops": flops, "bytes": size}
            if " step, " in name and not g.torch:
                found.update(g.quiet(call))
        except Exception as problem:  # noqa: BLE001: what one framework cannot is a line, not the end
            found = {"error": f"{type(problem).__name__}: {(str(problem).strip().splitlines() or [''])[0]}"[:200]}
        print(json.dumps({"row": name, **found}), flush=True)


def environment(way):
    plugin = run.BUILD / "devices/libproa_cuda.so"
    return {**({"FLAGS_device_plugins": str(plugin)} if plugin.exists() else {}), **run.environment(way, 2)}  # the user's wins


def lines_of(text):
    """Results that a process printed: other libraries print, too, and a line may be cut off."""
    for line in text.splitlines():
        with contextlib.suppress(ValueError):
            said = json.loads(line)
            if isinstance(said, dict) and ("row" in said or "card" in said):
                yield said


def ask(way, unit, a, left):
    """(what it said, why it ended early or None)"""
    command = [run.python_of(way), str(run.HERE / "gpu.py"), "--work", way, unit, "--only", a.only, "--seconds", str(a.seconds),
               *(["--tiny"] if a.tiny else [])]
    try:
        done = subprocess.run(command, env=environment(way), text=True, capture_output=True, timeout=max(1, left))
    except subprocess.TimeoutExpired as end:
        said = end.stdout or b""
        return list(lines_of(said.decode(errors="replace") if isinstance(said, bytes) else said)), "its share of the time was up"
    why = (done.stderr.strip().splitlines() or [f"ended with status {done.returncode}"])[-1][:200] if done.returncode else None
    return list(lines_of(done.stdout)), why


def turns(ways, rounds):
    """(unit, way) in the order in which they are asked: ways alternate, and each round starts with another."""
    for turn in range(rounds):
        for unit in UNITS:
            for way in ways[turn % len(ways):] + ways[:turn % len(ways)]:
                if unit != "kernels" or "+" not in way:
                    yield unit, way


def collect(a):
    """{row: {way: seconds}}, the rows' facts by (row, way), errors, the card, and the ways."""
    ways = [w for w in a.ways.split(",") if run.installed(w)]
    end, times, facts, errors, card = time.monotonic() + 60 * a.minutes, {}, {}, {}, "?"
    order = list(turns(ways, 1 if a.tiny else a.rounds))
    for at, (unit, way) in enumerate(order):
        left = end - time.monotonic()
        # Nobody takes the others' time; what one leaves is theirs. PyTorch compiles for as long as others run.
        share = min(left, (4 if way == "torch+compile" else 2.5) * left / (len(order) - at))
        said, why = ask(way, unit, a, share) if left > 1 else ([], "the time was up")
        if why:
            errors[f"{unit}, {way}"] = why
        for v in said:
            card = v.get("card", card)
            if "error" in v:
                errors[f"{v['row']}, {way}"] = v["error"]
            elif "row" in v:
                facts[v["row"], way] = v
                times.setdefault(v["row"], {}).setdefault(way, []).append(v["seconds"])
    return {row: {w: statistics.median(s) for w, s in of.items()} for row, of in times.items()}, facts, errors, card, ways


def limits_of(times, facts):
    """Bytes and FLOPs a second that the card was seen to do, by copies and products."""
    def best(prefix, what):
        rates = [facts[row, way][what] / s for row, of in times.items() if row.startswith(prefix)
                 for way, s in of.items() if way.startswith("torch") or not any(w.startswith("torch") for w in of)]
        return max(rates, default=0)
    return best("copy", "bytes"), best("product", "flops")


def bound_by_memory(times, facts, bandwidth):
    """{row: the part of the measured bandwidth that Proa's kernel reaches}"""
    return {row: facts[row, "proa"]["bytes"] / of["proa"] / bandwidth for row, of in times.items()
            if "proa" in of and bandwidth and facts[row, "proa"]["bytes"]}


def report(times, facts, errors, card, ways):
    bandwidth, flops = limits_of(times, facts)
    parts = bound_by_memory(times, facts, bandwidth)
    print(f"{card}: copies at {bandwidth / 1e9:.0f} GB/s, products at {flops / 1e12:.1f} TFLOP/s")
    for row, of in times.items():
        rate = f"  {parts[row]:.2f} of the bandwidth" if row in parts else ""
        print(f"{row:44}" + "".join(f" {w} {1e3 * of[w]:9.3f} ms " if w in of else f" {w} {'-':>9}    " for w in ways) + rate)
    for what, text in errors.items():
        print(f"not measured: {what}: {text}")
    for row, way, goal in GOALS:
        ours = min((s for w, s in times.get(row, {}).items() if w.startswith("proa")), default=None)
        theirs = times.get(row, {}).get(way)
        verdict = "not measured" if not (ours and theirs) else f"{theirs / ours:.2f} {'yes' if theirs / ours >= goal else 'NO'}"
        print(f"goal: {row} at {goal} of {way}'s speed or more: {verdict}")
    slow = [row for row, part in parts.items() if part < BOUND]
    verdict = "not measured" if not parts else f"NO: {'; '.join(slow)}" if slow else "yes"
    print(f"goal: kernels bound by memory at {BOUND} of the bandwidth or more: {verdict}")
    steps = {key: v for key, v in facts.items() if "waits" in v}
    loud = [f"{row}, {way}: {v['waits']} and {v['allocations']}" for (row, way), v in steps.items() if v["waits"] or v["allocations"]]
    verdict = "not measured" if not steps else f"NO: {'; '.join(loud)}" if loud else "yes"
    print(f"goal: no waits and no allocations in a steady step: {verdict}")
    print("goal: the matrix of ops and dtypes passes: `make test-gpu`, which is no part of this")


def gpu_here():
    """None, or why there is none."""
    done = subprocess.run([sys.executable, "-c", "import proa; proa.set_device('gpu')"], env=environment("proa"), text=True,
                          capture_output=True)
    return None if done.returncode == 0 else (done.stderr.strip().splitlines() or ["?"])[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=9.5)
    parser.add_argument("--seconds", type=float, default=1.0, help="of samples of a row")
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--only", default="")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--work", nargs=2, help=argparse.SUPPRESS)
    a = parser.parse_args()
    if a.work:
        return work(*a.work, a.only, a.tiny, 0.001 if a.tiny else a.seconds)
    why_not = gpu_here()
    if why_not:
        sys.exit(f"bench-gpu: nothing was measured: {why_not}")
    found = collect(a)
    report(*found)
    out = run.BUILD / "bench-gpu.json"
    out.write_text(json.dumps({"card": found[3], "seconds": found[0], "errors": found[2]}, indent=1, ensure_ascii=False))
    print(f"written: {out}")


if __name__ == "__main__":
    main()
