"""One rank of the messages that real Paddle's Gloo can send, on Proa or on real Paddle; writes what came to FOLDER/NAME.RANK.npz.

    python -m paddle.distributed.launch --nproc_per_node 2 tests/ranks/_messages.py paddle FOLDER/NAME
"""
import importlib
import sys

import numpy as np

paddle = importlib.import_module(sys.argv[1])
dist = paddle.distributed
NUMBERS = ("float32", "float64", "int32", "int64")
MOVED = (*NUMBERS, "int8", "uint8", "bool", "float16")


def messages(rank, size):
    """(name, what this rank has then) of each message."""
    for elements in (1, 6, 5000, 200000):
        def value(dtype):
            rng = np.random.RandomState(17 * rank + elements)
            return paddle.to_tensor(rng.randint(0, 4, [size, elements]).astype(dtype))

        for dtype in NUMBERS:
            for op in ("SUM", "MAX", "MIN", "PROD"):
                x, y = value(dtype), value(dtype)
                dist.all_reduce(x, getattr(dist.ReduceOp, op))
                yield f"all_reduce {op} {dtype} {elements}", x
                dist.reduce(y, size - 1, getattr(dist.ReduceOp, op))
                if rank == size - 1:  # elsewhere real Paddle leaves scratch
                    yield f"reduce {op} {dtype} {elements}", y
            parts, mine = [value(dtype)[r] + 1 for r in range(size)], paddle.zeros([elements], dtype)
            dist.scatter(mine, parts if rank == 1 else None, 1)
            yield f"scatter {dtype} {elements}", mine
            there = paddle.zeros([size, elements], dtype)
            for turn in (rank % 2, 1 - rank % 2):  # real Paddle's send waits for its recv
                if turn == 0:
                    dist.send(value(dtype), (rank + 1) % size)
                else:
                    dist.recv(there, (rank - 1) % size)
            yield f"ring {dtype} {elements}", there
        for dtype in MOVED:
            x, every = value(dtype), []
            dist.broadcast(x, size - 1)
            yield f"broadcast {dtype} {elements}", x
            dist.all_gather(every, value(dtype))
            for r, t in enumerate(every):
                yield f"all_gather {dtype} {elements} of {r}", t
        dist.barrier()


def main():
    dist.init_parallel_env()
    rank = dist.get_rank()
    came = {name: tensor.numpy() for name, tensor in messages(rank, dist.get_world_size())}
    np.savez(f"{sys.argv[2]}.{rank}.npz", **came)


main()
