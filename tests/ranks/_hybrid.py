"""One rank of hybrid trainings that must equal one process on the joined batch: losses of all steps, weights at the end.

    python -m proa.distributed.launch --nproc_per_node 4 tests/ranks/_hybrid.py [--steps 50] CASE…

A case is key=value,…: hybrid.py draws them, CASE has the keys. Rank 0 trains alone on all rows first. In half types ranks, which round
each their own gradients, may be SPREAD times as far from one process as that is from one in float32. Prints a line a case; exits
with 1 if one is wrong.
"""
import argparse
import contextlib
import sys

import numpy as np
from _hybrid_models import ROWS, Stack, batch, descriptions, loss_of, whole_name

import proa as paddle
import proa.distributed as dist
from proa.amp.auto_cast import allow_on_cpu
from proa.distributed import fleet
from proa.distributed.fleet.meta_parallel import PipelineLayer
from proa.distributed.sharding import group_sharded_parallel

CASE = {"model": "gpt", "dp": 1, "mp": 1, "pp": 1, "sharding": 1, "level": "fleet", "amp": "O0", "recompute": 0, "merge": 1,
        "clip": "none", "optimizer": "momentum", "schedule": "1F1B", "chunks": 1, "groups": 0, "dtype": "float32", "refused": ""}
LIMIT, SPREAD = {"float32": 1e-5, "float64": 1e-12}, 4


def read(text):
    """A case from its text."""
    case = dict(CASE)
    for pair in text.split(","):
        key, value = pair.split("=")
        case[key] = type(CASE[key])(value)
    return case


def make_optimizer(case, net):
    clip = {"none": None, "global": paddle.nn.ClipGradByGlobalNorm(0.3), "norm": paddle.nn.ClipGradByNorm(0.1),
            "value": paddle.nn.ClipGradByValue(0.01)}[case["clip"]]
    params = net.parameters()
    if case["groups"]:
        flat, others = [p for p in params if len(p.shape) < 2], [p for p in params if len(p.shape) > 1]  # the same on any stage
        params = [{"params": others, "learning_rate": 0.5}, {"params": flat}]  # a stage may have none of one kind
    half = {"multi_precision": True} if case["amp"] == "O2" else {}
    if case["optimizer"] == "momentum":
        return paddle.optimizer.Momentum(0.02, 0.9, parameters=params, grad_clip=clip, weight_decay=1e-3, **half)
    if case["optimizer"] == "adamw":
        return paddle.optimizer.AdamW(1e-3, epsilon=1e-4, parameters=params, grad_clip=clip, weight_decay=0.01, **half)
    if case["optimizer"] == "lamb":
        return paddle.optimizer.Lamb(1e-3, epsilon=1e-4, parameters=params, grad_clip=clip, **half)
    return paddle.optimizer.SGD(0.03, parameters=params, grad_clip=clip, **half)


def precision(case):
    if case["amp"] == "O0":
        return contextlib.nullcontext()
    half = case["amp"] == "float16"
    return paddle.amp.auto_cast(level="O1" if half else case["amp"], dtype="float16" if half else "bfloat16")


def make_scaler(case):
    """A scaler whose first scale makes gradients infinite, and its second none; None but in float16."""
    return paddle.amp.GradScaler(init_loss_scaling=2.0 ** 28, decr_ratio=2.0 ** -16) if case["amp"] == "float16" else None


def update(opt, scaler):
    """The step behind backward."""
    if scaler is None:
        opt.step()
    else:
        scaler.step(opt)
        scaler.update()
    opt.clear_grad(False)


def decorated(case, net, opt):
    return paddle.amp.decorate(net, opt, level="O2", dtype="bfloat16") if case["amp"] == "O2" else (net, opt)


def alone(case, steps, skipped=0):
    """(losses, weights) of one process, which updates nothing in its first `skipped` steps."""
    paddle.seed(5)
    net = Stack(case["model"], False)
    net, opt = decorated(case, net, make_optimizer(case, net))
    loss_fn, losses, scaler = loss_of(case["model"], False), [], make_scaler(case)
    for step in range(steps):
        x, y = map(paddle.to_tensor, batch(case["model"], step))
        with precision(case):
            loss = loss_fn(net(x), y)
        (scaler.scale(loss) if scaler else loss).backward()
        if step < skipped:
            opt.clear_grad(False)
        else:
            update(opt, scaler)
        losses.append(float(loss))
    return losses, {name: p.astype(paddle.get_default_dtype()).numpy() for name, p in net.named_parameters()}


def begin(case):
    """The groups of a case."""
    strategy = fleet.DistributedStrategy()
    strategy.hybrid_configs = {f"{axis}_degree": case[axis] for axis in ("dp", "mp", "pp", "sharding")}
    rows = ROWS // case["dp"] // case["sharding"] // case["merge"]
    strategy.pipeline_configs = {"accumulate_steps": case["merge"], "micro_batch_size": rows, "schedule_mode": case["schedule"]}
    fleet.init(is_collective=True, strategy=strategy)
    return fleet.get_hybrid_communicate_group()


def own_part(param, whole, hcg):
    """A rank's part of a whole array."""
    if getattr(param, "split_axis", None) is None or hcg.get_model_parallel_world_size() < 2:
        return whole
    return np.split(whole, hcg.get_model_parallel_world_size(), param.split_axis)[hcg.get_model_parallel_rank()]


