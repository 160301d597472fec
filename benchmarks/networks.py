"""The networks of family `training` with their batches, over sizes: the usual ones, small ones for the smoke test, and two more
of each network that are drawn anew for every release (family `sizes`), so that no kernel is written for a table's own shapes."""
import collections.abc
import dataclasses
import pathlib
import random as draws
import re

from frameworks import integers, random
import models

ROOT = pathlib.Path(__file__).resolve().parent.parent
DRAWN = 2  # sizes of a network beside the usual ones


@dataclasses.dataclass(frozen=True)
class Network:
    """name: a format of the sizes. build(fw, **sizes) is the module; batch(**sizes) its input and labels. usual, tiny: sizes by
    name. drawn: the values that a release draws some of them from. more: what only the small network is built with."""
    name: str
    build: collections.abc.Callable
    batch: collections.abc.Callable
    usual: dict
    tiny: dict
    drawn: dict
    more: dict = dataclasses.field(default_factory=dict)


def images(channels):
    return lambda n, side: (random(n, channels, side, side), integers(10, n))


def tokens(high):
    return lambda n, length, **_: (integers(high, n, length), integers(high, n * length, seed=1))


SMALL = {"n": 2, "side": 32}
SHORT = {"n": 1, "length": 8}
BATCHES, SIDES = range(2, 25), range(64, 225, 16)
NETWORKS = [
    Network("LeNet, {n}×1×{side}×{side}", lambda fw, **_: models.lenet(fw), images(1), {"n": 64, "side": 28}, {"n": 2, "side": 28},
            {"n": range(8, 257)}),
    Network("ResNet-18, {n}×3×{side}×{side}", lambda fw, n, side, **more: models.resnet(fw, 18, **more), images(3),
            {"n": 16, "side": 64}, SMALL, {"n": BATCHES, "side": SIDES}, {"blocks": [1, 1], "width": 8}),
    Network("ResNet-50, {n}×3×{side}×{side}", lambda fw, n, side, **more: models.resnet(fw, 50, **more), images(3),
            {"n": 4, "side": 128}, SMALL, {"n": range(2, 9), "side": SIDES}, {"blocks": [1, 1], "width": 8}),
    Network("MobileNetV2, {n}×3×{side}×{side}", lambda fw, n, side, **more: models.mobilenet_v2(fw, 10, **more), images(3),
            {"n": 8, "side": 128}, SMALL, {"n": BATCHES, "side": SIDES}, {"settings": ((1, 16, 1, 1), (6, 24, 1, 2))}),
    Network("encoder, {layers}×{width}, {n}×{length} tokens", lambda fw, width, layers, **_: models.encoder(fw, width, layers),
            lambda n, length, width, layers: (random(n, length, width), integers(width, n * length)),
            {"layers": 4, "width": 256, "n": 8, "length": 64}, {**SHORT, "layers": 1, "width": 16},
            {"width": range(128, 641, 32), "n": BATCHES, "length": range(16, 257)}),
    Network("decoder, {layers}×{width}, {n}×{length} tokens",
            lambda fw, width, layers, length, n, heads=None: models.decoder(fw, width=width, layers=layers, length=length,
                                                                            heads=heads or width // 64),
            tokens(65), {"layers": 6, "width": 384, "n": 2, "length": 256}, {**SHORT, "layers": 1, "width": 16},
            {"width": range(192, 641, 64), "n": range(1, 7), "length": range(32, 385)}, {"heads": 2}),
    Network("LSTM, 2×{hidden}, {n}×{length} tokens",
            lambda fw, hidden, width=256, **_: models.lstm(fw, width=width, hidden=hidden), tokens(1000),
            {"hidden": 512, "n": 32, "length": 32}, {**SHORT, "hidden": 8},
            {"hidden": range(128, 769, 32), "n": range(4, 65), "length": range(8, 65)}, {"width": 8}),
    Network("tiny MLP, {n}×64", lambda fw, **_: models.mlp(fw), lambda n: (random(n, 64), integers(10, n)), {"n": 64}, {"n": 64},
            {"n": range(8, 513)}),
]


def release():
    """The version that CMakeLists.txt states."""
    return re.search(r"^project\(Proa VERSION (\S+)", (ROOT / "CMakeLists.txt").read_text(), re.M)[1]


def drawn_sizes(network):
    """The sizes that this release draws for the network: no two alike, none the usual ones."""
    source = draws.Random(f"{release()} {network.name}")
    found = [network.usual]
    while len(found) <= DRAWN:
        sizes = {**network.usual, **{name: source.choice(values) for name, values in network.drawn.items()}}
        if sizes not in found:
            found.append(sizes)
    return found[1:]


def workload(network, sizes, tiny):
    """(how the module is built over an adapter, its input, its labels); tiny: the small network, whatever the sizes."""
    sizes, more = (network.tiny, network.more) if tiny else (sizes, {})

    def part(which):
        return lambda: network.batch(**sizes)[which]
    return lambda fw: network.build(fw, **sizes, **more), part(0), part(1)


def usual(tiny):
    """name -> workload."""
    return {n.name.format(**n.usual): workload(n, n.usual, tiny) for n in NETWORKS}


def drawn(tiny):
    """name -> workload, of the release's sizes."""
    return {n.name.format(**sizes): workload(n, sizes, tiny) for n in NETWORKS for sizes in drawn_sizes(n)}
