"""paddle.dataset.common: the folder of downloaded data sets and checksums of files; download only checks a file that is
there."""
import hashlib
import os

__all__ = ["DATA_HOME", "download", "md5file"]

DATA_HOME = os.path.expanduser("~/.cache/paddle/dataset")


def must_mkdirs(path):
    """Makes a folder that may be there already."""
    os.makedirs(path, exist_ok=True)


def md5file(fname):
    """The MD5 checksum of a file, in hexadecimal digits."""
    digest = hashlib.md5()
    with open(fname, "rb") as file:
        for piece in iter(lambda: file.read(1 << 20), b""):
            digest.update(piece)
    return digest.hexdigest()


def download(url, module_name, md5sum, save_name=None):
    """The path of a data set's file in DATA_HOME/module_name; RuntimeError if it is not there: nothing is fetched."""
    folder = os.path.join(DATA_HOME, module_name)
    path = os.path.join(folder, url.split("/")[-1] if save_name is None else save_name)
    if os.path.exists(path) and (not md5sum or md5file(path) == md5sum):
        return path
    raise RuntimeError(f"Cannot download {url}: Proa fetches nothing. Put the file at {path}.")
