"""paddle.vision.datasets and paddle.text on small files of the published layouts, made here."""
import gzip
import io
import os
import pickle
import struct
import tarfile
import tempfile
import zipfile

import numpy as np
import paddle
from paddle.vision import datasets, set_image_backend
from PIL import Image

from parity import case, raised

V, T = "paddle.vision.datasets.", "paddle.text."


def rng():
    return np.random.RandomState(3)


def image(seed, size=(6, 5), mode="RGB"):
    shape = (*size, 3) if mode == "RGB" else size
    return Image.fromarray(np.random.RandomState(seed).randint(0, 256, shape).astype("uint8"), mode)


def encoded(picture, kind):
    out = io.BytesIO()
    picture.save(out, kind)
    return out.getvalue()


def tar(path, files, mode="w:gz"):
    with tarfile.open(path, mode) as archive:
        for name, data in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))
    return path


def idx(folder, name, values):
    head = struct.pack(">HBB" + "I" * values.ndim, 0, 8, values.ndim, *values.shape)
    path = os.path.join(folder, name)
    with gzip.open(path, "wb") as f:
        f.write(head + values.astype("uint8").tobytes())
    return path


def shown(sample):
    return [np.asarray(part) for part in sample]


@case(V + "MNIST", V + "FashionMNIST", V + "MNIST.NAME", V + "FashionMNIST.NAME", grad=False)
def mnist():
    out = []
    with tempfile.TemporaryDirectory() as folder:
        images = idx(folder, "images.gz", rng().randint(0, 256, (100, 28, 28)))
        labels = idx(folder, "labels.gz", rng().randint(0, 10, (100,)))
        for kind in (datasets.MNIST, datasets.FashionMNIST):
            for backend in ("pil", "cv2"):
                data = kind(images, labels, mode="test", backend=backend)
                out += [len(data), kind.NAME, *shown(data[3]), type(data[0][0]).__name__]
        data = datasets.MNIST(images, labels, transform=paddle.vision.transforms.ToTensor())
        out += [data[1][0], data[1][1], raised(lambda: datasets.MNIST(images, labels, mode="middle"))]
    return out


SOURCES = ["URL_PREFIX"] + [f"{part}_{what}" for part in ("TRAIN_IMAGE", "TRAIN_LABEL", "TEST_IMAGE", "TEST_LABEL")
                            for what in ("URL", "MD5")]


@case(*(V + f"{kind}.{name}" for kind in ("MNIST", "FashionMNIST") for name in SOURCES), grad=False)
def sources():
    return [getattr(kind, name) for kind in (datasets.MNIST, datasets.FashionMNIST) for name in SOURCES]


@case(V + "Cifar10", V + "Cifar100", grad=False)
def cifar():
    out = []
    with tempfile.TemporaryDirectory() as folder:
        def batch(seed, key):
            r = np.random.RandomState(seed)
            return pickle.dumps({b"data": r.randint(0, 256, (4, 3072)).astype("uint8"), key: r.randint(0, 9, 4).tolist()}, 2)

        ten = tar(os.path.join(folder, "10.tar.gz"), {
            f"cifar-10-batches-py/{n}": batch(i, b"labels") for i, n in enumerate(("data_batch_1", "data_batch_2", "test_batch"))})
        hundred = tar(os.path.join(folder, "100.tar.gz"), {
            f"cifar-100-python/{n}": batch(i, b"fine_labels") for i, n in enumerate(("train", "test"))})
        for kind, path in ((datasets.Cifar10, ten), (datasets.Cifar100, hundred)):
            for mode in ("train", "test"):
                data = kind(path, mode=mode)
                out += [len(data), *shown(data[0]), type(data[0][0]).__name__]
            out += shown(kind(path, mode="test", backend="cv2", transform=lambda x: x[:2, :2])[1])
    return out


@case(V + "DatasetFolder", V + "ImageFolder", "paddle.vision.image_load", "paddle.vision.set_image_backend",
      "paddle.vision.get_image_backend", "paddle.vision.image.image_load", grad=False)
