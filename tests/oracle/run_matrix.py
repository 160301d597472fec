#!/usr/bin/env python3
"""Runs the table's cases in real Paddle and writes what it answers: run_matrix.py BUILD_DIR OUT.npz

A case that Paddle refuses is written as its error text, so that the tests can tell "Paddle cannot" from "not run".
"""
import pathlib
import sys
import warnings

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import matrix  # noqa: E402

warnings.filterwarnings("ignore")
import paddle  # noqa: E402


def to_paddle(v):
    if isinstance(v, list):
        return [to_paddle(x) for x in v]
    if not isinstance(v, matrix.Array):
        return v
    t = paddle.to_tensor(v.values)
    return t.astype("bfloat16") if v.dtype == "BF16" else t


def to_numpy(out):
    if out is None:
        return np.zeros(0, np.int8)
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


def main(build_dir, out):
    results, modules, refused = {}, {}, 0
    for op in matrix.load_table(build_dir):
        family = op["family"]
        if family not in modules:
            modules[family] = matrix.family_module(op, "oracle")
        fn = getattr(modules[family], op["name"], None)
        if fn is None:
            continue
        for case in matrix.cases(op):
            try:
                values = {k: to_paddle(v) for k, v in case.inputs.items()}
                flatten(case.id, to_numpy(fn(**values, **case.attrs)), results)
            except Exception as e:  # noqa: BLE001 - whatever Paddle raises is its answer
                refused += 1
                results[case.id + "!"] = np.array(f"{type(e).__name__}: {e}"[:300])
    np.savez(out, version=paddle.__version__, **results)
    print(f"oracle {paddle.__version__}: {len(results)} results, {refused} cases refused")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
