"""Random sequences of collectives: every rank draws the same calls from one seed, with other values, and looks at what NumPy
says. Eager messages (at once and as tasks) and ops, over random groups. Or every call once: each collective with each dtype and
reduction in each group.

    python -m proa.distributed.launch --nproc_per_node 4 tests/ranks/_fuzz.py [CALLS [SEED]]
    python -m proa.distributed.launch --nproc_per_node 4 tests/ranks/_fuzz.py every
"""
import itertools
import sys
import time

import numpy as np

import proa as paddle
import proa.distributed as dist
from proa import _core

NAMES = ("SUM", "MAX", "MIN", "PROD", "AVG")
REDUCTIONS = (np.sum, np.max, np.min, np.prod, np.mean)
CALLS = 10000
FLOATS, INTEGERS, COMPLEX = ("float16", "bfloat16", "float32", "float64"), ("int8", "uint8", "int16", "int32", "int64"), \
    ("complex64", "complex128")
DTYPES = (*FLOATS, *INTEGERS, *COMPLEX, "bool")
SIZES = (0, 1, 7, 300, 5000, 40000)  # elements a rank: none, one, a part of a line, a small round, a slot, several slots


def reductions(dtype):
    """The numbers of the reductions that are defined for a dtype."""
    return range(5) if dtype in FLOATS else (0, 4) if dtype in COMPLEX else range(4)


def carrier(dtype):
    """NumPy's dtype that holds the values: bfloat16 has none, and is exact in float32 for what is drawn."""
    return "float32" if dtype == "bfloat16" else dtype


