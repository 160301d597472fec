"""Errors as a user sees them: the last frame, the native stack, Ctrl-C, a crash in native code."""
import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest


def start(code, *options, env=None):
    # an ignored SIGINT, as a shell gives it to jobs behind &, is inherited: Python leaves it alone then
    head = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    command = [sys.executable, *options, "-c", head + textwrap.dedent(code)]
    return subprocess.Popen(command, env=dict(os.environ, **(env or {})), text=True, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE)


def ended(process, seconds=60):
    out, error = process.communicate(timeout=seconds)
    return process.returncode, out, error


# ---- errors ----------------------------------------------------------------------------------------------------

SCRIPT = """
import paddle
import paddle.nn as nn


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(4, 2)

    def forward(self, x):
        return self.fc(x)  # the user's line


def train():
    Net()(paddle.ones([3, 5]))


train()
"""


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return path


def run_script(path, **env):
    return subprocess.run([sys.executable, "-m", "proa", str(path)], env=dict(os.environ, **env), text=True,
                          capture_output=True, timeout=60)


def test_last_frame_is_the_users(script):
    done = run_script(script)
    lines = done.stderr.splitlines()
    assert done.returncode == 1
    assert lines[0] == "Traceback (most recent call last):"
    frames = [line for line in lines if line.startswith("  File ")]
    assert all(str(script) in f for f in frames), done.stderr
    assert "in forward" in frames[-1] and "in <module>" in frames[0]
    kind, _, message = lines[-1].partition(": ")
    assert kind == "ValueError"
    assert "[3, 5]" in done.stderr and "[4, 2]" in done.stderr
    assert "core/" not in done.stderr and ".c:" not in done.stderr


def test_all_frames_on_demand(script):
    done = run_script(script, FLAGS_call_stack_level="2")
    assert any("/nn/" in line for line in done.stderr.splitlines() if line.startswith("  File "))
    assert "runpy" in done.stderr


def test_python_errors_keep_their_place(tmp_path):
    path = tmp_path / "wrong.py"
    path.write_text("import paddle\n\n\ndef f():\n    paddle.nn.Linear(2, 2)(1 / 0)\n\n\nf()\n")
    done = run_script(path)
    assert done.stderr.rstrip().endswith("ZeroDivisionError: division by zero")
    assert done.stderr.count("  File ") == 2


def test_a_hook_of_the_users_is_called():
    process = start("""
        import sys
        sys.excepthook = lambda kind, error, tb: print("mine", kind.__name__)
        import proa
        proa.nn.Linear(2, 2)(proa.ones([3]))
    """)
    assert ended(process)[1].strip() == "mine ValueError"


# ---- Ctrl-C ----------------------------------------------------------------------------------------------------

LONG = {
    "ops": """
        x = paddle.rand([300, 300])
        print("ready", flush=True)
        while True:
            x = paddle.tanh(paddle.matmul(x, x))
    """,
    "one op": """
        x = paddle.rand([2600, 2600])
        print("ready", flush=True)
        for _ in range(1000):
            paddle.matmul(x, x)
    """,
    "backward": """
        x = paddle.rand([64, 64])
        x.stop_gradient = False
        print("ready", flush=True)
        while True:
            y = x
            for _ in range(50):
                y = paddle.matmul(y, x) * 0.1
            y.sum().backward()
    """,
    "loader": """
        class Slow(paddle.io.Dataset):
            def __getitem__(self, i):
                import time
                time.sleep(0.05)
                return i
            def __len__(self):
                return 100000
        print("ready", flush=True)
        for batch in paddle.io.DataLoader(Slow(), batch_size=4, num_workers=2):
            pass
    """,
    "fit": """
        import numpy as np
        data = [(np.ones([8], "float32"), np.zeros([1], "int64")) for _ in range(100000)]
        net = paddle.nn.Linear(8, 2)
        model = paddle.Model(net)
        model.prepare(paddle.optimizer.SGD(0.1, parameters=net.parameters()), paddle.nn.CrossEntropyLoss())
        print("ready", flush=True)
        model.fit(data, epochs=1000, batch_size=4, verbose=0)
    """,
}


