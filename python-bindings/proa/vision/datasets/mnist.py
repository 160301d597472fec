"""MNIST and FashionMNIST in their own format (idx, gzipped or not)."""
import gzip
import os
import struct

from ...io import Dataset
from ...framework import get_default_dtype
from ..image import _BACKENDS, get_image_backend

_HOME = os.path.join("~", ".cache", "paddle", "dataset")


def _read(path, magic, who):
    import numpy as np
    with open(path, "rb") as f:
        data = f.read()
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    if len(data) < 8 or struct.unpack(">I", data[:4])[0] != magic:
        raise ValueError(f"{who}: {path} is not such an idx file (magic number {magic})")
    rank = magic & 0xFF
    dims = struct.unpack(f">{rank}I", data[4:4 + 4 * rank])
    values = np.frombuffer(data, np.uint8, offset=4 + 4 * rank)
    if values.size != int(np.prod(dims)):
        raise ValueError(f"{who}: {path} is cut short: {values.size} bytes of {dims}")
    return values.reshape(dims)


class MNIST(Dataset):
    """Images of 28×28 and their labels, from image_path and label_path, or from the files that Paddle keeps in
    ~/.cache/paddle/dataset."""
    NAME = "mnist"
    # Where Paddle gets the files, and their MD5 sums.
    URL_PREFIX = "https://dataset.bj.bcebos.com/mnist/"
    TRAIN_IMAGE_URL = URL_PREFIX + "train-images-idx3-ubyte.gz"
    TRAIN_LABEL_URL = URL_PREFIX + "train-labels-idx1-ubyte.gz"
    TEST_IMAGE_URL = URL_PREFIX + "t10k-images-idx3-ubyte.gz"
    TEST_LABEL_URL = URL_PREFIX + "t10k-labels-idx1-ubyte.gz"
    TRAIN_IMAGE_MD5, TRAIN_LABEL_MD5 = "f68b3c2dcbeaaa9fbdd348bbdeb94873", "d53e105ee54ea40749a09fcbcd1e9432"
    TEST_IMAGE_MD5, TEST_LABEL_MD5 = "9fb629c4189551a2d022fa330f9573f3", "ec29112dd5afa0611ce80d1b7f02629c"

    def __init__(self, image_path=None, label_path=None, mode="train", transform=None, download=True, backend=None):
        who = type(self).__name__
        if mode.lower() not in ("train", "test"):
            raise AssertionError(f"{who}: mode must be 'train' or 'test', got {mode!r}")
        self.mode = mode.lower()
        self.backend = backend or get_image_backend()
        if self.backend not in _BACKENDS[:2]:
            raise ValueError(f"{who}: backend must be 'pil' or 'cv2', got {self.backend!r}")
        stem = "train" if self.mode == "train" else "t10k"
        self.image_path = self._local(image_path, f"{stem}-images-idx3-ubyte.gz", "image_path")
        self.label_path = self._local(label_path, f"{stem}-labels-idx1-ubyte.gz", "label_path")
        self.transform = transform
        self.dtype = get_default_dtype()
        self.images = _read(self.image_path, 2051, who)
        self.labels = _read(self.label_path, 2049, who).astype("int64")
        if len(self.images) != len(self.labels):
            raise ValueError(f"{who}: {len(self.images)} images, but {len(self.labels)} labels")

    def _local(self, path, name, argument):
        path = path or os.path.join(os.path.expanduser(_HOME), self.NAME, name)
        if not os.path.exists(path):
            raise FileNotFoundError(f"{type(self).__name__}: there is no {path}; get {name} and name it by "
                                    f"{argument} (Proa downloads nothing)")
        return path

    def __getitem__(self, idx):
        image, label = self.images[idx], self.labels[idx:idx + 1] if idx >= 0 else self.labels[idx:][:1]
        if self.backend == "pil":
            from PIL import Image
            image = Image.fromarray(image)
        else:
            image = image.astype("float32")
        if self.transform is not None:
            image = self.transform(image)
        return (image if self.backend == "pil" else image.astype(self.dtype)), label

    def __len__(self):
        return len(self.labels)


class FashionMNIST(MNIST):
    """MNIST's twin with pictures of clothes."""
    NAME = "fashion-mnist"
    URL_PREFIX = "https://dataset.bj.bcebos.com/fashion_mnist/"
    TRAIN_IMAGE_URL = URL_PREFIX + "train-images-idx3-ubyte.gz"
    TRAIN_LABEL_URL = URL_PREFIX + "train-labels-idx1-ubyte.gz"
    TEST_IMAGE_URL = URL_PREFIX + "t10k-images-idx3-ubyte.gz"
    TEST_LABEL_URL = URL_PREFIX + "t10k-labels-idx1-ubyte.gz"
    TRAIN_IMAGE_MD5, TRAIN_LABEL_MD5 = "8d4fb7e6c68d591d4c3dfef9ec88bf0d", "25c81989df183df01b3e8a0aad5dffbe"
    TEST_IMAGE_MD5, TEST_LABEL_MD5 = "bef4ecab320f06d8554ea6380940ec79", "bb300cfdad3c16e7a12a480ee83cd310"
