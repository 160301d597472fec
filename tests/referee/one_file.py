"""Runs one unittest file and writes a line of JSON for each of its methods: name, outcome, first line of the cause.

    python -m proa one_file.py TEST_FILE REPORT static|dynamic

The file runs as Paddle's own runner of that time ran it: in a scope and default programs of its own, in static mode if it is
on the list of such files. Names that NumPy (np.bool, np.int, …) and Python (collections.Sequence, …) have dropped since the
tests were written are given back before the file is imported; everything else is as it is for a user."""
import collections
import collections.abc
import importlib
import json
import os
import re
import sys
import traceback
import unittest

import numpy

for old in ("bool", "int", "float", "complex", "object", "str"):
    if old not in vars(numpy):
        setattr(numpy, old, __builtins__[old] if isinstance(__builtins__, dict) else getattr(__builtins__, old))
for old in collections.abc.__all__:
    if old not in vars(collections):
        setattr(collections, old, getattr(collections.abc, old))


def cause(error):
    """The last exception's type and first line."""
    lines = traceback.format_exception_only(error[0], error[1])
    text = (lines[-1] if issubclass(error[0], SyntaxError) else lines[0]).strip()
    inner = re.search(r"^ {4}(\w+: .*)$", text, re.M) if "In transformed code:" in text else None
    return inner[1][:300] if inner else text.split("\n")[0][:300]


def place(error):
    """The innermost frame that belongs to the package, as file:line."""
    found = ""
    for frame in traceback.extract_tb(error[2]):
        if f"{os.sep}proa{os.sep}" in frame.filename:
            found = f"{frame.filename.rsplit(os.sep + 'proa' + os.sep)[-1]}:{frame.lineno}"
    return found


class Report(unittest.TestResult):
    """Writes each outcome as it comes, so that a crash loses only the method in which it happens."""

    def __init__(self, stream):
        super().__init__()
        self.stream = stream

    def write(self, test, outcome, error=None):
        entry = {"test": test.id().split(".", 1)[-1], "outcome": outcome}
        if error is not None:
            entry["cause"], entry["place"] = cause(error), place(error)
        self.stream.write(json.dumps(entry) + "\n")
        self.stream.flush()

    def startTest(self, test):
        super().startTest(test)
        self.write(test, "started")

    def addSuccess(self, test):
        self.write(test, "passed")

    def addFailure(self, test, err):
        self.write(test, "failed", err)

    def addError(self, test, err):
        self.write(test, "error", err)

    def addSkip(self, test, reason):
        self.write(test, "skipped")

    def addExpectedFailure(self, test, err):
        self.write(test, "passed")

    def addUnexpectedSuccess(self, test):
        self.write(test, "failed")


def main():
    path, report, static = sys.argv[1:4]
    folder = os.path.dirname(os.path.abspath(path))
    sys.path[:0] = [folder, os.path.join(folder, "rnn")]  # tests append ./rnn, of the folder in which Paddle runs them
    sys.argv = [path]
    import paddle
    if static == "static":
        paddle.enable_static()
    name = os.path.splitext(os.path.basename(path))[0]
    with open(report, "w") as stream, paddle.fluid.program_guard(paddle.fluid.Program(), paddle.fluid.Program()), \
            paddle.fluid.scope_guard(paddle.fluid.Scope()), paddle.fluid.unique_name.guard():
        try:
            tests = unittest.defaultTestLoader.loadTestsFromModule(importlib.import_module(name))
        except BaseException:  # whatever stops the import is the file's outcome
            error = sys.exc_info()
            entry = {"test": "", "outcome": "import", "cause": cause(error), "place": place(error)}
            stream.write(json.dumps(entry) + "\n")
            return
        tests.run(Report(stream))


main()
