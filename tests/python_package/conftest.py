"""The package under test is the build's (PROA_BUILD, default build), for child processes, too."""
import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PACKAGE = str(pathlib.Path(os.environ.get("PROA_BUILD", ROOT / "build")).resolve() / "python")
sys.path.insert(0, PACKAGE)
os.environ["PYTHONPATH"] = os.pathsep.join([PACKAGE, *filter(None, [os.environ.get("PYTHONPATH")])])


@pytest.fixture
def program():
    """Static mode, in which a program, a startup program, a scope and names are the test's own; the program."""
    import proa as paddle
    from proa import fluid
    paddle.enable_static()
    with fluid.program_guard(fluid.Program(), fluid.Program()), fluid.scope_guard(fluid.Scope()), fluid.unique_name.guard():
        yield fluid.default_main_program()
    paddle.disable_static()
