#!/usr/bin/env python3
"""Kills a training program again and again; after every kill it must resume and end bit for bit like the run
that nobody killed. Of 50 kills at least 20 strike between write, fsync and rename of a save; some come right
after the rename, the rest at random moments.

    resume.py [build folder] [kills]
"""
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

STEPS = 24


def start(trainer, folder, *extra):
    return subprocess.Popen([trainer, folder, str(STEPS), *map(str, extra)], stdout=subprocess.DEVNULL,
                            env={**os.environ, "FLAGS_num_threads": "1"})


def finish(trainer, folder):
    if start(trainer, folder).wait() != 0:
        sys.exit("kill test: the resumed run failed")
    return (folder / "final").read_bytes()


def main():
    build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "build")
    kills = int(sys.argv[2]) if len(sys.argv) > 2 else 50
    trainer, rng = (build / "tests" / "trainer").resolve(), random.Random(1)
    with tempfile.TemporaryDirectory() as base:
        reference = pathlib.Path(base, "reference")
        reference.mkdir()
        began = time.monotonic()
        expected = finish(trainer, reference)
        whole = time.monotonic() - began
        struck = {"write": 0, "fsync": 0, "rename": 0, "any moment": 0}
        trial = 0
        while sum(struck.values()) < kills:
            folder = pathlib.Path(base, f"trial{trial}")
            folder.mkdir()
            trial += 1
            for _ in range(5):
                done = sum(struck.values())
                if done % 5 < 3:
                    stage = done % 3
                    process = start(trainer, folder, stage, rng.randint(1, 4))
                    where = ["write", "fsync", "rename"][stage]
                else:
                    process, where = start(trainer, folder), "any moment"
                    time.sleep(rng.uniform(0.02, whole * 0.5))
                    process.kill()
                if process.wait() == -signal.SIGKILL:
                    struck[where] += 1
            if finish(trainer, folder) != expected:
                sys.exit(f"kill test: trial {trial} ended otherwise than the run that nobody killed")
            leftovers = sorted(p.name for p in folder.iterdir())
            if [n for n in leftovers if n not in ("state", "final", "state.proa-part")]:
                sys.exit(f"kill test: strange files are left: {leftovers}")
    inside = struck["write"] + struck["fsync"]
    if inside < kills * 2 // 5:
        sys.exit(f"kill test: only {inside} kills struck inside a save: {struck}")
    print(f"kill test: {sum(struck.values())} kills ({', '.join(f'{k} {v}' for k, v in struck.items())}), "
          f"{trial} resumed runs end bit for bit alike")


if __name__ == "__main__":
    main()
