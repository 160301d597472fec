"""The type stubs that tools/gen_stubs.py wrote into the build: mypy accepts the documentation's programs, knows what
the commonest calls return, and finds the stubs to say what the modules hold."""
import os
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PACKAGE = pathlib.Path(os.environ.get("PROA_BUILD", ROOT / "build")).resolve() / "python"
# Accepted messages of stubtest: matters of style, and what Python's type system cannot express of C types.
ACCEPTED = re.compile(r'stub parameter "self" differs from runtime parameter|should be positional-only'
                      r"|isn't marked with @(final|disjoint_base)|metaclass differs"
                      r"|runtime method is abstract|__array_(ufunc|priority)__|__(dir|init|new)__ is ")


def mypy(folder, program, *options):
    (folder / "program.py").write_text(program)
    env = dict(os.environ, MYPYPATH=str(PACKAGE))
    cache = folder.parent / "mypy"  # of the tests of this worker
    done = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", str(cache), *options, "program.py"],
                          cwd=folder, env=env, text=True, capture_output=True)
    return done.stdout + done.stderr


@pytest.mark.parametrize("page", ["README.md", "docs/python.md"])
def test_programs_of_the_documentation_are_accepted(tmp_path, page):
    printed = subprocess.run([sys.executable, str(ROOT / "tools/run_docs.py"), "--python", str(ROOT / page)],
                             text=True, capture_output=True, check=True)
    assert "import proa as paddle" in printed.stdout
    said = mypy(tmp_path, printed.stdout)
    assert said.startswith("Success"), said


def test_what_calls_return(tmp_path):
    lines = {"paddle.matmul(x, x)": "Tensor", "(x * 2 + x).reshape([-1])": "Tensor", "x.shape": "list[int]",
             "paddle.concat([x, x])": "Tensor", "paddle.nn.functional.relu(x)": "Tensor", "x.sum().grad": "Tensor | None",
             "paddle.nn.Linear(2, 3)": "Linear", "paddle.nn.functional.softmax(x)": "Tensor", "x.add_(x)": "Tensor",
             "paddle.optimizer.Adam(parameters=[])": "Adam"}
    program = "import proa as paddle\nx = paddle.ones([2, 2])\n" + "".join(f"reveal_type({e})\n" for e in lines)
    said = re.sub(r"(proa|builtins)\.([a-z_]+\.)*", "", mypy(tmp_path, program))
    assert re.findall(r'Revealed type is "(.*)"', said) == list(lines.values()), said


def test_wrong_calls_are_refused(tmp_path):
    program = ("import proa as paddle\nx = paddle.ones([2])\npaddle.matmul(x)\npaddle.matmul(x, x, transpose=True)\n"
               "paddle.nn.functional.relu('x')\npaddle.nothing\n")
    said = mypy(tmp_path, program)
    assert [int(n) for n in re.findall(r"program\.py:(\d+): error", said)] == [3, 4, 5, 6], said


def test_stubs_say_what_the_modules_hold(tmp_path):
    done = subprocess.run([sys.executable, "-m", "mypy.stubtest", "proa", "--concise"], cwd=PACKAGE, text=True,
                          env=dict(os.environ, MYPYPATH=str(PACKAGE), MYPY_CACHE_DIR=str(tmp_path)),
                          capture_output=True)
    lines = done.stdout.splitlines() + done.stderr.splitlines()
    assert lines, "stubtest said nothing: did it run?"
    wrong = [line for line in lines if not ACCEPTED.search(line)]
    assert not wrong, "\n".join(wrong)
