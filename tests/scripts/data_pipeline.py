"""Data from every side: datasets, samplers, splits, collation, worker processes, nested samples, reader decorators."""
import numpy as np
import paddle
from paddle.io import (BatchSampler, ChainDataset, ComposeDataset, ConcatDataset, DataLoader, Dataset, DistributedBatchSampler,
                       IterableDataset, RandomSampler, Sampler, SequenceSampler, Subset, TensorDataset,
                       WeightedRandomSampler, get_worker_info, random_split)

from common import say


class Squares(Dataset):
    def __init__(self, n, offset=0):
        self.n, self.offset = n, offset

    def __getitem__(self, i):
        if i >= self.n:
            raise IndexError(i)
        return np.float32((i + self.offset) ** 2), {"index": i, "pair": [np.int64(i), np.full([2], i, "float64")]}

    def __len__(self):
        return self.n


class Stream(IterableDataset):
    def __init__(self, begin, end):
        self.begin, self.end = begin, end

    def __iter__(self):
        info = get_worker_info()
        step = 1 if info is None else info.num_workers
        first = self.begin if info is None else self.begin + info.id
        for i in range(first, self.end, step):
            yield np.array([i, i + 0.5], "float32")


class EvensFirst(Sampler):
    def __iter__(self):
        n = len(self.data_source)
        return iter(list(range(0, n, 2)) + list(range(1, n, 2)))

    def __len__(self):
        return len(self.data_source)


def show(name, loader):
    for k, batch in enumerate(loader):
        flat = batch if isinstance(batch, (list, tuple)) else [batch]
        first = flat[0]
        print(name, k, list(first.shape), first.dtype, np.asarray(first).ravel().tolist())


def main():
    np.random.seed(3)
    data = Squares(10)
    for value, info in DataLoader(data, batch_size=4, num_workers=2):
        print(value.tolist(), info["index"].tolist(), info["pair"][0].dtype, info["pair"][1].shape, info["pair"][1].sum().item())
    show("last dropped", DataLoader(data, batch_size=4, drop_last=True))
    show("evens", DataLoader(data, batch_sampler=BatchSampler(sampler=EvensFirst(data), batch_size=5)))
    show("random", DataLoader(data, batch_sampler=BatchSampler(sampler=RandomSampler(data), batch_size=5)))
    show("replaced", DataLoader(data, batch_sampler=BatchSampler(
        sampler=RandomSampler(data, replacement=True, num_samples=6), batch_size=6)))
    show("weighted", DataLoader(data, batch_sampler=BatchSampler(
        sampler=WeightedRandomSampler([0.1, 0.9, 0, 0, 0, 1, 0, 0, 0, 0], 6), batch_size=3)))
    show("stream", DataLoader(Stream(0, 7), batch_size=3))
    show("two streams", DataLoader(Stream(0, 8), batch_size=2, num_workers=2))
    show("no batches", DataLoader(Stream(0, 2), batch_size=None))
    show("chain", DataLoader(ChainDataset([Stream(0, 2), Stream(5, 8)]), batch_size=4))
    compose = ComposeDataset([TensorDataset([paddle.arange(6)]), Squares(6, 1)])
    print("compose", len(compose), [np.asarray(v).tolist() for v in compose[2][:2]])
    concat = ConcatDataset([Squares(3), Squares(4, 10)])
    print("concat", len(concat), [float(concat[i][0]) for i in (0, 2, 3, 6, -1)])
    print("subset", [float(Subset(data, [1, 5, 9])[i][0]) for i in range(3)], len(SequenceSampler(data)))
    a, b = random_split(data, [7, 3])
    print("split", len(a), len(b), sorted(int(a[i][1]["index"]) for i in range(7)) +
          sorted(int(b[i][1]["index"]) for i in range(3)) != [], len({float(v[0]) for v in list(a) + list(b)}))
    sampler = DistributedBatchSampler(data, batch_size=2, num_replicas=3, rank=1, shuffle=False, drop_last=False)
    print("share", len(sampler), [list(map(int, batch)) for batch in sampler])
    shuffled = DistributedBatchSampler(data, batch_size=2, num_replicas=2, rank=0, shuffle=True)
    shuffled.set_epoch(2)
    print("shuffled", [list(map(int, batch)) for batch in shuffled])
    mean = DataLoader(data, batch_size=5, collate_fn=lambda samples: [np.mean([s[0] for s in samples], keepdims=True)])
    say("means", *(v[0].item() for v in mean))
    try:
        list(DataLoader(Squares(4), batch_size=2, batch_sampler=BatchSampler(data, batch_size=2)))
    except (ValueError, AssertionError):
        print("refused")
    reader = paddle.batch(lambda: iter(range(5)), batch_size=2, drop_last=False)
    print("batch", list(reader()))


if __name__ == "__main__":
    main()