@pytest.mark.parametrize("work", LONG)
def test_ctrl_c(work):
    process = start("import proa as paddle\n" + textwrap.dedent(LONG[work]))
    assert process.stdout.readline() == "ready\n", process.stderr.read()
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    code, _, error = ended(process)
    assert error.rstrip().endswith("KeyboardInterrupt"), error
    assert code == -signal.SIGINT or code == 130
    assert time.monotonic() - began < 15  # about a second where nobody else uses the machine


# ---- crashes ---------------------------------------------------------------------------------------------------

IN_AN_OP = """
    import proa

    def users_function():
        x = proa.rand([1200, 1200])
        proa.matmul(x, x)
        print("started", flush=True)
        while True:
            proa.matmul(x, x)

    users_function()
"""


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL", "SIGABRT"])
def test_crash_in_an_op(name):
    process = start(IN_AN_OP)
    assert process.stdout.readline() == "started\n"
    time.sleep(0.2)  # all of it, but for a millionth, within a product: no other Python thread takes the interpreter's lock
    process.send_signal(getattr(signal, name))
    code, _, error = ended(process)
    assert code == -getattr(signal, name)  # the default action came afterwards
    lines = error.split("\n")
    at = next(i for i, line in enumerate(lines) if line.startswith(f"Proa: fatal signal {name}: "))
    assert lines[at + 1] == "  op: matmul"
    assert "most recent call first" in lines[at + 2]
    assert "users_function" in lines[at + 3]


FAULT = "import proa, ctypes\ndef users_function():\n    ctypes.string_at(8)\n"


def test_crash_elsewhere():
    code, _, error = ended(start(FAULT + "users_function()"))
    assert code == -signal.SIGSEGV
    assert "Proa: fatal signal SIGSEGV: invalid memory access at 0x8\n  op: none was running\n" in error
    assert "users_function" in error


@pytest.mark.parametrize("how", ["call", "environment"])
def test_report_switched_off(how):
    call = "proa.disable_signal_handler()\n" if how == "call" else ""
    env = {} if how == "call" else {"PROA_CRASH_REPORT": "0"}
    code, _, error = ended(start(FAULT + call + "users_function()", env=env))
    assert code == -signal.SIGSEGV
    assert "Proa" not in error


@pytest.mark.parametrize("first", [True, False])
def test_faulthandler_is_heard_too(first):
    """Both handlers report, in either order of installation, and the process ends by the signal."""
    options = ["-X", "faulthandler"] if first else []
    call = "" if first else "import faulthandler; faulthandler.enable()\n"
    code, _, error = ended(start(FAULT + call + "users_function()", *options))
    assert code == -signal.SIGSEGV
    assert "Fatal Python error: Segmentation fault" in error
    assert error.count("Proa: fatal signal SIGSEGV") == 1


def test_stack_overflow_is_reported():
    """The handler has a stack of its own."""
    code, _, error = ended(start("""
        import sys, proa
        sys.setrecursionlimit(10 ** 9)
        deep = []
        for _ in range(10 ** 6):
            deep = [deep]
        repr(deep)
    """))
    assert code == -signal.SIGSEGV
    assert "Proa: fatal signal SIGSEGV: invalid memory access at 0x" in error


def test_numbers_that_only_the_run_knows_are_named():
    import proa as paddle
    unknown = [paddle.static.InputSpec([None] * 4, "float32")]
    for f, message in ((lambda x: paddle.split(x, x.shape[0])[0], "a length that is unknown while the program is made"),
                       (lambda x: paddle.chunk(x, x.shape[0])[0], "a length that is unknown while the program is made"),
                       (lambda x: paddle.nn.functional.conv2d(x, x, groups=x.shape[1]), "conv2d: groups is a variable of a program")):
        with pytest.raises((ValueError, TypeError), match=message):
            paddle.jit.to_static(f, input_spec=unknown).concrete_program
