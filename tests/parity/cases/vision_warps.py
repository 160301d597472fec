"""Affine, perspective and erased images of all three kinds; the cv2 backend of the other transforms."""
import random

import numpy as np
import paddle
from paddle.vision import transforms as T
from PIL import Image

from parity import array, case, raised, rand

P = "paddle.vision.transforms."


def pixels(h=9, w=12, channels=3):
    return array(h, w, channels, low=0, high=256).astype("uint8")


def plain(img):
    return img if isinstance(img, paddle.Tensor) else np.array(img)


def seeds(n=5):
    random.seed(n)
    np.random.seed(n)


@case(P + "affine", P + "RandomAffine", grad=False, tol=1e-4)  # places of samples in float32
def affine():
    out = []
    for img in (Image.fromarray(pixels()), pixels(), rand(3, 9, 9, low=0, high=1, grad=False)):
        for more in ({}, {"interpolation": "bilinear", "fill": 7}, {"center": (3, 4)}):
            out.append(plain(T.affine(img, 30, (2, 1), 1.2, (10, 5), **more)))
        out.append(plain(T.affine(img, -20.0, [0, 0], 0.8, 15)))
        for t in (T.RandomAffine(30), T.RandomAffine((5, 40), (0.2, 0.3), (0.7, 1.3), 10, "bilinear", 3),
                  T.RandomAffine(10, shear=[1, 5, 2, 8])):
            seeds()
            out.append(plain(t(img)))
    return out + [raised(lambda: T.RandomAffine(-1)), raised(lambda: T.RandomAffine(1, translate=(2, 0))),
                  raised(lambda: T.affine(pixels(), "x", (0, 0), 1, 0)), raised(lambda: T.RandomAffine(1, scale=(0, 1)))]


@case(P + "perspective", P + "RandomPerspective", grad=False, tol=1e-4)  # places of samples in float32
def perspective():
    # no corner on another: on the edge of the image it is rounding that says whether a place is inside
    out, start, end = [], [[0, 0], [8, 0], [8, 8], [0, 8]], [[2.2, 1.3], [7.1, 0.8], [8.3, 6.1], [0.4, 7.2]]
    for img in (Image.fromarray(pixels(9, 9)), pixels(9, 9), rand(3, 9, 9, low=0, high=1, grad=False)):
        out += [plain(T.perspective(img, start, end)), plain(T.perspective(img, start, end, "bilinear", 5))]
        for t in (T.RandomPerspective(1.0), T.RandomPerspective(0.5, 0.3, "bilinear"), T.RandomPerspective(0.0)):
            seeds()
            out.append(plain(t(img)))
    return out + [raised(lambda: T.RandomPerspective(2.0))]


@case(P + "erase", P + "RandomErasing", grad=False)
def erase():
    out = []
    for img in (Image.fromarray(pixels()), pixels(), rand(3, 9, 12, low=0, high=1, grad=False)):
        value = paddle.to_tensor([0.5]) if isinstance(img, paddle.Tensor) else 9
        out.append(plain(T.erase(img, 2, 3, 4, 5, value)))
        for t in (T.RandomErasing(1.0), T.RandomErasing(1.0, (0.1, 0.5), (0.5, 2), (1, 2, 3)), T.RandomErasing(0.0)):
            seeds()
            out.append(plain(t(img)))
    seeds()
    out.append(T.RandomErasing(1.0, value="random")(pixels()))
    return out + [raised(lambda: T.RandomErasing(value="other")), raised(lambda: T.RandomErasing(prob=3))]


@case(P + "rotate", P + "RandomRotation", grad=False, tol=1e-4)  # places of samples in float32
def rotated_tensors():
    x = rand(3, 9, 12, low=0, high=1, grad=False)
    seeds()
    return [T.rotate(x, 30, fill=0), T.rotate(x, -75.0, "bilinear", fill=0), T.rotate(x, 40, expand=True, fill=[1, 2, 3]),
            T.rotate(x, 20, center=(2, 3), fill=5), T.RandomRotation(20)(x)]


@case(P + "resize", P + "rotate", P + "crop", P + "center_crop", P + "hflip", P + "vflip", P + "pad", P + "to_grayscale",
      P + "adjust_brightness", P + "adjust_contrast", P + "adjust_hue", P + "normalize", P + "to_tensor", grad=False)
def arrays():
    img = pixels()
    out = [T.resize(img, s, i) for s in (5, (7, 6)) for i in ("nearest", "bilinear", "bicubic", "area", "lanczos")]
    out += [T.rotate(img, 30), T.rotate(img, 30, "bilinear", True), T.rotate(img, 90, center=(2, 2), fill=9),
            T.crop(img, 1, 2, 4, 5), T.center_crop(img, 5), T.hflip(img), T.vflip(img), T.pad(img, 2), T.pad(img, [1, 2], 5),
            T.pad(img, [1, 2, 3, 4], padding_mode="reflect"), T.pad(img, 2, (1, 2, 3)), T.to_grayscale(img),
            T.to_grayscale(img, 3), T.adjust_brightness(img, 1.3), T.adjust_contrast(img, 0.6), T.adjust_hue(img, 0.2),
            T.normalize(img.astype("float32"), [1, 2, 3], [2, 2, 2], "HWC", True), T.to_tensor(img), T.pad(img, 1, 4, "edge")]
    return out


@case(P + "ColorJitter", P + "RandomCrop", P + "RandomResizedCrop", P + "SaturationTransform", P + "RandomHorizontalFlip",
      P + "RandomVerticalFlip", P + "Resize", P + "CenterCrop", P + "Grayscale", P + "Pad", P + "Transpose", grad=False)
def array_transforms():
    out, img = [], pixels(15, 18)
    for t in (T.ColorJitter(0.4, 0.4, 0.4, 0.2), T.RandomCrop(5), T.RandomCrop(16, 2, True), T.RandomResizedCrop(6),
              T.SaturationTransform(0.5), T.RandomHorizontalFlip(0.9), T.RandomVerticalFlip(0.9), T.Resize((4, 5)),
              T.CenterCrop((4, 6)), T.Grayscale(), T.Pad(3, 2), T.Transpose()):
        seeds()
        out.append(t(img))
    return out
