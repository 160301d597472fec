"""Loads the models that cases left (parity.leave) on the `paddle` of this interpreter: exchange.py FOLDER OUT.

Writes {model: outcome}, as run_cases.py does.
"""
import pathlib
import pickle
import sys

import numpy as np
import paddle
import paddle.static as static


def fed(values, lengths):
    if not lengths:
        return values
    t = static.Scope().var("fed").get_tensor()
    t.set(values, paddle.CPUPlace())
    t.set_recursive_sequence_lengths(lengths)
    return t


def answers(prefix, feed):
    exe = static.Executor(paddle.CPUPlace())
    with static.scope_guard(static.Scope()):
        program, names, fetches = static.load_inference_model(str(prefix), exe)
        return [np.array(r) for r in exe.run(program, {n: fed(*feed[n]) for n in names}, fetches, return_numpy=False)]


def main():
    folder, out = map(pathlib.Path, sys.argv[1:3])
    paddle.enable_static()
    found = {}
    for left in sorted(folder.rglob("answers.pkl")):
        feed, want = pickle.loads(left.read_bytes())
        try:
            got = answers(left.parent / "m", feed)
        except Exception as error:  # the comparison reports it
            got = f"{type(error).__name__}: {error}"[-2000:]
        found[left.parent.name] = got, want
    out.write_bytes(pickle.dumps(found))


main()
