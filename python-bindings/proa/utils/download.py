"""paddle.utils.download: files by their URLs, from a folder of this machine. Nothing is fetched: a file that is not there
is an error that says where to put it."""
import hashlib
import logging
import os
import tarfile
import zipfile

__all__ = ["get_weights_path_from_url"]

logger = logging.getLogger(__name__)
WEIGHTS_HOME = os.path.expanduser("~/.cache/paddle/hapi/weights")
DOWNLOAD_RETRY_LIMIT = 3


def is_url(path):
    """Whether path is an address of http or https."""
    return path.startswith(("http://", "https://"))


def get_weights_path_from_url(url, md5sum=None):
    """The path of a weights file in ~/.cache/paddle/hapi/weights; RuntimeError if it is not there."""
    return get_path_from_url(url, WEIGHTS_HOME, md5sum)


def get_path_from_url(url, root_dir, md5sum=None, check_exist=True, decompress=True, method="get"):
    """The path under root_dir of what a URL names: the file of its last part, or what the archive of that name holds.

    Archives are unpacked beside themselves once. RuntimeError if the file is not there or has another checksum.
    """
    assert is_url(url), f"downloading from {url} not a url"
    path = _map_path(url, root_dir)
    if not os.path.exists(path):
        raise RuntimeError(f"Download from {url} failed: Proa fetches nothing. Put the file at {path}.")
    if os.path.isfile(path) and not _md5check(path, md5sum):
        raise RuntimeError(f"Download from {url} failed: {path} has another MD5 checksum than {md5sum}. Replace the file.")
    if decompress and os.path.isfile(path) and (tarfile.is_tarfile(path) or zipfile.is_zipfile(path)):
        path = _decompress(path)
    return path


def _map_path(url, root_dir):
    return os.path.join(root_dir, url.split("/")[-1])


def _get_unique_endpoints(trainer_endpoints):
    """The first endpoint of each machine."""
    trainer_endpoints.sort()
    first = {}
    for endpoint in trainer_endpoints:
        first.setdefault(endpoint.split(":")[0], endpoint)
    return set(first.values())


def _md5check(fullname, md5sum=None):
    if md5sum is None:
        return True
    digest = hashlib.md5()
    with open(fullname, "rb") as file:
        for piece in iter(lambda: file.read(1 << 20), b""):
            digest.update(piece)
    return digest.hexdigest() == md5sum


def _inside(name, folder):
    """Whether a member of an archive would be written below the folder."""
    whole = os.path.realpath(os.path.join(folder, name))
    return whole == folder or whole.startswith(folder + os.sep)


def _decompress(fname):
    """Unpacks an archive beside itself, unless that was done before; returns the only entry it holds, or a folder of
    its name for several. ValueError if a member would be written elsewhere."""
    folder = os.path.realpath(os.path.dirname(fname))
    archive = tarfile.open(fname, "r:*") if tarfile.is_tarfile(fname) else zipfile.ZipFile(fname)
    with archive:
        names = [name.rstrip("/") for name in
                 (archive.getnames() if isinstance(archive, tarfile.TarFile) else archive.namelist())]
        tops = {os.path.normpath(name).split(os.sep)[0] for name in names}
        if len(tops) == 1:
            target, result = folder, os.path.join(folder, tops.pop())
        else:
            target = result = os.path.join(folder, os.path.basename(fname).rsplit(".", 1)[0])
        odd = next((name for name in names if not _inside(name, os.path.realpath(target))), None)
        if odd is not None:
            raise ValueError(f"{fname} holds {odd!r}, which leads out of its folder: unpack it by hand")
        if not all(os.path.exists(os.path.join(target, name)) for name in names):
            if isinstance(archive, tarfile.TarFile):
                archive.extractall(target, filter="data")
            else:
                archive.extractall(target)
    return result
