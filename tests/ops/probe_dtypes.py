#!/usr/bin/env python3
"""Lists dtypes that real Paddle's CPU ops take and the table does not declare: probe_dtypes.py BUILD_DIR

Prints one line an op. tests/ops/dtype_gaps.txt is the committed answer, which may only shrink
(test_dtypes.py compares the two).
"""
import sys

import run_matrix
from run_matrix import matrix


def undeclared_cases(op):
    """The first sample whose tensors take the case's dtype, in every dtype the table leaves out."""
    for index, sample in enumerate(op["samples"]):
        if not sample.get("dtypes") and any(matrix.is_free(s) for s in matrix.sample_specs(op, sample)):
            return [matrix.build(op, index, sample, d) for d in matrix.NUMPY if d not in op["dtypes"]]
    return []


def main(build_dir):
    modules = {}
    for op in matrix.load_table(build_dir):
        family = op["family"]
        if family not in modules:
            modules[family] = matrix.family_module(op, "oracle")
        fn = getattr(modules[family], op["name"], None)
        cases = undeclared_cases(op) if fn else []
        refused = run_matrix.answers(fn, cases)
        taken = [c.dtype for c in cases if c.id + "!" not in refused]
        if taken:
            print(op["name"], *taken)


if __name__ == "__main__":
    main(sys.argv[1])