def folders():
    out = []
    with tempfile.TemporaryDirectory() as root:
        for k, name in enumerate(("b", "a", "c/d")):
            os.makedirs(os.path.join(root, name))
            for j in range(2):
                image(10 * k + j).save(os.path.join(root, name, f"{j}.png"))
        open(os.path.join(root, "a", "notes.txt"), "w").close()
        data = datasets.DatasetFolder(root)
        flat = datasets.ImageFolder(root, transform=lambda x: np.asarray(x)[0])
        out += [len(data), data.classes, data.class_to_idx, data.targets, *shown(data[2]),
                [os.path.relpath(p, root) for p, _ in data.samples], [os.path.relpath(p, root) for p in flat.samples],
                flat[4][0], len(datasets.ImageFolder(root, is_valid_file=lambda p: p.endswith("txt"))),
                raised(lambda: datasets.DatasetFolder(root, extensions=(".nothing",)), RuntimeError)]
        path = os.path.join(root, "a", "0.png")
        out += [np.asarray(paddle.vision.image_load(path)), paddle.vision.image_load(path, backend="cv2"),
                paddle.vision.get_image_backend()]
        set_image_backend("cv2")
        out += [data[0][0], paddle.vision.get_image_backend(), raised(lambda: set_image_backend("x"))]
        set_image_backend("pil")
    return out


@case(V + "Flowers", V + "VOC2012", grad=False)
def archives():
    import scipy.io
    out = []
    with tempfile.TemporaryDirectory() as folder:
        where = os.path.join(folder, "102flowers.tgz")
        tar(where, {f"jpg/image_{i:05d}.jpg": encoded(image(i), "JPEG") for i in range(1, 7)})
        labels, parts = os.path.join(folder, "l.mat"), os.path.join(folder, "s.mat")
        scipy.io.savemat(labels, {"labels": [[5, 4, 3, 2, 1, 9]]})
        scipy.io.savemat(parts, {"tstid": [[2, 4, 6]], "trnid": [[1]], "valid": [[5, 3]]})
        for mode in ("train", "test", "valid"):
            data = datasets.Flowers(where, labels, parts, mode=mode)
            out += [len(data), *shown(data[len(data) - 1])]
        out += shown(datasets.Flowers(where, labels, parts, backend="cv2", transform=lambda x: x[:2])[0])
        root = "VOCdevkit/VOC2012/"
        files = {f"{root}ImageSets/Segmentation/{n}.txt": text for n, text in (
            ("trainval", b"one\ntwo\nthree\n"), ("train", b"one\ntwo\n"), ("val", b"three\n"))}
        for k, n in enumerate(("one", "two", "three")):
            files[f"{root}JPEGImages/{n}.jpg"] = encoded(image(k), "JPEG")
            files[f"{root}SegmentationClass/{n}.png"] = encoded(image(k, mode="L"), "PNG")
        voc = tar(os.path.join(folder, "voc.tar"), files, "w")
        for mode in ("train", "test", "valid"):
            data = datasets.VOC2012(voc, mode=mode)
            out += [len(data), *shown(data[0])]
        out += shown(datasets.VOC2012(voc, backend="cv2")[1])
        out.append(raised(lambda: datasets.VOC2012(voc, mode="middle")))
    return out


@case(T + "Imdb", T + "Imikolov", T + "UCIHousing", T + "datasets.Imdb", T + "datasets.Imikolov", T + "datasets.UCIHousing",
      "paddle.text", T + "Imikolov.word_count", grad=False)
def texts():
    out = []
    with tempfile.TemporaryDirectory() as folder:
        reviews = {f"aclImdb/{mode}/{kind}/{k}.txt": f"the film {kind} was, {'very ' * k}good! {mode}".encode()
                   for mode in ("train", "test") for kind in ("pos", "neg") for k in range(3)}
        path = tar(os.path.join(folder, "imdb.tar.gz"), reviews)
        for mode in ("train", "test"):
            data = paddle.text.Imdb(path, mode=mode, cutoff=2)
            out += [len(data), sorted((str(k), v) for k, v in data.word_idx.items()), *shown(data[0]), *shown(data[5])]
        lines = {n: b"a b c b\nb c c d e\nc b\n" * k for n, k in (("train", 3), ("valid", 2), ("test", 1))}
        path = tar(os.path.join(folder, "ptb.tgz"), {f"./simple-examples/data/ptb.{n}.txt": t for n, t in lines.items()})
        grams = paddle.text.Imikolov(path, "NGRAM", 3, "train", 6)
        pairs = paddle.text.datasets.Imikolov(path, data_type="seq", mode="test", min_word_freq=6)
        out += [len(grams), *shown(grams[4]), sorted((str(k), v) for k, v in grams.word_idx.items()), len(pairs),
                *shown(pairs[1]), sorted((str(k), v) for k, v in grams.word_count([b"x y x"]).items()),
                raised(lambda: paddle.text.Imikolov(path, "WORD"))]
        path = os.path.join(folder, "housing.data")
        np.savetxt(path, rng().uniform(0, 50, (10, 14)))
        for mode in ("train", "test"):
            data = paddle.text.UCIHousing(path, mode=mode)
            out += [len(data), *shown(data[1])]
    return out


