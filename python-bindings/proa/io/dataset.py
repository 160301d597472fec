"""Datasets with random access (Dataset) and by iteration (IterableDataset), and combinations and subsets of
datasets."""
import bisect


class Dataset:
    """A dataset by index: subclasses have __getitem__ and __len__."""

    def __init__(self):
        pass

    def __getitem__(self, idx):
        raise NotImplementedError(f"{type(self).__name__}: a Dataset must have __getitem__")

    def __len__(self):
        raise NotImplementedError(f"{type(self).__name__}: a Dataset must have __len__")


class IterableDataset(Dataset):
    """A dataset that is a stream: subclasses have __iter__."""

    def __iter__(self):
        raise NotImplementedError(f"{type(self).__name__}: an IterableDataset must have __iter__")

    def __getitem__(self, idx):
        raise RuntimeError(f"{type(self).__name__}: an IterableDataset has no items by index")

    def __len__(self):
        raise RuntimeError(f"{type(self).__name__}: an IterableDataset has no length")


def _check(ok, message):
    if not ok:
        raise AssertionError(message)


class TensorDataset(Dataset):
    """Sample i is the tuple of every tensor's row i."""

    def __init__(self, tensors):
        _check(all(t.shape[0] == tensors[0].shape[0] for t in tensors),
               f"TensorDataset: the tensors' first dims differ: {[t.shape[0] for t in tensors]}")
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(t[index] for t in self.tensors)

    def __len__(self):
        return self.tensors[0].shape[0]


class ComposeDataset(Dataset):
    """Sample i holds the fields of every dataset's sample i."""

    def __init__(self, datasets):
        self.datasets = list(datasets)
        _check(self.datasets, "ComposeDataset: no datasets given")
        for d in self.datasets:
            _check(isinstance(d, Dataset) and not isinstance(d, IterableDataset),
                   f"ComposeDataset: each dataset must be a Dataset by index, got {type(d).__name__}")
        lengths = [len(d) for d in self.datasets]
        _check(len(set(lengths)) == 1, f"ComposeDataset: the datasets' lengths differ: {lengths}")

    def __len__(self):
        return len(self.datasets[0])

    def __getitem__(self, idx):
        fields = []
        for d in self.datasets:
            sample = d[idx]
            if sample is not None:
                fields.extend(sample if isinstance(sample, (list, tuple)) else [sample])
        return tuple(fields)


class ChainDataset(IterableDataset):
    """The streams of several IterableDatasets, one after the other."""

    def __init__(self, datasets):
        self.datasets = list(datasets)
        _check(self.datasets, "ChainDataset: no datasets given")
        for d in self.datasets:
            _check(isinstance(d, IterableDataset),
                   f"ChainDataset: each dataset must be an IterableDataset, got {type(d).__name__}")

    def __iter__(self):
        for d in self.datasets:
            yield from d


class ConcatDataset(Dataset):
    """The samples of several datasets by index, one after the other."""

    @staticmethod
    def cumsum(sequence):
        total, result = 0, []
        for d in sequence:
            total += len(d)
            result.append(total)
        return result

    def __init__(self, datasets):
        self.datasets = list(datasets)
        _check(self.datasets, "ConcatDataset: no datasets given")
        for d in self.datasets:
            _check(not isinstance(d, IterableDataset), "ConcatDataset: an IterableDataset has no items by index")
        self.cumulative_sizes = self.cumsum(self.datasets)

    def __len__(self):
        return self.cumulative_sizes[-1]

    def __getitem__(self, idx):
        if idx < 0:
            if -idx > len(self):
                raise ValueError(f"ConcatDataset: index {idx} is out of range for {len(self)} samples")
            idx += len(self)
        at = bisect.bisect_right(self.cumulative_sizes, idx)
        if at == len(self.datasets):
            raise IndexError(f"ConcatDataset: index {idx} is out of range for {len(self)} samples")
        return self.datasets[at][idx - (self.cumulative_sizes[at - 1] if at else 0)]


class Subset(Dataset):
    """The samples of a dataset at the given indices."""

    def __init__(self, dataset, indices):
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, idx):
        return self.dataset[self.indices[idx]]

    def __len__(self):
        return len(self.indices)


def random_split(dataset, lengths, generator=None):
    """Random, disjoint Subsets of the given lengths, which add up to the dataset's."""
    if sum(lengths) != len(dataset):
        raise ValueError(f"random_split: the lengths {list(lengths)} do not add up to the dataset's {len(dataset)}")
    from .. import _core
    indices, subsets, at = _core.randperm(len(dataset)).tolist(), [], 0
    for n in lengths:
        subsets.append(Subset(dataset, indices[at:at + n]))
        at += n
    return subsets
