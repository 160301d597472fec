"""paddle.vision.transforms on PIL images and tensors; what is random is drawn from seeded generators."""
import random

import numpy as np
import paddle
from paddle.vision import transforms as T
from PIL import Image

from parity import array, case, rand, raised

P = "paddle.vision.transforms."


def picture(h=9, w=12):
    return Image.fromarray((array(h, w, 3, low=0, high=256)).astype("uint8"))


def plain(img):
    return np.array(img)


@case(P + "to_tensor", P + "ToTensor", grad=False)
def to_tensor():
    return [T.to_tensor(picture()), T.ToTensor("HWC")(picture()), T.to_tensor(picture().convert("L")),
            T.to_tensor(plain(picture())), T.to_tensor(array(4, 5, 3).astype("float32"))]


@case(P + "resize", P + "Resize", grad=False)
def resize():
    return [plain(T.resize(picture(), 6)), plain(T.Resize((5, 7), "nearest")(picture())),
            plain(T.resize(picture(), (20, 15), "bicubic")), T.resize(rand(3, 9, 12), 6)]


@case(P + "crop", P + "center_crop", P + "CenterCrop", grad=False)
def crop():
    return [plain(T.crop(picture(), 1, 2, 4, 5)), plain(T.center_crop(picture(), 5)),
            plain(T.CenterCrop((4, 6))(picture())), T.center_crop(rand(3, 9, 12), (4, 7)),
            T.crop(plain(picture()), 1, 2, 3, 4)]


@case(P + "hflip", P + "vflip", P + "RandomHorizontalFlip", P + "RandomVerticalFlip", grad=False)
def flip():
    return [plain(T.hflip(picture())), plain(T.vflip(picture())), T.hflip(rand(3, 4, 5)), T.vflip(rand(3, 4, 5)),
            plain(T.RandomHorizontalFlip(1.0)(picture())), plain(T.RandomVerticalFlip(1.0)(picture())),
            plain(T.RandomHorizontalFlip(0.0)(picture()))]


@case(P + "pad", P + "Pad", grad=False)
def pad():
    return [plain(T.pad(picture(), 2)), plain(T.pad(picture(), (1, 2), 7)), plain(T.pad(picture(), (1, 2, 3, 4), 5)),
            plain(T.Pad(2, padding_mode="edge")(picture())), plain(T.pad(picture(), 3, padding_mode="reflect")),
            plain(T.pad(picture(), 3, padding_mode="symmetric")), T.pad(rand(3, 4, 5), (1, 2), 0.5),
            raised(lambda: T.pad(picture(), (1, 2, 3)))]


@case(P + "normalize", P + "Normalize", P + "Transpose", grad=False)
def normalize():
    return [T.normalize(rand(3, 4, 5), [0.5, 0.4, 0.3], [0.1, 0.2, 0.3]),
            T.Normalize(127.5, 127.5, "HWC")(picture()), T.Transpose()(picture()),
            T.normalize(array(3, 4, 5).astype("float32"), [0.5] * 3, [0.5] * 3), T.Transpose()(picture().convert("L"))]


@case(P + "adjust_brightness", P + "adjust_contrast", P + "adjust_hue", P + "to_grayscale", P + "Grayscale",
      grad=False)
def colors():
    return [plain(T.adjust_brightness(picture(), 1.3)), plain(T.adjust_contrast(picture(), 0.6)),
            plain(T.adjust_hue(picture(), 0.2)), plain(T.to_grayscale(picture())), plain(T.Grayscale(3)(picture())),
            T.adjust_brightness(rand(3, 4, 5, low=0, high=1), 1.3), T.adjust_contrast(rand(3, 4, 5, low=0, high=1), 0.6),
            T.to_grayscale(rand(3, 4, 5))]


@case(P + "adjust_hue", grad=False)
def hue_of_a_tensor():
    return [T.adjust_hue(rand(3, 6, 7, low=0, high=1), f) for f in (-0.4, 0.0, 0.25)]


@case(P + "rotate", P + "RandomRotation", grad=False)
def rotate():
    random.seed(3)
    return [plain(T.rotate(picture(), 30)), plain(T.rotate(picture(), 30, "bilinear", True)),
            plain(T.rotate(picture(), 90, fill=9)), plain(T.RandomRotation(20)(picture()))]


@case(P + "RandomCrop", P + "RandomResizedCrop", P + "Compose", P + "ColorJitter", P + "BrightnessTransform",
      P + "ContrastTransform", P + "SaturationTransform", P + "HueTransform", P + "BaseTransform", grad=False)
def drawn():
    out = []
    for t in (T.RandomCrop(5), T.RandomCrop(14, 1, True), T.RandomResizedCrop(6), T.BrightnessTransform(0.4),
              T.ContrastTransform(0.4), T.SaturationTransform(0.4), T.HueTransform(0.2),
              T.ColorJitter(0.4, 0.4, 0.4, 0.2), T.Compose([T.RandomCrop(6), T.ToTensor()])):
        random.seed(5)
        np.random.seed(5)
        value = t(picture(15, 18))
        out.append(value if isinstance(value, paddle.Tensor) else plain(value))
    return out
