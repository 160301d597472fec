"""Cifar-10 and Cifar-100 from their Python archives (tar.gz). The pickles within are read by Proa's restricted
unpickler: they run no code."""
import os
import tarfile

from ...io import Dataset
from ..image import _BACKENDS, get_image_backend


class Cifar10(Dataset):
    """32×32 images of 10 classes, from data_file or from ~/.cache/paddle/dataset/cifar."""
    _file, _members, _labels = "cifar-10-python.tar.gz", {"train": "data_batch", "test": "test_batch"}, b"labels"

    def __init__(self, data_file=None, mode="train", transform=None, download=True, backend=None):
        who = type(self).__name__
        if mode.lower() not in ("train", "test"):
            raise AssertionError(f"{who}: mode must be 'train' or 'test', got {mode!r}")
        self.mode = mode.lower()
        self.backend = backend or get_image_backend()
        if self.backend not in _BACKENDS[:2]:
            raise ValueError(f"{who}: backend must be 'pil' or 'cv2', got {self.backend!r}")
        self.data_file = data_file or os.path.join(os.path.expanduser("~/.cache/paddle/dataset/cifar"), self._file)
        if not os.path.exists(self.data_file):
            raise FileNotFoundError(f"{who}: there is no {self.data_file}; get {self._file} and name it by "
                                    "data_file (Proa downloads nothing)")
        self.transform = transform
        self.data = []
        with tarfile.open(self.data_file) as archive:
            for name in sorted(n for n in archive.getnames() if self._members[self.mode] in n):
                self._add(archive.extractfile(name))

    def _add(self, file):
        from ._pickles import load
        batch = load(file)
        self.data.extend(zip(batch[b"data"], batch[self._labels]))

    def __getitem__(self, idx):
        import numpy as np
        image, label = self.data[idx]
        image = np.reshape(image, [3, 32, 32]).transpose([1, 2, 0])
        if self.backend == "pil":
            from PIL import Image
            image = Image.fromarray(image.astype("uint8"))
        else:
            image = image.astype("float32")
        if self.transform is not None:
            image = self.transform(image)
        return image, np.array(label).astype("int64")

    def __len__(self):
        return len(self.data)


class Cifar100(Cifar10):
    """Cifar10's twin with 100 classes."""
    _file, _members, _labels = "cifar-100-python.tar.gz", {"train": "train", "test": "test"}, b"fine_labels"