@case(T + "Movielens", T + "datasets.Movielens", grad=False)
def movielens():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "ml.zip")
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("ml-1m/movies.dat", "1::Story (1995)::Comedy\n2::Heat (1996)::Comedy\n")
            archive.writestr("ml-1m/users.dat", "1::F::1::10::48067\n2::M::56::16::70072\n")
            archive.writestr("ml-1m/ratings.dat", "".join(f"{u}::{m}::{u + m}::9\n" for u in (1, 2) for m in (1, 2)) * 5)
        out = []
        for mode in ("train", "test"):
            data = paddle.text.Movielens(path, mode=mode, test_ratio=0.3, rand_seed=1)
            # which number a title's word has differs from run to run in Paddle
            out += [len(data), *[part for k, part in enumerate(shown(data[2])) if k != 6]]
        return out


PAIRS = "a b c\tx y\nb c d d\ty z z\nbroken\na a\tz\n"


@case(T + "WMT14", T + "datasets.WMT14", T + "WMT14.get_dict", T + "WMT16", T + "datasets.WMT16", T + "WMT16.get_dict",
      grad=False)
def translations():
    out = []
    with tempfile.TemporaryDirectory() as folder:
        words = "<s>\n<e>\n<unk>\n{}\n"
        path = tar(os.path.join(folder, "wmt14.tgz"), {
            "wmt14/src.dict": words.format("a\nb\nc").encode(), "wmt14/trg.dict": words.format("x\ny").encode(),
            "wmt14/train/train": PAIRS.encode(), "wmt14/test/test": PAIRS[:8].encode()})
        for mode in ("train", "test"):
            data = paddle.text.WMT14(path, mode, 5)
            out += [len(data), *shown(data[len(data) - 1]), data.get_dict(), data.get_dict(reverse=True)]
        path = tar(os.path.join(folder, "wmt16.tar.gz"), {f"wmt16/{m}": PAIRS.encode() for m in ("train", "test", "val")})
        if hasattr(paddle, "dataset"):  # where real Paddle writes its dictionaries
            paddle.dataset.common.DATA_HOME = folder
            os.mkdir(os.path.join(folder, "wmt16"))
        for lang, sizes in (("en", (5, 6)), ("de", (4, 7))):
            data = paddle.text.WMT16(path, "val", *sizes, lang)
            out += [len(data), *shown(data[1]), data.get_dict(lang)]
    return out


@case(T + "Conll05st", T + "datasets.Conll05st", T + "Conll05st.get_dict", T + "Conll05st.get_embedding", grad=False)
def roles():
    with tempfile.TemporaryDirectory() as folder:
        words = "The\ncat\nsaw\na\ndog\n\nIt\nran\n\n"
        props = "-  (A0*\n-  *)\nsee  (V*)\n-  (A1*\n-  *)\n\n-  (A0*)\nrun  (V*)\n\n"
        path = tar(os.path.join(folder, "tests.tar.gz"), {
            f"conll05st-release/test.wsj/{n}/test.wsj.{n}.gz": gzip.compress(t.encode())
            for n, t in (("words", words), ("props", props))})
        files = {}
        for name, text in (("word", "<unk>\nThe\ncat\nsaw\ndog\nran\nbos\neos\n"), ("verb", "see\nrun\n"),
                           ("target", "B-V\nI-V\nB-A0\nI-A0\nB-A1\nI-A1\nO\n"), ("emb", "")):
            files[name] = os.path.join(folder, name)
            with open(files[name], "w") as f:
                f.write(text)
        data = paddle.text.Conll05st(path, files["word"], files["verb"], files["target"], files["emb"])
        # which number a label has differs from run to run in Paddle
        names = {v: k for k, v in data.get_dict()[2].items()}
        return [len(data), [shown(data[i])[:8] for i in range(2)], [[names[int(v)] for v in data[i][8]] for i in range(2)],
                data.get_dict()[:2], sorted(data.get_dict()[2]), os.path.basename(data.get_embedding())]


@case("paddle.vision", V[:-1], "paddle.vision.models", "paddle.vision.transforms", "paddle.vision.image.get_image_backend",
      "paddle.vision.image.set_image_backend", "paddle.vision.ResNet", "paddle.vision.resnet18", "paddle.vision.resnet34",
      "paddle.vision.resnet50", "paddle.vision.resnet101", "paddle.vision.resnet152", grad=False)
def names():
    v = paddle.vision
    v.image.set_image_backend("pil")
    return [v.resnet18 is v.models.resnet18, v.ResNet is v.models.ResNet, v.image.get_image_backend(),
            [callable(getattr(v, f"resnet{n}")) for n in (18, 34, 50, 101, 152)],
            len(v.resnet18(num_classes=3).state_dict()), callable(v.transforms.Compose), callable(datasets.MNIST)]
