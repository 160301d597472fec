"""The examples in the package's docstrings do what they say."""
import doctest
import importlib
import pathlib

import pytest

import proa as paddle

ROOT = pathlib.Path(paddle.__file__).parent
FILES = [f for f in sorted(ROOT.rglob("*.py")) if ">>>" in f.read_text()]


def test_there_are_examples():
    assert sum(f.read_text().count(">>>") for f in FILES) >= 60


@pytest.mark.parametrize("file", FILES, ids=lambda f: f.relative_to(ROOT).as_posix())
def test_examples(file):
    parts = file.relative_to(ROOT).with_suffix("").parts
    module = importlib.import_module(".".join(["proa", *(p for p in parts if p != "__init__")]))
    finder, runner = doctest.DocTestFinder(), doctest.DocTestRunner()
    for test in finder.find(module, extraglobs={"paddle": paddle, "__name__": "__main__"}):  # examples are a user's code
        runner.run(test)
    tried, failed = runner.tries, runner.failures
    assert tried and not failed, f"{failed} of {tried} examples fail"
