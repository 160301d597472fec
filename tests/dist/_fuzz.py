"""Random sequences of collectives: every rank draws the same calls from one seed, with other values, and looks at what NumPy
says. Eager messages (at once and as tasks) and ops, over random groups.

    python -m proa.distributed.launch --nproc_per_node 4 tests/dist/_fuzz.py [CALLS [SEED]]
"""
import sys
import time

import numpy as np

import proa as paddle
import proa.distributed as dist
from proa import _core

REDUCTIONS = {dist.ReduceOp.SUM: np.sum, dist.ReduceOp.MAX: np.max, dist.ReduceOp.MIN: np.min, dist.ReduceOp.PROD: np.prod}
NAMES = ("SUM", "MAX", "MIN", "PROD")
CALLS = 10000
DTYPES = ("float32", "float64", "float16", "int32", "int64", "int8", "uint8")


class Call:
    """One drawn call of a group: `mine` is this rank's value, `every` all members' in their order."""

    def __init__(self, rng, group, rank):
        self.rng, self.group, self.n, self.ranks = rng, group, group.nranks, group.ranks
        self.kind = KINDS[rng.randint(len(KINDS))]
        self.later, self.root, self.op = rng.rand() < 0.4, rng.randint(self.n), int(rng.randint(4))
        size = self.n * int(rng.choice([1, 2, 7, 300, 5000, 40000], p=[.3, .2, .2, .15, .1, .05]))
        low = 0 if (dtype := DTYPES[rng.randint(len(DTYPES))]) == "uint8" else -2
        values = rng.randint(low, 3, (self.n, size)).astype(dtype)
        self.counts = rng.randint(0, 9, (self.n, self.n))
        self.me, self.every = group.rank, values
        self.mine = values[self.me] if self.me >= 0 else None

    def tensor(self, value=None):
        return paddle.to_tensor(np.array(self.mine if value is None else value))

    def reduced(self, axis=0):
        return REDUCTIONS[self.op](self.every, axis=axis).astype(self.every.dtype)

    def part(self, array, r=None):
        return np.split(array, self.n)[self.me if r is None else r]


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


KINDS = (all_reduce, reduce, broadcast, all_gather, scatter, reduce_scatter, all_to_all, all_to_all_counts, ring_of_messages,
         barrier, op_all_reduce, op_gather_and_scatter, op_all_to_all, op_concat_and_split)


def draw_groups(rng, size):
    groups = [dist.get_group(0)]
    for _ in range(4):
        groups.append(dist.new_group(sorted(rng.permutation(size)[:rng.randint(1, size + 1)].tolist())))
    return groups


def settle(waiting, seed):
    for at, kind, task, got, want in waiting:
        if task is not None:
            task.wait()
        if not (got.numpy() == want).all():
            raise AssertionError(f"seed {seed}, call {at}, {kind}: {got.numpy()} is not {want}")
    waiting.clear()


def main():
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else CALLS
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
    dist.init_parallel_env()
    told = [seed]
    dist.broadcast_object_list(told, 0)
    seed, rank, size = told[0], dist.get_rank(), dist.get_world_size()
    rng = np.random.RandomState(seed % (1 << 32))
    groups, waiting, done = draw_groups(rng, size), [], 0
    for at in range(calls):
        call = Call(rng, groups[rng.randint(len(groups))], rank)
        if call.me >= 0:
            waiting.append((at, call.kind.__name__, *call.kind(call)))
            done += 1
        if len(waiting) > 30:
            settle(waiting, seed)
    settle(waiting, seed)
    dist.barrier()
    print(f"seed {seed}, {size} ranks: {calls} calls, {done} of them with rank {rank}: all as NumPy says", flush=True)


main()
