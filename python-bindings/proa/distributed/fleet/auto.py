"""The switch `auto` of a strategy: degrees that the simulator chooses (proa_plan_choose) for a described model, at the speeds of
this job's ranks."""
import time

from ... import _core
from .. import communication as _c
from ..group import get_rank, get_world_size
from ..objects import broadcast_object_list

_AXES = {"dp": "data", "pp": "pipe", "sharding": "sharding", "mp": "model"}


def _median(call, times=5):
    call()
    took = []
    for _ in range(times):
        began = time.perf_counter()
        call()
        took.append(time.perf_counter() - began)
    return sorted(took)[times // 2]


def measured():
    """Speeds of a rank: a product, a large addition, and with several ranks the ring of their all-reduces. All ranks call it."""
    side, n, ranks = 512, 1 << 22, get_world_size()
    x, y = _core.full([side, side], 1.0, _core.float32), _core.full([n], 1.0, _core.float32)
    machine = {"flops": 2 * side ** 3 / _median(lambda: _core.matmul(x, x)), "memory_bandwidth": 12 * n / _median(lambda: _core.add(y, y))}
    if ranks > 1:
        small, large = (_core.full([k], 0.0, _core.float32) for k in (1 << 8, 1 << 20))
        sooner, later = (_median(lambda t=t: _c.all_reduce(t)) for t in (small, large))
        rounds = 2 * (ranks - 1)
        machine["link"] = rounds * 4 * ((1 << 20) - (1 << 8)) / ranks / max(later - sooner, 1e-9)
        machine["latency"] = sooner / rounds
    return machine


def _weighed(strategy, plan):
    """(index of the chosen class or −1, classes), the same on all ranks: rank 0's."""
    machine = dict(plan["machine"]) if plan.get("machine") else measured()
    pure = strategy.amp and strategy.amp_configs["use_pure_fp16"]
    search = {"ranks": get_world_size(), "batch": plan["batch"], "precision": 2 if pure else int(strategy.amp), **plan.get("bounds", {})}
    found = [_core.plan_choose(dict(plan["model"]), search, machine) if get_rank() == 0 else None]
    if get_world_size() > 1:
        broadcast_object_list(found, 0)
    return found[0]


def choose_degrees(strategy):
    """Sets a strategy's degrees and micro-batches to the chosen ones; strategy.auto_choice says what was weighed, and rank 0 prints
    it. strategy.auto_plan describes the job: "model" (layers, hidden, heads, vocabulary, sequence; or chain), "batch" (rows of a step
    over all ranks), "machine" (speeds, as proa_plan_machine; measured if it is left out), "bounds" (as proa_plan_search)."""
    plan = strategy.auto_plan
    if not isinstance(plan, dict) or not {"model", "batch"} <= plan.keys():
        raise ValueError(f"fleet.init: strategy.auto_plan must be a dict with model and batch, got {plan!r}")
    given = {f"{name}_degree": strategy.hybrid_configs[f"{name}_degree"] for name in _AXES}
    if any(degree > 1 for degree in given.values()):
        raise ValueError(f"fleet.init: strategy.auto chooses the degrees that hybrid_configs sets ({given}); leave one of them out")
    chosen, classes = _weighed(strategy, plan)
    lines = [f"{one['name']}: {one['why']}" for one in classes]
    if chosen < 0:
        raise ValueError("fleet.init: strategy.auto finds no degrees\n" + "\n".join(lines))
    job = classes[chosen]["job"]
    strategy.hybrid_configs = {f"{name}_degree": job[axis] for name, axis in _AXES.items()}
    strategy.pipeline_configs = {"micro_batch_size": job["micro_batch"], "accumulate_steps": job["micro_batches"]}
    strategy.auto_choice = {"job": job, "result": classes[chosen]["result"], "why": lines}
    if get_rank() == 0:
        print("\n".join(["fleet: degrees of parallelism", *(f"  {line}" for line in lines)]), flush=True)
