"""Runs proa.distributed.launch and the ranks that it starts without repeating their imports (forked_server.py). argv is the launcher's.
A rank, which it starts as `python SCRIPT`, is a fork made before the launcher has threads. Run by tests/launched.py."""
import importlib
import json
import os
import pathlib
import runpy
import signal
import socket
import subprocess
import sys
import time
import types

import forked_server
import numpy  # noqa: F401 - forks find all of these imported
import proa
from proa.distributed import fleet, sharding  # noqa: F401

launch = importlib.import_module("proa.distributed.launch.main")  # the package's name of it is the function
for module in ("amp", "io", "jit", "nn", "optimizer", "static"):
    getattr(proa, module)


class Script(forked_server.Leave):
    """Told to a rank: what it is to run."""


class Rank:
    """A fork that waits for its program; afterwards to the launcher what a Popen is."""

    def __init__(self):
        self.returncode = None
        self.to, here = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            self.to.close()
            self._wait_for_program(here)
        here.close()

    @staticmethod
    def _wait_for_program(here):
        text, files, _, _ = socket.recv_fds(here, 1 << 20, 1)
        here.close()
        if not text:
            os._exit(0)
        wanted = json.loads(text)
        for descriptor in (1, 2) if files else ():
            os.dup2(files[0], descriptor)
        forked_server.enter(wanted["env"])
        raise Script(*wanted["command"])

    def begin(self, command, env, stdout=None, stderr=None):
        python, flag, *words = command
        assert (python, flag, stderr) == (sys.executable, "-u", subprocess.STDOUT if stdout else None), command
        socket.send_fds(self.to, [json.dumps({"command": words, "env": env}).encode()], [stdout.fileno()] if stdout else [])
        self.to.close()
        return self

    def poll(self):
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout):
        until = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > until:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            time.sleep(0.01)

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)


def job(argv):
    """The launcher, whose ranks are forks."""
    ranks = iter([Rank() for _ in range(int(argv[argv.index("--nproc_per_node") + 1]))])

    def start(command, **how):
        return next(ranks).begin(command, **how)
    launch.subprocess = types.SimpleNamespace(**{**vars(subprocess), "Popen": start})
    return launch.main(argv)


try:
    forked_server.serve(job)
except Script as told:
    script, *sys.argv[1:] = told.args
else:
    sys.exit()
sys.argv[0], sys.path[0] = script, str(pathlib.Path(script).resolve().parent)
runpy.run_path(script, run_name="__main__")
