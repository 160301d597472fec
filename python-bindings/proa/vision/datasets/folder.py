"""Images in folders: a folder a class (DatasetFolder), or any (ImageFolder)."""
import os

from ...io import Dataset
from ..image import get_image_backend, image_load

IMG_EXTENSIONS = (".jpg", ".jpeg", ".png", ".ppm", ".bmp", ".pgm", ".tif", ".tiff", ".webp")


def has_valid_extension(filename, extensions):
    """Whether a file's name ends in one of the extensions, in any case."""
    return filename.lower().endswith(tuple(extensions))


def default_loader(path):
    """An image in RGB, read by cv2 if that is the chosen library, else by PIL."""
    if get_image_backend() == "cv2":
        return image_load(path)[:, :, ::-1]
    return image_load(path, "pil").convert("RGB")


def _files(folder, extensions, is_valid_file):
    if (extensions is None) == (is_valid_file is None):
        raise ValueError("DatasetFolder: give either extensions or is_valid_file")
    accepted = is_valid_file or (lambda path: has_valid_extension(path, extensions))
    for root, _, names in sorted(os.walk(folder, followlinks=True)):
        for name in sorted(names):
            path = os.path.join(root, name)
            if accepted(path):
                yield path


def _extensions(extensions, is_valid_file):
    return IMG_EXTENSIONS if extensions is None and is_valid_file is None else extensions


class DatasetFolder(Dataset):
    """(sample, class index) of every file in root/<class>/…; classes are numbered in the order of their names."""

    def __init__(self, root, loader=None, extensions=None, transform=None, is_valid_file=None):
        self.root = root
        self.transform = transform
        self.loader = loader or default_loader
        self.extensions = extensions = _extensions(extensions, is_valid_file)
        self.classes = sorted(entry.name for entry in os.scandir(root) if entry.is_dir())
        self.class_to_idx = {name: k for k, name in enumerate(self.classes)}
        self.samples = [(path, k) for name, k in self.class_to_idx.items()
                        for path in _files(os.path.join(root, name), extensions, is_valid_file)]
        if not self.samples:
            raise RuntimeError(f"DatasetFolder: {root} has no files with extensions {extensions}")
        self.targets = [k for _, k in self.samples]
        self.dtype = "float32"

    def __getitem__(self, index):
        path, target = self.samples[index]
        sample = self.loader(path)
        return (sample if self.transform is None else self.transform(sample)), target

    def __len__(self):
        return len(self.samples)


class ImageFolder(Dataset):
    """[sample] of every file below root with one of the extensions (images, if none are given). As in Paddle 2.6,
    is_valid_file changes nothing."""

    def __init__(self, root, loader=None, extensions=None, transform=None, is_valid_file=None):
        self.root = root
        self.transform = transform
        self.loader = loader or default_loader
        self.extensions = extensions = IMG_EXTENSIONS if extensions is None else extensions
        self.samples = list(_files(root, extensions, None))
        if not self.samples:
            raise RuntimeError(f"ImageFolder: {root} has no files with extensions {extensions}")

    def __getitem__(self, index):
        sample = self.loader(self.samples[index])
        return [sample if self.transform is None else self.transform(sample)]

    def __len__(self):
        return len(self.samples)