class Call:
    """One call of a group: `mine` is this rank's value, `every` all members' in their order."""

    def __init__(self, rng, group, kind, dtype, op, size, later):
        self.group, self.n, self.ranks, self.me = group, group.nranks, group.ranks, group.rank
        self.kind, self.dtype, self.op, self.later = kind, dtype, op, later
        self.root = rng.randint(self.n)
        low = 0 if dtype in ("uint8", "bool") else -2
        self.every = rng.randint(low, 3, (self.n, self.n * size)).astype(carrier(dtype))
        self.counts = rng.randint(0, 9, (self.n, self.n))
        self.mine = self.every[self.me] if self.me >= 0 else None

    def tensor(self, value=None):
        made = paddle.to_tensor(np.array(self.mine if value is None else value))
        return made.astype(self.dtype) if self.dtype == "bfloat16" and made.dtype == paddle.float32 else made

    def reduced(self):
        if not self.every.size:
            return self.every[0]
        if self.op == 4:  # the sum, divided in the dtype's own precision, in float32 for halves
            wide = "float32" if self.dtype in ("float16", "bfloat16") else carrier(self.dtype)
            total = self.every.astype(wide).sum(0)
            if self.dtype in COMPLEX:  # real and imaginary part each
                return (total.view(total.real.dtype) / total.real.dtype.type(self.n)).view(wide)
            mean = total / np.dtype(wide).type(self.n)
            if self.dtype == "bfloat16":
                bits = mean.view("uint32").astype("uint64")
                return ((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000).astype("uint32").view("float32")
            return mean.astype(self.every.dtype)
        return REDUCTIONS[self.op](self.every, axis=0).astype(self.every.dtype)

    def part(self, array, r=None):
        return np.split(array, self.n)[self.me if r is None else r]


def draw(rng, groups):
    kind, group = KINDS[rng.randint(len(KINDS))], groups[rng.randint(len(groups))]
    dtypes = TAKES.get(kind, DTYPES)
    dtype = dtypes[rng.randint(len(dtypes))]
    op = int(rng.choice(reductions(dtype)))
    return Call(rng, group, kind, dtype, op, int(rng.choice(SIZES, p=[.05, .25, .2, .25, .2, .05])), rng.rand() < 0.4)


def every_call(rng, groups):
    for group, kind, dtype in itertools.product(groups, KINDS, DTYPES):
        ops = reductions(dtype) if kind in REDUCING else range(1)
        if dtype in TAKES.get(kind, DTYPES):
            for op, size, later in itertools.product(ops, (0, 1, 300, 40000), (False, True)):
                yield Call(rng, group, kind, dtype, op, size, later)


def all_reduce(c):
    x = c.tensor()
    return dist.all_reduce(x, c.op, c.group, sync_op=not c.later), x, c.reduced()


def reduce(c):
    x = c.tensor()
    return (dist.reduce(x, c.ranks[c.root], c.op, c.group, sync_op=not c.later), x,
            c.reduced() if c.me == c.root else c.mine)


def broadcast(c):
    x = c.tensor()
    return dist.broadcast(x, c.ranks[c.root], c.group, sync_op=not c.later), x, c.every[c.root]


def all_gather(c):
    out = c.tensor(np.zeros_like(c.every.reshape(-1)))
    return dist.all_gather(out, c.tensor(), c.group, sync_op=not c.later), out, c.every.reshape(-1)


def scatter(c):
    out = c.tensor(np.zeros_like(c.part(c.mine)))
    return (dist.scatter(out, c.tensor() if c.me == c.root else None, c.ranks[c.root], c.group, sync_op=not c.later), out,
            c.part(c.every[c.root]))


def reduce_scatter(c):
    out = c.tensor(np.zeros_like(c.part(c.mine)))
    return dist.reduce_scatter(out, c.tensor(), c.op, c.group, sync_op=not c.later), out, c.part(c.reduced())


def all_to_all(c):
    out = c.tensor(np.zeros_like(c.mine))
    return (dist.alltoall(c.tensor(), out, c.group, sync_op=not c.later), out,
            np.concatenate([c.part(v) for v in c.every]))


def all_to_all_counts(c):
    sent, came = c.counts[c.me], c.counts[:, c.me]
    value = np.arange(sent.sum(), dtype="int64") + 1000 * c.me
    out = c.tensor(np.zeros(came.sum(), "int64"))
    task = dist.alltoall_single(c.tensor(value), out, sent.tolist(), came.tolist(), c.group, sync_op=not c.later)
    begin = [c.counts[r, :c.me].sum() for r in range(c.n)]
    return task, out, np.concatenate([np.arange(b, b + k) + 1000 * r for r, (b, k) in enumerate(zip(begin, came))])


def ring_of_messages(c):
    """Each to the next; a rank receives before or after it has sent."""
    out = c.tensor(np.zeros_like(c.mine))
    if c.n > 1:
        there = dist.isend(c.tensor(), c.ranks[(c.me + 1) % c.n], c.group)
        here = dist.irecv(out, c.ranks[c.me - 1], c.group)
        there.wait()
        return here, out, c.every[c.me - 1]
    return None, c.tensor(), c.mine


def barrier(c):
    dist.barrier(c.group)
    return None, c.tensor(), c.mine


def op_all_reduce(c):
    return None, _core.all_reduce(c.tensor(), op=NAMES[c.op], group=c.group.id), c.reduced()


def op_gather_and_scatter(c):
    return None, _core.reduce_to(_core.all_gather(c.tensor(), group=c.group.id), dst=c.root, op="MAX", group=c.group.id), \
        c.every.reshape(-1)


def op_all_to_all(c):
    return None, _core.all_to_all(c.tensor(), group=c.group.id), np.concatenate([c.part(v) for v in c.every])


def op_concat_and_split(c):
    x = c.tensor(c.mine.reshape(c.n, -1))
    return None, _core.mp_split(_core.mp_concat(x, group=c.group.id), group=c.group.id), c.mine.reshape(c.n, -1)


REDUCING = {all_reduce, reduce, reduce_scatter, op_all_reduce, op_gather_and_scatter}
TAKES = {op_all_reduce: (*FLOATS, "int8", "uint8", "int32", "int64"),  # ops have fewer dtypes than messages
         op_gather_and_scatter: (*FLOATS, "int8", "uint8", "int32", "int64"), all_to_all_counts: ("int64",), barrier: ("int32",)}
KINDS = (all_reduce, reduce, broadcast, all_gather, scatter, reduce_scatter, all_to_all, all_to_all_counts, ring_of_messages,
         barrier, op_all_reduce, op_gather_and_scatter, op_all_to_all, op_concat_and_split)


def draw_groups(rng, size):
    groups = [dist.get_group(0)]
    for _ in range(4):
        groups.append(dist.new_group(sorted(rng.permutation(size)[:rng.randint(1, size + 1)].tolist())))
    return groups


def settle(waiting, what):
    for at, call, task, got, want in waiting:
        if task is not None:
            task.wait()
        got = (got.astype("float32") if call.dtype == "bfloat16" and got.dtype == paddle.bfloat16 else got).numpy()
        if got.shape != want.shape or not (got == want).all():
            raise AssertionError(f"{what}, call {at}, {call.kind.__name__} of {call.dtype}, {NAMES[call.op]}, ranks {call.ranks}: "
                                 f"{got} is not {want}")
    waiting.clear()


def run(calls, what):
    waiting, done = [], 0
    for at, call in enumerate(calls):
        if call.me >= 0:
            waiting.append((at, call, *call.kind(call)))
            done += 1
        if len(waiting) > 30:
            settle(waiting, what)
    settle(waiting, what)
    dist.barrier()
    print(f"{what}, {dist.get_world_size()} ranks over {dist.get_group(0)._engine}: {at + 1} calls, {done} of them with rank "
          f"{dist.get_rank()}: all as NumPy says", flush=True)


def main():
    every = sys.argv[1:2] == ["every"]
    calls = int(sys.argv[1]) if len(sys.argv) > 1 and not every else CALLS
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
    dist.init_parallel_env()
    told = [seed]
    dist.broadcast_object_list(told, 0)
    seed, size = told[0], dist.get_world_size()
    rng = np.random.RandomState(seed % (1 << 32))
    if every:
        groups = [dist.get_group(0), dist.new_group([size - 1]), dist.new_group([0, size - 1]), dist.new_group(range(0, size, 2))]
        return run(every_call(rng, groups), "every call")
    groups = draw_groups(rng, size)
    return run((draw(rng, groups) for _ in range(calls)), f"seed {seed}")


main()
