"""vision.ops.read_file and decode_jpeg (real Paddle decodes on GPUs only), and messages where a file is missing."""
import io

import numpy as np
import pytest
from PIL import Image

import proa as paddle
from proa.vision import datasets, ops


@pytest.fixture
def picture(tmp_path):
    values = np.add.outer(np.arange(16) * 8, np.arange(24) * 4).astype("uint8")
    path = tmp_path / "a.jpg"
    Image.fromarray(np.stack([values, 255 - values, values // 2], -1)).save(path, quality=95)
    return path


@pytest.mark.parametrize("mode, kind", [("unchanged", None), ("rgb", "RGB"), ("gray", "L")])
def test_decode_jpeg(picture, mode, kind):
    got = ops.decode_jpeg(ops.read_file(str(picture)), mode=mode)
    image = Image.open(picture)
    want = np.asarray(image.convert(kind) if kind else image)
    want = want[None] if want.ndim == 2 else want.transpose(2, 0, 1)
    assert got.dtype == paddle.uint8
    assert (got.numpy() == want).all()


def test_decode_jpeg_refuses(picture):
    with pytest.raises(ValueError, match="decode_jpeg: mode must be"):
        ops.decode_jpeg(ops.read_file(str(picture)), mode="cmyk")
    with pytest.raises(RuntimeError, match="decode_jpeg: x must be of dtype uint8"):
        ops.decode_jpeg(paddle.zeros([3]))
    with pytest.raises(ValueError, match="decode_jpeg: x must be uint8 of one dim"):
        ops.decode_jpeg(paddle.zeros([3, 2], "uint8"))
    with pytest.raises(FileNotFoundError):
        ops.read_file("/nowhere/a.jpg")


@pytest.mark.parametrize("make", [
    lambda: datasets.MNIST("no.gz", "no.gz"), lambda: datasets.Cifar10("no.tar.gz"), lambda: datasets.Flowers("no.tgz"),
    lambda: datasets.VOC2012("no.tar"), lambda: paddle.text.Imdb("no.tar.gz"), lambda: paddle.text.UCIHousing("no"),
    lambda: paddle.text.WMT16("no", src_dict_size=3, trg_dict_size=3), lambda: paddle.text.Conll05st("no")])
def test_missing_file_is_named(make):
    with pytest.raises(FileNotFoundError, match=r"there is no no.*Proa downloads nothing"):
        make()


def test_hub_downloads_nothing(tmp_path):
    with pytest.raises(ValueError, match="source='local'"):
        paddle.hub.load("owner/name", "model")
    with pytest.raises(RuntimeError, match="there is no .*hubconf.py"):
        paddle.hub.list(str(tmp_path), source="local")


def test_nms_keeps_what_does_not_overlap():
    boxes = paddle.to_tensor([[0.0, 0, 2, 2], [0, 0, 2, 1.9], [5, 5, 6, 6]])
    assert ops.nms(boxes, 0.5).tolist() == [0, 2]
    assert ops.nms(boxes, 0.5, paddle.to_tensor([0.1, 0.9, 0.5])).tolist() == [1, 2]
    assert ops.nms(paddle.zeros([0, 4]), 0.5).tolist() == []


def test_pickles_in_cifar_run_no_code(tmp_path):
    import pickle
    import tarfile

    class Evil:
        def __reduce__(self):
            return print, ("executed",)
    data = pickle.dumps({b"data": Evil(), b"labels": []})
    path = tmp_path / "c.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo("cifar-10-batches-py/data_batch_1")
        member.size = len(data)
        archive.addfile(member, io.BytesIO(data))
    with pytest.raises(pickle.UnpicklingError):
        datasets.Cifar10(str(path))
