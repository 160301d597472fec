"""Datasets, samplers and the DataLoader."""
import numpy as np
import paddle
from paddle.io import (BatchSampler, ChainDataset, ComposeDataset, ConcatDataset, DataLoader, Dataset,
                       DistributedBatchSampler, IterableDataset, RandomSampler, Sampler, SequenceSampler, Subset,
                       TensorDataset, WeightedRandomSampler, get_worker_info, random_split)

from parity import case, raised


class Rows(Dataset):
    def __init__(self, n=11, start=0):
        self.n, self.start = n, start

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        i += self.start
        return np.full((2, 3), i, "float32"), i, {"half": i / 2, "name": f"row{i}"}


class Numbers(IterableDataset):
    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(np.arange(first, self.n, step, dtype="float32"))


@case("paddle.io.Dataset", "paddle.io.DataLoader", "paddle.io.TensorDataset")
def loader_nested():
    return [list(DataLoader(Rows(), batch_size=4)), list(DataLoader(Rows(), batch_size=4, drop_last=True)),
            len(DataLoader(Rows(), batch_size=4)),
            [t for t in DataLoader(TensorDataset([paddle.arange(6), paddle.ones([6, 2])]), batch_size=4)]]


@case("paddle.io.DataLoader")
def loader_workers():
    return [list(DataLoader(Rows(), batch_size=3, num_workers=2)),
            list(DataLoader(Rows(), batch_size=3, num_workers=2, use_shared_memory=False)),
            list(DataLoader(Rows(), batch_size=None, num_workers=1))]


@case("paddle.io.DataLoader")
def loader_persistent():
    loader = DataLoader(Rows(), batch_size=3, num_workers=2, persistent_workers=True)
    return [[b[1] for b in loader] for _ in range(2)]


@case("paddle.io.DataLoader")
def loader_shuffled():
    return [[b[1] for b in DataLoader(Rows(), batch_size=3, shuffle=True, num_workers=n)] for n in (0, 2)]


@case("paddle.io.DataLoader")
def loader_collate():
    def collate(samples):
        return np.stack([s[0] for s in samples]).sum(0), [s[2]["name"] for s in samples]
    return [list(DataLoader(Rows(), batch_size=4, collate_fn=collate, num_workers=n)) for n in (0, 1)]


@case("paddle.io.IterableDataset", "paddle.io.get_worker_info", "paddle.io.ChainDataset")
def loader_streams():
    loaders = [DataLoader(Numbers(10), batch_size=3), DataLoader(Numbers(10), batch_size=3, drop_last=True),
               DataLoader(Numbers(10), batch_size=3, num_workers=2),
               DataLoader(ChainDataset([Numbers(3), Numbers(2)]), batch_size=2),
               DataLoader(Numbers(3), batch_size=None, collate_fn=lambda x: [np.array([x])])]
    return [[b for b in loader] for loader in loaders]


class Draws(Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, i):
        import random
        return np.random.rand(), random.random(), get_worker_info().id


@case("paddle.io.get_worker_info")
def worker_seeds():
    return list(DataLoader(Draws(), batch_size=2, num_workers=2))


@case("paddle.io.ComposeDataset", "paddle.io.ConcatDataset", "paddle.io.ConcatDataset.cumsum", "paddle.io.Subset")
def datasets_of_datasets():
    both = ConcatDataset([Rows(3), Rows(2, 10)])
    composed = ComposeDataset([Rows(3), Rows(3, 20)])
    part = Subset(both, [4, 0, 3])
    return [len(both), [both[i][1] for i in (0, 2, 3, 4, -1, -5)], ConcatDataset.cumsum([Rows(3), Rows(2)]),
            len(composed), [composed[i][1] for i in range(3)], len(composed[0]), type(composed[0]).__name__,
            len(part), [part[i][1] for i in range(3)], raised(lambda: both[-9], ValueError)]


@case("paddle.io.random_split")
def splits():
    a, b = random_split(Rows(10), [7, 3])
    return [len(a), len(b), sorted(a[i][1] for i in range(7)) + sorted(b[i][1] for i in range(3)) != [],
            sorted([a[i][1] for i in range(7)] + [b[i][1] for i in range(3)]),
            raised(lambda: random_split(Rows(10), [1, 2]), ValueError)]


