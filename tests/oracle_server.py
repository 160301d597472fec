"""Programs on real Paddle without its import each time: imports it, then runs each program in a fork of itself.

Run by tests/oracle.py. A line of JSON in: {argv, env, cwd, out, err}, argv as after `python`: SCRIPT or -c CODE, then
arguments; lines out: the child's process id, then its exit status. Variables that the interpreter and Paddle's import read
(FLAGS_*, PYTHONWARNINGS) are those that the server was started with.
"""
import atexit
import contextlib
import gc
import json
import os
import pathlib
import sys
import tempfile
import traceback
import types


def program(argv):
    """The code that argv names, as __main__."""
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main
    if argv[0] == "-c":
        sys.argv, sys.path[0], name, text = ["-c", *argv[2:]], "", "<string>", argv[1]
    else:
        name = argv[0]
        main.__file__, sys.argv, sys.path[0] = name, argv, str(pathlib.Path(name).resolve().parent)
        text = pathlib.Path(name).read_text()
    exec(compile(text, name, "exec"), main.__dict__)


def status_of(argv):
    try:
        program(argv)
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    return 0


def child(wanted):
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for name, descriptor in (("out", 1), ("err", 2)):
        os.dup2(os.open(wanted[name], os.O_WRONLY | os.O_CREAT | os.O_TRUNC), descriptor)
    os.setpgid(0, 0)
    os.chdir(wanted["cwd"])
    os.environ.clear()
    os.environ.update(wanted["env"])
    sys.path[1:1] = filter(None, wanted["env"].get("PYTHONPATH", "").split(os.pathsep))
    tempfile.tempdir = None
    numpy.random.seed()
    status = status_of(wanted["argv"])
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status & 255)


def main():
    requests, replies = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # stdout is for replies alone
    for line in requests:
        pid = os.fork()
        if pid == 0:
            child(json.loads(line))
        with contextlib.suppress(PermissionError):  # the child has done it, and begun another program
            os.setpgid(pid, pid)  # as the child does: who is told the number may end the group at once
        print(pid, file=replies, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), file=replies, flush=True)


import numpy
import paddle  # noqa: F401 - children find it imported
gc.freeze()
main()
