"""Runs one case module on the `paddle` of this interpreter and writes the outcomes: run_cases.py MODULE OUT.

The same file serves real Paddle (plain interpreter) and Proa (`python -m proa run_cases.py …`).
"""
import importlib.util
import pathlib
import pickle
import sys
import traceback

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
import parity


def main():
    path, out = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    outcomes = {}
    for one in parity.CASES:
        try:
            outcomes[one.id] = {"names": one.names, "tol": one.tol, **parity.run(one)}
        except Exception:  # the comparison reports it; the other cases still run
            outcomes[one.id] = {"names": one.names, "tol": one.tol, "failed": traceback.format_exc(limit=-4)}
    out.write_bytes(pickle.dumps(outcomes))
    print(f"{path.stem}: {len(outcomes)} cases, {sum('failed' in o for o in outcomes.values())} raised")


main()
