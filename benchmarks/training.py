"""Family `training`: a step of each network, forward, backward and optimizer, on one batch; and `compiled`, the same steps
eagerly, with a compiled network (to_static, torch.compile), and as one program with its optimizer (static mode), each in a
process of its own. Over an adapter of frameworks.py."""
from common import Row, Unit
from frameworks import integers, random
import models


def classify(fw, model, labels, compiled):
    """A step: cross-entropy over the last axis, backward, optimizer."""
    opt = fw.optimizer("momentum", model.parameters())
    call, labels = fw.compile(model) if compiled else model, fw.tensor(labels)

    def step(x):
        out = call(x)
        loss = fw.F.cross_entropy(out.reshape([-1, out.shape[-1]]), labels)
        loss.backward()
        opt.step()
        fw.clear_grad(opt)
        return float(loss)
    return step


def unit(name, build, x, labels, compiled=False):
    def make(fw):
        step, batch = classify(fw, build(fw), labels(), compiled), fw.tensor(x())
        return lambda: step(batch)
    return Unit(name, (Row("step", make),), 0.3)


def program_unit(name, build, x, labels):
    """The whole step, in static mode."""
    def loss_of(fw, x, labels):
        out = build(fw)(x)
        return fw.F.cross_entropy(out.reshape([-1, out.shape[-1]]), labels)

    def make(fw):
        return fw.program(lambda *inputs: loss_of(fw, *inputs), "momentum", x(), labels())
    return Unit(name, (Row("step", make),), 0.3, ("torch",))


def networks(tiny):
    """name -> how it is built, its batch, its labels."""
    def image(n, c, side):
        n, side = (2, min(side, 32)) if tiny else (n, side)
        return lambda: random(n, c, side, side), lambda: integers(10, n)

    def tokens(high, n, length):
        n, length = (1, 8) if tiny else (n, length)
        return lambda: integers(high, n, length), lambda: integers(high, n * length, seed=1)

    def vectors(n, length, width):
        n, length = (1, 8) if tiny else (n, length)
        return lambda: random(n, length, width), lambda: integers(width, n * length)

    small = {"blocks": [1, 1], "width": 8} if tiny else {}
    settings = ((1, 16, 1, 1), (6, 24, 1, 2)) if tiny else None
    wide, deep = (16, 1) if tiny else (256, 4)
    gpt = {"width": 16, "layers": 1, "heads": 2, "length": 8} if tiny else {}
    return {
        "LeNet, 64×1×28×28": (models.lenet, lambda: random(2 if tiny else 64, 1, 28, 28),
                              lambda: integers(10, 2 if tiny else 64)),
        "ResNet-18, 16×3×64×64": (lambda fw: models.resnet(fw, 18, **small), *image(16, 3, 64)),
        "ResNet-50, 4×3×128×128": (lambda fw: models.resnet(fw, 50, **small), *image(4, 3, 128)),
        "MobileNetV2, 8×3×128×128": (lambda fw: models.mobilenet_v2(fw, 10, settings), *image(8, 3, 128)),
        "encoder, 4×256, 8×64 tokens": (lambda fw: models.encoder(fw, wide, deep), *vectors(8, 64, wide)),
        "decoder, 6×384, 2×256 tokens": (lambda fw: models.decoder(fw, **gpt), *tokens(65, 2, 256)),
        "LSTM, 2×512, 32×32 tokens": (lambda fw: models.lstm(fw, **({"width": 8, "hidden": 8} if tiny else {})),
                                      *tokens(1000, 32, 32)),
        "tiny MLP, 64×64": (models.mlp, lambda: random(64, 64), lambda: integers(10, 64)),
    }


def units(tiny=False):
    return [unit(name, *parts) for name, parts in networks(tiny).items()]


def compiled_units(tiny=False):
    """Units, each followed by how it runs, a comma between: report.py compares those of one network."""
    units = []
    for name, parts in networks(tiny).items():
        if name.startswith(("LeNet", "ResNet-18", "encoder", "tiny MLP")):
            units += [unit(name + ", eager", *parts), unit(name + ", compiled", *parts, compiled=True),
                      program_unit(name + ", one program", *parts)]
    return units
