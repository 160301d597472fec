#!/usr/bin/env python3
"""Kills every kind of save at random moments, and makes its system calls fail one by one. Each time the file that was
there, or the new one, must be whole, and the next save must leave nothing else behind.

    writers.py [kills a writer]
"""
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[3]
FAULTS = ROOT / "build/tests/libfaults.so"

# name → a call that writes generation v, and one that reads which generation is there; `at` is a prefix of file names
WRITERS = {
    "paddle.save": ("paddle.save({f'w{i}': full(v) for i in range(4)}, at)",
                    "generations(*paddle.load(at).values())"),
    "paddle.save, binary": ("paddle.save(full(v), at, use_binary_format=True)", "generations(paddle.load(at))"),
    "jit.save": ("paddle.jit.save(net(v), at, [paddle.static.InputSpec([None, 64], 'float32')])",
                 "generations(*paddle.jit.load(at).parameters())"),
    "static.save_vars": ("static(v, lambda p, exe: paddle.static.save_vars(exe, os.path.dirname(at), p, "
                         "filename=os.path.basename(at)))",
                         "generation_of_bytes(at)"),
    "static.save": ("static(v, lambda p, exe: paddle.static.save(p, at))",
                    "generations(*paddle.load(at + '.pdparams').values())"),
    "static.save_to_file": ("paddle.static.save_to_file(at, bytes([v]) * 300000)", "generation_of_bytes(at)"),
    "profiler trace": ("trace(v, at)", "whole_json(at)"),
}

CHILD = """
import json, os, sys
import numpy as np
import proa as paddle
at, first, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
def full(v): return paddle.full([160, 160], float(v))
def net(v):
    layer = paddle.nn.Sequential(*[paddle.nn.Linear(64, 64) for _ in range(3)])
    for p in layer.parameters(): p.set_value(paddle.full(p.shape, float(v)))
    return layer
def static(v, save):
    paddle.enable_static()
    program, start, exe = paddle.static.Program(), paddle.static.Program(), paddle.static.Executor()
    with paddle.static.program_guard(program, start), paddle.utils.unique_name.guard():
        value = paddle.ParamAttr(initializer=paddle.nn.initializer.Constant(float(v)))
        x = paddle.static.data('x', [None, 96], 'float32')
        for _ in range(2): x = paddle.static.nn.fc(x, 96, weight_attr=value, bias_attr=value)
    exe.run(start)
    save(program, exe)
    paddle.disable_static()
def trace(v, at):
    from proa import _core
    _core.profile_start()
    x = paddle.ones([4])
    for _ in range(300): x = x + 1
    _core.profile_stop()
    _core.profile_write_trace(at)
def write(v): {write}
print("ready", flush=True)
for i in range(count): write((first + i) % 100 + 1)
"""

READER = """
def generations(*tensors):
    found = {float(x) for t in tensors for x in (t.min(), t.max())}
    assert tensors and len(found) == 1, f"a mixture: {found}"
    return found.pop()
def generation_of_bytes(at):
    data = open(at, "rb").read()
    body = data[-1000:]
    assert body == body[:4] * 250 and data.count(body[:4]) > 1000, "not whole"
    return body[:4]
def whole_json(at):
    import json
    return bool(json.load(open(at))["traceEvents"])
"""


def child(name, at, first, count, environment=()):
    code = CHILD.replace("{write}", WRITERS[name][0])
    return subprocess.Popen([sys.executable, "-c", code, at, str(first), str(count)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True,
                            env={**os.environ, "FLAGS_num_threads": "1", **dict(environment)})


def read(name, at):
    import proa as paddle
    scope = {"paddle": paddle, "at": at, "os": os}
    exec(READER, scope)
    return eval(WRITERS[name][1], scope)


def finish(process, name):
    _, errors = process.communicate()
    if process.returncode:
        sys.exit(f"{name}: a save failed:\n{errors}")


def strange(folder, known):
    return sorted(set(os.listdir(folder)) - known)


def prepared(name, base):
    """A folder with one save in it, the prefix, and the names of its files."""
    folder = pathlib.Path(base, name.replace(" ", "_"))
    folder.mkdir()
    at = str(folder / "file")
    finish(child(name, at, 0, 1), name)
    return folder, at, set(os.listdir(folder))


def kill_loop(name, base, kills, rng):
    """The number of kills that struck while a temporary was there."""
    folder, at, known = prepared(name, base)
    inside = 0
    for i in range(kills):
        process = child(name, at, i, 10 ** 6)
        process.stdout.readline()
        time.sleep(rng.uniform(0, 0.05))
        process.kill()
        process.communicate()
        inside += bool(strange(folder, known))
        read(name, at)
    for _ in range(2):      # of one killed inside a pair of files, the first save may take up only the first
        finish(child(name, at, 0, 1), name)
    left = strange(folder, known)
    if left:
        sys.exit(f"{name}: killed saves have left {left}")
    read(name, at)
    return inside


def fault_loop(name, base, most):
    """The number of injected failures that a save has met: each is an OSError, and harmless."""
    folder, at, known = prepared(name, base)
    before, met = read(name, at), 0
    for call, error in (("write", "ENOSPC"), ("write", "EIO"), ("fsync", "EIO"), ("rename", "EIO"), ("write", "EINTR"),
                        ("fsync", "EINTR"), ("write", "SHORT")):
        for nth in range(1, most + 1):
            process = child(name, at, 5, 1, {"LD_PRELOAD": str(FAULTS), "FAULT_CALL": call, "FAULT_NTH": str(nth),
                                             "FAULT_ERROR": error}.items())
            _, errors = process.communicate()
            if strange(folder, known):
                sys.exit(f"{name}: after {error} of {call} {nth} there are {strange(folder, known)}")
            if process.returncode == 0:
                if error not in ("EINTR", "SHORT") and "fault" in errors:
                    sys.exit(f"{name}: {error} of {call} {nth} was not noticed")
                read(name, at)
                finish(child(name, at, 0, 1), name)
                if "fault" not in errors:
                    break                   # there are no more such calls
            elif error in ("EINTR", "SHORT") or "OSError" not in errors and "[Errno" not in errors:
                sys.exit(f"{name}: {error} of {call} {nth}:\n{errors}")
            elif len(known) == 1 and read(name, at) != before:
                sys.exit(f"{name}: {error} of {call} {nth} has changed the old file")
            met += 1
    return met


def race(name, base, writers, saves):
    """Several processes save to one path at once."""
    folder, at, known = prepared(name, base)
    together = [child(name, at, 20 * i, saves) for i in range(writers)]
    looked = 0
    while any(p.poll() is None for p in together):
        if len(known) == 1:         # the files of a pair change one after the other
            read(name, at)
            looked += 1
        time.sleep(0.002)
    for process in together:
        finish(process, name)
    if strange(folder, known):
        sys.exit(f"{name}: {writers} savers have left {strange(folder, known)}")
    return looked


def main():
    kills, rng = int(sys.argv[1]) if len(sys.argv) > 1 else 40, random.Random(3)
    for name in WRITERS:
        with tempfile.TemporaryDirectory() as base:
            inside = kill_loop(name, base, kills, rng)
        with tempfile.TemporaryDirectory() as base:
            met = fault_loop(name, base, 12)
        with tempfile.TemporaryDirectory() as base:
            race(name, base, 3, 30)
        print(f"{name}: {kills} kills ({inside} with a temporary there), {met} injected failures: whole each time")


if __name__ == "__main__":
    main()
