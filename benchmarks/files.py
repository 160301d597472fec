"""Family `io`: saving and loading 400 MB of tensors, against a write and a read of as many bytes without a framework, and
opening an exported model of that size. Only Proa's save returns after the disk has the file, so its limit is a write with
fsync. Over an adapter of frameworks.py."""
import os

import numpy as np
from common import Row, Unit

MB = 10 ** 6


def sizes(tiny):
    return (4, 64) if tiny else (25, 2000)  # tensors, and their sides: 400 MB


def state(fw, tiny):
    count, side = sizes(tiny)
    return {f"p{i}": fw.tensor(np.ones((side, side), "float32")) for i in range(count)}


def amount(tiny):
    count, side = sizes(tiny)
    return 4 * count * side * side


def plain_write(tiny, synced):
    def make(fw):
        data, path = bytes(amount(tiny)), os.path.join(fw.folder, "plain")

        def call():
            with open(path, "wb") as file:
                file.write(data)
                if synced:
                    os.fsync(file.fileno())
        return call
    return make


def plain_read(tiny):
    def make(fw):
        path = os.path.join(fw.folder, "plain")
        buffer = bytearray(amount(tiny))

        def call():
            with open(path, "rb", buffering=0) as file:
                view, at = memoryview(buffer), 0
                while at < len(buffer):
                    at += file.readinto(view[at:])
        return call
    return make


def save(tiny):
    def make(fw):
        values, path = state(fw, tiny), os.path.join(fw.folder, "state")
        return lambda: fw.save(values, path)
    return make


def load(tiny):
    return lambda fw: lambda: fw.load(os.path.join(fw.folder, "state"))


def open_model(tiny):
    """A chain of square linear layers, exported before."""
    def make(fw):
        path, (count, side) = os.path.join(fw.folder, "large"), sizes(tiny)
        if fw.name == "torch":
            return None
        if not os.path.exists(path + ".done"):
            net = fw.nn.Sequential(*[fw.nn.Linear(side, side) for _ in range(count)])
            fw.export(fw.evaluate(net), (1, side), "float32", path)
            open(path + ".done", "w").close()
        return lambda: fw.t.jit.load(path)
    return make


def units(tiny=False):
    rows = (Row("plain write, 400 MB", plain_write(tiny, False), limit="itself"),
            Row("plain write and sync, 400 MB", plain_write(tiny, True), limit="itself"),
            Row("save, 400 MB", save(tiny), limit="plain write and sync, 400 MB"),
            Row("plain read, 400 MB", plain_read(tiny), limit="itself"),
            Row("load, 400 MB", load(tiny), limit="plain read, 400 MB"),
            Row("open an exported model, 400 MB", open_model(tiny)))
    return [Unit("files", rows, 0.1)]
