#!/usr/bin/env python3
"""Runs the table's cases in real Paddle and writes what it answers: run_matrix.py BUILD_DIR OUT.npz [OP …]

A case that Paddle refuses is written as its error text, so that the tests can tell "Paddle cannot" from "not run".
"""
import os
import pathlib
import pickle
import sys
import warnings

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import matrix

warnings.filterwarnings("ignore")
import paddle


def to_paddle(v):
    if not isinstance(v, matrix.Array):
        return v
    t = paddle.to_tensor(v.values)
    return t.astype("bfloat16") if v.dtype == "BF16" else t


def to_numpy(out):
    if out is None:
        return np.zeros(0, "V1")  # Paddle gives no such output: nothing to compare with
    if isinstance(out, (list, tuple)):
        return [to_numpy(x) for x in out]
    if isinstance(out, paddle.Tensor):
        return out.astype("float32").numpy() if out.dtype == paddle.bfloat16 else out.numpy()
    return np.asarray(out)


def flatten(prefix, value, to):
    if isinstance(value, list):
        for i, v in enumerate(value):
            flatten(f"{prefix}#{i}", v, to)
    else:
        to[prefix] = value


def run_cases(fn, cases, pipe):
    """In a child: answers of the cases, one pickle each."""
    with os.fdopen(pipe, "wb") as to:
        for case in cases:
            answer = {}
            try:
                flatten(case.id, to_numpy(fn(**case.fields(to_paddle))), answer)
            except Exception as e:
                answer = {case.id + "!": np.array(f"{type(e).__name__}: {e}"[:300])}
            pickle.dump(answer, to)
            to.flush()
    os._exit(0)


def answers(fn, cases):
    """Every case's answer; a case that ends the process (Paddle divides integers by zero) counts as refused."""
    results = {}
    while cases:
        read, write = os.pipe()
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            os.close(read)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            run_cases(fn, cases, write)
        os.close(write)
        done = 0
        with os.fdopen(read, "rb") as source:
            while done < len(cases):
                try:
                    results.update(pickle.load(source))
                except EOFError:
                    break
                done += 1
        os.waitpid(child, 0)
        if done < len(cases):
            results[cases[done].id + "!"] = np.array("Paddle's process ended")
            done += 1
        cases = cases[done:]
    return results


def main(build_dir, out, *names):
    results, modules, functions = {}, {}, []
    for op in matrix.load_table(build_dir):
        if names and op["name"] not in names:
            continue
        family = op["family"]
        if family not in modules:
            modules[family] = matrix.family_module(op, "oracle")
        fn = getattr(modules[family], op["name"], None)
        if fn is not None:
            functions.append(op["name"])
            results.update(answers(fn, list(matrix.cases(op))))
    np.savez(out, version=paddle.__version__, functions=np.array(functions), **results)
    refused = sum(k.endswith("!") for k in results)
    print(f"oracle {paddle.__version__}: {len(results) - refused} results, {refused} cases refused")


if __name__ == "__main__":
    main(*sys.argv[1:])
