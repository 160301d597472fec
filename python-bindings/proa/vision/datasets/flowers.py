"""Flowers-102 and VOC2012 from the files that their makers publish; nothing is downloaded."""
import io
import os
import tarfile

from ...io import Dataset
from ..image import _BACKENDS, get_image_backend


def _checked(who, mode, modes, backend):
    if mode.lower() not in modes:
        raise AssertionError(f"{who}: mode must be one of {sorted(modes)}, got {mode!r}")
    backend = backend or get_image_backend()
    if backend not in _BACKENDS[:2]:
        raise ValueError(f"{who}: backend must be 'pil' or 'cv2', got {backend!r}")
    return modes[mode.lower()], backend


def _present(who, given, argument, folder, name):
    path = given or os.path.join(os.path.expanduser("~/.cache/paddle/dataset"), folder, name)
    if not os.path.exists(path):
        raise FileNotFoundError(f"{who}: there is no {path}; get {name} and name it by {argument} "
                                "(Proa downloads nothing)")
    return path


def _image(data):
    from PIL import Image
    image = Image.open(io.BytesIO(data))
    image.load()
    return image


class Flowers(Dataset):
    """102 kinds of flowers: images in data_file (tgz), labels and the parts in .mat files (SciPy reads them).
    As in Paddle, mode 'train' is the part called tstid, the larger one."""
    _parts = {"train": "tstid", "test": "trnid", "valid": "valid"}

    def __init__(self, data_file=None, label_file=None, setid_file=None, mode="train", transform=None, download=True,
                 backend=None):
        part, self.backend = _checked("Flowers", mode, self._parts, backend)
        self.data_file = _present("Flowers", data_file, "data_file", "flowers", "102flowers.tgz")
        label_file = _present("Flowers", label_file, "label_file", "flowers", "imagelabels.mat")
        setid_file = _present("Flowers", setid_file, "setid_file", "flowers", "setid.mat")
        from ...utils.lazy_import import try_import
        matlab = try_import("scipy.io", "Flowers: scipy is needed to read .mat files; pip install scipy")
        self.labels = matlab.loadmat(label_file)["labels"][0]
        self.indexes = matlab.loadmat(setid_file)[part][0]
        self.transform = transform
        with tarfile.open(self.data_file) as archive:
            wanted = {f"jpg/image_{i:05d}.jpg" for i in self.indexes}
            self._files = {m.name: archive.extractfile(m).read() for m in archive if m.name in wanted}

    def __getitem__(self, idx):
        import numpy as np
        index = self.indexes[idx]
        image, label = _image(self._files[f"jpg/image_{index:05d}.jpg"]), np.array([self.labels[index - 1]])
        if self.backend == "cv2":
            image = np.array(image)
        if self.transform is not None:
            image = self.transform(image)
        if self.backend == "cv2":
            from ...framework import get_default_dtype
            image = image.astype(get_default_dtype())
        return image, label.astype("int64")

    def __len__(self):
        return len(self.indexes)


class VOC2012(Dataset):
    """Images and their segmentation masks from the VOCtrainval archive. As in Paddle, 'train' is the part trainval,
    'test' is train."""
    _parts = {"train": "trainval", "test": "train", "valid": "val"}

    def __init__(self, data_file=None, mode="train", transform=None, download=True, backend=None):
        self.flag, self.backend = _checked("VOC2012", mode, self._parts, backend)
        self.data_file = _present("VOC2012", data_file, "data_file", "voc2012", "VOCtrainval_11-May-2012.tar")
        self.transform = transform
        root = "VOCdevkit/VOC2012/"
        with tarfile.open(self.data_file) as archive:
            self._places = {m.name: (m.offset_data, m.size) for m in archive if m.isreg()}
        names = self._read(f"{root}ImageSets/Segmentation/{self.flag}.txt").decode().split()
        self.data = [f"{root}JPEGImages/{n}.jpg" for n in names]
        self.labels = [f"{root}SegmentationClass/{n}.png" for n in names]

    def _read(self, name):
        offset, size = self._places[name]
        with open(self.data_file, "rb") as file:  # opened anew: workers share no position
            file.seek(offset)
            return file.read(size)

    def __getitem__(self, idx):
        import numpy as np
        image, label = _image(self._read(self.data[idx])), _image(self._read(self.labels[idx]))
        if self.backend == "cv2":
            image, label = np.array(image), np.array(label)
        if self.transform is not None:
            image = self.transform(image)
        if self.backend == "cv2":
            from ...framework import get_default_dtype
            return image.astype(get_default_dtype()), label.astype(get_default_dtype())
        return image, label

    def __len__(self):
        return len(self.data)