def build(case, hcg):
    """This rank's net with the weights of one process, off by something on ranks that are to be given the first one's."""
    divided = case["mp"] > 1
    paddle.seed(5)
    weights = {name: p.numpy() for name, p in Stack(case["model"], False).named_parameters()}
    paddle.seed(50 + dist.get_rank())
    if case["pp"] > 1:
        net = PipelineLayer(descriptions(case["model"], divided), topology=hcg.topology(), loss_fn=loss_of(case["model"], divided),
                            recompute_interval=case["recompute"], num_virtual_pipeline_stages=case["chunks"])
    else:
        net = Stack(case["model"], divided, bool(case["recompute"]))
    off = 0.01 * (hcg.get_data_parallel_rank() + hcg.get_sharding_parallel_rank())
    for name, p in net.named_parameters():
        p.set_value(own_part(p, weights[whole_name(case["model"], name)], hcg) + np.asarray(off, paddle.get_default_dtype()))
    return net


def distribute(case, hcg, net, opt):
    """(model, optimizer, scaler)"""
    scaler = make_scaler(case)
    if case["level"] == "fleet":
        model, opt = fleet.distributed_model(net), fleet.distributed_optimizer(opt)
        return model, opt, fleet.distributed_scaler(scaler) if scaler else None
    return group_sharded_parallel(net, opt, case["level"], scaler, group=hcg.get_sharding_parallel_group(), segment_size=40,
                                  dp_group=hcg.get_data_parallel_group())


def train_step(case, model, opt, scaler, loss_fn, x, y):
    """A step on this rank's rows; their mean loss."""
    if case["pp"] > 1:
        with precision(case):
            return float(model.train_batch([paddle.to_tensor(x), paddle.to_tensor(y)], opt, scaler=scaler))
    total, merge = 0.0, case["merge"]
    for i, (rows, labels) in enumerate(zip(np.split(x, merge), np.split(y, merge))):
        accumulates = model.no_sync() if i + 1 < merge and hasattr(model, "no_sync") else contextlib.nullcontext()
        with accumulates:
            with precision(case):
                loss = loss_fn(model(paddle.to_tensor(rows)), paddle.to_tensor(labels)) / merge
            (scaler.scale(loss) if scaler else loss).backward()
        total += float(loss)
    update(opt, scaler)
    return total


def together(case, steps):
    """(losses, {name: (weights, how to cut one process's)}) of this rank's part."""
    hcg = begin(case)
    net = build(case, hcg)
    net, opt = decorated(case, net, make_optimizer(case, net))
    model, opt, scaler = distribute(case, hcg, net, opt)
    loss_fn = loss_of(case["model"], case["mp"] > 1)
    at = hcg.get_data_parallel_rank() * case["sharding"] + hcg.get_sharding_parallel_rank()
    losses = []
    for step in range(steps):
        x, y = (np.split(a, case["dp"] * case["sharding"])[at] for a in batch(case["model"], step))
        losses.append(train_step(case, model, opt, scaler, loss_fn, x, y))
    if hasattr(model, "get_all_parameters"):
        model.get_all_parameters()
    total = paddle.to_tensor(np.array(losses, "float64"))
    dist.all_reduce(total, dist.ReduceOp.AVG)
    own = {name: p.astype(paddle.get_default_dtype()).numpy() for name, p in net.named_parameters()}
    cut = {name: (lambda whole, p=p: own_part(p, whole, hcg)) for name, p in net.named_parameters()}
    return total.numpy(), {whole_name(case["model"], name): (value, cut[name]) for name, value in own.items()}


def apart(losses, weights, wanted):
    """The largest difference: of losses relative to each, of weights relative to the largest."""
    want, whole = wanted
    largest = max(np.abs(w).max() for w in whole.values())
    off = [abs(a - b) / abs(b) for a, b in zip(losses, want)]
    off += [np.abs(value - cut(whole[name])).max() / largest for name, (value, cut) in weights.items()]
    return float(np.nan_to_num(np.max(off), nan=np.inf))


def reference(case, steps):
    """(what one process makes of a case, the limit for ranks), known to all of them."""
    box = [None]
    if dist.get_rank() == 0:
        wanted, limit = alone(case, steps), LIMIT[case["dtype"]]
        if case["amp"] != "O0":
            losses, weights = alone({**case, "amp": "O0"}, steps, int(case["amp"] == "float16"))
            limit = SPREAD * apart(losses, {name: (value, lambda w: w) for name, value in weights.items()}, wanted)
        box = [[*wanted, limit]]
    dist.broadcast_object_list(box, 0)
    losses, weights, limit = box[0]
    return (losses, weights), limit


def refusal(case):
    """Whether a combination that is not allowed is an error that names both switches; the error."""
    hcg = begin(case)
    net = build(case, hcg)
    try:
        distribute(case, hcg, net, make_optimizer(case, net))
    except (NotImplementedError, ValueError) as e:
        return all(word in str(e) for word in case["refused"].split("+")), str(e)
    return False, "no error"


def holds(case, text, steps):
    """Whether a case is as it must be on all ranks; rank 0 prints it."""
    paddle.set_default_dtype(case["dtype"])
    if case["refused"]:
        right, said = refusal(case)
        line, off = f"{text}: refused, {said}", float(not right)
        limit = 0.0
    else:
        wanted, limit = reference(case, steps)
        losses, weights = together(case, steps)
        off = apart(losses, weights, wanted)
    worst = paddle.to_tensor(np.array([off], "float64"))
    dist.all_reduce(worst, dist.ReduceOp.MAX)
    off = float(worst)
    if not case["refused"]:
        line = f"{text}: {off:.1e} of {limit:.1e}"
    if dist.get_rank() == 0:
        print(line if off <= limit else f"BAD {line}", flush=True)
    return off <= limit


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("cases", nargs="+")
    parser.add_argument("--steps", type=int, default=50)
    options = parser.parse_args()
    dist.init_parallel_env()
    allow_on_cpu("float16")
    bad = [text for text in options.cases if not holds(read(text), text, options.steps)]
    sys.exit(bool(bad))


main()
