"""Family `training`: a step of each network, forward, backward and optimizer, on one batch; `sizes`, the same at the release's
drawn sizes; and `compiled`, steps eagerly, with a compiled network (to_static, torch.compile), and as one program with its
optimizer (static mode), each in a process of its own. Over an adapter of frameworks.py."""
from common import Row, Unit
import networks


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


def units(tiny=False):
    return [unit(name, *parts) for name, parts in networks.usual(tiny).items()]


def drawn_units(tiny=False):
    return [unit(name, *parts) for name, parts in networks.drawn(tiny).items()]


def compiled_units(tiny=False):
    """Units, each followed by how it runs, a comma between: report.py compares those of one network."""
    units = []
    for name, parts in networks.usual(tiny).items():
        if name.startswith(("LeNet", "ResNet-18", "encoder", "tiny MLP")):
            units += [unit(name + ", eager", *parts), unit(name + ", compiled", *parts, compiled=True),
                      program_unit(name + ", one program", *parts)]
    return units