@case("paddle.io.Sampler", "paddle.io.SequenceSampler", "paddle.io.RandomSampler",
      "paddle.io.RandomSampler.num_samples", "paddle.io.WeightedRandomSampler")
def samplers():
    class Odd(Sampler):
        def __iter__(self):
            return iter(range(1, len(self.data_source), 2))

    return [list(SequenceSampler(Rows(4))), len(SequenceSampler(Rows(4))), list(RandomSampler(Rows(9))),
            list(RandomSampler(Rows(5), replacement=True, num_samples=8)), RandomSampler(Rows(5)).num_samples,
            list(RandomSampler(Rows(5), generator=iter([3, 1, 2]))), len(RandomSampler(Rows(5), True, 8)),
            list(WeightedRandomSampler(np.array([0.1, 0.4, 0.5]), 6)),
            [i for i in WeightedRandomSampler([1, 2, 3.0, 0], 3, False)],
            list(Odd(Rows(6))), raised(lambda: RandomSampler(Rows(3), num_samples=2), ValueError),
            raised(lambda: RandomSampler(Rows(3), replacement=1), TypeError),
            raised(lambda: WeightedRandomSampler([1], 0), ValueError)]


@case("paddle.io.BatchSampler")
def batch_samplers():
    of = BatchSampler(sampler=RandomSampler(Rows(7)), batch_size=3, drop_last=True)
    return [list(BatchSampler(Rows(7), batch_size=3)), len(BatchSampler(Rows(7), batch_size=3)), list(of), len(of),
            list(BatchSampler(Rows(7), shuffle=True, batch_size=2)), raised(lambda: BatchSampler(), AssertionError),
            raised(lambda: BatchSampler(Rows(3), batch_size=0), AssertionError)]


@case("paddle.io.DistributedBatchSampler", "paddle.io.DistributedBatchSampler.set_epoch")
def distributed_sampler():
    result = []
    for size, ranks, batch, shuffle, drop in [(11, 3, 2, False, False), (11, 3, 2, True, True), (2, 5, 1, False, False),
                                              (16, 2, 3, True, False), (7, 1, 3, False, False)]:
        for rank in range(ranks):
            s = DistributedBatchSampler(Rows(size), batch, ranks, rank, shuffle, drop)
            first = [list(s), list(s), len(s)]
            s.set_epoch(5)
            result.append([first, list(s)])
    return result


@case("paddle.io.DataLoader")
def loader_errors():
    return [raised(lambda: DataLoader(Numbers(3), shuffle=True), ValueError),
            raised(lambda: DataLoader(Numbers(3), batch_sampler=BatchSampler(Rows(3))), ValueError),
            raised(lambda: DataLoader(Rows(3), batch_size=2, batch_sampler=BatchSampler(Rows(3))), AssertionError),
            raised(lambda: len(DataLoader(Numbers(3))), ValueError), raised(lambda: DataLoader(Rows(3), batch_size=0),
                                                                            AssertionError),
            raised(lambda: DataLoader(Rows(3), num_workers=-1), AssertionError),
            raised(lambda: Dataset()[0], NotImplementedError), raised(lambda: len(Numbers(3)), RuntimeError)]


@case("paddle.save", "paddle.load")
def saved():
    import io
    net, result = paddle.nn.Linear(2, 3), []
    net.weight.set_value(np.arange(6, dtype="float32").reshape(2, 3))
    for what in (net.state_dict(), [net.weight, {"step": 3, "more": (net.bias, "text")}], net.weight):
        for protocol in (2, 4):
            buffer = io.BytesIO()
            paddle.save(what, buffer, protocol=protocol)
            result.append(len(buffer.getvalue()))
            for options in ({}, {"return_numpy": True}):
                buffer.seek(0)
                result.append(paddle.load(buffer, **options))
    return result + [raised(lambda: paddle.save([1], io.BytesIO(), protocol=5), ValueError),
                     raised(lambda: paddle.save(net, io.BytesIO()), ValueError),
                     raised(lambda: paddle.load("/absent/file"), ValueError)]


@case("paddle.io.SubsetRandomSampler")
def subset_sampler():
    return sorted(int(i) for i in paddle.io.SubsetRandomSampler([5, 2, 9]))
