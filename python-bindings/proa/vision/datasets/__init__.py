"""paddle.vision.datasets: datasets read from local files; nothing is downloaded."""
from .cifar import Cifar10, Cifar100
from .flowers import VOC2012, Flowers
from .folder import DatasetFolder, ImageFolder
from .mnist import MNIST, FashionMNIST

__all__ = ["Cifar10", "Cifar100", "DatasetFolder", "FashionMNIST", "Flowers", "ImageFolder", "MNIST", "VOC2012"]
