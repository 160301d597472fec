"""Runs examples of docstrings, each docstring in a fork of this process, which has imported paddle.

    [-m proa] docstrings_worker.py CASES REPORT SECONDS

CASES: JSON lines {"id", "examples": [source, …]}. REPORT gets lines {"id", "outcome": passed | error | crash | late, "cause",
"got": [what each example printed]}."""
import contextlib
import io
import json
import os
import pathlib
import signal
import sys
import tempfile
import time
import traceback
import warnings

import numpy as np
import paddle


def run(examples):
    """(cause of an error or None, what each example printed)."""
    warnings.simplefilter("ignore")
    scope, got = {"__name__": "__main__"}, []
    paddle.seed(0)
    np.random.seed(0)
    for source in examples:
        into = io.StringIO()
        try:
            with contextlib.redirect_stdout(into):
                exec(compile(source, "<example>", "single"), scope)
        except BaseException as error:  # an example may exit
            lines = traceback.format_exception_only(type(error), error)
            return f"{''.join(lines).strip()[:400]} | {source.strip()[:120]}", got
        got.append(into.getvalue())
    return None, got


def child(case, report):
    os.chdir(tempfile.mkdtemp(prefix="docstring-"))
    for stream in (1, 2):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
    cause, got = run(case["examples"])
    pathlib.Path(report).write_text(json.dumps({"cause": cause, "got": got}))
    os._exit(0)


def outcome_of(case, report, seconds):
    pathlib.Path(report).unlink(missing_ok=True)
    pid = os.fork()
    if pid == 0:
        os.setpgid(0, 0)
        try:
            child(case, report)
        finally:
            os._exit(3)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        time.sleep(0.01)
    else:
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return {"outcome": "late", "cause": f"takes more than {seconds:g} s", "got": []}
    if not os.path.exists(report):
        return {"outcome": "crash", "cause": f"ended with {os.waitstatus_to_exitcode(status)}", "got": []}
    found = json.loads(pathlib.Path(report).read_text())
    return {"outcome": "error" if found["cause"] else "passed", **found}


def main():
    cases, report, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
    with open(cases) as given, open(report, "w") as into:
        for line in given:
            case = json.loads(line)
            found = outcome_of(case, report + ".one", seconds)
            into.write(json.dumps({"id": case["id"], **found}) + "\n")
            into.flush()


main()
