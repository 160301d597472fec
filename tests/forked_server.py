"""Runs programs without repeating their imports: a server imports what they need once, then runs each in a fork of itself.

Servers are started by tests/forked.py. A line of JSON in: {argv, env, cwd, out, err}; lines out: the child's process id, then its
exit status. Variables that the interpreter and the imports read are those that the server was started with.
"""
import atexit
import contextlib
import faulthandler
import gc
import json
import os
import signal
import sys
import tempfile
import traceback

import numpy


class Leave(BaseException):
    """Ends serve() in a child: the caller goes on in its place."""


def _status_of(run, argv):
    try:
        return run(argv) or 0
    except Leave:
        raise
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1


def enter(env, cwd=None):
    """Makes a fork a program of its own: environment, folder and random numbers."""
    os.environ.clear()
    os.environ.update(env)
    if cwd:
        os.chdir(cwd)
    tempfile.tempdir = None
    numpy.random.seed()


def _child(run, wanted):
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for name, descriptor in (("out", 1), ("err", 2)):
        os.dup2(os.open(wanted[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
    os.setpgid(0, 0)
    faulthandler.register(signal.SIGQUIT)  # a program that is late says where its threads are
    enter(wanted["env"], wanted["cwd"])
    sys.path[1:1] = filter(None, wanted["env"].get("PYTHONPATH", "").split(os.pathsep))
    status = _status_of(run, wanted["argv"])
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status & 255)


def serve(run):
    """Calls run(argv) in a fork for each request; what it returns or raises is the program's status."""
    gc.freeze()
    requests, replies = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # stdout is for replies alone
    for line in requests:
        pid = os.fork()
        if pid == 0:
            _child(run, json.loads(line))
        with contextlib.suppress(PermissionError):  # the child has done it, and begun another program
            os.setpgid(pid, pid)  # as the child does: who is told the number may end the group at once
        print(pid, file=replies, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), file=replies, flush=True)
