"""Executor.split_program_by_device: the one region of a program's forward that runs on another device than the CPU."""

_HOST = "cpu"
_OPTIMIZE = 2  # the role of an optimizer's operators


def _device(op):
    return op.attr("op_device") or _HOST


def _forward(program):
    """The operators before the optimizer's."""
    kept = []
    for op in program.global_block().ops:
        if op._role is not None and op._role & _OPTIMIZE:
            break
        kept.append(op)
    return kept


def _grouped(ops, devices):
    """[(device, its operators)], neighbors of one device together."""
    groups = []
    for op, device in zip(ops, devices):
        if not groups or groups[-1][0] != device:
            groups.append((device, []))
        groups[-1][1].append(op)
    return groups


def _absorb_host(groups):
    """Groups of the CPU between two of one device become that device's; False leaves the rest as it is."""
    devices = [device for device, _ in groups]
    at = 0
    while True:
        while at < len(devices) and devices[at] == _HOST:
            at += 1
        if at == len(devices):
            return devices
        device, start = devices[at], at + 1
        at = start
        while at < len(devices) and devices[at] == _HOST:
            at += 1
        if at == len(devices):
            return devices
        if devices[at] == device:
            devices[start:at] = [device] * (at - start)


def _inputs_and_outputs(ops):
    """(names read that the operators do not make first, names that they make)."""
    read, made = set(), set()
    for op in ops:
        read |= {name for name in op.input_arg_names if name not in made}
        made |= set(op.output_arg_names)
    return read, made


def _program_of(program, ops, received, sent):
    """A program of these operators, fed what is received: of what is sent on."""
    made, written = program.clone(), {name for op in ops for name in op.output_arg_names}
    core = made._core
    core.keep([at for at, link in enumerate(core.links()) if written & set(link[4])])
    core.set_inputs([core.find(name) for name in received])
    core.set_outputs([core.find(name) for name in sent])
    if sent:
        core.prune()
    else:
        core.keep([])  # nobody reads what it makes
    return made


def split(program):
    """[first operator, last operator, names it sends on, names it receives, its program] of the region; None: all operators run
    on the CPU. Regions are what device_guard says; host operators between two parts of a region belong to it."""
    ops = _forward(program)
    groups = _grouped(ops, [_device(op) for op in ops])
    devices = _absorb_host(groups)
    groups = _grouped([op for _, part in groups for op in part],
                      [device for device, (_, part) in zip(devices, groups) for _ in part])
    fed = {name for name, var in program.global_block().vars.items() if not var.persistable}
    received, before = [], set()
    for i, (_, part) in enumerate(groups):
        read, made = _inputs_and_outputs(part)
        received.append([] if i == 0 else sorted(((before | fed) if i == 1 else before) & read))
        before = made
    found = [i for i, (device, _) in enumerate(groups) if device != _HOST]
    if not found:
        print("warning: non heter program")
        return None
    if len(found) > 1:
        print("only one region of program can be heter")
    at = found[-1]
    first = sum(len(part) for _, part in groups[:at])
    sent = received[at + 1] if at + 1 < len(groups) else []
    return [first, first + len(groups[at][1]) - 1, sent, received[at], _program_of(program, groups[at][1], received[at], sent)]
